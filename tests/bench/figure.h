/* The results of the runs of tally-bench, as figures: of several runs the least, the median and the most. */
#pragma once

#include "tests/bench/growth.h"

struct report {
    const struct bench_options *options;
    measures *runs;       /* one for each run */
    growth_costs *growth; /* the same */
    double start_seconds;
    uint64_t idle_rss_kib;
};

struct spread {
    double least, median, most; /* all 0: not measured */
};

enum metric { METRIC_CPU_US, METRIC_PER_SECOND, METRIC_P50_MS, METRIC_P99_MS, METRIC_P999_MS, METRICS };

bool figure_done(const struct report *r, enum workload w, enum target t);
struct spread figure_of(const struct report *r, enum workload w, enum target t, enum metric m);
/* CPU of a request by that of loop + RocksDB. */
struct spread figure_of_ceiling(const struct report *r, enum workload w, enum target t);

bool figure_grown(const struct report *r, enum growth_target t, enum growth what);
const char *figure_grower(const struct report *r, enum growth_target t);
/* Microseconds of CPU a request; how often that of the first step the last one takes. */
struct spread figure_growth(const struct report *r, enum growth_target t, enum growth what, int step);
struct spread figure_growth_ratio(const struct report *r, enum growth_target t, enum growth what);
/* Whether the ratio is what it has to be. */
bool figure_growth_holds(const struct report *r, enum growth_target t, enum growth what);

/* Ratios that are promised. */
struct promise {
    const char *what;
    struct spread value;
    double bar; /* at most */
    bool measured;
};
enum { PROMISES = 12 };
struct promise figure_promise(const struct report *r, int i);

/* The machine, and the versions that were measured. */
void figure_machine(char *out, size_t cap);
