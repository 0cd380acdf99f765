#include "tools/tally/server_schema.h"

#include "base/array.h"
#include "cql/syntax/ast.h"
#include "settings/settings.h"

struct server_column {
    const char *keyspace, *table, *name, *kind, *order, *type;
    int64_t position;
};

struct schema_reader {
    struct arena a;
    const struct server_schema_part *part;
    struct buf *out;
    struct server_column *columns;
    size_t n, cap;
    struct err *e;
};

static bool is_wanted(const struct schema_reader *r, const char *keyspace) {
    const char *wanted = r->part->keyspace;
    return wanted ? !strcmp(keyspace, wanted) : strncmp(keyspace, "system", 6) != 0;
}

static bool is_named(const char *wanted, const char *name) { return !wanted || !strcmp(wanted, name); }

static int take_keyspace(void *arg, struct client *c, const struct client_rows *row) {
    struct schema_reader *r = arg;
    const char *name = client_text(row, &c->arena, "keyspace_name");
    if (!is_wanted(r, name) || (r->part->type && *r->part->type) || (r->part->table && *r->part->table)) return 0;
    buf_put_str(r->out, "CREATE KEYSPACE ");
    ast_print_name(name, r->out);
    buf_put_str(r->out, " WITH replication = ");
    struct value v = client_value(row, "replication");
    for (uint32_t i = 0; v.n >= 0 && i < row->columns.n; i++)
        if (!strcmp(row->columns.list[i].name, "replication"))
            cql_value_print(row->columns.list[i].type, slice_of(v.p, (size_t)v.n), r->out);
    buf_put_str(r->out, ";\n");
    return 0;
}

/* The next value of a serialized list or map. */
static struct slice next_item(struct rd *items) {
    int32_t n = (int32_t)rd_u32(items);
    return n < 0 ? (struct slice){0} : rd_bytes(items, (size_t)n);
}

static int take_type(void *arg, struct client *c, const struct client_rows *row) {
    struct schema_reader *r = arg;
    struct value names = client_value(row, "field_names"), types = client_value(row, "field_types");
    const char *keyspace = client_text(row, &c->arena, "keyspace_name"),
               *type_name = client_text(row, &c->arena, "type_name");
    if (names.n < 4 || types.n < 4 || !is_wanted(r, keyspace) || !is_named(r->part->type, type_name)) return 0;
    struct rd n = rd_of(slice_of(names.p, (size_t)names.n)), t = rd_of(slice_of(types.p, (size_t)types.n));
    uint32_t fields = rd_u32(&n);
    (void)rd_u32(&t);
    buf_put_str(r->out, "CREATE TYPE ");
    ast_print_name(keyspace, r->out);
    buf_u8(r->out, '.');
    ast_print_name(type_name, r->out);
    for (uint32_t i = 0; i < fields && !n.bad && !t.bad; i++) {
        struct slice name = next_item(&n), type = next_item(&t);
        const char *field = arena_printf(&c->arena, "%.*s", SLICE_FMT(name));
        if (!field) return err_nomem(r->e);
        buf_put_str(r->out, i ? ",\n    " : " (\n    ");
        ast_print_name(field, r->out);
        buf_printf(r->out, " %.*s", SLICE_FMT(type));
    }
    buf_put_str(r->out, "\n);\n");
    return 0;
}

static int take_column(void *arg, struct client *c, const struct client_rows *row) {
    struct schema_reader *r = arg;
    (void)c;
    if (array_room(&r->columns, r->n, &r->cap, sizeof(*r->columns))) return err_nomem(r->e);
    r->columns[r->n++] = (struct server_column){.keyspace = client_text(row, &r->a, "keyspace_name"),
                                         .table = client_text(row, &r->a, "table_name"),
                                         .name = client_text(row, &r->a, "column_name"),
                                         .kind = client_text(row, &r->a, "kind"),
                                         .order = client_text(row, &r->a, "clustering_order"),
                                         .type = client_text(row, &r->a, "type"),
                                         .position = client_int(row, "position")};
    return 0;
}

/* Appends the columns of a kind by position, after lead, with their clustering orders if orders is
 * set. Returns how many there are. */
static uint32_t put_key(const struct schema_reader *r, const char *keyspace, const char *table, const char *kind,
                        const char *lead, bool orders) {
    uint32_t n = 0;
    for (bool found = true; found; n += found) {
        found = false;
        for (size_t i = 0; i < r->n && !found; i++) {
            const struct server_column *c = &r->columns[i];
            found = c->position == (int64_t)n && !strcmp(c->kind, kind) && !strcmp(c->keyspace, keyspace) &&
                    !strcmp(c->table, table);
            if (!found) continue;
            buf_put_str(r->out, n ? ", " : lead);
            ast_print_name(c->name, r->out);
            if (orders) buf_printf(r->out, " %s", c->order);
        }
    }
    return n;
}

static int take_table(void *arg, struct client *c, const struct client_rows *row) {
    struct schema_reader *r = arg;
    const char *keyspace = client_text(row, &c->arena, "keyspace_name"),
               *table = client_text(row, &c->arena, "table_name");
    if (!is_wanted(r, keyspace) || !is_named(r->part->table, table)) return 0;
    buf_put_str(r->out, "CREATE TABLE ");
    ast_print_name(keyspace, r->out);
    buf_u8(r->out, '.');
    ast_print_name(table, r->out);
    buf_put_str(r->out, " (");
    for (size_t i = 0; i < r->n; i++) {
        const struct server_column *column = &r->columns[i];
        if (strcmp(column->keyspace, keyspace) || strcmp(column->table, table)) continue;
        buf_put_str(r->out, "\n    ");
        ast_print_name(column->name, r->out);
        buf_printf(r->out, " %s%s,", column->type, strcmp(column->kind, "static") ? "" : " static");
    }
    buf_put_str(r->out, "\n    PRIMARY KEY ((");
    put_key(r, keyspace, table, "partition_key", "", false);
    buf_put_str(r->out, ")");
    put_key(r, keyspace, table, "clustering", ", ", false);
    buf_printf(r->out, ")\n) WITH default_time_to_live = %lld", (long long)client_int(row, "default_time_to_live"));
    if (put_key(r, keyspace, table, "clustering", "\n    AND CLUSTERING ORDER BY (", true)) buf_u8(r->out, ')');
    /* The custom properties that a statement can set (setting.def); the server sets the others. */
    struct table_settings settings = {0};
    struct rd groups = rd_of(value_slice(client_value(row, "custom_properties")));
    for (uint32_t n = rd_u32(&groups); n && !groups.bad; n--) {
        struct slice group = next_item(&groups);
        struct rd entries = rd_of(next_item(&groups));
        for (uint32_t k = rd_u32(&entries); k && !entries.bad; k--) {
            struct slice key = next_item(&entries), value = next_item(&entries);
            const char *name = arena_printf(&r->a, "custom_properties.%.*s.%.*s", SLICE_FMT(group), SLICE_FMT(key)),
                       *text = arena_printf(&r->a, "%.*s", SLICE_FMT(value));
            struct err unknown = {0};
            const struct setting_context x = {.arena = &r->a, .err = &unknown};
            if (!name || !text || (settings_take(&x, name, text, &settings) && unknown.no_memory)) err_nomem(r->e);
        }
    }
    settings_describe(&settings, "\n    AND ", &r->a, r->out);
    buf_put_str(r->out, ";\n");
    return r->e->set ? -1 : 0;
}

int server_schema(struct client *c, struct buf *out, struct err *e) {
    const struct server_schema_part everything = {0};
    return server_schema_of(c, &everything, out, e);
}

int server_schema_of(struct client *c, const struct server_schema_part *part, struct buf *out, struct err *e) {
    struct schema_reader r = {.out = out, .e = e, .part = part};
    arena_init(&r.a, 16 << 10, 256 << 20);
    struct err ignored = {0};
    int rc = client_each(c, "SELECT keyspace_name, replication FROM system_schema.keyspaces", take_keyspace, &r, e);
    if (!rc)
        rc = client_each(c, "SELECT keyspace_name, type_name, field_names, field_types FROM system_schema.types",
                         take_type, &r, e);
    if (!rc)
        rc = client_each(c,
                         "SELECT keyspace_name, table_name, column_name, kind, position, clustering_order, type FROM "
                         "system_schema.columns",
                         take_column, &r, e);
    size_t before = out->n;
    /* a Cassandra has no system_schema_mcs, and no custom properties */
    if (!rc &&
        client_each(
            c,
            "SELECT keyspace_name, table_name, default_time_to_live, custom_properties FROM system_schema_mcs.tables",
            take_table, &r, &ignored)) {
        out->n = before;
        rc = client_each(c, "SELECT keyspace_name, table_name, default_time_to_live FROM system_schema.tables",
                         take_table, &r, e);
    }
    if (!rc && buf_failed(out)) rc = err_nomem(e);
    free(r.columns);
    arena_fini(&r.a);
    return rc;
}
