/* A write to the store holds two guards, its row's and its partition's. Each guard
 * serves all rows, or all partitions, with the same hash of their key. It counts the writes that are
 * under way and how many were begun, so it is the key's version counter, too: a reader that finds a
 * guard free, reads the store, and finds the guard unchanged has proof that no write to a key of it
 * has begun meanwhile. The row cache (engine/local/row_cache.h) relies on the guards of rows, cached
 * ranges (engine/local/range_cache.h) on those of partitions.
 *
 * Rows. The guard also holds the newest timestamp that one of its rows was ever written with. A
 * commit shares the guards of its rows from before it reads them until the store has the batch.
 * A delta that sets every column of its row, and is newer than every earlier write of the row,
 * decides the row's whole content: the commit puts it instead of merging it, and a read of the row
 * merges nothing. For that the commit holds the guard exclusively, which it can when no other
 * commit shares it. Another commit's write to a row of that guard takes place after the put is in
 * the store. The other commit writes its other rows first, and by then the guard is nearly always
 * free. If not, a loop continues with other work until the guard is released (engi_guard_on_release),
 * before it waits. A thread that holds a guard exclusively never waits for another guard, so no
 * deadlock is possible.
 *
 * Invariant 3: a put that replaces a row, by a commit, a fold or the reclaimer, is written with
 *              the row's guard held exclusively, from before the reads that justify the put or
 *              make its value.
 *
 * Partitions. Every write to a key of the partition shares the guard from before the store has the
 * write until it has it, except a fold, which changes no value. Sharing never waits. A step that
 * fragments the partition's range tombstones (engine/local/fragment.h) shares the guard for as long
 * as the step takes, and excludes other such steps.
 *
 * One guard for both would be the partition's. Then two rows of one partition in a batch would share
 * a guard, and their commit could not hold it exclusively: all rows of a hot partition would be
 * merged instead of put, and a read of one would not be cached while another is written.
 */
#pragma once

#include <assert.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>

#include "base/buf.h"
#include "base/clock.h"
#include "base/compiler.h"

enum { ENGI_GUARDS = 65536 };

/* The state of a guard: [40 bits: how often it was taken][1 bit: ALONE][23 bits: how many share it].
 * ALONE: of a row, one commit holds it exclusively and none shares it; of a partition, one of those
 * that share it fragments. */
#define ENGI_GUARD_TAKEN ((uint64_t)1 << 24) /* once more */
#define ENGI_GUARD_ALONE ((uint64_t)1 << 23)

struct engi_guard {
    _Atomic int64_t newest;
    _Atomic uint64_t state;
};

/* The callback of a loop that found a guard held exclusively, and continues with other work. */
struct engi_guard_note {
    void (*fn)(void *arg); /* called on any thread, with the lock held: must not call the engine */
    void *arg;
    struct engi_guard_note *next;
    bool listed;
};

struct engi_guards {
    struct engi_guard rows[ENGI_GUARDS];
    _Atomic uint64_t partitions[ENGI_GUARDS]; /* states */
    pthread_mutex_t lock;
    pthread_cond_t released;
    struct engi_guard_note *notes;      /* under lock */
    _Atomic uint32_t waiting;          /* threads that wait for a release, and notes */
    _Atomic uint64_t waits, waited_us;
};

void engi_guards_init(struct engi_guards *s);
void engi_guards_fini(struct engi_guards *s);

/* ---- states ---- */

static inline bool engi_guard_is_free(uint64_t state) { return !(state % ENGI_GUARD_TAKEN); }
/* Whether exactly one share of the guard exists. */
static inline bool engi_guard_is_alone(uint64_t state) { return state % ENGI_GUARD_TAKEN == 1; }

/* ---- guards of rows, by the hash of the row's key ---- */

static inline struct engi_guard *engi_guard(struct engi_guards *s, uint64_t hash) {
    return &s->rows[hash % ENGI_GUARDS];
}
/* Several commits may share a guard, or one several times. Returns false if the guard is held
 * exclusively. */
bool engi_guard_try_share(struct engi_guards *s, uint64_t hash) MUST_CHECK;
/* The guard's present state. Reads of the store after this call see all writes made while the guard
 * was taken earlier. */
static inline uint64_t engi_guard_state(const struct engi_guards *s, uint64_t hash) {
    return atomic_load_explicit(&s->rows[hash % ENGI_GUARDS].state, memory_order_acquire);
}
/* May wait for an exclusive holder; the caller holds none. */
void engi_guard_share(struct engi_guards *s, uint64_t hash);
void engi_guard_leave(struct engi_guards *s, uint64_t hash);
/* Turns the only share into an exclusive hold; false: others share the guard. An exclusive hold
 * ends by engi_guard_release, or, for many at a time, by engi_guard_end_exclusive for each and then
 * one engi_guards_wake, which wakes the waiting threads. */
bool engi_guard_upgrade(struct engi_guards *s, uint64_t hash) MUST_CHECK;
/* Takes a guard exclusively without a share first; false: it is shared or taken exclusively. */
bool engi_guard_try_exclusive(struct engi_guards *s, uint64_t hash) MUST_CHECK;
void engi_guard_release(struct engi_guards *s, uint64_t hash);
void engi_guard_end_exclusive(struct engi_guards *s, uint64_t hash);
void engi_guards_wake(struct engi_guards *s);
/* note->fn is called, once, when guards are released. Returns false if the guard is free already. */
bool engi_guard_on_release(struct engi_guards *s, uint64_t hash, struct engi_guard_note *note) MUST_CHECK;
/* Cancels a note: its fn is not called any more. */
void engi_guard_cancel(struct engi_guards *s, struct engi_guard_note *note);

/* Whether everything that was written to the row since the engine was opened is older
 * than ts. With the guard held exclusively. */
static inline bool engi_guard_before(struct engi_guards *s, uint64_t hash, int64_t ts) {
    return atomic_load_explicit(&engi_guard(s, hash)->newest, memory_order_relaxed) < ts;
}
/* Before the write, with the guard shared or held exclusively. */
void engi_guard_raise(struct engi_guards *s, uint64_t hash, int64_t ts);

/* ---- guards of partitions, by a key of the partition or its prefix ---- */

static inline _Atomic uint64_t *engi_partition_guard(struct engi_guards *s, struct slice key) {
    enum { TOKEN = 4 /* after the table's id */ };
    return &s->partitions[(load_u64(key.p + TOKEN) ^ load_u32(key.p)) * UINT64_C(0x9e3779b97f4a7c15) >> 48];
}
/* These two enclose a write to a key of the partition. */
static inline void engi_partition_share(struct engi_guards *s, struct slice key) {
    atomic_fetch_add(engi_partition_guard(s, key), ENGI_GUARD_TAKEN + 1);
}
static inline void engi_partition_leave(struct engi_guards *s, struct slice key) {
    uint64_t before = atomic_fetch_sub_explicit(engi_partition_guard(s, key), 1, memory_order_release);
    assert(!engi_guard_is_free(before));
}
static inline bool engi_partition_is_shared(struct engi_guards *s, struct slice key) {
    return !engi_guard_is_free(atomic_load_explicit(engi_partition_guard(s, key), memory_order_relaxed));
}
/* These two enclose a step that fragments. False, without wait: another thread fragments. */
bool engi_partition_fragment(struct engi_guards *s, struct slice prefix, bool wait);
void engi_partition_end_fragment(struct engi_guards *s, struct slice prefix);
static inline bool engi_partition_is_fragmenting(struct engi_guards *s, struct slice prefix) {
    return atomic_load_explicit(engi_partition_guard(s, prefix), memory_order_relaxed) & ENGI_GUARD_ALONE;
}
