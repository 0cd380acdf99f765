/* The keyspace system_views, as Cassandra has it from release 4.0 on: what a node tells of itself.
 * Registered with the catalogue (system_schema/virtual.h); its tables are the rows of
 * system_views.def. */
#pragma once

#include "ledger/ledger.h"
#include "server/config.h"
#include "system_schema/virtual.h"

/* Whose data the tables show; must outlive the catalogue. config NULL: there are no settings to show. */
struct system_views {
    struct ledger *ledger;
    const struct config *config;
};

enum system_views_table {
#define VIEWS_TABLE(name, yields, comment, columns) VIEWS_TABLE_##name,
#include "server/system_views.def"
#undef VIEWS_TABLE
    VIEWS_TABLES
};

void system_views_tables(struct system_views *v, struct virtual_table tables[VIEWS_TABLES]);
