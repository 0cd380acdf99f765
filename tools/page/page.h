/* A report as one page of HTML: tables that its writer puts, plots and bars as inline SVG; no
 * script, nothing that is fetched. Of tally stress and tally-bench.
 *
 * Everything is appended to a buffer, page_open first and page_close last; what fails shows in the
 * buffer.
 */
#pragma once

#include "base/buf.h"
#include "base/err.h"

/* The title is the heading, too. */
void page_open(const char *title, struct buf *out);
void page_close(struct buf *out);
/* Text in which nothing is markup. */
void page_escaped(const char *text, struct buf *out);
/* Written to a file, which is made anew. */
int page_save(const char *path, const struct buf *page, struct err *e) MUST_CHECK;

struct page_line {
    const char *name, *colour;
    const double *y;
};

/* Lines over x, which ascends from 0. */
struct page_plot {
    const char *title, *unit, *x_name;
    size_t n;
    const double *x;
    size_t n_lines;
    struct page_line lines[3];
};
void page_plot(const struct page_plot *p, struct buf *out);

/* Bars in groups, one below the other, each with a line from the least to the most that was
 * measured. Those of a group stand together. */
struct page_bar {
    const char *group, *name, *colour;
    double least, value, most;
};
void page_bars(const char *title, const char *unit, const struct page_bar *bars, size_t n, struct buf *out);
