/* Lays out rows as cqlsh does: as a table with names aligned to the left and values to the right,
 * or with EXPAND ON each row as a list of its columns. Widths are columns of a terminal: a wide
 * character takes two.
 *
 * Life: grid_init; for each page grid_begin, cells row by row, grid_put.
 */
#pragma once

#include "base/buf.h"

struct grid {
    uint32_t n_columns, n_rows;
    uint32_t *widths; /* by column: the widest name or cell so far */
    uint32_t n_cells;
    size_t cap_cells;
    uint32_t *ends; /* by cell: its end in text; the names are the first cells */
    struct buf text;
    bool failed; /* out of memory; the grid then puts nothing */
};

void grid_init(struct grid *g);
void grid_fini(struct grid *g);
/* Begins a page without cells; the names of n_columns follow as the first cells. */
void grid_begin(struct grid *g, uint32_t n_columns);
/* Ends a cell: the text appended to g->text since the previous call. */
void grid_cell(struct grid *g);

/* with_header: names and the line below them; without rows an empty line follows. */
void grid_put(const struct grid *g, bool with_header, struct buf *out);
/* before: the number of rows on earlier pages. */
void grid_put_expanded(const struct grid *g, uint64_t before, struct buf *out);

/* The width of a text in columns of a terminal; needs a UTF-8 LC_CTYPE for wide characters. */
uint32_t grid_width(struct slice text);
/* Names side by side in as many columns as fit into 80 characters, down and then across. */
void grid_put_names(const char *const *names, uint32_t n, struct buf *out);
