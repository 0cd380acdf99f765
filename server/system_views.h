/* The keyspace system_views, as in Cassandra 4.0 and later: virtual tables about the node
 * itself. They are the rows of system_views.def and are registered with the catalogue
 * (system_schema/system_tables/virtual.h). */
#pragma once

#include "metering/ledger/ledger.h"
#include "server/config.h"
#include "system_schema/system_tables/virtual.h"

/* The sources of the tables' data; must outlive the catalogue. config NULL: no settings are
 * shown. */
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
