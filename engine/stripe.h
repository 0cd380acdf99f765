/* Stripe locks of partitions, for who reads before he writes. Private to engine/; the rest of the server takes them by eng_lock.
 *
 * Invariant 5: what decides what is written is read, and what was decided is committed, by the thread that holds the stripes of its
 * partitions. Whoever relies on it asserts eng_holds.
 *
 * Where the store has several writers a lock keeps off only those of this process. So who locks a stripe reads its turn in the store
 * ([u32 2][u16 stripe]), and a commit under it is on the condition that the turn is still that one, and makes it the next.
 */
#pragma once

#include <pthread.h>
#include <stdatomic.h>

#include "base/compiler.h"
#include "base/slice.h"

enum { ENGI_STRIPES = 1024 };

struct engi_stripe {
    pthread_mutex_t lock;
    _Atomic(pthread_t) owner; /* 0: nobody */
    uint64_t turn;            /* the owner's, in a store with several writers: which turn of the stripe's in the store this is */
};

struct eng;
struct kv_batch;

void engi_stripes_init(struct engi_stripe *stripes);
void engi_stripes_fini(struct engi_stripe *stripes);
/* Whether this thread holds the stripe of the row or partition whose key it is, and which one that is. */
bool engi_stripe_held(const struct eng *eng, struct slice key, uint32_t *stripe);
/* Adds to a batch under a stripe that no other engine has had a turn since it was locked, and that this is one. -1: no memory. */
int engi_stripe_turn(struct eng *eng, uint32_t stripe, struct kv_batch *b) MUST_CHECK;
