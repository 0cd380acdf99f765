/* Small plots for a terminal, and tables whose columns stand below each other. */
#pragma once

#include "base/buf.h"

/* A day: values a second, and under NULL nothing, else a limit of each minute drawn above them. */
void plot_day(struct buf *out, const double *seconds, const int32_t *minutes, const char *what);

enum { GRID_COLUMNS = 16 };
/* Cells as text, row by row; the first row is the head. Numbers stand to the right. */
struct grid {
    struct buf text;           /* cells, each with a NUL behind */
    uint32_t n_columns, n_cells;
};
void grid_init(struct grid *g, uint32_t n_columns);
void grid_cell(struct grid *g, const char *fmt, ...) PRINTF_LIKE(2, 3);
/* Prints it onto out, and frees it. */
void grid_end(struct grid *g, struct buf *out);
