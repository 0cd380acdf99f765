/* The distributions that generate the values of a stress.
 *
 *   N  fixed(N)                    always N
 *   uniform(A..B)                  each as often as the others
 *   zipf(A..B, S)                  A most often, the k-th as often as k^-S
 *   normal(A..B, MEAN, DEVIATION)  cut at A and B
 *   sequence(A..B)  sequence(A..)  one after the other, and again from A; or on and on
 *   now                            the time at which the request is due, in milliseconds since
 *                                  1970; of a timeuuid likewise
 *   text(N)  text(A..B)  bytes(N)  bytes(A..B)   random values of that many bytes
 *
 * A number is converted to the type of the bind marker: 7, '7', 7.0, a uuid made of it. The same
 * seed gives the same values.
 */
#pragma once

#include "base/buf.h"
#include "base/err.h"
#include "tools/tally/chance.h"
#include "types/type.h"

enum dist_kind { DIST_FIXED, DIST_UNIFORM, DIST_ZIPF, DIST_NORMAL, DIST_SEQUENCE, DIST_NOW, DIST_TEXT, DIST_BYTES };

struct dist {
    enum dist_kind kind;
    int64_t low, high;
    double p, q;  /* zipf: S; normal: mean, deviation */
    double *sums; /* zipf: cumulative share of the first k values */
};

/* The inputs of a sample besides the random numbers. */
struct dist_moment {
    uint64_t sequence; /* the number of the request among those of its statement */
    int64_t wall_ms;
};

/* Returns -1 with ERR_CONFIG. */
int dist_parse(struct slice text, struct dist *out, struct err *e) MUST_CHECK;
void dist_fini(struct dist *d);
/* Draws a number; for text and bytes, the length. */
int64_t dist_sample(const struct dist *d, struct chance *r, const struct dist_moment *m);
/* Appends a [value] of the type. Returns -1 with ERR_CONFIG, the distribution has no values of the
 * type. */
int dist_put(const struct dist *d, const struct cql_type *type, struct chance *r, const struct dist_moment *m,
             struct buf *out, struct err *e) MUST_CHECK;
