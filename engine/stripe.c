#include "engine/stripe.h"

#include <assert.h>

#include "engine/store.h"

void engi_stripes_init(struct engi_stripe *stripes) {
    for (int i = 0; i < ENGI_STRIPES; i++) pthread_mutex_init(&stripes[i].lock, NULL);
}

void engi_stripes_fini(struct engi_stripe *stripes) {
    for (int i = 0; i < ENGI_STRIPES; i++) pthread_mutex_destroy(&stripes[i].lock);
}

static uint32_t stripe(const struct eng_part *part) {
    return (uint32_t)((((uint64_t)part->token ^ part->table) * 0x9e3779b97f4a7c15) >> 54) % ENGI_STRIPES;
}

static void take(struct engi_stripe *s) {
    pthread_mutex_lock(&s->lock);
    atomic_store_explicit(&s->owner, pthread_self(), memory_order_relaxed);
}

static void leave(struct engi_stripe *s) {
    assert(pthread_equal(atomic_load_explicit(&s->owner, memory_order_relaxed), pthread_self()));
    atomic_store_explicit(&s->owner, 0, memory_order_relaxed);
    pthread_mutex_unlock(&s->lock);
}

void eng_lock(struct eng *eng, const struct eng_part *part) { take(&eng->stripes[stripe(part)]); }
void eng_unlock(struct eng *eng, const struct eng_part *part) { leave(&eng->stripes[stripe(part)]); }

bool eng_holds(const struct eng *eng, const struct eng_part *part) {
    return pthread_equal(atomic_load_explicit(&eng->stripes[stripe(part)].owner, memory_order_relaxed), pthread_self());
}

/* Every stripe once and in ascending order, whatever the partitions. */
static void each_stripe(struct eng *eng, const struct eng_part *const *parts, uint32_t n, void (*fn)(struct engi_stripe *)) {
    uint64_t set[ENGI_STRIPES / 64] = {0};
    for (uint32_t i = 0; i < n; i++) set[stripe(parts[i]) / 64] |= 1ull << (stripe(parts[i]) % 64);
    for (uint32_t i = 0; i < ENGI_STRIPES; i++)
        if (set[i / 64] >> (i % 64) & 1) fn(&eng->stripes[i]);
}

void eng_lock_many(struct eng *eng, const struct eng_part *const *parts, uint32_t n) { each_stripe(eng, parts, n, take); }

void eng_unlock_many(struct eng *eng, const struct eng_part *const *parts, uint32_t n) { each_stripe(eng, parts, n, leave); }
