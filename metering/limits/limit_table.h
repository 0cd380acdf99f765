/* The limiter's state of a table: its capacity, the levels of its buckets, counts of its refused
 * requests. */
#pragma once

#include "base/buf.h"
#include "metering/limits/bucket.h"
#include "metering/limits/capacity.h"
#include "metering/limits/limit.h"

struct limit_counts {
    uint64_t refused, shadowed; /* would have been refused */
    int64_t last_us, last_rate, last_retry_us;
};

/* A server's demand on the reads or the writes of a table, and its fraction of their limits
 * (division.h). With one server all members are 0. */
struct table_demand {
    uint64_t asked, used; /* since the last round; since this server began to report the demand */
    uint64_t demand, before; /* the last reported value, and the one before */
    uint32_t fraction;       /* 0 for the whole */
};

struct limit_table {
    uint32_t object;
    char keyspace[64], table[64];
    enum limit_mode mode;
    struct capacity read, write;
    struct bucket read_bucket, write_bucket, read_most, write_most;
    struct table_demand read_demand, write_demand;
    struct bucket entities; /* of the account: of object 0, whose read_bucket and write_bucket are the account's, too */
    bool touched;           /* since it was last saved */
    /* times of buckets are still wall times, as they were saved; until the table is first asked */
    bool restored;
    struct limit_counts counts[LIMITS];
};

/* Encodes the limiter's state of a table: levels of its buckets, its capacity's history, counts of
 * refusals. The ledger's file keeps these bytes, so a restart neither fills a bucket nor forgets a
 * peak. Pairs (number, value zig-zag) of uvarints; numbers of limit_state.def, and 1000 + 10 * the
 * limit's place + 0 to 4 for its counts. A value of 0 is left out, and an unknown number is
 * skipped. Times are wall times, because they are compared across restarts. */
void limit_state_put(const struct limit_table *t, struct buf *out);
/* Decoding ends at the first damaged byte; the values before it count. */
void limit_state_take(struct limit_table *t, struct slice bytes);
