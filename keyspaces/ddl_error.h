/* The errors of statements that define something, in the words of the mode: one row of
 * ddl_error.def each. */
#pragma once

#include <stdbool.h>

#include "base/err.h"

enum ddl_error_id {
#define DDL_ERROR(id, ...) DDL_##id,
#include "keyspaces/ddl_error.def"
#undef DDL_ERROR
    DDL_ERRORS
};

/* Sets the error and returns -1. Further arguments are those of the row's formats. */
int ddl_error(struct err *e, bool cassandra_mode, enum ddl_error_id id, ...) COLD;
