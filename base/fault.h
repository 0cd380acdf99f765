/* Fault points: a test arms one ("fail the Nth"), the code asks at the place that may fail. Off, it
 * costs one relaxed load. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

enum fault_point {
    FAULT_ALLOC,
    FAULT_KV_READ,
    FAULT_KV_WRITE,
    FAULT_KV_BUSY,
    FAULT_KV_SYNC,
    FAULT_KV_COLD /* a read from memory alone finds that it is not there */,
    FAULT_DDL,
    FAULT_POINTS
};

enum { FAULT_ALWAYS = -1 };

/* The nth hit from now (1 = the next) fails, once; FAULT_ALWAYS: every one; 0 disarms. */
void fault_arm(enum fault_point point, int64_t nth);
/* Hits until the armed one: how often the code came by since, for tests that count steps. */
int64_t fault_left(enum fault_point point);
/* True when this hit must fail. Any thread. */
bool fault_hit(enum fault_point point);
/* The process is killed (SIGKILL) at this hit if it must fail: for steps that a crash may come between. */
void fault_dies(enum fault_point point);
