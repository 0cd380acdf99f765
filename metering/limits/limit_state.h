/* Encodes the limiter's state of a table: levels of its buckets, its capacity's history, counts of
 * refusals. The ledger's file keeps these bytes, so a restart neither fills a bucket nor forgets a
 * peak. Pairs (number, value zig-zag) of uvarints; numbers of limit_state.def, and 1000 + 10 * the
 * limit's place + 0 to 4 for its counts. A value of 0 is left out, and an unknown number is
 * skipped. Times are wall times, because they are compared across restarts. */
#pragma once

#include "base/buf.h"
#include "metering/limits/limit_table.h"

void limit_state_put(const struct limit_table *t, struct buf *out);
/* Decoding ends at the first damaged byte; the values before it count. */
void limit_state_take(struct limit_table *t, struct slice bytes);
