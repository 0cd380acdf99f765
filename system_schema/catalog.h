/* The catalogue: keyspaces, types and tables with their status. DDL changes it, the engine persists
 * it, and readers see it as snapshots.
 *
 * Life of a DDL statement: cql analyses it into a struct catalog_change and calls catalog_apply on
 * a blocking thread. The catalogue checks the change against the current state, writes the new
 * state durably and answers. After the DDL delay the catalogue's worker thread moves the object to
 * its final status. When the change becomes visible the catalogue publishes a snapshot and calls
 * the listeners. A restart resumes every unfinished change.
 */
#pragma once

#include "membership/membership.h"
#include "system_schema/ddl/change.h"
#include "system_schema/objects/schema.h"
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
    uint32_t n_kinds; /* further kinds of objects, behind those of object_kind.def */
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
/* The version of the schema that clients see now. Any thread. */
void catalog_schema_version(struct catalog *c, uint8_t version[16]);

/* A reference to the current snapshot; schema_unref it. Any thread. */
const struct schema *catalog_schema(struct catalog *c);
/* Generation of the current snapshot, by one atomic load: tells the holder of a snapshot whether
 * it is still the current one. */
uint64_t catalog_generation(const struct catalog *c);

/* The listener is the caller's, and stays valid until catalog_off_change. */
void catalog_on_change(struct catalog *c, struct catalog_listener *l);
/* After it returns the catalogue no longer calls the listener, which may not be registered. */
void catalog_off_change(struct catalog *c, struct catalog_listener *l);

/* ---- DDL ---- */

/* Checks the change against the current state, persists it and starts it. Returns 1 if done, and
 * *out is the change to report to the client, 0 if there is nothing to do (IF [NOT] EXISTS), and *out is
 * filled, too, or -1 with err set (Invalid, AlreadyExists, Unauthorized, Config). In keyspaces mode the
 * client gets its answer at once. In cassandra mode it gets it when the object has its final
 * status: until then *unfinished is the id to pass to catalog_outcome; 0 if the change is finished.
 * Waits for the disk: do not call it on an event loop. */
int catalog_apply(struct catalog *c, const struct catalog_change *change, struct schema_change *out,
                  uint32_t *unfinished, struct err *e) MUST_CHECK;
/* The state of a change that *unfinished named: 1, under way; 0, done; -1 with ERR_SERVER,
 * failed, which happens only by a rule of system_control. */
int catalog_outcome(struct catalog *c, uint32_t unfinished, struct err *e) MUST_CHECK;

/* True if the object (schema_change.object) exists, in any status. False once its name is free. */
bool catalog_has_object(struct catalog *c, uint32_t object) MUST_CHECK;

/* Whether the records of the store hold the table (NULL: the keyspace) and it is not gone. Unlike a
 * snapshot they hold what other servers have changed until now. Waits for the store; -1 if it
 * cannot be read. */
int catalog_recorded(struct catalog *c, const char *keyspace, const char *table, bool *recorded,
                     struct err *e) MUST_CHECK;

/* Reads the version of the schema's records, and the records if other servers have changed them: the
 * snapshot is then as new as the call. Waits for the store. Returns -1 with ERR_OVERLOADED, or the
 * store cannot be read. */
int catalog_catch_up(struct catalog *c, struct err *e) MUST_CHECK;

/* Call after the clock was moved: changes that are now due go on at once. Any thread. */
void catalog_clock_moved(struct catalog *c);

/* Makes every unfinished change go on now, held or not. Changes that start later get the delay
 * of their rules. */
void catalog_release_held(struct catalog *c);

/* ---- saved states ---- */

/* Ends the catalogue's threads, so that none of them uses the engine. The caller makes sure that
 * no statement is under way. */
void catalog_suspend(struct catalog *c);
/* Starts the threads again. changed: the store was replaced: the catalogue reads everything
 * again, publishes it, and calls the listeners for each difference. */
int catalog_resume(struct catalog *c, bool changed, struct err *e) MUST_CHECK;

/* Call before the first statement; NULL if the server saves no states. */
void catalog_set_states(struct catalog *c, const struct catalog_states *states);

/* Starts to copy what is needed to put back a state that was saved for one keyspace. */
void catalog_saved_prepare(struct catalog *c, const char *name, const char *keyspace);
/* Waits until that copy is complete. Returns -1 if it failed. */
int catalog_saved_await(struct catalog *c, const char *name, const char *keyspace, struct err *e) MUST_CHECK;
/* Frees the copy that was made for the state, or (NULL) for all states. */
void catalog_saved_forget(struct catalog *c, const char *name);
/* Puts the saved keyspace back into the store and leaves everything else as it is. The catalogue is
 * suspended; resume it as changed. Returns -1 if nothing has changed. */
int catalog_saved_put_back(struct catalog *c, const char *name, struct err *e) MUST_CHECK;

/* ---- capacity ---- */

/* Call it before the first request, and with NULL after the last one. NULL means nothing scales. */
void catalog_set_scaling(struct catalog *c, const struct catalog_scaling *scaling);
/* As schema_capacity, but units that auto scaling provides replace those of the definition. */
void catalog_capacity(const struct catalog *c, const struct schema_table *t, struct table_capacity *out);
/* The settings of a table as clients see them: those of the definition, what follows from them, and
 * what only the server knows. region: of the stream's ARN. Returns -1 if memory is exhausted. */
int catalog_settings(const struct catalog *c, const struct schema_table *t, const char *region, struct arena *a,
                     struct table_settings *out) MUST_CHECK;

/* ---- point-in-time recovery ---- */

/* The first moment to which a table with that history can be restored; INT64_MAX: the history no
 * longer exists. */
int64_t catalog_restorable_since(struct catalog *c, uint32_t history);
/* How far back a table can be restored, and how long after its drop. */
int64_t catalog_recovery_window_us(const struct catalog *c);

/* Calls fn for every history that there is at the call. Waits for the disk. -1 means what fn returned, or memory
 * is exhausted. */
int catalog_each_history(struct catalog *c, int (*fn)(void *arg, const struct history_report *h), void *arg);
