#include "engine/local/fold.h"

#include "engine/local/guard.h"
#include "engine/local/rocksdb/kv.h"

bool engi_fold_count(struct engi_fold *f, uint64_t hash) {
    _Atomic uint32_t *guard = &f->counts[(hash >> 8) % ENGI_FOLD_COUNTS];
    /* A race loses a count, which only delays a fold. */
    uint32_t tag = (uint32_t)(hash >> 32) & ~255u, old = atomic_load_explicit(guard, memory_order_relaxed);
    uint32_t count = (old & ~255u) == tag ? (old & 255) + 1 : 1;
    bool due = count >= ENGI_FOLD_AFTER;
    atomic_store_explicit(guard, due ? tag : tag | count, memory_order_relaxed);
    return due;
}

bool engi_fold_row(struct kv *kv, struct engi_guards *guards, struct slice key, uint64_t hash) {
    struct kv_batch *b = kv_batch_new(kv);
    struct kv_value value;
    struct err e;
    bool folded = false;
    if (!b) return false;
    err_clear(&e);
    if (engi_guard_try_exclusive(guards, hash)) {
        /* The caller may be a loop, so a row that is on disk only is not folded. */
        if (kv_get(kv, ENG_TIER_CACHE, key, &value, &e) == 1) {
            kv_batch_put(b, key, value.bytes);
            folded = !kv_write(kv, b, false, &e);
            kv_release(value.handle);
        }
        engi_guard_release(guards, hash);
    }
    kv_batch_free(b);
    return folded;
}
