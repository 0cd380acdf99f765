/* What one run of tally-bench measures: every workload on every target, a target being a kind of
 * server.
 *
 * Servers are started for each configuration (durability, event loops) that the asked workloads
 * need, filled, measured, stopped. What is compared runs at once and is measured in short turns
 * (tallyd and its ceilings, tallyd and a server beside it, tallyd and another program, the two of a
 * pair), now this one first, now the other, so that what else the machine does meets all; a ratio
 * of two such is the median of those of their turns.
 */
#pragma once

#include <sys/types.h>

#include "tests/bench/drive.h"

enum target { CANNED, ROCKSDB, DISK, SYNCED, TALLYD, AGAINST, BESIDE, TARGETS };

#define MEASURE_LOOPS "4" /* of LOOPS4 */

struct bench_options {
    const char *tallyd, *against; /* against NULL: ceilings are measured */
    const char *metering, *write_size; /* of tallyd alone, against one that knows neither; NULL: as it is */
    const char *host, *name;      /* of BESIDE; host NULL: none */
    uint16_t port;
    pid_t pid;
    const char *workloads; /* names with commas between; NULL: all */
    const char *data_dir;  /* where large data stay; NULL: scratch folders */
    uint64_t growth;       /* the most rows that are stored for it; 0: it is not measured */
    uint64_t rows;         /* of the largest table that is read; 0: it is not measured */
    const char *report;    /* the folder of the page; NULL: none */
    unsigned connections, in_flight, runs;
    double seconds;
    bool beside_only; /* nothing else is measured, and there is no warm-up */
    bool json;
};

enum { MEASURE_TURNS = 40 };

struct measure {
    struct drive_result r;
    uint64_t cpu_ns;
    double waited; /* seconds that threads waited for each other's rows and partitions */
    unsigned n_turns;
    struct {
        double cpu_us, per_second;
    } turns[MEASURE_TURNS];
};

static inline double measure_per_second(const struct measure *m) {
    return m->r.seconds > 0 ? (double)m->r.requests / m->r.seconds : 0;
}
static inline double measure_cpu_us(const struct measure *m) {
    return m->r.requests ? (double)m->cpu_ns / 1e3 / (double)m->r.requests : 0;
}
/* Of CPU per request, and of requests per second: the median of the ratios of turns that lay side
 * by side, else that of the sums. 0: it is not known. */
double measure_cpu_ratio(const struct measure *x, const struct measure *y);
double measure_rate_ratio(const struct measure *x, const struct measure *y);

typedef struct measure measures[WORKLOADS][TARGETS]; /* no requests: not measured */

/* Whether it is one of --workload's names. */
bool bench_asked(const struct bench_options *o, const char *name);
const char *target_name(const struct bench_options *o, enum target t);
/* backwards: who is started, filled and warmed first otherwise is the last one, for that may make a
 * difference. 0 / -1: a request failed or a server did not start, said on stderr. */
int measure_all(const struct bench_options *o, bool backwards, measures m);
/* Start to first answered query, and memory before any load. */
int measure_start(const struct bench_options *o, double *seconds, uint64_t *rss_kib);
