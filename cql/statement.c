#include "cql/statement.h"

#include <assert.h>

#include "cql/compat/compat_check.h"
#include "cql/read/select.h"
#include "cql/roles/roles.h"
#include "cql/schema/ddl.h"
#include "cql/write/batch.h"
#include "cql/write/modify.h"

static const struct statement_ops use_ops;

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
    [STMT_RESTORE_TABLE] = &restore_table_ops,
    [STMT_TRUNCATE] = &truncate_ops,
    [STMT_CREATE_TYPE] = &create_type_ops,
    [STMT_ALTER_TYPE] = &alter_type_ops,
    [STMT_DROP_TYPE] = &drop_type_ops,
    [STMT_DESCRIBE] = &describe_ops,
    [STMT_CREATE_ROLE] = &create_role_ops,
    [STMT_ALTER_ROLE] = &alter_role_ops,
    [STMT_DROP_ROLE] = &drop_role_ops,
    [STMT_GRANT] = &grant_ops,
    [STMT_REVOKE] = &revoke_ops,
    [STMT_LIST] = &list_roles_ops,
    [STMT_ADD_IDENTITY] = &identity_ops,
    [STMT_DROP_IDENTITY] = &identity_ops,
    [STMT_CREATE_FUNCTION] = &create_function_ops,
    [STMT_DROP_FUNCTION] = &drop_function_ops,
    [STMT_CREATE_AGGREGATE] = &create_aggregate_ops,
    [STMT_DROP_AGGREGATE] = &drop_function_ops,
    [STMT_DROP_INDEX] = &drop_thing_ops,
    [STMT_DROP_VIEW] = &drop_thing_ops,
    [STMT_DROP_TRIGGER] = &drop_thing_ops,
};

static const struct {
    enum { RUNS, REFUSED } state;
    const char *feature;
} rows[STMT_KINDS] = {
#define STMT(id, words, state, feature) [STMT_##id] = {state, feature},
#include "cql/syntax/stmt.def"
#undef STMT
};

struct cql_statement *cql_compile(struct compile *c, const struct ast_stmt *ast) {
    const struct statement_ops *ops = ops_of_kind[ast->kind];
    assert((rows[ast->kind].state == RUNS) == (ops != NULL));
    c->compat.statement = ast->source;
    if (compat_check_kind(c, ast)) return NULL;
    if (rows[ast->kind].state == REFUSED) {
        err_invalid(c->err, "%s is not yet supported.", rows[ast->kind].feature);
        return NULL;
    }
    struct cql_statement *s = statement_compile(c, ast, ops);
    if (!s || (!s->late && compat_check(c, ast))) return NULL;
    s->compat = c->compat;
    s->compat.notes = NULL;
    return s;
}

/* ---- USE ---- */

static int use_check(struct compile *c, const struct ast_stmt *ast) {
    (void)c;
    (void)ast;
    return 0;
}

static int use_compile(struct compile *c, const struct ast_stmt *ast, struct cql_statement *out) {
    (void)out;
    const struct schema_keyspace *ks = schema_keyspace_find(c->schema, ast->use.keyspace);
    if (ks && ks->status != SCHEMA_CREATING) return 0;
    if (ks && !c->schema->cassandra_mode) return err_invalid(c->err, "unconfigured keyspace %s", ast->use.keyspace);
    return err_invalid(c->err, "Keyspace '%s' does not exist", ast->use.keyspace);
}

static enum cql_outcome use_apply(struct cql_request *r) {
    const char *name = r->compiled->ast->use.keyspace;
    memcpy(r->session->keyspace, name, strlen(name) + 1);
    r->result = (struct cql_result){.kind = RESULT_SET_KEYSPACE, .keyspace = r->session->keyspace};
    return CQL_DONE;
}

static enum cql_outcome use_run(struct cql_request *r, const struct cql_statement *s) {
    const char *name = s->ast->use.keyspace;
    if (strlen(name) >= sizeof(r->session->keyspace)) {
        err_invalid(r->err, "Keyspace '%s' does not exist", name);
        return CQL_FAILED;
    }
    r->apply = use_apply;
    return CQL_DONE;
}

static const struct statement_ops use_ops = {.compile = use_compile, .run = use_run, .check = use_check};
