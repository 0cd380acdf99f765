/* The local store: RocksDB, and what relies on this process being the only writer. And a table in
 * memory, as this store needs it: after the front's part (engine/front/table.h). Private to
 * engine/. */
#pragma once

#include <pthread.h>

#include "engine/front/table.h"
#include "engine/local/fold.h"
#include "engine/local/guard.h"
#include "engine/local/marks.h"
#include "engine/local/rocksdb/kv.h"
#include "engine/rows/key.h"

struct engi_cache;
struct engi_history;

/* engine/local/history.h */
struct engi_histories {
    pthread_mutex_t lock;
    struct engi_history *first;
    _Atomic uint64_t serial;    /* unique among the log records of a moment, also across restarts */
};

struct local {
    struct eng *eng; /* which has the store */
    struct kv *kv;
    pthread_rwlock_t whole; /* held for writing while kv is replaced by another store */
    struct kv_options kv_options;
    struct kv *retired; /* closed when its last iterator is gone */
    _Atomic int64_t waiting_since_us; /* since when commits wait for the store; 0 if none does */
    struct engi_fold fold;
    struct engi_guards guards;
    struct engi_cache *cache; /* of rows and ranges; NULL if none */
    struct engi_horizon newest, assigned; /* of the timestamps of all rows; of those that the write clock gave out */
    struct engi_commit_locks commit_locks;
    _Atomic uint32_t heals; /* marks of range and partition tombstones that were taken away */
    uint64_t removed;       /* records removed in this round of reclaiming; under its lock */
    struct engi_histories histories;
    pthread_mutex_t named_lock; /* held while named records are written: invariant 11 */
};

/* Members of struct store_ops (engine/store.h), by file: read.c, write.c, reclaim.c. */
int engi_read_row(struct store *s, const struct store_view *view, enum eng_tier tier, struct store_read *r,
                  struct err *e) MUST_CHECK;
struct kv_iter *engi_read_cursor(struct store *s, struct store_view *view, const struct store_range *range,
                                 struct err *e) MUST_CHECK;
bool engi_read_may_be_deleted(struct store *s, const struct store_view *view, int64_t token);
void engi_read_hint(struct store *s, const struct store_view *view, struct slice prefix, enum store_hint hint);
struct eng_batch *engi_write_batch_new(struct store *s);
void engi_write_batch_free(struct eng_batch *b);
int engi_write_batch_add(struct eng_batch *b, struct err *e) MUST_CHECK;
void engi_write_batch_done(struct eng_batch *b);
int engi_write_commit(struct eng_batch *b, bool patience, struct err *e) MUST_CHECK;
int local_reclaim(struct store *s, const struct store_reclaim *o, struct err *e) MUST_CHECK;
void local_reclaimed(struct store *s);
extern const struct store_ops local_store_ops;

static inline struct local *local_of(const struct store *s) { return s->own; }
/* Returns NULL if the engine has another store. */
static inline struct local *local_if(const struct eng *eng) {
    return eng->store.ops == &local_store_ops ? eng->store.own : NULL;
}

/* Opens the store of an engine that has none. If it fails, eng_close of the engine closes it. */
int local_open(struct eng *eng, const struct eng_options *o, struct err *e) MUST_CHECK;

int engi_load_marks(struct local *own, struct err *e) MUST_CHECK;
/* eng_ingest from a snapshot of the store; NULL if the present content. */
int engi_ingest_at(struct local *own, uint32_t table, struct local *from, uint32_t from_table,
                   const struct kv_snapshot *at, struct err *e) MUST_CHECK;

/* ---- tables ---- */

struct local_table {
    struct engi_table front;
    _Atomic uint32_t columns; /* above every column id written since the engine was opened */
    struct engi_marks marks;
    _Atomic uint64_t changed[ENGI_BUCKETS / 64]; /* buckets changed since the last eng_changed_take */
    _Atomic uint64_t passed[ENGI_BUCKETS / 64]; /* buckets where a read passed many rows that a deletion covers */
    _Atomic int64_t as_of; /* seconds: data that expires later is alive; INT64_MAX: the clock decides */
    _Atomic(struct engi_history *) history; /* every write is also recorded there; NULL if none */
    _Atomic uint64_t generation; /* [u32 of what the caches hold of it][u32 changes of the whole table under way] */
};

/* As engi_table of the front. */
static inline struct local_table *local_table(struct local *own, uint32_t id) {
    return (struct local_table *)engi_table(own->eng, id);
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

/* engi_table_change_begin and engi_table_change_end enclose a change of a whole table, after which
 * it has a new generation. The row cache and cached ranges keep nothing of the one before. */
static inline bool engi_table_is_changing(uint64_t generation) { return (uint32_t)generation; }
void engi_table_change_begin(struct local_table *t);
void engi_table_change_end(struct local_table *t);
