/* ORDER BY over several partitions: takes all rows of the page, sorts them by the columns named,
 * and hands them on. Rows that are equal there stay in the order they came in; a row of static
 * values only has no clustering key and comes before all others, or last in reverse. The memory for
 * the rows is bounded; a statement that would need more fails.
 */
#pragma once

#include "cql/read/read.h"

struct select_plan;
struct sorted_row;

struct row_order {
    struct read_op op;
    struct read_op *below;
    struct cql_run *r;
    const struct select_plan *plan;
    struct arena keep;
    struct sorted_row *rows;
    size_t n, cap, at;
    bool sorted;
};

void row_order_init(struct row_order *o, struct read_op *below, struct cql_run *r, const struct select_plan *plan);
void row_order_fini(struct row_order *o);
