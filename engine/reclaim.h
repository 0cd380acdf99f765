/* Reclaiming: a pass over the buckets that are marked to hold deletions or expiring data, which
 * takes away what is dead and old enough, and the marks with it, so that what a deletion switched
 * off heals. Private to engine/.
 *
 * A compaction sees a part of what a row is made of, so it cannot tell what an older write may
 * resurface from. The reclaimer reads the whole row under a claim of its slot and writes it back
 * without what is dead; gc_grace after they were made deletions of ranges and partitions go, when
 * all that they cover is gone. Compactions then drop the bytes. It is bounded to a pace in rows a
 * second, holds nothing while it waits, and comes by a table's buckets once in an eighth of its
 * gc_grace; by those where a read had to pass many rows that a deletion covers, in its next round,
 * so that the same rows are not passed again and again.
 */
#pragma once

#include <pthread.h>
#include <stdatomic.h>

#include "base/compiler.h"
#include "base/err.h"

struct eng;

struct engi_reclaim {
    pthread_t thread;
    pthread_mutex_t lock;
    pthread_cond_t wake;
    pthread_mutex_t pass; /* held by the one that runs */
    uint64_t removed;     /* records, in its run; guarded by pass */
    bool running;
    _Atomic bool stop;
    uint32_t rows_per_second; /* 0: no thread */
};

void engi_reclaim_init(struct engi_reclaim *r, uint32_t rows_per_second);
void engi_reclaim_fini(struct engi_reclaim *r);
int engi_reclaim_start(struct eng *eng, struct err *e) MUST_CHECK;
void engi_reclaim_stop(struct eng *eng);
