#include "engine/fold.h"

#include "engine/store.h"

void engi_fold_init(struct engi_fold *f) {
    for (int i = 0; i < ENGI_FOLD_STRIPES; i++) pthread_rwlock_init(&f->stripes[i], NULL);
}

void engi_fold_fini(struct engi_fold *f) {
    for (int i = 0; i < ENGI_FOLD_STRIPES; i++) pthread_rwlock_destroy(&f->stripes[i]);
}

static uint32_t stripe_of(uint64_t hash) { return hash % ENGI_FOLD_STRIPES; }

bool engi_fold_count(struct engi_fold *f, uint64_t hash) {
    _Atomic uint32_t *slot = &f->counts[(hash >> 8) % ENGI_FOLD_SLOTS];
    /* A race loses a count, which only delays a fold. */
    uint32_t tag = (uint32_t)(hash >> 32) & ~255u, old = atomic_load_explicit(slot, memory_order_relaxed);
    uint32_t count = (old & ~255u) == tag ? (old & 255) + 1 : 1;
    bool due = count >= ENGI_FOLD_AFTER;
    atomic_store_explicit(slot, due ? tag : tag | count, memory_order_relaxed);
    return due;
}

void engi_fold_set_add(struct engi_fold_set *set, uint64_t hash, bool alone) {
    set->bits |= 1u << stripe_of(hash);
    if (alone) set->alone |= 1u << stripe_of(hash);
}

/* In ascending order, so that two sets cannot wait for each other. */
void engi_fold_enter(struct engi_fold *f, const struct engi_fold_set *set) {
    for (uint32_t bits = set->bits; bits; bits &= bits - 1) {
        pthread_rwlock_t *stripe = &f->stripes[__builtin_ctz(bits)];
        if (set->alone & bits & -bits) pthread_rwlock_wrlock(stripe);
        else pthread_rwlock_rdlock(stripe);
    }
}

void engi_fold_leave(struct engi_fold *f, const struct engi_fold_set *set) {
    for (uint32_t bits = set->bits; bits; bits &= bits - 1) pthread_rwlock_unlock(&f->stripes[__builtin_ctz(bits)]);
}

void engi_fold_row(struct eng *eng, struct slice key, uint64_t hash) {
    const struct kv_ops *ops = eng->kv->ops;
    pthread_rwlock_t *stripe = &eng->fold.stripes[stripe_of(hash)];
    struct kv_batch *b = ops->batch_new(eng->kv);
    struct kv_value value;
    struct err e;
    if (!b) return;
    err_clear(&e);
    pthread_rwlock_wrlock(stripe);
    /* The writer may be a loop: what is on disk only is left alone. */
    if (ops->get(eng->kv, KV_CACHE_ONLY, key, &value, &e) == 1) {
        if (!ops->batch_put(b, key, value.bytes)) (void)!ops->write(eng->kv, b, &e);
        ops->release(eng->kv, &value);
    }
    pthread_rwlock_unlock(stripe);
    ops->batch_free(b);
}
