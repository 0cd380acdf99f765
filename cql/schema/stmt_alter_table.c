#include "cql/schema/ddl.h"

static struct option_list *list_new(struct compile *c) {
    struct option_list *l = ARENA_NEW(c->arena, struct option_list);
    if (!l) {
        err_nomem(c->err);
        return NULL;
    }
    l->arena = c->arena;
    l->err = c->err;
    return l;
}

static int add(struct compile *c, const struct ast_alter_table *a, struct catalog_change *change) {
    struct catalog_column *columns = ARENA_ARRAY(c->arena, a->n_columns, struct catalog_column);
    if (!columns) return err_nomem(c->err);
    change->n_columns = a->n_columns;
    change->columns = columns;
    change->column_conditional = a->column_if_not_exists;
    for (uint32_t i = 0; i < a->n_columns; i++)
        if (ddl_column(c, change->keyspace, &a->columns[i], &columns[i]) || ddl_check_nested(c, &columns[i], true)) return -1;
    return 0;
}

static int with(struct compile *c, const struct ast_alter_table *a, const struct schema_table *table, struct catalog_change *change) {
    struct option_list *l = list_new(c);
    if (!l) return -1;
    if (a->props.id) return err_set(c->err, ERR_CONFIG, "Cannot alter table id.");
    if (table_props_options(c, &a->props, table, l) || settings_refuse_several(c, l)) return -1;
    change->n_options = l->n;
    change->options = l->items;
    return 0;
}

static int tags(struct compile *c, const struct ast_alter_table *a, struct catalog_change *change) {
    struct option_list *l = list_new(c);
    if (!l) return -1;
    if (c->schema->cassandra_mode) return ddl_refuse(c, "TAGS");
    if (prop_map(c, "tags", a->tags, false, l) || tags_check(c, l, 0)) return -1;
    if (a->op == ALTER_TABLE_ADD_TAGS) {
        change->n_options = l->n;
        change->options = l->items;
        return 0;
    }
    const char **names = ARENA_ARRAY(c->arena, l->n + 1, const char *);
    if (!names) return err_nomem(c->err);
    for (uint32_t i = 0; i < l->n; i++) names[i] = l->items[i].name;
    change->n_unset = l->n;
    change->unset = names;
    return 0;
}

/* What Cassandra refuses is refused in its words; a statement that would change nothing is no use of the feature. */
static int drop(struct compile *c, const struct ast_alter_table *a, const struct schema_table *table) {
    bool any = false;
    for (uint32_t i = 0; i < a->n_columns; i++) {
        const char *name = a->columns[i].name;
        const struct schema_column *col = schema_column_find(table, name);
        if (!col && a->column_if_exists) continue;
        if (!col) return err_invalid(c->err, "Column %s was not found in table '%s.%s'", name, table->keyspace->name, table->name);
        if (schema_column_is_key(col)) return err_invalid(c->err, "Cannot drop PRIMARY KEY column %s", name);
        any = true;
    }
    return any ? ddl_refuse(c, "ALTER TABLE DROP") : 0;
}

static int rename_columns(struct compile *c, const struct ast_alter_table *a, const struct schema_table *table) {
    const char *keyspace = table->keyspace->name;
    for (uint32_t i = 0; i < a->n_renames; i++) {
        const char *from = a->rename_from[i], *to = a->rename_to[i];
        const struct schema_column *col = schema_column_find(table, from);
        if (!col) return err_invalid(c->err, "Undefined column name %s in table %s.%s", from, keyspace, table->name);
        if (!schema_column_is_key(col)) return err_invalid(c->err, "Cannot rename non PRIMARY KEY column %s", from);
        if (schema_column_find(table, to))
            return err_invalid(c->err, "Cannot rename column %s to %s in table '%s.%s'; another column with that name already exists", from, to,
                               keyspace, table->name);
    }
    return ddl_refuse(c, "ALTER TABLE RENAME");
}

static int compile_alter_table(struct compile *c, const struct ast_stmt *ast, struct cql_statement *out) {
    const struct ast_alter_table *a = &ast->alter_table;
    struct catalog_change *change = ddl_change_new(c, CATALOG_ALTER_TABLE, out);
    if (!change || !(change->keyspace = ddl_keyspace(c, &a->table))) return -1;
    change->name = a->table.name;
    change->conditional = a->if_exists;
    if (a->op == ALTER_TABLE_WITH && table_props_kinds(c, &a->props)) return -1;
    const struct schema_table *table = schema_table_any(c->schema, change->keyspace, change->name);
    if (!table || table->keyspace->is_system) return 0; /* the catalogue says what is to be said */
    switch (a->op) {
    case ALTER_TABLE_ADD: return add(c, a, change);
    case ALTER_TABLE_WITH: return with(c, a, table, change);
    case ALTER_TABLE_ADD_TAGS:
    case ALTER_TABLE_DROP_TAGS: return tags(c, a, change);
    case ALTER_TABLE_ALTER_TYPE: return err_invalid(c->err, "Altering column types is no longer supported");
    case ALTER_TABLE_DROP: return drop(c, a, table);
    case ALTER_TABLE_RENAME: return rename_columns(c, a, table);
    case ALTER_TABLE_DROP_COMPACT_STORAGE: return err_invalid(c->err, "Cannot DROP COMPACT STORAGE on table without COMPACT STORAGE");
    case ALTER_TABLE_MASK:
    case ALTER_TABLE_DROP_MASK: return ddl_refuse(c, "ALTER TABLE MASKED");
    }
    return 0;
}

const struct statement_ops alter_table_ops = {compile_alter_table, ddl_run, ddl_more};
