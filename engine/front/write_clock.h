/* The server's write clock. Private to engine/.
 *
 * It gives out microseconds that never repeat, and the finer ticks that order the elements of lists.
 * A write without a timestamp of its own takes the request's clock reading, or, when that is not
 * later than the last assigned timestamp, one microsecond more than that one: two writes never tie,
 * and a later one wins. One per engine; any thread.
 *
 * That holds across a restart, too, even if the machine's clock was set back, in a store that
 * records a ceiling above all assigned timestamps with its commits (engine/local/horizon.h): the next
 * run starts there. The ceiling's step is short, so that a quick restart does not put the server's
 * timestamps ahead of those that clients send.
 */
#pragma once

#include <stdatomic.h>
#include <stdint.h>

enum { ENGI_CLOCK_STEP = 100000 }; /* microseconds */

struct engi_write_clock {
    _Atomic int64_t last_us;
    _Atomic int64_t last_tick;
};

/* Starts the clock at the recorded ceiling. now_us: the machine's clock. */
void engi_write_clock_start(struct engi_write_clock *c, int64_t ceiling, int64_t now_us);
/* eng_write_us and eng_write_ticks. */
int64_t engi_write_clock_us(struct engi_write_clock *c, int64_t now_us);
int64_t engi_write_clock_ticks(struct engi_write_clock *c, int64_t now_us, uint32_t n);
/* A ceiling above all assigned timestamps. */
static inline int64_t engi_write_clock_end(const struct engi_write_clock *c) {
    int64_t us = atomic_load_explicit(&c->last_us, memory_order_relaxed),
            tick = atomic_load_explicit(&c->last_tick, memory_order_relaxed) / 10;
    return (us > tick ? us : tick) + 1;
}
