/* The engine's record of a table in memory, found by the storage id. Private to engine/.
 *
 * Life: made when the id is first used; found without a lock by whoever is in a section
 * (engine/epoch.h); pinned by whoever writes; closed by eng_table_drop, which takes the rows away
 * once no pin is left, and then frees the memory. Of an id that was freed one bit stays until the
 * engine is closed.
 *
 * Invariant 8: no write reaches a storage id after it was freed. Whatever writes records of a table
 * holds a pin of it: a batch from its first delta until it is committed or dropped, a step that
 * settles, a pass that reclaims, a table that is taken over. A closed table gives no pin, and its
 * rows are taken away when it has none.
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
    _Atomic(struct engi_table *) next; /* of its place */
    uint32_t id;
    _Atomic uint32_t pins;    /* changed under the lock */
    _Atomic bool closed;      /* likewise; never unset */
    _Atomic int64_t gc_grace; /* seconds */
    _Atomic int64_t min_ts;   /* the smallest timestamp written since the engine was opened */
    _Atomic uint32_t columns; /* above every column id written since */
    struct engi_marks marks;
    _Atomic uint64_t changed[ENGI_BUCKETS / 64]; /* buckets whose stored rows have changed since somebody took note
                                                    (eng_changed_take) */
    _Atomic uint64_t passed[ENGI_BUCKETS / 64]; /* buckets where a read had to pass many rows that a deletion covers */
    _Atomic int64_t reclaimed_at; /* seconds: when the reclaimer last visited the table */
    _Atomic int64_t as_of;        /* seconds: what has expired later has not yet; INT64_MAX: the clock alone counts */
    _Atomic(struct engi_history *) history; /* every write goes there, too; NULL: it has none */
    _Atomic(struct engi_dropped *) dropped; /* NULL: none */
    _Atomic uint64_t row_cache; /* [u32 generation of its entries, and of runs][u32 how many keep it shut] */
};

enum { ENGI_TABLE_PLACES = 4096, ENGI_FREED_BLOCKS = 16384 };

struct engi_tables {
    pthread_mutex_t lock; /* of who makes, pins, closes or frees */
    _Atomic(struct engi_table *) places[ENGI_TABLE_PLACES]; /* lists, by id */
    uint64_t *freed[ENGI_FREED_BLOCKS]; /* a bit for each id; under the lock. NULL: none of its ids was freed */
    _Atomic uint32_t n;
};

void engi_tables_init(struct engi_tables *all);
/* Nobody is in a section. */
void engi_tables_fini(struct eng *eng);
/* Every table becomes unknown, and no id counts as freed: another store takes the place of this
 * one. Nothing is pinned. */
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
/* Whether it is being freed: whoever holds a pin for long lets go of it. */
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
