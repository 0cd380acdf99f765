#include "base/fault.h"

#include <signal.h>
#include <stdatomic.h>

static _Atomic int64_t countdown[FAULT_POINTS];

void fault_arm(enum fault_point point, int64_t nth) { atomic_store(&countdown[point], nth); }

int64_t fault_left(enum fault_point point) { return atomic_load(&countdown[point]); }

bool fault_hit(enum fault_point point) {
    int64_t left = atomic_load_explicit(&countdown[point], memory_order_relaxed);
    if (left <= 0) return left == FAULT_ALWAYS;
    return atomic_fetch_sub(&countdown[point], 1) == 1;
}

void fault_dies(enum fault_point point) {
    if (fault_hit(point)) raise(SIGKILL);
}
