/* A list as the operations of one statement see it: the stored list with the statement's earlier
 * operations applied.
 *
 * Life: list_view_open with the row's cells at the first use of a list, list_view_apply for each
 * cell that the statement then writes to it. A statement with one operation on a list uses no view.
 * Everything lives in the request's arena.
 */
#pragma once

#include "engine/engine.h"
#include "system_schema/objects/schema.h"

struct list_view {
    const struct schema_column *column;
    struct eng_cell *cells; /* live, by path */
    uint32_t n, capacity;
    uint32_t seen;          /* how many of the writer's cells were applied */
    uint64_t moved;         /* cells moved by all operations together */
};

int list_view_open(struct list_view *v, const struct schema_column *c, const struct eng_cell *cells, uint32_t n,
                   struct arena *a, struct err *e) MUST_CHECK;
/* A cell of the column. -1 with ERR_INVALID when the operations of the statement move too much. */
int list_view_apply(struct list_view *v, const struct eng_cell *cell, struct arena *a, struct err *e) MUST_CHECK;
