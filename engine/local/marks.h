/* What the local store records in addition to rows: marks and horizons. Private to engine/.
 *
 * Marks say what kinds of records a bucket of a table's partitions may hold, so that reads and
 * writes can skip asking the store. They are kept in memory and as records in the store: [u32
 * ENGI_TABLE_MARKS][u32 table][u16 mark * 256 + bucket].
 *
 * Invariant 4: a mark is set in memory before any thread can see the record it represents, and is
 *              in the store with that record or before it. A commit notes its marks while it holds
 *              one of the commit locks. The reclaimer removes a mark when it has found a bucket
 *              clean: it takes all commit locks and checks that the mark was not touched since it
 *              began.
 *
 * A horizon is a ceiling of timestamps, recorded in the store before any write reaches it. After
 * a restart this ceiling is the only bound of the written timestamps.
 *
 * Invariant 1: no timestamp of the horizon's kind is in the store at or above the highest ceiling
 *              recorded there. The batch that would break it carries the next ceiling, a step
 *              ahead, so that one batch in many pays for a record.
 */
#pragma once

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "base/compiler.h"
#include "engine/front/lock_order.h"
#include "engine/rows/key.h"

struct kv_batch;

enum engi_mark {
    ENGI_MARK_COVER,     /* partition deletions and range tombstones */
    ENGI_MARK_OLD_ROWS,  /* an older version's mark of row deletions, of a whole table: its bucket is 0 */
    ENGI_MARK_ROWS,      /* deletions of rows */
    ENGI_MARK_DEAD,      /* cells that are deleted or will expire */
    ENGI_MARK_FAR,       /* timestamps far ahead of the clock, which the horizon leaves out */
    ENGI_MARKS,
};
enum {
    ENGI_BUCKETS = 256,
    ENGI_MARK_WORDS = ENGI_MARKS * ENGI_BUCKETS / 64,
    ENGI_COMMIT_LOCKS = 8
};

struct engi_marks {
    _Atomic uint64_t set[ENGI_MARK_WORDS];
    _Atomic uint64_t touched[ENGI_MARK_WORDS];  /* noted since the reclaimer last looked */
    _Atomic uint64_t recorded[ENGI_MARK_WORDS]; /* in the store */
};

static inline uint16_t engi_mark_place(enum engi_mark mark, uint16_t bucket) {
    return (uint16_t)(mark * ENGI_BUCKETS + bucket);
}
static inline bool engi_mark_has(const _Atomic uint64_t *words, uint16_t place) {
    return atomic_load_explicit(&words[place / 64], memory_order_acquire) >> (place % 64) & 1;
}
static inline void engi_mark_put(_Atomic uint64_t *words, uint16_t place, bool on) {
    uint64_t bit = 1ull << (place % 64);
    if (on) atomic_fetch_or(&words[place / 64], bit);
    else atomic_fetch_and(&words[place / 64], ~bit);
}
/* Notes the mark in memory. Returns true if it must still be recorded in the store. A far mark is
 * not set in memory, because the row's guard holds a far timestamp of this run; only the next run
 * needs the mark. */
static inline bool engi_mark_note(struct engi_marks *m, enum engi_mark mark, uint16_t place) {
    if (mark != ENGI_MARK_FAR && !engi_mark_has(m->set, place)) engi_mark_put(m->set, place, true);
    if (!engi_mark_has(m->touched, place)) engi_mark_put(m->touched, place, true);
    return !engi_mark_has(m->recorded, place);
}

/* A commit holds one of these locks for reading, and counts its puts and merges there. While a
 * thread holds all of them for writing, no commit is under way. */
struct engi_commit_locks {
    struct {
        pthread_rwlock_t lock;
        _Atomic uint64_t puts, merges;
        char apart[64]; /* from the next one's cache line */
    } of[ENGI_COMMIT_LOCKS];
    _Atomic uint32_t next; /* index of the lock for the next batch */
};

static inline void engi_commit_locks_take(struct engi_commit_locks *g) {
    for (uint32_t i = 0; i < ENGI_COMMIT_LOCKS; i++) {
        engi_order_will_wait(ENGI_RANK_COMMIT, i);
        pthread_rwlock_wrlock(&g->of[i].lock);
        engi_order_holds(ENGI_RANK_COMMIT, i);
    }
}
static inline void engi_commit_locks_leave(struct engi_commit_locks *g) {
    for (int i = ENGI_COMMIT_LOCKS - 1; i >= 0; i--) {
        pthread_rwlock_unlock(&g->of[i].lock);
        engi_order_leaves(ENGI_RANK_COMMIT);
    }
}

/* ---- horizons ---- */

enum engi_horizon_kind {
    /* every timestamp, from clients too, except those that a mark for far timestamps covers */
    ENGI_HORIZON_NEWEST,
    ENGI_HORIZON_CLOCK,  /* timestamps that this server assigned (engine/front/write_clock.c) */
};

enum { ENGI_HORIZON_STEP = 60000000 }; /* microseconds, of ENGI_HORIZON_NEWEST */

/* Several commits may record a ceiling at the same time, each its own. The next one deletes all of
 * their records: a batch that puts a ceiling deletes each lower one that was in the store when the
 * batch was filled. The highest ceiling is deleted only together with the put of a higher one. */
struct engi_horizon {
    enum engi_horizon_kind kind;
    int64_t step; /* microseconds */
    int64_t opened; /* the ceiling found when the engine was opened; INT64_MIN: none */
    _Atomic int64_t ceiling;
    pthread_mutex_t lock;
    /* Under lock: records in the store. numbered counts them; a record's number is its place in the
     * order in which they were noted. Without memory a record is not noted, and stays until a later
     * start finds it. */
    struct engi_ceiling { int64_t at; uint64_t number; } *records;
    size_t n_records, cap_records;
    uint64_t numbered;
};

/* The effect of a batch on a horizon: it puts the ceiling, and deletes all lower records that were noted
 * before the number. */
struct engi_horizon_step {
    bool any;
    int64_t ceiling;
    uint64_t number;
};

void engi_horizon_init(struct engi_horizon *h, enum engi_horizon_kind kind, int64_t step);
void engi_horizon_fini(struct engi_horizon *h);
/* Adds to the batch the record that must be in the store before ts may be written, if any. *step is
 * zeros before the call. The caller passes it on once the batch is in the store. */
void engi_horizon_record(struct engi_horizon *h, struct kv_batch *b, int64_t ts, struct engi_horizon_step *step);
void engi_horizon_recorded(struct engi_horizon *h, const struct engi_horizon_step *step);
/* Loads a record found when the engine is opened; false: it is not of this kind. */
bool engi_horizon_load(struct engi_horizon *h, struct slice key);
