/* What the limiter knows of a table, as bytes: levels of its buckets, its capacity's history, what
 * was refused. It outlives the server in the ledger's file, so that a restart neither fills a
 * bucket nor forgets a peak. Pairs (number, value zig-zag) of uvarints; numbers of limit_state.def,
 * and 1000 + 10 * the limit's place + 0 to 4 for what it refused. What is 0 is left out, and a
 * number that is not known is passed over. Times are wall times, for they are compared across
 * restarts. */
#pragma once

#include "base/buf.h"
#include "limits/limit_table.h"

void limit_state_put(const struct limit_table *t, struct buf *out);
/* Damaged bytes say nothing from there on. */
void limit_state_take(struct limit_table *t, struct slice bytes);
