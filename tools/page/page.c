#include "tools/page/page.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

enum { WIDTH = 860, HEIGHT = 220, LEFT = 70, RIGHT = 12, TOP = 14, BOTTOM = 28 };

void page_escaped(struct slice text, struct buf *out) {
    for (size_t i = 0; i < text.n; i++) {
        uint8_t c = text.p[i];
        switch (c) {
        case '<': buf_put_str(out, "&lt;"); break;
        case '>': buf_put_str(out, "&gt;"); break;
        case '&': buf_put_str(out, "&amp;"); break;
        case '"': buf_put_str(out, "&quot;"); break;
        default: buf_u8(out, c < ' ' ? ' ' : c);
        }
    }
}

/* ---- plots ---- */

static double x_at(double x, double most) { return LEFT + x / most * (WIDTH - LEFT - RIGHT); }
static double y_at(double y, double most) { return HEIGHT - BOTTOM - y / most * (HEIGHT - TOP - BOTTOM); }

void page_plot(const struct page_plot *p, struct buf *out) {
    double x_most = p->n ? p->x[p->n - 1] : 1, y_most = 0;
    for (size_t k = 0; k < p->n_lines; k++)
        for (size_t i = 0; i < p->n; i++)
            if (p->lines[k].y[i] > y_most) y_most = p->lines[k].y[i];
    /* the top of the scale: 1, 2 or 5 times a power of ten, at or above */
    double power = y_most > 0 ? pow(10, floor(log10(y_most))) : 1;
    y_most = y_most <= power ? power : y_most <= 2 * power ? 2 * power : y_most <= 5 * power ? 5 * power : 10 * power;
    if (!(x_most > 0)) x_most = 1;
    buf_printf(out, "<h2>%s <small>%s</small></h2><p class=\"key\">", p->title, p->unit);
    for (size_t i = 0; i < p->n_lines; i++)
        buf_printf(out, "<span style=\"color:%s\">&#9632; %s</span> ", p->lines[i].colour, p->lines[i].name);
    buf_printf(out, "</p><svg viewBox=\"0 0 %d %d\" role=\"img\" aria-label=\"%s\">", WIDTH, HEIGHT, p->title);
    for (int i = 0; i <= 4; i++) {
        double y = y_most * i / 4;
        buf_printf(out,
                   "<line x1=\"%d\" x2=\"%d\" y1=\"%.1f\" y2=\"%.1f\" stroke=\"#ddd\"/><text x=\"%d\" y=\"%.1f\" "
                   "text-anchor=\"end\">%.4g</text>",
                   LEFT, WIDTH - RIGHT, y_at(y, y_most), y_at(y, y_most), LEFT - 6, y_at(y, y_most) + 4, y);
    }
    for (int i = 0; i <= 6; i++)
        buf_printf(out, "<text x=\"%.1f\" y=\"%d\" text-anchor=\"middle\">%.3g</text>", x_at(x_most * i / 6, x_most),
                   HEIGHT - BOTTOM + 16, x_most * i / 6);
    buf_printf(out, "<text x=\"%d\" y=\"%d\" text-anchor=\"end\">%s</text>", WIDTH - RIGHT, HEIGHT - 1, p->x_name);
    for (size_t k = 0; k < p->n_lines; k++) {
        buf_printf(out, "<polyline fill=\"none\" stroke-width=\"1.6\" stroke=\"%s\" points=\"", p->lines[k].colour);
        for (size_t i = 0; i < p->n; i++)
            buf_printf(out, "%.1f,%.1f ", x_at(p->x[i], x_most), y_at(p->lines[k].y[i], y_most));
        buf_put_str(out, "\"/>");
    }
    buf_put_str(out, "</svg>\n");
}

/* ---- bars ---- */

enum { BAR = 9, BAR_GAP = 3, GROUP_GAP = 12, BAR_LEFT = 230, BAR_RIGHT = 130 };

static double bar_x(double v, double most) { return BAR_LEFT + v / most * (WIDTH - BAR_LEFT - BAR_RIGHT); }

static bool is_first(const struct page_bar *bars, size_t i) {
    return !i || strcmp(bars[i].group, bars[i - 1].group) != 0;
}

void page_bars(const char *title, const char *unit, const struct page_bar *bars, size_t n, struct buf *out) {
    int height = TOP, y = TOP - BAR - BAR_GAP;
    double most = 0;
    for (size_t i = 0; i < n; i++) {
        if (bars[i].most > most) most = bars[i].most;
        height += BAR + BAR_GAP + (is_first(bars, i) ? GROUP_GAP : 0);
    }
    if (!(most > 0)) most = 1;
    buf_printf(out, "<h2>%s <small>%s</small></h2><svg viewBox=\"0 0 %d %d\" role=\"img\" aria-label=\"%s\">", title,
               unit, WIDTH, height, title);
    for (size_t i = 0; i < n; i++) {
        const struct page_bar *b = &bars[i];
        y += BAR + BAR_GAP + (is_first(bars, i) ? GROUP_GAP : 0);
        if (is_first(bars, i)) {
            buf_printf(out, "<text x=\"%d\" y=\"%d\" text-anchor=\"end\">", BAR_LEFT - 8, y + BAR);
            page_escaped(slice_str(b->group), out);
            buf_put_str(out, "</text>");
        }
        buf_printf(out, "<rect x=\"%d\" y=\"%d\" width=\"%.1f\" height=\"%d\" fill=\"%s\"/>", BAR_LEFT, y,
                   bar_x(b->value, most) - BAR_LEFT, BAR, b->colour);
        buf_printf(out, "<line x1=\"%.1f\" x2=\"%.1f\" y1=\"%d\" y2=\"%d\" stroke=\"#222\"/>", bar_x(b->least, most),
                   bar_x(b->most, most), y + BAR / 2, y + BAR / 2);
        buf_printf(out, "<text x=\"%.1f\" y=\"%d\">%.3g ", bar_x(b->most, most) + 5, y + BAR, b->value);
        page_escaped(slice_str(b->name), out);
        buf_put_str(out, "</text>");
    }
    buf_put_str(out, "</svg>\n");
}

/* ---- the page ---- */

void page_open(const char *title, struct buf *out) {
    buf_put_str(out, "<!DOCTYPE html>\n<html lang=\"en\"><head><meta charset=\"utf-8\"><title>");
    page_escaped(slice_str(title), out);
    buf_put_str(out, "</title><style>body{font:15px/1.45 system-ui,sans-serif;max-width:900px;margin:2em "
                     "auto;padding:0 1em;color:#222}h2{font-size:1.1em;margin:1.6em 0 .2em}small{color:#777;"
                     "font-weight:normal}svg{width:100%;height:auto;font:11px "
                     "system-ui,sans-serif}table{border-collapse:collapse;width:100%}td,th{padding:.25em "
                     ".6em;text-align:right;border-bottom:1px "
                     "solid "
                     "#ddd}.l{text-align:left}.above{color:#b00020;font-weight:bold}.key{margin:0}code{font-size:.9em}<"
                     "/style></head><body>\n<h1>");
    page_escaped(slice_str(title), out);
    buf_put_str(out, "</h1>\n");
}

void page_close(struct buf *out) { buf_put_str(out, "</body></html>\n"); }

int page_save(const char *path, const struct buf *page, struct err *e) {
    FILE *to = fopen(path, "we");
    if (!to) return err_set(e, ERR_CONFIG, "cannot write %s: %s", path, strerror(errno));
    bool bad = buf_failed(page) || fwrite(buf_slice(page).p, 1, page->n, to) != page->n;
    bad = fclose(to) || bad;
    return bad ? err_set(e, ERR_CONFIG, "cannot write %s: %s", path, strerror(errno)) : 0;
}
