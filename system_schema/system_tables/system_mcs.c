/* system_schema_mcs.*: the schema including objects of any status, and the properties that
 * Keyspaces adds ("Working with keyspaces",
 * https://docs.aws.amazon.com/keyspaces/latest/devguide/working-with-keyspaces.html). */
#include <stdlib.h>

#include "system_schema/objects/table_event.h"
#include "system_schema/system_tables/system_table.h"
#include "system_schema/objects/table_option.h"
#include "system_schema/objects/type_use.h"

typedef int (*table_fn)(struct row_out *ro, const struct schema_table *t);

/* Calls fn for live tables and tables that are being deleted, merged by name. */
static int each_table(struct row_out *ro, const struct schema_space *space, table_fn fn) {
    struct schema_table_cursor live = schema_tables_begin(&space->tables),
                               deleting = schema_tables_begin(&space->deleting);
    const struct schema_table *t = schema_tables_next(&live), *d = schema_tables_next(&deleting);
    while (t || d) {
        bool first = t && (!d || strcmp(t->name, d->name) < 0);
        if (fn(ro, first ? t : d)) return -1;
        if (first) t = schema_tables_next(&live);
        else d = schema_tables_next(&deleting);
    }
    return 0;
}

static bool has_group(uint32_t n, const struct schema_option *o, const char *group) {
    size_t length = strlen(group);
    for (uint32_t i = 0; i < n; i++)
        if (strncmp(o[i].name, group, length) == 0 && o[i].name[length] == '.') return true;
    return false;
}

const char *stream_arn(const char *account, const struct schema_table *t, const char *region, struct arena *a) {
    const char *label = option_find(t->options, t->n_options, "stream.label");
    if (!label) return NULL;
    return arena_printf(a, "arn:aws:cassandra:%s:%s:/keyspace/%s/table/%s/stream/%s", region, account,
                        t->keyspace->name, t->name, label);
}

static const char *own_stream_arn(struct row_out *ro, const struct schema_table *t) {
    const struct node_info *info = &context_of(ro->table)->node.info;
    const char *arn = stream_arn(info->account, t, info->region, ro->ctx->arena);
    if (!arn && option_find(t->options, t->n_options, "stream.label")) ro->failed = true;
    return arn;
}

struct properties {
    uint32_t n;
    struct schema_option *all;
};

static bool has(const struct properties *p, const char *name) {
    for (uint32_t i = 0; i < p->n; i++)
        if (strcmp(p->all[i].name, name) == 0) return true;
    return false;
}

/* Adds a property unless the table has it already. */
static void add(struct properties *p, const char *name, const char *value) {
    if (value && !has(p, name)) p->all[p->n++] = (struct schema_option){name, value};
}

static const char *time_text(struct row_out *ro, int64_t us) {
    char text[CLOCK_TEXT];
    clock_text(us, text);
    const char *all = arena_printf(ro->ctx->arena, "%sZ", text);
    if (!all) ro->failed = true;
    return all;
}

void scaled_capacity(const struct catalog_scaling *scaling, const struct schema_table *t, struct schema_capacity *out) {
    int64_t units[2];
    schema_capacity(t, out);
    if (out->mode != SCHEMA_PROVISIONED || !scaling || !scaling->units(scaling->arg, t->object, units)) return;
    out->read_units = units[SCHEMA_READ_CAPACITY];
    out->write_units = units[SCHEMA_WRITE_CAPACITY];
    if (out->warm_read < out->read_units) out->warm_read = out->read_units;
    if (out->warm_write < out->write_units) out->warm_write = out->write_units;
}

/* Shows the units that auto scaling provides, in place of those of the definition. */
static void put_scaled_units(struct row_out *ro, const struct schema_table *t, const struct properties *p) {
    struct schema_capacity k;
    scaled_capacity(context_of(ro->table)->scaling, t, &k);
    for (uint32_t i = 0; i < p->n && k.mode == SCHEMA_PROVISIONED; i++) {
        bool read = strcmp(p->all[i].name, "capacity_mode.read_capacity_units") == 0;
        if (!read && strcmp(p->all[i].name, "capacity_mode.write_capacity_units") != 0) continue;
        p->all[i].value = arena_printf(ro->ctx->arena, "%lld", (long long)(read ? k.read_units : k.write_units));
        if (!p->all[i].value) ro->failed = true;
    }
}

/* Shows the table's properties: those that statements set, defaults, and those that only the
 * server knows. until_us: until when a dropped table can be restored; 0: it was not dropped. */
static void put_custom_properties(struct row_out *ro, const struct schema_table *t, int64_t until_us) {
    enum { MORE = 8 };
    struct arena *a = ro->ctx->arena;
    uint32_t n;
    const struct schema_option *own = option_entries(t->options, t->n_options, "custom_properties.", a, &n);
    struct properties p = {.n = n, .all = ARENA_ARRAY(a, n + MORE, struct schema_option)};
    const char *since = arena_printf(a, "%lld", (long long)t->created_ms),
               *cdc = option_find(t->options, t->n_options, "cdc"), *arn = own_stream_arn(ro, t);
    if (!own || !p.all || !since) {
        ro->failed = true;
        return;
    }
    memcpy(p.all, own, n * sizeof *own);
    put_scaled_units(ro, t, &p);
    if (!has_group(n, own, "capacity_mode")) {
        add(&p, "capacity_mode.last_update_to_pay_per_request_timestamp", since);
        add(&p, "capacity_mode.throughput_mode", "PAY_PER_REQUEST");
    }
    if (!has_group(n, own, "encryption_specification"))
        add(&p, "encryption_specification.encryption_type", "AWS_OWNED_KMS_KEY");
    add(&p, "point_in_time_recovery.status", "disabled");
    if (t->history)
        add(&p, "point_in_time_recovery.earliest_restorable_timestamp",
            time_text(ro, recovery_since(context_of(ro->table)->recovery, t->history)));
    if (until_us) add(&p, "point_in_time_recovery.restorable_until_time", time_text(ro, until_us));
    if (t->default_ttl > 0) add(&p, "ttl.status", "enabled");
    if (arn) {
        add(&p, "cdc_specification.status", cdc && strcmp(cdc, "true") == 0 ? "Enabled" : "Disabled");
        add(&p, "cdc_specification.view_type", "NEW_AND_OLD_IMAGES");
        add(&p, "cdc_specification.latest_stream_arn", arn);
    }
    qsort(p.all, p.n, sizeof *p.all, option_order);
    row_map_of_maps(ro, "custom_properties", p.n, p.all);
}

static int emit_table(struct row_out *ro, const struct schema_table *t) {
    put_table(ro, t);
    row_long(ro, "creation_time", t->created_ms);
    row_text(ro, "status", schema_status_name(t->status));
    if (!t->virt) put_custom_properties(ro, t, 0);
    if (!t->virt) row_text(ro, "latest_stream_arn", own_stream_arn(ro, t));
    return row_out_emit(ro);
}

static int emit_event(void *arg, const struct history_row *h) {
    struct row_out *ro = arg;
    const char *ttl = option_find(h->options, h->n_options, "default_time_to_live");
    const struct schema_keyspace ks = {.name = h->keyspace};
    const struct schema_table t = {.keyspace = &ks,
                                   .name = h->table,
                                   .created_ms = h->created_ms,
                                   .n_options = h->n_options,
                                   .options = h->options,
                                   .default_ttl = ttl ? atoi(ttl) : 0};
    row_out_begin(ro);
    row_text(ro, "keyspace_name", h->keyspace);
    row_text(ro, "table_name", h->table);
    row_long(ro, "event_time", h->at_ms);
    row_long(ro, "creation_time", h->created_ms);
    row_text(ro, "event", h->event);
    /* "restorable_until_time" of a deleted table:
     * https://docs.aws.amazon.com/keyspaces/latest/devguide/restoredeleted.html, whose example lies
     * 35 days behind that of earliest_restorable_timestamp. */
    bool restorable = strcmp(h->event, "DROP") == 0 && schema_has_pitr(&t);
    put_custom_properties(ro, &t,
                          restorable ? h->at_ms * 1000 + context_of(ro->table)->recovery->window_us : 0);
    return row_out_emit(ro);
}

/* Includes tables and keyspaces that no longer exist. */
YIELDS(mcs_tables_history) {
    struct row_out ro;
    if (row_out_init(&ro, ctx, table, row, arg)) return -1;
    const struct value *key = ctx->key;
    struct slice s = key ? value_slice(key[0]) : slice_of(NULL, 0);
    const char *keyspace = key && !value_is_null(key[0]) ? (const char *)arena_dup(ctx->arena, s).p : NULL;
    return history_each(context_of(table)->objects, keyspace, ctx->arena, emit_event, &ro, ctx->err);
}

static int emit_autoscaling(struct row_out *ro, const struct schema_table *t) {
    static const char *const columns[] = {"provisioned_read_capacity_autoscaling_update",
                                          "provisioned_write_capacity_autoscaling_update"};
    bool any = false;
    row_out_begin(ro);
    row_text(ro, "keyspace_name", t->keyspace->name);
    row_text(ro, "table_name", t->name);
    for (size_t i = 0; i < ARRAY_LEN(columns); i++) {
        uint32_t n;
        const char *prefix = arena_printf(ro->ctx->arena, "autoscaling_settings.%s.", columns[i]);
        const struct schema_option *entries = prefix
                                                  ? option_entries(t->options, t->n_options, prefix, ro->ctx->arena, &n)
                                                  : NULL;
        if (!entries) return err_nomem(ro->ctx->err);
        if (n == 0) continue;
        row_nested(ro, columns[i], n, entries);
        any = true;
    }
    return any ? row_out_emit(ro) : 0;
}

static int emit_tags(struct row_out *ro, const char *keyspace, const char *table, uint32_t n_options,
                     const struct schema_option *options) {
    uint32_t n;
    const struct schema_option *tags = option_entries(options, n_options, "tags.", ro->ctx->arena, &n);
    const char *id = table ? arena_printf(ro->ctx->arena, "/keyspace/%s/table/%s", keyspace, table)
                           : arena_printf(ro->ctx->arena, "/keyspace/%s/", keyspace);
    if (!tags || !id) return err_nomem(ro->ctx->err);
    if (n == 0 || !row_out_wants(ro, 0, id)) return 0;
    row_out_begin(ro);
    row_text(ro, "resource_id", id);
    row_text(ro, "keyspace_name", keyspace);
    row_text(ro, "resource_name", table ? table : keyspace);
    row_text(ro, "resource_type", table ? "table" : "keyspace");
    row_map(ro, "tags", n, tags);
    return row_out_emit(ro);
}

int yield_mcs_tags(const struct virtual_context *ctx, const struct schema_table *table, virtual_row_fn row, void *arg) {
    struct row_out ro;
    if (row_out_init(&ro, ctx, table, row, arg)) return -1;
    for (uint32_t i = 0; i < ctx->schema->n_spaces; i++) {
        const struct schema_space *space = ctx->schema->spaces[i];
        const struct schema_keyspace *ks = space->keyspace;
        struct schema_table_cursor at = schema_tables_begin(&space->tables);
        if (emit_tags(&ro, ks->name, NULL, ks->n_options, ks->options)) return -1;
        for (const struct schema_table *t; (t = schema_tables_next(&at));) {
            if (emit_tags(&ro, ks->name, t->name, t->n_options, t->options)) return -1;
        }
    }
    return 0;
}

/* "Query to see whether a keyspace has been created": it is listed from then on until it is gone,
 * and has no status column. */
static int emit_mcs_keyspace(struct row_out *ro, const struct schema_space *space) {
    const struct schema_keyspace *ks = space->keyspace;
    if (ks->status == SCHEMA_CREATING) return 0;
    put_keyspace(ro, ks);
    return row_out_emit(ro);
}

static int emit_mcs_tables(struct row_out *ro, const struct schema_space *space) {
    return each_table(ro, space, emit_table);
}
static int emit_mcs_columns(struct row_out *ro, const struct schema_space *space) {
    return each_table(ro, space, emit_columns);
}
static int emit_mcs_autoscaling(struct row_out *ro, const struct schema_space *space) {
    return each_table(ro, space, emit_autoscaling);
}

/* ---- types ---- */

static int emit_mcs_types(struct row_out *ro, const struct schema_space *space) {
    for (uint32_t i = 0; i < space->n_types; i++) {
        const struct schema_type *t = space->types[i];
        /* a newer type has its name */
        if (i && t->status == SCHEMA_DELETING && strcmp(space->types[i - 1]->type->name, t->type->name) == 0) continue;
        struct type_users users;
        if (put_type(ro, t)) return -1;
        if (type_users_find(space, t->type->name, ro->ctx->arena, &users)) return err_nomem(ro->ctx->err);
        if (users.n_tables) row_texts(ro, "direct_referring_tables", users.n_tables, users.tables);
        if (users.n_parents) row_texts(ro, "direct_parent_types", users.n_parents, users.parents);
        row_long(ro, "last_modified_timestamp", t->modified_ms);
        row_int(ro, "max_nesting_depth", type_nesting(t->type));
        row_text(ro, "status", schema_status_name(t->status));
        if (row_out_emit(ro)) return -1;
    }
    return 0;
}

static bool is_stored(const struct schema_keyspace *ks) { return !keyspace_is_virtual(ks); }

YIELD_SPACES(mcs_keyspaces, is_stored, emit_mcs_keyspace)
YIELD_SPACES(mcs_tables, is_stored, emit_mcs_tables)
YIELD_SPACES(mcs_columns, is_stored, emit_mcs_columns)
YIELD_SPACES(mcs_autoscaling, is_stored, emit_mcs_autoscaling)
YIELD_SPACES(mcs_types, is_stored, emit_mcs_types)
