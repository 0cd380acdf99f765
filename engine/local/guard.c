#include "engine/local/guard.h"

#include <assert.h>

#include "engine/front/lock_order.h"

enum { SPINS = 64 };

#define EXCLUSIVE ENGI_GUARD_ALONE /* of a row's guard */
#define TAKEN ENGI_GUARD_TAKEN

static uint64_t holders(uint64_t state) { return state % TAKEN; }

void engi_guards_init(struct engi_guards *s) {
    pthread_mutex_init(&s->lock, NULL);
    pthread_cond_init(&s->released, NULL);
}

void engi_guards_fini(struct engi_guards *s) {
    pthread_mutex_destroy(&s->lock);
    pthread_cond_destroy(&s->released);
}

/* Adds one share, and more, to a guard that no thread holds alone. In the one order of all taking of
 * guards (seq_cst), as the row cache needs it. */
static inline bool try_take(_Atomic uint64_t *state, uint64_t more) {
    uint64_t seen = atomic_load_explicit(state, memory_order_relaxed);
    while (!(seen & ENGI_GUARD_ALONE))
        if (atomic_compare_exchange_weak(state, &seen, seen + TAKEN + 1 + more)) return true;
    return false;
}

static void wait_and_take(struct engi_guards *s, _Atomic uint64_t *state, uint64_t more) {
    for (int i = 0; i < SPINS; i++)
        if (try_take(state, more)) return;
    int64_t since = clock_machine_us(&clock_real);
    engi_mutex_lock(&s->lock, ENGI_RANK_LEAF);
    /* The thread counts itself in waiting before it looks at the guard; a thread that held it alone
     * changes the guard before it reads waiting (engi_guards_wake). So either that thread sees the
     * waiting one, or the waiting one sees the guard free. */
    atomic_fetch_add(&s->waiting, 1);
    while (atomic_load(state) & ENGI_GUARD_ALONE || !try_take(state, more)) pthread_cond_wait(&s->released, &s->lock);
    atomic_fetch_sub(&s->waiting, 1);
    engi_mutex_unlock(&s->lock, ENGI_RANK_LEAF);
    atomic_fetch_add_explicit(&s->waits, 1, memory_order_relaxed);
    atomic_fetch_add_explicit(&s->waited_us, (uint64_t)(clock_machine_us(&clock_real) - since), memory_order_relaxed);
}

bool engi_guard_try_share(struct engi_guards *s, uint64_t hash) {
    bool shared = try_take(&engi_guard(s, hash)->state, 0);
    if (shared) engi_order_holds(ENGI_RANK_GUARD, 0);
    return shared;
}

void engi_guard_share(struct engi_guards *s, uint64_t hash) {
    _Atomic uint64_t *state = &engi_guard(s, hash)->state;
    engi_order_will_wait(ENGI_RANK_GUARD, 0);
    if (UNLIKELY(!try_take(state, 0))) wait_and_take(s, state, 0);
    engi_order_holds(ENGI_RANK_GUARD, 0);
}

void engi_guard_leave(struct engi_guards *s, uint64_t hash) {
    uint64_t before = atomic_fetch_sub_explicit(&engi_guard(s, hash)->state, 1, memory_order_release);
    assert(holders(before) && !(before & EXCLUSIVE));
    engi_order_leaves(ENGI_RANK_GUARD);
}

bool engi_guard_upgrade(struct engi_guards *s, uint64_t hash) {
    struct engi_guard *guard = engi_guard(s, hash);
    uint64_t seen = atomic_load_explicit(&guard->state, memory_order_relaxed);
    if (holders(seen) != 1) return false;
    if (!atomic_compare_exchange_strong_explicit(&guard->state, &seen, seen - 1 + EXCLUSIVE, memory_order_acquire,
                                                 memory_order_relaxed))
        return false;
    engi_order_leaves(ENGI_RANK_GUARD);
    engi_order_holds(ENGI_RANK_ALONE, 0);
    return true;
}

bool engi_guard_try_exclusive(struct engi_guards *s, uint64_t hash) {
    struct engi_guard *guard = engi_guard(s, hash);
    uint64_t seen = atomic_load_explicit(&guard->state, memory_order_relaxed);
    if (holders(seen)) return false;
    if (!atomic_compare_exchange_strong(&guard->state, &seen, seen + TAKEN + EXCLUSIVE)) return false;
    engi_order_holds(ENGI_RANK_ALONE, 0);
    return true;
}

/* A plain store is enough, because no other thread changes a guard that is held exclusively. */
void engi_guard_end_exclusive(struct engi_guards *s, uint64_t hash) {
    struct engi_guard *guard = engi_guard(s, hash);
    uint64_t mine = atomic_load_explicit(&guard->state, memory_order_relaxed);
    assert(holders(mine) == EXCLUSIVE);
    atomic_store_explicit(&guard->state, mine - EXCLUSIVE, memory_order_release);
    engi_order_leaves(ENGI_RANK_ALONE);
}

void engi_guards_wake(struct engi_guards *s) {
    if (LIKELY(!atomic_fetch_add(&s->waiting, 0))) return;
    engi_mutex_lock(&s->lock, ENGI_RANK_LEAF);
    pthread_cond_broadcast(&s->released);
    for (struct engi_guard_note *n = s->notes; n; n = n->next) {
        n->listed = false;
        n->fn(n->arg);
        atomic_fetch_sub(&s->waiting, 1);
    }
    s->notes = NULL;
    engi_mutex_unlock(&s->lock, ENGI_RANK_LEAF);
}

bool engi_guard_on_release(struct engi_guards *s, uint64_t hash, struct engi_guard_note *note) {
    engi_mutex_lock(&s->lock, ENGI_RANK_LEAF);
    atomic_fetch_add(&s->waiting, 1); /* before the look, as in wait_and_take */
    bool exclusive = atomic_load(&engi_guard(s, hash)->state) & EXCLUSIVE;
    if (exclusive && !note->listed) {
        note->listed = true;
        note->next = s->notes;
        s->notes = note;
    } else {
        atomic_fetch_sub(&s->waiting, 1);
    }
    engi_mutex_unlock(&s->lock, ENGI_RANK_LEAF);
    return exclusive;
}

void engi_guard_cancel(struct engi_guards *s, struct engi_guard_note *note) {
    engi_mutex_lock(&s->lock, ENGI_RANK_LEAF);
    struct engi_guard_note **at = &s->notes;
    while (*at && *at != note) at = &(*at)->next;
    if (*at) {
        *at = note->next;
        note->listed = false;
        atomic_fetch_sub(&s->waiting, 1);
    }
    engi_mutex_unlock(&s->lock, ENGI_RANK_LEAF);
}

void engi_guard_release(struct engi_guards *s, uint64_t hash) {
    engi_guard_end_exclusive(s, hash);
    engi_guards_wake(s);
}

void engi_guard_raise(struct engi_guards *s, uint64_t hash, int64_t ts) {
    struct engi_guard *guard = engi_guard(s, hash);
    assert(holders(atomic_load_explicit(&guard->state, memory_order_relaxed)));
    int64_t seen = atomic_load_explicit(&guard->newest, memory_order_relaxed);
    while (seen < ts && !atomic_compare_exchange_weak_explicit(&guard->newest, &seen, ts, memory_order_relaxed,
                                                               memory_order_relaxed)) {}
}

bool engi_partition_fragment(struct engi_guards *s, struct slice prefix, bool wait) {
    _Atomic uint64_t *state = engi_partition_guard(s, prefix);
    if (wait) engi_order_will_wait(ENGI_RANK_FRAGMENT, 0);
    if (!try_take(state, ENGI_GUARD_ALONE)) {
        if (!wait) return false;
        wait_and_take(s, state, ENGI_GUARD_ALONE);
    }
    engi_order_holds(ENGI_RANK_FRAGMENT, 0);
    return true;
}

void engi_partition_end_fragment(struct engi_guards *s, struct slice prefix) {
    uint64_t before = atomic_fetch_sub(engi_partition_guard(s, prefix), ENGI_GUARD_ALONE + 1);
    assert(before & ENGI_GUARD_ALONE && before % ENGI_GUARD_ALONE);
    engi_order_leaves(ENGI_RANK_FRAGMENT);
    engi_guards_wake(s);
}
