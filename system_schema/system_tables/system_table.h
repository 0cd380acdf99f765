/* The functions that yield system tables' rows, one per name in system_table.def. Inside
 * system_schema only. */
#pragma once

#include "system_schema/catalog_state.h"
#include "system_schema/system_tables/row_out.h"

#define YIELDS(name) \
    int yield_##name(const struct virtual_context *ctx, const struct schema_table *table, virtual_row_fn row, void *arg)

#define WRITES(name) \
    int write_##name(const struct virtual_context *ctx, const struct schema_table *table, \
                     const struct virtual_change *change)

YIELDS(control_ddl);
YIELDS(control_objects);
WRITES(control_ddl);
WRITES(control_objects);
WRITES(local);
YIELDS(control_snapshots);
WRITES(control_snapshots);
YIELDS(control_clock);
WRITES(control_clock);
YIELDS(none);
YIELDS(peers);
WRITES(peers);
YIELDS(size_estimates);
YIELDS(table_estimates);
YIELDS(region_keyspaces);
YIELDS(region_tables);
YIELDS(region_types);
YIELDS(region_autoscaling);
YIELDS(local);
YIELDS(prepared_statements);
WRITES(prepared_statements);
YIELDS(schema_keyspaces);
YIELDS(schema_tables);
YIELDS(schema_columns);
YIELDS(schema_column_masks);
YIELDS(schema_types);
YIELDS(schema_dropped_columns);
YIELDS(mcs_keyspaces);
YIELDS(mcs_tables);
YIELDS(mcs_tables_history);
YIELDS(mcs_columns);
YIELDS(mcs_types);
YIELDS(mcs_tags);
YIELDS(mcs_autoscaling);
YIELDS(virtual_keyspaces);
YIELDS(virtual_tables);
YIELDS(virtual_columns);
YIELDS(trace_sessions);
YIELDS(trace_events);
WRITES(trace_sessions);
WRITES(trace_events);

/* ---- shared by the tables that show the schema ---- */

/* Put the columns of a keyspace, table or type that system_schema and system_schema_mcs share. */
void put_keyspace(struct row_out *ro, const struct schema_keyspace *ks);
void put_table(struct row_out *ro, const struct schema_table *t);
int put_type(struct row_out *ro, const struct schema_type *t);
/* One row per column of the table. */
int emit_columns(struct row_out *ro, const struct schema_table *t);
bool keyspace_is_virtual(const struct schema_keyspace *ks);
