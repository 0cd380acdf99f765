/* The usage of one subject of the ledger (a partition, a statement, a connection, a role): in all,
 * in the last whole second, and in the last whole minute. A few words each. Times come from the
 * caller. */
#pragma once

#include "base/buf.h"

enum usage_figure {
    USAGE_REQUESTS,
    USAGE_READ_HALVES,
    USAGE_WRITE_UNITS,
    USAGE_ENTITIES,
    USAGE_THROTTLES,
    USAGE_FIGURES
};

struct usage_sums {
    uint64_t n[USAGE_FIGURES];
};
static inline void usage_sums_add(struct usage_sums *to, const struct usage_sums *from) {
    for (int i = 0; i < USAGE_FIGURES; i++) to->n[i] += from->n[i];
}

/* The usage of one request, or the sum of a few in a short time. */
struct usage_window {
    uint32_t n[USAGE_FIGURES];
};

/* A request is added to the running second alone. When the second is over, it is added to the other
 * sums. */
struct usage {
    struct usage_sums before; /* the running second */
    uint32_t second, minute;  /* the running ones, since 1970 */
    struct usage_window in_second, last_second;
    struct usage_window in_minute, last_minute; /* in_minute: before the running second */
};

/* Unrolled: every request adds a few times, and a loop costs more than its five additions. */
static inline void usage_window_add(struct usage_window *to, const struct usage_window *from) {
    _Static_assert(USAGE_FIGURES == 5, "each of them is added");
    to->n[0] += from->n[0];
    to->n[1] += from->n[1];
    to->n[2] += from->n[2];
    to->n[3] += from->n[3];
    to->n[4] += from->n[4];
}

/* In all. */
static inline uint64_t usage_all(const struct usage *u, enum usage_figure f) {
    return u->before.n[f] + u->in_second.n[f];
}

void usage_turn(struct usage *u, uint32_t second); /* only for usage_roll */
static inline void usage_roll(struct usage *u, uint32_t second) {
    if (UNLIKELY(u->second != second)) usage_turn(u, second);
}

static inline void usage_add(struct usage *u, uint32_t second, const struct usage_window *what) {
    usage_roll(u, second);
    usage_window_add(&u->in_second, what);
}

/* Adds from to to, both rolled to second, or to a later second that one of them has reached
 * already. */
void usage_merge(struct usage *to, const struct usage *from, uint32_t second);
/* Subtracts usage that was added a moment ago: from the running second and minute, and the part
 * that these do not hold from the second and minute before. */
void usage_reverse(struct usage *u, uint32_t second, const struct usage_sums *what);
static inline void usage_put(const struct usage *u, struct buf *out) {
    for (int i = 0; i < USAGE_FIGURES; i++) buf_uvarint(out, usage_all(u, (enum usage_figure)i));
}
/* Reads the sums that usage_put wrote. */
static inline struct usage_sums usage_take(struct rd *in) {
    struct usage_sums u;
    for (int i = 0; i < USAGE_FIGURES; i++) u.n[i] = rd_uvarint(in);
    return u;
}

/* One write unit weighs as much as this many halves of read units: a storage partition takes 3,000
 * read units or 1,000 write units a second. */
enum { USAGE_WRITE_WEIGHT = 6 };
static inline uint64_t usage_load(uint64_t read_halves, uint64_t write_units) {
    return read_halves + USAGE_WRITE_WEIGHT * write_units;
}

/* ---- roles ---- */

/* The usage of each role's connections: the first LEDGER_ROLES - 1 roles by name, all others
 * together in a last one without a name. Not thread-safe. */
enum { LEDGER_ROLES = 256, LEDGER_ROLE_NAME = 64 };
struct ledger_role {
    char name[LEDGER_ROLE_NAME];
    uint64_t connections; /* open now */
    struct usage usage;   /* of closed connections, too */
};
struct roles {
    uint32_t n;
    struct ledger_role list[LEDGER_ROLES];
};

/* Finds the role of that name, or adds it. */
struct ledger_role *roles_open(struct roles *r, const char *name);

/* Appends the roles as bytes for the ledger's file: names and sums. */
void roles_put(const struct roles *r, struct buf *out);
/* Adds the roles from such bytes. Reading stops at the first damaged role. */
void roles_take(struct roles *r, struct slice bytes);
