/* The tables and statements of an estimate: those of a workload file, and additions of other inputs
 * (nodetool.h, sample.h, observed.h).
 *
 * Life: workload_init, workload_read for a file, additions, then measure.h runs the statements.
 * Everything lives in the workload's arena.
 */
#pragma once

#include "cql/cql.h"
#include "tools/tally/capacity/keys.h"
#include "tools/tally/literal.h"

enum { DAY_S = 86400, CURVE_MAX = 288 };

/* Requests a second over the day, interpolated linearly between the points, and from the last point
 * to the first of the next day. With one point the rate is constant. */
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
    uint64_t partitions, rows_per_partition; /* 0 if not known */
    struct workload_value *values;
    const struct sample *sample; /* NULL if none was given */
    /* observed by a server or in a capture: */
    double stored_bytes, stored_rows;     /* by the server's size model; valid if has_stored */
    bool has_stored;
    /* of one replica, not compressed, as nodetool counts, and the metadata of its rows; 0 if unknown */
    double cassandra_bytes;
    double sample_bytes;    /* of a row of the sample, encoded, on average; 0 for no sample */
    double *second_reads, *second_writes; /* units of each second; NULL if unknown */
    uint32_t seconds, begins;             /* length of these arrays; second of the day of their first element */
    struct workload_partition *parts; /* the busiest */
    uint32_t n_parts, n_over, n_keys;
};

/* Figures over all samples; below 0: unknown. */
struct spread {
    double p50, p99, most, mean;
};

/* The charges of a server for a statement; they replace a measurement. */
struct workload_observed {
    const struct schema_table *table;
    struct spread reads, writes, row_bytes, static_bytes;
    uint32_t n; /* executions */
    const double *read_samples, *write_samples;
    uint32_t n_samples;
};

/* The load of a partition in its busiest second, observed or expected. */
struct workload_partition {
    uint64_t rank;
    const char *key; /* NULL means derived from the rank */
    double read_units, write_units, entities; /* a second */
    bool over_reads, over_writes, over_entities;
};

struct workload_statement {
    struct workload_statement *next;
    const char *name, *file;
    uint32_t line;
    const char *text; /* with ? or :name for each bind marker */
    struct curve rate;
    bool has_rate;
    bool new_rows, has_new_rows; /* new_rows: an INSERT writes new rows */
    bool inferred;               /* from nodetool's counts: missing inputs are no error */
    const struct workload_observed *observed; /* NULL if the statement is measured */
    const char *unknown;         /* why the rate is unknown; NULL if it is known */
    uint16_t consistency;        /* enum cql_consistency */
    uint64_t page_size;          /* 0 means 5000 */
    struct key_distribution keys;            /* keys.n is set once the table is known */
    bool has_keys;
    struct workload_value *values;
};

/* An assumption of the estimate, or a warning. */
struct note {
    struct note *next;
    const char *text;
};

struct workload {
    struct arena arena;
    struct note *notes, **notes_end;
    struct workload_table *tables;
    struct workload_statement *statements, **statements_end;
    uint32_t n_statements;
};

void workload_init(struct workload *w);
void workload_fini(struct workload *w);
/* Reads the text of a workload file; path is its name in errors. Returns -1 with ERR_CONFIG with
 * file and line. */
int workload_read(struct workload *w, const char *path, struct slice text, struct err *e) MUST_CHECK;

/* Adds a note. Returns -1 if memory is exhausted. */
int workload_note(struct workload *w, struct err *e, const char *format, ...) PRINTF_LIKE(3, 4);
/* Finds a table or adds it; NULL if memory is exhausted. */
struct workload_table *workload_table(struct workload *w, const char *keyspace, const char *name) MUST_CHECK;
struct workload_statement *workload_add(struct workload *w) MUST_CHECK;
const struct literal_spec *workload_value_find(const struct workload_value *v, const char *column);

/* Reads a whole file into the arena; "-" is standard input. Returns -1 with ERR_CONFIG. */
int file_read(struct arena *a, const char *path, struct slice *out, struct err *e) MUST_CHECK;
