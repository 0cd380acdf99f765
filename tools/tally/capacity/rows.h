/* Rows that a table is taken to hold: by rank of the partition and number of the row in it, so that
 * the same row has the same key whoever asks. */
#pragma once

#include "tools/tally/capacity/sample.h"
#include "tools/tally/capacity/workload.h"

struct rows {
    const struct schema_table *t;
    const struct workload_table *input;   /* may be NULL */
    const struct workload_value *values;  /* of a statement, before those of the table; may be NULL */
    uint64_t per_partition;               /* at least 1 */
};

/* The literal of a column in that row; n decides what is not of the key. 1: the row has none there. -1: ERR_CONFIG. */
int rows_value(const struct rows *r, const struct schema_column *c, uint64_t rank, uint64_t row, uint64_t n,
               struct buf *out, struct err *e) MUST_CHECK;
/* The statement that writes the row with all its columns, or with row UINT64_MAX the static data
 * alone: nothing when there is none. */
int rows_insert(const struct rows *r, uint64_t rank, uint64_t row, uint64_t n, struct buf *out,
                struct err *e) MUST_CHECK;
