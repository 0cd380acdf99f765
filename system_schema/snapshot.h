/* How a snapshot is held together: every part that is shared is counted, and holds what it points
 * to.
 *
 *   snapshot ─> space (a keyspace's) ─┬> chunk (of tables) ─> table ─┬> keyspace (its definition)
 *                                     └> type list ─> type ──────────┘
 *
 * Inside system_schema only. Definitions of the system keyspaces have no owner and live in the
 * catalogue's arena, so every reference must be dropped before catalog_close.
 *
 * S1. Nothing that a published snapshot reaches is changed.
 * S2. Tables of a list are in the order of their names, no name twice; no chunk is empty.
 */
#pragma once

#include <stdatomic.h>

#include "system_schema/schema.h"

/* One definition: the arena that it lives in and, of a table, its keyspace. */
struct schema_owner {
    atomic_uint refs;
    struct arena arena;
    const struct schema_keyspace *keyspace; /* held */
};
struct schema_owner *owner_new(void) MUST_CHECK;
void owner_unref(struct schema_owner *o);
void schema_keyspace_ref(const struct schema_keyspace *ks);
void schema_keyspace_unref(const struct schema_keyspace *ks);

enum { CHUNK_TABLES = 64 };
struct schema_chunk {
    atomic_uint refs;
    uint32_t n;
    const struct schema_table *tables[CHUNK_TABLES]; /* held */
};
/* Takes one table out (or NULL) and one in (or NULL), which is held then. The list changes; chunks
 * that others hold do not. */
int tables_edit(struct schema_tables *t, const struct schema_table *out, const struct schema_table *in,
                struct err *e) MUST_CHECK;
/* A list of its own with the same chunks. */
int tables_copy(const struct schema_tables *from, struct schema_tables *to, struct err *e) MUST_CHECK;
void tables_fini(struct schema_tables *t);

/* The types of a keyspace, which spaces share: a change of a table costs the same however many there are. */
struct type_list {
    atomic_uint refs;
    uint32_t n;
    const struct schema_type *types[]; /* held */
};

struct space {
    struct schema_space space; /* first */
    atomic_uint refs;
    struct type_list *types; /* space.types; NULL: none */
    uint32_t id; /* of the keyspace's entry; 0: of a system keyspace */
};
/* Holds the keyspace; with the tables of another space, or none. */
struct space *space_new(uint32_t id, const struct schema_keyspace *ks, const struct space *like,
                        struct err *e) MUST_CHECK;
void space_unref(struct space *s);
/* Puts in (or NULL) in the place of the type of that object, if there is one. Others that share the
 * list keep it as it was. */
int space_edit_types(struct space *s, uint32_t object, const struct schema_type *in, struct err *e) MUST_CHECK;

struct snapshot {
    struct schema schema; /* first: a schema pointer is a snapshot pointer */
    atomic_uint refs;
    uint32_t cap;
    struct space **spaces; /* schema.spaces; held */
};

/* With one reference: a copy of another one, with room for more spaces, or empty. NULL: no memory. */
struct snapshot *snapshot_new(const struct snapshot *like, uint32_t more) MUST_CHECK;
struct space *snapshot_space(const struct snapshot *s, uint32_t id);
/* Takes the reference, in the place of the space of its id or as a new one. There must be room. */
void snapshot_put(struct snapshot *s, struct space *space);
void snapshot_drop(struct snapshot *s, uint32_t id);

/* What a table is made of; columns come in key order first, the rest in any order. */
struct table_parts {
    const char *name;
    uint32_t n_columns, n_column_ids;
    struct schema_column *columns; /* sorted in place; become the table's */
    uint32_t n_dropped; /* by id */
    const struct schema_dropped *dropped;
    uint32_t n_options;
    const struct schema_option *options;
};

/* Orders the columns, numbers them and derives what the table tells of its options. Everything lives in the arena. */
int table_assemble(struct arena *a, const struct table_parts *parts, struct schema_table *out,
                   struct err *e) MUST_CHECK;

/* The value of an option, or NULL when it has its default. */
const char *option_find(const struct schema_option *options, uint32_t n, const char *name);
