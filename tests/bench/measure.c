#include "tests/bench/measure.h"

#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "tests/bench/ceiling.h"
#include "tests/bench/disk.h"
#include "tests/bench/proc.h"

enum {
    SERVER_CONFIG = FSYNC | LOOPS4 | UNMETERED | WRITTEN | LARGE | HUGE | TLS | UNCACHED | BESIDE_PAGE,
    TALLY_ONLY = LOOPS4 | UNCACHED | UNMETERED | WRITTEN | PAIRED | HUGE | TLS | BESIDE_SCANS |
                 BESIDE_PAGE,
    FEW_CONNECTIONS = 8,
    SCANNERS = 50
};
static const unsigned configs[] = {0, LOOPS4, FSYNC, TLS, LARGE, HUGE, UNCACHED};

const char *target_name(const struct bench_options *o, enum target t) {
    switch (t) {
    case CANNED: return "loop, canned";
    case ROCKSDB: return "loop + RocksDB";
    case DISK: return "an fdatasync";
    case SYNCED: return "loop + fdatasync";
    case AGAINST: return "against";
    case BESIDE: return o->name;
    default: return "tallyd";
    }
}

bool bench_asked(const struct bench_options *o, const char *name) {
    const char *at = o->workloads;
    size_t n = strlen(name);
    if (!at) return true;
    for (; at; at = strchr(at, ',') ? strchr(at, ',') + 1 : NULL)
        if (!strncmp(at, name, n) && (!at[n] || at[n] == ',')) return true;
    return false;
}

/* ---- which workload runs where ---- */

/* Against another program nobody but the two is there: what a pair compares stays with it, but that
 * four loops run is a configuration like others. */
static bool runs(const struct bench_options *o, enum target t, enum workload w, unsigned config) {
    unsigned wanted = workload_rows[w].config;
    if (!bench_asked(o, workload_rows[w].name) || (wanted & PAIRED && !(o->against && wanted & LOOPS4))) return false;
    if (wanted & (LARGE | HUGE) && !o->rows) return false;
    if (o->beside_only && t != BESIDE) return false;
    if (t == BESIDE && (!o->host || wanted & TALLY_ONLY)) return false;
    if (t == AGAINST && !o->against) return false;
    if (t == DISK) return false; /* it stands beside a server's lane */
    if (t == SYNCED && (o->against || !(wanted & FEW && wanted & FSYNC))) return false;
    if (t == CANNED || t == ROCKSDB)
        return !o->against && (wanted & CEILING) && (t == CANNED ? config == 0 : (wanted & SERVER_CONFIG) == config);
    return (wanted & SERVER_CONFIG) == config;
}

static unsigned fills_of(const struct bench_options *o, enum target t, unsigned config) {
    unsigned fills = 0;
    for (int w = 0; w < WORKLOADS; w++)
        if (runs(o, t, (enum workload)w, config)) fills |= workload_rows[w].fills;
    return t == CANNED || t == SYNCED ? 0 : fills;
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

static uint32_t large_of(const struct bench_options *o, unsigned config) {
    return (uint32_t)(config & LARGE ? o->rows / LOAD_LARGE_SHARE : o->rows);
}

static int start(const struct bench_options *o, enum target t, unsigned config, struct proc *p) {
    struct ceiling_options c = {.rocksdb = t == ROCKSDB, .fsync = config & FSYNC, .synced = t == SYNCED};
    struct proc_flags f = {.durability = config & FSYNC ? "fsync" : "periodic",
                           .threads = config & LOOPS4 ? MEASURE_LOOPS : "1",
                           .metering = config & UNMETERED ? "off"
                                       : t == TALLYD      ? o->metering
                                                          : NULL,
                           .write_size = config & WRITTEN ? "written"
                                         : t == TALLYD    ? o->write_size
                                                          : NULL};
    if (t == BESIDE) return proc_beside(p, o->host, o->port, o->pid), 0;
    *p = (struct proc){0};
    if (t < TALLYD) return proc_start_child(p, ceiling_main, &c);
    const char *tallyd = t == AGAINST ? o->against : o->tallyd;
    char dir[256];
    snprintf(dir, sizeof(dir), "%s/rows-%u", o->data_dir ? o->data_dir : "", large_of(o, config));
    f.own_memory = config & (LARGE | HUGE);
    f.dir = f.own_memory && o->data_dir && t == TALLYD ? dir : NULL;
    f.tls = config & TLS;
    f.uncached = config & UNCACHED;
    return proc_start_tallyd(p, tallyd, &f);
}

static int fill(const struct bench_options *o, enum target t, const struct proc *p, unsigned fills, unsigned config) {
    if (!fills) return 0;
    struct drive *l = drive_open(p, o->connections, o->in_flight, t >= TALLYD);
    if (!l) return -1;
    progress(o, t, "writing rows");
    int rc = drive_fill(l, fills, large_of(o, config));
    drive_close(l);
    if (fills & FILL_LARGE) proc_await_quiet(p->pid);
    return rc;
}

static void scan(const struct proc *p, int ready_fd) {
    struct drive_result *r = calloc(1, sizeof(*r));
    struct drive *l = r ? drive_open(p, SCANNERS, 1, true) : NULL;
    if (l && write(ready_fd, "", 1) == 1) drive_run(l, LOAD_SCAN, 0, 3600, r);
}

/* Asks for what the live page of a table asks for, once a second: what is newer than it has. */
static void show(const struct proc *p, int ready_fd) {
    static const char *const paths[] = {"/api/history?keyspace=bench&table=rows&since=%u",
                                        "/api/map?keyspace=bench&table=rows&by=range&since=%u",
                                        "/api/map?keyspace=bench&table=rows&by=partition&since=%u",
                                        "/api/statements?keyspace=bench&table=rows", "/api/tables"};
    static char text[16 << 20];
    for (bool begun = false;; sleep(1)) {
        for (size_t i = 0; i < sizeof(paths) / sizeof(paths[0]); i++) {
            char path[128];
            snprintf(path, sizeof(path), paths[i], (unsigned)time(NULL) - 3);
            if (!proc_get(p->admin_port, path, text, sizeof(text))) return;
        }
        if (!begun && write(ready_fd, "", 1) != 1) return;
        begun = true;
    }
}

/* A process of its own, whose parsing of answers takes nothing from the load's. Returns when its
 * clients begin; -1: they do not. */
static pid_t start_beside(const struct proc *p, void (*run)(const struct proc *p, int ready_fd)) {
    int fds[2];
    char byte;
    if (pipe(fds)) return -1;
    pid_t pid = fork();
    if (pid == 0) {
        prctl(PR_SET_PDEATHSIG, SIGKILL);
        close(fds[0]);
        run(p, fds[1]);
        _exit(1);
    }
    close(fds[1]);
    bool begun = read(fds[0], &byte, 1) == 1;
    close(fds[0]);
    return begun ? pid : -1;
}

static void stop_beside(pid_t pid) {
    if (pid <= 0) return;
    kill(pid, SIGKILL);
    waitpid(pid, NULL, 0);
}

static double waited(const struct proc *p) {
    return proc_metric(p, "tally_engine_slot_waited_seconds_total") +
           proc_metric(p, "tally_engine_stripe_waited_seconds_total");
}

static void end_turn(struct measure *m, const struct measure *before, uint64_t cpu_ns) {
    double requests = (double)(m->r.requests - before->r.requests), seconds = m->r.seconds - before->r.seconds;
    m->cpu_ns += cpu_ns;
    if (m->n_turns == MEASURE_TURNS || requests <= 0) return;
    m->turns[m->n_turns].cpu_us = (double)cpu_ns / 1e3 / requests;
    m->turns[m->n_turns++].per_second = requests / seconds;
}

/* ---- in turns ---- */

/* Who is measured on what. */
struct lane {
    enum target target;
    const struct proc *p;
    enum workload w;
    struct drive *drive; /* not of DISK, */
    struct disk *disk;   /* which has this */
    uint32_t large;
};

/* For so long, and until what is to be hot is. */
static void warm_up(const struct lane *l, double seconds) {
    enum { READS_EACH = 4, MOST_S = 40 };
    unsigned config = workload_rows[l->w].config;
    uint64_t rows = config & LARGE ? l->large : LOAD_POINTS,
             enough = config & HOT && l->target >= TALLYD ? READS_EACH * rows : 0;
    struct drive_result *warm = calloc(1, sizeof(*warm));
    if (!warm) return;
    do drive_run(l->drive, l->w, l->large, seconds, warm);
    while (warm->requests < enough && warm->seconds < MOST_S);
    free(warm);
}

/* Its clients stay for all turns: one that begins with new connections is longer in beginning than a turn takes. */
static int open_lane(const struct bench_options *o, struct lane *l, double warm_s) {
    unsigned config = workload_rows[l->w].config;
    if (l->target == DISK) return (l->disk = disk_open(l->p->dir)) ? 0 : -1;
    l->large = large_of(o, config);
    l->drive = drive_open(l->p, config & (FEW | EIGHT) ? FEW_CONNECTIONS : o->connections,
                          config & FEW ? 1 : o->in_flight, l->target >= TALLYD);
    progress(o, l->target, workload_rows[l->w].name);
    if (l->drive && !o->beside_only) warm_up(l, warm_s);
    return l->drive ? 0 : -1;
}

/* Scanners scan for a while before a turn begins. */
static pid_t scan_beside(const struct lane *l, double seconds) {
    struct drive_result *ignored = calloc(1, sizeof(*ignored));
    pid_t scanners = ignored ? start_beside(l->p, scan) : -1;
    if (scanners < 0) exit(1);
    drive_run(l->drive, l->w, l->large, seconds, ignored);
    free(ignored);
    return scanners;
}

static void close_lane(const struct lane *l) {
    if (l->drive) drive_close(l->drive);
    if (l->disk) disk_close(l->disk);
}

static int take_turn(const struct lane *l, double seconds, struct measure *m) {
    if (l->disk) return disk_run(l->disk, seconds, &m->r);
    unsigned config = workload_rows[l->w].config;
    bool beside = config & BESIDE_SCANS;
    pid_t pid = l->p->pid, other = beside ? scan_beside(l, seconds / 5) : 0;
    if (config & BESIDE_PAGE && (other = start_beside(l->p, show)) < 0) exit(1);
    double waited_before = waited(l->p);
    struct measure before = {.cpu_ns = pid ? proc_cpu_ns(pid) : 0,
                             .r = {.requests = m->r.requests, .seconds = m->r.seconds}};
    drive_run(l->drive, l->w, l->large, seconds, &m->r);
    uint64_t cpu_ns = pid && !beside ? proc_cpu_ns(pid) - before.cpu_ns : 0; /* of these requests alone, or not told */
    end_turn(m, &before, cpu_ns);
    m->waited += waited(l->p) - waited_before;
    stop_beside(other);
    if (!m->r.failed) return 0;
    fprintf(stderr, "    %s: %" PRIu64 " of %" PRIu64 " failed: %s\n", workload_rows[l->w].name, m->r.failed,
            m->r.requests, m->r.first_error);
    return -1;
}

/* One alone has nobody to take turns with; who scans beside takes its time to begin; a pair takes turns twice. */
static unsigned turns_of(const struct lane *lanes, unsigned n) {
    enum { TURNS_OF_FEW = 10 };
    if (n < 2) return 1;
    unsigned config = workload_rows[lanes[0].w].config;
    return config & FEW ? TURNS_OF_FEW : config & PAIRED ? MEASURE_TURNS / 2 : MEASURE_TURNS;
}

/* Who comes i-th of n. */
static unsigned ith(unsigned i, unsigned n, bool backwards) { return backwards ? n - 1 - i : i; }

/* One after the other, and back: so each is as often the first. */
static int take_turns(const struct bench_options *o, struct lane *lanes, unsigned n, bool backwards, measures m) {
    unsigned turns = turns_of(lanes, n);
    int rc = 0;
    for (unsigned i = 0; i < n && !rc; i++) rc = open_lane(o, &lanes[ith(i, n, backwards)], o->seconds / 5);
    for (unsigned turn = 0; turn < turns && !rc; turn++)
        for (unsigned i = 0; i < n && !rc; i++) {
            const struct lane *l = &lanes[ith(i, n, backwards != (turn & 1))];
            rc = take_turn(l, o->seconds / turns, &m[l->w][l->target]);
        }
    for (unsigned i = 0; i < n; i++) close_lane(&lanes[i]);
    return rc;
}

static int by_size(const void *a, const void *b) {
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

static double median(double *values, unsigned n) {
    qsort(values, n, sizeof(*values), by_size);
    return n % 2 ? values[n / 2] : (values[n / 2 - 1] + values[n / 2]) / 2;
}

double measure_cpu_ratio(const struct measure *x, const struct measure *y) {
    double ratios[MEASURE_TURNS];
    bool side_by_side = x->n_turns > 1 && x->n_turns == y->n_turns;
    for (unsigned i = 0; i < x->n_turns && side_by_side; i++) {
        if (y->turns[i].cpu_us <= 0) return 0;
        ratios[i] = x->turns[i].cpu_us / y->turns[i].cpu_us;
    }
    if (side_by_side) return median(ratios, x->n_turns);
    return measure_cpu_us(y) > 0 ? measure_cpu_us(x) / measure_cpu_us(y) : 0;
}

double measure_rate_ratio(const struct measure *x, const struct measure *y) {
    double ratios[MEASURE_TURNS];
    bool side_by_side = x->n_turns > 1 && x->n_turns == y->n_turns;
    for (unsigned i = 0; i < x->n_turns && side_by_side; i++)
        ratios[i] = x->turns[i].per_second / y->turns[i].per_second;
    if (side_by_side) return median(ratios, x->n_turns);
    return measure_per_second(y) > 0 ? measure_per_second(x) / measure_per_second(y) : 0;
}

/* ---- all ---- */

/* Those for latency, one after the other on one server: what else the machine does meets all of
 * them, with and without scans, the disk alone, and a loop that does no more than to sync. */
static int run_few(const struct bench_options *o, enum target t, unsigned config, const struct proc p[TARGETS],
                   measures m) {
    struct lane lanes[3 * WORKLOADS];
    unsigned n = 0;
    for (int w = 0; w < WORKLOADS; w++) {
        if (!(workload_rows[w].config & FEW) || !runs(o, t, (enum workload)w, config)) continue;
        lanes[n++] = (struct lane){.target = t, .p = &p[t], .w = (enum workload)w};
        if (t != TALLYD || !(config & FSYNC)) continue;
        lanes[n++] = (struct lane){.target = DISK, .p = &p[t], .w = (enum workload)w};
        lanes[n++] = (struct lane){.target = SYNCED, .p = &p[SYNCED], .w = (enum workload)w};
    }
    return take_turns(o, lanes, n, false, m);
}

/* Those that a workload runs on, in turns. */
static int run_beside(const struct bench_options *o, enum workload w, unsigned config, const struct proc p[TARGETS],
                      bool backwards, measures m) {
    struct lane lanes[TARGETS];
    unsigned n = 0;
    for (int t = CANNED; t < TARGETS; t++)
        if (runs(o, (enum target)t, w, config))
            lanes[n++] = (struct lane){.target = (enum target)t, .p = &p[t], .w = w};
    return take_turns(o, lanes, n, backwards, m);
}

static int start_all(const struct bench_options *o, unsigned config, bool backwards, struct proc p[TARGETS]) {
    for (unsigned i = 0; i < TARGETS; i++) {
        enum target t = (enum target)ith(i, TARGETS, backwards);
        if (!any_runs(o, t, config)) continue;
        if (start(o, t, config, &p[t]) || fill(o, t, &p[t], fills_of(o, t, config), config)) return -1;
    }
    return 0;
}

static int measure_config(const struct bench_options *o, unsigned config, bool backwards, measures m) {
    struct proc p[TARGETS] = {0};
    int rc = start_all(o, config, backwards, p);
    for (int w = 0; w < WORKLOADS && !rc; w++)
        if (o->against || !(workload_rows[w].config & FEW))
            rc = run_beside(o, (enum workload)w, config, p, backwards, m);
    for (int t = TALLYD; t < TARGETS && !rc && !o->against; t++) rc = run_few(o, (enum target)t, config, p, m);
    for (int t = CANNED; t < BESIDE; t++) proc_stop(&p[t]);
    return rc;
}

/* A workload and the one behind it, each on a server of its own. */
static int measure_pair(const struct bench_options *o, enum workload first, bool backwards, measures m) {
    struct proc p[2] = {0};
    struct lane lanes[2];
    int rc = 0;
    for (unsigned k = 0; k < 2 && !rc; k++) {
        unsigned i = ith(k, 2, backwards);
        const struct workload_row *row = &workload_rows[first + i];
        lanes[i] = (struct lane){.target = TALLYD, .p = &p[i], .w = first + i};
        rc = start(o, TALLYD, row->config & SERVER_CONFIG, &p[i]) || fill(o, TALLYD, &p[i], row->fills, row->config);
    }
    if (!rc) rc = take_turns(o, lanes, 2, backwards, m);
    proc_stop(&p[0]);
    proc_stop(&p[1]);
    return rc ? -1 : 0;
}

/* On two such pairs, for who is started first may take some hundredths more or less: what is
 * compared differs by no more than that. */
static int measure_pairs(const struct bench_options *o, enum workload first, bool backwards, measures m) {
    struct bench_options half = *o;
    half.seconds = o->seconds / 2;
    if (!bench_asked(o, workload_rows[first].name) && !bench_asked(o, workload_rows[first + 1].name)) return 0;
    return measure_pair(&half, first, backwards, m) || measure_pair(&half, first, !backwards, m) ? -1 : 0;
}

int measure_all(const struct bench_options *o, bool backwards, measures m) {
    int rc = 0;
    for (size_t i = 0; i < sizeof(configs) / sizeof(configs[0]); i++)
        if (measure_config(o, configs[i], backwards, m)) rc = -1;
    for (int w = 0; w < WORKLOADS && !o->against; w++) {
        if (!(workload_rows[w].config & PAIRED) || o->beside_only) continue;
        if (measure_pairs(o, (enum workload)w, backwards, m)) rc = -1;
        w++;
    }
    return rc;
}

int measure_start(const struct bench_options *o, double *seconds, uint64_t *rss_kib) {
    struct proc p = {0};
    double t0 = now_seconds();
    const struct proc_flags f = {.durability = "fsync", .threads = "1"};
    if (proc_start_tallyd(&p, o->tallyd, &f)) return -1;
    struct drive *l = drive_open(&p, 1, 1, true);
    *seconds = now_seconds() - t0;
    *rss_kib = proc_rss_kib(p.pid);
    if (l) drive_close(l);
    proc_stop(&p);
    return l ? 0 : -1;
}
