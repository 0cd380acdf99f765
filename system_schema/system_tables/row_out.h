/* Builds rows of system tables by column name, for the functions that yield them.
 *
 * Life: the reader calls row_out_init and passes it to the table's function, which for each row calls
 * some row_* functions and row_out_emit. Values that need memory live in the context's arena. A
 * column that the table does not have in the reported release is skipped, so that one function
 * serves all releases.
 */
#pragma once

#include "base/buf.h"
#include "system_schema/system_tables/virtual.h"

struct row_out {
    const struct virtual_context *ctx;
    const struct schema_table *table;
    struct value *values;
    virtual_row_fn row;
    void *arg;
    bool failed; /* no memory */
};

int row_out_init(struct row_out *ro, const struct virtual_context *ctx, const struct schema_table *table,
                 virtual_row_fn row, void *arg) MUST_CHECK;
/* Passes on the row, and begins the next one, whose values are null. Returns what the row function
 * said, or -1 without memory. */
int row_out_emit(struct row_out *ro) MUST_CHECK;
/* True if the statement may want rows with this text in the i-th partition key column. */
bool row_out_wants(const struct row_out *ro, uint32_t i, const char *text);
/* The value that a statement gives a column of the table. */
struct value virtual_given(const struct virtual_change *change, const struct schema_table *t, const char *column);
/* True if all rows with this text in the first key column come before the position from which
 * the statement continues. */
bool row_out_passed(const struct row_out *ro, const char *text);

/* keyspace_name and table_name. */
void row_names(struct row_out *ro, const struct schema_table *t);
void row_text(struct row_out *ro, const char *column, const char *text); /* NULL means null */
void row_text_copy(struct row_out *ro, const char *column, const char *text); /* the same, copied */
void row_bytes(struct row_out *ro, const char *column, struct slice bytes);
void row_bytes_copy(struct row_out *ro, const char *column, const void *p, size_t n);
void row_bool(struct row_out *ro, const char *column, bool v);
void row_int(struct row_out *ro, const char *column, int32_t v);
void row_long(struct row_out *ro, const char *column, int64_t v); /* bigint, timestamp */
void row_double(struct row_out *ro, const char *column, double v);
void row_inet(struct row_out *ro, const char *column, const char *numeric);
/* list<text> or set<text>, in the given order. */
void row_texts(struct row_out *ro, const char *column, uint32_t n, const char *const *texts);
void row_bools(struct row_out *ro, const char *column, uint32_t n, const bool *values); /* list<boolean> */
void row_map(struct row_out *ro, const char *column, uint32_t n, const struct schema_option *entries);
/* A value in its wire form; frees the buffer. */
void row_buf(struct row_out *ro, const char *column, struct buf *b);
