/* Rows laid out as cqlsh lays them out: a table as wide as what is in it, names to the left and
 * values to the right, or with EXPAND ON each row as a list of its columns. Widths are those of a
 * terminal: a wide character takes two columns.
 *
 * Life: grid_init; for each page grid_begin, cells row by row, grid_put.
 */
#pragma once

#include "base/buf.h"

struct grid {
    uint32_t n_columns, n_rows;
    uint32_t *widths; /* of names and of the cells so far */
    uint32_t n_cells, cap_cells;
    uint32_t *ends; /* of each name and cell in text */
    struct buf text;
    bool failed; /* out of memory; the grid then puts nothing */
};

void grid_init(struct grid *g);
void grid_fini(struct grid *g);
/* Begins a page without cells; the names of n_columns follow as the first cells. */
void grid_begin(struct grid *g, uint32_t n_columns);
/* The text that was appended to g->text since the last cell is one. */
void grid_cell(struct grid *g);

/* with_header: names and the line below them; without rows an empty line follows. */
void grid_put(const struct grid *g, bool with_header, struct buf *out);
/* before: the number of rows on earlier pages. */
void grid_put_expanded(const struct grid *g, uint64_t before, struct buf *out);

/* The columns of a terminal that a text takes; needs a UTF-8 LC_CTYPE for wide characters. */
uint32_t grid_width(struct slice text);
/* Names side by side in as many columns as fit into 80 characters, down and then across. */
void grid_put_names(const char *const *names, uint32_t n, struct buf *out);
