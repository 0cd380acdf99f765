#include "engine/local/horizon.h"

#include <assert.h>

#include "base/log.h"
#include "engine/kv.h"

/* [u32 marks][u32 0: no table][u64 ceiling][u8 kind]: the largest record counts, so that batches
 * may write theirs in any order. */
enum { RECORD_BYTES = 17 };

void engi_horizon_init(struct engi_horizon *h, enum engi_horizon_kind kind, int64_t step) {
    h->kind = kind;
    h->step = step;
    h->opened = INT64_MIN;
    atomic_init(&h->ceiling, INT64_MIN);
}

static struct slice record(const struct engi_horizon *h, uint8_t key[RECORD_BYTES], int64_t ceiling) {
    store_u32(key, ENGI_TABLE_MARKS);
    store_u32(key + 4, 0);
    store_u64(key + 8, (uint64_t)ceiling);
    key[16] = (uint8_t)h->kind;
    return slice_of(key, RECORD_BYTES);
}

int engi_horizon_record(const struct engi_horizon *h, struct kv_batch *b, int64_t ts, int64_t *ceiling) {
    uint8_t key[RECORD_BYTES];
    int64_t now = atomic_load(&h->ceiling);
    *ceiling = now;
    if (LIKELY(ts < now) || now == INT64_MAX) return 0;
    *ceiling = ts > INT64_MAX - h->step ? INT64_MAX : ts + h->step;
    assert(*ceiling > ts || *ceiling == INT64_MAX); /* invariant 1 */
    if (now != INT64_MIN && b->ops->batch_delete(b, record(h, key, now))) return -1;
    return b->ops->batch_put(b, record(h, key, *ceiling), slice_of("", 0));
}

void engi_horizon_recorded(struct engi_horizon *h, int64_t ceiling) {
    int64_t seen = atomic_load_explicit(&h->ceiling, memory_order_relaxed);
    while (seen < ceiling && !atomic_compare_exchange_weak(&h->ceiling, &seen, ceiling)) {}
}

bool engi_horizon_load(struct engi_horizon *h, struct slice key) {
    if (key.n != RECORD_BYTES || load_u32(key.p + 4) != 0 || key.p[16] != h->kind) return false;
    int64_t ceiling = (int64_t)load_u64(key.p + 8);
    engi_horizon_recorded(h, ceiling);
    if (ceiling > h->opened) h->opened = ceiling;
    return true;
}

/* ---- the write clock ---- */

void engi_write_clock_init(struct engi_write_clock *c) {
    atomic_init(&c->last_us, 0);
    atomic_init(&c->last_tick, 0);
    engi_horizon_init(&c->horizon, ENGI_HORIZON_CLOCK, ENGI_CLOCK_STEP);
}

void engi_write_clock_start(struct engi_write_clock *c, int64_t now_us) {
    int64_t opened = c->horizon.opened;
    if (opened == INT64_MIN) return;
    atomic_store(&c->last_us, opened);
    atomic_store(&c->last_tick, opened * 10);
    if (opened - now_us > ENGI_CLOCK_STEP)
        log_warn(
            "the clock is %lld s behind the newest write timestamp that was given out; timestamps go on from there",
            (long long)((opened - now_us) / 1000000));
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
