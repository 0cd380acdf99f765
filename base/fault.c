#include "base/fault.h"

#include <signal.h>
#include <stdatomic.h>

static _Atomic int64_t countdown[FAULT_POINTS];

void fault_arm(enum fault_point point, int64_t nth) { atomic_store(&countdown[point], nth); }

int64_t fault_left(enum fault_point point) { return atomic_load(&countdown[point]); }

bool fault_hit(enum fault_point point) {
    int64_t left = atomic_load_explicit(&countdown[point], memory_order_relaxed);
    do /* never below 0, which would mean FAULT_ALWAYS: several threads may reach the point */
        if (left <= 0) return left == FAULT_ALWAYS;
    while (!atomic_compare_exchange_weak(&countdown[point], &left, left - 1));
    return left == 1;
}

void fault_dies(enum fault_point point) {
    if (fault_hit(point)) raise(SIGKILL);
}
