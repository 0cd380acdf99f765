/* COUNT, MIN, MAX, SUM and AVG of a run of values: over rows for the aggregates of a SELECT, over elements for collection_sum and its like.
 *
 * Life: aggregate_init, aggregate_add for each value, aggregate_result, then aggregate_clear for the next run or aggregate_fini.
 */
#pragma once

#include "cql/expr/number.h"

enum aggregate_kind { AGGREGATE_COUNT, AGGREGATE_MIN, AGGREGATE_MAX, AGGREGATE_SUM, AGGREGATE_AVG };

struct aggregate {
    uint64_t n;
    struct buf best;           /* MIN, MAX */
    __int128 whole;            /* tinyint to bigint */
    double real, lost, simple; /* float, double: the sum, what rounding took from it, and the sum as it comes */
    bool overflown;            /* the sum of reals is in big */
    struct number big;         /* sum of varint and decimal; AVG of decimal: the average so far */
};

void aggregate_init(struct aggregate *a);
void aggregate_clear(struct aggregate *a);
void aggregate_fini(struct aggregate *a);
/* Nulls are passed over, empty values too where there is nothing to count or compare. t: of v; NULL for COUNT. */
int aggregate_add(struct aggregate *a, enum aggregate_kind kind, const struct cql_type *t, struct value v, struct err *e) MUST_CHECK;
/* Appends the result, of type t (bigint for COUNT): 0, 1 when it is null (MIN and MAX of nothing), -1. */
int aggregate_result(struct aggregate *a, enum aggregate_kind kind, const struct cql_type *t, struct buf *out, struct err *e) MUST_CHECK;
