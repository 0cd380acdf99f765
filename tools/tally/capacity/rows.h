/* Generates the rows of a table. The rank of the partition and the number of the row in it decide
 * the key, so the same row always has the same key. */
#pragma once

#include "tools/tally/capacity/sample.h"
#include "tools/tally/capacity/workload.h"

struct rows {
    const struct schema_table *t;
    const struct workload_table *input;   /* may be NULL */
    const struct workload_value *values;  /* of a statement; precede the table's; may be NULL */
    uint64_t per_partition;               /* at least 1 */
};

/* Appends the literal of a column in a row; n seeds the columns outside the key. 1: the row has no
 * value there. -1: ERR_CONFIG. */
int rows_value(const struct rows *r, const struct schema_column *c, uint64_t rank, uint64_t row, uint64_t n,
               struct buf *out, struct err *e) MUST_CHECK;
/* Appends the statement that writes a row with all its columns. With row UINT64_MAX it writes the
 * static data alone, and nothing is appended when there is none. */
int rows_insert(const struct rows *r, uint64_t rank, uint64_t row, uint64_t n, struct buf *out,
                struct err *e) MUST_CHECK;
