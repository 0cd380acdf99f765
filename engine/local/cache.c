#include "engine/local/cache.h"

#include "base/fault.h"
#include "engine/local/table.h"

bool engi_cache_look_begin(struct engi_cache_look *l, struct engi_table *t, const _Atomic uint64_t *guard,
                           uint64_t hash) {
    *l = (struct engi_cache_look){.guard = guard, .hash = hash};
    if (!t || fault_left(FAULT_KV_READ) || fault_left(FAULT_KV_COLD)) return false;
    l->generation = atomic_load_explicit(&t->generation, memory_order_acquire);
    if (engi_table_is_changing(l->generation)) return false;
    l->table = t;
    l->state = atomic_load_explicit(guard, memory_order_acquire);
    l->fills = engi_guard_is_free(l->state);
    return true;
}

bool engi_cache_look_holds(const struct engi_cache_look *l) {
    return atomic_load(l->guard) == l->state &&
           atomic_load_explicit(&l->table->generation, memory_order_acquire) == l->generation;
}
