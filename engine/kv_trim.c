#include "engine/kv_trim.h"

#include <string.h>

void kv_trim_init(struct kv_trim *t, rocksdb_t *db) {
    t->db = db;
    pthread_mutex_init(&t->lock, NULL);
}

enum { WORTH_IT = 8 << 20, TIMES = 4 /* tries: a saved state or new rows may keep files */ };

uint64_t kv_trim_bytes(rocksdb_t *db, struct slice from, struct slice to) {
    const char *start = (const char *)from.p, *limit = (const char *)to.p;
    char *text = NULL;
    uint64_t n = 0;
    rocksdb_approximate_sizes(db, 1, &start, &from.n, &limit, &to.n, &n, &text);
    if (text) rocksdb_free(text);
    return text ? 0 : n;
}

static bool much_is_left(rocksdb_t *db, struct slice from, struct slice to) {
    return kv_trim_bytes(db, from, to) > WORTH_IT;
}

static void compact(rocksdb_t *db, struct slice from, struct slice to) {
    rocksdb_compactoptions_t *o = rocksdb_compactoptions_create();
    rocksdb_compactoptions_set_exclusive_manual_compaction(o, 0);
    rocksdb_compactoptions_set_bottommost_level_compaction(o, 0); /* skip: files were deleted there already */
    rocksdb_compact_range_opt(db, o, (const char *)from.p, from.n, (const char *)to.p, to.n);
    rocksdb_compactoptions_destroy(o);
}

static void *work(void *arg) {
    struct kv_trim *t = arg;
    pthread_mutex_lock(&t->lock);
    while (t->n && !t->closing) {
        uint8_t from[KV_TRIM_KEY], to[KV_TRIM_KEY];
        size_t from_n = t->ranges[0].from_n, to_n = t->ranges[0].to_n;
        memcpy(from, t->ranges[0].from, from_n);
        memcpy(to, t->ranges[0].to, to_n);
        memmove(t->ranges, t->ranges + 1, --t->n * sizeof t->ranges[0]);
        for (int i = 0; i < TIMES && !t->closing; i++) {
            pthread_mutex_unlock(&t->lock);
            compact(t->db, slice_of(from, from_n), slice_of(to, to_n));
            bool again = much_is_left(t->db, slice_of(from, from_n), slice_of(to, to_n));
            pthread_mutex_lock(&t->lock);
            if (!again) break;
        }
    }
    t->running = false;
    pthread_mutex_unlock(&t->lock);
    return NULL;
}

void kv_trim_add(struct kv_trim *t, struct slice from, struct slice to) {
    if (!much_is_left(t->db, from, to)) return;
    pthread_mutex_lock(&t->lock);
    if (t->n < KV_TRIM_RANGES && from.n <= KV_TRIM_KEY && to.n <= KV_TRIM_KEY && !t->closing) {
        memcpy(t->ranges[t->n].from, from.p, from.n);
        memcpy(t->ranges[t->n].to, to.p, to.n);
        t->ranges[t->n].from_n = from.n;
        t->ranges[t->n++].to_n = to.n;
    }
    if (t->n && !t->running) {
        if (t->joinable) pthread_join(t->thread, NULL); /* the thread has released the lock for the last time */
        t->joinable = t->running = pthread_create(&t->thread, NULL, work, t) == 0;
    }
    pthread_mutex_unlock(&t->lock);
}

void kv_trim_fini(struct kv_trim *t) {
    pthread_mutex_lock(&t->lock);
    t->closing = true;
    bool joinable = t->joinable;
    pthread_mutex_unlock(&t->lock);
    if (joinable) {
        rocksdb_disable_manual_compaction(t->db);
        pthread_join(t->thread, NULL);
    }
    pthread_mutex_destroy(&t->lock);
}
