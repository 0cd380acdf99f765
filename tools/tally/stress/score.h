/* The results of a stress: sums by second, by statement and by partition. One thread. */
#pragma once

#include "tools/client/hist.h"
#include "tools/tally/stress/plan.h"

enum { SCORE_PARTITIONS = 1 << 16, SCORE_LABEL = 48, SCORE_HOTTEST = 10 };

enum score_result { SCORE_OK, SCORE_THROTTLED, SCORE_FAILED };

struct score_sums {
    uint64_t requests, throttled, failed, retries, rows;
    double read_units, write_units;
};

struct score_second {
    struct score_sums sums;
    uint64_t p50_ns, p99_ns, max_ns;
};

struct score_statement {
    struct score_sums sums;
    struct hist latency;
};

/* The sums of a partition, and the peaks of its busiest seconds. */
struct score_partition {
    uint64_t hash; /* 0 if free */
    char label[SCORE_LABEL];
    struct score_sums sums;
    uint32_t second;
    double entities_now, read_now, write_now;
    double entities_peak, read_peak, write_peak;
};

struct score {
    uint32_t n_statements;
    struct score_sums sums;
    struct hist latency, now; /* of all; of the current second */
    struct score_second *seconds;
    size_t n_seconds, cap_seconds;
    struct score_second current;
    uint32_t second; /* since the beginning */
    bool told;       /* the server reports charges */
    struct score_statement *statements;
    struct score_partition *partitions;
    size_t n_partitions;
    uint64_t not_followed; /* requests of partitions beyond SCORE_PARTITIONS / 2 */
    char first_error[256];
};

/* -1 without memory. */
int score_init(struct score *s, uint32_t n_statements) MUST_CHECK;
void score_fini(struct score *s);

struct score_event {
    uint32_t second, statement;
    enum score_result result;
    bool reads, retried; /* retried: another try follows */
    uint64_t latency_ns, rows;
    double charge;    /* below 0: not reported */
    double entities;  /* of 1 KiB, scanned or written; below 0: not reported */
    uint64_t partition; /* hash; 0 if unknown */
};
/* Adds an answer. Returns the partition's entry when it is new, for the caller to set its label;
 * else NULL. */
struct score_partition *score_add(struct score *s, const struct score_event *v);
/* Ends the last second. */
void score_end(struct score *s);
/* Fills out with the busiest partitions by entities in their busiest second. Returns how many. */
size_t score_hottest(const struct score *s, const struct score_partition *out[SCORE_HOTTEST]);
