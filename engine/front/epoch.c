#include "engine/front/epoch.h"

#include <assert.h>

#include "engine/front/lock_order.h"

void engi_epoch_init(struct engi_epoch *ep) {
    *ep = (struct engi_epoch){.newer = NULL};
    pthread_mutex_init(&ep->lock, NULL);
}

static void free_all(struct engi_retired *r) {
    for (struct engi_retired *next; r; r = next) {
        next = r->next;
        r->free(r);
    }
}

static uint32_t count_open(const struct engi_epoch *ep, uint32_t phase) {
    uint32_t n = 0;
    for (int i = 0; i < ENGI_EPOCH_STRIPES; i++) n += atomic_load(&ep->stripes[i].open[phase]);
    return n;
}

void engi_epoch_fini(struct engi_epoch *ep) {
    assert(!count_open(ep, 0) && !count_open(ep, 1));
    free_all(ep->newer);
    free_all(ep->older);
    pthread_mutex_destroy(&ep->lock);
}

/* Counts the section in the current phase, then checks that the phase is still current, because a
 * change of the phase may have missed the count. */
struct engi_section engi_enter(struct engi_epoch *ep) {
    static _Atomic uint32_t threads;
    static _Thread_local uint32_t stripe = ENGI_EPOCH_STRIPES;
    /* Threads take stripes in turn, so that few of them share a cache line. */
    if (UNLIKELY(stripe == ENGI_EPOCH_STRIPES)) stripe = atomic_fetch_add(&threads, 1) % ENGI_EPOCH_STRIPES;
    struct engi_section s = {.stripe = stripe};
    for (;;) {
        s.phase = atomic_load(&ep->phase);
        atomic_fetch_add(&ep->stripes[s.stripe].open[s.phase], 1);
        if (LIKELY(atomic_load(&ep->phase) == s.phase)) return s;
        engi_leave(ep, s);
    }
}

void engi_leave(struct engi_epoch *ep, struct engi_section s) {
    atomic_fetch_sub(&ep->stripes[s.stripe].open[s.phase], 1);
}

/* Returns what may be freed. */
static struct engi_retired *change_phase(struct engi_epoch *ep) {
    uint32_t other = 1 - atomic_load(&ep->phase);
    if (count_open(ep, other)) return NULL;
    struct engi_retired *r = ep->older;
    ep->older = ep->newer;
    ep->newer = NULL;
    atomic_store(&ep->phase, other);
    return r;
}

void engi_retire(struct engi_epoch *ep, struct engi_retired *r) {
    engi_mutex_lock(&ep->lock, ENGI_RANK_LEAF);
    r->next = ep->newer;
    ep->newer = r;
    engi_mutex_unlock(&ep->lock, ENGI_RANK_LEAF);
    engi_epoch_step(ep);
}

/* Changes the phase twice, so that memory retired a moment ago is freed at once when no section is
 * open. */
void engi_epoch_step(struct engi_epoch *ep) {
    engi_mutex_lock(&ep->lock, ENGI_RANK_LEAF);
    struct engi_retired *first = change_phase(ep), *second = change_phase(ep);
    engi_mutex_unlock(&ep->lock, ENGI_RANK_LEAF);
    free_all(first);
    free_all(second);
}
