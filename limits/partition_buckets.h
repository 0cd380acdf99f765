/* Buckets of partitions, in bounded memory: those that were used last. A bucket of a partition
 * holds a second's worth, so one that was not used for a second is full, and may be forgotten. When
 * more than PARTITION_BUCKETS partitions are used within a second, those are forgotten that were
 * used longest ago: they are not limited. A hot partition never is.
 *
 * Not thread-safe.
 */
#pragma once

#include "base/compiler.h"
#include "limits/bucket.h"

enum { PARTITION_SETS = 4096, PARTITION_WAYS = 8, PARTITION_BUCKETS = PARTITION_SETS * PARTITION_WAYS };

struct partition_bucket {
    int64_t token;
    uint32_t object;
    /* that used it last, by number from 1; 0: the place is free. An ask does not take a place from itself */
    uint64_t ask;
    struct bucket read, write, entities;
};

struct partition_buckets {
    struct partition_bucket *slots;
};

int partition_buckets_init(struct partition_buckets *p) MUST_CHECK;
void partition_buckets_fini(struct partition_buckets *p);
/* NULL: it is forgotten, and as good as full. */
struct partition_bucket *partition_bucket_find(const struct partition_buckets *p, uint32_t object, int64_t token);
/* NULL: this ask has used up all places of the set. */
struct partition_bucket *partition_bucket_open(struct partition_buckets *p, uint32_t object, int64_t token,
                                               uint64_t ask);
