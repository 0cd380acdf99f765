/* Rows of a table as people have them: CSV with a line of column names, or JSON objects, one behind
 * the other or in an array. Their values are what is priced. */
#pragma once

#include "system_schema/schema.h"

struct sample_row {
    uint32_t line;
    const char **literals; /* by ordinal of the table's columns; NULL: the row has none there */
};
struct sample {
    const char *path;
    uint32_t n;
    struct sample_row *rows;
};

enum sample_format { SAMPLE_CSV, SAMPLE_JSON };
/* Into the arena. -1: ERR_CONFIG with file and line: an unknown column, a row that has too few or
 * many fields, JSON that is none. What a value holds is checked where it is inserted. An empty
 * field of CSV is no value. */
int sample_read(struct arena *a, const char *path, struct slice text, enum sample_format format,
                const struct schema_table *t, struct sample *out, struct err *e) MUST_CHECK;
/* The file: CSV when its name ends with .csv. */
int sample_open(struct arena *a, const char *path, const struct schema_table *t, struct sample *out,
                struct err *e) MUST_CHECK;
/* The table that rows are of: "keyspace.table", or with NULL the only one that the schema has. NULL: ERR_CONFIG. */
const struct schema_table *sample_table(const struct schema *schema, const char *name, struct err *e) MUST_CHECK;
/* The statement that writes a row. */
void sample_insert(const struct schema_table *t, const struct sample_row *row, struct buf *out);
