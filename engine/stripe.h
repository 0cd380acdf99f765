/* Stripe locks of partitions, for who reads before he writes. Private to engine/; the rest of the
 * server takes them by eng_lock.
 *
 * Invariant 5: what decides what is written is read, and what was decided is committed, by the
 *              thread that holds the stripes of its
 * partitions. Whoever relies on it asserts eng_holds.
 *
 * A loop, which must not wait, takes a stripe only when it is free and nobody waits for it, and
 * gives it to its batch, which keeps it until it is committed, by whatever thread: so a stripe is a
 * word of its own, and not a mutex that one thread has.
 *
 * Where the store has several writers a lock keeps off only those of this process. So who locks a
 * stripe reads its turn in the store ([u32 2][u16 stripe]), and a commit under it is on the
 * condition that the turn is still that one, and makes it the next.
 */
#pragma once

#include <pthread.h>
#include <stdatomic.h>

#include "base/compiler.h"
#include "base/slice.h"

enum { ENGI_STRIPES = 1024 };

#define ENGI_STRIPE_OF_BATCH ((pthread_t)(-1))

struct engi_stripe {
    pthread_mutex_t lock; /* of owner and n_waiting */
    pthread_cond_t left;
    _Atomic(pthread_t) owner; /* 0: nobody; a thread; ENGI_STRIPE_OF_BATCH */
    uint32_t n_waiting;
    /* the owner's, in a store with several writers: which turn of the stripe's in the store this is */
    uint64_t turn;
};

struct eng;
struct eng_part;
struct kv_batch;

void engi_stripes_init(struct engi_stripe *stripes);
void engi_stripes_fini(struct engi_stripe *stripes);
/* Stripes of a batch. */
struct engi_stripe_set {
    bool any;
    uint64_t bits[ENGI_STRIPES / 64];
};
/* The partition's stripe is the set's: 1, it has become so; 0, it was; -1, somebody has it or waits for it. */
int engi_stripes_try(struct eng *eng, struct engi_stripe_set *set, const struct eng_part *part) MUST_CHECK;
/* What engi_stripes_try said 1 to. */
void engi_stripes_give_back(struct eng *eng, struct engi_stripe_set *set, const struct eng_part *part);
bool engi_stripes_have(const struct engi_stripe_set *set, const struct eng_part *part);
/* All of the set are free again. Any thread. */
void engi_stripes_leave(struct eng *eng, struct engi_stripe_set *set);
/* Whether this thread holds the stripe of the row or partition whose key it is, and which one that is. */
bool engi_stripe_held(const struct eng *eng, struct slice key, uint32_t *stripe);
/* Adds to a batch under a stripe that no other engine has had a turn since it was locked, and that
 * this is one. -1: no memory. */
int engi_stripe_turn(struct eng *eng, uint32_t stripe, struct kv_batch *b) MUST_CHECK;
