#include "tests/bench/report.h"

#include <inttypes.h>
#include <stdlib.h>

static const double slower_than = 1.05;

/* ---- for people ---- */

static void print_line(const struct report *r, enum workload w, enum target t, const char *name) {
    struct spread v[METRICS], least = figure_of_ceiling(r, w, t);
    for (int i = 0; i < METRICS; i++) v[i] = figure_of(r, w, t, (enum metric)i);
    printf("%-20s %-16s %12.0f %9.3f %9.3f %9.3f", name, target_name(r->options, t), v[METRIC_PER_SECOND].median,
           v[METRIC_P50_MS].median, v[METRIC_P99_MS].median, v[METRIC_P999_MS].median);
    if (v[METRIC_CPU_US].median > 0) printf(" %14.2f", v[METRIC_CPU_US].median);
    if (v[METRIC_CPU_US].median > 0 && least.median > 0) printf(" %17.2fx", least.median);
    if (v[METRIC_CPU_US].median > 0 && r->options->runs > 1)
        printf("   %.2f to %.2f us", v[METRIC_CPU_US].least, v[METRIC_CPU_US].most);
    printf("\n");
}

/* Two programs, in turns: of the first run. */
static void print_ratios(const struct report *r) {
    unsigned slower = 0, n = 0;
    printf("\n%-20s %14s %14s %14s %14s\n", "tallyd : against", "CPU/request", "requests/s", "p50", "p99");
    for (int w = 0; w < WORKLOADS; w++) {
        const struct measure *x = &r->runs[0][w][TALLYD], *y = &r->runs[0][w][AGAINST];
        if (!x->r.requests || !y->r.requests) continue;
        double p50 = (double)hist_quantile(&x->r.latency, 0.5) / (double)hist_quantile(&y->r.latency, 0.5);
        double p99 = (double)hist_quantile(&x->r.latency, 0.99) / (double)hist_quantile(&y->r.latency, 0.99),
               cpu = x->cpu_ns ? measure_cpu_ratio(x, y) : p50;
        n++;
        slower += cpu > slower_than;
        printf("%-20s %13.3fx %13.3fx %13.3fx %13.3fx%s\n", workload_rows[w].name, cpu, measure_rate_ratio(x, y), p50,
               p99, cpu > slower_than ? "  slower" : "");
    }
    printf("%u of %u workloads cost more than %.2fx the CPU of %s\n", slower, n, slower_than, r->options->against);
}

static void print_growth(const struct report *r) {
    const struct bench_options *o = r->options;
    printf("\nCPU us a request as what is stored grows: %" PRIu64 ", %" PRIu64 " and %" PRIu64 " rows\n",
           growth_stored(o, 0), growth_stored(o, 1), growth_stored(o, 2));
    for (int what = 0; what < GROWTHS; what++)
        for (int t = 0; t < GROWTH_TARGETS; t++) {
            if (!figure_grown(r, (enum growth_target)t, (enum growth)what)) continue;
            printf("%-34s %-12s", t == GROWTH_TALLYD ? growth_rows[what].name : "",
                   figure_grower(r, (enum growth_target)t));
            for (int step = 0; step < GROWTH_STEPS; step++)
                printf(" %10.2f", figure_growth(r, (enum growth_target)t, (enum growth)what, step).median);
            printf(" %8.2fx (at %s %.3gx)%s\n", figure_growth_ratio(r, (enum growth_target)t, (enum growth)what).median,
                   growth_rows[what].follows == ALL ? "least" : "most", growth_bound((enum growth)what),
                   figure_growth_holds(r, (enum growth_target)t, (enum growth)what) ? "" : "  not so");
        }
}

void report_table(const struct report *r) {
    const struct bench_options *o = r->options;
    printf("\n%u connections x %u in flight, %.3g s each\n", o->connections, o->in_flight, o->seconds);
    printf("%-20s %-16s %12s %9s %9s %9s %14s %18s\n", "workload", "server", "requests/s", "p50 ms", "p99 ms",
           "p99.9 ms", "CPU us/request", "CPU : loop+RocksDB");
    for (int w = 0; w < WORKLOADS; w++) {
        const char *name = workload_rows[w].name;
        for (int t = 0; t < TARGETS; t++) {
            if (!figure_done(r, (enum workload)w, (enum target)t)) continue;
            print_line(r, (enum workload)w, (enum target)t, name);
            name = "";
        }
    }
    if (o->against) print_ratios(r);
    if (growth_asked(o)) print_growth(r);
    printf("\n");
    for (int i = 0; i < PROMISES; i++) {
        struct promise p = figure_promise(r, i);
        if (p.measured) printf("%-70s %7.3fx (at most %.2fx)\n", p.what, p.value.median, p.bar);
    }
    printf("start to first answered query %.3f s; idle memory %.1f MiB\n", r->start_seconds,
           (double)r->idle_rss_kib / 1024);
}

/* ---- for programs ---- */

static void json_spread(const char *name, struct spread s, FILE *to) {
    fprintf(to, ", \"%s\": {\"least\": %.4f, \"median\": %.4f, \"most\": %.4f}", name, s.least, s.median, s.most);
}

static void json_line(const struct report *r, enum workload w, enum target t, FILE *to) {
    static const char *const names[METRICS] = {"cpu_us", "per_second", "p50_ms", "p99_ms", "p999_ms"};
    uint64_t requests = 0, failed = 0;
    for (unsigned i = 0; i < r->options->runs; i++) {
        requests += r->runs[i][w][t].r.requests;
        failed += r->runs[i][w][t].r.failed;
    }
    fprintf(to, "{\"workload\": \"%s\", \"server\": \"%s\", \"requests\": %" PRIu64 ", \"failed\": %" PRIu64,
            workload_rows[w].name, target_name(r->options, t), requests, failed);
    for (int i = 0; i < METRICS; i++) json_spread(names[i], figure_of(r, w, t, (enum metric)i), to);
    fprintf(to, "}");
}

static void json_growth(const struct report *r, enum growth_target t, enum growth what, FILE *to) {
    static const char *const follows[] = {[FLAT] = "nothing", [KEPT] = "nothing", [ROW] = "row", [ALL] = "all"};
    fprintf(to, "{\"what\": \"%s\", \"server\": \"%s\", \"follows\": \"%s\", \"steps\": [", growth_rows[what].name,
            figure_grower(r, t), follows[growth_rows[what].follows]);
    for (int step = 0; step < GROWTH_STEPS; step++) {
        const struct growth_cost *c = &r->growth[0][t][what][step];
        fprintf(to, "%s{\"stored\": %" PRIu64 ", \"rows_read\": %" PRId64 ", \"bytes_read\": %" PRId64,
                step ? ", " : "", growth_stored(r->options, step), c->rows_read, c->bytes_read);
        json_spread("cpu_us", figure_growth(r, t, what, step), to);
        fprintf(to, "}");
    }
    fprintf(to, "]");
    json_spread("ratio", figure_growth_ratio(r, t, what), to);
    fprintf(to, ", \"%s\": %.3f, \"holds\": %s}", growth_rows[what].follows == ALL ? "at_least" : "at_most",
            growth_bound(what), figure_growth_holds(r, t, what) ? "true" : "false");
}

void report_json(const struct report *r, FILE *to) {
    const struct bench_options *o = r->options;
    const char *comma = "";
    char machine[512];
    figure_machine(machine, sizeof(machine));
    fprintf(to,
            "{\"machine\": \"%s\", \"connections\": %u, \"in_flight\": %u, \"runs\": %u, \"seconds\": %.3f, "
            "\"start_seconds\": %.3f, \"idle_rss_kib\": %" PRIu64 ", \"results\": [",
            machine, o->connections, o->in_flight, o->runs, o->seconds, r->start_seconds, r->idle_rss_kib);
    for (int w = 0; w < WORKLOADS; w++)
        for (int t = 0; t < TARGETS; t++) {
            if (!figure_done(r, (enum workload)w, (enum target)t)) continue;
            fprintf(to, "%s\n  ", comma);
            json_line(r, (enum workload)w, (enum target)t, to);
            comma = ",";
        }
    fprintf(to, "\n], \"growth\": [");
    comma = "";
    for (int what = 0; what < GROWTHS; what++)
        for (int t = 0; t < GROWTH_TARGETS; t++) {
            if (!figure_grown(r, (enum growth_target)t, (enum growth)what)) continue;
            fprintf(to, "%s\n  ", comma);
            json_growth(r, (enum growth_target)t, (enum growth)what, to);
            comma = ",";
        }
    fprintf(to, "\n], \"ratios\": [");
    comma = "";
    for (int i = 0; i < PROMISES; i++) {
        struct promise p = figure_promise(r, i);
        if (!p.measured) continue;
        fprintf(to, "%s\n  {\"what\": \"%s\", \"at_most\": %.2f", comma, p.what, p.bar);
        json_spread("value", p.value, to);
        fprintf(to, "}");
        comma = ",";
    }
    fprintf(to, "\n]}\n");
}
