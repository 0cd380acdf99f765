#include "tests/bench/measure.h"

#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "tests/bench/ceiling.h"
#include "tests/bench/proc.h"

enum { SERVER_CONFIG = FSYNC | LOOPS4 | UNMETERED | WRITTEN, FEW_CONNECTIONS = 8, SCANNERS = 50, TURNS = 6 };
static const unsigned configs[] = {0, LOOPS4, FSYNC};

const char *target_name(const struct bench_options *o, enum target t) {
    switch (t) {
    case CANNED: return "loop, canned";
    case ROCKSDB: return "loop + RocksDB";
    case AGAINST: return "against";
    case OTHER: return o->name;
    default: return "tallyd";
    }
}

bool workload_asked(const struct bench_options *o, enum workload w) {
    const char *name = workload_rows[w].name, *at = o->workloads;
    size_t n = strlen(name);
    if (!at) return true;
    for (; at; at = strchr(at, ',') ? strchr(at, ',') + 1 : NULL)
        if (!strncmp(at, name, n) && (!at[n] || at[n] == ',')) return true;
    return false;
}

/* ---- which workload runs where ---- */

static bool runs(const struct bench_options *o, enum target t, enum workload w, unsigned config) {
    unsigned wanted = workload_rows[w].config;
    if (!workload_asked(o, w) || wanted & PAIRED) return false;
    if (t == OTHER) return true;
    if (t == CANNED || t == ROCKSDB) return (wanted & CEILING) && (t == CANNED ? config == 0 : (wanted & SERVER_CONFIG) == config);
    return (wanted & SERVER_CONFIG) == config;
}

static unsigned fills_of(const struct bench_options *o, enum target t, unsigned config) {
    unsigned fills = 0;
    for (int w = 0; w < WORKLOADS; w++)
        if (runs(o, t, (enum workload)w, config)) fills |= workload_rows[w].fills;
    return t == CANNED ? 0 : fills;
}

static bool any_runs(const struct bench_options *o, enum target t, unsigned config) {
    for (int w = 0; w < WORKLOADS; w++)
        if (runs(o, t, (enum workload)w, config)) return true;
    return false;
}

/* ---- one server ---- */

static void progress(const struct bench_options *o, enum target t, const char *what) {
    fprintf(stderr, "  %-16s %s\n", target_name(o, t), what);
}

static int start(const struct bench_options *o, enum target t, unsigned config, struct proc *p) {
    struct ceiling_options c = {.rocksdb = t == ROCKSDB, .fsync = config & FSYNC};
    struct proc_flags f = {.durability = config & FSYNC ? "fsync" : "periodic", .threads = config & LOOPS4 ? MEASURE_LOOPS : "1",
                           .metering = config & UNMETERED ? "off" : NULL, .write_size = config & WRITTEN ? "written" : NULL};
    *p = (struct proc){0};
    if (t == CANNED || t == ROCKSDB) return proc_start_child(p, ceiling_main, &c);
    if (t != OTHER) return proc_start_tallyd(p, t == AGAINST ? o->against : o->tallyd, &f);
    p->pid = o->pid;
    p->port = o->port;
    snprintf(p->host, sizeof(p->host), "%s", o->host);
    return 0;
}

static void stop(enum target t, struct proc *p) {
    if (t != OTHER) proc_stop(p);
}

static int fill(const struct bench_options *o, enum target t, const struct proc *p, unsigned fills) {
    if (!fills) return 0;
    struct drive *l = drive_open(p->host, p->port, o->connections, o->in_flight, t >= TALLYD);
    if (!l) return -1;
    progress(o, t, "writing rows");
    int rc = drive_fill(l, fills);
    drive_close(l);
    return rc;
}

static void scan(const struct proc *p, int ready_fd) {
    struct drive_result *r = calloc(1, sizeof(*r));
    struct drive *l = r ? drive_open(p->host, p->port, SCANNERS, 1, true) : NULL;
    if (l && write(ready_fd, "", 1) == 1) drive_run(l, LOAD_SCAN, 3600, r);
}

/* A process of its own, whose parsing of answers takes nothing from the load's. Returns when its clients begin; -1: they do not. */
static pid_t start_scanners(const struct proc *p) {
    int fds[2];
    char byte;
    if (pipe(fds)) return -1;
    pid_t pid = fork();
    if (pid == 0) {
        prctl(PR_SET_PDEATHSIG, SIGKILL);
        close(fds[0]);
        scan(p, fds[1]);
        _exit(1);
    }
    close(fds[1]);
    bool begun = read(fds[0], &byte, 1) == 1;
    close(fds[0]);
    return begun ? pid : -1;
}

static void stop_scanners(pid_t pid) {
    if (pid <= 0) return;
    kill(pid, SIGKILL);
    waitpid(pid, NULL, 0);
}

static double waited(const struct proc *p) {
    return proc_metric(p, "tally_engine_slot_waited_seconds_total") + proc_metric(p, "tally_engine_stripe_waited_seconds_total");
}

static int run(const struct bench_options *o, enum target t, const struct proc *p, enum workload w, double seconds, struct measure *m) {
    unsigned config = workload_rows[w].config;
    bool few = config & FEW, beside = config & BESIDE_SCANS;
    struct drive_result *warm = calloc(1, sizeof(*warm));
    struct drive *l = drive_open(p->host, p->port, few ? FEW_CONNECTIONS : o->connections, few ? 1 : o->in_flight, t >= TALLYD);
    pid_t scanners = l && beside ? start_scanners(p) : 0;
    if (!warm || !l || scanners < 0) exit(1);
    drive_run(l, w, seconds / 5, warm);
    double waited_before = waited(p);
    uint64_t cpu_ns = p->pid ? proc_cpu_ns(p->pid) : 0;
    drive_run(l, w, seconds, &m->r);
    if (p->pid && !beside) m->cpu_ns += proc_cpu_ns(p->pid) - cpu_ns; /* of these requests alone, or not told */
    m->waited += waited(p) - waited_before;
    stop_scanners(scanners);
    drive_close(l);
    free(warm);
    if (!m->r.failed) return 0;
    fprintf(stderr, "    %s: %" PRIu64 " of %" PRIu64 " failed: %s\n", workload_rows[w].name, m->r.failed, m->r.requests, m->r.first_error);
    return -1;
}

/* ---- all ---- */

/* Those for latency, in turns: what else the machine does meets all of them, with and without scans. */
static int run_few(const struct bench_options *o, enum target t, unsigned config, const struct proc *p, measures m) {
    int rc = 0;
    for (int turn = 0; turn < TURNS && !rc; turn++)
        for (int w = 0; w < WORKLOADS && !rc; w++) {
            if (!(workload_rows[w].config & FEW) || !runs(o, t, (enum workload)w, config)) continue;
            if (!turn) progress(o, t, workload_rows[w].name);
            rc = run(o, t, p, (enum workload)w, o->seconds / TURNS, &m[w][t]);
        }
    return rc;
}

static int measure_target(const struct bench_options *o, enum target t, unsigned config, measures m) {
    struct proc p;
    if (!any_runs(o, t, config)) return 0;
    if (start(o, t, config, &p)) return -1;
    int rc = fill(o, t, &p, fills_of(o, t, config));
    for (int w = 0; w < WORKLOADS && !rc; w++) {
        if (workload_rows[w].config & FEW || !runs(o, t, (enum workload)w, config)) continue;
        progress(o, t, workload_rows[w].name);
        rc = run(o, t, &p, (enum workload)w, o->seconds, &m[w][t]);
    }
    if (!rc) rc = run_few(o, t, config, &p, m);
    stop(t, &p);
    return rc;
}

/* Now this one first, now the other. */
static int take_turns(const struct bench_options *o, const struct proc p[2], enum workload w, measures m) {
    static const enum target targets[] = {TALLYD, AGAINST};
    int rc = 0;
    progress(o, TALLYD, workload_rows[w].name);
    for (int turn = 0; turn < TURNS * 2 && !rc; turn++) {
        int who = (turn ^ turn >> 1) & 1;
        rc = run(o, targets[who], &p[who], w, o->seconds / TURNS, &m[w][targets[who]]);
    }
    return rc;
}

static int measure_against(const struct bench_options *o, unsigned config, measures m) {
    struct proc p[2] = {0};
    if (!any_runs(o, TALLYD, config)) return 0;
    unsigned fills = fills_of(o, TALLYD, config);
    int rc = start(o, TALLYD, config, &p[0]) || start(o, AGAINST, config, &p[1]) || fill(o, TALLYD, &p[0], fills) || fill(o, AGAINST, &p[1], fills);
    for (int w = 0; w < WORKLOADS && !rc; w++)
        if (runs(o, TALLYD, (enum workload)w, config)) rc = take_turns(o, p, (enum workload)w, m);
    stop(TALLYD, &p[0]);
    stop(AGAINST, &p[1]);
    return rc ? -1 : 0;
}

/* A workload and the one behind it, as measure_against does it with two programs. */
static int measure_pair(const struct bench_options *o, enum workload first, measures m) {
    struct proc p[2] = {0};
    if (!workload_asked(o, first) && !workload_asked(o, first + 1)) return 0;
    int rc = 0;
    for (int i = 0; i < 2 && !rc; i++)
        rc = start(o, TALLYD, workload_rows[first + i].config & SERVER_CONFIG, &p[i]) || fill(o, TALLYD, &p[i], workload_rows[first + i].fills);
    progress(o, TALLYD, workload_rows[first].name);
    for (int turn = 0; turn < TURNS * 2 && !rc; turn++) {
        int who = (turn ^ turn >> 1) & 1;
        rc = run(o, TALLYD, &p[who], first + who, o->seconds / TURNS, &m[first + who][TALLYD]);
    }
    stop(TALLYD, &p[0]);
    stop(TALLYD, &p[1]);
    return rc ? -1 : 0;
}

int measure_all(const struct bench_options *o, measures m) {
    int rc = 0;
    for (size_t i = 0; i < sizeof(configs) / sizeof(configs[0]); i++) {
        if (o->against) {
            if (measure_against(o, configs[i], m)) rc = -1;
            continue;
        }
        for (int t = CANNED; t <= TALLYD; t++)
            if (measure_target(o, (enum target)t, configs[i], m)) rc = -1;
    }
    for (int w = 0; w < WORKLOADS && !o->against; w++) {
        if (!(workload_rows[w].config & PAIRED)) continue;
        if (measure_pair(o, (enum workload)w, m)) rc = -1;
        w++;
    }
    if (o->host && measure_target(o, OTHER, 0, m)) rc = -1;
    return rc;
}

int measure_start(const struct bench_options *o, double *seconds, uint64_t *rss_kib) {
    struct proc p = {0};
    double t0 = now_seconds();
    const struct proc_flags f = {.durability = "fsync", .threads = "1"};
    if (proc_start_tallyd(&p, o->tallyd, &f)) return -1;
    struct drive *l = drive_open(p.host, p.port, 1, 1, true);
    *seconds = now_seconds() - t0;
    *rss_kib = proc_rss_kib(p.pid);
    if (l) drive_close(l);
    proc_stop(&p);
    return l ? 0 : -1;
}
