/* TRUNCATE. */
#include "cql/schema/ddl.h"
#include "cql/syntax/ast_other.h"

static int compile_truncate(struct compile *c, const struct ast_stmt *ast, struct cql_statement *out) {
    const struct ast_name *name = &ast->other->truncate.table;
    struct catalog_change *change = ddl_change_new(c, CATALOG_TRUNCATE_TABLE, out);
    if (!change || !(change->keyspace = ddl_keyspace(c, name))) return -1;
    change->name = name->name;
    const struct schema_table *t = schema_table_find(c->schema, change->keyspace, change->name, c->err);
    if (!t) return -1;
    return t->virt || t->keyspace->is_system ? err_invalid(c->err, "Truncation is not supported by table %s.%s", change->keyspace, change->name) : 0;
}

const struct statement_ops truncate_ops = {compile_truncate, ddl_run, ddl_more};
