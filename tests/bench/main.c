/* tally-bench: what a request costs the server, beside what it would cost at least, or beside another server.
 *
 * One run measures tallyd and its two ceilings on this machine: the same loop answering a canned response, and that loop with
 * RocksDB doing the same work; or, with --against, another tallyd in turns; and, when asked, any other server of the protocol.
 */
#include <getopt.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>

#include "tests/bench/report.h"

static void usage(FILE *to) {
    fputs("usage: tally-bench [options]\n"
          "  --tallyd PATH        the server to measure (default: tallyd beside this program)\n"
          "  --against PATH       another tallyd, measured in turns with it; prints ratios; no ceilings\n"
          "  --metering on|off, --write-size row|written   of tallyd alone: to be as an older one is, which knows neither\n"
          "  --connections N      connections (64)\n"
          "  --in-flight N        requests in flight on each (16)\n"
          "  --seconds N          of each workload (5)\n"
          "  --workload NAMES     only these, with commas between\n"
          "  --other HOST:PORT    also measure this running server, for example a Cassandra\n"
          "  --other-pid PID      its process, to read its CPU time\n"
          "  --other-name NAME    what to call it (other)\n"
          "  --json               results as JSON on stdout; progress stays on stderr\n"
          "Workloads: ",
          to);
    for (int w = 0; w < WORKLOADS; w++) fprintf(to, "%s%s", w ? ", " : "", workload_rows[w].name);
    fputs("\nExit: 0 measured, 1 a request failed or a server did not start, 2 usage.\n", to);
}

static int parse_other(struct bench_options *o, char *text) {
    char *colon = strrchr(text, ':');
    if (!colon) return -1;
    *colon = 0;
    o->host = text;
    o->port = (uint16_t)atoi(colon + 1);
    return 0;
}

static bool is_good(const struct bench_options *o) {
    bool any = false;
    for (int w = 0; w < WORKLOADS; w++) any = any || workload_asked(o, (enum workload)w);
    return any && o->connections >= 1 && o->connections <= 1000 && o->in_flight >= 1 && o->in_flight <= 4096 && o->seconds > 0;
}

static int parse(int argc, char **argv, struct bench_options *o) {
    static const struct option longs[] = {
        {"tallyd", 1, NULL, 't'},   {"against", 1, NULL, 'a'},   {"connections", 1, NULL, 'c'}, {"in-flight", 1, NULL, 'f'},
        {"seconds", 1, NULL, 's'},  {"workload", 1, NULL, 'w'},  {"other", 1, NULL, 'o'},       {"other-pid", 1, NULL, 'p'},
        {"other-name", 1, NULL, 'n'}, {"metering", 1, NULL, 'm'}, {"write-size", 1, NULL, 'z'}, {"json", 0, NULL, 'j'},    {"help", 0, NULL, 'h'},        {0},
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
            case 'j': o->json = true; break;
            case 'h': return usage(stdout), 1;
            case 'o':
                if (parse_other(o, optarg)) return -1;
                break;
            default: return -1;
        }
    }
    return optind == argc && is_good(o) ? 0 : -1;
}

int main(int argc, char **argv) {
    static measures m;
    struct bench_options o = {.connections = 64, .in_flight = 16, .seconds = 5, .name = "other"};
    struct report r = {.options = &o, .measures = m};
    char beside[4096];
    const char *slash = strrchr(argv[0], '/');
    snprintf(beside, sizeof(beside), "%.*s/tallyd", slash ? (int)(slash - argv[0]) : 1, slash ? argv[0] : ".");
    o.tallyd = beside;
    int rc = parse(argc, argv, &o);
    if (rc > 0) return 0;
    if (rc < 0) return usage(stderr), 2;
    signal(SIGPIPE, SIG_IGN);
    if (measure_start(&o, &r.start_seconds, &r.idle_rss_kib)) return 1;
    rc = measure_all(&o, m) ? 1 : 0;
    if (o.json) report_json(&r);
    else report_table(&r);
    return rc;
}
