/* Runs a workload's statements in worlds (world.h) and gathers what each came to: sizes in both
 * models, units, rules. No size and no unit is computed here.
 *
 * Life of a statement: worlds of its own are made of the schema, the partitions that its requests
 * go to are filled with rows, and it runs as often as there are samples, each time with other
 * values: keys drawn as the workload says, others made up (literal.h) or taken from a sample of
 * rows. One more world, which refuses what Amazon Keyspaces refuses, says whether it would be
 * refused.
 */
#pragma once

#include <stdio.h>

#include "tools/tally/capacity/sample.h"
#include "tools/tally/capacity/workload.h"
#include "tools/tally/pricing.h"

enum { MODELS = 2 }; /* enum size_model */

struct measure_options {
    const char *schema; /* what errors name */
    struct slice text;  /* of the schema; p NULL: none */
    const struct pricing *pricing;
    enum size_model model; /* that units and costs go by */
    uint32_t samples;
    /* every statement that is run, with what it cost in the model that counts, a JSON object on a
     * line; NULL: nowhere */
    FILE *record;
};

/* A statement, and what of it is of one table: of a batch over several tables there is one for each. */
struct measured {
    const struct workload_statement *statement;
    /* of the schema that measure_schema gives; NULL: not known, as the statement failed */
    const struct schema_table *table;
    const struct workload_table *input;
    const struct keys *keys; /* of its requests, over the partitions of the table; NULL: not measured */
    uint32_t plan_table;     /* which of the statement's tables this is, from 0 */
    enum stmt_kind kind;
    enum query_class query_class;
    struct {
        struct spread row_bytes, static_bytes, read_units, write_units;
        uint64_t rules;
    } of[MODELS];
    uint32_t samples;
    const double *reads, *writes; /* units of each sample, in the model that counts */
    double entities, pages; /* on average */
    double ttl_deletes;     /* units, of one request, once what it wrote has expired */
    double stretched;       /* a scan's units are those of a part of the table, times this; 1: of all of it */
    bool by_partition;      /* it names its partition */
    const char *refused;    /* by Amazon Keyspaces, in its words; NULL: it is not */
    const char *unknown;    /* why it has no figures; NULL: it has */
};

struct measured_table {
    const struct schema_table *table;
    const struct workload_table *input; /* NULL: no input says anything of it */
    uint64_t partitions, rows; /* 0: not known */
    double stored_bytes[MODELS]; /* of all rows; below 0: not known */
    const char *unknown;
};

/* What Amazon Keyspaces would refuse of the schema. */
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

/* Reads the schema. -1: ERR_CONFIG with file and line. */
int measure_open(struct measure *m, const struct measure_options *o, struct workload *w, struct err *e) MUST_CHECK;
/* Another one with the schema, but for what it refuses, which measure_open has noted. */
struct world *measure_world(const struct measure *m, enum size_model model, bool strict, struct err *e) MUST_CHECK;
/* Once inputs are complete. progress may be NULL; it is told how many statements of how many are done. */
int measure_run(struct measure *m, void (*progress)(uint32_t done, uint32_t of), struct err *e) MUST_CHECK;
void measure_close(struct measure *m);
/* Of n values; sorted copies live in the arena. */
void spread_of(const double *values, uint32_t n, struct arena *a, struct spread *out);
/* The table by name; NULL: the schema has none. */
const struct schema_table *measure_table(const struct measure *m, const char *keyspace, const char *name);
/* "customer = 7 AND region = '7'": the key of the partition with that rank. */
int measure_key(const struct measured *s, uint64_t rank, struct buf *out, struct err *e) MUST_CHECK;
