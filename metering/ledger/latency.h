/* Counts of latencies by size, from which quantiles are read. Four slots an octave: a quantile is
 * wrong by an eighth at most. */
#pragma once

#include <stdint.h>

enum { LATENCY_SLOTS = 96 /* the last one: 28 seconds and more */ };

struct latencies {
    uint32_t n[LATENCY_SLOTS];
};

/* Below 4 a slot is one microsecond wide, then a quarter of an octave. */
static inline uint32_t latency_slot(uint64_t us) {
    if (us < 4) return (uint32_t)us;
    uint32_t octave = 63 - (uint32_t)__builtin_clzll(us);
    uint32_t slot = (octave - 1) * 4 + ((us >> (octave - 2)) & 3);
    return slot < LATENCY_SLOTS ? slot : LATENCY_SLOTS - 1;
}

static inline void latencies_add(struct latencies *to, const struct latencies *from) {
    for (int i = 0; i < LATENCY_SLOTS; i++) to->n[i] += from->n[i];
}

/* The middle of the slot that holds the quantile q, 0 to 1, in microseconds; 0 if there are no
 * counts. */
double latencies_quantile(const struct latencies *l, double q);
