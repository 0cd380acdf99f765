/* Canonical CQL of the schema statements that run, and of DESCRIBE. */
#include "cql/syntax/print.h"

/* ---- keyspaces ---- */

static void print_keyspace(const char *verb, const struct ast_keyspace *k, struct buf *out) {
    buf_printf(out, "%s KEYSPACE ", verb);
    cqli_print_if(k->if_not_exists, "IF NOT EXISTS ", out);
    cqli_print_if(k->if_exists, "IF EXISTS ", out);
    ast_print_name(k->name, out);
    if (k->tags) {
        buf_put_str(out, k->add_tags ? " ADD TAGS " : " DROP TAGS ");
        ast_print_prop(k->tags, out);
    }
    cqli_print_props(&k->props, out);
}

/* ---- tables ---- */

static void print_mask(const struct ast_column_mask *m, struct buf *out) {
    buf_put_str(out, " MASKED WITH ");
    cqli_print_table(&m->function, out);
    buf_put_str(out, "(");
    cqli_print_exprs(m->args, m->n_args, out);
    buf_put_str(out, ")");
}

static void print_columns(const struct ast_column *c, uint32_t n, struct buf *out) {
    for (uint32_t i = 0; i < n; i++) {
        if (i) buf_put_str(out, ", ");
        ast_print_name(c[i].name, out);
        buf_put_str(out, " ");
        ast_print_type(c[i].type, out);
        cqli_print_if(c[i].is_static, " STATIC", out);
        if (c[i].mask) print_mask(c[i].mask, out);
        cqli_print_if(c[i].primary_key, " PRIMARY KEY", out);
    }
}

static void print_create_table(const struct ast_create_table *t, struct buf *out) {
    buf_put_str(out, "CREATE TABLE ");
    cqli_print_if(t->if_not_exists, "IF NOT EXISTS ", out);
    cqli_print_table(&t->table, out);
    buf_put_str(out, " (");
    print_columns(t->columns, t->n_columns, out);
    if (t->n_partition_key) {
        cqli_print_if(t->n_columns > 0, ", ", out);
        cqli_print_key(t->partition_key, t->n_partition_key, t->clustering, t->n_clustering, out);
    }
    buf_put_str(out, ")");
    cqli_print_props(&t->props, out);
}

static void print_drop_columns(const struct ast_alter_table *t, struct buf *out) {
    buf_put_str(out, " DROP ");
    cqli_print_if(t->column_if_exists, "IF EXISTS ", out);
    cqli_print_if(t->n_columns > 1, "(", out);
    for (uint32_t i = 0; i < t->n_columns; i++) {
        if (i) buf_put_str(out, ", ");
        ast_print_name(t->columns[i].name, out);
    }
    cqli_print_if(t->n_columns > 1, ")", out);
    if (!t->drop_timestamp) return;
    buf_put_str(out, " USING TIMESTAMP ");
    ast_print_expr(t->drop_timestamp, out);
}

static void print_alter_column(const struct ast_alter_table *t, struct buf *out) {
    buf_put_str(out, " ALTER ");
    cqli_print_if(t->column_if_exists, "IF EXISTS ", out);
    ast_print_name(t->columns[0].name, out);
    if (t->op == ALTER_TABLE_ALTER_TYPE) {
        buf_put_str(out, " TYPE ");
        ast_print_type(t->columns[0].type, out);
    } else if (t->op == ALTER_TABLE_MASK) {
        print_mask(t->columns[0].mask, out);
    } else {
        buf_put_str(out, " DROP MASKED");
    }
}

static void print_alter_table(const struct ast_alter_table *t, struct buf *out) {
    buf_put_str(out, "ALTER TABLE ");
    cqli_print_if(t->if_exists, "IF EXISTS ", out);
    cqli_print_table(&t->table, out);
    switch (t->op) {
    case ALTER_TABLE_ADD:
        buf_put_str(out, " ADD ");
        cqli_print_if(t->column_if_not_exists, "IF NOT EXISTS ", out);
        cqli_print_if(t->n_columns > 1, "(", out);
        print_columns(t->columns, t->n_columns, out);
        cqli_print_if(t->n_columns > 1, ")", out);
        break;
    case ALTER_TABLE_DROP: print_drop_columns(t, out); break;
    case ALTER_TABLE_ALTER_TYPE:
    case ALTER_TABLE_MASK:
    case ALTER_TABLE_DROP_MASK: print_alter_column(t, out); break;
    case ALTER_TABLE_RENAME:
        buf_put_str(out, " RENAME ");
        cqli_print_if(t->column_if_exists, "IF EXISTS ", out);
        for (uint32_t i = 0; i < t->n_renames; i++) {
            if (i) buf_put_str(out, " AND ");
            ast_print_name(t->rename_from[i], out);
            buf_put_str(out, " TO ");
            ast_print_name(t->rename_to[i], out);
        }
        break;
    case ALTER_TABLE_WITH: cqli_print_props(&t->props, out); break;
    case ALTER_TABLE_ADD_TAGS:
    case ALTER_TABLE_DROP_TAGS:
        buf_put_str(out, t->op == ALTER_TABLE_ADD_TAGS ? " ADD TAGS " : " DROP TAGS ");
        ast_print_prop(t->tags, out);
        break;
    case ALTER_TABLE_DROP_COMPACT_STORAGE: buf_put_str(out, " DROP COMPACT STORAGE"); break;
    }
}

static void print_create_type(const struct ast_create_type *t, struct buf *out) {
    buf_put_str(out, "CREATE TYPE ");
    cqli_print_if(t->if_not_exists, "IF NOT EXISTS ", out);
    cqli_print_table(&t->name, out);
    buf_put_str(out, " (");
    for (uint32_t i = 0; i < t->n_fields; i++) {
        if (i) buf_put_str(out, ", ");
        ast_print_name(t->field_names[i], out);
        buf_put_str(out, " ");
        ast_print_type(t->field_types[i], out);
    }
    buf_put_str(out, ")");
}

/* ---- DESCRIBE ---- */

static void print_describe(const struct ast_describe *d, struct buf *out) {
    static const char *const words[] = {
        [DESCRIBE_CLUSTER] = "CLUSTER",
        [DESCRIBE_SCHEMA] = "SCHEMA",
        [DESCRIBE_KEYSPACES] = "KEYSPACES",
        [DESCRIBE_KEYSPACE] = "KEYSPACE",
        [DESCRIBE_TABLES] = "TABLES",
        [DESCRIBE_TABLE] = "TABLE",
        [DESCRIBE_INDEX] = "INDEX",
        [DESCRIBE_VIEW] = "MATERIALIZED VIEW",
        [DESCRIBE_TYPES] = "TYPES",
        [DESCRIBE_TYPE] = "TYPE",
        [DESCRIBE_FUNCTIONS] = "FUNCTIONS",
        [DESCRIBE_FUNCTION] = "FUNCTION",
        [DESCRIBE_AGGREGATES] = "AGGREGATES",
        [DESCRIBE_AGGREGATE] = "AGGREGATE",
        [DESCRIBE_GENERIC] = "",
    };
    buf_put_str(out, "DESCRIBE ");
    cqli_print_if(d->full, "FULL ", out);
    cqli_print_if(d->only, "ONLY ", out);
    buf_put_str(out, words[d->kind]);
    if (d->name.name) {
        cqli_print_if(d->kind != DESCRIBE_GENERIC, " ", out);
        cqli_print_table(&d->name, out);
    }
    cqli_print_if(d->internals, " WITH INTERNALS", out);
}

bool cqli_print_ddl(const struct ast_stmt *s, struct buf *out) {
    switch (s->kind) {
    case STMT_USE:
        buf_put_str(out, "USE ");
        ast_print_name(s->use.keyspace, out);
        break;
    case STMT_CREATE_KEYSPACE: print_keyspace("CREATE", &s->keyspace, out); break;
    case STMT_ALTER_KEYSPACE: print_keyspace("ALTER", &s->keyspace, out); break;
    case STMT_DROP_KEYSPACE: print_keyspace("DROP", &s->keyspace, out); break;
    case STMT_CREATE_TABLE: print_create_table(&s->create_table, out); break;
    case STMT_ALTER_TABLE: print_alter_table(&s->alter_table, out); break;
    case STMT_CREATE_TYPE: print_create_type(&s->create_type, out); break;
    case STMT_DROP_TABLE:
    case STMT_DROP_TYPE:
    case STMT_DROP_INDEX:
    case STMT_DROP_VIEW:
        buf_printf(out, "%s ", stmt_words(s->kind));
        cqli_print_if(s->drop.if_exists, "IF EXISTS ", out);
        cqli_print_table(&s->drop.name, out);
        break;
    case STMT_DESCRIBE: print_describe(&s->describe, out); break;
    default: return false;
    }
    return true;
}
