/* Compiles statements of every kind with the functions that stmt.def names. Inside cql only. */
#pragma once

#include "cql/request/statement.h"

/* ERR_INVALID for a kind that is not executed, and for what Keyspaces refuses. */
struct cql_statement *cql_compile(struct compile *c, const struct ast_stmt *ast) MUST_CHECK;
