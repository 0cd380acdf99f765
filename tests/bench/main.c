/* tally-bench: what a request costs the server, beside what it would cost at least, or beside
 * another server.
 *
 * One run measures tallyd and its two ceilings on this machine: the same loop answering a canned
 * response, and that loop with RocksDB doing the same work; or, with --against, another tallyd in
 * turns; and, when asked, any other server of the protocol beside them.
 */
#include <errno.h>
#include <getopt.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "tests/bench/report.h"
#include "tools/client/client.h"

enum { RUNS_MAX = 20, RUNS_OF_REPORT = 3, ROWS_MIN = 12000, GROWTH_MIN = 16000 };

static void usage(FILE *to) {
    fputs("usage: tally-bench [options]\n"
          "       tally-bench --store rados [options]   the workloads on servers that share a Ceph cluster; has a "
          "--help, too\n"
          "  --tallyd PATH        the server to measure (default: tallyd beside this program)\n"
          "  --against PATH       another tallyd, measured in turns with it; prints ratios; no ceilings\n"
          "  --metering on|off, --write-size row|written   of tallyd alone: to be as an older one is, which knows "
          "neither\n"
          "  --connections N      connections (64)\n"
          "  --in-flight N        requests in flight on each (16)\n"
          "  --seconds N          of each workload (5)\n"
          "  --runs N             all of it so many times; figures are the medians (1; 3 with --report)\n"
          "  --workload NAMES     only these, with commas between; growth is all that --growth measures\n"
          "  --rows N             reads over large data, too: over N rows (12000000 is a large one) and over a twelfth "
          "of them, with the memory that tallyd takes by itself\n"
          "  --growth N           what a request costs as data grow: N/16, N/4 and N rows in one partition, as many in "
          "partitions of two, and more (2000000 is a large one)\n"
          "  --data-dir DIR       where what --rows and --growth write stays for the next run; made when it is not "
          "there (scratch folders)\n"
          "  --beside HOST:PORT   also measure this running server, for example a Cassandra; it keeps the keyspaces "
          "bench and growth_N\n"
          "  --beside-pid PID     its process, to read its CPU time (who listens on the port, when that is on this "
          "machine)\n"
          "  --beside-name NAME   what to call it (beside)\n"
          "  --beside-only        measure nothing else, and that without a warm-up\n"
          "  --report DIR         writes report.html (tables and plots), report.md (tables) and report.json\n"
          "  --json               results as JSON on stdout; progress stays on stderr\n"
          "Workloads: ",
          to);
    for (int w = 0; w < WORKLOADS; w++) fprintf(to, "%s%s", w ? ", " : "", workload_rows[w].name);
    fputs("\nOf --growth: ", to);
    for (int i = 0; i < GROWTHS; i++) fprintf(to, "%s%s", i ? ", " : "", growth_rows[i].name);
    fputs("\nExit: 0 measured, 1 a request failed or a server did not start, 2 usage.\n", to);
}

static int wrong(const char *what) {
    fprintf(stderr, "tally-bench: %s; see --help\n", what);
    return -1;
}

static int parse_beside(struct bench_options *o, const char *text) {
    static char host[256];
    struct err e = {0};
    o->port = 9042;
    if (client_address(text, host, &o->port, &e)) return wrong(e.text);
    o->host = host;
    return 0;
}

static int check(const struct bench_options *o) {
    bool any = growth_asked(o);
    for (int w = 0; w < WORKLOADS; w++) any = any || bench_asked(o, workload_rows[w].name);
    if (!any) return wrong("--workload names nothing that is measured");
    if (o->connections < 1 || o->connections > 1000 || o->in_flight < 1 || o->in_flight > 4096)
        return wrong("--connections must be 1 to 1000, --in-flight 1 to 4096");
    if (!(o->seconds > 0) || o->runs < 1 || o->runs > RUNS_MAX)
        return wrong("--seconds must be above 0, --runs 1 to 20");
    if ((o->rows && (o->rows < ROWS_MIN || o->rows > INT32_MAX)) ||
        (o->growth && (o->growth < GROWTH_MIN || o->growth > INT32_MAX)))
        return wrong("--rows must be 12000 or more, --growth 16000 or more, both below 2147483648");
    if (o->beside_only && (!o->host || o->against))
        return wrong("--beside-only is for --beside, and not for --against");
    return o->host && !o->pid ? wrong("there is no process to be seen behind --beside; name it with --beside-pid") : 0;
}

static int parse(int argc, char **argv, struct bench_options *o) {
    static const struct option longs[] = {
        {"tallyd", 1, NULL, 't'},
        {"against", 1, NULL, 'a'},
        {"connections", 1, NULL, 'c'},
        {"in-flight", 1, NULL, 'f'},
        {"seconds", 1, NULL, 's'},
        {"workload", 1, NULL, 'w'},
        {"beside", 1, NULL, 'b'},
        {"beside-pid", 1, NULL, 'p'},
        {"beside-name", 1, NULL, 'n'},
        {"beside-only", 0, NULL, 'y'},
        {"metering", 1, NULL, 'm'},
        {"write-size", 1, NULL, 'z'},
        {"growth", 1, NULL, 'g'},
        {"rows", 1, NULL, 'l'},
        {"data-dir", 1, NULL, 'd'},
        {"runs", 1, NULL, 'r'},
        {"report", 1, NULL, 'o'},
        {"json", 0, NULL, 'j'},
        {"help", 0, NULL, 'h'},
        {0},
    };
    for (int c; (c = getopt_long(argc, argv, "h", longs, NULL)) != -1;) {
        switch (c) {
        case 't': o->tallyd = optarg; break;
        case 'a': o->against = optarg; break;
        case 'c': o->connections = (unsigned)atoi(optarg); break;
        case 'f': o->in_flight = (unsigned)atoi(optarg); break;
        case 's': o->seconds = atof(optarg); break;
        case 'w': o->workloads = optarg; break;
        case 'p': o->pid = atoi(optarg); break;
        case 'n': o->name = optarg; break;
        case 'm': o->metering = optarg; break;
        case 'z': o->write_size = optarg; break;
        case 'g': o->growth = strtoull(optarg, NULL, 10); break;
        case 'l': o->rows = strtoull(optarg, NULL, 10); break;
        case 'd': o->data_dir = optarg; break;
        case 'r': o->runs = (unsigned)atoi(optarg); break;
        case 'o': o->report = optarg; break;
        case 'y': o->beside_only = true; break;
        case 'j': o->json = true; break;
        case 'h': return usage(stdout), 1;
        case 'b':
            if (parse_beside(o, optarg)) return -1;
            break;
        default: return -1;
        }
    }
    if (optind != argc) return wrong("there are no arguments beside options");
    if (!o->runs) o->runs = o->report ? RUNS_OF_REPORT : 1;
    if (o->host && !o->pid) o->pid = proc_of_port(o->port);
    return check(o);
}

static int make_folder(const char *dir) {
    if (!dir || !mkdir(dir, 0777) || errno == EEXIST) return 0;
    perror(dir);
    return -1;
}

static int measure(struct report *r) {
    const struct bench_options *o = r->options;
    int rc = o->beside_only ? 0 : measure_start(o, &r->start_seconds, &r->idle_rss_kib);
    for (unsigned run = 0; run < o->runs && !rc; run++) {
        if (o->runs > 1) fprintf(stderr, "run %u of %u\n", run + 1, o->runs);
        rc = measure_all(o, run & 1, r->runs[run]);
    }
    if (!rc && growth_asked(o)) rc = growth_measure(o, r->growth);
    return rc ? -1 : 0;
}

/* The program becomes rados.py, which starts a cluster and servers and has this one measure them. */
static int measure_rados(int argc, char **argv) {
    const char **args = calloc((size_t)argc + 3, sizeof(*args));
    if (!args) return 1;
    args[0] = BENCH_PYTHON;
    args[1] = BENCH_RADOS;
    args[2] = "--tally-bench";
    args[3] = argv[0];
    for (int i = 3; i < argc; i++) args[i + 1] = argv[i];
    execv(args[0], (char *const *)(uintptr_t)args);
    perror(args[0]);
    free(args);
    return 1;
}

int main(int argc, char **argv) {
    if (argc > 2 && !strcmp(argv[1], "--store") && !strcmp(argv[2], "rados")) return measure_rados(argc, argv);
    struct bench_options o = {.connections = 64, .in_flight = 16, .seconds = 5, .name = "beside"};
    struct report r = {.options = &o};
    char beside[4096];
    const char *slash = strrchr(argv[0], '/');
    snprintf(beside, sizeof(beside), "%.*s/tallyd", slash ? (int)(slash - argv[0]) : 1, slash ? argv[0] : ".");
    o.tallyd = beside;
    int rc = parse(argc, argv, &o);
    if (rc) return rc > 0 ? 0 : 2;
    signal(SIGPIPE, SIG_IGN);
    if (make_folder(o.data_dir) || make_folder(o.report)) return 1;
    r.runs = calloc(o.runs, sizeof(*r.runs));
    r.growth = calloc(o.runs, sizeof(*r.growth));
    if (!r.runs || !r.growth) return 1;
    rc = measure(&r) ? 1 : 0;
    if (o.json) report_json(&r, stdout);
    else report_table(&r);
    if (!rc && o.report && report_write(&r, o.report)) rc = 1;
    free(r.runs);
    free(r.growth);
    return rc;
}
