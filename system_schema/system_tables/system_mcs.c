/* system_schema_mcs.*: the schema including objects of any status, and the properties that
 * Keyspaces adds ("Working with keyspaces",
 * https://docs.aws.amazon.com/keyspaces/latest/devguide/working-with-keyspaces.html). */
#include "system_schema/objects/table_event.h"
#include "system_schema/system_tables/system_table.h"

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

void catalog_capacity(const struct catalog *c, const struct schema_table *t, struct table_capacity *out) {
    const struct catalog_scaling *scaling = c->tables->scaling;
    schema_capacity(t, out);
    if (!out->provisioned || !scaling || !scaling->units(scaling->arg, t->object, out->units)) return;
    for (int of = READ_CAPACITY; of <= WRITE_CAPACITY; of++)
        if (out->warm[of] < out->units[of]) out->warm[of] = out->units[of];
}

int catalog_settings(struct catalog *c, const struct schema_table *t, const char *region, struct arena *a,
                     struct table_settings *out) {
    struct table_capacity k;
    catalog_capacity(c, t, &k);
    *out = t->settings;
    if (k.provisioned) {
        out->read_capacity_units = k.units[READ_CAPACITY];
        out->write_capacity_units = k.units[WRITE_CAPACITY];
    } else if (!(out->given & SETTING_BIT(throughput_mode))) {
        SETTING_SET(out, throughput_mode, PAY_PER_REQUEST);
        SETTING_SET(out, on_demand_since_ms, k.on_demand_since_ms);
    }
    out->given |= SETTING_BIT(encryption_type) | SETTING_BIT(point_in_time_recovery);
    if (t->history) SETTING_SET(out, restorable_since_ms, catalog_restorable_since(c, t->history) / 1000);
    if (out->default_time_to_live > 0 && !(out->given & SETTING_BIT(ttl))) SETTING_SET(out, ttl, true);
    if (!(out->given & SETTING_BIT(stream_label))) return 0;
    out->given |= SETTING_BIT(view_type);
    SETTING_SET(out, stream_status, out->cdc);
    SETTING_SET(out, stream_arn,
                arena_printf(a, "arn:aws:cassandra:%s:%s:/keyspace/%s/table/%s/stream/%s", region,
                             c->tables->node.info.account, t->keyspace->name, t->name, out->stream_label));
    return out->stream_arn ? 0 : -1;
}

/* Shows the table's properties: those that statements set, defaults, and those that only the server
 * knows. until_ms: until when a dropped table can be restored; 0 if it was not dropped. */
static void put_custom_properties(struct row_out *ro, const struct schema_table *t, int64_t until_ms) {
    const struct system_tables *tables = context_of(ro->table);
    struct table_settings s;
    struct buf properties;
    if (catalog_settings(tables->catalog, t, tables->node.info.region, ro->ctx->arena, &s)) {
        ro->failed = true;
        return;
    }
    if (until_ms) SETTING_SET(&s, restorable_until_ms, until_ms);
    buf_init(&properties, 0);
    settings_put_properties(&s, ro->ctx->arena, &properties);
    row_buf(ro, "custom_properties", &properties);
    if (s.given & SETTING_BIT(stream_arn)) row_text(ro, "latest_stream_arn", s.stream_arn);
}

static int emit_table(struct row_out *ro, const struct schema_table *t) {
    put_table(ro, t);
    row_long(ro, "creation_time", t->created_ms);
    row_text(ro, "status", schema_status_name(t->status));
    if (!t->virt) put_custom_properties(ro, t, 0);
    return row_out_emit(ro);
}

static int emit_event(void *arg, const struct history_row *h) {
    struct row_out *ro = arg;
    const struct schema_keyspace ks = {.name = h->keyspace};
    const struct schema_table t = {
        .keyspace = &ks, .name = h->table, .created_ms = h->created_ms, .settings = h->settings};
    row_text(ro, "keyspace_name", h->keyspace);
    row_text(ro, "table_name", h->table);
    row_long(ro, "event_time", h->at_ms);
    row_long(ro, "creation_time", h->created_ms);
    row_text(ro, "event", h->event);
    /* "restorable_until_time" of a deleted table:
     * https://docs.aws.amazon.com/keyspaces/latest/devguide/restoredeleted.html, whose example lies
     * 35 days behind that of earliest_restorable_timestamp. */
    bool restorable = strcmp(h->event, "DROP") == 0 && h->settings.point_in_time_recovery;
    put_custom_properties(ro, &t,
                          restorable ? h->at_ms + context_of(ro->table)->catalog->recovery->window_us / 1000 : 0);
    return row_out_emit(ro);
}

/* Includes tables and keyspaces that no longer exist. */
YIELDS(mcs_tables_history) {
    const struct value *key = ro->ctx->key;
    struct slice s = key ? value_slice(key[0]) : slice_of(NULL, 0);
    const char *keyspace = key && !value_is_null(key[0]) ? (const char *)arena_dup(ro->ctx->arena, s).p : NULL;
    return history_each(context_of(ro->table)->catalog->objects, keyspace, ro->ctx->arena, emit_event, ro,
                        ro->ctx->err);
}

bool put_scaling(struct row_out *ro, const struct schema_table *t, const char *region) {
    static const char *const columns[] = {"provisioned_read_capacity_autoscaling_update",
                                          "provisioned_write_capacity_autoscaling_update"};
    bool any = false;
    for (int of = READ_CAPACITY; of <= WRITE_CAPACITY; of++) {
        struct buf text;
        buf_init(&text, 0);
        bool has = settings_put_scaling(&t->settings, of, region, ro->ctx->arena, &text);
        if (has) row_buf(ro, columns[of], &text);
        else buf_fini(&text);
        any = any || has;
    }
    return any;
}

static int emit_autoscaling(struct row_out *ro, const struct schema_table *t) {
    row_names(ro, t);
    return put_scaling(ro, t, NULL) ? row_out_emit(ro) : 0;
}

static int emit_tags(struct row_out *ro, const char *keyspace, const char *table, const struct setting_map *tags) {
    const char *id = table ? arena_printf(ro->ctx->arena, "/keyspace/%s/table/%s", keyspace, table)
                           : arena_printf(ro->ctx->arena, "/keyspace/%s/", keyspace);
    if (!id) return err_nomem(ro->ctx->err);
    if (tags->n == 0 || !row_out_wants(ro, 0, id)) return 0;
    row_text(ro, "resource_id", id);
    row_text(ro, "keyspace_name", keyspace);
    row_text(ro, "resource_name", table ? table : keyspace);
    row_text(ro, "resource_type", table ? "table" : "keyspace");
    row_map(ro, "tags", tags->n, tags->entries);
    return row_out_emit(ro);
}

YIELDS(mcs_tags) {
    for (uint32_t i = 0; i < ro->ctx->schema->n_spaces; i++) {
        const struct schema_space *space = ro->ctx->schema->spaces[i];
        const struct schema_keyspace *ks = space->keyspace;
        struct schema_table_cursor at = schema_tables_begin(&space->tables);
        if (emit_tags(ro, ks->name, NULL, &ks->tags)) return -1;
        for (const struct schema_table *t; (t = schema_tables_next(&at));)
            if (emit_tags(ro, ks->name, t->name, &t->settings.tags)) return -1;
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
