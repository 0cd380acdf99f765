/* The structure of a snapshot. Every shared part is reference-counted and holds references to the
 * parts that it points to.
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

#include "system_schema/objects/schema.h"

/* The owner of one definition: the arena that the definition lives in and, for a table or type,
 * a reference to its keyspace. */
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
/* Removes the table out (or NULL) from the list and adds in (or NULL), with a reference. Chunks
 * that other lists share stay unchanged. */
int tables_edit(struct schema_tables *t, const struct schema_table *out, const struct schema_table *in,
                struct err *e) MUST_CHECK;
/* Makes a new list that shares the same chunks. */
int tables_copy(const struct schema_tables *from, struct schema_tables *to, struct err *e) MUST_CHECK;
void tables_fini(struct schema_tables *t);

/* The types of a keyspace. Spaces share the list, so that the cost of changing a table does not
 * depend on the number of types. */
struct type_list {
    atomic_uint refs;
    uint32_t n;
    const struct schema_type *types[]; /* held */
};

struct space {
    struct schema_space space; /* first */
    atomic_uint refs;
    struct type_list *types; /* space.types; NULL if none */
    uint32_t id; /* of the keyspace's object; 0 for a system keyspace */
};
/* Makes a space that holds the keyspace and the tables and types of like (NULL: none). */
struct space *space_new(uint32_t id, const struct schema_keyspace *ks, const struct space *like,
                        struct err *e) MUST_CHECK;
void space_unref(struct space *s);
/* Replaces the type of that object, if there is one, by in (NULL: removes it). Other spaces that
 * share the list keep it unchanged. */
int space_edit_types(struct space *s, uint32_t object, const struct schema_type *in, struct err *e) MUST_CHECK;

struct snapshot {
    struct schema schema; /* first: a schema pointer is a snapshot pointer */
    atomic_uint refs;
    uint32_t cap;
    struct space **spaces; /* schema.spaces; held */
};

/* Makes a snapshot with one reference: a copy of like (NULL: empty), with room for more spaces.
 * Returns NULL if memory is exhausted. */
struct snapshot *snapshot_new(const struct snapshot *like, uint32_t more) MUST_CHECK;
struct space *snapshot_space(const struct snapshot *s, uint32_t id);
/* Takes over the caller's reference. The space replaces the one with the same id, or is added;
 * there must be room. */
void snapshot_put(struct snapshot *s, struct space *space);
void snapshot_drop(struct snapshot *s, uint32_t id);
