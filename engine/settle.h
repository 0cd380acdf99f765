/* Settling: the loose range tombstones of a partition are painted over each other and over the
 * pieces that are there, so that what is stored stays disjoint, a newer one swallows what it
 * covers, and reading looks at one. Private to engine/.
 *
 * Invariant 2: settled pieces of a partition are disjoint, and only who holds the partition's
 *              settle lock writes or deletes them. Writers
 * of loose ones take no part: a loose record that is written again says the same, so that nothing
 * is lost when it is taken away.
 */
#pragma once

#include <pthread.h>

#include "engine/tombstone.h"

/* A step is bounded in what it takes of loose records and of the pieces below them. */
enum { ENGI_SETTLE_LOCKS = 16, ENGI_SETTLE_LOOSE = 64, ENGI_SETTLE_PIECES = 256 };

struct engi_settle {
    pthread_mutex_t locks[ENGI_SETTLE_LOCKS];
};

void engi_settle_init(struct engi_settle *s);
void engi_settle_fini(struct engi_settle *s);
pthread_mutex_t *engi_settle_lock(struct engi_settle *s, struct slice prefix);
/* One step. 1: there is more to settle, 0: nothing, -1, ENG_INCOMPLETE. */
int engi_settle_step(struct eng *eng, enum eng_tier tier, struct slice prefix, struct err *e) MUST_CHECK;
/* All of it. Blocking. */
int engi_settle_all(struct eng *eng, struct slice prefix, struct err *e) MUST_CHECK;
