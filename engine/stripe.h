/* Stripe locks of partitions, for who reads before he writes. Private to engine/; the rest of the server takes them by eng_lock.
 *
 * Invariant 5: what decides what is written is read, and what was decided is committed, by the thread that holds the stripes of its
 * partitions. Whoever relies on it asserts eng_holds.
 */
#pragma once

#include <pthread.h>
#include <stdatomic.h>

enum { ENGI_STRIPES = 1024 };

struct engi_stripe {
    pthread_mutex_t lock;
    _Atomic(pthread_t) owner; /* 0: nobody */
};

void engi_stripes_init(struct engi_stripe *stripes);
void engi_stripes_fini(struct engi_stripe *stripes);
