/* Buckets of the most recently used partitions, in bounded memory. A bucket of a partition holds a
 * second's worth, so a bucket that was not used for a second is full, and may be evicted. When more
 * than PARTITION_BUCKETS partitions are used within a second, the least recently used buckets are
 * evicted, and their partitions are not limited. The bucket of a hot partition is never evicted.
 *
 * Not thread-safe.
 */
#pragma once

#include "base/compiler.h"
#include "metering/limits/bucket.h"

enum { PARTITION_SETS = 4096, PARTITION_WAYS = 8, PARTITION_BUCKETS = PARTITION_SETS * PARTITION_WAYS };

struct partition_bucket {
    int64_t token;
    uint32_t object;
    /* that used it last, by number from 1; 0 if the place is free. An ask does not take a place from itself */
    uint64_t ask;
    struct bucket read, write, entities;
    uint64_t round; /* in which these were asked of it, of several servers */
    uint64_t read_asked, write_asked;
};

struct partition_buckets {
    struct partition_bucket *slots;
};

int partition_buckets_init(struct partition_buckets *p) MUST_CHECK;
void partition_buckets_fini(struct partition_buckets *p);
/* Returns NULL if the bucket was evicted, which is equivalent to a full one. */
struct partition_bucket *partition_bucket_find(const struct partition_buckets *p, uint32_t object, int64_t token);
/* Returns NULL if this ask has used up all places of the set. */
struct partition_bucket *partition_bucket_open(struct partition_buckets *p, uint32_t object, int64_t token,
                                               uint64_t ask);
