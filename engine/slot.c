#include "engine/slot.h"

#include <assert.h>

enum { SPINS = 64 };

#define CLAIMED ((uint64_t)1 << 31)
#define TAKEN ((uint64_t)1 << 32) /* once more */

static uint32_t holders(uint64_t state) { return (uint32_t)state; }

void engi_slots_init(struct engi_slots *s) {
    pthread_mutex_init(&s->lock, NULL);
    pthread_cond_init(&s->released, NULL);
}

void engi_slots_fini(struct engi_slots *s) {
    pthread_mutex_destroy(&s->lock);
    pthread_cond_destroy(&s->released);
}

static bool try_share(struct engi_slot *slot) {
    uint64_t seen = atomic_load_explicit(&slot->state, memory_order_relaxed);
    while (!(seen & CLAIMED))
        if (atomic_compare_exchange_weak_explicit(&slot->state, &seen, seen + TAKEN + 1, memory_order_acquire,
                                                  memory_order_relaxed))
            return true;
    return false;
}

static void wait_and_share(struct engi_slots *s, struct engi_slot *slot) {
    for (int i = 0; i < SPINS; i++)
        if (try_share(slot)) return;
    int64_t since = clock_machine_us(&clock_real);
    pthread_mutex_lock(&s->lock);
    /* The thread counts itself in waiting before it looks at the slot; a thread that ends a claim
     * changes the slot before it reads waiting (engi_slots_wake). So either that thread sees the
     * waiting one, or the waiting one sees the slot free. */
    atomic_fetch_add(&s->waiting, 1);
    while (atomic_load(&slot->state) & CLAIMED || !try_share(slot)) pthread_cond_wait(&s->released, &s->lock);
    atomic_fetch_sub(&s->waiting, 1);
    pthread_mutex_unlock(&s->lock);
    atomic_fetch_add_explicit(&s->waits, 1, memory_order_relaxed);
    atomic_fetch_add_explicit(&s->waited_us, (uint64_t)(clock_machine_us(&clock_real) - since), memory_order_relaxed);
}

bool engi_slot_try_share(struct engi_slots *s, uint64_t hash) { return try_share(engi_slot(s, hash)); }

void engi_slot_share(struct engi_slots *s, uint64_t hash) {
    struct engi_slot *slot = engi_slot(s, hash);
    if (UNLIKELY(!try_share(slot))) wait_and_share(s, slot);
}

void engi_slot_leave(struct engi_slots *s, uint64_t hash) {
    uint64_t before = atomic_fetch_sub_explicit(&engi_slot(s, hash)->state, 1, memory_order_release);
    assert(holders(before) && !(before & CLAIMED));
}

bool engi_slot_claim(struct engi_slots *s, uint64_t hash) {
    struct engi_slot *slot = engi_slot(s, hash);
    uint64_t seen = atomic_load_explicit(&slot->state, memory_order_relaxed);
    if (holders(seen) != 1) return false;
    return atomic_compare_exchange_strong_explicit(&slot->state, &seen, seen - 1 + CLAIMED, memory_order_acquire,
                                                   memory_order_relaxed);
}

bool engi_slot_claim_free(struct engi_slots *s, uint64_t hash) {
    struct engi_slot *slot = engi_slot(s, hash);
    uint64_t seen = atomic_load_explicit(&slot->state, memory_order_relaxed);
    if (holders(seen)) return false;
    return atomic_compare_exchange_strong_explicit(&slot->state, &seen, seen + TAKEN + CLAIMED, memory_order_acquire,
                                                   memory_order_relaxed);
}

/* A plain store is enough, because no other thread changes a claimed slot. */
void engi_slot_end_claim(struct engi_slots *s, uint64_t hash) {
    struct engi_slot *slot = engi_slot(s, hash);
    uint64_t mine = atomic_load_explicit(&slot->state, memory_order_relaxed);
    assert(holders(mine) == CLAIMED);
    atomic_store_explicit(&slot->state, mine - CLAIMED, memory_order_release);
}

void engi_slots_wake(struct engi_slots *s) {
    if (LIKELY(!atomic_fetch_add(&s->waiting, 0))) return;
    pthread_mutex_lock(&s->lock);
    pthread_cond_broadcast(&s->released);
    for (struct engi_slot_note *n = s->notes; n; n = n->next) {
        n->listed = false;
        n->fn(n->arg);
        atomic_fetch_sub(&s->waiting, 1);
    }
    s->notes = NULL;
    pthread_mutex_unlock(&s->lock);
}

bool engi_slot_note_end(struct engi_slots *s, uint64_t hash, struct engi_slot_note *note) {
    pthread_mutex_lock(&s->lock);
    atomic_fetch_add(&s->waiting, 1); /* before the look, as in wait_and_share */
    bool claimed = atomic_load(&engi_slot(s, hash)->state) & CLAIMED;
    if (claimed && !note->listed) {
        note->listed = true;
        note->next = s->notes;
        s->notes = note;
    } else {
        atomic_fetch_sub(&s->waiting, 1);
    }
    pthread_mutex_unlock(&s->lock);
    return claimed;
}

void engi_slot_forget(struct engi_slots *s, struct engi_slot_note *note) {
    pthread_mutex_lock(&s->lock);
    struct engi_slot_note **at = &s->notes;
    while (*at && *at != note) at = &(*at)->next;
    if (*at) {
        *at = note->next;
        note->listed = false;
        atomic_fetch_sub(&s->waiting, 1);
    }
    pthread_mutex_unlock(&s->lock);
}

void engi_slot_release(struct engi_slots *s, uint64_t hash) {
    engi_slot_end_claim(s, hash);
    engi_slots_wake(s);
}

void engi_slot_raise(struct engi_slots *s, uint64_t hash, int64_t ts) {
    struct engi_slot *slot = engi_slot(s, hash);
    assert(holders(atomic_load_explicit(&slot->state, memory_order_relaxed)));
    int64_t seen = atomic_load_explicit(&slot->newest, memory_order_relaxed);
    while (seen < ts && !atomic_compare_exchange_weak_explicit(&slot->newest, &seen, ts, memory_order_relaxed,
                                                               memory_order_relaxed)) {}
}
