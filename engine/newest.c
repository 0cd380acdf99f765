#include "engine/newest.h"

void engi_newest_init(struct engi_newest *n) { engi_horizon_init(&n->horizon, ENGI_HORIZON_NEWEST, ENGI_HORIZON_STEP); }

bool engi_newest_before(const struct engi_newest *n, uint64_t hash, int64_t ts) {
    int64_t opened = n->horizon.opened;
    return opened <= ts && opened != INT64_MAX && atomic_load_explicit(&n->slots[hash % ENGI_NEWEST_SLOTS], memory_order_relaxed) < ts;
}

void engi_newest_raise(struct engi_newest *n, uint64_t hash, int64_t ts) {
    _Atomic int64_t *at = &n->slots[hash % ENGI_NEWEST_SLOTS];
    int64_t seen = atomic_load_explicit(at, memory_order_relaxed);
    while (seen < ts && !atomic_compare_exchange_weak_explicit(at, &seen, ts, memory_order_relaxed, memory_order_relaxed)) {}
}
