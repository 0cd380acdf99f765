/* The engine's record of a table in memory, found by the storage id. Private to engine/.
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
#include "engine/local/eng.h"
#include "engine/engine.h"
#include "engine/front/epoch.h"
#include "engine/local/marks.h"
#include "engine/rows/key.h"

struct engi_history;
struct engi_dropped;
struct engi_dropped_list;

struct engi_table {
    struct engi_retired retired;
    _Atomic(struct engi_table *) next; /* list of its place */
    uint32_t id;
    _Atomic uint32_t pins;    /* changed under the lock */
    _Atomic bool closed;      /* likewise; never unset */
    bool forgotten;           /* likewise; goes with its last pin */
    struct eng *eng;          /* whose store forgets the id when the memory is freed; NULL: it need not */
    _Atomic int64_t gc_grace; /* seconds */
    _Atomic int64_t min_ts;   /* the smallest timestamp written since the engine was opened */
    _Atomic uint32_t columns; /* above every column id written since */
    struct engi_marks marks;
    _Atomic uint64_t changed[ENGI_BUCKETS / 64]; /* buckets changed since the last eng_changed_take */
    _Atomic uint64_t passed[ENGI_BUCKETS / 64]; /* buckets where a read passed many rows that a deletion covers */
    _Atomic int64_t reclaimed_at; /* seconds: when the reclaimer last visited the table */
    _Atomic int64_t as_of;        /* seconds: data that expires later is alive; INT64_MAX: the clock decides */
    _Atomic(struct engi_history *) history; /* every write is also recorded there; NULL: none */
    _Atomic(struct engi_dropped_list *) dropped; /* NULL: none */
    _Atomic uint64_t generation; /* [u32 of what the caches hold of it][u32 changes of the whole table under way] */
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
/* Removes the rows and marks of a table that has no writer; its id may be used again. */
int engi_table_clear(struct eng *eng, uint32_t id, struct err *e) MUST_CHECK;

/* ---- what the engine knows of a table ---- */

/* Whether the bucket may hold range or partition tombstones. */
static inline bool engi_deleted(const struct engi_table *t, int64_t token) {
    return !t || engi_mark_has(t->marks.set, engi_mark_place(ENGI_MARK_COVER, engi_bucket(token)));
}
static inline bool engi_table_deleted(struct eng *eng, uint32_t table, int64_t token) {
    return engi_deleted(engi_table(eng, table), token);
}
/* Marks a bucket changed: after the store has the write, and before the write is acknowledged. */
static inline void engi_changed(struct engi_table *t, uint16_t bucket) {
    if (t && !(atomic_load_explicit(&t->changed[bucket / 64], memory_order_relaxed) >> (bucket % 64) & 1))
        engi_mark_put(t->changed, bucket, true);
}
void engi_changed_all(struct engi_table *t);

/* NULL: no column was dropped. The list stays as long as the caller's section. */
const struct engi_dropped *engi_dropped_of(const struct engi_table *t);

/* Switches off all proofs about the table until the engine is opened again. */
void engi_table_forget(struct engi_table *t);

/* The time, in seconds, that decides which of the table's rows have expired or are old enough to
 * drop. */
int64_t engi_table_now(const struct eng *eng, const struct engi_table *t);
/* Whether a compaction may by now have removed data whose gc_grace counts from that moment, in
 * seconds (engi_purge_from). */
bool engi_may_be_purged(const struct eng *eng, const struct engi_table *t, int64_t from);

/* engi_table_change_begin and engi_table_change_end enclose a change of a whole table, after which
 * it has a new generation. The row cache and cached ranges keep nothing of the one before. */
static inline bool engi_table_is_changing(uint64_t generation) { return (uint32_t)generation; }
void engi_table_change_begin(struct engi_table *t);
void engi_table_change_end(struct engi_table *t);
