/* The schema: keyspaces, user types, tables, columns, as an immutable snapshot.
 *
 * The catalogue (catalog.h) makes a new snapshot for every visible change and swaps a pointer; each
 * reader holds a reference. Snapshots share what did not change between them: each definition of a
 * keyspace or table is reference-counted, so that a prepared statement holds its tables without a
 * snapshot. A change copies only what it changes and the path to it. System keyspaces live as long
 * as the catalogue. Any thread.
 */
#pragma once

#include "base/arena.h"
#include "settings/settings.h"
#include "types/type.h"

enum tally_mode { MODE_KEYSPACES, MODE_CASSANDRA };

enum schema_status {
#define STATUS(id, text, verb) SCHEMA_##id,
#include "system_schema/objects/status.def"
#undef STATUS
    SCHEMA_STATUSES
};
const char *schema_status_name(enum schema_status s);
/* The statement that is under way in this status, for example "CREATE"; NULL if there is none. */
const char *schema_status_verb(enum schema_status s);
/* True if system_schema shows an object of this status: it is created and not dropped. */
static inline bool schema_status_is_listed(enum schema_status s) {
    return s == SCHEMA_ACTIVE || s == SCHEMA_UPDATING || s == SCHEMA_INACCESSIBLE_ENCRYPTION_CREDENTIALS;
}

enum schema_column_kind { COLUMN_PARTITION_KEY, COLUMN_CLUSTERING, COLUMN_STATIC, COLUMN_REGULAR };

struct schema_column {
    const char *name;
    const struct cql_type *type;
    enum schema_column_kind kind;
    uint32_t position; /* within the key; 0 for the others */
    bool desc;         /* clustering order */
    uint32_t id;       /* of its cells; never reused within the table */
    uint32_t ordinal;  /* index in schema_table.columns */
};

/* A column that was dropped; it may have been added again. */
struct schema_dropped {
    const char *name, *type; /* type: as CQL, with tuples in place of user types */
    enum schema_column_kind kind;
    uint32_t id;        /* of its cells; the column gets it again if it is added again */
    int64_t dropped_us; /* cells with a write time up to this are dropped */
};

struct schema_virtual; /* system_schema/system_tables/virtual.h */
struct schema_owner;   /* system_schema/objects/snapshot.h: counts references to a definition */

struct schema_table {
    const struct schema_keyspace *keyspace; /* held by the table */
    const char *name;
    uint8_t id[16];   /* table id as clients see it */
    uint32_t object;  /* of the catalogue: never reused */
    uint32_t shape;   /* grows when the object's columns change; not persisted */
    uint32_t storage; /* struct eng_part.table */
    enum schema_status status;
    int64_t created_ms;
    /* All columns in the order of SELECT *: partition key, clustering, then statics and regulars
     * each by name. */
    uint32_t n_columns, n_partition_key, n_clustering, n_static, n_regular;
    const struct schema_column *columns;
    const struct cql_type *const *key_types; /* of the partition key's columns */
    uint32_t n_column_ids;          /* ids given so far: the next added column gets this one */
    const uint32_t *column_ordinals; /* by column id: index in columns; UINT32_MAX: no such column now */
    uint32_t n_dropped; /* by id */
    const struct schema_dropped *dropped;
    bool lacks_dropped; /* at least one of them was not added again */
    struct table_settings settings;
    bool is_counter;
    uint32_t history; /* the engine's history to restore the table from; 0 if none */
    const struct schema_virtual *virt; /* a system table answered from memory; NULL if rows are in the engine */
    struct schema_owner *owner;
};

struct schema_type {
    const struct schema_keyspace *keyspace; /* held by the type */
    const struct cql_type *type;            /* not frozen; its name is the type's */
    uint32_t object;                        /* of the catalogue: never reused */
    enum schema_status status;
    int64_t modified_ms;
    struct schema_owner *owner;
};

struct schema_region {
    const char *name;
    bool is_new; /* an ALTER KEYSPACE under way adds it */
};

struct schema_keyspace {
    const char *name;
    bool durable_writes;
    bool is_system;
    bool unlisted; /* one of Tally's own in cassandra mode: lists leave it out, its name finds it */
    enum schema_status status;
    uint32_t n_replication; /* 'class' first, the fully qualified name */
    const struct schema_option *replication; /* plain texts, not CQL literals */
    struct setting_map tags;
    uint32_t n_regions; /* by name, with those that are being added; 0 if it is in one Region */
    const struct schema_region *regions;
    uint32_t replicated; /* the tables up to this object id are in the Regions that are being added */
    struct schema_owner *owner;
};

/* Tables by name, in chunks that snapshots share. */
struct schema_tables {
    uint32_t n, n_chunks;
    struct schema_chunk **chunks;
};
struct schema_table_cursor {
    const struct schema_tables *tables;
    uint32_t chunk, at;
};
static inline struct schema_table_cursor schema_tables_begin(const struct schema_tables *t) {
    return (struct schema_table_cursor){.tables = t};
}
/* Begins at the first table whose name is not below this one. */
struct schema_table_cursor schema_tables_from(const struct schema_tables *t, const char *name);
/* NULL at the end. */
const struct schema_table *schema_tables_next(struct schema_table_cursor *c);
const struct schema_table *schema_tables_find(const struct schema_tables *t, const char *name);

/* A keyspace and what it holds in one snapshot. */
struct schema_space {
    const struct schema_keyspace *keyspace;
    struct schema_tables tables;   /* of every status but DELETING */
    struct schema_tables deleting; /* only system_schema_mcs shows them */
    uint32_t n_types; /* of every status, by name; of two with one name the DELETING one is last */
    const struct schema_type *const *types;
};

struct schema {
    uint8_t version[16];
    bool cassandra_mode; /* chooses the words of errors */
    uint64_t generation; /* grows with every snapshot */
    bool has_control;    /* the keyspace system_control exists */
    uint32_t n_spaces; /* by name; includes DELETING ones, which schema_space_find does not return */
    const struct schema_space *const *spaces;
};

/* True for the server's own keyspaces that Cassandra replicates. Cassandra guards these by
 * permissions, the other system keyspaces by their names. */
bool schema_system_is_replicated(const char *keyspace);

void schema_ref(const struct schema *s);
void schema_unref(const struct schema *s);
/* Keeps a table, its columns and types, and its keyspace's definition alive without the
 * snapshot. */
void schema_table_ref(const struct schema_table *t);
void schema_table_unref(const struct schema_table *t);

const struct schema_space *schema_space_find(const struct schema *s, const char *name);
const struct schema_keyspace *schema_keyspace_find(const struct schema *s, const char *name);
/* True while the keyspace is DELETING; its name stays taken until the drop ends. */
bool schema_keyspace_is_deleting(const struct schema *s, const char *name);
/* Finds a table of any status but DELETING. */
const struct schema_table *schema_table_any(const struct schema *s, const char *keyspace, const char *name);
/* Finds a table that statements may use (ACTIVE, or UPDATING: a table stays usable while it is
 * altered). NULL with ERR_INVALID in Cassandra's words: "keyspace x does not exist", "table y
 * does not exist" (5.0), or in keyspaces mode "unconfigured table ks.t"; for the exact choice
 * see schema.c. */
const struct schema_table *schema_table_find(const struct schema *s, const char *keyspace, const char *name,
                                             struct err *e) MUST_CHECK;
/* True for a column of the partition key and for a clustering column. */
static inline bool schema_column_is_key(const struct schema_column *c) {
    return c->kind == COLUMN_PARTITION_KEY || c->kind == COLUMN_CLUSTERING;
}
const struct schema_column *schema_column_find(const struct schema_table *t, const char *name);
/* The order of columns: bytes of UTF-8, the first of which has a sign, so that "\u00e9" is before "Z"
 * (Cassandra's ColumnIdentifier compares the first eight bytes as a Java long). */
int schema_column_names_compare(const char *a, const char *b);
const struct schema_column *schema_column_by_id(const struct schema_table *t, uint32_t id);
/* Finds a type that statements may use; it lives as long as the snapshot. Returns NULL if there is
 * none. */
const struct schema_type *schema_type_find(const struct schema *s, const char *keyspace, const char *name);
/* Finds a type of any status but DELETING. */
const struct schema_type *schema_type_any(const struct schema *s, const char *keyspace, const char *name);

/* True if a statement compiled for one table definition is valid for the other. */
static inline bool schema_table_same_shape(const struct schema_table *a, const struct schema_table *b) {
    return a == b || (a->object == b->object && a->shape == b->shape && !a->virt && !b->virt);
}

/* True if the property 'ttl' is enabled, or a default TTL implies it. */
static inline bool schema_has_ttl(const struct schema_table *t) { return settings_have_ttl(&t->settings); }
bool schema_has_client_timestamps(const struct schema_table *t);
static inline void schema_capacity(const struct schema_table *t, struct table_capacity *out) {
    settings_capacity(&t->settings, t->created_ms, out);
}

/* Called when TTL deletes or changes a row. units: its size in KiB, rounded up; they belong to
 * no request. Any thread. */
typedef void (*schema_ttl_delete_fn)(void *arg, const struct schema_table *t, uint64_t units);

/* Seconds that dead data of the table stay stored. In keyspaces mode gc_grace_seconds has no effect:
 * the service removes them within ten days, whatever a table says ("Time to Live",
 * https://docs.aws.amazon.com/keyspaces/latest/devguide/TTL-how-it-works.html). */
int64_t schema_gc_grace(const struct schema_table *t, enum tally_mode mode);
/* The number of Regions of the keyspace: the data centres that NetworkTopologyStrategy names. */
uint16_t schema_regions(const struct schema_keyspace *ks);
/* The status of the keyspace in the Region: CREATING while the Region is being added. */
enum schema_status schema_region_status(const struct schema_keyspace *ks, const struct schema_region *region);
/* The status of the keyspace's table in the Region: CREATING until it is in a new Region. */
enum schema_status schema_replica_status(const struct schema_keyspace *ks, const struct schema_table *t,
                                         const struct schema_region *region);
enum { SCHEMA_PROGRESS_TEXT = 8 }; /* "100%", "66.66%" */
/* Writes the share of the keyspace's tables that are ACTIVE in the new Regions, rounded down. */
void schema_replication_progress(const struct schema_space *space, char out[SCHEMA_PROGRESS_TEXT]);

static inline const struct schema_column *schema_partition_key(const struct schema_table *t, uint32_t i) {
    return &t->columns[i];
}
static inline const struct schema_column *schema_clustering(const struct schema_table *t, uint32_t i) {
    return &t->columns[t->n_partition_key + i];
}

/* ---- the users of a user type, for system_schema_mcs.types and the API's GetType ---- */

/* Names of the tables with a column of the type, and of the types with a field of it, also
 * within collections and tuples. Uses through another user type do not count. */
struct type_users {
    uint32_t n_tables, n_parents;
    const char **tables, **parents;
};
/* In the arena. Returns -1 if memory is exhausted. */
int type_users_find(const struct schema_space *space, const char *name, struct arena *a,
                    struct type_users *out) MUST_CHECK;
/* Levels of nested user types, counting the type itself (inferred: the reference gives the
 * column and no example). */
int32_t type_nesting(const struct cql_type *t);
