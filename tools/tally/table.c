#include "tools/tally/table.h"

#include <stdarg.h>

/* Characters, not bytes, of UTF-8. */
static size_t width_of(struct slice s) {
    size_t n = 0;
    for (size_t i = 0; i < s.n; i++) n += (s.p[i] & 0xC0) != 0x80;
    return n;
}

static void widen(struct table *t, size_t column, size_t width) {
    if (width > t->widths[column]) t->widths[column] = width;
}

void table_init(struct table *t, const struct table_column *columns, size_t n) {
    *t = (struct table){.columns = columns, .n_columns = n};
    buf_init(&t->cells, 0);
    for (size_t i = 0; i < n; i++) widen(t, i, strlen(columns[i].title));
}

/* The next cell of a row's text. */
static struct slice next_cell(struct slice *row) {
    const uint8_t *tab = memchr(row->p, '\t', row->n);
    struct slice cell = slice_of(row->p, tab ? (size_t)(tab - row->p) : row->n);
    *row = slice_of(row->p + cell.n + (tab != NULL), row->n - cell.n - (tab != NULL));
    return cell;
}

void table_row(struct table *t, const char *format, ...) {
    char text[4096];
    va_list args;
    va_start(args, format);
    int n = vsnprintf(text, sizeof(text), format, args);
    va_end(args);
    struct slice row = slice_of(text, n < 0 ? 0 : n < (int)sizeof(text) ? (size_t)n : sizeof(text) - 1);
    for (size_t i = 0; i < row.n; i++)
        if (text[i] == '\n' || text[i] == '\r') text[i] = ' ';
    buf_put_slice(&t->cells, row);
    buf_u8(&t->cells, '\n');
    for (size_t i = 0; i < t->n_columns; i++) widen(t, i, width_of(next_cell(&row)));
    t->n_rows++;
}

static void put_cell(const struct table *t, size_t i, struct slice cell, struct buf *out) {
    size_t pad = t->widths[i] - width_of(cell);
    bool last = i + 1 == t->n_columns;
    for (size_t k = 0; t->columns[i].right && k < pad; k++) buf_u8(out, ' ');
    buf_put_slice(out, cell);
    for (size_t k = 0; !t->columns[i].right && !last && k < pad; k++) buf_u8(out, ' ');
    buf_put_str(out, last ? "\n" : "  ");
}

void table_put(const struct table *t, struct buf *out) {
    struct slice rest = buf_slice(&t->cells);
    for (size_t i = 0; i < t->n_columns; i++) put_cell(t, i, slice_str(t->columns[i].title), out);
    for (size_t r = 0; r < t->n_rows; r++) {
        const uint8_t *end = memchr(rest.p, '\n', rest.n);
        struct slice row = slice_of(rest.p, (size_t)(end - rest.p));
        rest = slice_of(end + 1, rest.n - row.n - 1);
        for (size_t i = 0; i < t->n_columns; i++) put_cell(t, i, next_cell(&row), out);
    }
}

void table_print(const struct table *t) {
    struct buf out;
    buf_init(&out, 0);
    table_put(t, &out);
    fwrite(buf_slice(&out).p, 1, out.n, stdout);
    buf_fini(&out);
}

void table_fini(struct table *t) { buf_fini(&t->cells); }
