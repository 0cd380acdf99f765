#include "cql/schema/ddl.h"

static int compile_drop_table(struct compile *c, const struct ast_stmt *ast, struct cql_statement *out) {
    struct catalog_change *change = ddl_change_new(c, CATALOG_DROP_TABLE, out);
    if (!change) return -1;
    change->keyspace = ddl_keyspace(c, &ast->drop.name);
    change->name = ast->drop.name.name;
    change->conditional = ast->drop.if_exists;
    if (!change->keyspace) return -1;
    return ddl_refuse_system(c, change) || ddl_permit(c, out) ? -1 : 0;
}

static int check_drop_table(struct compile *c, const struct ast_stmt *ast) { return ddl_check(c, &ast->drop.name); }

const struct statement_ops drop_table_ops = {compile_drop_table, ddl_run, ddl_more, check_drop_table};
