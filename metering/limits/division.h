/* The division of limits among the servers on one store, by their demand. Pure.
 *
 * Each server reports to the others its demand on each limit, refused requests included. A
 * tenth of the limit is divided equally among the servers that have demand, so that one whose
 * traffic begins or grows gets some at once; the rest in proportion to their demand. Until the others have received
 * its demand, a server takes the equal part.
 *
 *   V2  a server's own demand is the lower one of the two that it reported last. The others have one of
 *       these two. So the fractions add up to the whole limit at most, less what rounding takes, also
 *       while demand changes; servers that begin add a twentieth each at most. When all have each
 *       other's demand, and it does not change, they add up to the whole. No server gets nothing.
 */
#pragma once

#include <stddef.h>

#include "base/buf.h"

/* A fraction of a limit, in these units. 0 means the whole limit, too. */
enum { DIVISION_WHOLE = 1 << 20, DIVISION_EQUAL = DIVISION_WHOLE / 10 };

/* The fraction of a server whose demand is mine, when n other servers have demand, in sum others. */
uint32_t division_fraction(uint64_t mine, uint64_t others, uint32_t n);
/* That fraction of a rate; at least 1. The rate is below 2^42. */
static inline int64_t division_rate(int64_t rate, uint32_t fraction) {
    int64_t part = fraction ? rate * fraction / DIVISION_WHOLE : rate;
    return part < 1 ? 1 : part;
}

/* A server's demand on the limits of a table (object 0: of the account), or of one partition. */
struct limit_demand {
    uint32_t object;
    bool of_partition;
    int64_t token;
    uint64_t read, write;           /* halves and units: half of the last reported value, and the demand since */
    uint64_t read_used, write_used; /* of a table: admitted since its demand is reported */
    uint64_t read_new, write_new;   /* the part of it since the reader's last read; not reported */
};
struct limit_demands {
    size_t n, cap;
    struct limit_demand *items;
};
/* Returns -1 if memory is exhausted. */
int limit_demands_add(struct limit_demands *to, const struct limit_demand *d) MUST_CHECK;
void limit_demands_put(const struct limit_demands *d, struct buf *out);
/* Appends the items of a server. Returns -1 if damaged, or memory is exhausted. */
int limit_demands_take(struct limit_demands *to, struct rd *in) MUST_CHECK;
/* By object, tables before partitions, and token. */
int limit_demand_order(const void *a, const void *b);
