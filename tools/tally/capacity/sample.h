/* The rows of a table: samples, which are CSV with a line of column names, or JSON objects, one after
 * the other or in an array; and generated rows. */
#pragma once

#include "system_schema/objects/schema.h"
#include "tools/tally/capacity/workload.h"

struct sample_row {
    uint32_t line;
    const char **literals; /* by ordinal of the table's columns; NULL if the row has none there */
};
struct sample {
    const char *path;
    uint32_t n;
    struct sample_row *rows;
};

enum sample_format { SAMPLE_CSV, SAMPLE_JSON };
/* Reads the rows into the arena. Returns -1 with ERR_CONFIG with file and line: an unknown column,
 * a row with too few or too many fields, wrong JSON, or a JSON value that INSERT JSON would refuse.
 * The values of CSV are checked when they are inserted. An empty field of CSV is no value. */
int sample_read(struct arena *a, const char *path, struct slice text, enum sample_format format,
                const struct schema_table *t, struct sample *out, struct err *e) MUST_CHECK;
/* Reads a file; CSV when its name ends with .csv, else JSON. */
int sample_open(struct arena *a, const char *path, const struct schema_table *t, struct sample *out,
                struct err *e) MUST_CHECK;
/* The table named "keyspace.table"; with name NULL, the only table of the schema. Returns NULL with
 * ERR_CONFIG. */
const struct schema_table *sample_table(const struct schema *schema, const char *name, struct err *e) MUST_CHECK;
/* Appends the statement that writes a row. */
void sample_insert(const struct schema_table *t, const struct sample_row *row, struct buf *out);

/* ---- generated rows ---- */

/* The rank of the partition and the number of the row in it decide the key, so the same row always
 * has the same key. */
struct rows {
    const struct schema_table *t;
    const struct workload_table *input;   /* may be NULL */
    const struct workload_value *values;  /* of a statement; precede the table's; may be NULL */
    uint64_t per_partition;               /* at least 1 */
};

/* Appends the literal of a column in a row; n seeds the columns outside the key. Returns 1 if the
 * row has no value there. Returns -1 with ERR_CONFIG. */
int rows_value(const struct rows *r, const struct schema_column *c, uint64_t rank, uint64_t row, uint64_t n,
               struct buf *out, struct err *e) MUST_CHECK;
/* Appends the statement that writes a row with all its columns. With row UINT64_MAX it writes the
 * static data alone, and nothing is appended when there is none. */
int rows_insert(const struct rows *r, uint64_t rank, uint64_t row, uint64_t n, struct buf *out,
                struct err *e) MUST_CHECK;
