/* What one run of tally-bench measures: every workload on every target, a target being a kind of server.
 *
 * A server is started for each configuration (durability, event loops) that the asked workloads need, filled, measured, stopped.
 * Against another program, two servers run and are measured in turns, so that what else the machine does meets both.
 */
#pragma once

#include <sys/types.h>

#include "tests/bench/drive.h"

enum target { CANNED, ROCKSDB, TALLYD, AGAINST, OTHER, TARGETS };

#define MEASURE_LOOPS "4" /* of LOOPS4 */

struct bench_options {
    const char *tallyd, *against; /* against NULL: ceilings are measured */
    const char *host, *name;      /* of OTHER; host NULL: none */
    uint16_t port;
    pid_t pid;
    const char *workloads; /* names with commas between; NULL: all */
    unsigned connections, in_flight;
    double seconds;
    bool json;
};

struct measure {
    struct drive_result r;
    uint64_t cpu_ns;
    double waited; /* seconds that threads waited for each other's rows and partitions */
};

static inline double measure_per_second(const struct measure *m) { return m->r.seconds > 0 ? (double)m->r.requests / m->r.seconds : 0; }
static inline double measure_cpu_us(const struct measure *m) { return m->r.requests ? (double)m->cpu_ns / 1e3 / (double)m->r.requests : 0; }

typedef struct measure measures[WORKLOADS][TARGETS]; /* no requests: not measured */

bool workload_asked(const struct bench_options *o, enum workload w);
const char *target_name(const struct bench_options *o, enum target t);
/* 0 / -1: a request failed or a server did not start, said on stderr. */
int measure_all(const struct bench_options *o, measures m);
/* Start to first answered query, and memory before any load. */
int measure_start(const struct bench_options *o, double *seconds, uint64_t *rss_kib);
