#include "system_schema/objects/table_parts.h"

#include <stdlib.h>

static int column_order(const void *pa, const void *pb) {
    const struct schema_column *a = pa, *b = pb;
    if (a->kind != b->kind) return a->kind < b->kind ? -1 : 1;
    if (schema_column_is_key(a)) return (a->position > b->position) - (a->position < b->position);
    return schema_column_names_compare(a->name, b->name);
}

int table_assemble(struct arena *a, const struct table_parts *parts, struct schema_table *out, struct err *e) {
    uint32_t *ordinals = ARENA_ARRAY(a, parts->n_column_ids ? parts->n_column_ids : 1, uint32_t);
    if (!ordinals) return err_nomem(e);
    for (uint32_t i = 0; i < parts->n_column_ids; i++) ordinals[i] = UINT32_MAX;
    qsort(parts->columns, parts->n_columns, sizeof *parts->columns, column_order);
    for (uint32_t i = 0; i < parts->n_columns; i++) {
        if (parts->columns[i].id >= parts->n_column_ids)
            return err_set(e, ERR_SERVER, "damaged schema of table %s", parts->name);
        parts->columns[i].ordinal = i;
        ordinals[parts->columns[i].id] = i;
    }
    out->name = parts->name;
    out->n_columns = parts->n_columns;
    out->columns = parts->columns;
    out->n_column_ids = parts->n_column_ids;
    out->column_ordinals = ordinals;
    out->n_dropped = parts->n_dropped;
    out->dropped = parts->dropped;
    out->lacks_dropped = false;
    for (uint32_t i = 0; i < parts->n_dropped; i++) {
        if (parts->dropped[i].id >= parts->n_column_ids)
            return err_set(e, ERR_SERVER, "damaged schema of table %s", parts->name);
        if (ordinals[parts->dropped[i].id] == UINT32_MAX) out->lacks_dropped = true;
    }
    out->settings = parts->settings;
    uint32_t counts[4] = {0};
    for (uint32_t i = 0; i < out->n_columns; i++) {
        counts[out->columns[i].kind]++;
        if (out->columns[i].type->id == CQL_COUNTER) out->is_counter = true;
    }
    out->n_partition_key = counts[COLUMN_PARTITION_KEY];
    out->n_clustering = counts[COLUMN_CLUSTERING];
    out->n_static = counts[COLUMN_STATIC];
    out->n_regular = counts[COLUMN_REGULAR];
    const struct cql_type **key_types = ARENA_ARRAY(a, out->n_partition_key + 1, const struct cql_type *);
    if (!key_types) return err_nomem(e);
    for (uint32_t i = 0; i < out->n_partition_key; i++) key_types[i] = out->columns[i].type;
    out->key_types = key_types;
    return 0;
}
