/* The engine's inside: the store, the tables' states, the stripe locks, the commit thread. Private
 * to engine/. */
#pragma once

#include <pthread.h>
#include <stdatomic.h>

#include "engine/dropped.h"
#include "engine/epoch.h"
#include "engine/fold.h"
#include "engine/gather.h"
#include "engine/history.h"
#include "engine/key.h"
#include "engine/kv.h"
#include "engine/marks.h"
#include "engine/reclaim.h"
#include "engine/row_cache.h"
#include "engine/run.h"
#include "engine/slot.h"
#include "engine/stripe.h"
#include "engine/settle.h"
#include "engine/table.h"
#include "engine/write_clock.h"

enum { ENGI_CALLBACKS_MAX = 64 };

struct engi_commit {
    pthread_mutex_t turn; /* held during a sync, by the commit thread or by a loop; taken before lock */
    pthread_mutex_t lock;
    pthread_cond_t work, done;
    pthread_t thread;
    bool running, stop;                /* under lock */
    _Atomic uint64_t written, wanted;  /* sequences: of the newest commit; the newest that a request waits for */
    _Atomic uint64_t durable;
    _Atomic uint64_t asked;  /* total of requests that have asked */
    _Atomic uint64_t enough; /* total of asked up to which the thread need not be woken */
    struct engi_gather gather; /* under lock */
    int64_t told_us; /* under turn: when the log last said why writes are refused */
    bool synced_here;          /* under turn: a loop has synced since the thread last checked */
    _Atomic bool failed;
    struct { eng_durable_cb cb; void *arg; } callbacks[ENGI_CALLBACKS_MAX];
    _Atomic uint32_t n_callbacks; /* callbacks below it are set */
};

struct eng {
    struct kv *kv;
    pthread_rwlock_t whole; /* held for writing while kv is replaced by another store */
    struct kv_options kv_options;
    struct kv *retired; /* closed when its last iterator is gone */
    bool shared; /* !kv->one_writer, known before kv is set: compactions need it while the store is being opened */
    enum eng_durability durability;
    _Atomic int64_t waiting_since_us; /* since when commits wait for the store; 0: none does */
    struct clock *clock;
    struct engi_commit commit;
    struct engi_fold fold;
    struct engi_slots slots;
    struct engi_row_cache *row_cache;
    struct engi_runs *runs; /* NULL: none */
    struct engi_horizon newest; /* of the timestamps of all rows */
    struct engi_gate gate;
    struct engi_reclaim reclaim;
    _Atomic uint32_t heals; /* marks of range and partition tombstones that were taken away */
    _Atomic uint64_t stats[ENG_STATS]; /* what is counted where it is rare; the rest is with what it counts */
    struct engi_settle settle;
    struct engi_write_clock write_clock;
    struct engi_histories histories;
    struct engi_stripe stripes[ENGI_STRIPES];
    pthread_mutex_t expiry_lock; /* of expiry; held while it is called */
    eng_expiry_fn expiry;        /* NULL: not set */
    void *expiry_arg;
    pthread_mutex_t notice_lock; /* of notice; held while it is called, and no other lock is taken under it */
    eng_notice_fn notice;        /* NULL: not set */
    void *notice_arg;
    bool watches;
    struct engi_epoch epoch;
    struct engi_tables tables;
};

/* Whether the bucket may hold range or partition tombstones. */
static inline bool engi_deleted(const struct engi_table *t, int64_t token) {
    return !t || engi_mark_has(t->marks.set, engi_mark_place(ENGI_MARK_COVER, engi_bucket(token)));
}
static inline bool engi_table_deleted(struct eng *eng, uint32_t table, int64_t token) {
    return engi_deleted(engi_table(eng, table), token);
}
static inline void engi_count(struct eng *eng, enum eng_stat stat) {
    atomic_fetch_add_explicit(&eng->stats[stat], 1, memory_order_relaxed);
}

/* Marks a bucket changed: after the store has the write, and before the write is acknowledged. */
static inline void engi_changed(struct engi_table *t, uint16_t bucket) {
    if (t && !(atomic_load_explicit(&t->changed[bucket / 64], memory_order_relaxed) >> (bucket % 64) & 1))
        engi_mark_put(t->changed, bucket, true);
}
void engi_changed_all(struct engi_table *t);

static inline const struct engi_dropped *engi_dropped_of(const struct engi_table *t) {
    return t ? atomic_load_explicit(&t->dropped, memory_order_acquire) : NULL;
}

/* Switches off all proofs about the table until the engine is opened again. */
void engi_table_forget(struct engi_table *t);

/* Calls fn for every key in [from, to); at NULL: now. */
int engi_scan_keys(struct eng *eng, const struct kv_snapshot *at, struct slice from, struct slice to,
                   int (*fn)(void *arg, struct slice key, struct slice value, struct err *e), void *arg,
                   struct err *e) MUST_CHECK;

int engi_commit_start(struct eng *eng, struct err *e) MUST_CHECK;
/* Ends the thread and syncs what the durability promises at a clean end. */
void engi_commit_stop(struct eng *eng);
/* A new sequence, for a write that the store has just taken. */
uint64_t engi_commit_next_seq(struct eng *eng);
/* -1 while a failed sync is not healed: nothing may be written. */
int engi_commit_check(const struct eng *eng, struct err *e) MUST_CHECK;
/* Has seq synced, also where writes are acknowledged before their sync, and waits for it. One
 * thread syncs at a time, and none after a failed sync: a second fsync may succeed although the
 * first one lost data. */
int engi_commit_wait(struct eng *eng, uint64_t seq, struct err *e) MUST_CHECK;

int engi_load_marks(struct eng *eng, struct err *e) MUST_CHECK;
/* The time, in seconds, that decides which of the table's rows have expired or are old enough to
 * drop. */
int64_t engi_table_now(const struct eng *eng, const struct engi_table *t);
/* eng_ingest from a snapshot of the store; NULL: the present content. */
int engi_ingest_at(struct eng *eng, uint32_t table, struct eng *from, uint32_t from_table, const struct kv_snapshot *at,
                   struct err *e) MUST_CHECK;
/* Adds a delta, as a commit wrote it, to a batch for another table. rest: its key behind the
 * table's id. */
int engi_batch_replay(struct eng_batch *b, uint32_t table, struct slice rest, struct slice delta,
                      struct err *e) MUST_CHECK;
/* Calls eng->expiry for a row whose expired data is removed. */
void engi_tell_expiry(struct eng *eng, struct slice key, struct slice value, int64_t covered_ts);

/* For the store's compactions. */
enum kv_verdict engi_purge(void *arg, struct slice key, struct slice value, struct buf *out);
int engi_merge(void *arg, struct slice a, struct slice b, struct buf *out);

