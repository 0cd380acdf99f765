/* Reclaiming in the local store: a pass over the buckets that are marked to hold deletions or
 * expiring data. It removes dead data that is old enough, and then the marks, so that the
 * optimisations that a deletion switched off work again. Private to engine/.
 *
 * A compaction sees only a part of a row's records, so it cannot tell whether an older write could
 * resurface. The reclaimer reads the whole row with its guard held exclusively and writes it back
 * without the dead parts. Deletions of ranges and partitions are removed gc_grace after they were
 * made, when all rows that they cover are gone. Compactions then drop the bytes. The pass holds no
 * lock or guard while the reclaimer keeps its pace (engine/front/reclaim.c).
 */
#pragma once

#include "engine/store.h"

/* Members of struct store_ops. */
int local_reclaim(struct store *s, const struct store_reclaim *o, struct err *e) MUST_CHECK;
void local_reclaimed(struct store *s);
