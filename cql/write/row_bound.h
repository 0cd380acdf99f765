/* The bound of a row's size (--max-row-size): a row is read, merged and compacted as a whole, so its
 * size must fit into the server's memory.
 *
 * Most writes do not read their row, so its size is unknown. Each write adds its bytes to a counter,
 * one of many, that it finds by a hash of the row. The write that takes a counter past a sixteenth of
 * the bound first measures its row. A row is thus measured about each time it has grown by that
 * much, whichever rows share its counter; the hash is seeded, so no client chooses them. A row
 * at its bound is remembered, and every write to it is measured until a measurement finds it
 * smaller. Deletions have no bytes and are never refused. */
#pragma once

#include "cql/write/mutation.h"

struct row_bound *row_bound_new(uint64_t max_bytes, struct err *e) MUST_CHECK;
void row_bound_free(struct row_bound *b);
/* Checks the rows of a write. Returns 0, -1 with ERR_INVALID if a row would be too large, or
 * ENG_INCOMPLETE if a row to be measured is not in memory and the request may not block. */
int row_bound_check(const struct mutations *m) MUST_CHECK;
