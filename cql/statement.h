/* The statements that run, by kind: which functions compile and run each. Inside cql only. */
#pragma once

#include "cql/request/statement.h"

/* Compiles a tree of any kind; ERR_INVALID for a kind that does not run. */
struct cql_statement *cql_compile(struct compile *c, const struct ast_stmt *ast) MUST_CHECK;
