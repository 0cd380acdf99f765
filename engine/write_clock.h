/* The server's write timestamps: microseconds that never repeat, and the finer ticks that order the elements of lists.
 *
 * A write without a timestamp of its own takes the request's clock reading, or the microsecond after the last one that was given
 * out when that is not later: two writes never tie, and a later one wins. One per database; any thread.
 */
#pragma once

#include <stdatomic.h>
#include <stdint.h>

struct write_clock {
    _Atomic int64_t last_us;
    _Atomic int64_t last_tick;
};

/* Zero-filled is ready for use. */
int64_t write_clock_us(struct write_clock *c, int64_t now_us);
/* The first of n successive ticks of 100 ns since 1970, all later than any before. */
int64_t write_clock_ticks(struct write_clock *c, int64_t now_us, uint32_t n);
