#include "engine/front/write_clock.h"

#include "base/log.h"

void engi_write_clock_start(struct engi_write_clock *c, int64_t ceiling, int64_t now_us) {
    atomic_store(&c->last_us, ceiling);
    atomic_store(&c->last_tick, ceiling * 10);
    if (ceiling - now_us > ENGI_CLOCK_STEP)
        log_warn(
            "the clock is %lld s behind the newest write timestamp that was given out; timestamps go on from there",
            (long long)((ceiling - now_us) / 1000000));
}

static int64_t advance(_Atomic int64_t *last, int64_t at_least, int64_t n) {
    int64_t seen = atomic_load_explicit(last, memory_order_relaxed), first;
    do {
        first = at_least > seen ? at_least : seen + 1;
    } while (
        !atomic_compare_exchange_weak_explicit(last, &seen, first + n - 1, memory_order_relaxed, memory_order_relaxed));
    return first;
}

int64_t engi_write_clock_us(struct engi_write_clock *c, int64_t now_us) { return advance(&c->last_us, now_us, 1); }

int64_t engi_write_clock_ticks(struct engi_write_clock *c, int64_t now_us, uint32_t n) {
    return advance(&c->last_tick, now_us * 10, n);
}
