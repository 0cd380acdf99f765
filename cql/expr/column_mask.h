/* MASKED WITH: the function that is named for a column, found and its arguments evaluated as
 * Cassandra does it (ColumnMask). */
#pragma once

#include "cql/request/compile.h"

/* column: its name and type, and its table. In the statement's arena. NULL with ERR_INVALID, or
 * what evaluating an argument fails with. */
const struct schema_mask *column_mask_compile(struct compile *c, const struct receiver *column,
                                              const struct ast_column_mask *mask) MUST_CHECK;
