#include "engine/front/lock_order.h"

#include <assert.h>

bool engi_order_allows(const struct engi_held *held, enum engi_rank rank, uint32_t number) {
    for (uint32_t r = (uint32_t)rank + 1; r < ENGI_RANKS; r++)
        if (held->n[r]) return false;
    return rank == ENGI_RANK_GUARD || !held->n[rank] || number > held->last[rank];
}

void engi_order_add(struct engi_held *held, enum engi_rank rank, uint32_t number) {
    if (!held->n[rank]++ || number > held->last[rank]) held->last[rank] = number;
}

void engi_order_remove(struct engi_held *held, enum engi_rank rank) {
    assert(held->n[rank]);
    held->n[rank]--;
}

#if ENGI_CHECKS_ORDER
static _Thread_local struct engi_held mine;

void engi_order_will_wait(enum engi_rank rank, uint32_t number) {
    assert(engi_order_allows(&mine, rank, number)); /* invariant 10 */
}

void engi_order_holds(enum engi_rank rank, uint32_t number) { engi_order_add(&mine, rank, number); }
void engi_order_leaves(enum engi_rank rank) { engi_order_remove(&mine, rank); }
#endif
