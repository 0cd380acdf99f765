/* The report of a stress as a page of HTML (page.h). */
#include <inttypes.h>
#include <math.h>
#include <stdio.h>

#include "tools/page/page.h"
#include "tools/tally/stress/outcome.h"

enum { CURVE = 60 };

/* ---- series ---- */

enum { AT, REQUESTS, THROTTLED, FAILED, P50, P99, READ, WRITE, SERIES };

static void put_series(const struct stress *s, struct buf *out) {
    const struct score *c = &s->score;
    size_t n = c->n_seconds;
    struct buf memory;
    buf_init(&memory, 0);
    double *v = (double *)(void *)buf_reserve(&memory, (n + 1) * SERIES * sizeof(double));
    if (!v) return;
    double *of[SERIES];
    for (int k = 0; k < SERIES; k++) of[k] = v + (size_t)k * (n + 1);
    for (size_t i = 0; i < n; i++) {
        const struct score_second *x = &c->seconds[i];
        const double values[SERIES] = {(double)(i + 1),        (double)x->sums.requests, (double)x->sums.throttled,
                                       (double)x->sums.failed, (double)x->p50_ns / 1e6,  (double)x->p99_ns / 1e6,
                                       x->sums.read_units,     x->sums.write_units};
        for (int k = 0; k < SERIES; k++) of[k][i] = values[k];
    }
    const struct page_plot requests = {.title = "Requests", .unit = "a second", .x_name = "seconds", .n = n,
                                       .x = of[AT], .n_lines = 3,
                                       .lines = {{"answered", "#1663a5", of[REQUESTS]},
                                                 {"throttled", "#d2691e", of[THROTTLED]},
                                                 {"failed", "#b00020", of[FAILED]}}};
    const struct page_plot latency = {.title = "Latency", .unit = "milliseconds", .x_name = "seconds", .n = n,
                                      .x = of[AT], .n_lines = 2,
                                      .lines = {{"p50", "#1663a5", of[P50]}, {"p99", "#d2691e", of[P99]}}};
    const struct page_plot units = {.title = "Units", .unit = "a second", .x_name = "seconds", .n = n, .x = of[AT],
                                    .n_lines = 2,
                                    .lines = {{"read", "#1663a5", of[READ]}, {"write", "#2e7d32", of[WRITE]}}};
    page_plot(&requests, out);
    page_plot(&latency, out);
    if (c->told) page_plot(&units, out);
    buf_fini(&memory);
}

/* ---- tables ---- */

static void put_cell(double value, double bound, bool known, struct buf *out) {
    if (known) buf_printf(out, "<td%s>%.1f</td>", value > bound ? " class=\"above\"" : "", value);
    else buf_put_str(out, "<td>?</td>");
}

static void put_partitions(const struct stress *s, struct buf *out) {
    const struct score_partition *hot[SCORE_HOTTEST];
    const struct outcome_bounds b = outcome_bounds();
    size_t n = score_hottest(&s->score, hot);
    if (!n) return;
    buf_printf(out,
               "<h2>Hottest partitions</h2><p>In their busiest second; a partition is above what one may have at %.0f "
               "entities, %.0f read units or %.0f write units a second.</p>"
               "<table><tr><th>entities</th><th>read units</th><th>write "
               "units</th><th>requests</th><th>throttled</th><th class=\"l\">partition</th></tr>\n",
               b.entities, b.read_units, b.write_units);
    for (size_t i = 0; i < n; i++) {
        buf_put_str(out, "<tr>");
        put_cell(hot[i]->entities_peak, b.entities, true, out);
        put_cell(hot[i]->read_peak, b.read_units, s->score.told, out);
        put_cell(hot[i]->write_peak, b.write_units, s->score.told, out);
        buf_printf(out, "<td>%" PRIu64 "</td><td>%" PRIu64 "</td><td class=\"l\"><code>", hot[i]->sums.requests,
                   hot[i]->sums.throttled);
        page_escaped(slice_str(hot[i]->label), out);
        buf_put_str(out, "</code></td></tr>\n");
    }
    buf_put_str(out, "</table>\n");
}

void outcome_html(const struct stress *s, const char *profile, struct buf *out) {
    const struct score *c = &s->score;
    char title[256];
    snprintf(title, sizeof(title), "tally stress: %s", profile);
    page_open(title, out);
    buf_printf(out, "<p>%u connections x %u in flight, %.1f s, %s loop", s->connections, s->in_flight, s->took,
               s->plan.rate > 0 ? "open" : "closed");
    if (s->plan.rate > 0)
        buf_printf(out, " at %.15g a second; latencies count from when a request was due", s->plan.rate);
    buf_printf(out, ". %" PRIu64 " requests, %" PRIu64 " throttled, %" PRIu64 " retries, ", c->sums.requests,
               c->sums.throttled, c->sums.retries);
    buf_printf(out, "%" PRIu64 " failed, %" PRIu64 " unanswered; ", c->sums.failed, s->unanswered);
    buf_printf(out, "latency p50 %.3f ms, p99 %.3f ms, p99.9 %.3f ms, most %.3f ms.</p>\n",
               (double)hist_quantile(&c->latency, 0.5) / 1e6, (double)hist_quantile(&c->latency, 0.99) / 1e6,
               (double)hist_quantile(&c->latency, 0.999) / 1e6, (double)c->latency.max / 1e6);
    put_series(s, out);
    /* Plots latency over the number of nines of the quantile: 1 is 90 %, 2 is 99 %. */
    double x[CURVE], y[CURVE];
    for (int i = 0; i < CURVE; i++) {
        x[i] = 4.0 * i / (CURVE - 1);
        y[i] = (double)hist_quantile(&s->score.latency, 1 - pow(10, -x[i])) / 1e6;
    }
    const struct page_plot shares = {.title = "Latency by share", .unit = "milliseconds",
                                     .x_name = "nines: 1 is 90 %, 2 is 99 %, 3 is 99.9 %", .n = CURVE, .x = x,
                                     .n_lines = 1, .lines = {{"latency", "#1663a5", y}}};
    page_plot(&shares, out);
    buf_put_str(out, "<h2>Statements</h2><table><tr><th>requests</th><th>throttled</th><th>failed</th><th>units</"
                     "th><th>p50 ms</th><th>p99 ms</th><th class=\"l\">statement</th></tr>\n");
    for (uint32_t i = 0; i < c->n_statements; i++) {
        const struct score_statement *st = &c->statements[i];
        buf_printf(out, "<tr><td>%" PRIu64 "</td><td>%" PRIu64 "</td><td>%" PRIu64 "</td>", st->sums.requests,
                   st->sums.throttled, st->sums.failed);
        if (c->told) buf_printf(out, "<td>%.1f</td>", st->sums.read_units + st->sums.write_units);
        else buf_put_str(out, "<td>?</td>");
        buf_printf(out, "<td>%.3f</td><td>%.3f</td><td class=\"l\"><code>",
                   (double)hist_quantile(&st->latency, 0.5) / 1e6, (double)hist_quantile(&st->latency, 0.99) / 1e6);
        page_escaped(slice_str(s->plan.statements[i].cql), out);
        buf_put_str(out, "</code></td></tr>\n");
    }
    buf_put_str(out, "</table>\n");
    put_partitions(s, out);
    page_close(out);
}
