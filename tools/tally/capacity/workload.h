/* What is known of tables and of the statements on them: a workload file's tables and statements,
 * and what other inputs add (nodetool.h, sample.h).
 *
 * Life: workload_init, workload_read for a file, additions, then measure.h runs the statements.
 * Everything lives in its arena.
 */
#pragma once

#include "cql/cql.h"
#include "tools/tally/capacity/keys.h"
#include "tools/tally/capacity/literal.h"

enum { DAY_S = 86400, CURVE_MAX = 288 };

/* Requests a second over the day: straight lines from one time to the next, the last to the first.
 * One point: always the same. */
struct curve {
    uint32_t n;
    struct curve_point {
        uint32_t second; /* of the day */
        double rate;
    } points[CURVE_MAX];
};
double curve_at(const struct curve *c, uint32_t second);
double curve_mean(const struct curve *c);
double curve_most(const struct curve *c);

struct workload_value {
    struct workload_value *next;
    const char *column;
    struct literal_spec spec;
};

struct sample; /* sample.h */

struct workload_partition;

struct workload_table {
    struct workload_table *next;
    const char *keyspace, *name;
    const char *file;
    uint32_t line;
    uint64_t partitions, rows_per_partition; /* 0: not known */
    struct workload_value *values;
    const struct sample *sample; /* NULL: none was given */
    /* of a server, or of a capture of one: */
    double stored_bytes, stored_rows;         /* by the server's size model; has_stored: known */
    bool has_stored;
    double *second_reads, *second_writes; /* units, for as many seconds, from when on the day; NULL: not known */
    uint32_t seconds, begins;
    struct workload_partition *parts; /* the busiest */
    uint32_t n_parts, n_over, n_keys;
};

/* Over all samples; below 0: not known. */
struct spread {
    double p50, p99, most, mean;
};

/* What a server charged: nothing is measured then. */
struct workload_observed {
    const struct schema_table *table;
    struct spread reads, writes, row_bytes, static_bytes;
    uint32_t n; /* executions */
    const double *read_samples, *write_samples;
    uint32_t n_samples;
};

/* What a partition was asked for, or is going to be, in its busiest second. */
struct workload_partition {
    uint64_t rank;
    const char *key; /* NULL: as the rank says */
    double read_units, write_units, entities; /* a second */
    bool over_reads, over_writes, over_entities;
};

struct workload_statement {
    struct workload_statement *next;
    const char *name, *file;
    uint32_t line;
    const char *text; /* with ? for what changes */
    struct curve rate;
    bool has_rate;
    bool new_rows, has_new_rows; /* of an INSERT: of rows that are not there yet */
    /* not of a workload file, but of what nodetool counted: what is not known of it is no mistake */
    bool inferred;
    const struct workload_observed *observed; /* NULL: it is to be measured */
    const char *unknown;         /* why its rate is not known; NULL: it is */
    uint16_t consistency;        /* enum cql_consistency */
    int32_t page_size;           /* 0: 5000 */
    struct keys keys;            /* its n is set when the table is known */
    bool has_keys;
    struct workload_value *values;
};

struct workload {
    struct arena arena;
    struct workload_table *tables;
    struct workload_statement *statements, **statements_end;
    uint32_t n_statements;
};

void workload_init(struct workload *w);
void workload_fini(struct workload *w);
/* -1: ERR_CONFIG with file and line. text of the file, and the name that errors say. */
int workload_read(struct workload *w, const char *path, struct slice text, struct err *e) MUST_CHECK;

/* Makes it when it is not there; NULL: no memory. */
struct workload_table *workload_table(struct workload *w, const char *keyspace, const char *name) MUST_CHECK;
struct workload_statement *workload_add(struct workload *w) MUST_CHECK;
const struct literal_spec *workload_value_find(const struct workload_value *v, const char *column);

/* The whole file; "-" is standard input. The bytes are the caller's to free. -1: ERR_CONFIG. */
int file_read(const char *path, struct slice *out, struct err *e) MUST_CHECK;
