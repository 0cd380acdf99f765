/* Sizes a write by the stored rows that it touches: --write-size row ("Estimate capacity
 * consumption of read and write throughput",
 * https://docs.aws.amazon.com/keyspaces/latest/devguide/capacity-examples.html).
 *
 * Life: once all changes of a write are known, under the locks of its partitions, each row that a
 * change touches is read once, as it is stored, and the changes are laid on it in their order: a
 * statement is sized by the row after it, a deletion by the row that it takes away, and the
 * deletion of a range or a partition by all of them, row by row. Expired data that is still stored
 * counts. The sizes go to the op_write of the change (op_write.image); the reading itself is not
 * charged to the op_cost. A row whose first change sets everything is not read.
 *
 * Bounds: other writers of the partitions wait meanwhile. So a request checks its deadline every
 * few hundred rows, rows deleted earlier included, and ends with a write timeout; a request whose
 * deletions cover too many rows is refused. Neither writes anything.
 */
#pragma once

#include "cql/request/request.h"
#include "cql/write/mutation.h"

/* k: the statement's; a deletion of more rows than Keyspaces allows at once is refused at the first
 * row over the limit. 0, -1; ENG_INCOMPLETE, on a loop only: a worker must do it, because a row is
 * not in memory or a range must be scanned. */
int size_by_rows(struct cql_run *r, const struct mutations *m, const struct compat *k) MUST_CHECK;
