/* Reclaiming: a pass over a table that removes data that is dead and old enough, and combines the operands
 * of rows. Any number of stores may run it at the same time as writers and readers.
 *
 * Life of a pass: it visits the table's shards in order. A shard stores the time of its last visit:
 *
 *   key [01]['p']: [u64 seconds]
 *
 * The pass claims a shard by writing the present time there, on condition that the earlier time is as it
 * was read, and skips a shard that was visited recently. So one of the stores visits it. A store that
 * dies during a visit leaves dead data until the next visit; two stores that visit one shard at once only do
 * more work. A scan reads the shard's keys and finds partitions with something to do. Each of these partitions
 * is visited in rounds: a round reads it and writes the changes in one operation.
 *
 * Q12. A round reads the partition's mark of removals before it reads operands, and writes on the
 *      condition that the mark is unchanged. So every operand that it combines or removes is still
 *      there, and every deletion by which it judged a row, too. Operands that are appended meanwhile
 *      stay, because a round removes only operands that it has read.
 * Q13. A deletion of a range or a partition is removed by a round that has read the whole partition,
 *      in the operation that removes the last rows under it.
 * Q14. A tombstone is removed only when no write that it should cover can still arrive. It is older
 *      than gc_grace; older than IN_FLIGHT_S, which is longer than a write takes with all its
 *      time-outs, and than the clocks of servers differ; and older than the oldest batch in the log of
 *      batches, which may be replayed at any time. A later batch finds the tombstones already gone
 *      only if it is younger by gc_grace. As in Cassandra, a write with a lower timestamp that is
 *      applied later than gc_grace after a deletion becomes visible: a write that a client sends with its
 *      own timestamp, or a server that was stopped for that long.
 * Q15. A partition's own keys are removed when it has no operands and its mark is as old as a tombstone must be.
 *      As long as the mark stays the same, nothing was removed; so the partition has been empty since,
 *      its ballot is as old, and each operation that has read the partition with another mark, or without one, has
 *      ended long ago. A later reader or writer finds a partition that has never existed.
 * Q16. A round changes no row of a wide partition: its rows are in pieces, too (engine/rados/pieces.h). A round
 *      reads at one moment whether it is wide, and its mark, and a move that completes changes the mark.
 *      So no round combines or removes operands that a move removes from the shard. A move that purges
 *      (engine/rados/move.h) drops the dead parts of these rows; the pass finds the next such row, and
 *      purges the pieces from there on.
 * Q19. A deletion of a wide partition is removed once a pass has read all rows and found
 *      none of them dead any more, if it existed before the first of them was read, as the same operands.
 *      Their ids are unique, so it existed all the time. By Q14 all rows that it should cover existed,
 *      too, in the shard or in a piece; the pass has removed them where it has been, and no
 *      mover restores one (Q11). A row of a later write may be covered; it becomes visible, as in Q14.
 */
#pragma once

#include "engine/rados/rados.h"
#include "engine/store.h"

/* As store_ops.reclaim (engine/store.h). */
int reclaim_table(struct rados *s, const struct store_reclaim *o, struct err *e) MUST_CHECK;
