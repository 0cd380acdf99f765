/* The newest timestamp that rows were ever written with: what proves that a delta may replace its row. Private to engine/.
 *
 * A delta that sets every column of its row, and is newer than anything the row was ever written with, reconciles to itself:
 * it is put instead of merged, and reading it merges nothing. Not in a table where rows were ever deleted: a row keeps its deletion, which
 * also covers columns that the table gets later. Timestamps are kept per slot of the keys' hashes, so the answer is
 * only ever too careful. Of what was written before the engine was opened its horizon is known.
 */
#pragma once

#include <stdatomic.h>

#include "engine/horizon.h"

enum { ENGI_NEWEST_SLOTS = 65536, ENGI_HORIZON_STEP = 60000000 /* microseconds */ };

struct engi_newest {
    struct engi_horizon horizon;
    _Atomic int64_t slots[ENGI_NEWEST_SLOTS];
};

void engi_newest_init(struct engi_newest *n);
/* Whether everything that was ever written to the row is older than ts. */
bool engi_newest_before(const struct engi_newest *n, uint64_t hash, int64_t ts);
/* Before the write: on the row of the hash something is written with ts. */
void engi_newest_raise(struct engi_newest *n, uint64_t hash, int64_t ts);
