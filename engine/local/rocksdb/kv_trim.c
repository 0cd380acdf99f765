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

static void compact(rocksdb_t *db, struct slice from, struct slice to) {
    rocksdb_compactoptions_t *o = rocksdb_compactoptions_create();
    rocksdb_compactoptions_set_exclusive_manual_compaction(o, 0);
    rocksdb_compactoptions_set_bottommost_level_compaction(o, 0); /* skip: files were deleted there already */
    rocksdb_compact_range_opt(db, o, (const char *)from.p, from.n, (const char *)to.p, to.n);
    rocksdb_compactoptions_destroy(o);
}

static uint64_t property(rocksdb_t *db, const char *name) {
    uint64_t n = 0;
    return rocksdb_property_int(db, name, &n) ? 0 : n;
}

/* Whether a version is in use that has files which the current one has not. */
static bool old_files_are_used(rocksdb_t *db) {
    return property(db, "rocksdb.total-sst-files-size") != property(db, "rocksdb.live-sst-files-size");
}

/* When deletion of files is enabled again, RocksDB looks for unused files. */
static void unlink_files(rocksdb_t *db) {
    char *text = NULL;
    rocksdb_disable_file_deletions(db, &text);
#if TALLY_ROCKSDB_MAJOR < 9
    if (!text) rocksdb_enable_file_deletions(db, 0, &text);
#else
    if (!text) rocksdb_enable_file_deletions(db, &text);
#endif
    if (text) log_warn("files of dropped tables stay until the next flush: %s", text);
    if (text) rocksdb_free(text);
}

/* Called with the lock, which it releases meanwhile. The first nap gathers what is dropped by
 * turns. */
static void unlink_when_unused(struct kv_trim *t) {
    const struct timespec nap = {.tv_nsec = NAP_MS * 1000000};
    bool used = true;
    t->unlinks = false;
    for (int ms = 0; ms < SETTLE_MS && used && !t->closing; ms += NAP_MS) {
        pthread_mutex_unlock(&t->lock);
        nanosleep(&nap, NULL);
        used = old_files_are_used(t->db);
        pthread_mutex_lock(&t->lock);
    }
    if (t->closing) return;
    pthread_mutex_unlock(&t->lock);
    unlink_files(t->db);
    pthread_mutex_lock(&t->lock);
}

/* Called with the lock, which it releases meanwhile. */
static void compact_first(struct kv_trim *t) {
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
        memcpy(t->ranges[t->n].from, from.p, from.n);
        memcpy(t->ranges[t->n].to, to.p, to.n);
        t->ranges[t->n].from_n = from.n;
        t->ranges[t->n++].to_n = to.n;
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
