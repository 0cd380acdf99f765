#include "limits/limit_state.h"

enum { OF_COUNTS = 1000, COUNT_STEP = 10, COUNTS = 5, NUMBERS = OF_COUNTS + COUNT_STEP * LIMITS };

/* Values that no run writes: sums with them must not overflow. */
static int64_t bounded(int64_t v) {
    const int64_t most = INT64_C(1) << 60;
    return v > most ? most : v < -most ? -most : v;
}

static uint64_t zigzag(int64_t v) { return (uint64_t)v << 1 ^ (uint64_t)(v >> 63); }
static int64_t unzigzag(uint64_t v) { return (int64_t)(v >> 1 ^ (~(v & 1) + 1)); }

static void counts_to(const struct limit_counts *c, int64_t v[COUNTS]) {
    v[0] = (int64_t)c->refused;
    v[1] = (int64_t)c->shadowed;
    v[2] = c->last_us;
    v[3] = c->last_rate;
    v[4] = c->last_retry_us;
}

static struct limit_counts counts_of(const int64_t v[COUNTS]) {
    return (struct limit_counts){.refused = (uint64_t)v[0],
                                 .shadowed = (uint64_t)v[1],
                                 .last_us = v[2],
                                 .last_rate = v[3],
                                 .last_retry_us = v[4]};
}

void limit_state_put(const struct limit_table *t, struct buf *out) {
    int64_t v[NUMBERS] = {0};
#define LIMIT_STATE(number, field) v[number] = (int64_t)t->field;
#include "limits/limit_state.def"
#undef LIMIT_STATE
    for (int i = 0; i < LIMITS; i++) counts_to(&t->counts[i], &v[OF_COUNTS + COUNT_STEP * i]);
    for (uint64_t i = 0; i < NUMBERS; i++) {
        if (!v[i]) continue;
        buf_uvarint(out, i);
        buf_uvarint(out, zigzag(v[i]));
    }
}

void limit_state_take(struct limit_table *t, struct slice bytes) {
    int64_t v[NUMBERS] = {0};
    struct rd in = rd_of(bytes);
    while (rd_left(&in)) {
        uint64_t number = rd_uvarint(&in), value = rd_uvarint(&in);
        if (!in.bad && number < NUMBERS) v[number] = bounded(unzigzag(value));
    }
#define LIMIT_STATE(number, field) t->field = (__typeof__(t->field))v[number];
#include "limits/limit_state.def"
#undef LIMIT_STATE
    for (int i = 0; i < LIMITS; i++) t->counts[i] = counts_of(&v[OF_COUNTS + COUNT_STEP * i]);
}
