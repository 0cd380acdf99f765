/* The plan of a stress: the YAML text of a built-in profile or of a user's file, read and checked.
 *
 *   schema:                       statements that are run first, in order
 *     - CREATE TABLE ...
 *   load:                         rows that are written before; a statement as below, and how many
 *     rows: 1000
 *     cql: INSERT INTO ...
 *     values: [sequence(0..999)]
 *   statements:
 *     - cql: SELECT ...           prepared; a ? for each value
 *       weight: 9                 how often, among the others (1)
 *       consistency: LOCAL_ONE    (LOCAL_QUORUM)
 *       page_size: 100            (5000); the first page is read
 *       values: [zipf(0..999, 1.1), uniform(0..9)]
 *   rate: 500                     requests a second (an open loop); without it as many as are answered (a closed loop)
 *   burst: {every: 10, for: 2, times: 5}    every 10 seconds, for 2 seconds, 5 times the rate
 */
#pragma once

#include "tools/tally/stress/dist.h"

enum { PLAN_STATEMENTS = 32, PLAN_VALUES = 64, PLAN_SCHEMA = 64 };

struct plan_statement {
    const char *cql;
    uint64_t weight, page_size;
    uint64_t rows; /* of load: how often it runs; 0 means never */
    uint32_t line;
    uint16_t consistency;
    uint32_t n_values;
    struct dist values[PLAN_VALUES];
    bool reads; /* SELECT */
};

struct plan {
    const char *path;
    uint32_t n_schema;
    const char *schema[PLAN_SCHEMA];
    struct plan_statement load;
    uint32_t n_statements;
    uint64_t total_weight;
    struct plan_statement statements[PLAN_STATEMENTS];
    double rate; /* 0 if a closed loop */
    double burst_every, burst_for, burst_times; /* every 0: none */
    struct arena arena;
};

/* path: name in errors, with the line. Returns -1 with ERR_CONFIG. */
int plan_parse(struct plan *p, const char *path, struct slice text, struct err *e) MUST_CHECK;
/* Reads a plan from a file. */
int plan_open(struct plan *p, const char *path, struct err *e) MUST_CHECK;
void plan_fini(struct plan *p);
/* The rate at a moment of the run, in seconds from its beginning. */
double plan_rate_at(const struct plan *p, double at);
/* The text of a built-in profile; NULL for no such profile. */
const char *plan_profile(const char *name);
/* Appends the names of the built-in profiles, each with a description. */
void plan_profile_names(struct buf *out);
