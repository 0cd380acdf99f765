/* Latency histogram: nanoseconds in buckets of at most 1.6 % width, fixed memory, no allocation.
 * One thread. */
#pragma once

#include <stdint.h>

enum { HIST_SUB_BITS = 6, HIST_BUCKETS = 64 << HIST_SUB_BITS };

struct hist {
    uint64_t count, max;
    uint64_t buckets[HIST_BUCKETS];
};

void hist_add(struct hist *h, uint64_t ns);
/* As if all that was added to from had been added to h. */
void hist_merge(struct hist *h, const struct hist *from);
/* The upper edge of the bucket that holds the given share (0.99) of the values, in nanoseconds; 0
 * when empty. */
uint64_t hist_quantile(const struct hist *h, double share);
/* The mean of all values, accurate to a bucket's width; 0 when empty. */
double hist_mean(const struct hist *h);
