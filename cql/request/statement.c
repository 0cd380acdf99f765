#include "cql/request/statement.h"

struct cql_statement *statement_compile(struct compile *c, const struct ast_stmt *ast,
                                        const struct statement_ops *ops) {
    struct cql_statement *s = ARENA_NEW(c->arena, struct cql_statement);
    if (s && !c->binds->specs) {
        c->binds->n = ast->binds.n;
        c->binds->names = ast->binds.names;
        c->binds->specs = ARENA_ARRAY(c->arena, ast->binds.n + 1, struct receiver);
    }
    if (!s || !c->binds->specs) {
        err_nomem(c->err);
        return NULL;
    }
    s->kind = ast->kind;
    s->ops = ops;
    s->ast = ast;
    s->schema = c->schema;
    s->late = c->prepares && ops->check;
    if (s->late ? ops->check(c, ast) : ops->compile(c, ast, s)) return NULL;
    s->tables = c->tables;
    s->compat = c->compat;
    s->compat.notes = NULL; /* it may outlive the request */
    if (s->table) compat_is_of(&s->compat, s->table->keyspace->name, s->table->name);
    s->binds = *c->binds;
    s->works_on_values = c->binds->worked_on;
    for (uint32_t i = 0; i < s->binds.n && !s->works_on_values; i++) {
        const struct cql_type *t = s->binds.specs[i].type;
        s->works_on_values = t && (t->n_args || t->id == CQL_VARINT || t->id == CQL_DECIMAL);
    }
    return s;
}

const struct schema_table *statement_table(struct compile *c, const struct ast_name *name) {
    const char *keyspace = name->keyspace ? name->keyspace : c->keyspace;
    if (!keyspace || !*keyspace) {
        err_invalid(c->err, "No keyspace has been specified. USE a keyspace, or explicitly specify keyspace.tablename");
        return NULL;
    }
    const struct schema_table *t = schema_table_find(c->schema, keyspace, name->name, c->err);
    struct table_use *use = t ? ARENA_NEW(c->arena, struct table_use) : NULL;
    if (!use) {
        if (t) err_nomem(c->err);
        return NULL;
    }
    *use = (struct table_use){.table = t, .next = c->tables};
    c->tables = use;
    return t;
}
