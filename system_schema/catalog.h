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

#include "base/ip_address.h"
#include "engine/engine.h"
#include "keyspaces/compat.h"
#include "system_schema/objects/schema.h"
#include "system_schema/system_tables/virtual.h"

struct catalog;
struct trace_store;

enum tally_mode { MODE_KEYSPACES, MODE_CASSANDRA };

/* The values that system.local and system.peers show for this node. */
struct node_info {
    const char *cluster_name, *datacenter, *rack, *release_version, *cql_version;
    const char *listen_address; /* numeric; of a server that listens on all addresses, the IPv4 loopback address */
    uint16_t port;
    /* rows of system.peers: "none", "keyspaces" (nine addresses; peers_following), or a list of
     * numeric addresses. A connection sees those of its own family, IPv4 or IPv6. NULL: none */
    const char *peers;
    const char *region, *account; /* used in ARNs; NULL: the data centre, and the account of AWS's examples */
};
/* Checks a node_info.peers setting. ERR_CONFIG: it has none of the three forms. */
int peers_check(const char *setting, struct err *e) MUST_CHECK;
enum { KEYSPACES_PEERS = 9 };
/* Writes the i-th address after listen_address; after 127.0.0.1 or ::1 when listen_address is of
 * the other family. The setting `keyspaces` shows the first nine to a connection of this family. */
void peers_following(const char *listen_address, bool ipv6, uint32_t i, char out[IP_ADDRESS_TEXT]);

struct object_kind; /* object_kind.h */

/* Quotas of Amazon Keyspaces that are settings; 0: no limit. The arrays, indexed by enum
 * schema_capacity_kind, hold the units per second that tables may be provisioned with. */
struct catalog_quota {
    int64_t table_units[2], account_units[2]; /* one table; all together */
    int64_t types, type_depth;                /* user types in all keyspaces; levels of one within another */
};

struct catalog_options {
    struct eng *eng;
    struct clock *clock;
    struct clock_control *clock_control; /* the same clock, for system_control.clock; NULL: clients cannot move it */
    enum tally_mode mode;
    const char *ddl_delay; /* ddl_delay.h: how long an object stays CREATING, UPDATING or DELETING; NULL: none */
    const char *ddl_rules; /* ddl_rule.h; NULL: none */
    int64_t recovery_window_s; /* how far back tables can be restored; 0: 35 days */
    bool control;          /* the keyspace system_control exists */
    struct node_info node;
    struct catalog_quota quota;
    struct trace_store *traces; /* what system_traces shows (trace_store.h); NULL: nothing */
    uint32_t n_tables; /* further system tables */
    const struct virtual_table *tables;
    uint32_t n_kinds; /* further kinds of objects, behind those of object_kind.def */
    const struct object_kind *const *kinds;
};

/* Reads the persisted objects, builds the system keyspaces and resumes unfinished changes. */
struct catalog *catalog_open(const struct catalog_options *o, struct err *e) MUST_CHECK;
void catalog_close(struct catalog *c);
const struct node_info *catalog_node(const struct catalog *c);
enum tally_mode catalog_mode(const struct catalog *c);
/* The ARN of the table's newest change stream in the Region, in the arena. NULL: the table never had
 * a stream, or no memory. */
const char *catalog_stream_arn(const struct catalog *c, const struct schema_table *t, const char *region,
                               struct arena *a);
/* The host id that system.local shows; stable over restarts. */
const uint8_t *catalog_host_id(const struct catalog *c);

/* A reference to the current snapshot; schema_unref it. Any thread. */
const struct schema *catalog_schema(struct catalog *c);
/* Generation of the current snapshot, by one atomic load: tells the holder of a snapshot whether
 * it is still the current one. */
uint64_t catalog_generation(const struct catalog *c);

/* A change of the schema, as the protocol reports it to clients (SCHEMA_CHANGE result and event,
 * protocol v4 section 4.2.5.5). DROPPED is reported when the drop begins. GONE is not reported
 * to clients: it means that the object's name is free, because its drop has ended or because its
 * creation or restoration has failed. GONE of a keyspace covers everything in it. */
enum schema_change_kind { CHANGE_CREATED, CHANGE_UPDATED, CHANGE_DROPPED, CHANGE_GONE };
enum schema_change_target { TARGET_KEYSPACE, TARGET_TABLE, TARGET_TYPE, TARGET_FUNCTION, TARGET_AGGREGATE };
struct schema_change {
    enum schema_change_kind kind;
    enum schema_change_target target;
    uint32_t object; /* schema_table.object of a table; an equally unique id of any other object */
    char keyspace[64], name[224];
};

/* The catalogue calls a listener after a change became visible in catalog_schema: one change at
 * a time, in the order of the changes, without the catalogue's lock. A DDL statement is answered
 * after the listeners have returned from its own change. A new object gets a name only after the
 * listeners have returned from the GONE of that name. So a listener may wait for the disk, but
 * must neither run DDL nor add or remove listeners. It runs on the thread of a DDL statement, on
 * the catalogue's worker, or on the thread that called catalog_resume. */
typedef void (*catalog_change_cb)(void *arg, const struct schema_change *change);
void catalog_on_change(struct catalog *c, catalog_change_cb cb, void *arg);
/* After it returns the catalogue no longer calls cb with arg. */
void catalog_off_change(struct catalog *c, catalog_change_cb cb, void *arg);

/* ---- DDL ---- */

enum catalog_op {
    CATALOG_CREATE_KEYSPACE,
    CATALOG_ALTER_KEYSPACE,
    CATALOG_DROP_KEYSPACE,
    CATALOG_CREATE_TABLE,
    CATALOG_ALTER_TABLE,
    CATALOG_DROP_TABLE,
    CATALOG_RESTORE_TABLE,
    CATALOG_TRUNCATE_TABLE,
    CATALOG_CREATE_TYPE,
    CATALOG_ALTER_TYPE,
    CATALOG_DROP_TYPE,
    CATALOG_CREATE_OBJECT,
    CATALOG_DROP_OBJECT
};

struct catalog_column {
    const char *name;
    const struct cql_type *type;
    enum schema_column_kind kind;
    bool desc;
};

/* The two checks of one column that ALTER TABLE adds. The first refuses a taken name and a
 * static column in a table without clustering columns; the second refuses a dropped column that
 * comes back with an incompatible definition. catalog_apply makes both. The compiler of a
 * statement makes them, too, after the other checks of that column and before those of the next,
 * which keeps Cassandra's order of errors. ERR_INVALID. */
int catalog_check_added(const struct schema_table *t, const struct catalog_column *col, struct err *e) MUST_CHECK;
int catalog_check_comes_back(const struct schema_table *t, const struct catalog_column *col, struct arena *a,
                             struct err *e) MUST_CHECK;

/* One analysed DDL statement. The caller owns everything; the catalogue copies what it keeps. */
struct catalog_change {
    enum catalog_op op;
    const struct object_kind *kind; /* CREATE_OBJECT, DROP_OBJECT: the kind, which lives in a keyspace */
    const void *definition;         /* CREATE_OBJECT: the kind's own structure */
    const char *keyspace, *name; /* name: the table or type; NULL for keyspaces */
    const struct compat *compat; /* decides about quotas; NULL: no quota is enforced */
    bool conditional;            /* IF NOT EXISTS, IF EXISTS */
    bool column_conditional;     /* ALTER TABLE and TYPE: IF NOT EXISTS and IF EXISTS for columns and fields */
    int8_t durable_writes;       /* keyspaces: 0, 1, or -1: default, unchanged */
    bool client_timestamps; /* keyspaces: their tables get client-side timestamps, when there are several Regions */
    uint32_t n_replication;      /* keyspaces: 'class' first; 0: unchanged */
    const struct schema_option *replication;
    bool has_id; /* CREATE TABLE WITH ID */
    uint8_t id[16];
    uint32_t n_columns; /* CREATE: key columns first, in key order; ALTER: the added columns */
    const struct catalog_column *columns; /* for a type: its fields, of which only names and types count */
    uint32_t n_drops; /* columns of a table */
    const char *const *drops;
    int64_t drop_us; /* the write time of the drop; ENG_NO_TS: now */
    uint32_t n_renames;
    const char *const *rename_from, *const *rename_to;
    uint32_t n_options; /* tables: options to set (a map option replaces all its entries); keyspaces: tags */
    const struct schema_option *options;
    const char *from_keyspace, *from_name; /* RESTORE: the table that is restored */
    bool has_restore_us;                   /* false: as of now, or as of its drop */
    int64_t restore_us;
    uint32_t n_unset; /* option names, or names of whole map options, to remove */
    const char *const *unset;
    bool at_once; /* ALTER: the object stays ACTIVE; no rule delays the change or makes it fail */
};

/* Fills err with the refusal of a change of one of the server's own keyspaces; returns -1.
 * catalog_apply calls it. The compiler of a statement calls it before it checks the rest of the
 * statement. */
int catalog_refuse_system(const struct catalog_change *change, struct err *e);

/* Checks the change against the current state, persists it and starts it. 1: done, and *out is
 * the change to report to the client; 0: nothing to do (IF [NOT] EXISTS), and *out is filled,
 * too; -1: err (Invalid, AlreadyExists, Unauthorized, Config). In keyspaces mode the client gets
 * its answer at once. In cassandra mode it gets it when the object has its final status: until
 * then *unfinished is the id to pass to catalog_outcome; 0: the change is finished. Waits for
 * the disk: do not call it on an event loop. */
int catalog_apply(struct catalog *c, const struct catalog_change *change, struct schema_change *out,
                  uint32_t *unfinished, struct err *e) MUST_CHECK;
/* The state of a change that *unfinished named: 1, under way; 0, done; -1 with ERR_SERVER,
 * failed, which happens only by a rule of system_control. */
int catalog_outcome(struct catalog *c, uint32_t unfinished, struct err *e) MUST_CHECK;

/* True if the object (schema_change.object) exists, in any status. False once its name is free. */
bool catalog_has_object(struct catalog *c, uint32_t object) MUST_CHECK;

/* Call after the clock was moved: changes that are now due go on at once. Any thread. */
void catalog_clock_moved(struct catalog *c);

/* Makes every unfinished change go on now, held or not. Changes that start later get the delay
 * of their rules. */
void catalog_release_held(struct catalog *c);

/* ---- saved states (ddl/reload.c) ---- */

/* Ends the catalogue's threads, so that none of them uses the engine. The caller makes sure that
 * no statement is under way. */
void catalog_suspend(struct catalog *c);
/* Starts the threads again. changed: the store was replaced: the catalogue reads everything
 * again, publishes it, and calls the listeners for each difference. */
int catalog_resume(struct catalog *c, bool changed, struct err *e) MUST_CHECK;

/* The operations behind system_control.snapshots. The layer that can stop all other work
 * provides them. Each runs on the thread of a statement. */
struct catalog_states {
    void *arg;
    int (*save)(void *arg, const char *name, const char *keyspace, struct err *e); /* keyspace "": everything */
    int (*put_back)(void *arg, const char *name, struct err *e);
    int (*remove)(void *arg, const char *name, struct err *e);
};
/* Call before the first statement; NULL: the server saves no states. */
void catalog_set_states(struct catalog *c, const struct catalog_states *states);

/* Starts to copy what is needed to put back a state that was saved for one keyspace
 * (recovery/saved.c). */
void catalog_saved_prepare(struct catalog *c, const char *name, const char *keyspace);
/* Waits until that copy is complete. -1: it failed. */
int catalog_saved_await(struct catalog *c, const char *name, const char *keyspace, struct err *e) MUST_CHECK;
/* Frees the copy that was made for the state, or (NULL) for all states. */
void catalog_saved_forget(struct catalog *c, const char *name);
/* Puts the saved keyspace back into the store and leaves everything else as it is. The catalogue
 * is suspended; resume it as changed. -1: nothing has changed. */
int catalog_saved_put_back(struct catalog *c, const char *name, struct err *e) MUST_CHECK;

/* ---- capacity ---- */

/* The units that auto scaling provides; the request limiter implements it. Any thread. */
struct catalog_scaling {
    /* False: auto scaling has changed nothing of the table. units: per second, indexed by enum
     * schema_capacity_kind. */
    bool (*units)(void *arg, uint32_t object, int64_t units[2]);
    void *arg;
};
/* Call it before the first request, and with NULL after the last one. NULL: nothing scales. */
void catalog_set_scaling(struct catalog *c, const struct catalog_scaling *scaling);
/* As schema_capacity, but units that auto scaling provides replace those of the definition.
 * */
void catalog_capacity(const struct catalog *c, const struct schema_table *t, struct schema_capacity *out);

/* ---- point-in-time recovery (recovery.h) ---- */

/* The first moment to which a table with that history can be restored; INT64_MAX: the history no
 * longer exists. */
int64_t catalog_restorable_since(struct catalog *c, uint32_t history);
/* How far back a table can be restored, and how long after its drop. */
int64_t catalog_recovery_window_us(const struct catalog *c);

struct catalog_history {
    const char *keyspace, *name;
    bool begun;
    int64_t earliest_us, gone_us; /* gone_us INT64_MAX: the table exists */
    uint64_t bytes;               /* on disk, and logged since the start */
};
/* Calls fn for every history; it must not call the catalogue. */
int catalog_each_history(struct catalog *c, int (*fn)(void *arg, const struct catalog_history *h), void *arg);
