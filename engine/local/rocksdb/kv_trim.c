#include "engine/local/rocksdb/kv_trim.h"

#include <string.h>
#include <time.h>

#include "base/log.h"

void kv_trim_init(struct kv_trim *t, rocksdb_t *db) {
    t->db = db;
    pthread_mutex_init(&t->lock, NULL);
}

enum { WORTH_IT = 8 << 20, TIMES = 4 /* tries: a saved state or new rows may keep files */ };
enum { SETTLE_MS = 10000, NAP_MS = 10 };

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

static uint64_t property(rocksdb_t *db, const char *name) {
    uint64_t n = 0;
    return rocksdb_property_int(db, name, &n) ? 0 : n;
}

/* Waits until no version is in use that has files which the current one has not, and has RocksDB
 * look for unused files, which it does when deletion of files is enabled again. Called with the
 * lock, which it releases meanwhile. The first nap collects ranges that are dropped one by one. */
static void unlink_when_unused(struct kv_trim *t) {
    const struct timespec nap = {.tv_nsec = NAP_MS * 1000000};
    char *text = NULL;
    bool used = true;
    t->unlinks = false;
    for (int ms = 0; ms < SETTLE_MS && used && !t->closing; ms += NAP_MS) {
        pthread_mutex_unlock(&t->lock);
        nanosleep(&nap, NULL);
        used = property(t->db, "rocksdb.total-sst-files-size") != property(t->db, "rocksdb.live-sst-files-size");
        pthread_mutex_lock(&t->lock);
    }
    if (t->closing) return;
    pthread_mutex_unlock(&t->lock);
    rocksdb_disable_file_deletions(t->db, &text);
#if TALLY_ROCKSDB_MAJOR < 9
    if (!text) rocksdb_enable_file_deletions(t->db, 0, &text);
#else
    if (!text) rocksdb_enable_file_deletions(t->db, &text);
#endif
    if (text) log_warn("files of dropped tables stay until the next flush: %s", text);
    if (text) rocksdb_free(text);
    pthread_mutex_lock(&t->lock);
}

/* Called with the lock, which it releases meanwhile. */
static void compact_first(struct kv_trim *t) {
    struct kv_trim_range r = t->ranges[0];
    struct slice from = slice_of(r.from, r.from_n), to = slice_of(r.to, r.to_n);
    bool again = true;
    memmove(t->ranges, t->ranges + 1, --t->n * sizeof t->ranges[0]);
    rocksdb_compactoptions_t *o = rocksdb_compactoptions_create();
    rocksdb_compactoptions_set_exclusive_manual_compaction(o, 0);
    rocksdb_compactoptions_set_bottommost_level_compaction(o, 0); /* skip: files were deleted there already */
    for (int i = 0; i < TIMES && again && !t->closing; i++) {
        pthread_mutex_unlock(&t->lock);
        rocksdb_compact_range_opt(t->db, o, (const char *)from.p, from.n, (const char *)to.p, to.n);
        again = much_is_left(t->db, from, to);
        pthread_mutex_lock(&t->lock);
    }
    rocksdb_compactoptions_destroy(o);
}

static void *work(void *arg) {
    struct kv_trim *t = arg;
    pthread_mutex_lock(&t->lock);
    while ((t->n || t->unlinks) && !t->closing) {
        if (t->n) compact_first(t);
        else unlink_when_unused(t);
    }
    t->running = false;
    pthread_mutex_unlock(&t->lock);
    return NULL;
}

void kv_trim_add(struct kv_trim *t, struct slice from, struct slice to) {
    bool much = much_is_left(t->db, from, to);
    pthread_mutex_lock(&t->lock);
    t->unlinks = !t->closing;
    if (much && t->n < KV_TRIM_RANGES && from.n <= KV_TRIM_KEY && to.n <= KV_TRIM_KEY && !t->closing) {
        struct kv_trim_range *r = &t->ranges[t->n++];
        r->from_n = from.n;
        r->to_n = to.n;
        memcpy(r->from, from.p, from.n);
        memcpy(r->to, to.p, to.n);
    }
    if (t->unlinks && !t->running) {
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
