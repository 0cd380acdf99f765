/* The engine's record of a table in memory, found by the storage id. Private to engine/.
 *
 * Life: made when the id is first used; found without a lock by a thread in a section
 * (engine/epoch.h); pinned by writers; closed by eng_table_drop, which removes the rows once no pin
 * is left, and then frees the memory. One bit for a freed id stays until the engine is closed.
 *
 * Invariant 8: no write reaches a storage id after it was freed. Every writer of a table's records
 * holds a pin of it: a batch from its first delta until it is committed or dropped, a step that
 * settles, a pass that reclaims, a copy of a table. A closed table gives no pin, and its rows are
 * removed when it has none left.
 */
#pragma once

#include "base/err.h"
#include "engine/epoch.h"
#include "engine/marks.h"

struct eng;
struct engi_history;
struct engi_dropped;

struct engi_table {
    struct engi_retired retired;
    _Atomic(struct engi_table *) next; /* list of its place */
    uint32_t id;
    _Atomic uint32_t pins;    /* changed under the lock */
    _Atomic bool closed;      /* likewise; never unset */
    _Atomic int64_t gc_grace; /* seconds */
    _Atomic int64_t min_ts;   /* the smallest timestamp written since the engine was opened */
    _Atomic uint32_t columns; /* above every column id written since */
    struct engi_marks marks;
    _Atomic uint64_t changed[ENGI_BUCKETS / 64]; /* buckets changed since the last eng_changed_take */
    _Atomic uint64_t passed[ENGI_BUCKETS / 64]; /* buckets where a read passed many rows that a deletion covers */
    _Atomic int64_t reclaimed_at; /* seconds: when the reclaimer last visited the table */
    _Atomic int64_t as_of;        /* seconds: data that expires later is alive; INT64_MAX: the clock decides */
    _Atomic(struct engi_history *) history; /* every write is also recorded there; NULL: none */
    _Atomic(struct engi_dropped *) dropped; /* NULL: none */
    _Atomic uint64_t row_cache; /* [u32 generation of its entries, and of runs][u32 how many keep it shut] */
};

enum { ENGI_TABLE_PLACES = 4096, ENGI_FREED_BLOCKS = 16384 };

struct engi_tables {
    pthread_mutex_t lock; /* held to make, pin, close or free a table */
    _Atomic(struct engi_table *) places[ENGI_TABLE_PLACES]; /* lists, by id */
    uint64_t *freed[ENGI_FREED_BLOCKS]; /* a bit for each id; under the lock. NULL: none of its ids was freed */
    _Atomic uint32_t n;
};

void engi_tables_init(struct engi_tables *all);
/* Called when no section is open. */
void engi_tables_fini(struct eng *eng);
/* Forgets every table and every freed id, for a switch to another store. No table is pinned. */
void engi_tables_forget(struct eng *eng);

/* In a section, or with a pin. NULL: the id was freed, or there is no memory; then nothing may
 * be assumed of the table. */
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
/* The ids of all tables there are, to be freed by the caller. NULL: no memory. */
uint32_t *engi_table_ids(struct eng *eng, uint32_t *n) MUST_CHECK;
/* eng_each_stored of a store. */
struct kv;
int engi_each_stored(struct kv *kv, int (*fn)(void *arg, uint32_t id, struct err *e), void *arg,
                     struct err *e) MUST_CHECK;
/* Removes the rows and marks of a table that has no writer; its id may be used again. */
int engi_table_clear(struct eng *eng, uint32_t id, struct err *e) MUST_CHECK;
