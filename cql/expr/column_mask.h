/* MASKED WITH: finds the function that a column names and evaluates its arguments as Cassandra does
 * (ColumnMask). */
#pragma once

#include "cql/request/compile.h"

/* column: its name and type, and its table. The result is in the statement's arena. NULL with
 * ERR_INVALID, or with the error of evaluating an argument. */
const struct schema_mask *column_mask_compile(struct compile *c, const struct receiver *column,
                                              const struct ast_column_mask *mask) MUST_CHECK;
