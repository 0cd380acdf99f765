/* DROP TABLE, DROP TYPE and TRUNCATE. */
#include "cql/request/db.h"
#include "cql/schema/ddl.h"
#include "cql/syntax/ast_other.h"

static int compile_drop(struct compile *c, const struct ast_stmt *ast, struct cql_statement *out) {
    enum catalog_op op = ast->kind == STMT_DROP_TYPE ? CATALOG_DROP_TYPE : CATALOG_DROP_TABLE;
    return ddl_change_of(c, op, &ast->drop.name, ast->drop.if_exists, out) ? 0 : -1;
}

static int compile_truncate(struct compile *c, const struct ast_stmt *ast, struct cql_statement *out) {
    const struct ast_name *name = &ast->other->truncate.table;
    struct catalog_change *change = ddl_change_new(c, CATALOG_TRUNCATE_TABLE, out);
    if (!change || !(change->keyspace = ddl_keyspace(c, name))) return -1;
    change->name = name->name;
    if (ddl_permit(c, out)) return -1;
    const struct schema_table *t = schema_table_find(c->schema, change->keyspace, change->name, c->err);
    if (!t) return -1;
    if (t->virt && t->virt->erased) { /* the rows are not the engine's: the table erases them itself */
        out->table = t;
        out->change = NULL;
        return 0;
    }
    return t->virt || t->keyspace->is_system
               ? err_invalid(c->err, "Truncation is not supported by table %s.%s", change->keyspace, change->name)
               : 0;
}

static enum cql_outcome erase(struct cql_run *r) {
    const struct cql_statement *s = r->compiled;
    const struct virtual_change change = {.kind = VIRTUAL_TRUNCATE};
    struct virtual_context ctx = db_virtual_context(r);
    return s->table->virt->write(&ctx, s->table, &change) ? CQL_FAILED : CQL_DONE;
}

static enum cql_outcome run_erase(struct cql_run *r, const struct cql_statement *s) {
    (void)s;
    r->answer.work_class = WORK_DDL;
    if (!r->blocking) return CQL_OFFLOAD;
    r->apply = erase;
    return CQL_DONE;
}

const struct statement_ops truncate_ops = {.compile = compile_truncate, .run = run_erase};
const struct statement_ops drop_ops = {.compile = compile_drop, .check = ddl_check};
