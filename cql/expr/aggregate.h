/* Aggregate functions on a group of values: over rows for the aggregates of a
 * SELECT, over elements for collection_sum and similar functions.
 *
 * Life: aggregate_find while a statement is compiled; aggregate_init, aggregate_add for each value,
 * aggregate_result, then aggregate_clear for the next group or aggregate_fini.
 */
#pragma once

#include "cql/expr/number.h"

struct aggregate {
    uint64_t n;
    struct buf best;           /* min, max */
    __int128 whole;            /* tinyint to bigint */
    double real, lost, simple; /* float, double: Kahan's sum, its rounding error, and the plain sum */
    bool overflown;            /* the sum of reals is in big */
    struct number big;         /* sum of varint and decimal; average of decimal: the average so far */
};

struct aggregate_op {
    const char *name;
    enum { AGGREGATE_COUNT, AGGREGATE_MIN, AGGREGATE_MAX, AGGREGATE_SUM, AGGREGATE_AVERAGE } kind;
    bool numbers;     /* its argument must be a number */
    bool counts_rows; /* the result is a bigint; with * or a literal as argument it counts every row */
};
/* Returns NULL if no aggregate has this name. */
const struct aggregate_op *aggregate_find(const char *name);

void aggregate_init(struct aggregate *a);
void aggregate_clear(struct aggregate *a);
void aggregate_fini(struct aggregate *a);
/* Skips nulls, and empty values if numbers is set. t: of v; NULL without an argument. */
int aggregate_add(struct aggregate *a, const struct aggregate_op *op, const struct cql_type *t, struct value v,
                  struct err *e) MUST_CHECK;
/* Appends the result, of type t: 0, 1 when it is null (min and max of nothing), -1. */
int aggregate_result(struct aggregate *a, const struct aggregate_op *op, const struct cql_type *t, struct buf *out,
                     struct err *e) MUST_CHECK;

/* n of them, until aggregates_fini. Returns NULL if memory is exhausted. */
struct aggregate *aggregates_new(struct arena *a, uint32_t n) MUST_CHECK;
void aggregates_clear(struct aggregate *all, uint32_t n);
void aggregates_fini(struct aggregate *all, uint32_t n);
