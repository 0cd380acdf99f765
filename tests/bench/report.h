/* The results of a run as a table for people or as JSON for programs, on stdout. */
#pragma once

#include "tests/bench/measure.h"

struct report {
    const struct bench_options *options;
    struct measure (*measures)[TARGETS];
    double start_seconds;
    uint64_t idle_rss_kib;
};

void report_table(const struct report *r);
void report_json(const struct report *r);
