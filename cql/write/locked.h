/* Rows that a write looks at to decide what it writes, under its partition's lock: conditions,
 * counters, the size of what stood there.
 *
 * A worker's write holds the stripe itself and may block. A loop's holds it through its batch
 * (eng_batch_try_lock), reads from memory alone, and cannot see what that batch has written and not
 * committed: such a row, and one that takes a loop too long, is for a worker, where the request
 * starts over.
 */
#pragma once

#include "cql/request/request.h"

/* Whether the request holds the partition's lock: asserted where it is relied on. */
bool locked_holds(const struct cql_request *r, const struct eng_part *part);
/* As eng_row_get; ENG_INCOMPLETE, on a loop alone, says that the row is for a worker. */
int locked_row_get(const struct cql_request *r, const struct eng_part *part, enum eng_row_kind kind, struct slice ck,
                   int64_t now, struct arena *a, struct eng_row *row, struct op_cost *cost) MUST_CHECK;
