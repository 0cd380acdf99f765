/* Time comes from a struct clock, so that tests own it. Wall time is CQL's (write timestamps, TTL); monotonic time is for delays. */
#pragma once

#include <stdint.h>

struct clock {
    int64_t (*wall_us)(struct clock *); /* microseconds since 1970 UTC */
    int64_t (*mono_us)(struct clock *); /* microseconds since some fixed moment, never back */
};

/* The machine's clocks. Any thread. */
extern struct clock clock_real;

static inline int64_t clock_wall_us(struct clock *c) { return c->wall_us(c); }
static inline int64_t clock_mono_us(struct clock *c) { return c->mono_us(c); }
