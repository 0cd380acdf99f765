#include "engine/fold.h"

#include "engine/store.h"

bool engi_fold_count(struct engi_fold *f, uint64_t hash) {
    _Atomic uint32_t *slot = &f->counts[(hash >> 8) % ENGI_FOLD_SLOTS];
    /* A race loses a count, which only delays a fold. */
    uint32_t tag = (uint32_t)(hash >> 32) & ~255u, old = atomic_load_explicit(slot, memory_order_relaxed);
    uint32_t count = (old & ~255u) == tag ? (old & 255) + 1 : 1;
    bool due = count >= ENGI_FOLD_AFTER;
    atomic_store_explicit(slot, due ? tag : tag | count, memory_order_relaxed);
    return due;
}

void engi_fold_row(struct eng *eng, struct slice key, uint64_t hash) {
    const struct kv_ops *ops = eng->kv->ops;
    struct kv_batch *b = ops->batch_new(eng->kv);
    struct kv_value value;
    struct err e;
    if (!b) return;
    err_clear(&e);
    if (engi_slot_claim_free(&eng->slots, hash)) {
        /* The caller may be a loop, so a row that is on disk only is not folded. */
        if (ops->get(eng->kv, ENG_TIER_CACHE, key, &value, &e) == 1) {
            if (!ops->batch_put(b, key, value.bytes) && !ops->write(eng->kv, b, false, &e))
                engi_count(eng, ENG_STAT_FOLDS);
            ops->release(eng->kv, &value);
        }
        engi_slot_release(&eng->slots, hash);
    }
    ops->batch_free(b);
}
