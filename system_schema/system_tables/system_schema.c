/* system_schema.* and system_virtual_schema.*: the objects that are created and not dropped, in
 * the form of the reported release. */
#include <stdlib.h>

#include "system_schema/system_tables/system_table.h"

/* True for the keyspaces of virtual tables. As in Cassandra, system_schema leaves out only
 * these. */
bool keyspace_is_virtual(const struct schema_keyspace *ks) {
    return ks->is_system && (strcmp(ks->name, "system_virtual_schema") == 0 || strcmp(ks->name, "system_views") == 0);
}

/* The keyspace's tables, from the position at which the statement continues. */
static struct schema_table_cursor tables_from(const struct row_out *ro, const struct schema_space *space) {
    const struct value *after = ro->ctx->after;
    bool inside = after && slice_is(value_slice(after[0]), space->keyspace->name);
    const char *name = inside ? (const char *)arena_dup(ro->ctx->arena, value_slice(after[1])).p : NULL;
    return name ? schema_tables_from(&space->tables, name) : schema_tables_begin(&space->tables);
}

int each_space(struct row_out *ro,
               bool (*is_shown)(const struct schema_keyspace *ks), space_fn fn) {
    for (uint32_t i = 0; i < ro->ctx->schema->n_spaces; i++) {
        const struct schema_space *space = ro->ctx->schema->spaces[i];
        const struct schema_keyspace *ks = space->keyspace;
        bool passed = ro->table->virt->ordered && row_out_passed(ro, ks->name);
        bool unlisted = ks->unlisted && !ro->ctx->key && !ro->table->keyspace->unlisted;
        if (!is_shown(ks) || unlisted || !row_out_wants(ro, 0, ks->name) || passed) continue;
        if (fn(ro, space)) return -1;
    }
    return 0;
}

void put_keyspace(struct row_out *ro, const struct schema_keyspace *ks) {
    row_text(ro, "keyspace_name", ks->name);
    row_bool(ro, "durable_writes", ks->durable_writes);
    row_map(ro, "replication", ks->n_replication, ks->replication);
}

static int emit_keyspace(struct row_out *ro, const struct schema_space *space) {
    put_keyspace(ro, space->keyspace);
    return row_out_emit(ro);
}

/* Leaves booleans and memtable null until a statement sets them, as Cassandra does. */
static void put_option(struct row_out *ro, const struct schema_table *t, enum setting_id id, bool cassandra_mode) {
    const struct setting *row = &setting_rows[id];
    const struct table_settings *s = settings_of_release(&t->settings, id, cassandra_mode),
                                *otherwise = settings_defaults(cassandra_mode);
    const void *v = (const char *)s + row->offset;
    switch (row->kind) {
    case SETTING_KIND_TEXT:
        if (id != SETTING_memtable || (s->memtable && strcmp(s->memtable, "default") != 0))
            row_text(ro, row->name, *(const char *const *)v);
        break;
    case SETTING_KIND_INT: row_int(ro, row->name, (int32_t)*(const int64_t *)v); break;
    case SETTING_KIND_REAL: row_double(ro, row->name, *(const double *)v); break;
    case SETTING_KIND_BOOL:
        /* A Cassandra node does not show cdc unless CDC is enabled on it, which it is not by
         * default. */
        if (cassandra_mode && id == SETTING_cdc) break;
        if (*(const bool *)v != *(const bool *)((const char *)otherwise + row->offset))
            row_bool(ro, row->name, *(const bool *)v);
        break;
    default: {
        const struct setting_map *m = v;
        row_map(ro, row->name, m->n, m->entries);
        break;
    }
    }
}

void put_table(struct row_out *ro, const struct schema_table *t) {
    const char *flags[2] = {"compound", "counter"};
    row_names(ro, t);
    bool schema_table = strcmp(ro->table->keyspace->name, "system_schema") == 0;
    bool since_4 = schema_table ? schema_column_find(ro->table, "additional_write_policy") != NULL
                                : ro->ctx->schema->cassandra_mode;
    for (int i = 0; i < N_OPTIONS; i++) put_option(ro, t, i, since_4);
    row_texts(ro, "flags", t->is_counter ? 2 : 1, flags);
    row_bytes(ro, "id", slice_of(t->id, 16));
}

static int emit_tables(struct row_out *ro, const struct schema_space *space) {
    struct schema_table_cursor at = tables_from(ro, space);
    for (const struct schema_table *t; (t = schema_tables_next(&at));) {
        if (!schema_status_is_listed(t->status)) continue;
        put_table(ro, t);
        if (row_out_emit(ro)) return -1;
    }
    return 0;
}

static int by_name(const void *a, const void *b) {
    return strcmp((*(const struct schema_column *const *)a)->name, (*(const struct schema_column *const *)b)->name);
}

int emit_columns(struct row_out *ro, const struct schema_table *t) {
    static const char *const kinds[] = {"partition_key", "clustering", "static", "regular"};
    const struct schema_column **sorted = ARENA_ARRAY(ro->ctx->arena, t->n_columns, const struct schema_column *);
    if (!sorted) return err_nomem(ro->ctx->err);
    for (uint32_t i = 0; i < t->n_columns; i++) sorted[i] = &t->columns[i];
    qsort(sorted, t->n_columns, sizeof *sorted, by_name);
    for (uint32_t i = 0; i < t->n_columns; i++) {
        const struct schema_column *col = sorted[i];
        bool key = schema_column_is_key(col);
        const char *type = cql_type_text(col->type, ro->ctx->arena);
        if (!type) return err_nomem(ro->ctx->err);
        row_names(ro, t);
        row_text(ro, "column_name", col->name);
        row_text(ro, "clustering_order", col->kind != COLUMN_CLUSTERING ? "none" : col->desc ? "desc" : "asc");
        row_bytes(ro, "column_name_bytes", slice_str(col->name));
        row_text(ro, "kind", kinds[col->kind]);
        row_int(ro, "position", key ? (int32_t)col->position : -1);
        row_text(ro, "type", type);
        if (row_out_emit(ro)) return -1;
    }
    return 0;
}

static int emit_all_columns(struct row_out *ro, const struct schema_space *space) {
    struct schema_table_cursor at = tables_from(ro, space);
    for (const struct schema_table *t; (t = schema_tables_next(&at));)
        if (schema_status_is_listed(t->status) && emit_columns(ro, t)) return -1;
    return 0;
}

int put_type(struct row_out *ro, const struct schema_type *t) {
    const struct cql_type *type = t->type;
    const char **texts = ARENA_ARRAY(ro->ctx->arena, type->n_args + 1, const char *);
    if (!texts) return err_nomem(ro->ctx->err);
    for (uint32_t j = 0; j < type->n_args; j++)
        if (!(texts[j] = cql_type_text(type->args[j], ro->ctx->arena))) return err_nomem(ro->ctx->err);
    row_text(ro, "keyspace_name", t->keyspace->name);
    row_text(ro, "type_name", type->name);
    row_texts(ro, "field_names", type->n_args, type->field_names);
    row_texts(ro, "field_types", type->n_args, texts);
    return 0;
}

static int emit_types(struct row_out *ro, const struct schema_space *space) {
    for (uint32_t i = 0; i < space->n_types; i++)
        if (schema_status_is_listed(space->types[i]->status) && (put_type(ro, space->types[i]) || row_out_emit(ro)))
            return -1;
    return 0;
}

static int by_dropped_name(const void *a, const void *b) {
    return strcmp((*(const struct schema_dropped *const *)a)->name, (*(const struct schema_dropped *const *)b)->name);
}

static int emit_all_dropped(struct row_out *ro, const struct schema_space *space) {
    struct schema_table_cursor at = tables_from(ro, space);
    for (const struct schema_table *t; (t = schema_tables_next(&at));) {
        if (!schema_status_is_listed(t->status) || !t->n_dropped) continue;
        const struct schema_dropped **sorted = ARENA_ARRAY(ro->ctx->arena, t->n_dropped, const struct schema_dropped *);
        if (!sorted) return err_nomem(ro->ctx->err);
        for (uint32_t i = 0; i < t->n_dropped; i++) sorted[i] = &t->dropped[i];
        qsort(sorted, t->n_dropped, sizeof *sorted, by_dropped_name);
        for (uint32_t i = 0; i < t->n_dropped; i++) {
            row_names(ro, t);
            row_text(ro, "column_name", sorted[i]->name);
            row_long(ro, "dropped_time", sorted[i]->dropped_us / 1000);
            row_text(ro, "kind", sorted[i]->kind == COLUMN_STATIC ? "static" : "regular");
            row_text(ro, "type", sorted[i]->type);
            if (row_out_emit(ro)) return -1;
        }
    }
    return 0;
}

static int emit_virtual_tables(struct row_out *ro, const struct schema_space *space) {
    struct schema_table_cursor at = tables_from(ro, space);
    for (const struct schema_table *t; (t = schema_tables_next(&at));) {
        row_names(ro, t);
        row_text(ro, "comment", t->settings.comment);
        if (row_out_emit(ro)) return -1;
    }
    return 0;
}

static bool is_stored(const struct schema_keyspace *ks) {
    return schema_status_is_listed(ks->status) && !keyspace_is_virtual(ks);
}

YIELD_SPACES(schema_keyspaces, is_stored, emit_keyspace)
YIELD_SPACES(schema_tables, is_stored, emit_tables)
YIELD_SPACES(schema_columns, is_stored, emit_all_columns)
YIELD_SPACES(schema_types, is_stored, emit_types)
YIELD_SPACES(schema_dropped_columns, is_stored, emit_all_dropped)
YIELD_SPACES(virtual_keyspaces, keyspace_is_virtual, emit_keyspace)
YIELD_SPACES(virtual_tables, keyspace_is_virtual, emit_virtual_tables)
YIELD_SPACES(virtual_columns, keyspace_is_virtual, emit_all_columns)
