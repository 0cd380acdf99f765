/* Reads rows under the partition's lock, for a write that depends on them: conditions, counters,
 * the size of the stored row.
 *
 * A write on a worker holds the stripe itself and may block. A write on an event loop holds it
 * through the loop's batch (eng_batch_try_lock), reads from memory alone, and cannot see the
 * batch's uncommitted writes. For a row with such a write, and for a row too large for a loop, the
 * request starts over on a worker.
 */
#pragma once

#include "cql/request/request.h"

/* Whether the request holds the partition's lock. For assertions. */
bool locked_holds(const struct cql_run *r, const struct eng_part *part);
/* As eng_row_get; ENG_INCOMPLETE, on a loop only: a worker must read the row. */
int locked_row_get(const struct cql_run *r, const struct eng_part *part, enum eng_row_kind kind, struct slice ck,
                   int64_t now, struct arena *a, struct eng_row *row, struct op_cost *cost) MUST_CHECK;
