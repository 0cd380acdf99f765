#include "cql/schema/ddl.h"

/* DROP TABLE and DROP TYPE. */
static int compile_drop(struct compile *c, const struct ast_stmt *ast, struct cql_statement *out) {
    enum catalog_op op = ast->kind == STMT_DROP_TYPE ? CATALOG_DROP_TYPE : CATALOG_DROP_TABLE;
    return ddl_change_of(c, op, &ast->drop.name, ast->drop.if_exists, out) ? 0 : -1;
}

static int check_drop(struct compile *c, const struct ast_stmt *ast) { return ddl_check(c, &ast->drop.name); }

const struct statement_ops drop_ops = {.compile = compile_drop, .check = check_drop};
