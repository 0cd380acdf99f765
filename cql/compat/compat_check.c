#include "cql/compat/compat_check.h"

#include "cql/syntax/ast_other.h"

static const enum refusal_id rules[STMT_KINDS] = {
#define STMT(id, words, functions, permission, resource, rule, ...) [STMT_##id] = rule,
#include "cql/syntax/stmt.def"
#undef STMT
};

enum refusal_id compat_rule_of(enum stmt_kind kind) { return rules[kind]; }

const struct schema_table *compat_table(struct compile *c, const struct ast_name *name) {
    const char *keyspace = name->keyspace ? name->keyspace : c->keyspace;
    compat_is_of(&c->compat, keyspace, name->name);
    return keyspace ? schema_table_any(c->schema, keyspace, name->name) : NULL;
}

static int check_operators(struct compile *c, const struct ast_stmt *ast) {
    const struct ast_name *table = ast_table(ast);
    const struct ast_where *where = ast_where(ast);
    const struct ast_conditions *conditions = ast_conditions(ast);
    for (uint32_t i = 0; ast->kind == STMT_BATCH && i < ast->batch.n; i++)
        if (check_operators(c, ast->batch.stmts[i])) return -1;
    if (!table || !where) return 0;
    (void)compat_table(c, table);
    if (compat_check_operators(c, where->relations, where->n, false)) return -1;
    return conditions ? compat_check_operators(c, conditions->relations, conditions->n, true) : 0;
}

int compat_check_kind(struct compile *c, const struct ast_stmt *ast) {
    if (LIKELY(c->compat.mode == COMPAT_OFF)) return 0;
    if (check_operators(c, ast)) return -1;
    bool create = ast->kind == STMT_CREATE_TABLE, alter = ast->kind == STMT_ALTER_TABLE;
    const struct ast_alter_table *a = &ast->alter_table;
    enum refusal_id rule = rules[ast->kind];
    if (create && ast->create_table.props.compact_storage) rule = REFUSE_COMPACT_STORAGE;
    else if (alter && a->op == ALTER_TABLE_DROP) rule = REFUSE_ALTER_DROP;
    else if (alter && a->op == ALTER_TABLE_RENAME) rule = REFUSE_ALTER_RENAME;
    else if (alter && (a->op == ALTER_TABLE_MASK || a->op == ALTER_TABLE_DROP_MASK)) rule = REFUSE_MASK;
    const struct ast_column *columns = create ? ast->create_table.columns : alter ? a->columns : NULL;
    for (uint32_t i = 0; columns && i < (create ? ast->create_table.n_columns : a->n_columns); i++)
        if (columns[i].masked && rule == rules[ast->kind]) rule = REFUSE_MASK;
    const struct ast_name *named = ast_any_table(ast);
    if (named) (void)compat_table(c, named);
    if (rule != REFUSALS) return compat_refuse(&c->compat, rule, c->err, stmt_words(ast->kind));
    bool conditional = alter && (a->if_exists || a->column_if_exists || a->column_if_not_exists);
    if (ast->kind == STMT_ALTER_KEYSPACE) conditional = ast->keyspace.if_exists;
    return conditional ? compat_refuse(&c->compat, REFUSE_ALTER_IF, c->err, stmt_words(ast->kind)) : 0;
}

int compat_check_prepare(struct compat *k, const struct ast_stmt *ast, struct err *e) {
    if (stmt_is_data(ast->kind)) return 0;
    k->statement = ast->source;
    return compat_refuse(k, REFUSE_PREPARED_DDL, e, stmt_words(ast->kind));
}

int compat_check(struct compile *c, const struct ast_stmt *ast) {
    static int (*const checks[STMT_KINDS])(struct compile *, const struct ast_stmt *) = {
#define STMT(id, words, functions, permission, resource, rule, checks, ...) [STMT_##id] = compat_check_##checks,
#include "cql/syntax/stmt.def"
#undef STMT
    };
    return LIKELY(c->compat.mode == COMPAT_OFF) ? 0 : checks[ast->kind](c, ast);
}

int compat_check_nothing(struct compile *c, const struct ast_stmt *ast) {
    (void)c;
    (void)ast;
    return 0;
}

/* USING TIMESTAMP of the batch is that of each of its statements. */
int compat_check_batch(struct compile *c, const struct ast_stmt *ast) {
    const struct ast_batch *batch = &ast->batch;
    for (uint32_t i = 0; i < batch->n; i++) {
        const struct schema_table *t = compat_table(c, ast_table(batch->stmts[i]));
        if (batch->using.timestamp && t && !schema_has_client_timestamps(t) &&
            compat_refuse(&c->compat, REFUSE_TIMESTAMP, c->err))
            return -1;
        if (compat_check(c, batch->stmts[i])) return -1;
    }
    return 0;
}
