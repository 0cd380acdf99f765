#include "engine/newest.h"

#include "engine/kv.h"

/* [u32 marks][u32 0: no table][u64 horizon]: the largest counts, so that batches may record theirs in any order. */
enum { RECORD_BYTES = 16 };

static void raise(_Atomic int64_t *at, int64_t ts) {
    int64_t seen = atomic_load_explicit(at, memory_order_relaxed);
    while (seen < ts && !atomic_compare_exchange_weak_explicit(at, &seen, ts, memory_order_relaxed, memory_order_relaxed)) {}
}

void engi_newest_init(struct engi_newest *n) {
    n->opened = INT64_MIN;
    atomic_init(&n->horizon, INT64_MIN);
}

bool engi_newest_before(const struct engi_newest *n, uint64_t hash, int64_t ts) {
    return n->opened <= ts && n->opened != INT64_MAX && atomic_load_explicit(&n->slots[hash % ENGI_NEWEST_SLOTS], memory_order_relaxed) < ts;
}

void engi_newest_raise(struct engi_newest *n, uint64_t hash, int64_t ts) { raise(&n->slots[hash % ENGI_NEWEST_SLOTS], ts); }

static void record_key(uint8_t key[RECORD_BYTES], int64_t horizon) {
    store_u32(key, ENGI_TABLE_MARKS);
    store_u32(key + 4, 0);
    store_u64(key + 8, (uint64_t)horizon);
}

int engi_newest_record(struct engi_newest *n, struct kv_batch *b, int64_t ts, int64_t *horizon) {
    uint8_t key[RECORD_BYTES];
    int64_t now = atomic_load(&n->horizon);
    *horizon = now;
    if (ts < now || now == INT64_MAX) return 0;
    *horizon = ts > INT64_MAX - ENGI_HORIZON_STEP ? INT64_MAX : ts + ENGI_HORIZON_STEP;
    if (now != INT64_MIN) {
        record_key(key, now);
        if (b->ops->batch_delete(b, slice_of(key, RECORD_BYTES))) return -1;
    }
    record_key(key, *horizon);
    return b->ops->batch_put(b, slice_of(key, RECORD_BYTES), slice_of("", 0));
}

void engi_newest_recorded(struct engi_newest *n, int64_t horizon) { raise(&n->horizon, horizon); }

bool engi_newest_load(struct engi_newest *n, struct slice key) {
    if (key.n != RECORD_BYTES || load_u32(key.p + 4) != 0) return false;
    int64_t horizon = (int64_t)load_u64(key.p + 8);
    engi_newest_recorded(n, horizon);
    if (horizon > n->opened) n->opened = horizon;
    return true;
}
