/* Counters: from the increments of a statement or a batch to new values.
 *
 * Every increment is added first, as a change whose cells hold it; when all are known, each row is
 * read once and its counters become what is stored plus all that was added to them. So a batch is
 * one write, whatever it increments twice.
 */
#pragma once

#include "cql/request/request.h"
#include "cql/write/mutation.h"

/* Called with all partitions locked; now in seconds. Changes to the same row become one, and all
 * get timestamps above any that the rows have. 0, -1, or ENG_INCOMPLETE (cql/write/locked.h). */
int counter_settle(struct cql_run *r, struct mutations *m, int64_t now) MUST_CHECK;
