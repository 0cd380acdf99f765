/* The split of a shard in two.
 *
 *   1. freeze: [state open -> frozen]. Writes to the shard fail from now on; readers still read it.
 *   2. make both halves, in state copied.
 *   3. copy to the halves. Each operation compares the half's state with copied.
 *   4. open the halves: [state copied -> open, the counters of the copied keys].
 *   5. mark as split: [state frozen -> split, all else cleared].
 *
 * Q5. The copied keys depend only on the frozen shard, and nothing is copied to a half once it is
 * open. So several processes may split the same shard at once, and any process may continue the
 * split of one that has died.
 *
 * Q7. Where the copy combines operands of a partition, it gives the partition a mark of removals in
 * the half that the partition never had in the whole. A fold that has read the operands in the whole
 * removes keys that the half does not have. The mark makes the half refuse it; otherwise the half
 * would count keys as removed that were never in it.
 */
#pragma once

#include "engine/rados/rados.h"

/* Splits the shard, or completes its split. Does nothing if it is mostly one partition, which cannot
 * be split; then, if the shard is full and consists mostly of rows of one partition, sets wide to its prefix.
 * Returns 0, or a negative error number. Blocking: some 100 ms. */
int split_shard(struct rados *s, struct shard *sh, struct buf *wide) MUST_CHECK;
/* Waits until a frozen shard is split. Completes the split itself if that takes long. Returns 0, -ESTALE if the table
 * was dropped, -ETIMEDOUT also if until_us, machine time, has passed, or another negative error number. */
int split_await(struct rados *s, struct shard *sh, int64_t until_us) MUST_CHECK;
