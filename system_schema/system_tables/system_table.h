/* The context of the room, and the functions that yield system tables' rows, one per name in
 * system_table.def. Inside system_schema only. */
#pragma once

#include "system_schema/ddl/ddl.h"
#include "system_schema/system_tables/node_info.h"
#include "system_schema/system_tables/provider.h"
#include "system_schema/system_tables/row_out.h"

/* The server's description of itself, as system.local and system.peers show it. */
struct node {
    struct node_info info;
    uint8_t host_id[16]; /* stable over restarts */
    int64_t started_s;   /* since 1970; system.local's gossip_generation */
    struct membership *membership; /* system.peers shows its other servers; NULL if there are none */
};
/* Copies info into the arena, with its defaults; loads or makes the host id. membership may be
 * NULL. */
int node_init(struct node *n, const struct node_info *info, struct membership *membership, struct objects *o,
              struct arena *a, struct err *e) MUST_CHECK;

/* The partitioner that new connections get, and its switch (partitioner.c). */
/* objects->lock guards all fields except now and next (C1). The switch is the guest of ddl: its due
 * time is ddl->guest.due_us. */
struct partitioner {
    struct ddl *ddl;
    atomic_uint now, next; /* the same when no switch is under way */
    uint8_t record[2];     /* as it was read or written last */
    uint32_t n_record;     /* bytes of it; 0 if there is none */
    bool is_damaged;       /* the stored record is, so the next one replaces it unconditionally */
    int64_t since_us;      /* monotonic */
    char failure[DDL_WORDS_MAX];
};

bool partitioner_is_switching(const struct partitioner *p);
/* Loads the record, after the rules; a switch that was under way goes on. The lock is held. */
int partitioner_load(struct partitioner *p, struct ddl *d, struct err *e) MUST_CHECK;
/* Begins a switch, which takes as long as the rules say, and records it. ERR_INVALID: there is no
 * such partitioner. Takes the lock. */
int partitioner_switch(struct partitioner *p, struct slice name, struct err *e) MUST_CHECK;

struct trace_store;

struct system_tables {
    struct catalog *catalog;
    struct node node;
    struct partitioner partitioner;
    struct trace_store *traces;            /* or NULL */
    struct clock_control *clock_control;   /* the server's clock, when it can be moved; or NULL */
    const struct catalog_states *states;   /* or NULL */
    const struct catalog_scaling *scaling; /* or NULL */
};
/* Makes the system keyspaces, with n tables of layers above. They live in the arena. */
int system_tables_build(struct system_tables *s, uint32_t n, const struct virtual_table *more, struct arena *a,
                        struct err *e) MUST_CHECK;
/* The context, for the functions of a table of this room. */
static inline struct system_tables *context_of(const struct schema_table *table) { return table->virt->owner; }

#define YIELDS(name) int yield_##name(struct row_out *ro)
#define WRITES(name) \
    int write_##name(const struct virtual_context *ctx, const struct schema_table *table, \
                     const struct virtual_change *change)
#define SYSTEM_TABLE(releases, keyspace, table, from, ...) YIELDS(from);
#define SYSTEM_TABLE_ORDERED SYSTEM_TABLE
#define SYSTEM_TABLE_STORED SYSTEM_TABLE
#define SYSTEM_TABLE_WRITTEN(releases, keyspace, table, name, ...) \
    YIELDS(name); \
    WRITES(name);
#define SYSTEM_TABLE_ERASED SYSTEM_TABLE_WRITTEN
#include "system_schema/system_tables/system_table.def"
#undef SYSTEM_TABLE
#undef SYSTEM_TABLE_ORDERED
#undef SYSTEM_TABLE_STORED
#undef SYSTEM_TABLE_WRITTEN
#undef SYSTEM_TABLE_ERASED

/* ---- shared by the tables that show the schema ---- */

typedef int (*space_fn)(struct row_out *ro, const struct schema_space *space);
/* Calls fn for each keyspace that is shown and that the statement may want, by name. Unlisted keyspaces are for
 * statements that name them, and for tables of unlisted keyspaces. */
int each_space(struct row_out *ro, bool (*is_shown)(const struct schema_keyspace *ks), space_fn fn);
#define YIELD_SPACES(name, is_shown, fn) \
    YIELDS(name) { return each_space(ro, is_shown, fn); }

/* Put the columns of a keyspace, table or type that system_schema and system_schema_mcs share. */
void put_keyspace(struct row_out *ro, const struct schema_keyspace *ks);
void put_table(struct row_out *ro, const struct schema_table *t);
/* The columns of AUTOSCALING_SETTINGS (settings_put_scaling). Returns false if the table has none. */
bool put_scaling(struct row_out *ro, const struct schema_table *t, const char *region);
int put_type(struct row_out *ro, const struct schema_type *t);
/* One row per column of the table. */
int emit_columns(struct row_out *ro, const struct schema_table *t);
