#include "engine/local/row_cache.h"

#include <assert.h>

#include "base/hot.h"
#include "base/murmur3.h"
#include "engine/local/local.h"

static uint8_t *bytes_of(struct engi_cached *row) { return (uint8_t *)(row + 1); }

static struct slice row_value(struct engi_cached *row) { return slice_of(bytes_of(row) + row->key_n, row->value_n); }

/* The bucket is locked. Returns NULL if it does not have the row. */
static struct engi_cached *find_row(const struct engi_cache_bucket *b, uint64_t hash, struct slice key) {
    for (struct engi_cached *x = b->first; x; x = x->next)
        if (x->hash == hash && x->kind != ENGI_CACHED_RANGE && slice_eq(slice_of(bytes_of(x), x->key_n), key)) return x;
    return NULL;
}

int engi_row_cache_find(struct local *own, struct local_table *t, struct slice key, struct arena *a,
                        struct engi_cache_look *look, struct slice *value) {
    uint64_t hash = murmur3_hash(key);
    struct local_table *of = key.n <= ENGI_ROW_CACHE_KEY_MAX ? t : NULL;
    struct engi_cache_bucket *b = engi_cache_bucket(own->cache, hash);
    if (!engi_cache_look_begin(look, of, &engi_guard(&own->guards, hash)->state, hash) ||
        engi_bucket_lacks(b, hash) || !engi_bucket_try_lock(b))
        return ENGI_ROW_CACHE_MISS;
    struct engi_cached *row = find_row(b, hash, key);
    int got = ENGI_ROW_CACHE_MISS;
    if (row && row->generation == look->generation) { /* invariant 6 (c) */
        *value = slice_of(row->kind == ENGI_CACHED_ROW ? arena_alloc(a, row->value_n) : NULL, row->value_n);
        if (value->p) memcpy((void *)(uintptr_t)value->p, row_value(row).p, value->n);
        /* without memory the read of the store reports it */
        if (value->p || row->kind == ENGI_CACHED_NO_ROW) got = row->kind == ENGI_CACHED_ROW;
        row->used = true;
    }
    engi_bucket_unlock(b);
    look->hit = got != ENGI_ROW_CACHE_MISS;
    if (look->hit) engi_cache_count(own->cache, hash, ENGI_CACHED_ROW, true);
    return got;
}

/* ---- writers ---- */

/* Locks the bucket of a row, for a writer that has taken the row's guard. NULL: the cache cannot
 * have the row. Most rows that are written are not cached: their bucket is only read, so that it
 * stays in every processor's cache.
 *
 * Invariant 6 (a): a thread that is inserting holds the bucket's lock when it looks at the guard.
 * The operations on lock and guard are in one order (seq_cst): either this thread's load
 * of the lock comes first; then the other thread finds the guard taken. Or this thread finds the
 * bucket locked, or unlocked with the entry. */
static struct engi_cache_bucket *lock_bucket(struct local *own, uint64_t hash, struct slice key) {
    assert(!engi_guard_is_free(engi_guard_state(&own->guards, hash))); /* invariant 6 (b) */
    if (!own->cache || key.n > ENGI_ROW_CACHE_KEY_MAX) return NULL;
    struct engi_cache_bucket *b = engi_cache_bucket(own->cache, hash);
    if (LIKELY(engi_bucket_lacks(b, hash))) return NULL;
    engi_bucket_lock(b);
    return b;
}

void engi_row_cache_evict(struct local *own, uint64_t hash, struct slice key) {
    struct engi_cache_bucket *b = lock_bucket(own, hash, key);
    struct engi_cached *row = b ? find_row(b, hash, key) : NULL;
    if (row) engi_bucket_remove(own->cache, b, row);
    if (b) engi_bucket_unlock(b);
}

bool engi_row_cache_evict_copy(struct local *own, struct local_table *t, uint64_t hash, struct slice key,
                               struct buf *out, bool *absent, struct engi_cache_look *look) {
    struct engi_cache_bucket *b = lock_bucket(own, hash, key);
    if (!b) return false;
    const _Atomic uint64_t *guard = &engi_guard(&own->guards, hash)->state;
    uint64_t state = atomic_load_explicit(guard, memory_order_acquire);
    *look = (struct engi_cache_look){.table = t, .guard = guard, .hash = hash};
    look->state = state - state % ENGI_GUARD_TAKEN; /* once all present holders have left */
    if (t) look->generation = atomic_load_explicit(&t->generation, memory_order_acquire);
    struct engi_cached *row = find_row(b, hash, key);
    bool known = row && t && engi_guard_is_alone(state) && row->generation == look->generation;
    if (known) {
        buf_put_slice(out, row_value(row));
        *absent = row->kind == ENGI_CACHED_NO_ROW;
    }
    if (row) engi_bucket_remove(own->cache, b, row);
    engi_bucket_unlock(b);
    return known && !buf_failed(out);
}

/* ---- inserting ---- */

static void insert(struct local *own, const struct engi_cache_look *look, struct slice key, const struct slice *value) {
    struct engi_cache *c = own->cache;
    if (!engi_cache_look_holds(look)) return;
    struct engi_cached *row = engi_cached_new(c, look, value ? ENGI_CACHED_ROW : ENGI_CACHED_NO_ROW,
                                              sizeof(*row) + key.n + (value ? value->n : 0));
    if (!row) return;
    row->key_n = (uint16_t)key.n;
    memcpy(bytes_of(row), key.p, key.n);
    if (value) {
        row->value_n = (uint16_t)value->n;
        memcpy(bytes_of(row) + key.n, value->p, value->n);
    }
    struct engi_cache_bucket *b = engi_cache_bucket(c, look->hash);
    engi_bucket_lock(b);
    /* Invariant 6 (a) and (c): a writer of a row of the guard, or a change of the table, comes
     * after the bucket was unlocked and then evicts the entry; or it comes before the bucket was
     * locked, and the look does not hold. */
    if (engi_cache_look_holds(look)) {
        struct engi_cached *before = find_row(b, look->hash, key); /* of another thread, or not valid any more */
        if (before) engi_bucket_remove(c, b, before);
        engi_bucket_insert(c, b, row);
    } else {
        engi_cached_unref(row);
    }
    engi_bucket_unlock(b);
}

void engi_row_cache_put_back(struct local *own, const struct engi_cache_look *look, struct slice key,
                               struct slice value) {
    if (value.n <= ENGI_ROW_CACHE_VALUE_MAX && !engi_table_is_changing(look->generation))
        insert(own, look, key, &value);
}

void engi_row_cache_fill(struct local *own, const struct engi_cache_look *look, struct slice key,
                         const struct slice *value) {
    if (!look->table || look->hit) return;
    engi_cache_count(own->cache, look->hash, ENGI_CACHED_ROW, false);
    if (look->fills && (!value || value->n <= ENGI_ROW_CACHE_VALUE_MAX) &&
        engi_cache_is_due(own->cache, look->hash, 0, ENG_TIER_ANY))
        insert(own, look, key, value);
}
