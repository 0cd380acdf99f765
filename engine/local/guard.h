/* Row guards. One guard serves all rows with the same hash of their key. It knows the commits that
 * write such a row at the moment, and the newest timestamp that one was ever written with.
 *
 * A commit shares the guards of its rows from before it reads them until the store has the batch.
 * A delta that sets every column of its row, and is newer than every earlier write of the row,
 * decides the row's whole content: the commit puts it instead of merging it, and a read of the row
 * merges nothing. For that the commit holds the guard exclusively, which it can when no other
 * commit shares it. Another commit's write to a row of that guard takes place after the put is in
 * the store. The other commit writes its other rows first, and by then the guard is nearly always
 * free. If not, a loop goes on with other work until the guard is released (engi_guard_on_release),
 * before it waits. A thread that holds a guard exclusively never waits for another guard, so no
 * deadlock is possible.
 *
 * Invariant 3: a put that replaces a row, by a commit, a fold or the reclaimer, is written with
 *              the row's guard held exclusively, from before the reads that justify the put or
 *              make its value.
 *
 * A guard also counts how often it was taken. So a reader that finds it free, reads the store, and
 * finds the guard unchanged knows that no write to a row of it has begun meanwhile
 * (engine/local/row_cache.h).
 */
#pragma once

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>

#include "base/clock.h"
#include "base/compiler.h"

enum { ENGI_GUARDS = 65536 };

struct engi_guard {
    _Atomic int64_t newest;
    /* [u32 how often it was taken][u32 EXCLUSIVE, or how many commits share it] */
    _Atomic uint64_t state;
};

/* The callback of a loop that found a guard held exclusively, and goes on with other work. */
struct engi_guard_note {
    void (*fn)(void *arg); /* called on any thread, with the lock held: must not call the engine */
    void *arg;
    struct engi_guard_note *next;
    bool listed;
};

struct engi_guards {
    struct engi_guard guards[ENGI_GUARDS];
    pthread_mutex_t lock;
    pthread_cond_t released;
    struct engi_guard_note *notes;      /* under lock */
    _Atomic uint32_t waiting;          /* threads that wait for a release, and notes */
    _Atomic uint64_t waits, waited_us;
};

static inline struct engi_guard *engi_guard(struct engi_guards *s, uint64_t hash) {
    return &s->guards[hash % ENGI_GUARDS];
}

void engi_guards_init(struct engi_guards *s);
void engi_guards_fini(struct engi_guards *s);
/* Several commits may share a guard, or one several times. False: the guard is held exclusively. */
bool engi_guard_try_share(struct engi_guards *s, uint64_t hash) MUST_CHECK;
/* The guard's present state. Reads of the store after this call see all writes made while the guard
 * was taken earlier. */
static inline uint64_t engi_guard_state(const struct engi_guards *s, uint64_t hash) {
    return atomic_load_explicit(&s->guards[hash % ENGI_GUARDS].state, memory_order_acquire);
}
static inline bool engi_guard_is_free(uint64_t state) { return !(uint32_t)state; }
/* Whether exactly one share of the guard exists. */
static inline bool engi_guard_is_alone(uint64_t state) { return (uint32_t)state == 1; }
/* The state after all present holders have left, if no other takes the guard meanwhile. */
static inline uint64_t engi_guard_left(uint64_t state) { return state & ~(uint64_t)UINT32_MAX; }
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
/* note->fn is called, once, when guards are released. False: the guard is free already. */
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
