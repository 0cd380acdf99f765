#include "cql/schema/describe_text.h"

#include "cql/syntax/ast.h"
#include "system_schema/system_tables/virtual.h"

static void put_string(struct buf *out, const char *s) {
    buf_u8(out, '\'');
    for (; *s; s++) {
        if (*s == '\'') buf_u8(out, '\'');
        buf_u8(out, (uint8_t)*s);
    }
    buf_u8(out, '\'');
}

void describe_keyspace(const struct describe_text *d, const struct schema_keyspace *ks) {
    static const char locator[] = "org.apache.cassandra.locator.";
    struct buf *out = d->out;
    if (d->cassandra_mode && keyspace_is_virtual(ks)) {
        buf_printf(out,
                   "/*\nWarning: Keyspace %s is a virtual keyspace and cannot be recreated with CQL.\nStructure, for "
                   "reference:\n",
                   ks->name);
        buf_printf(out, "VIRTUAL KEYSPACE %s;\n*/", ks->name);
        return;
    }
    buf_put_str(out, "CREATE KEYSPACE ");
    ast_print_name(ks->name, out);
    buf_put_str(out, " WITH replication = {");
    for (uint32_t i = 0; i < ks->n_replication; i++) {
        const char *value = ks->replication[i].value;
        if (i == 0 && strncmp(value, locator, sizeof locator - 1) == 0) value += sizeof locator - 1;
        if (i) buf_put_str(out, ", ");
        put_string(out, ks->replication[i].name);
        buf_put_str(out, ": ");
        put_string(out, value);
    }
    buf_printf(out, "}  AND durable_writes = %s", ks->durable_writes ? "true" : "false");
    if (ks->tags.n) {
        buf_put_str(out, " AND TAGS = ");
        setting_map_print(&ks->tags, out);
    }
    buf_u8(out, ';');
}

void describe_type(const struct describe_text *d, const struct schema_type *type) {
    const struct cql_type *t = type->type;
    buf_put_str(d->out, "CREATE TYPE ");
    ast_print_name(t->keyspace, d->out);
    buf_u8(d->out, '.');
    ast_print_name(t->name, d->out);
    buf_put_str(d->out, " (\n");
    for (uint32_t i = 0; i < t->n_args; i++) {
        buf_put_str(d->out, "    ");
        ast_print_name(t->field_names[i], d->out);
        buf_u8(d->out, ' ');
        cql_type_print(t->args[i], d->out);
        buf_put_str(d->out, i + 1 < t->n_args ? ",\n" : "\n");
    }
    buf_put_str(d->out, ");");
}

static void put_definition(struct buf *out, const struct schema_column *col) {
    ast_print_name(col->name, out);
    buf_u8(out, ' ');
    cql_type_print(col->type, out);
    if (col->kind == COLUMN_STATIC) buf_put_str(out, " static");
}

static void put_column(struct buf *out, const struct schema_column *col, bool only_key, bool last) {
    buf_put_str(out, "    ");
    put_definition(out, col);
    if (only_key) buf_put_str(out, " PRIMARY KEY");
    buf_put_str(out, last ? "\n" : ",\n");
}

/* Cassandra prints multi-cell columns after the others of their kind; with internals it prints dropped
 * columns after all others, and leaves out a column that was added again after its drop: put_drops drops
 * and adds them in the original order. */
static void put_columns(const struct describe_text *d, const struct schema_table *t) {
    struct buf *out = d->out;
    uint32_t n_key = t->n_partition_key + t->n_clustering, n_dropped = d->internals ? t->n_dropped : 0, done = 0;
    bool only_key = n_key == 1, ends = only_key && !n_dropped; /* the last column of the table has no comma */
    for (uint32_t i = 0; i < n_key; i++) put_column(out, &t->columns[i], only_key, ends && ++done == t->n_columns);
    for (int kind = COLUMN_STATIC; kind <= COLUMN_REGULAR; kind++)
        for (int multicell = 0; multicell < 2; multicell++)
            for (uint32_t i = n_key; i < t->n_columns; i++) {
                const struct schema_column *col = &t->columns[i];
                if ((int)col->kind != kind || cql_type_is_multicell(col->type) != (multicell == 1)) continue;
                bool came_back = false;
                for (uint32_t k = 0; k < n_dropped; k++)
                    came_back = came_back || strcmp(t->dropped[k].name, col->name) == 0;
                if (!came_back) put_column(out, col, false, ends && ++done == t->n_columns);
            }
    for (uint32_t i = 0; i < n_dropped; i++) {
        const struct schema_dropped *x = &t->dropped[i];
        buf_put_str(out, "    ");
        ast_print_name(x->name, out);
        buf_printf(out, " %s", x->type);
        if (x->kind == COLUMN_STATIC) buf_put_str(out, " static");
        buf_put_str(out, only_key && i + 1 == n_dropped ? "\n" : ",\n");
    }
}

static void put_names(struct buf *out, const struct schema_column *columns, uint32_t n) {
    for (uint32_t i = 0; i < n; i++) {
        if (i) buf_put_str(out, ", ");
        ast_print_name(columns[i].name, out);
    }
}

static void put_primary_key(struct buf *out, const struct schema_table *t) {
    if (t->n_partition_key + t->n_clustering == 1) return;
    buf_put_str(out, t->n_partition_key > 1 ? "    PRIMARY KEY ((" : "    PRIMARY KEY (");
    put_names(out, t->columns, t->n_partition_key);
    if (t->n_partition_key > 1) buf_u8(out, ')');
    if (t->n_clustering) buf_put_str(out, ", ");
    put_names(out, t->columns + t->n_partition_key, t->n_clustering);
    buf_put_str(out, ")\n");
}

static void put_order(struct buf *out, const struct schema_table *t) {
    buf_put_str(out, "CLUSTERING ORDER BY (");
    for (uint32_t i = 0; i < t->n_clustering; i++) {
        const struct schema_column *col = schema_clustering(t, i);
        if (i) buf_put_str(out, ", ");
        ast_print_name(col->name, out);
        buf_put_str(out, col->desc ? " DESC" : " ASC");
    }
    buf_u8(out, ')');
}

static void put_name(struct buf *out, const struct schema_table *t) {
    ast_print_name(t->keyspace->name, out);
    buf_u8(out, '.');
    ast_print_name(t->name, out);
}

static void describe_virtual_table(const struct describe_text *d, const struct schema_table *t) {
    struct buf *out = d->out;
    buf_put_str(out, "/*\nWarning: Table ");
    put_name(out, t);
    buf_put_str(out,
                " is a virtual table and cannot be recreated with CQL.\nStructure, for reference:\nVIRTUAL TABLE ");
    put_name(out, t);
    buf_put_str(out, " (\n");
    put_columns(d, t);
    put_primary_key(out, t);
    buf_put_str(out, ") WITH ");
    if (t->n_clustering) {
        put_order(out, t);
        buf_put_str(out, "\n    AND ");
    }
    buf_put_str(out, "comment = ");
    put_string(out, t->settings.comment);
    buf_put_str(out, ";\n*/");
}

/* Reduces the table with all columns to the current one. Where several columns were dropped,
 * Cassandra's order is that of a hash table; here it is the order of the drops. */
static void put_drops(const struct describe_text *d, const struct schema_table *t) {
    struct buf *out = d->out;
    for (uint32_t i = 0; d->internals && i < t->n_dropped; i++) {
        const struct schema_dropped *dropped = &t->dropped[i];
        const struct schema_column *again = schema_column_find(t, dropped->name);
        buf_put_str(out, "\nALTER TABLE ");
        put_name(out, t);
        buf_put_str(out, " DROP ");
        ast_print_name(dropped->name, out);
        buf_printf(out, " USING TIMESTAMP %lld;", (long long)dropped->dropped_us);
        if (!again) continue;
        buf_put_str(out, "\nALTER TABLE ");
        put_name(out, t);
        buf_put_str(out, " ADD ");
        put_definition(out, again);
        buf_u8(out, ';');
    }
}

void describe_table(const struct describe_text *d, const struct schema_table *t) {
    static const char and[] = "\n    AND ";
    struct buf *out = d->out;
    if (d->cassandra_mode && keyspace_is_virtual(t->keyspace)) {
        describe_virtual_table(d, t);
        return;
    }
    buf_put_str(out, "CREATE TABLE ");
    put_name(out, t);
    buf_put_str(out, " (\n");
    put_columns(d, t);
    put_primary_key(out, t);
    buf_put_str(out, ") WITH ");
    if (d->internals) {
        buf_put_str(out, "ID = ");
        for (int i = 0; i < 16; i++)
            buf_printf(out, i == 4 || i == 6 || i == 8 || i == 10 ? "-%02x" : "%02x", t->id[i]);
        buf_put_str(out, and);
    }
    if (t->n_clustering) {
        put_order(out, t);
        buf_put_str(out, and);
    }
    bool first = true;
    for (int i = 0; i < N_OPTIONS; i++) {
        if (!(setting_rows[i].releases & (d->cassandra_mode ? RELEASE_5_0 : RELEASE_3_11))) continue;
        if (!first) buf_put_str(out, and);
        const struct setting *row = &setting_rows[i];
        const struct table_settings *s = settings_of_release(&t->settings, i, d->cassandra_mode);
        buf_printf(out, "%s = ", row->name);
        if (row->kind == SETTING_KIND_TEXT) put_string(out, setting_text(row, s, d->arena));
        else setting_print(row, s, out);
        first = false;
    }
    settings_describe(&t->settings, and, d->arena, out);
    buf_u8(out, ';');
    put_drops(d, t);
}
