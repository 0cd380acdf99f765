/* The server's write clock.
 *
 * It gives out microseconds that never repeat, and the finer ticks that order the elements of
 * lists. A write without its own timestamp takes the request's clock reading, or, when that is
 * not later than the last assigned timestamp, one microsecond more than that one: two writes never
 * tie, and a later one wins. One per engine; any thread.
 *
 * That holds across a restart, too, even if the machine's clock was set back, in a store that
 * records a ceiling above all assigned timestamps with its commits (engine/local/marks.h): the
 * next run starts there. The ceiling's step is short, so that a quick restart does not put the
 * server's timestamps ahead of those that clients send.
 */
#include "base/log.h"
#include "engine/front/eng.h"

void engi_write_clock_start(struct engi_write_clock *c, int64_t ceiling, int64_t now_us) {
    atomic_store(&c->last_us, ceiling);
    atomic_store(&c->last_tick, ceiling * 10);
    if (ceiling - now_us > ENGI_CLOCK_STEP)
        log_warn(
            "the clock is %lld s behind the newest write timestamp that was given out; timestamps continue from there",
            (long long)((ceiling - now_us) / 1000000));
}

int64_t engi_write_clock_end(const struct engi_write_clock *c) {
    int64_t us = atomic_load_explicit(&c->last_us, memory_order_relaxed),
            tick = atomic_load_explicit(&c->last_tick, memory_order_relaxed) / 10;
    return (us > tick ? us : tick) + 1;
}

static int64_t advance(_Atomic int64_t *last, int64_t at_least, int64_t n) {
    int64_t seen = atomic_load_explicit(last, memory_order_relaxed), first;
    do {
        first = at_least > seen ? at_least : seen + 1;
    } while (
        !atomic_compare_exchange_weak_explicit(last, &seen, first + n - 1, memory_order_relaxed, memory_order_relaxed));
    return first;
}

int64_t eng_write_us(struct eng *eng, int64_t now_us) { return advance(&eng->write_clock.last_us, now_us, 1); }

int64_t eng_write_ticks(struct eng *eng, int64_t now_us, uint32_t n) {
    return advance(&eng->write_clock.last_tick, now_us * 10, n);
}
