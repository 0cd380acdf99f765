/* Settling: the loose range tombstones of a partition are painted over each other and over its
 * settled pieces. So the stored pieces stay disjoint, a newer deletion replaces the older ones that
 * it covers, and a read looks at one piece. Private to engine/.
 *
 * Invariant 2: settled pieces of a partition are disjoint, and only the thread that holds the
 *              partition's settle lock writes or deletes them. Writers of loose records do not take
 *              the lock: a loose record that is written again has the same content, so removing it
 *              after settling loses nothing.
 */
#pragma once

#include <pthread.h>

#include "engine/tombstone.h"

/* Bounds of one step: loose records, and settled pieces below them. */
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
