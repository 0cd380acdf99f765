/* system_multiregion_info.*: the Regions of multi-Region keyspaces; this one node stands for all
 * Regions (https://docs.aws.amazon.com/keyspaces/latest/devguide/multiRegion-replication.html). */
#include "system_schema/system_tables/system_table.h"

/* A Region that is being added shows how many of the tables are in it; the others show nothing
 * until the keyspace is ACTIVE again
 * (https://docs.aws.amazon.com/keyspaces/latest/devguide/keyspaces-multi-region-replica-status.html). */
static int emit_keyspaces(struct row_out *ro, const struct schema_space *space) {
    const struct schema_keyspace *ks = space->keyspace;
    for (const struct schema_region *r = ks->regions; r < ks->regions + ks->n_regions; r++) {
        enum schema_status status = schema_region_status(ks, r);
        char progress[SCHEMA_PROGRESS_TEXT];
        if (r->is_new) schema_replication_progress(space, progress);
        /* The page prints the status as "Active". */
        char *word = arena_strdup(ro->ctx->arena, schema_status_name(status));
        if (!word) return err_nomem(ro->ctx->err);
        for (char *p = word + 1; *p; p++) *p |= *p >= 'A' && *p <= 'Z' ? 0x20 : 0;
        row_text(ro, "keyspace_name", ks->name);
        row_text(ro, "region", r->name);
        row_text(ro, "status", word);
        if (status != SCHEMA_UPDATING)
            row_text_copy(ro, "tables_replication_progress",
                          r->is_new ? progress : status == SCHEMA_ACTIVE ? "100%" : "0%");
        if (row_out_emit(ro)) return -1;
    }
    return 0;
}

/* Tables and types have one row for each Region, too. */
static int emit_region(struct row_out *ro, const struct schema_keyspace *ks, const char *column, const char *name,
                       const char *region, enum schema_status status) {
    row_text(ro, "keyspace_name", ks->name);
    row_text(ro, column, name);
    row_text(ro, "region", region);
    row_text(ro, "status", schema_status_name(status));
    return row_out_emit(ro);
}

static int emit_tables(struct row_out *ro, const struct schema_space *space) {
    struct schema_table_cursor at = schema_tables_begin(&space->tables);
    const struct schema_keyspace *ks = space->keyspace;
    for (const struct schema_table *t; (t = schema_tables_next(&at));)
        for (const struct schema_region *r = ks->regions; r < ks->regions + ks->n_regions; r++)
            if (emit_region(ro, ks, "table_name", t->name, r->name, schema_replica_status(ks, t, r))) return -1;
    return 0;
}

/* Types are in a new Region from the start, because its tables need them. */
static int emit_types(struct row_out *ro, const struct schema_space *space) {
    const struct schema_keyspace *ks = space->keyspace;
    for (const struct schema_type *const *t = space->types; t < space->types + space->n_types; t++)
        for (const struct schema_region *r = ks->regions; r < ks->regions + ks->n_regions; r++)
            if (emit_region(ro, ks, "type_name", (*t)->type->name, r->name, (*t)->status)) return -1;
    return 0;
}

/* ---- auto scaling: the settings for all Regions, overridden by those for one ---- */

static int emit_scaling(struct row_out *ro, const struct schema_table *t, const char *region) {
    row_names(ro, t);
    row_text(ro, "region", region);
    return put_scaling(ro, t, region) ? row_out_emit(ro) : 0;
}

static int emit_autoscaling(struct row_out *ro, const struct schema_space *space) {
    struct schema_table_cursor at = schema_tables_begin(&space->tables);
    const struct schema_keyspace *ks = space->keyspace;
    for (const struct schema_table *t; (t = schema_tables_next(&at));)
        for (uint32_t r = 0; r < ks->n_regions; r++)
            if (emit_scaling(ro, t, ks->regions[r].name)) return -1;
    return 0;
}

static bool has_regions(const struct schema_keyspace *ks) { return !ks->is_system && ks->n_regions; }

YIELD_SPACES(region_keyspaces, has_regions, emit_keyspaces)
YIELD_SPACES(region_tables, has_regions, emit_tables)
YIELD_SPACES(region_types, has_regions, emit_types)
YIELD_SPACES(region_autoscaling, has_regions, emit_autoscaling)
