#include "metering/ledger/latency.h"

#include <math.h>

/* The least latency of a slot. */
static double floor_of(uint32_t slot) { return slot < 4 ? slot : (4 + slot % 4) * ldexp(1, (int)(slot / 4) - 1); }

double latencies_quantile(const struct latencies *l, double q) {
    uint64_t all = 0, below = 0;
    for (uint32_t i = 0; i < LATENCY_SLOTS; i++) all += l->n[i];
    for (uint32_t i = 0; all && i < LATENCY_SLOTS; i++) {
        below += l->n[i];
        if ((double)below >= q * (double)all) return (floor_of(i) + floor_of(i + 1)) / 2;
    }
    return 0;
}
