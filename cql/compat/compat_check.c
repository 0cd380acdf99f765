#include "cql/compat/compat_check.h"

#include "cql/syntax/ast_other.h"
#include "keyspaces/quota.h"

static const enum refusal_id NONE = REFUSALS;

/* The rule of a kind that Keyspaces does not have; NONE: it has it. */
static enum refusal_id rule_of_kind(enum stmt_kind kind) {
    switch (kind) {
    case STMT_TRUNCATE: return REFUSE_TRUNCATE;
    case STMT_CREATE_INDEX: case STMT_DROP_INDEX: return REFUSE_INDEX;
    case STMT_CREATE_VIEW: case STMT_ALTER_VIEW: case STMT_DROP_VIEW: return REFUSE_VIEW;
    case STMT_CREATE_FUNCTION: case STMT_DROP_FUNCTION: return REFUSE_UDF;
    case STMT_CREATE_AGGREGATE: case STMT_DROP_AGGREGATE: return REFUSE_UDA;
    case STMT_CREATE_TRIGGER: case STMT_DROP_TRIGGER: return REFUSE_TRIGGER;
    case STMT_CREATE_ROLE: case STMT_ALTER_ROLE: case STMT_DROP_ROLE: case STMT_GRANT: case STMT_REVOKE: case STMT_LIST:
    case STMT_ADD_IDENTITY: case STMT_DROP_IDENTITY: return REFUSE_ROLE;
    case STMT_ALTER_TYPE: return REFUSE_ALTER_TYPE;
    case STMT_DESCRIBE: return REFUSE_DESCRIBE;
    default: return NONE;
    }
}

/* The table that a statement names, which the copy is of from now on. */
static const struct schema_table *of_table(struct compile *c, const struct ast_name *name) {
    const char *keyspace = name->keyspace ? name->keyspace : c->keyspace;
    compat_is_of(&c->compat, keyspace, name->name);
    return keyspace ? schema_table_any(c->schema, keyspace, name->name) : NULL;
}

static bool names_mask(const struct ast_stmt *ast) {
    bool create = ast->kind == STMT_CREATE_TABLE;
    if (!create && ast->kind != STMT_ALTER_TABLE) return false;
    const struct ast_column *columns = create ? ast->create_table.columns : ast->alter_table.columns;
    bool mask = !create && (ast->alter_table.op == ALTER_TABLE_MASK || ast->alter_table.op == ALTER_TABLE_DROP_MASK);
    for (uint32_t i = 0; i < (create ? ast->create_table.n_columns : ast->alter_table.n_columns); i++)
        mask = mask || columns[i].masked;
    return mask;
}

static int check_operators(struct compile *c, const struct ast_name *table, const struct ast_where *where,
                           const struct ast_conditions *conditions) {
    (void)of_table(c, table);
    if (compat_check_operators(c, where->relations, where->n, false)) return -1;
    return conditions ? compat_check_operators(c, conditions->relations, conditions->n, true) : 0;
}

static int check_all_operators(struct compile *c, const struct ast_stmt *ast) {
    switch (ast->kind) {
    case STMT_SELECT: return check_operators(c, &ast->select.table, &ast->select.where, NULL);
    case STMT_UPDATE: return check_operators(c, &ast->update.table, &ast->update.where, &ast->update.conditions);
    case STMT_DELETE: return check_operators(c, &ast->delete_.table, &ast->delete_.where, &ast->delete_.conditions);
    case STMT_BATCH: break;
    default: return 0;
    }
    for (uint32_t i = 0; i < ast->batch.n; i++)
        if (check_all_operators(c, ast->batch.stmts[i])) return -1;
    return 0;
}

int compat_check_kind(struct compile *c, const struct ast_stmt *ast) {
    if (LIKELY(c->compat.mode == COMPAT_OFF)) return 0;
    if (check_all_operators(c, ast)) return -1;
    bool create = ast->kind == STMT_CREATE_TABLE, alter = ast->kind == STMT_ALTER_TABLE;
    const struct ast_alter_table *a = &ast->alter_table;
    enum refusal_id rule = rule_of_kind(ast->kind);
    if (create && ast->create_table.props.compact_storage) rule = REFUSE_COMPACT_STORAGE;
    else if (alter && a->op == ALTER_TABLE_DROP) rule = REFUSE_ALTER_DROP;
    else if (alter && a->op == ALTER_TABLE_RENAME) rule = REFUSE_ALTER_RENAME;
    else if (names_mask(ast)) rule = REFUSE_MASK;
    if (create) (void)of_table(c, &ast->create_table.table);
    if (alter) (void)of_table(c, &a->table);
    if (rule != NONE) return compat_refuse(&c->compat, rule, c->err, stmt_words(ast->kind));
    bool conditional = alter && (a->if_exists || a->column_if_exists || a->column_if_not_exists);
    if (ast->kind == STMT_ALTER_KEYSPACE) conditional = ast->keyspace.if_exists;
    return conditional ? compat_refuse(&c->compat, REFUSE_ALTER_IF, c->err, stmt_words(ast->kind)) : 0;
}

int compat_check_prepare(struct compat *k, const struct ast_stmt *ast, struct err *e) {
    switch (ast->kind) {
    case STMT_SELECT: case STMT_INSERT: case STMT_UPDATE: case STMT_DELETE: case STMT_BATCH: return 0;
    default: k->statement = ast->source; return compat_refuse(k, REFUSE_PREPARED_DDL, e, stmt_words(ast->kind));
    }
}

/* USING TIMESTAMP of the batch is that of each of its statements. */
static int check_batch(struct compile *c, const struct ast_batch *ast) {
    for (uint32_t i = 0; i < ast->n; i++) {
        const struct ast_stmt *s = ast->stmts[i];
        const struct ast_name *name = s->kind == STMT_INSERT   ? &s->insert.table
                                      : s->kind == STMT_UPDATE ? &s->update.table
                                                               : &s->delete_.table;
        const struct schema_table *t = of_table(c, name);
        if (ast->using.timestamp && t && !schema_has_client_timestamps(t) &&
            compat_refuse(&c->compat, REFUSE_TIMESTAMP, c->err))
            return -1;
        if (compat_check(c, s)) return -1;
    }
    return 0;
}

/* A quoted name of a type may hold any characters. */
static int check_create_type(struct compile *c, const struct ast_create_type *ast) {
    const char *name = ast->name.name;
    if (strlen(name) > QUOTA_NAME_LENGTH &&
        compat_refuse(&c->compat, REFUSE_TYPE_NAME, c->err, QUOTA_NAME_LENGTH, name))
        return -1;
    for (uint32_t i = 0; i < ast->n_fields; i++) {
        const char *field = ast->field_names[i];
        if (strlen(field) > QUOTA_FIELD_NAME_LENGTH &&
            compat_refuse(&c->compat, REFUSE_FIELD_NAME, c->err, QUOTA_FIELD_NAME_LENGTH, field))
            return -1;
        if (compat_check_type(c, ast->field_types[i])) return -1;
    }
    return 0;
}

int compat_check(struct compile *c, const struct ast_stmt *ast) {
    if (LIKELY(c->compat.mode == COMPAT_OFF)) return 0;
    switch (ast->kind) {
    case STMT_SELECT: return compat_check_select(c, &ast->select, of_table(c, &ast->select.table));
    case STMT_INSERT: return compat_check_insert(c, &ast->insert, of_table(c, &ast->insert.table));
    case STMT_UPDATE: return compat_check_update(c, &ast->update, of_table(c, &ast->update.table));
    case STMT_DELETE: return compat_check_delete(c, &ast->delete_, of_table(c, &ast->delete_.table));
    case STMT_BATCH: return check_batch(c, &ast->batch);
    case STMT_CREATE_TABLE: return compat_check_create_table(c, &ast->create_table);
    case STMT_ALTER_TABLE: return compat_check_alter_table(c, &ast->alter_table);
    case STMT_RESTORE_TABLE:
        of_table(c, &ast->other->restore.table);
        return compat_check_name(c, "Table", ast->other->restore.table.name);
    case STMT_CREATE_TYPE: of_table(c, &ast->create_type.name); return check_create_type(c, &ast->create_type);
    case STMT_CREATE_KEYSPACE:
        compat_is_of(&c->compat, ast->keyspace.name, NULL);
        return compat_check_name(c, "Keyspace", ast->keyspace.name);
    default: return 0;
    }
}
