/* A table in memory, as the local store needs it: behind the front's part (engine/front/table.h).
 * Private to engine/. */
#pragma once

#include "engine/front/table.h"
#include "engine/local/local.h"
#include "engine/local/marks.h"
#include "engine/rows/key.h"

struct engi_history;

struct local_table {
    struct engi_table front;
    _Atomic uint32_t columns; /* above every column id written since the engine was opened */
    struct engi_marks marks;
    _Atomic uint64_t changed[ENGI_BUCKETS / 64]; /* buckets changed since the last eng_changed_take */
    _Atomic uint64_t passed[ENGI_BUCKETS / 64]; /* buckets where a read passed many rows that a deletion covers */
    _Atomic int64_t as_of; /* seconds: data that expires later is alive; INT64_MAX: the clock decides */
    _Atomic(struct engi_history *) history; /* every write is also recorded there; NULL: none */
    _Atomic uint64_t generation; /* [u32 of what the caches hold of it][u32 changes of the whole table under way] */
};

/* A member of struct store_ops (engine/store.h). */
void local_table_init(void *table);

/* As engi_table and engi_table_pin of the front. */
static inline struct local_table *local_table(struct local *own, uint32_t id) {
    return (struct local_table *)engi_table(own->eng, id);
}
static inline struct local_table *local_table_pin(struct local *own, uint32_t id, struct err *e) {
    return (struct local_table *)engi_table_pin(own->eng, id, e);
}

/* Whether the bucket may hold range or partition tombstones. */
static inline bool engi_deleted(const struct local_table *t, int64_t token) {
    return !t || engi_mark_has(t->marks.set, engi_mark_place(ENGI_MARK_COVER, engi_bucket(token)));
}
/* Marks a bucket changed: after the store has the write, and before the write is acknowledged. */
static inline void engi_changed(struct local_table *t, uint16_t bucket) {
    if (t && !(atomic_load_explicit(&t->changed[bucket / 64], memory_order_relaxed) >> (bucket % 64) & 1))
        engi_mark_put(t->changed, bucket, true);
}
void engi_changed_all(struct local_table *t);

/* Switches off all proofs about the table until the engine is opened again. */
void engi_table_forget(struct local_table *t);

/* The time, in seconds, that decides which of the table's rows have expired or are old enough to
 * drop. */
int64_t engi_table_now(const struct local *own, const struct local_table *t);
/* engi_table_change_begin and engi_table_change_end enclose a change of a whole table, after which
 * it has a new generation. The row cache and cached ranges keep nothing of the one before. */
static inline bool engi_table_is_changing(uint64_t generation) { return (uint32_t)generation; }
void engi_table_change_begin(struct local_table *t);
void engi_table_change_end(struct local_table *t);
