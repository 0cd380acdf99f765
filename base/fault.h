/* Fault points: a test arms one ("fail the Nth hit"), and the code calls fault_hit at the place
 * that may fail. A point that is not armed costs one relaxed load. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

enum fault_point {
    FAULT_ALLOC,
    FAULT_KV_READ,
    FAULT_KV_WRITE,
    FAULT_KV_BUSY,
    FAULT_KV_SYNC,
    FAULT_KV_COLD /* a read restricted to memory does not find its data there */,
    FAULT_DDL,
    FAULT_POINTS
};

enum { FAULT_ALWAYS = -1 };

/* Makes the nth hit from now fail once (1: the next). FAULT_ALWAYS: every hit fails. 0 if none. */
void fault_arm(enum fault_point point, int64_t nth);
/* How many hits are left until the armed one fails. Tests that count steps arm a distant hit and
 * see how often the point was hit since. */
int64_t fault_left(enum fault_point point);
/* True when this hit must fail. Any thread. */
bool fault_hit(enum fault_point point);
/* Kills the process (SIGKILL) if this hit must fail: for steps that a crash may separate. */
void fault_dies(enum fault_point point);
