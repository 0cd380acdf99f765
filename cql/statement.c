#include "cql/statement.h"

static const struct statement_ops *const ops_of_kind[STMT_KINDS] = {
    [STMT_SELECT] = &select_ops,
    [STMT_INSERT] = &insert_ops,
    [STMT_UPDATE] = &update_ops,
    [STMT_DELETE] = &delete_ops,
    [STMT_BATCH] = &batch_ops,
    [STMT_USE] = &use_ops,
    [STMT_CREATE_KEYSPACE] = &create_keyspace_ops,
    [STMT_ALTER_KEYSPACE] = &alter_keyspace_ops,
    [STMT_DROP_KEYSPACE] = &drop_keyspace_ops,
    [STMT_CREATE_TABLE] = &create_table_ops,
    [STMT_ALTER_TABLE] = &alter_table_ops,
    [STMT_DROP_TABLE] = &drop_table_ops,
    [STMT_DESCRIBE] = &describe_ops,
};

static const char *const features[STMT_KINDS] = {
#define STMT(id, words, state, feature) [STMT_##id] = feature,
#include "cql/stmt.def"
#undef STMT
};

struct cql_statement *statement_compile(struct compile *c, const struct ast_stmt *ast) {
    const struct statement_ops *ops = ops_of_kind[ast->kind];
    struct cql_statement *s = ARENA_NEW(c->arena, struct cql_statement);
    if (!ops) {
        err_invalid(c->err, "%s is not yet supported.", features[ast->kind]);
        return NULL;
    }
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
    s->ast = ast;
    s->schema = c->schema;
    if (ops->compile(c, ast, s)) return NULL;
    s->binds = *c->binds;
    return s;
}

const struct schema_table *statement_table(struct compile *c, const struct ast_name *name) {
    const char *keyspace = name->keyspace ? name->keyspace : c->keyspace;
    if (!keyspace || !*keyspace) {
        err_invalid(c->err, "No keyspace has been specified. USE a keyspace, or explicitly specify keyspace.tablename");
        return NULL;
    }
    return schema_table_find(c->schema, keyspace, name->name, c->err);
}

enum cql_outcome statement_run(struct cql_request *r, const struct cql_statement *s) {
    const struct schema_table *t = s->table;
    if (t && r->cost) {
        r->cost->keyspace = t->keyspace->name;
        r->cost->table = t->name;
        r->cost->n_columns = (uint16_t)t->n_columns;
        r->cost->is_system = t->keyspace->is_system;
    }
    return ops_of_kind[s->kind]->run(r, s);
}

/* ---- USE ---- */

static int use_compile(struct compile *c, const struct ast_stmt *ast, struct cql_statement *out) {
    (void)out;
    if (schema_keyspace_find(c->schema, ast->use.keyspace)) return 0;
    return err_invalid(c->err, "Keyspace '%s' does not exist", ast->use.keyspace);
}

static enum cql_outcome use_run(struct cql_request *r, const struct cql_statement *s) {
    const char *name = s->ast->use.keyspace;
    size_t n = strlen(name);
    if (n >= sizeof(r->session->keyspace)) {
        err_invalid(r->err, "Keyspace '%s' does not exist", name);
        return CQL_FAILED;
    }
    memcpy(r->session->keyspace, name, n + 1);
    r->result = (struct cql_result){.kind = RESULT_SET_KEYSPACE, .keyspace = r->session->keyspace};
    return CQL_DONE;
}

const struct statement_ops use_ops = {.compile = use_compile, .run = use_run};
