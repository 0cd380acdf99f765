/* Makes a table of its parts: what a CREATE or ALTER names, or what a record holds. Inside
 * system_schema only. */
#pragma once

#include "system_schema/objects/schema.h"

/* The parts of a table definition. Key columns come first, in key order; the rest in any order. */
struct table_parts {
    const char *name;
    uint32_t n_columns, n_column_ids;
    struct schema_column *columns; /* sorted in place; become the table's */
    uint32_t n_dropped; /* by id */
    const struct schema_dropped *dropped;
    struct table_settings settings;
};

/* Sorts and numbers the columns and fills the fields that derive from columns.
 * Everything lives in the arena. */
int table_assemble(struct arena *a, const struct table_parts *parts, struct schema_table *out,
                   struct err *e) MUST_CHECK;
