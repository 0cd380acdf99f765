#include "tests/bench/figure.h"

#include <stdio.h>
#include <stdlib.h>
#include <sys/utsname.h>
#include <unistd.h>

enum { RUNS_MAX = 20 };

static int by_size(const void *a, const void *b) {
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

static struct spread spread_of(double *values, unsigned n) {
    if (!n) return (struct spread){0};
    qsort(values, n, sizeof(*values), by_size);
    return (
        struct spread){.least = values[0], .median = (values[n / 2] + values[(n - 1) / 2]) / 2, .most = values[n - 1]};
}

static double ms(const struct measure *m, double share) { return (double)hist_quantile(&m->r.latency, share) / 1e6; }

static bool is_done(const struct measure *m) { return m->r.requests > 0; }

static double ratio(double a, double b) { return b > 0 ? a / b : 0; }

/* ---- workloads ---- */

bool figure_done(const struct report *r, enum workload w, enum target t) {
    bool done = true;
    for (unsigned i = 0; i < r->options->runs; i++) done = done && is_done(&r->runs[i][w][t]);
    return done;
}

static double value_of(const struct measure *m, enum metric metric) {
    switch (metric) {
    case METRIC_CPU_US: return measure_cpu_us(m);
    case METRIC_PER_SECOND: return measure_per_second(m);
    case METRIC_P50_MS: return ms(m, 0.5);
    case METRIC_P99_MS: return ms(m, 0.99);
    default: return ms(m, 0.999);
    }
}

struct spread figure_of(const struct report *r, enum workload w, enum target t, enum metric m) {
    double values[RUNS_MAX];
    for (unsigned i = 0; i < r->options->runs; i++) values[i] = value_of(&r->runs[i][w][t], m);
    return spread_of(values, r->options->runs);
}

struct spread figure_of_ceiling(const struct report *r, enum workload w, enum target t) {
    double values[RUNS_MAX];
    if (!figure_done(r, w, t) || !figure_done(r, w, ROCKSDB)) return (struct spread){0};
    for (unsigned i = 0; i < r->options->runs; i++)
        values[i] = measure_cpu_ratio(&r->runs[i][w][t], &r->runs[i][w][ROCKSDB]);
    return spread_of(values, r->options->runs);
}

/* ---- growth ---- */

bool figure_grown(const struct report *r, enum growth_target t, enum growth what) {
    bool done = true;
    for (unsigned i = 0; i < r->options->runs; i++) done = done && r->growth[i][t][what][GROWTH_STEPS - 1].requests;
    return done;
}

const char *figure_grower(const struct report *r, enum growth_target t) {
    return target_name(r->options, t == GROWTH_OTHER ? BESIDE : TALLYD);
}

struct spread figure_growth(const struct report *r, enum growth_target t, enum growth what, int step) {
    double values[RUNS_MAX];
    for (unsigned i = 0; i < r->options->runs; i++) values[i] = r->growth[i][t][what][step].best_cpu_us;
    return spread_of(values, r->options->runs);
}

struct spread figure_growth_ratio(const struct report *r, enum growth_target t, enum growth what) {
    double values[RUNS_MAX];
    for (unsigned i = 0; i < r->options->runs; i++) values[i] = growth_ratio(r->growth[i][t][what]);
    return spread_of(values, r->options->runs);
}

bool figure_growth_holds(const struct report *r, enum growth_target t, enum growth what) {
    return growth_holds(what, figure_growth_ratio(r, t, what).median);
}

/* ---- promises ---- */

static double p99_ratio(measures m, enum workload a, enum workload b) {
    return ratio(ms(&m[a][TALLYD], 0.99), ms(&m[b][TALLYD], 0.99));
}

static double cpu_ratio(measures m, enum workload a, enum workload b) {
    return measure_cpu_ratio(&m[a][TALLYD], &m[b][TALLYD]);
}

/* Of the time of all loops. */
static double waited_share(measures m) {
    return ratio(m[LOAD_INSERT4][TALLYD].waited, m[LOAD_INSERT4][TALLYD].r.seconds * atoi(MEASURE_LOOPS));
}

static double promised(measures m, int i) {
    switch (i) {
    case 0: return measure_cpu_ratio(&m[LOAD_SLICE][TALLYD], &m[LOAD_SLICE][ROCKSDB]);
    case 1: return cpu_ratio(m, LOAD_INSERT4, LOAD_INSERT1);
    case 2: return p99_ratio(m, LOAD_BESIDE, LOAD_ALONE);
    case 3: return p99_ratio(m, LOAD_INSERT_BESIDE, LOAD_INSERT_ALONE);
    case 4: return p99_ratio(m, LOAD_LWT_BESIDE, LOAD_LWT_ALONE);
    case 5: return waited_share(m);
    case 6: return cpu_ratio(m, LOAD_READ_METERED, LOAD_READ_UNMETERED);
    case 7: return measure_rate_ratio(&m[LOAD_READ_UNMETERED][TALLYD], &m[LOAD_READ_METERED][TALLYD]);
    case 8: return measure_cpu_ratio(&m[LOAD_SLICE_STORE][TALLYD], &m[LOAD_SLICE_STORE][ROCKSDB]);
    case 9: return ratio(ms(&m[LOAD_DURABLE_ALONE][TALLYD], 0.5), ms(&m[LOAD_DURABLE_ALONE][DISK], 0.5));
    case 10: return ratio(ms(&m[LOAD_DURABLE_ALONE][TALLYD], 0.5), ms(&m[LOAD_DURABLE_ALONE][SYNCED], 0.5));
    default: return cpu_ratio(m, LOAD_READ_SHOWN, LOAD_READ_UNSHOWN);
    }
}

struct promise figure_promise(const struct report *r, int i) {
    static const struct {
        const char *what;
        double bar;
        enum workload needs, than; /* than: measured on than_target */
        enum target than_target;
    } promises[PROMISES] = {
        {"CPU of a slice of 100 that is in memory : loop + RocksDB", 1.5, LOAD_SLICE, LOAD_SLICE, ROCKSDB},
        {"CPU of an insert on 4 loops : on 1", 1.25, LOAD_INSERT4, LOAD_INSERT1, TALLYD},
        {"p99 of a read beside 50 scanning clients : alone", 3, LOAD_BESIDE, LOAD_ALONE, TALLYD},
        {"p99 of an insert beside 50 scanning clients : alone", 3, LOAD_INSERT_BESIDE, LOAD_INSERT_ALONE, TALLYD},
        {"p99 of a condition beside 50 scanning clients : alone", 3, LOAD_LWT_BESIDE, LOAD_LWT_ALONE, TALLYD},
        {"time that 4 inserting loops wait for rows : all", 0.02, LOAD_INSERT4, LOAD_INSERT4, TALLYD},
        {"CPU of a point read, metered and told its charge : not metered", 1.03, LOAD_READ_METERED, LOAD_READ_UNMETERED,
         TALLYD},
        {"requests/s of a point read, not metered : metered and told its charge", 1.03, LOAD_READ_METERED,
         LOAD_READ_UNMETERED, TALLYD},
        {"CPU of a slice of 100 that the store answers : loop + RocksDB", 1.5, LOAD_SLICE_STORE, LOAD_SLICE_STORE,
         ROCKSDB},
        {"p50 of a durable insert alone : of an fdatasync alone", 1.5, LOAD_DURABLE_ALONE, LOAD_DURABLE_ALONE, DISK},
        {"p50 of a durable insert alone : of a loop that only syncs", 1.25, LOAD_DURABLE_ALONE, LOAD_DURABLE_ALONE,
         SYNCED},
        {"CPU of a point read while the live page is open : while it is not", 1.01, LOAD_READ_SHOWN, LOAD_READ_UNSHOWN,
         TALLYD},
    };
    double values[RUNS_MAX];
    struct promise p = {.what = promises[i].what, .bar = promises[i].bar};
    p.measured = !r->options->against && figure_done(r, promises[i].needs, TALLYD) &&
                 figure_done(r, promises[i].than, promises[i].than_target);
    if (!p.measured) return p;
    for (unsigned run = 0; run < r->options->runs; run++) values[run] = promised(r->runs[run], i);
    p.value = spread_of(values, r->options->runs);
    return p;
}

/* ---- the machine ---- */

/* The rest of the first line of a file that begins so; "" when there is none. */
static void read_field(const char *path, const char *key, char *out, size_t cap) {
    char line[256];
    FILE *f = fopen(path, "re");
    *out = 0;
    while (f && !*out && fgets(line, sizeof(line), f)) {
        const char *colon = strchr(line, ':');
        if (strncmp(line, key, strlen(key)) || !colon) continue;
        colon += strspn(colon, ": \t");
        snprintf(out, cap, "%.*s", (int)strcspn(colon, "\n"), colon);
    }
    if (f) fclose(f);
}

void figure_machine(char *out, size_t cap) {
    char cpu[128], memory[64];
    struct utsname u;
    read_field("/proc/cpuinfo", "model name", cpu, sizeof(cpu));
    read_field("/proc/meminfo", "MemTotal", memory, sizeof(memory));
    bool named = !uname(&u);
    snprintf(out, cap, "%ld cores (%s), %.0f GiB, %s %s; RocksDB " TALLY_ROCKSDB_VERSION, sysconf(_SC_NPROCESSORS_ONLN),
             *cpu ? cpu : "unknown", atof(memory) / (1 << 20), named ? u.sysname : "unknown", named ? u.release : "");
}
