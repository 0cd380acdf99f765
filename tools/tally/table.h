/* A text table: columns as wide as their widest cell, numbers aligned to the right. Rows are kept
 * until the table is printed. */
#pragma once

#include <stdio.h>

#include "base/buf.h"

enum { TABLE_COLUMNS = 16 };

struct table_column {
    const char *title;
    bool right;
};

struct table {
    const struct table_column *columns;
    size_t n_columns, n_rows;
    size_t widths[TABLE_COLUMNS];
    struct buf cells; /* each ends with a tab; a row with a newline */
};

/* columns must outlive it. */
void table_init(struct table *t, const struct table_column *columns, size_t n);
/* Adds a row; tabs separate the cells of the formatted text. */
void table_row(struct table *t, const char *format, ...) PRINTF_LIKE(2, 3);
/* Prints to stdout, with a line of titles. */
void table_print(const struct table *t);
void table_put(const struct table *t, struct buf *out);
void table_fini(struct table *t);
