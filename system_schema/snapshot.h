/* How a snapshot is held together: the public schema, the arena it lives in and the count of those who use it.
 *
 * Inside system_schema only. The system keyspaces are shared by all snapshots and live in the catalogue's own arena, so every
 * reference must be dropped before catalog_close.
 */
#pragma once

#include <stdatomic.h>

#include "system_schema/schema.h"

struct snapshot {
    struct schema schema; /* first: a schema pointer is a snapshot pointer */
    atomic_uint refs;
    struct arena arena;
};

/* Empty, with one reference. NULL: no memory. */
struct snapshot *snapshot_new(void) MUST_CHECK;

/* What a table is made of; columns come in key order first, the rest in any order. */
struct table_parts {
    const char *name;
    uint32_t n_columns, n_column_ids;
    struct schema_column *columns; /* sorted in place; become the table's */
    uint32_t n_options;
    const struct schema_option *options;
};

/* Orders the columns, numbers them and derives what the table tells of its options. Everything lives in the arena. */
int table_assemble(struct arena *a, const struct table_parts *parts, struct schema_table *out, struct err *e) MUST_CHECK;

/* The value of an option, or NULL when it has its default. */
const char *option_find(const struct schema_option *options, uint32_t n, const char *name);
