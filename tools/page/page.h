/* A report as one self-contained page of HTML, for tally stress and tally-bench. Plots and bars are
 * inline SVG; the page has no script and fetches nothing.
 *
 * Every function appends to a buffer: page_open first, page_close last, and the caller's own tables
 * in between. buf_failed returns whether memory ran out.
 */
#pragma once

#include "base/buf.h"
#include "base/err.h"

/* Begins the page; the title is also its heading. */
void page_open(const char *title, struct buf *out);
void page_close(struct buf *out);
/* Appends text with the characters of markup escaped, of HTML and of XML; control characters become
 * spaces. */
void page_escaped(struct slice text, struct buf *out);
/* Writes the page to a file, replacing it. */
int page_save(const char *path, const struct buf *page, struct err *e) MUST_CHECK;

struct page_line {
    const char *name, *colour;
    const double *y;
};

/* Up to three lines over x, which ascends from 0. */
struct page_plot {
    const char *title, *unit, *x_name;
    size_t n;
    const double *x;
    size_t n_lines;
    struct page_line lines[3];
};
void page_plot(const struct page_plot *p, struct buf *out);

/* Horizontal bars in groups, each with a line from the least to the greatest measurement. Bars of a
 * group are adjacent in the array. */
struct page_bar {
    const char *group, *name, *colour;
    double least, value, most;
};
void page_bars(const char *title, const char *unit, const struct page_bar *bars, size_t n, struct buf *out);
