/* What a write comes to by the rows that it touches, as they stand: --write-size row ("Estimate
 * capacity consumption of read and write throughput",
 * https://docs.aws.amazon.com/keyspaces/latest/devguide/capacity-examples.html).
 *
 * Life: once all changes of a write are known, under the locks of its partitions, each row that a
 * change touches is read once, as it is stored, and the changes are laid on it in their order: a
 * statement is sized by the row after it, a deletion by the row that it takes away, and the
 * deletion of a range or a partition by all of them, row by row. Expired data that is still stored
 * counts. What is sized goes to the op_write of the change (op_write.stood); the reading itself is
 * no part of the op_cost. A row of which the first change sets everything is not read.
 *
 * Bounds: whoever writes to the partitions waits meanwhile. So a request looks at its deadline
 * every few hundred rows, also among those that were deleted before, and is answered with a write
 * timeout; and one whose deletions are over too many rows is refused. Neither writes anything.
 */
#pragma once

#include "cql/request/request.h"
#include "cql/write/mutation.h"

/* k: the statement's; a deletion that takes away more rows than Keyspaces allows at once is refused
 * as soon as that is seen. 0, -1; ENG_INCOMPLETE, on a loop only: it must be done where one may
 * wait, for a row is not in memory, or there are ranges to go through. */
int footprint_size(struct cql_request *r, const struct mutations *m, const struct compat *k) MUST_CHECK;
