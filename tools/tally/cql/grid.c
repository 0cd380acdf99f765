#include "tools/tally/cql/grid.h"

#include <stdlib.h>
#include <wchar.h>

#include "base/array.h"

enum { LINE_WIDTH = 80 };

void grid_init(struct grid *g) {
    *g = (struct grid){0};
    buf_init(&g->text, 0);
}

void grid_fini(struct grid *g) {
    free(g->widths);
    free(g->ends);
    buf_fini(&g->text);
}

uint32_t grid_width(struct slice text) {
    mbstate_t state = {0};
    uint32_t width = 0;
    for (size_t i = 0; i < text.n;) {
        wchar_t c;
        size_t n = mbrtowc(&c, (const char *)text.p + i, text.n - i, &state);
        bool bad = n == (size_t)-1 || n == (size_t)-2;
        int w = bad ? 1 : wcwidth(c);
        if (bad) state = (mbstate_t){0};
        width += w > 0 ? (uint32_t)w : 0;
        i += bad || !n ? 1 : n;
    }
    return width;
}

void grid_begin(struct grid *g, uint32_t n_columns) {
    uint32_t *widths = realloc(g->widths, (n_columns + 1) * sizeof(*widths));
    g->n_columns = n_columns;
    g->n_rows = g->n_cells = 0;
    buf_clear(&g->text, SIZE_MAX);
    if (!widths) {
        g->failed = true;
        return;
    }
    memset(widths, 0, (n_columns + 1) * sizeof(*widths));
    g->widths = widths;
}

static struct slice cell(const struct grid *g, uint32_t i) {
    uint32_t from = i ? g->ends[i - 1] : 0;
    return slice_of(g->text.p + from, g->ends[i] - from);
}

void grid_cell(struct grid *g) {
    if (g->failed || buf_failed(&g->text) || array_room(&g->ends, g->n_cells, &g->cap_cells, sizeof(*g->ends))) {
        g->failed = true;
        return;
    }
    uint32_t column = g->n_cells % g->n_columns;
    g->ends[g->n_cells++] = (uint32_t)g->text.n;
    uint32_t width = grid_width(cell(g, g->n_cells - 1));
    if (width > g->widths[column]) g->widths[column] = width;
    g->n_rows = g->n_cells / g->n_columns - 1;
}

static void put_many(struct buf *out, char c, uint32_t n) {
    while (n--) buf_u8(out, (uint8_t)c);
}

void grid_put(const struct grid *g, bool with_header, struct buf *out) {
    if (g->failed || !g->n_columns) return;
    if (with_header) {
        for (uint32_t i = 0; i < g->n_columns; i++) {
            buf_put_str(out, i ? " | " : " ");
            buf_put_slice(out, cell(g, i));
            if (i + 1 < g->n_columns) put_many(out, ' ', g->widths[i] - grid_width(cell(g, i)));
        }
        buf_u8(out, '\n');
        for (uint32_t i = 0; i < g->n_columns; i++) {
            buf_put_str(out, i ? "-+-" : "-");
            put_many(out, '-', g->widths[i]);
        }
        buf_put_str(out, "-\n");
    }
    if (!g->n_rows) buf_u8(out, '\n');
    for (uint32_t i = g->n_columns; i < g->n_cells; i++) {
        uint32_t column = i % g->n_columns;
        buf_put_str(out, column ? " | " : " ");
        put_many(out, ' ', g->widths[column] - grid_width(cell(g, i)));
        buf_put_slice(out, cell(g, i));
        if (column + 1 == g->n_columns) buf_u8(out, '\n');
    }
}

void grid_put_expanded(const struct grid *g, uint64_t before, struct buf *out) {
    uint32_t names = 0, values = 0;
    if (g->failed || !g->n_columns) return;
    for (uint32_t i = 0; i < g->n_cells; i++) {
        uint32_t *most = i < g->n_columns ? &names : &values, width = grid_width(cell(g, i));
        if (width > *most) *most = width;
    }
    for (uint32_t i = g->n_columns; i < g->n_cells; i++) {
        uint32_t column = i % g->n_columns;
        if (!column) {
            buf_printf(out, "@ Row %llu\n-", (unsigned long long)(before + i / g->n_columns));
            put_many(out, '-', names);
            buf_put_str(out, "-+-");
            put_many(out, '-', values);
            buf_put_str(out, "-\n");
        }
        buf_u8(out, ' ');
        buf_put_slice(out, cell(g, column));
        put_many(out, ' ', names - grid_width(cell(g, column)));
        buf_put_str(out, " | ");
        buf_put_slice(out, cell(g, i));
        buf_put_str(out, column + 1 == g->n_columns ? "\n\n" : "\n");
    }
}

/* The width of a column of names when the names are laid out in the given number of rows. */
static uint32_t names_width(const char *const *names, uint32_t n, uint32_t rows, uint32_t column) {
    uint32_t most = 0;
    for (uint32_t i = column * rows; i < n && i < (column + 1) * rows; i++) {
        uint32_t width = grid_width(slice_str(names[i]));
        if (width > most) most = width;
    }
    return most;
}

void grid_put_names(const char *const *names, uint32_t n, struct buf *out) {
    uint32_t rows = 1;
    for (;; rows++) {
        uint32_t total = 0;
        for (uint32_t c = 0; c * rows < n; c++) total += names_width(names, n, rows, c) + (c ? 2 : 0);
        if (total < LINE_WIDTH || rows >= n) break;
    }
    for (uint32_t r = 0; r < rows && r < n; r++) {
        for (uint32_t i = r; i < n; i += rows) {
            buf_put_str(out, names[i]);
            if (i + rows < n)
                put_many(out, ' ', names_width(names, n, rows, i / rows) - grid_width(slice_str(names[i])) + 2);
        }
        buf_u8(out, '\n');
    }
}
