/* Rows to groups: aggregates over all rows, or GROUP BY over runs of rows with the same leading key
 * columns, or the same value of a function of the last of these.
 *
 * A group is handed on when the first row of the next one came up, which is then pending; a page
 * that ends there gives it back to the source. The operator keeps only the first row of a group:
 * the values that the select list uses, and their timestamps and TTLs where it needs them. So
 * memory does not grow with the rows.
 */
#pragma once

#include "cql/read/access_path.h"

struct row_group {
    struct read_op op;
    struct read_op *below;
    struct read_source *source;
    struct cql_run *r;
    const struct select_plan *plan;
    uint64_t partition_limit;    /* groups wanted of a partition; UINT64_MAX: all */
    struct aggregate *aggregates;
    struct arena keep;           /* of the group's first row: */
    struct value *first, *latched;
    struct value *times;         /* room to compute latched in; nulls, as of no row, until then */
    struct buf key, next_key;    /* values of the columns that it is grouped by, or of the function of the last */
    struct read_batch rows;      /* from below; */
    uint32_t at, most;           /* the current one; how many may be pulled at a time */
    bool open, pending, ended;
};

int row_group_init(struct row_group *g, struct read_op *below, struct read_source *source, struct cql_run *r,
                   const struct select_plan *plan, const struct read_spec *spec) MUST_CHECK;
void row_group_fini(struct row_group *g);
