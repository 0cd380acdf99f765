/* The server's write timestamps: microseconds that never repeat, and the finer ticks that order the
 * elements of lists. Private to engine/.
 *
 * A write without a timestamp of its own takes the request's clock reading, or the microsecond
 * after the last one that was given out when that is not later: two writes never tie, and a later
 * one wins. That holds across a restart, too, whatever the machine's clock says then: a commit
 * records a ceiling above everything given out so far, and the next run starts there. The step is
 * short, so that a quick restart does not put the server's timestamps ahead of those that clients
 * send. One per engine; any thread.
 */
#pragma once

#include "engine/horizon.h"

enum { ENGI_CLOCK_STEP = 100000 /* microseconds */ };

struct engi_write_clock {
    _Atomic int64_t last_us;
    _Atomic int64_t last_tick;
    struct engi_horizon horizon;
};

void engi_write_clock_init(struct engi_write_clock *c);
/* The records of the store are loaded; now_us: what the machine's clock says. */
void engi_write_clock_start(struct engi_write_clock *c, int64_t now_us);
/* Above everything given out so far. */
static inline int64_t engi_write_clock_end(const struct engi_write_clock *c) {
    int64_t us = atomic_load_explicit(&c->last_us, memory_order_relaxed),
            tick = atomic_load_explicit(&c->last_tick, memory_order_relaxed) / 10;
    return (us > tick ? us : tick) + 1;
}
