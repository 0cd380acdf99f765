#include "tests/bench/report.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

static const double slower_than = 1.05;

static double ms(const struct measure *m, double share) { return (double)hist_quantile(&m->r.latency, share) / 1e6; }

static double ratio(double a, double b) { return b > 0 ? a / b : 0; }

static bool done(const struct measure *m) { return m->r.requests > 0; }

/* ---- numbers that are promised ---- */

struct promise {
    const char *what;
    double value, bar; /* value below 0: not measured */
};

enum { PROMISES = 8 };

static const double not_measured = -1;

static double p99_ratio(const struct report *r, enum workload a, enum workload b) {
    const struct measure *x = &r->measures[a][TALLYD], *y = &r->measures[b][TALLYD];
    return done(x) && done(y) ? ratio(ms(x, 0.99), ms(y, 0.99)) : not_measured;
}

static double cpu_ratio(const struct measure *x, const struct measure *y) {
    return done(x) && done(y) ? measure_cpu_ratio(x, y) : not_measured;
}

static double rate_ratio(const struct measure *x, const struct measure *y) { return done(x) && done(y) ? measure_rate_ratio(x, y) : not_measured; }

/* Of the time of all loops. */
static double waited_share(const struct measure *x) { return done(x) ? x->waited / (x->r.seconds * atoi(MEASURE_LOOPS)) : not_measured; }

static void promises(const struct report *r, struct promise out[PROMISES]) {
    struct measure(*m)[TARGETS] = r->measures;
    out[0] = (struct promise){"CPU of a slice of 100 : loop + RocksDB", cpu_ratio(&m[LOAD_SLICE][TALLYD], &m[LOAD_SLICE][ROCKSDB]), 1.5};
    out[1] = (struct promise){"CPU of an insert on 4 loops : on 1", cpu_ratio(&m[LOAD_INSERT4][TALLYD], &m[LOAD_INSERT1][TALLYD]), 1.25};
    out[2] = (struct promise){"p99 of a read beside 50 scanning clients : alone", p99_ratio(r, LOAD_BESIDE, LOAD_ALONE), 3};
    out[3] = (struct promise){"p99 of an insert beside 50 scanning clients : alone", p99_ratio(r, LOAD_INSERT_BESIDE, LOAD_INSERT_ALONE), 3};
    out[4] = (struct promise){"p99 of a condition beside 50 scanning clients : alone", p99_ratio(r, LOAD_LWT_BESIDE, LOAD_LWT_ALONE), 3};
    out[6] = (struct promise){"CPU of a point read, metered and told its charge : not metered", cpu_ratio(&m[LOAD_READ_METERED][TALLYD], &m[LOAD_READ_UNMETERED][TALLYD]), 1.03};
    out[7] = (struct promise){"requests/s of a point read, not metered : metered and told its charge", rate_ratio(&m[LOAD_READ_UNMETERED][TALLYD], &m[LOAD_READ_METERED][TALLYD]), 1.03};
    out[5] = (struct promise){"time that 4 inserting loops wait for rows : all", waited_share(&m[LOAD_INSERT4][TALLYD]), 0.02};
}

/* ---- for people ---- */

static void print_line(const struct report *r, enum workload w, enum target t, const char *name) {
    const struct measure *x = &r->measures[w][t], *least = &r->measures[w][ROCKSDB];
    printf("%-20s %-16s %12.0f %9.3f %9.3f %9.3f", name, target_name(r->options, t), measure_per_second(x), ms(x, 0.5), ms(x, 0.99), ms(x, 0.999));
    if (x->cpu_ns) printf(" %14.2f", measure_cpu_us(x));
    if (x->cpu_ns && done(least)) printf(" %17.2fx", cpu_ratio(x, least));
    printf("\n");
}

static void print_ratios(const struct report *r) {
    unsigned slower = 0, n = 0;
    printf("\n%-20s %14s %14s %14s %14s\n", "tallyd : against", "CPU/request", "requests/s", "p50", "p99");
    for (int w = 0; w < WORKLOADS; w++) {
        const struct measure *x = &r->measures[w][TALLYD], *y = &r->measures[w][AGAINST];
        if (!done(x) || !done(y)) continue;
        double cpu = x->cpu_ns ? cpu_ratio(x, y) : ratio(ms(x, 0.5), ms(y, 0.5));
        n++;
        slower += cpu > slower_than;
        printf("%-20s %13.3fx %13.3fx %13.3fx %13.3fx%s\n", workload_rows[w].name, cpu, measure_rate_ratio(x, y),
               ratio(ms(x, 0.5), ms(y, 0.5)), ratio(ms(x, 0.99), ms(y, 0.99)), cpu > slower_than ? "  slower" : "");
    }
    printf("%u of %u workloads cost more than %.2fx the CPU of %s\n", slower, n, slower_than, r->options->against);
}

void report_table(const struct report *r) {
    const struct bench_options *o = r->options;
    printf("\n%u connections x %u in flight, %.0f s each\n", o->connections, o->in_flight, o->seconds);
    printf("%-20s %-16s %12s %9s %9s %9s %14s %18s\n", "workload", "server", "requests/s", "p50 ms", "p99 ms", "p99.9 ms", "CPU us/request", "CPU : loop+RocksDB");
    for (int w = 0; w < WORKLOADS; w++) {
        const char *name = workload_rows[w].name;
        for (int t = 0; t < TARGETS; t++) {
            if (!done(&r->measures[w][t])) continue;
            print_line(r, (enum workload)w, (enum target)t, name);
            name = "";
        }
    }
    if (o->against) print_ratios(r);
    struct promise p[PROMISES];
    promises(r, p);
    printf("\n");
    for (int i = 0; i < PROMISES; i++)
        if (p[i].value >= 0) printf("%-54s %7.3fx (at most %.2fx)\n", p[i].what, p[i].value, p[i].bar);
    printf("start to first answered query %.3f s; idle memory %.1f MiB\n", r->start_seconds, (double)r->idle_rss_kib / 1024);
}

/* ---- for programs ---- */

static void json_line(const struct report *r, enum workload w, enum target t) {
    const struct measure *x = &r->measures[w][t];
    printf("{\"workload\": \"%s\", \"server\": \"%s\", \"per_second\": %.0f, \"p50_ns\": %" PRIu64 ", \"p99_ns\": %" PRIu64 ", \"p999_ns\": %" PRIu64
           ", \"cpu_us\": %.3f, \"requests\": %" PRIu64 ", \"failed\": %" PRIu64 "}",
           workload_rows[w].name, target_name(r->options, t), measure_per_second(x), hist_quantile(&x->r.latency, 0.5),
           hist_quantile(&x->r.latency, 0.99), hist_quantile(&x->r.latency, 0.999), measure_cpu_us(x), x->r.requests, x->r.failed);
}

void report_json(const struct report *r) {
    const struct bench_options *o = r->options;
    const char *comma = "";
    printf("{\"connections\": %u, \"in_flight\": %u, \"start_seconds\": %.3f, \"idle_rss_kib\": %" PRIu64 ", \"results\": [", o->connections, o->in_flight,
           r->start_seconds, r->idle_rss_kib);
    for (int w = 0; w < WORKLOADS; w++)
        for (int t = 0; t < TARGETS; t++) {
            if (!done(&r->measures[w][t])) continue;
            printf("%s\n  ", comma);
            json_line(r, (enum workload)w, (enum target)t);
            comma = ",";
        }
    struct promise p[PROMISES];
    promises(r, p);
    printf("\n], \"ratios\": [");
    comma = "";
    for (int i = 0; i < PROMISES; i++) {
        if (p[i].value < 0) continue;
        printf("%s\n  {\"what\": \"%s\", \"value\": %.3f, \"at_most\": %.2f}", comma, p[i].what, p[i].value, p[i].bar);
        comma = ",";
    }
    printf("\n]}\n");
}
