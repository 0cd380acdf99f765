/* The order in which a thread takes the locks of the engine.
 *
 * Invariant 10: a thread waits only for a lock that is after all locks it holds, by rank and,
 *               within the stripes and the commit locks, by number. Shared guards may be waited for
 *               in any order, because only an exclusive holder makes a thread wait, and that holder
 *               waits for no guard. A lock that is taken by trying needs no order: its holder counts
 *               as holding it, but has not waited.
 *
 * A thread releases only locks that it took itself. Stripes that belong to a batch are not counted,
 * because any thread may free them; they are only ever taken by trying.
 *
 * Builds without optimisation and builds with a sanitizer check each wait. In other builds the
 * functions below do nothing.
 */
#pragma once

#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>

#include "base/poison.h"

#if POISONS || defined(__SANITIZE_THREAD__) || !defined(__OPTIMIZE__)
#define ENGI_CHECKS_ORDER 1
#else
#define ENGI_CHECKS_ORDER 0
#endif

enum engi_rank {
    ENGI_RANK_STORE,    /* whole of engine/local/local.h */
    ENGI_RANK_STRIPE,   /* engine/front/stripe.h */
    ENGI_RANK_PASS,     /* engi_reclaim.pass */
    ENGI_RANK_HISTORY,  /* engi_history.lock */
    ENGI_RANK_FRAGMENT, /* a partition's guard, alone for a step that fragments (engine/local/guard.h) */
    ENGI_RANK_COMMIT,   /* the commit locks of engine/local/marks.h */
    ENGI_RANK_GUARD,    /* a row's guard, shared */
    ENGI_RANK_ALONE,    /* a row's guard, held exclusively */
    ENGI_RANK_SYNC,     /* engi_commit.turn, and a wait for a sync */
    ENGI_RANK_NAMED,    /* of writes of named records; a store may call another engine's notice under it */
    ENGI_RANK_LEAF,     /* every other lock: no lock is taken under it */
    ENGI_RANKS
};

/* The locks that one thread holds, by rank. */
struct engi_held {
    uint32_t n[ENGI_RANKS];
    uint32_t last[ENGI_RANKS]; /* the highest number of those held */
};

/* Whether a thread that holds these may wait for a lock. number: of a stripe or commit lock; else 0. */
bool engi_order_allows(const struct engi_held *held, enum engi_rank rank, uint32_t number);
void engi_order_add(struct engi_held *held, enum engi_rank rank, uint32_t number);
void engi_order_remove(struct engi_held *held, enum engi_rank rank);

/* For the calling thread. will_wait is called before a lock that may be waited for, holds once the
 * thread has it, and leaves when it has given it back. */
#if ENGI_CHECKS_ORDER
void engi_order_will_wait(enum engi_rank rank, uint32_t number);
void engi_order_holds(enum engi_rank rank, uint32_t number);
void engi_order_leaves(enum engi_rank rank);
#else
static inline void engi_order_will_wait(enum engi_rank rank, uint32_t number) { (void)rank, (void)number; }
static inline void engi_order_holds(enum engi_rank rank, uint32_t number) { (void)rank, (void)number; }
static inline void engi_order_leaves(enum engi_rank rank) { (void)rank; }
#endif

static inline void engi_mutex_lock(pthread_mutex_t *m, enum engi_rank rank) {
    engi_order_will_wait(rank, 0);
    pthread_mutex_lock(m);
    engi_order_holds(rank, 0);
}
static inline bool engi_mutex_try(pthread_mutex_t *m, enum engi_rank rank) {
    bool locked = !pthread_mutex_trylock(m);
    if (locked) engi_order_holds(rank, 0);
    return locked;
}
static inline void engi_mutex_unlock(pthread_mutex_t *m, enum engi_rank rank) {
    pthread_mutex_unlock(m);
    engi_order_leaves(rank);
}
