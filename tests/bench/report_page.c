/* The report's page and its Markdown: the same tables, told once as rows of cells, and plots for the page. */
#include <inttypes.h>

#include "tests/bench/report.h"
#include "tools/page/page.h"

enum { CELL = 96 };

/* Where a table goes: rows of cells, the first ones text. */
struct sheet {
    bool html;
    struct buf *out;
};

static void begin_table(const struct sheet *s, const char *title, const char *const *heads, size_t n) {
    buf_printf(s->out, s->html ? "<h2>%s</h2><table><tr>" : "\n### %s\n\n|", title);
    for (size_t i = 0; i < n; i++)
        buf_printf(s->out, s->html ? "<th%s>%s</th>" : "%.0s %s |", i < 2 ? " class=\"l\"" : "", heads[i]);
    buf_put_str(s->out, s->html ? "</tr>\n" : "\n|");
    for (size_t i = 0; i < n && !s->html; i++) buf_put_str(s->out, i < 2 ? "---|" : "---:|");
    if (!s->html) buf_put_str(s->out, "\n");
}

static void put_row(const struct sheet *s, const char (*cells)[CELL], size_t n) {
    buf_put_str(s->out, s->html ? "<tr>" : "|");
    for (size_t i = 0; i < n; i++) {
        if (s->html) {
            buf_printf(s->out, "<td%s>", i < 2 ? " class=\"l\"" : "");
            page_escaped(slice_str(cells[i]), s->out);
            buf_put_str(s->out, "</td>");
        } else {
            buf_printf(s->out, " %s |", cells[i]);
        }
    }
    buf_put_str(s->out, s->html ? "</tr>\n" : "\n");
}

static void end_table(const struct sheet *s) {
    if (s->html) buf_put_str(s->out, "</table>\n");
}

/* The median, and from the least to the most. */
static void put_spread(char cell[CELL], struct spread v) {
    if (v.most <= 0) snprintf(cell, CELL, "-");
    else if (v.median >= 1000) snprintf(cell, CELL, "%.0f (%.0f to %.0f)", v.median, v.least, v.most);
    else snprintf(cell, CELL, "%.3g (%.3g to %.3g)", v.median, v.least, v.most);
}

/* ---- tables ---- */

static void put_workloads(const struct report *r, const struct sheet *s) {
    static const char *const heads[] = {"workload", "server", "CPU µs a request", "requests/s",
                                        "p50 ms",   "p99 ms", "p99.9 ms",         "CPU : loop + RocksDB"};
    static const enum metric metrics[] = {METRIC_CPU_US, METRIC_PER_SECOND, METRIC_P50_MS, METRIC_P99_MS,
                                          METRIC_P999_MS};
    begin_table(s, "Workloads", heads, ARRAY_LEN(heads));
    for (int w = 0; w < WORKLOADS; w++)
        for (int t = 0; t < TARGETS; t++) {
            char cells[ARRAY_LEN(heads)][CELL];
            if (!figure_done(r, (enum workload)w, (enum target)t)) continue;
            snprintf(cells[0], CELL, "%s", workload_rows[w].name);
            snprintf(cells[1], CELL, "%s", target_name(r->options, (enum target)t));
            for (size_t i = 0; i < ARRAY_LEN(metrics); i++)
                put_spread(cells[2 + i], figure_of(r, (enum workload)w, (enum target)t, metrics[i]));
            put_spread(cells[7], t == TALLYD ? figure_of_ceiling(r, (enum workload)w, TALLYD) : (struct spread){0});
            put_row(s, (const char (*)[CELL])cells, ARRAY_LEN(heads));
        }
    end_table(s);
}

static void put_pair(char cell[CELL], int64_t first, int64_t last) {
    if (first < 0) snprintf(cell, CELL, "-");
    else if (first == last) snprintf(cell, CELL, "%" PRId64, first);
    else snprintf(cell, CELL, "%" PRId64 " to %" PRId64, first, last);
}

static void put_growth(const struct report *r, const struct sheet *s) {
    char stored[GROWTH_STEPS][CELL];
    const char *const heads[] = {"what",         "server", stored[0],   stored[1],   stored[2],
                                 "last : first", "bound",  "rows read", "bytes read"};
    for (int step = 0; step < GROWTH_STEPS; step++)
        snprintf(stored[step], CELL, "%" PRIu64 " rows", growth_stored(r->options, step));
    begin_table(s, "Growth: CPU µs a request as more is stored", heads, ARRAY_LEN(heads));
    for (int what = 0; what < GROWTHS; what++)
        for (int i = 0; i < GROWTH_TARGETS; i++) {
            char cells[ARRAY_LEN(heads)][CELL];
            enum growth_target t = (enum growth_target)i;
            const struct growth_cost *c = r->growth[0][t][what];
            if (!figure_grown(r, t, (enum growth)what)) continue;
            snprintf(cells[0], CELL, "%s", growth_rows[what].name);
            snprintf(cells[1], CELL, "%s", figure_grower(r, t));
            for (int step = 0; step < GROWTH_STEPS; step++)
                put_spread(cells[2 + step], figure_growth(r, t, (enum growth)what, step));
            put_spread(cells[5], figure_growth_ratio(r, t, (enum growth)what));
            snprintf(cells[6], CELL, "%s %.3g", growth_rows[what].follows == ALL ? "at least" : "at most",
                     growth_bound((enum growth)what));
            put_pair(cells[7], c[0].rows_read, c[GROWTH_STEPS - 1].rows_read);
            put_pair(cells[8], c[0].bytes_read, c[GROWTH_STEPS - 1].bytes_read);
            put_row(s, (const char (*)[CELL])cells, ARRAY_LEN(heads));
        }
    end_table(s);
}

static void put_promises(const struct report *r, const struct sheet *s) {
    static const char *const heads[] = {"ratio", "", "measured", "at most"};
    begin_table(s, "Ratios", heads, ARRAY_LEN(heads));
    for (int i = 0; i < PROMISES; i++) {
        char cells[ARRAY_LEN(heads)][CELL] = {0};
        struct promise p = figure_promise(r, i);
        if (!p.measured) continue;
        snprintf(cells[0], CELL, "%s", p.what);
        if (p.value.most > 0) put_spread(cells[2], p.value);
        else snprintf(cells[2], CELL, "0");
        snprintf(cells[3], CELL, "%.3g", p.bar);
        put_row(s, (const char (*)[CELL])cells, ARRAY_LEN(heads));
    }
    end_table(s);
}

static void put_intro(const struct report *r, const struct sheet *s) {
    const struct bench_options *o = r->options;
    char machine[512];
    figure_machine(machine, sizeof(machine));
    buf_put_str(s->out, s->html ? "<p>" : "");
    buf_printf(s->out, "%s. ", machine);
    buf_printf(s->out,
               "%u run%s; %u connections x %u in flight, %.3g s of each workload; of several runs a figure is the "
               "median (least to most). ",
               o->runs, o->runs > 1 ? "s" : "", o->connections, o->in_flight, o->seconds);
    if (o->rows)
        buf_printf(s->out, "Large data are %" PRIu64 " rows, huge data %" PRIu64 ". ", o->rows / LOAD_LARGE_SHARE,
                   o->rows);
    buf_printf(s->out, "Start to first answered query %.3f s; idle memory %.1f MiB.%s\n", r->start_seconds,
               (double)r->idle_rss_kib / 1024, s->html ? "</p>" : "");
}

/* ---- plots ---- */

static const char *colour_of(enum target t) {
    static const char *const colours[TARGETS] = {
        [CANNED] = "#bbb",    [ROCKSDB] = "#888",    [DISK] = "#8d6e63",  [SYNCED] = "#bcaaa4",
        [TALLYD] = "#1663a5", [AGAINST] = "#2e7d32", [BESIDE] = "#d2691e"};
    return colours[t];
}

static void plot_workloads(const struct report *r, struct buf *out) {
    struct page_bar bars[WORKLOADS * TARGETS];
    size_t n = 0;
    for (int w = 0; w < WORKLOADS; w++)
        for (int t = 0; t < TARGETS; t++) {
            struct spread v = figure_of(r, (enum workload)w, (enum target)t, METRIC_CPU_US);
            enum { LONG_US = 1000 }; /* a scan's would leave the others no room */
            if (!figure_done(r, (enum workload)w, (enum target)t) || !(v.median > 0) || v.median > LONG_US) continue;
            bars[n++] = (struct page_bar){.group = workload_rows[w].name,
                                          .name = target_name(r->options, (enum target)t),
                                          .colour = colour_of((enum target)t),
                                          .least = v.least,
                                          .value = v.median,
                                          .most = v.most};
        }
    page_bars("CPU of a request", "microseconds of the server; those below a millisecond", bars, n, out);
}

static void plot_growth(const struct report *r, enum growth what, struct buf *out) {
    double x[GROWTH_STEPS + 1] = {0}, y[GROWTH_TARGETS][GROWTH_STEPS + 1];
    struct page_plot p = {.title = growth_rows[what].name,
                          .unit = "CPU microseconds a request",
                          .x_name = "rows stored",
                          .n = GROWTH_STEPS,
                          .x = x};
    for (int step = 0; step < GROWTH_STEPS; step++) x[step] = (double)growth_stored(r->options, step);
    for (int t = 0; t < GROWTH_TARGETS; t++) {
        if (!figure_grown(r, (enum growth_target)t, what)) continue;
        for (int step = 0; step < GROWTH_STEPS; step++)
            y[t][step] = figure_growth(r, (enum growth_target)t, what, step).median;
        p.lines[p.n_lines++] = (struct page_line){figure_grower(r, (enum growth_target)t),
                                                  colour_of(t == GROWTH_OTHER ? BESIDE : TALLYD), y[t]};
    }
    if (p.n_lines) page_plot(&p, out);
}

/* ---- files ---- */

static void put_tables(const struct report *r, const struct sheet *s) {
    put_intro(r, s);
    if (s->html) plot_workloads(r, s->out);
    put_workloads(r, s);
    put_promises(r, s);
    if (!growth_asked(r->options)) return;
    put_growth(r, s);
    for (int what = 0; what < GROWTHS && s->html; what++) plot_growth(r, (enum growth)what, s->out);
}

static int save(const char *dir, const char *name, const struct buf *b) {
    char path[4096];
    struct err e = {0};
    snprintf(path, sizeof(path), "%s/%s", dir, name);
    if (!page_save(path, b, &e)) return 0;
    fprintf(stderr, "%s\n", e.text);
    return -1;
}

static int write_tables(const struct report *r, const char *dir, bool html) {
    struct buf b;
    buf_init(&b, 0);
    if (html) page_open("tally-bench", &b);
    put_tables(r, &(struct sheet){.html = html, .out = &b});
    if (html) page_close(&b);
    int rc = save(dir, html ? "report.html" : "report.md", &b);
    buf_fini(&b);
    return rc;
}

static int write_json(const struct report *r, const char *dir) {
    char path[4096];
    snprintf(path, sizeof(path), "%s/report.json", dir);
    FILE *to = fopen(path, "we");
    if (to) report_json(r, to);
    if (to && !fclose(to)) return 0;
    perror(path);
    return -1;
}

int report_write(const struct report *r, const char *dir) {
    return write_tables(r, dir, true) || write_tables(r, dir, false) || write_json(r, dir) ? -1 : 0;
}
