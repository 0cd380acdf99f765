/* The limiter's state of a table: its capacity, the levels of its buckets, counts of its refused
 * requests. */
#pragma once

#include "metering/limits/bucket.h"
#include "metering/limits/capacity.h"
#include "metering/limits/limit.h"

struct limit_counts {
    uint64_t refused, shadowed; /* would have been refused */
    int64_t last_us, last_rate, last_retry_us;
};

/* A server's demand on the reads or the writes of a table, and its fraction of their limits
 * (division.h). With one server all members are 0. */
struct limit_part_of {
    uint64_t asked, used; /* since the last round; since the demand is told of */
    uint64_t demand, before; /* as told last, and the time before */
    uint32_t fraction;       /* 0 for the whole */
};

struct limit_table {
    uint32_t object;
    char keyspace[64], table[64];
    enum limit_mode mode;
    struct capacity read, write;
    struct bucket read_bucket, write_bucket, read_most, write_most;
    struct limit_part_of read_part, write_part;
    struct bucket entities; /* of the account: of object 0, whose read_bucket and write_bucket are the account's, too */
    bool touched;           /* since it was last saved */
    /* times of buckets are still wall times, as they were saved; until the table is first asked */
    bool restored;
    struct limit_counts counts[LIMITS];
};
