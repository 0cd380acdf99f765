/* The engine's record of a table in memory, found by the storage id. A store's own part of it follows
 * in the same memory (table_bytes of struct store_ops). Private to engine/.
 *
 * Life: made when the id is first used; found without a lock by a thread in a section
 * (engine/front/epoch.h); pinned by writers; closed by eng_table_drop, which removes the rows once
 * no pin is left, and then frees the memory. If another engine on the store has freed the id,
 * eng_table_forget closes it, and the memory is freed without a look at the store. One bit for a
 * freed id stays until the engine is closed.
 *
 * Invariant 8: no write reaches a storage id after it was freed. Every writer of a table's records
 * holds a pin of it: a batch from its first delta until it is committed or dropped, a step that
 * makes fragments, a pass that reclaims, a copy of a table. A closed table gives no pin, and its
 * rows are removed when it has none left.
 */
#pragma once

#include "base/err.h"
#include "engine/front/eng.h"

struct engi_dropped;
struct engi_dropped_list;

struct engi_table {
    struct engi_retired retired;
    _Atomic(struct engi_table *) next; /* list of its place */
    uint32_t id;
    _Atomic uint32_t pins;    /* changed under the lock */
    _Atomic bool closed;      /* likewise; never unset */
    bool forgotten;           /* likewise; goes with its last pin */
    struct eng *eng;          /* whose store forgets the id when the memory is freed; NULL if it need not */
    _Atomic int64_t gc_grace; /* seconds */
    _Atomic int64_t reclaimed_at; /* seconds: when the reclaimer last visited the whole table */
    uint64_t reclaim_position;    /* where its present pass continues; under the lock of passes */
    _Atomic(struct engi_dropped_list *) dropped; /* NULL if none */
};

/* Forgets every table and every freed id, for a switch to another store. No table is pinned. */
void engi_tables_forget(struct eng *eng);

/* In a section, or with a pin. Returns NULL if the id was freed, or memory is exhausted; then
 * nothing may be assumed of the table. */
struct engi_table *engi_table(struct eng *eng, uint32_t id);
/* Whether the id was freed: then it has no rows, whatever the store still holds of them. Asked
 * when engi_table found none. */
bool engi_table_was_freed(struct eng *eng, uint32_t id);
/* NULL, ERR_SERVER: the id was freed, or there is no memory. */
struct engi_table *engi_table_pin(struct eng *eng, uint32_t id, struct err *e) MUST_CHECK;
void engi_table_unpin(struct eng *eng, struct engi_table *t);
/* Whether a pin holds it: invariant 8, asserted where a record is written. */
static inline bool engi_is_pinned(const struct engi_table *t) {
    return atomic_load_explicit(&t->pins, memory_order_relaxed) > 0;
}
/* Whether the table is being freed. A thread that holds a pin for long checks this and unpins. */
static inline bool engi_is_closed(const struct engi_table *t) {
    return atomic_load_explicit(&t->closed, memory_order_relaxed);
}
/* The ids of all tables there are, to be freed by the caller. Returns NULL if memory is exhausted. */
uint32_t *engi_table_ids(struct eng *eng, uint32_t *n) MUST_CHECK;
/* Removes the rows and marks of a table that has no writer; its id may be used again. */
int engi_table_clear(struct eng *eng, uint32_t id, struct err *e) MUST_CHECK;

/* Returns NULL if no column was dropped. The list stays as long as the caller's section. */
const struct engi_dropped *engi_dropped_of(const struct engi_table *t);
