/* The catalogue: keyspaces, types and tables with their status. DDL changes it, the engine persists
 * it, and readers see it as snapshots.
 *
 * Life of a DDL statement: cql analyses it into a struct catalog_change and calls catalog_apply on
 * a blocking thread. The catalogue checks the change against the current state, writes the new
 * state durably and answers. After the DDL delay the catalogue's worker thread moves the object to
 * its final status. When the change becomes visible the catalogue publishes a snapshot and calls
 * the listeners. A restart resumes every unfinished change.
 *
 * Other rooms include this header alone. Its parts: objects/schema_change.h has the current schema and
 * the listeners, ddl/change.h changes of the schema, recovery/history_report.h point-in-time recovery
 * and saved states, system_tables/provider.h settings and capacity as clients see them.
 */
#pragma once

#include "membership/membership.h"
#include "system_schema/ddl/change.h"
#include "system_schema/objects/schema_change.h"
#include "system_schema/recovery/history_report.h"
#include "system_schema/system_tables/node_info.h"
#include "system_schema/system_tables/provider.h"
#include "system_schema/system_tables/virtual.h"

struct catalog;
struct trace_store;

struct catalog_options {
    struct eng *eng;
    struct clock *clock;
    struct clock_control *clock_control; /* the same clock, for system_control.clock; NULL if clients cannot move it */
    enum tally_mode mode;
    const char *ddl_delay; /* ddl_delay.h: how long an object stays CREATING, UPDATING or DELETING; NULL if none */
    const char *ddl_rules; /* ddl_rule.h; NULL if none */
    int64_t recovery_window_s; /* how far back tables can be restored; 0 means 35 days */
    bool control;          /* the keyspace system_control exists */
    bool lists_own;        /* lists of the schema name Tally's own keyspaces in cassandra mode, too */
    struct node_info node;
    struct membership *membership; /* of the servers that share the store; NULL if there is one server */
    struct catalog_quota quota;
    struct trace_store *traces; /* what system_traces shows (trace_store.h); NULL if none */
    uint32_t n_tables; /* further system tables */
    const struct virtual_table *tables;
    uint32_t n_kinds; /* further kinds of objects, after those of object_kind.def */
    const struct object_kind *const *kinds;
};

/* Reads the persisted objects, builds the system keyspaces and resumes unfinished changes. */
struct catalog *catalog_open(const struct catalog_options *o, struct err *e) MUST_CHECK;
void catalog_close(struct catalog *c);

const struct node_info *catalog_node(const struct catalog *c);
/* The host id that system.local shows; stable over restarts. */
const uint8_t *catalog_host_id(const struct catalog *c);
/* The partitioner that a client gets that connects now. Any thread. */
enum partitioner_id catalog_partitioner(const struct catalog *c);

/* Call after the clock was moved: changes that are now due continue at once. Any thread. */
void catalog_clock_moved(struct catalog *c);

/* Stops the catalogue's threads, so that none of them uses the engine. The caller makes sure that
 * no statement is under way. */
void catalog_suspend(struct catalog *c);
/* Starts the threads again. changed: the store was replaced: the catalogue reads everything
 * again, publishes it, and calls the listeners for each difference. */
int catalog_resume(struct catalog *c, bool changed, struct err *e) MUST_CHECK;
