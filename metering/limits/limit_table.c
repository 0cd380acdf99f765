#include "metering/limits/limit_table.h"

enum { OF_COUNTS = 1000, COUNT_STEP = 10, NUMBERS = OF_COUNTS + COUNT_STEP * LIMITS };

void limit_state_put(const struct limit_table *t, struct buf *out) {
    int64_t v[NUMBERS] = {0};
#define LIMIT_STATE(number, field) v[number] = (int64_t)t->field;
#include "metering/limits/limit_state.def"
#undef LIMIT_STATE
    for (int i = 0; i < LIMITS; i++) {
        const struct limit_counts *c = &t->counts[i];
        int64_t *at = &v[OF_COUNTS + COUNT_STEP * i];
        at[0] = (int64_t)c->refused;
        at[1] = (int64_t)c->shadowed;
        at[2] = c->last_us;
        at[3] = c->last_rate;
        at[4] = c->last_retry_us;
    }
    for (uint64_t i = 0; i < NUMBERS; i++) {
        if (!v[i]) continue;
        buf_uvarint(out, i);
        buf_uvarint(out, (uint64_t)v[i] << 1 ^ (uint64_t)(v[i] >> 63)); /* zig-zag */
    }
}

void limit_state_take(struct limit_table *t, struct slice bytes) {
    const int64_t most = INT64_C(1) << 60; /* no server writes larger values, and sums with them must not overflow */
    int64_t v[NUMBERS] = {0};
    struct rd in = rd_of(bytes);
    while (rd_left(&in)) {
        uint64_t number = rd_uvarint(&in), value = rd_uvarint(&in);
        int64_t n = (int64_t)(value >> 1 ^ (~(value & 1) + 1)); /* zig-zag */
        if (!in.bad && number < NUMBERS) v[number] = n > most ? most : n < -most ? -most : n;
    }
#define LIMIT_STATE(number, field) t->field = (__typeof__(t->field))v[number];
#include "metering/limits/limit_state.def"
#undef LIMIT_STATE
    for (int i = 0; i < LIMITS; i++) {
        const int64_t *at = &v[OF_COUNTS + COUNT_STEP * i];
        t->counts[i] = (struct limit_counts){.refused = (uint64_t)at[0],
                                             .shadowed = (uint64_t)at[1],
                                             .last_us = at[2],
                                             .last_rate = at[3],
                                             .last_retry_us = at[4]};
    }
}
