/* A list as the operations of one statement see it: what is stored, and what the operations before
 * did to it.
 *
 * Life: list_view_open with the row's cells when a list is first looked at, list_view_apply for
 * each cell that the statement then writes to it. Where a statement has one operation on a list,
 * there is none. Everything lives in the request's arena.
 */
#pragma once

#include "engine/engine.h"
#include "system_schema/schema.h"

struct list_view {
    const struct schema_column *column;
    struct eng_cell *cells; /* live, by path */
    uint32_t n, capacity;
    uint32_t seen;          /* cells of the writer that are in it */
    uint64_t moved;         /* cells, for all operations together */
};

int list_view_open(struct list_view *v, const struct schema_column *c, const struct eng_cell *cells, uint32_t n,
                   struct arena *a, struct err *e) MUST_CHECK;
/* A cell of the column. -1 with ERR_INVALID when the operations of the statement move too much. */
int list_view_apply(struct list_view *v, const struct eng_cell *cell, struct arena *a, struct err *e) MUST_CHECK;
