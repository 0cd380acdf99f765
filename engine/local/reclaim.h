/* Reclaiming: a pass over the buckets that are marked to hold deletions or expiring data. It
 * removes dead data that is old enough, and then the marks, so that the optimisations that a
 * deletion switched off work again. Private to engine/.
 *
 * A compaction sees only a part of a row's records, so it cannot tell whether an older write could
 * resurface. The reclaimer reads the whole row with its guard held exclusively and writes it back
 * without the dead parts. Deletions of ranges and partitions are removed gc_grace after they were
 * made, when all rows that they cover are gone. Compactions then drop the bytes. The reclaimer
 * keeps to a pace in rows a second, and holds no lock or guard while it waits. It visits a table's
 * buckets once in an eighth of the table's gc_grace. It visits a bucket in its next round if a read
 * there had to pass many rows that a deletion covers, so that later reads need not pass them again.
 */
#pragma once

#include "base/err.h"
#include "engine/local/eng.h"

void engi_reclaim_init(struct engi_reclaim *r, uint32_t rows_per_second);
void engi_reclaim_fini(struct engi_reclaim *r);
int engi_reclaim_start(struct eng *eng, struct err *e) MUST_CHECK;
void engi_reclaim_stop(struct eng *eng);
