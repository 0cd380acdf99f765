/* One DDL statement, analysed, as the catalogue takes it. */
#pragma once

#include "engine/engine.h"
#include "keyspaces/compat.h"
#include "system_schema/objects/schema_change.h"

struct object_kind; /* objects/object_kind.h */

/* Quotas of Amazon Keyspaces that are settings; 0 for no limit. The arrays, indexed by enum
 * capacity_kind, hold the units per second that tables may be provisioned with. */
struct catalog_quota {
    int64_t table_units[2], account_units[2]; /* one table; all together */
    int64_t types, type_depth;                /* user types in all keyspaces; levels of one within another */
};

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
int catalog_check_added(const struct schema_table *t, const struct catalog_column *col, bool cassandra_mode,
                        struct err *e) MUST_CHECK;
int catalog_check_comes_back(const struct schema_table *t, const struct catalog_column *col, bool cassandra_mode,
                             struct arena *a, struct err *e) MUST_CHECK;

/* One analysed DDL statement. The caller owns everything; the catalogue copies what it keeps. */
struct catalog_change {
    enum catalog_op op;
    const struct object_kind *kind; /* CREATE_OBJECT, DROP_OBJECT: the kind, which lives in a keyspace */
    const void *definition;         /* CREATE_OBJECT: the kind's own structure */
    const char *keyspace, *name; /* name: the table or type; NULL for keyspaces */
    const struct compat *compat; /* decides about quotas; NULL if no quota is enforced */
    bool conditional;            /* IF NOT EXISTS, IF EXISTS */
    bool column_conditional;     /* ALTER TABLE and TYPE: IF NOT EXISTS and IF EXISTS for columns and fields */
    int8_t durable_writes;       /* keyspaces: 0, 1, or -1: default, unchanged */
    bool client_timestamps; /* keyspaces: their tables get client-side timestamps, when there are several Regions */
    uint32_t n_replication;      /* keyspaces: 'class' first; 0 means unchanged */
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
    const struct table_settings *settings; /* tables: what is given (settings_merge); keyspaces: tags; NULL if none */
    struct setting_map removed_tags;       /* by key */
    const char *from_keyspace, *from_name; /* RESTORE: the table that is restored */
    bool has_restore_us;                   /* false: as of now, or as of its drop */
    int64_t restore_us;
    unsigned targets; /* ALTER TABLE: as settings_merge takes it */
    bool at_once; /* ALTER: the object stays ACTIVE; no rule delays the change or makes it fail */
};

/* Fills err with the refusal of a change of one of the server's own keyspaces; returns -1.
 * catalog_apply calls it. The compiler of a statement calls it before it checks the rest of the
 * statement. */
int catalog_refuse_system(const struct catalog_change *change, bool cassandra_mode, struct err *e);

struct catalog;

/* Checks the change against the current state, persists it and starts it. Returns 1 if done, and
 * *out is the change to report to the client, 0 if there is nothing to do (IF [NOT] EXISTS), and *out is
 * filled, too, or -1 with err set (Invalid, AlreadyExists, Unauthorized, Config). In keyspaces mode the
 * client gets its answer at once. In cassandra mode it gets it when the object has its final
 * status: until then *unfinished is the id to pass to catalog_outcome; 0 if the change is finished.
 * Waits for the disk: do not call it on an event loop. */
int catalog_apply(struct catalog *c, const struct catalog_change *change, struct schema_change *out,
                  uint32_t *unfinished, struct err *e) MUST_CHECK;
/* Returns the state of a change that *unfinished named: 1 if it is under way, 0 if it is done, or -1
 * with ERR_SERVER if it has failed, which happens only by a rule of system_control. */
int catalog_outcome(struct catalog *c, uint32_t unfinished, struct err *e) MUST_CHECK;
/* Appends when the keyspace, or its table if name is not "", can be used, for example "app is CREATING, ready
 * in 0.4 s: wait until system_schema_mcs.keyspaces shows it". Appends nothing if no change of it is
 * under way. Waits while a change is being recorded: do not call it on an event loop. */
void catalog_describe_wait(struct catalog *c, const char *keyspace, const char *name, struct buf *out);
/* Reads the version of the schema's records, and the records if other servers have changed them: the
 * snapshot is then as new as the call. Waits for the store. Returns 0, or -1 with ERR_OVERLOADED or if
 * the store cannot be read. */
int catalog_catch_up(struct catalog *c, struct err *e) MUST_CHECK;
/* Makes every unfinished change continue now, held or not. Changes that start later get the delay
 * of their rules. */
void catalog_release_held(struct catalog *c);
