#include <string.h>

#include "base/name_tree.h"
#include "cql/schema/ddl.h"

/* One CREATE TABLE under analysis: columns as declared, key columns marked as they are found. */
struct create {
    struct compile *c;
    const struct ast_create_table *ast;
    const char *keyspace, *name;
    struct catalog_column *declared; /* in the statement's order */
    struct name_tree by_name;        /* their indexes */
    struct catalog_column *ordered;  /* key columns first */
    bool *used;                      /* by declared index: part of the key */
    uint32_t n_ordered;
};

/* These errors name the table as the statement does. The parser has refused a text that names
 * something twice, but a tree may come from elsewhere. */
static int check_read(struct create *t) {
    const struct ast_create_table *a = t->ast;
    struct err *e = t->c->err;
    const char *name = a->table.keyspace ? arena_printf(t->c->arena, "%s.%s", a->table.keyspace, t->name) : t->name;
    if (!name) return err_nomem(e);
    t->by_name.arena = t->c->arena;
    for (uint32_t i = 0; i < a->n_columns; i++) {
        int rc = name_tree_put(&t->by_name, slice_str(a->columns[i].name), i);
        if (rc) return rc < 0 ? err_nomem(e) : ddl_fail(t->c, DDL_SAME_COLUMN, a->columns[i].name, name);
    }
    return a->has_primary_key ? 0 : ddl_fail(t->c, DDL_NO_KEY, name);
}

/* Checked before the catalogue does, because Cassandra reports it before faults of columns. */
static int check_existence(const struct create *t) {
    struct err *e = t->c->err;
    const struct schema_keyspace *ks = schema_keyspace_find(t->c->schema, t->keyspace);
    if (schema_keyspace_is_deleting(t->c->schema, t->keyspace)) return 0; /* the catalogue reports the error */
    if (!ks) return ddl_fail(t->c, DDL_NO_KEYSPACE, t->keyspace);
    if (t->ast->if_not_exists || ks->is_system || !schema_table_any(t->c->schema, t->keyspace, t->name)) return 0;
    ddl_fail(t->c, DDL_TABLE_EXISTS, t->name, t->keyspace);
    return err_about(e, t->keyspace, t->name);
}

static int add_key_column(struct create *t, const char *name, enum schema_column_kind kind) {
    const uint32_t *at = name_tree_find(&t->by_name, slice_str(name));
    if (!at) return ddl_fail(t->c, DDL_KEY_UNKNOWN, name, t->name);
    uint32_t i = *at;
    if (t->used[i]) return ddl_fail(t->c, DDL_KEY_TWICE, name, t->name);
    if (t->declared[i].kind == COLUMN_STATIC) return ddl_fail(t->c, DDL_KEY_STATIC, name);
    const struct cql_type *type = t->declared[i].type;
    if (type->id == CQL_COUNTER) return ddl_fail(t->c, DDL_KEY_COUNTER, name);
    if (cql_type_contains(type, CQL_DURATION)) return ddl_fail(t->c, DDL_KEY_DURATION, name);
    if (cql_type_is_multicell(type)) {
        /* The error shows a type that was given as a class as that class. */
        const struct catalog_column *col = &t->declared[i];
        const struct ast_type *as = t->ast->columns[i].type;
        bool user_type = col->type->id == CQL_UDT;
        struct buf text;
        buf_init(&text, 4096);
        if (as->quoted_class) {
            buf_u8(&text, '\'');
            cql_class_print(slice_str(as->name), &text);
            buf_u8(&text, '\'');
        } else if (user_type) {
            buf_printf(&text, "\"%s.%s\"", col->type->keyspace, col->type->name);
        } else {
            cql_type_print(col->type, &text);
        }
        buf_u8(&text, 0);
        ddl_fail(t->c, user_type ? DDL_KEY_USER_TYPE : DDL_KEY_COLLECTION, col->name,
                  buf_failed(&text) ? "..." : (const char *)text.p);
        buf_fini(&text);
        return -1;
    }
    t->used[i] = true;
    t->declared[i].kind = kind;
    t->ordered[t->n_ordered++] = t->declared[i];
    return 0;
}

static int apply_order(struct create *t) {
    const struct ast_props *p = &t->ast->props;
    struct buf others;
    /* A clustering column of a reversed class is in descending order. */
    for (uint32_t i = 0; i < t->n_ordered; i++) {
        const uint32_t *at = name_tree_find(&t->by_name, slice_str(t->ordered[i].name));
        const struct ast_type *type = at ? t->ast->columns[*at].type : NULL;
        if (type && type->quoted_class && t->ordered[i].kind == COLUMN_CLUSTERING)
            t->ordered[i].desc = cql_class_is_reversed(slice_str(type->name));
    }
    buf_init(&others, 4096);
    for (uint32_t i = 0; i < p->n_order; i++) {
        const char *name = p->order[i].column;
        const uint32_t *at = name_tree_find(&t->by_name, slice_str(name));
        if (!at || t->declared[*at].kind != COLUMN_CLUSTERING)
            buf_printf(&others, "%s%s", others.n ? ", " : "", name);
    }
    buf_u8(&others, 0);
    if (others.n > 1) ddl_fail(t->c, DDL_ORDER_OTHERS, buf_failed(&others) ? "..." : (const char *)others.p);
    buf_fini(&others);
    if (t->c->err->set) return -1;
    struct catalog_column *clustering = t->ordered;
    while (p->n_order && clustering->kind != COLUMN_CLUSTERING) clustering++;
    for (uint32_t i = 0; i < p->n_order; i++) {
        if (strcmp(clustering[i].name, p->order[i].column) != 0) {
            bool named = false;
            for (uint32_t k = 0; k < p->n_order; k++)
                named = named || strcmp(p->order[k].column, clustering[i].name) == 0;
            if (!named) return ddl_fail(t->c, DDL_ORDER_MISSING, clustering[i].name);
            return ddl_fail(t->c, DDL_ORDER_WRONG, clustering[i].name, p->order[i].column);
        }
        clustering[i].desc = p->order[i].desc;
    }
    return 0;
}

static int add_rest(struct create *t) {
    uint32_t n_key = t->n_ordered, counters = 0;
    /* the first by name of the counters that are named by class: they alone make no table of counters */
    const char *by_class = NULL;
    bool said = false;
    for (uint32_t i = 0; i < t->ast->n_columns; i++) {
        if (t->used[i]) continue;
        if (t->declared[i].kind == COLUMN_STATIC && t->ordered[n_key - 1].kind != COLUMN_CLUSTERING)
            return ddl_fail(t->c, DDL_STATIC_USELESS);
        if (ddl_check_nested(t->c, &t->declared[i], false)) return -1;
        bool counter = t->declared[i].type->id == CQL_COUNTER, class = t->ast->columns[i].type->quoted_class;
        counters += counter;
        said = said || (counter && !class);
        if (counter && class && (!by_class || strcmp(t->declared[i].name, by_class) < 0))
            by_class = t->declared[i].name;
        t->ordered[t->n_ordered++] = t->declared[i];
    }
    if (by_class && !said) return ddl_fail(t->c, DDL_ADDED_COUNTER, by_class, t->keyspace, t->name);
    if (counters && counters != t->n_ordered - n_key) return ddl_fail(t->c, DDL_MIXED_COUNTERS);
    return 0;
}

/* Options of the wrong kind, and masks, are reported before whether the table exists. */
static int check_first(struct compile *c, const struct ast_create_table *a) {
    if (table_props_kinds(c, &a->props)) return -1;
    for (uint32_t i = 0; i < a->n_columns; i++)
        if (a->columns[i].masked) return ddl_fail(c, DDL_MASKED);
    return 0;
}

static int compile_create_table(struct compile *c, const struct ast_stmt *ast, struct cql_statement *out) {
    struct create t = {.c = c, .ast = &ast->create_table, .name = ast->create_table.table.name};
    /* Faults of the columns' names are reported before all that needs the schema. */
    if (!(t.keyspace = ddl_keyspace(c, &t.ast->table)) || check_read(&t)) return -1;
    struct catalog_change *change = ddl_change_of(c, CATALOG_CREATE_TABLE, &t.ast->table, t.ast->if_not_exists, out);
    if (!change || check_first(c, t.ast) || check_existence(&t)) return -1;
    if (!(change->settings = table_props_settings(c, &t.ast->props, NULL))) return -1;
    const struct ast_create_table *a = t.ast;
    t.declared = ARENA_ARRAY(t.c->arena, a->n_columns, struct catalog_column);
    t.ordered = ARENA_ARRAY(t.c->arena, a->n_columns, struct catalog_column);
    t.used = ARENA_ARRAY(t.c->arena, a->n_columns, bool);
    if (!t.declared || !t.ordered || !t.used) return err_nomem(t.c->err);
    for (uint32_t i = 0; i < a->n_columns; i++)
        if (ddl_column(t.c, t.keyspace, &a->columns[i], &t.declared[i])) return -1;
    for (uint32_t i = 0; i < a->n_columns && !a->n_partition_key; i++)
        if (a->columns[i].primary_key && add_key_column(&t, a->columns[i].name, COLUMN_PARTITION_KEY)) return -1;
    for (uint32_t i = 0; i < a->n_partition_key; i++)
        if (add_key_column(&t, a->partition_key[i], COLUMN_PARTITION_KEY)) return -1;
    for (uint32_t i = 0; i < a->n_clustering && a->n_partition_key; i++)
        if (add_key_column(&t, a->clustering[i], COLUMN_CLUSTERING)) return -1;
    if (apply_order(&t) || add_rest(&t)) return -1;
    for (uint32_t i = 0; i < t.ast->n_columns && t.ast->props.compact_storage; i++)
        if (t.ast->columns[i].is_static) return ddl_fail(c, DDL_COMPACT_STATIC);
    if (table_id(t.c, &t.ast->props, change)) return -1;
    bool is_counter = t.ordered[t.n_ordered - 1].type->id == CQL_COUNTER;
    if (is_counter && change->settings->default_time_to_live) return ddl_fail(c, DDL_COUNTER_TTL);
    enum { NAME_MAX_LENGTH = 222 }; /* Cassandra 5.0's */
    size_t n = strlen(t.name), most = NAME_MAX_LENGTH;
    if (!ddl_is_word(t.name)) return ddl_fail(c, DDL_TABLE_NAME, t.name, t.keyspace);
    if (n > most) return ddl_fail(c, DDL_TABLE_NAME_LENGTH, t.keyspace, t.name, most, n, t.name);
    if (t.ast->props.compact_storage) return ddl_refuse(c, "COMPACT STORAGE");
    change->n_columns = t.n_ordered;
    change->columns = t.ordered;
    return 0;
}

static int check_create_table(struct compile *c, const struct ast_stmt *ast) {
    struct create t = {.c = c, .ast = &ast->create_table, .name = ast->create_table.table.name};
    return ddl_check(c, ast) || check_read(&t) || check_first(c, t.ast) ? -1 : 0;
}

const struct statement_ops create_table_ops = {.compile = compile_create_table, .check = check_create_table};
