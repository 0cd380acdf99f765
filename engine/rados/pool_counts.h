/* Counts of the operations on a pool, and whether the cluster answers. Any thread. */
#pragma once

#include <stdatomic.h>

#include "engine/engine.h"

enum pool_use { POOL_READS, POOL_WRITES };
enum { POOL_USES = POOL_WRITES + 1 };

struct pool_durations {
    _Atomic uint64_t n[ENG_DURATION_BOUNDS + 1];
    _Atomic uint64_t sum_us;
};

struct pool_counts {
    struct pool_durations durations[POOL_USES];
    _Atomic uint64_t timeouts, conflicts, failures, in_flight;
    /* When the first operation began that was begun after the newest answer; 0 if none was. */
    _Atomic int64_t silent_since_us;
};

/* An operation begins; returns the machine's time. */
int64_t pool_began(struct pool_counts *c) MUST_CHECK;
/* The operation has ended with rc, a result of librados. */
void pool_ended(struct pool_counts *c, enum pool_use use, int64_t began_us, int rc);
/* The figures that the pool counts. */
void pool_figures(const struct pool_counts *c, struct eng_store_figures *out);
/* Since how long operations have been waiting without any answer; 0 for the cluster answers. A
 * store that watches its named records begins an operation every second. */
int64_t pool_silent_us(const struct pool_counts *c);
