/* tally-bench: what a request costs the server, beside what it would cost at least.
 *
 * One run measures tallyd (and, when asked, a Cassandra or any other server of the protocol) and its two ceilings on this
 * machine: the same loop answering a canned response, and that loop with RocksDB doing the same work. Prints a table, or JSON.
 */
#include <getopt.h>
#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>

#include "tests/bench/ceiling.h"
#include "tests/bench/load.h"
#include "tests/bench/proc.h"

struct bench_options {
    const char *tallyd, *host, *name, *workload;
    uint16_t port;
    pid_t pid;
    unsigned connections, in_flight;
    double seconds;
    bool json;
};

enum target { CANNED, ROCKSDB, TALLYD, OTHER, TARGETS };

/* One line of the table. */
struct line {
    const char *what;
    enum workload load;
    bool fsync;
};

static const struct line lines[] = {
    {.what = "point read", .load = LOAD_READ},
    {.what = "insert", .load = LOAD_INSERT},
    {.what = "durable insert", .load = LOAD_INSERT, .fsync = true},
    {.what = "slice of 100", .load = LOAD_SLICE},
    {.what = "mixed", .load = LOAD_MIXED},
};

struct measure {
    bool done;
    double per_second, cpu_us;
    uint64_t p50, p99, p999, failed;
};

static const char *target_name(const struct bench_options *o, enum target t) {
    return t == CANNED ? "loop, canned" : t == ROCKSDB ? "loop + RocksDB" : t == TALLYD ? "tallyd" : o->name;
}

/* Whether the line is asked for, and has something to run at that durability. */
static bool runs(const struct bench_options *o, const struct line *line, bool fsync, bool any) {
    return (any || line->fsync == fsync) && (!o->workload || strcmp(o->workload, line->what) == 0);
}

static bool any_runs(const struct bench_options *o, bool fsync, bool any) {
    for (size_t i = 0; i < ARRAY_LEN(lines); i++)
        if (runs(o, &lines[i], fsync, any)) return true;
    return false;
}

static void progress(const struct bench_options *o, enum target t, const char *what) {
    fprintf(stderr, "  %-16s %s\n", target_name(o, t), what);
}

static struct measure measure(const struct bench_options *o, struct load *l, pid_t pid, enum workload w) {
    struct load_result *r = calloc(1, sizeof(*r));
    if (!r) exit(1);
    load_run(l, w, o->seconds / 5, r); /* warm up */
    uint64_t cpu = pid ? proc_cpu_ns(pid) : 0;
    load_run(l, w, o->seconds, r);
    cpu = pid ? proc_cpu_ns(pid) - cpu : 0;
    if (r->failed) fprintf(stderr, "    %" PRIu64 " of %" PRIu64 " failed: %s\n", r->failed, r->requests, r->first_error);
    struct measure m = {
        .done = true,
        .per_second = (double)r->requests / r->seconds,
        .cpu_us = (double)cpu / 1e3 / (double)r->requests,
        .p50 = hist_quantile(&r->latency, 0.5),
        .p99 = hist_quantile(&r->latency, 0.99),
        .p999 = hist_quantile(&r->latency, 0.999),
        .failed = r->failed,
    };
    free(r);
    return m;
}

/* Runs the lines of one durability on one running server. */
static int run_lines(const struct bench_options *o, enum target t, const struct proc *p, bool fsync, bool any, struct measure out[][TARGETS]) {
    struct load *l = load_open(p->host, p->port, o->connections, o->in_flight, t >= TALLYD);
    if (!l) return -1;
    progress(o, t, "writing rows");
    int rc = t == CANNED ? 0 : load_rows(l);
    for (size_t i = 0; rc == 0 && i < ARRAY_LEN(lines); i++) {
        if (!runs(o, &lines[i], fsync, any)) continue;
        progress(o, t, lines[i].what);
        out[i][t] = measure(o, l, p->pid, lines[i].load);
        if (out[i][t].failed) rc = -1;
    }
    load_close(l);
    return rc;
}

static int start(const struct bench_options *o, enum target t, bool fsync, struct proc *p) {
    struct ceiling_options c = {.rocksdb = t == ROCKSDB, .fsync = fsync};
    if (t == TALLYD) return proc_start_tallyd(p, o->tallyd, fsync ? "fsync" : "periodic");
    return proc_start_child(p, ceiling_main, &c);
}

static int run_target(const struct bench_options *o, enum target t, struct measure out[][TARGETS]) {
    if (t == OTHER) {
        struct proc p = {.pid = o->pid, .port = o->port};
        snprintf(p.host, sizeof(p.host), "%s", o->host);
        return run_lines(o, t, &p, false, true, out);
    }
    for (int fsync = 0; fsync <= 1; fsync++) {
        struct proc p = {0};
        bool any = t == CANNED; /* nothing to sync: one run has every line */
        if ((any && fsync) || !any_runs(o, fsync, any)) continue;
        if (start(o, t, fsync, &p)) return -1;
        int rc = run_lines(o, t, &p, fsync, any, out);
        proc_stop(&p);
        if (rc) return rc;
    }
    return 0;
}

/* Start to first answered query, and memory before any load. */
static int measure_start(const struct bench_options *o, double *seconds, uint64_t *rss) {
    struct proc p = {0};
    double t0 = now_seconds();
    if (proc_start_tallyd(&p, o->tallyd, "fsync")) return -1;
    struct load *l = load_open(p.host, p.port, 1, 1, true);
    *seconds = now_seconds() - t0;
    *rss = proc_rss_kib(p.pid);
    if (l) load_close(l);
    proc_stop(&p);
    return l ? 0 : -1;
}

static void print_table(const struct bench_options *o, struct measure m[][TARGETS]) {
    printf("\n%u connections x %u in flight, %.0f s each\n", o->connections, o->in_flight, o->seconds);
    printf("%-16s %-16s %12s %9s %9s %9s %14s %18s\n", "workload", "server", "requests/s", "p50 ms", "p99 ms", "p99.9 ms", "CPU us/request", "CPU : loop+RocksDB");
    for (size_t i = 0; i < ARRAY_LEN(lines); i++) {
        for (int t = 0; t < TARGETS; t++) {
            const struct measure *x = &m[i][t];
            if (!x->done) continue;
            printf("%-16s %-16s %12.0f %9.3f %9.3f %9.3f %14.2f", t == CANNED ? lines[i].what : "", target_name(o, t), x->per_second,
                   (double)x->p50 / 1e6, (double)x->p99 / 1e6, (double)x->p999 / 1e6, x->cpu_us);
            if (m[i][ROCKSDB].done && x->cpu_us > 0) printf(" %17.2fx", x->cpu_us / m[i][ROCKSDB].cpu_us);
            printf("\n");
        }
    }
}

static void print_json(const struct bench_options *o, struct measure m[][TARGETS], double start_seconds, uint64_t rss_kib) {
    printf("{\"connections\": %u, \"in_flight\": %u, \"start_seconds\": %.3f, \"idle_rss_kib\": %" PRIu64 ", \"results\": [", o->connections,
           o->in_flight, start_seconds, rss_kib);
    const char *comma = "";
    for (size_t i = 0; i < ARRAY_LEN(lines); i++)
        for (int t = 0; t < TARGETS; t++) {
            const struct measure *x = &m[i][t];
            if (!x->done) continue;
            printf("%s\n  {\"workload\": \"%s\", \"server\": \"%s\", \"per_second\": %.0f, \"p50_ns\": %" PRIu64 ", \"p99_ns\": %" PRIu64
                   ", \"p999_ns\": %" PRIu64 ", \"cpu_us\": %.3f, \"failed\": %" PRIu64 "}",
                   comma, lines[i].what, target_name(o, t), x->per_second, x->p50, x->p99, x->p999, x->cpu_us, x->failed);
            comma = ",";
        }
    printf("\n]}\n");
}

static void usage(FILE *to) {
    fputs("usage: tally-bench [options]\n"
          "  --tallyd PATH        the server to measure (default: tallyd beside this program)\n"
          "  --connections N      connections (64)\n"
          "  --in-flight N        requests in flight on each (16)\n"
          "  --seconds N          of each workload (5)\n"
          "  --workload NAME      only this one: point read, insert, durable insert, slice of 100, mixed\n"
          "  --other HOST:PORT    also measure this running server, for example a Cassandra\n"
          "  --other-pid PID      its process, to read its CPU time\n"
          "  --other-name NAME    what to call it (other)\n"
          "  --json               results as JSON on stdout; progress stays on stderr\n"
          "Exit: 0 measured, 1 a request failed or a server did not start, 2 usage.\n",
          to);
}

static int parse(int argc, char **argv, struct bench_options *o) {
    static const struct option longs[] = {
        {"tallyd", 1, NULL, 't'}, {"connections", 1, NULL, 'c'}, {"in-flight", 1, NULL, 'f'}, {"seconds", 1, NULL, 's'}, {"workload", 1, NULL, 'w'}, {"other", 1, NULL, 'o'},
        {"other-pid", 1, NULL, 'p'}, {"other-name", 1, NULL, 'n'}, {"json", 0, NULL, 'j'}, {"help", 0, NULL, 'h'}, {0},
    };
    for (int c; (c = getopt_long(argc, argv, "h", longs, NULL)) != -1;) {
        char *colon;
        switch (c) {
            case 't': o->tallyd = optarg; break;
            case 'c': o->connections = (unsigned)atoi(optarg); break;
            case 'f': o->in_flight = (unsigned)atoi(optarg); break;
            case 's': o->seconds = atof(optarg); break;
            case 'w': o->workload = optarg; break;
            case 'p': o->pid = atoi(optarg); break;
            case 'n': o->name = optarg; break;
            case 'j': o->json = true; break;
            case 'h': return usage(stdout), 1;
            case 'o':
                colon = strrchr(optarg, ':');
                if (!colon) return -1;
                *colon = 0;
                o->host = optarg;
                o->port = (uint16_t)atoi(colon + 1);
                break;
            default: return -1;
        }
    }
    bool good = optind == argc && o->connections >= 1 && o->connections <= 1000 && o->in_flight >= 1 && o->in_flight <= 4096 && o->seconds > 0;
    if (o->workload && !any_runs(o, false, true)) good = false;
    return good ? 0 : -1;
}

int main(int argc, char **argv) {
    static struct measure m[ARRAY_LEN(lines)][TARGETS];
    struct bench_options o = {.connections = 64, .in_flight = 16, .seconds = 5, .name = "other"};
    char beside[4096];
    const char *slash = strrchr(argv[0], '/');
    snprintf(beside, sizeof(beside), "%.*s/tallyd", slash ? (int)(slash - argv[0]) : 1, slash ? argv[0] : ".");
    o.tallyd = beside;
    int rc = parse(argc, argv, &o);
    if (rc > 0) return 0;
    if (rc < 0) return usage(stderr), 2;
    signal(SIGPIPE, SIG_IGN);
    double start_seconds = 0;
    uint64_t rss_kib = 0;
    if (measure_start(&o, &start_seconds, &rss_kib)) return 1;
    for (int t = 0; t < TARGETS; t++)
        if ((t != OTHER || o.host) && run_target(&o, (enum target)t, m)) rc = 1;
    if (o.json) print_json(&o, m, start_seconds, rss_kib);
    else {
        print_table(&o, m);
        printf("\nstart to first answered query %.3f s; idle memory %.1f MiB\n", start_seconds, (double)rss_kib / 1024);
    }
    return rc;
}
