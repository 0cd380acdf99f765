/* Gets, snapshots and iterators. */
#include <stdlib.h>
#include <string.h>

#include "base/fault.h"
#include "base/hot.h"
#include "base/stop_check.h"
#include "engine/local/rocksdb/rocks.h"

struct rocks_iter {
    struct kv_iter it;
    struct kv *of;
    enum eng_tier tier;
    rocksdb_iterator_t *i;
    rocksdb_readoptions_t *read;
};

enum { LOOP_MERGE_MAX = 4 << 20 }; /* bytes that a read merges on a loop */

/* The read that RocksDB does for this thread. Flushes and compactions merge on threads of RocksDB, which
 * read nothing here. */
static _Thread_local struct {
    bool on_loop, deferred;
    size_t merged; /* bytes */
} reading;

bool rocks_may_merge(size_t bytes) {
    reading.merged += bytes;
    if (LIKELY(reading.merged <= LOOP_MERGE_MAX)) return true;
    reading.deferred = reading.on_loop;
    return !reading.on_loop && !stop_check_run();
}

static void read_begins(enum eng_tier tier) {
    reading.on_loop = tier == ENG_TIER_CACHE;
    reading.deferred = false;
    reading.merged = 0;
}

static int read_failed(char *text, struct err *e) {
    if (reading.deferred || stop_check_run()) { /* RocksDB's text is of a merge that failed */
        rocksdb_free(text);
        return reading.deferred ? KV_INCOMPLETE : -1;
    }
    /* The C API has no status codes. */
    if (strstr(text, "no blocking io") || strstr(text, "Result incomplete")) {
        rocksdb_free(text);
        return KV_INCOMPLETE;
    }
    return rocks_failed(text, "the store cannot be read", e);
}

int kv_get(struct kv *kv, enum eng_tier tier, struct slice key, struct kv_value *value, struct err *e) {
    char *text = NULL;
    if (rocks_injected(FAULT_KV_READ, "the store cannot be read", e)) return -1;
    if (kv_is_cold(tier)) return KV_INCOMPLETE;
    rocks_count_nothing();
    read_begins(tier);
    rocksdb_pinnableslice_t *pinned = rocksdb_get_pinned(kv->db, kv->read[tier], rocks_chars(key), key.n, &text);
    if (text) return read_failed(text, e);
    if (!pinned) return 0;
    value->handle = pinned;
    value->bytes.p = (const uint8_t *)rocksdb_pinnableslice_value(pinned, &value->bytes.n);
    return 1;
}

void kv_release(void *handle) { rocksdb_pinnableslice_destroy(handle); }

struct kv_snapshot *kv_snapshot_new(struct kv *kv) {
    struct kv_snapshot *s = malloc(sizeof(*s));
    if (s) s->s = rocksdb_create_snapshot(kv->db);
    return s;
}

void kv_snapshot_free(struct kv *kv, struct kv_snapshot *s) {
    rocksdb_release_snapshot(kv->db, s->s);
    free(s);
}

rocksdb_readoptions_t *rocks_read_options(enum eng_tier tier) {
    rocksdb_readoptions_t *o = rocksdb_readoptions_create();
    rocksdb_readoptions_set_verify_checksums(o, 1);
    if (tier == ENG_TIER_CACHE) {
        rocksdb_readoptions_set_read_tier(o, 1);
        rocksdb_readoptions_set_max_skippable_internal_keys(o, KV_PASSED_MAX);
    }
    return o;
}

static int iter_move(struct kv_iter *iter, enum kv_move move, struct slice key, struct err *e) {
    rocksdb_iterator_t *i = ((struct rocks_iter *)iter)->i;
    if (rocks_injected(FAULT_KV_READ, "the store cannot be read", e)) return -1;
    if (kv_is_cold(((struct rocks_iter *)iter)->tier)) return KV_INCOMPLETE;
    read_begins(((struct rocks_iter *)iter)->tier);
    switch (move) {
    case KV_SEEK: rocksdb_iter_seek(i, rocks_chars(key), key.n); break;
    case KV_SEEK_BACK: rocksdb_iter_seek_for_prev(i, rocks_chars(key), key.n); break;
    case KV_NEXT: rocksdb_iter_next(i); break;
    case KV_PREV: rocksdb_iter_prev(i); break;
    }
    if (UNLIKELY(!rocksdb_iter_valid(i))) {
        char *text = NULL;
        rocksdb_iter_get_error(i, &text);
        return kv_iter_lend(iter, text ? read_failed(text, e) : 0, e);
    }
    iter->key.p = (const uint8_t *)rocksdb_iter_key(i, &iter->key.n);
    iter->value.p = (const uint8_t *)rocksdb_iter_value(i, &iter->value.n);
    return kv_iter_lend(iter, 1, e);
}

static void iter_free(struct kv_iter *iter) {
    struct rocks_iter *it = (struct rocks_iter *)iter;
    (void)kv_iter_lend(iter, 0, NULL);
    rocksdb_iter_destroy(it->i);
    atomic_fetch_sub_explicit(&it->of->iterators, 1, memory_order_release);
    rocksdb_readoptions_destroy(it->read);
    free(it);
}

static const struct kv_iter_ops iter_ops = {.iter_move = iter_move, .iter_free = iter_free};

struct kv_iter *kv_iter_new(struct kv *kv, const struct kv_iter_spec *spec, struct err *e) {
    struct rocks_iter *it = calloc(1, sizeof(*it));
    if (!it) return err_nomem(e), NULL;
    it->it.ops = &iter_ops;
    rocks_count_nothing();
    it->read = rocks_read_options(spec->tier);
    if (spec->snapshot) rocksdb_readoptions_set_snapshot(it->read, spec->snapshot->s);
    if (!spec->one_prefix) rocksdb_readoptions_set_total_order_seek(it->read, 1);
    /* RocksDB 7.8.3 loses the error of an unreadable block when it then passes keys that a range
     * deletion covers, and at the end of a file: the iterator is at its end as if there were no
     * more keys (https://github.com/facebook/rocksdb/pull/11786, 11782; fixed in 8.5.2). Without
     * range deletions it does not. */
    if (spec->undeleted) rocksdb_readoptions_set_ignore_range_deletions(it->read, 1);
    if (spec->lower.p) rocksdb_readoptions_set_iterate_lower_bound(it->read, rocks_chars(spec->lower), spec->lower.n);
    if (spec->upper.p) rocksdb_readoptions_set_iterate_upper_bound(it->read, rocks_chars(spec->upper), spec->upper.n);
    it->i = rocksdb_create_iterator(kv->db, it->read);
    it->of = kv;
    it->tier = spec->tier;
    atomic_fetch_add_explicit(&kv->iterators, 1, memory_order_relaxed);
    return &it->it;
}

int kv_scan(struct kv *kv, const struct kv_snapshot *at, struct slice from, struct slice to,
            int (*fn)(void *arg, struct slice key, struct slice value, struct err *e), void *arg, struct err *e) {
    struct kv_iter_spec spec = {.tier = ENG_TIER_ANY, .snapshot = at, .lower = from, .upper = to};
    struct kv_iter *it = kv_iter_new(kv, &spec, e);
    if (!it) return -1;
    int got = it->ops->iter_move(it, KV_SEEK, from, e), rc = 0;
    while (got > 0 && !(rc = fn(arg, it->key, it->value, e))) got = it->ops->iter_move(it, KV_NEXT, from, e);
    it->ops->iter_free(it);
    return rc || got < 0 ? -1 : 0;
}
