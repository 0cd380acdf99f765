/* Row guards, one slot for all rows with the same hash of their key: the commits that write the row
 * at the moment, and the newest timestamp it was ever written with. Private to engine/.
 *
 * A commit shares the slots of its rows from before it reads them until the store has the batch. A
 * delta that sets every column of its row, and is newer than every earlier write of the row,
 * decides the row's whole content: it is put instead of merged, and reading it merges nothing. For
 * that the commit claims the slot, which succeeds when no other commit shares it. Another commit's
 * write to a row of that slot then takes place after the put is in the store. The other commit
 * writes its other rows first, and by then the claim has nearly always ended. If not, a loop goes
 * on with other work until the claim ends (engi_slot_note_end), before it waits. A thread that
 * holds a claim never waits for another, so no deadlock is possible. Different rows wait for each
 * other only if they share one of the ENGI_SLOTS slots.
 *
 * Invariant 3: a put that replaces a row, by a commit, a fold or the reclaimer, is written under a
 *              claim of the row's slot. The claim is taken before the reads that justify the put or
 *              make its value.
 *
 * A slot also counts how often it was taken. So a reader that finds it free, reads the store, and
 * finds the slot unchanged knows that no write to a row of it has begun meanwhile
 * (engine/row_cache.h).
 */
#pragma once

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>

#include "base/clock.h"
#include "base/compiler.h"

enum { ENGI_SLOTS = 65536 };

struct engi_slot {
    _Atomic int64_t newest;
    /* [u32 how often it was taken, shared or claimed][u32 claimed, or how many commits share it] */
    _Atomic uint64_t state;
};

/* The callback of a loop that met a claim and goes on with other work until one ends. */
struct engi_slot_note {
    void (*fn)(void *arg); /* called on any thread, with the lock held: must not call the engine */
    void *arg;
    struct engi_slot_note *next;
    bool listed;
};

struct engi_slots {
    struct engi_slot slots[ENGI_SLOTS];
    pthread_mutex_t lock;
    pthread_cond_t released;
    struct engi_slot_note *notes;      /* under lock */
    _Atomic uint32_t waiting;          /* threads that wait for a claim to end, and notes */
    _Atomic uint64_t waits, waited_us;
};

static inline struct engi_slot *engi_slot(struct engi_slots *s, uint64_t hash) { return &s->slots[hash % ENGI_SLOTS]; }

void engi_slots_init(struct engi_slots *s);
void engi_slots_fini(struct engi_slots *s);
/* Several commits may share a slot, or one several times. False: the slot is claimed. */
bool engi_slot_try_share(struct engi_slots *s, uint64_t hash) MUST_CHECK;
/* The slot's present state. Reads of the store after this call see all writes made while the slot
 * was taken earlier. */
static inline uint64_t engi_slot_state(const struct engi_slots *s, uint64_t hash) {
    return atomic_load_explicit(&s->slots[hash % ENGI_SLOTS].state, memory_order_acquire);
}
static inline bool engi_slot_is_free(uint64_t state) { return !(uint32_t)state; }
/* Whether exactly one share of the slot exists. */
static inline bool engi_slot_is_alone(uint64_t state) { return (uint32_t)state == 1; }
/* The state after all present holders have left, if no other takes the slot meanwhile. */
static inline uint64_t engi_slot_left(uint64_t state) { return state & ~(uint64_t)UINT32_MAX; }
/* May wait for a claim of another thread; the caller holds none. */
void engi_slot_share(struct engi_slots *s, uint64_t hash);
void engi_slot_leave(struct engi_slots *s, uint64_t hash);
/* Turns the only share into a claim; false: others share the slot. A claim ends by
 * engi_slot_release, or, for many at a time, by engi_slot_end_claim for each and then one
 * engi_slots_wake, which wakes the waiting threads. */
bool engi_slot_claim(struct engi_slots *s, uint64_t hash) MUST_CHECK;
/* Claims a slot without a share first; false: it is shared or claimed. */
bool engi_slot_claim_free(struct engi_slots *s, uint64_t hash) MUST_CHECK;
void engi_slot_release(struct engi_slots *s, uint64_t hash);
void engi_slot_end_claim(struct engi_slots *s, uint64_t hash);
void engi_slots_wake(struct engi_slots *s);
/* note->fn is called, once, when claims end. False: the slot is not claimed any more. */
bool engi_slot_note_end(struct engi_slots *s, uint64_t hash, struct engi_slot_note *note) MUST_CHECK;
/* Cancels a note: its fn is not called any more. */
void engi_slot_forget(struct engi_slots *s, struct engi_slot_note *note);

/* Whether everything that was written to the row since the engine was opened is older than ts. Under a claim. */
static inline bool engi_slot_before(struct engi_slots *s, uint64_t hash, int64_t ts) {
    return atomic_load_explicit(&engi_slot(s, hash)->newest, memory_order_relaxed) < ts;
}
/* Before the write, under a share or a claim. */
void engi_slot_raise(struct engi_slots *s, uint64_t hash, int64_t ts);
