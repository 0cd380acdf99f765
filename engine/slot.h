/* Slots of rows by the hash of their key: who writes the row just now, and the newest timestamp it
 * was ever written with. Private to engine/.
 *
 * A commit shares the slots of its rows from before it asks anything of them until the store has
 * the batch. A delta that sets every column of its row, and is newer than anything the row was ever
 * written with, reconciles to itself: it is put instead of merged, and reading it merges nothing.
 * For that the commit claims the slot, which succeeds when it is the only one that shares it;
 * whoever writes a row of that slot meanwhile does so after the put is in the store. Other commits
 * write what else they have first, and by then the claim has ended nearly always; a loop then goes
 * on with something else until it has (engi_slot_note_end) before it waits. Nobody waits while he
 * holds a claim, so that no circle is possible; and no row waits for another's, but for one slot in
 * ENGI_SLOTS.
 *
 * Invariant 3: a put that replaces a row, by a commit, a fold or the reclaimer, is written under a
 *              claim of the row's slot, taken before
 * what proves or makes the put was read.
 *
 * A slot counts how often it was taken, too: who finds it free, reads the store, and finds it as it
 * was, knows that nobody has begun to write a row of it meanwhile (engine/row_cache.h).
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

/* Who has met a claim and goes on with something else until one ends. */
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
/* Slots may be shared several times. False: it is claimed. */
bool engi_slot_try_share(struct engi_slots *s, uint64_t hash) MUST_CHECK;
/* As it is now; what the reader sees of the store from here on is not older than what was written
 * while it was taken before. */
static inline uint64_t engi_slot_state(const struct engi_slots *s, uint64_t hash) {
    return atomic_load_explicit(&s->slots[hash % ENGI_SLOTS].state, memory_order_acquire);
}
static inline bool engi_slot_is_free(uint64_t state) { return !(uint32_t)state; }
/* Whether one commit shares it, for one row, and nobody else does. */
static inline bool engi_slot_is_alone(uint64_t state) { return (uint32_t)state == 1; }
/* What the state will be once it is left by all that are there, when nobody takes it meanwhile. */
static inline uint64_t engi_slot_left(uint64_t state) { return state & ~(uint64_t)UINT32_MAX; }
/* May wait for a claim of another thread; the caller holds none. */
void engi_slot_share(struct engi_slots *s, uint64_t hash);
void engi_slot_leave(struct engi_slots *s, uint64_t hash);
/* From the one share that there is; false: others share it. Left by engi_slot_release, or many of
 * them by engi_slot_end_claim each and then one engi_slots_wake for who waits. */
bool engi_slot_claim(struct engi_slots *s, uint64_t hash) MUST_CHECK;
/* Without a share: false when anybody is there. */
bool engi_slot_claim_free(struct engi_slots *s, uint64_t hash) MUST_CHECK;
void engi_slot_release(struct engi_slots *s, uint64_t hash);
void engi_slot_end_claim(struct engi_slots *s, uint64_t hash);
void engi_slots_wake(struct engi_slots *s);
/* note->fn is called, once, when claims end. False: the slot is not claimed any more. */
bool engi_slot_note_end(struct engi_slots *s, uint64_t hash, struct engi_slot_note *note) MUST_CHECK;
/* It is not called any more. */
void engi_slot_forget(struct engi_slots *s, struct engi_slot_note *note);

/* Whether everything that was written to the row since the engine was opened is older than ts. Under a claim. */
static inline bool engi_slot_before(struct engi_slots *s, uint64_t hash, int64_t ts) {
    return atomic_load_explicit(&engi_slot(s, hash)->newest, memory_order_relaxed) < ts;
}
/* Before the write, under a share or a claim. */
void engi_slot_raise(struct engi_slots *s, uint64_t hash, int64_t ts);
