/* Stripe locks of partitions, for writes that depend on a read. Private to engine/; the rest of the
 * server takes them by eng_lock.
 *
 * Invariant 5: a write that depends on a read is read for, decided and committed by the thread that
 *              holds the stripes of its partitions. Code that relies on it asserts eng_holds.
 *
 * A loop, which must not wait, takes a stripe only when it is free and no thread waits for it. The
 * loop gives it to its batch, which keeps it until any thread commits the batch. So a stripe has a
 * field for its owner, and is not a mutex, which one thread would own.
 *
 * In a store with several writers a lock excludes only the threads of this process. So the first
 * read of a partition under its lock also returns its ballot, a counter in the store. A commit under the
 * lock has the condition that the ballot is unchanged, and advances it. A partition's first ballot is a
 * random number: the store forgets ballots that are as old as its tombstones, and a ballot that was read
 * before that must not occur again.
 */
#pragma once

#include <pthread.h>
#include <stdatomic.h>

#include "base/compiler.h"
#include "base/slice.h"
#include "engine/front/eng.h"

#define ENGI_STRIPE_OF_BATCH ((pthread_t)(-1))

struct eng_part;

/* Stripes of a batch. */
struct engi_stripe_set {
    bool any;
    uint64_t bits[ENGI_STRIPES / 64];
};
/* Adds the partition's stripe to the set. Returns 1 if added, 0 if the set has it already, or -1
 * if it is held or waited for. */
int engi_stripes_try(struct eng *eng, struct engi_stripe_set *set, const struct eng_part *part) MUST_CHECK;
/* Frees a stripe for which engi_stripes_try returned 1. */
void engi_stripes_remove(struct eng *eng, struct engi_stripe_set *set, const struct eng_part *part);
bool engi_stripes_have(const struct engi_stripe_set *set, const struct eng_part *part);
/* All of the set are free again. Any thread. */
void engi_stripes_leave(struct eng *eng, struct engi_stripe_set *set);
/* Members of struct store_front (engine/store.h). */
bool engi_ballot(struct store *s, struct slice prefix, uint64_t *ballot);
void engi_ballot_read(struct store *s, struct slice prefix, uint64_t ballot);
void engi_ballot_moved(struct store *s, struct slice prefix, uint64_t ballot);
