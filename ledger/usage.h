/* What a subject of the ledger (a partition, a statement, a connection, a role) has used: in all, and in the last whole second and the last whole minute. A few
 * words each. Times come from the caller. */
#pragma once

#include "base/buf.h"

enum usage_figure { USAGE_REQUESTS, USAGE_READ_HALVES, USAGE_WRITE_UNITS, USAGE_ENTITIES, USAGE_THROTTLES, USAGE_FIGURES };

/* One request, or the sum of some. */
struct usage_sums {
    uint64_t n[USAGE_FIGURES];
};
static inline void usage_sums_add(struct usage_sums *to, const struct usage_sums *from) {
    for (int i = 0; i < USAGE_FIGURES; i++) to->n[i] += from->n[i];
}
static inline void usage_put(const struct usage_sums *u, struct buf *out) {
    for (int i = 0; i < USAGE_FIGURES; i++) buf_uvarint(out, u->n[i]);
}
static inline struct usage_sums usage_take(struct rd *in) {
    struct usage_sums u;
    for (int i = 0; i < USAGE_FIGURES; i++) u.n[i] = rd_uvarint(in);
    return u;
}

struct usage_window {
    uint32_t n[USAGE_FIGURES];
};

struct usage {
    struct usage_sums all;
    uint32_t second, minute; /* of the running counts, since 1970 */
    struct usage_window in_second, last_second, in_minute, last_minute;
};

static inline void usage_roll(struct usage *u, uint32_t second) {
    if (u->second == second) return;
    u->last_second = u->second + 1 == second ? u->in_second : (struct usage_window){0};
    u->in_second = (struct usage_window){0};
    u->second = second;
    uint32_t minute = second / 60;
    if (u->minute == minute) return;
    u->last_minute = u->minute + 1 == minute ? u->in_minute : (struct usage_window){0};
    u->in_minute = (struct usage_window){0};
    u->minute = minute;
}

static inline void usage_add(struct usage *u, uint32_t second, const struct usage_sums *what) {
    usage_roll(u, second);
    for (int i = 0; i < USAGE_FIGURES; i++) {
        u->all.n[i] += what->n[i];
        u->in_second.n[i] += (uint32_t)what->n[i];
        u->in_minute.n[i] += (uint32_t)what->n[i];
    }
}

static inline uint64_t usage_lessen(uint64_t *n, uint64_t by) {
    uint64_t taken = by < *n ? by : *n;
    *n -= taken;
    return by - taken;
}
static inline uint64_t usage_window_lessen(uint32_t *n, uint64_t by) {
    uint64_t left = *n, rest = usage_lessen(&left, by);
    *n = (uint32_t)left;
    return rest;
}
/* Takes back what was added a moment ago: from the running second and minute, and, what they do not hold, from those before. */
static inline void usage_take_back(struct usage *u, uint32_t second, const struct usage_sums *what) {
    usage_roll(u, u->second > second ? u->second : second);
    for (int i = 0; i < USAGE_FIGURES; i++) {
        (void)usage_lessen(&u->all.n[i], what->n[i]);
        (void)usage_window_lessen(&u->last_second.n[i], usage_window_lessen(&u->in_second.n[i], what->n[i]));
        (void)usage_window_lessen(&u->last_minute.n[i], usage_window_lessen(&u->in_minute.n[i], what->n[i]));
    }
}

/* Those of from join those of to, at that second, or later when one has seen a later one. */
static inline void usage_merge(struct usage *to, const struct usage *from, uint32_t second) {
    struct usage f = *from;
    if (f.second > second) second = f.second;
    if (to->second > second) second = to->second;
    usage_roll(&f, second);
    usage_roll(to, second);
    for (int i = 0; i < USAGE_FIGURES; i++) {
        to->all.n[i] += f.all.n[i];
        to->in_second.n[i] += f.in_second.n[i];
        to->last_second.n[i] += f.last_second.n[i];
        to->in_minute.n[i] += f.in_minute.n[i];
        to->last_minute.n[i] += f.last_minute.n[i];
    }
}

/* One write unit weighs as much as this many halves of read units: a storage partition takes 3,000 read units or 1,000 write units a second. */
enum { USAGE_WRITE_WEIGHT = 6 };
static inline uint64_t usage_load(uint64_t read_halves, uint64_t write_units) { return read_halves + USAGE_WRITE_WEIGHT * write_units; }
