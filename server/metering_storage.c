/* system_metering.storage: the stored size of each table. */
#include "server/system_metering.h"

YIELDS_METERING(storage) {
    struct cql_db *db = metering_of(ro->table)->db;
    for (uint32_t i = 0; i < ro->ctx->schema->n_spaces; i++) {
        const struct schema_space *space = ro->ctx->schema->spaces[i];
        if (space->keyspace->is_system || !row_out_wants(ro, 0, space->keyspace->name)) continue;
        struct schema_table_cursor c = schema_tables_begin(&space->tables);
        for (const struct schema_table *t; (t = schema_tables_next(&c));) {
            struct table_size size;
            if (!row_out_wants(ro, 1, t->name)) continue;
            if (cql_table_billable_bytes(db, ro->ctx->schema, t, &ro->ctx->stop_check, &size, ro->ctx->err)) return -1;
            row_names(ro, t);
            row_count(ro, "billable_bytes", size.bytes);
            row_count(ro, "rows", size.rows);
            row_count(ro, "static_rows", size.static_rows);
            if (row_out_emit(ro)) return -1;
        }
    }
    return 0;
}
