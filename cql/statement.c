#include "cql/statement.h"

#include "cql/compat/compat_check.h"
#include "cql/read/select.h"
#include "cql/roles/roles.h"
#include "cql/schema/ddl.h"
#include "cql/write/modify.h"
#include "cql/write/write.h"

static const struct statement_ops use_ops, refused_ops;

static const struct statement_ops *const ops_of_kind[STMT_KINDS] = {
#define STMT(id, words, functions, ...) [STMT_##id] = &functions##_ops,
#include "cql/syntax/stmt.def"
#undef STMT
};

struct cql_statement *cql_compile(struct compile *c, const struct ast_stmt *ast) {
    c->compat.statement = ast->source;
    if (compat_check_kind(c, ast)) return NULL;
    struct cql_statement *s = statement_compile(c, ast, ops_of_kind[ast->kind]);
    /* A caller that collects every fault gets those of a statement that does not compile, too. */
    if (!s && c->compat.notes && !c->compat.report) (void)!compat_check(c, ast);
    if (!s || (!s->late && compat_check(c, ast))) return NULL;
    s->compat = c->compat;
    s->compat.notes = NULL;
    return s;
}

static int refused_compile(struct compile *c, const struct ast_stmt *ast, struct cql_statement *out) {
    (void)out;
    return ddl_refuse(c, stmt_words(ast->kind));
}

static const struct statement_ops refused_ops = {.compile = refused_compile};

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
    if (ks && !c->schema->cassandra_mode) {
        (void)err_invalid(c->err, "unconfigured keyspace %s", ast->use.keyspace);
        return err_about(c->err, ast->use.keyspace, "");
    }
    return err_invalid(c->err, "Keyspace '%s' does not exist", ast->use.keyspace);
}

static enum cql_outcome use_apply(struct cql_run *r) {
    const char *name = r->compiled->ast->use.keyspace;
    memcpy(r->session->keyspace, name, strlen(name) + 1);
    r->answer.result = (struct cql_result){.kind = RESULT_SET_KEYSPACE, .keyspace = r->session->keyspace};
    return CQL_DONE;
}

static enum cql_outcome use_run(struct cql_run *r, const struct cql_statement *s) {
    const char *name = s->ast->use.keyspace;
    if (strlen(name) >= sizeof(r->session->keyspace)) {
        err_invalid(r->err, "Keyspace '%s' does not exist", name);
        return CQL_FAILED;
    }
    r->apply = use_apply;
    return CQL_DONE;
}

static const struct statement_ops use_ops = {.compile = use_compile, .run = use_run, .check = use_check};
