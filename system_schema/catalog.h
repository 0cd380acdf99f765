/* The catalogue: keyspaces, types and tables with their status, persisted in the engine, changed by
 * DDL, published as snapshots.
 *
 * Life of a DDL statement: cql analyses it into a struct catalog_change and calls catalog_apply on
 * a blocking thread; the catalogue checks it against the current state, writes the new state
 * (durable), answers, and its worker thread carries the object to its final status after the DDL
 * delay, publishing a snapshot and telling the listeners when the change becomes visible. A restart
 * resumes every unfinished change.
 */
#pragma once

#include "engine/engine.h"
#include "keyspaces/compat.h"
#include "system_schema/schema.h"
#include "system_schema/virtual.h"

struct catalog;

enum tally_mode { MODE_KEYSPACES, MODE_CASSANDRA };

/* What system.local and system.peers tell about this node. */
struct node_info {
    const char *cluster_name, *datacenter, *rack, *release_version, *cql_version;
    const char *listen_address; /* numeric */
    uint16_t port;
    /* what system.peers shows: none, keyspaces (nine addresses, those behind listen_address), or
     * numeric addresses; NULL: none */
    const char *peers;
    const char *region, *account; /* of ARNs; NULL: the data centre, and the one of AWS's examples */
};
/* ERR_CONFIG: it is none of these. */
int peers_check(const char *setting, struct err *e) MUST_CHECK;
enum { KEYSPACES_PEERS = 9, ADDRESS_TEXT = 46 };
/* The i-th address (from 1) behind listen_address, which is an IPv4 address, or else behind
 * 127.0.0.1: what `keyspaces` shows. */
void peers_following(const char *listen_address, uint32_t i, char out[ADDRESS_TEXT]);

struct object_kind; /* object_kind.h */

/* Quotas of Amazon Keyspaces that are settings; 0: none. Units a second that tables may be
 * provisioned with are by enum schema_capacity_kind. */
struct catalog_quota {
    int64_t table_units[2], account_units[2]; /* one table; all together */
    int64_t types, type_depth;                /* user types in all keyspaces; levels of one within another */
};

struct catalog_options {
    struct eng *eng;
    struct clock *clock;
    struct clock_control *clock_control; /* the same, for system_control.clock; NULL: it cannot be moved */
    enum tally_mode mode;
    const char *ddl_delay; /* ddl_delay.h: how long an object stays CREATING, UPDATING or DELETING; NULL: none */
    const char *ddl_rules; /* ddl_rule.h; NULL: none */
    int64_t recovery_window_s; /* how far back tables can be restored; 0: 35 days */
    bool control;          /* the keyspace system_control is there */
    struct node_info node;
    struct catalog_quota quota;
    uint32_t n_tables; /* further system tables */
    const struct virtual_table *tables;
    uint32_t n_kinds; /* further kinds of objects, behind those of object_kind.def */
    const struct object_kind *const *kinds;
};

/* Reads what is persisted, makes the system keyspaces, resumes unfinished changes. */
struct catalog *catalog_open(const struct catalog_options *o, struct err *e) MUST_CHECK;
void catalog_close(struct catalog *c);
const struct node_info *catalog_node(const struct catalog *c);
enum tally_mode catalog_mode(const struct catalog *c);
/* Of the table's change stream, the newest one, in the arena; NULL: it never had one, or no memory. */
const char *catalog_stream_arn(const struct catalog *c, const struct schema_table *t, struct arena *a);
/* Stable over restarts; what system.local shows. */
const uint8_t *catalog_host_id(const struct catalog *c);

/* A reference to the current snapshot; schema_unref it. Any thread. */
const struct schema *catalog_schema(struct catalog *c);
/* Generation of the current snapshot: one atomic load, for those who hold one already. */
uint64_t catalog_generation(const struct catalog *c);

/* A change of the schema as clients are told (SCHEMA_CHANGE result and event, protocol v4 section
 * 4.2.5.5). Clients hear that an object is DROPPED when the drop begins, and nothing of GONE: the
 * object's name is free, because its drop has ended or because its creation or restoration has
 * failed. GONE of a keyspace is also that of everything in it. */
enum schema_change_kind { CHANGE_CREATED, CHANGE_UPDATED, CHANGE_DROPPED, CHANGE_GONE };
enum schema_change_target { TARGET_KEYSPACE, TARGET_TABLE, TARGET_TYPE, TARGET_FUNCTION, TARGET_AGGREGATE };
struct schema_change {
    enum schema_change_kind kind;
    enum schema_change_target target;
    uint32_t object; /* schema_table.object of a table; of others likewise an id that nothing else has */
    char keyspace[64], name[224];
};

/* Called when a change is visible in catalog_schema, for one change at a time, in the order of the
 * changes, without the catalogue's lock. A DDL statement answers when the listeners have returned
 * from its own change, and a name is not given to a new object before they have returned from GONE.
 * So a listener may wait for the disk, but neither runs DDL nor adds or removes listeners. On the
 * thread of a DDL statement, the catalogue's worker, or the caller of catalog_resume. */
typedef void (*catalog_change_cb)(void *arg, const struct schema_change *change);
void catalog_on_change(struct catalog *c, catalog_change_cb cb, void *arg);
/* cb is not called with arg any more when it returns. */
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
    const struct schema_mask *mask; /* NULL: none */
};

/* What ALTER TABLE says of one column that it adds, in Cassandra's order: the name is taken, or it
 * cannot be static; and it was dropped and was another one. The catalogue asks both; who compiles a
 * statement asks them between the faults of one column and those of the next. ERR_INVALID. */
int catalog_check_added(const struct schema_table *t, const struct catalog_column *col, struct err *e) MUST_CHECK;
int catalog_check_comes_back(const struct schema_table *t, const struct catalog_column *col, struct arena *a,
                             struct err *e) MUST_CHECK;

/* One analysed DDL statement. Everything is the caller's and copied. */
struct catalog_change {
    enum catalog_op op;
    const struct object_kind *kind; /* OBJECT: of which kind, one that lives in a keyspace */
    const void *definition;         /* CREATE_OBJECT: the kind's own structure */
    const char *keyspace, *name; /* name: of the table or type; NULL for keyspaces */
    const struct compat *compat; /* asked of the quotas; NULL: none is refused */
    bool conditional;            /* IF NOT EXISTS, IF EXISTS: finding it already so is no error */
    bool column_conditional;     /* ALTER TABLE and TYPE: IF NOT EXISTS and IF EXISTS of columns and fields */
    int8_t durable_writes;       /* keyspaces: 0, 1, or -1: default, unchanged */
    bool client_timestamps; /* keyspaces: their tables get client-side timestamps, when there are several Regions */
    uint32_t n_replication;      /* keyspaces: 'class' first; 0: unchanged */
    const struct schema_option *replication;
    bool has_id; /* CREATE TABLE WITH ID */
    uint8_t id[16];
    uint32_t n_columns; /* CREATE: key columns first, in key order; ALTER: the added ones */
    const struct catalog_column *columns; /* of a type: its fields, of which names and types count */
    uint32_t n_drops; /* columns of a table */
    const char *const *drops;
    int64_t drop_us; /* the write time of the drop; ENG_NO_TS: now */
    const char *unmask; /* the column whose mask goes; NULL: none */
    uint32_t n_renames;
    const char *const *rename_from, *const *rename_to;
    uint32_t n_options; /* tables: set these (a map option given replaces all entries of that map); keyspaces: tags */
    const struct schema_option *options;
    const char *from_keyspace, *from_name; /* RESTORE: the table whose history it is */
    bool has_restore_us;                   /* false: as it is now, or was when it was dropped */
    int64_t restore_us;
    uint32_t n_unset; /* option names, or names of whole map options, to remove */
    const char *const *unset;
    bool at_once; /* ALTER: the object stays ACTIVE: no rule delays it or lets it fail */
};

/* -1: what is said of a change of one of the server's own keyspaces. The catalogue says it; who
 * compiles a statement says it before what is wrong in it. */
int catalog_refuse_system(const struct catalog_change *change, struct err *e);

/* Checks the change against the current state, persists it and starts it. 1: done, *out is what
 * clients are told; 0: nothing to do (IF [NOT] EXISTS), *out is filled too; -1: err (Invalid,
 * AlreadyExists, Unauthorized, Config). In keyspaces mode clients are told at once; in cassandra
 * mode when the object has its final status: *unfinished is what catalog_outcome is asked for until
 * then, or 0. Waits for the disk: not on a loop. */
int catalog_apply(struct catalog *c, const struct catalog_change *change, struct schema_change *out,
                  uint32_t *unfinished, struct err *e) MUST_CHECK;
/* Of a change that *unfinished named: 1, it is under way; 0, done; -1, it failed, which only a rule
 * of system_control makes it: ERR_SERVER. */
int catalog_outcome(struct catalog *c, uint32_t unfinished, struct err *e) MUST_CHECK;

/* Is the object (schema_change.object) there, in any status? False once its name is free. */
bool catalog_has_object(struct catalog *c, uint32_t object) MUST_CHECK;

/* The clock was moved: what is due by it now goes on now. Any thread. */
void catalog_clock_moved(struct catalog *c);

/* Lets every unfinished change go on now, held or not. Those that start later have the delay that their rules say. */
void catalog_release_held(struct catalog *c);

/* ---- saved states (catalog_reload.c) ---- */

/* Ends the catalogue's threads, so that nothing of it is in the engine. No statement is under way. */
void catalog_suspend(struct catalog *c);
/* Goes on after that. changed: the store is another one: everything is read anew, shown, and what
 * is another now is told to those who listen. */
int catalog_resume(struct catalog *c, bool changed, struct err *e) MUST_CHECK;

/* What system_control.snapshots asks for: given by whoever can stop everything else. Each on a
 * thread that runs a statement. */
struct catalog_states {
    void *arg;
    int (*save)(void *arg, const char *name, const char *keyspace, struct err *e); /* keyspace "": everything */
    int (*put_back)(void *arg, const char *name, struct err *e);
    int (*remove)(void *arg, const char *name, struct err *e);
};
/* Before anybody asks; NULL: there are none. */
void catalog_set_states(struct catalog *c, const struct catalog_states *states);

/* Of a state that was saved for one keyspace (catalog_saved.c): what is to be copied of it before
 * it can be put back is being copied from now on. */
void catalog_saved_prepare(struct catalog *c, const char *name, const char *keyspace);
/* Waits until it is. -1: it cannot be. */
int catalog_saved_await(struct catalog *c, const char *name, const char *keyspace, struct err *e) MUST_CHECK;
/* The state goes, or (NULL) all do: what was copied is freed. */
void catalog_saved_forget(struct catalog *c, const char *name);
/* The store holds the keyspace as it was saved, and everything else as it is; the catalogue is
 * suspended and to be resumed as changed. -1: nothing has changed. */
int catalog_saved_put_back(struct catalog *c, const char *name, struct err *e) MUST_CHECK;

/* ---- capacity ---- */

/* The units that auto scaling provides; the limiter's side implements it. Any thread. */
struct catalog_scaling {
    /* False: it has changed nothing of the table. units: a second, by enum schema_capacity_kind. */
    bool (*units)(void *arg, uint32_t object, int64_t units[2]);
    void *arg;
};
/* Before anybody asks, and when nobody asks any more; NULL: nothing scales. */
void catalog_set_scaling(struct catalog *c, const struct catalog_scaling *scaling);
/* As schema_capacity, with the units that auto scaling provides in the place of the definition's.
 * */
void catalog_capacity(const struct catalog *c, const struct schema_table *t, struct schema_capacity *out);

/* ---- point-in-time recovery (recovery.h) ---- */

/* From which moment on a table with that history can be restored; INT64_MAX: it has none any more. */
int64_t catalog_restorable_since(struct catalog *c, uint32_t history);
/* How far back that may be, and for how long a table that was dropped can be restored. */
int64_t catalog_recovery_window_us(const struct catalog *c);

struct catalog_history {
    const char *keyspace, *name;
    bool begun;
    int64_t earliest_us, gone_us; /* gone: INT64_MAX: it is there */
    uint64_t bytes;               /* on disk, and what was logged since the start */
};
/* Calls fn for every history; it must not call the catalogue. */
int catalog_each_history(struct catalog *c, int (*fn)(void *arg, const struct catalog_history *h), void *arg);

/* ---- traces (system_traces.sessions and events), kept in memory, bounded, oldest dropped ---- */

struct trace_event {
    int64_t at_us; /* since the request began */
    const char *activity;
    const char *thread;
};
struct trace_session {
    uint8_t id[16]; /* timeuuid */
    int64_t machine_us; /* machine time when it began */
    int64_t started_us, duration_us;
    const char *command; /* QUERY */
    const char *request; /* "Execute CQL3 query" */
    struct slice client; /* address bytes, 4 or 16 */
    uint32_t n_parameters;
    const struct schema_option *parameters; /* query, consistency_level, page_size, ... */
    uint32_t n_events;
    const struct trace_event *events;
};
/* Copies. Returns what names it for catalog_trace_more; 0: no memory. Any thread. */
uint64_t catalog_trace_add(struct catalog *c, const struct trace_session *t);
/* One more event, at this machine time, with which the request ends; texts that live on. Nothing
 * where the session has left the ring. Any thread. */
void catalog_trace_more(struct catalog *c, uint64_t trace, int64_t machine_us, const char *activity,
                        const char *thread);
