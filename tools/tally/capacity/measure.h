/* Runs a workload's statements in worlds (world.h) and gathers their results: sizes in both models,
 * units, rules. The worlds compute all sizes and units.
 *
 * Life of a statement: it gets its own worlds with the schema. The partitions of its requests are
 * filled with rows. Then it runs once for each sample, with other values each time: keys drawn as
 * the workload says, other columns generated (literal.h) or taken from sample rows. One more world,
 * with the refusals of Amazon Keyspaces, shows whether the statement would be refused.
 */
#pragma once

#include <stdio.h>

#include "tools/tally/capacity/sample.h"
#include "tools/tally/capacity/workload.h"
#include "tools/tally/pricing.h"

enum { MODELS = 2 }; /* enum size_model */

struct measure_options {
    const char *schema; /* name in errors */
    struct slice text;  /* of the schema */
    const struct pricing *pricing;
    enum size_model model; /* for units and costs */
    uint32_t samples;
    bool guidance; /* partitions are judged by Azure's figure for entities, too */
    /* gets a line of JSON for every statement that is run, with its cost by model; NULL if none */
    FILE *record;
};

/* The figures of a statement on one table; a batch over several tables has an entry for each. */
struct measured {
    const struct workload_statement *statement;
    /* NULL if unknown, because the statement could not be planned */
    const struct schema_table *table;
    const struct workload_table *input;
    const struct key_distribution *keys; /* of its requests, over the partitions of the table; NULL if not measured */
    uint32_t plan_table;     /* which of the statement's tables this is, from 0 */
    enum stmt_kind kind;
    enum query_class query_class;
    struct {
        struct spread row_bytes, static_bytes, read_units, write_units;
        uint64_t rules;
    } of[MODELS];
    uint32_t samples;
    const double *reads[MODELS], *writes[MODELS]; /* units of each sample; NULL if not known by that model */
    double ttl_s; /* seconds after which the rows that it writes expire; 0 if never, or it writes no new rows */
    double entities, pages; /* on average */
    double ttl_deletes;     /* units charged when the data of one request expires */
    double stretched;       /* factor from the scanned part of the table to all of it; 1 if all was scanned */
    bool by_partition;      /* the statement names its partition */
    const char *refused;    /* the error text of Amazon Keyspaces; NULL if not refused */
    const char *unknown;    /* why there are no figures; NULL if there are */
};

struct measured_table {
    const struct schema_table *table;
    const struct workload_table *input; /* NULL if no input says anything of it */
    uint64_t partitions, rows; /* 0 if not known */
    double stored_bytes[MODELS]; /* of all rows; below 0: not known */
    /* The size of the rows that expire, once as many expire as are written; 0 if there are none. */
    double steady_rows, steady_bytes[MODELS];
    const char *unknown;
};

/* A definition of the schema that Amazon Keyspaces would refuse. */
struct measured_refusal {
    struct measured_refusal *next;
    uint32_t line;
    const char *words, *text;
};

struct measure {
    struct measure_options o;
    struct workload *w;
    struct world *base; /* with the schema and no rows */
    const struct schema *schema;
    uint32_t n_statements; /* measured */
    struct measured *statements;
    uint32_t n_tables;
    struct measured_table *tables;
    struct measured_refusal *refusals;
};

/* Reads the schema. Returns -1 with ERR_CONFIG with file and line. */
int measure_open(struct measure *m, const struct measure_options *o, struct workload *w, struct err *e) MUST_CHECK;
/* Makes a world with the schema. Failing definitions are skipped, as measure_open has reported
 * them. */
struct world *measure_world(const struct measure *m, enum size_model model, bool strict, struct err *e) MUST_CHECK;
/* Measures all statements and tables; the inputs must be complete. progress, which may be NULL, is
 * called after each statement. */
/* The larger one of stored_bytes and steady_bytes. */
double measure_storage(const struct measured_table *t, enum size_model model);
int measure_run(struct measure *m, void (*progress)(uint32_t done, uint32_t of), struct err *e) MUST_CHECK;
void measure_close(struct measure *m);
/* Computes the spread of n values; the arena holds a sorted copy. */
void spread_of(const double *values, uint32_t n, struct arena *a, struct spread *out);
/* The table by name; NULL if the schema has none. */
const struct schema_table *measure_table(const struct measure *m, const char *keyspace, const char *name);
/* The workload that the inputs give for the table; NULL if there is none. */
const struct workload_table *measure_input(const struct measure *m, const struct schema_table *t);
/* "customer = 7 AND region = '7'": the key of the partition with that rank. */
int measure_key(const struct measured *s, uint64_t rank, struct buf *out, struct err *e) MUST_CHECK;
