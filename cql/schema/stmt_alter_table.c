#include "cql/expr/term.h"
#include "cql/schema/ddl.h"

/* These faults are reported before whether the table exists. */
static int check_first(struct compile *c, const struct ast_alter_table *a) {
    if (a->op == ALTER_TABLE_MASK) return ddl_fail(c, DDL_MASKED);
    return a->op == ALTER_TABLE_WITH ? table_props_kinds(c, &a->props) : 0;
}

static int add_columns(struct compile *c, const struct ast_alter_table *a, const struct schema_table *table,
                       struct catalog_change *change) {
    struct catalog_column *columns = ARENA_ARRAY(c->arena, a->n_columns, struct catalog_column);
    if (!columns) return err_nomem(c->err);
    change->n_columns = a->n_columns;
    change->columns = columns;
    change->column_conditional = a->column_if_not_exists;
    for (uint32_t i = 0; i < a->n_columns; i++) {
        if (a->columns[i].masked) return ddl_fail(c, DDL_MASKED);
        if (ddl_column(c, change->keyspace, &a->columns[i], &columns[i])) return -1;
        /* faults are reported column by column */
        if (a->column_if_not_exists && schema_column_find(table, columns[i].name)) continue;
        if (catalog_check_added(table, &columns[i], c->schema->cassandra_mode, c->err) ||
            ddl_check_nested(c, &columns[i], true) ||
            catalog_check_comes_back(table, &columns[i], c->schema->cassandra_mode, c->arena, c->err))
            return -1;
    }
    return 0;
}

static int drop_columns(struct compile *c, const struct ast_alter_table *a, struct catalog_change *change) {
    const char **names = ARENA_ARRAY(c->arena, a->n_columns, const char *);
    if (!names) return err_nomem(c->err);
    for (uint32_t i = 0; i < a->n_columns; i++) names[i] = a->columns[i].name;
    change->n_drops = a->n_columns;
    change->drops = names;
    change->drop_us = ENG_NO_TS;
    change->column_conditional = a->column_if_exists;
    if (!a->drop_timestamp) return 0;
    struct receiver to = {.keyspace = change->keyspace, .table = change->name, .name = "[timestamp]",
                          .type = cql_type_scalar(CQL_BIGINT)};
    const struct term *t = term_compile(c, a->drop_timestamp, &to);
    if (!t) return -1;
    change->drop_us = (int64_t)load_u64(t->value.p);
    return 0;
}

static int compile_alter_table(struct compile *c, const struct ast_stmt *ast, struct cql_statement *out) {
    const struct ast_alter_table *a = &ast->alter_table;
    struct catalog_change *change = ddl_change_of(c, CATALOG_ALTER_TABLE, &a->table, a->if_exists, out);
    if (!change || check_first(c, a)) return -1;
    const struct schema_table *table = schema_table_any(c->schema, change->keyspace, change->name);
    if (!table || table->keyspace->is_system) return 0; /* the catalogue reports the error */
    switch (a->op) {
    case ALTER_TABLE_ADD: return add_columns(c, a, table, change);
    case ALTER_TABLE_WITH: {
        const struct setting_context x = ddl_settings(c);
        change->at_once = a->at_once;
        change->targets = a->targets;
        change->settings = table_props_settings(c, &a->props, table);
        if (!change->settings || table_id(c, &a->props, change)) return -1;
        if (change->has_id) return ddl_fail(c, DDL_TABLE_ID_STAYS);
        return settings_refuse_several(&x, change->settings);
    }
    case ALTER_TABLE_ADD_TAGS: case ALTER_TABLE_DROP_TAGS: {
        struct table_settings *s = ARENA_NEW(c->arena, struct table_settings);
        if (!s) return err_nomem(c->err);
        if (c->schema->cassandra_mode) return ddl_refuse(c, "TAGS");
        if (prop_tags(c, a->tags, &s->tags)) return -1;
        change->at_once = true; /* Terraform sends UntagResource, TagResource and UpdateTable without a wait between */
        s->given = SETTING_BIT(tags);
        if (a->op == ALTER_TABLE_ADD_TAGS) change->settings = s;
        else change->removed_tags = s->tags;
        return 0;
    }
    case ALTER_TABLE_ALTER_TYPE: return ddl_fail(c, DDL_COLUMN_TYPE_STAYS);
    case ALTER_TABLE_DROP: return drop_columns(c, a, change);
    case ALTER_TABLE_RENAME:
        change->n_renames = a->n_renames;
        change->rename_from = a->rename_from;
        change->rename_to = a->rename_to;
        change->column_conditional = a->column_if_exists;
        return 0;
    case ALTER_TABLE_DROP_COMPACT_STORAGE:
        return ddl_fail(c, DDL_NO_COMPACT);
    case ALTER_TABLE_MASK: break;
    case ALTER_TABLE_DROP_MASK: /* no column has one */
        if (a->column_if_exists || schema_column_find(table, a->columns[0].name)) return 0;
        return ddl_fail(c, DDL_MASK_UNKNOWN, a->columns[0].name, table->name);
    }
    return 0;
}

static int check_alter_table(struct compile *c, const struct ast_stmt *ast) {
    return ddl_check(c, ast) || check_first(c, &ast->alter_table) ? -1 : 0;
}

const struct statement_ops alter_table_ops = {.compile = compile_alter_table, .check = check_alter_table};
