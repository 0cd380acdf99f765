/* A token bucket in whole numbers: the same trace gives the same answers, bit for bit.
 *
 * A bucket holds millionths of units, so that the refill is exactly the rate (units a second) times
 * the passed microseconds. A bucket may be in debt. Sums saturate at BUCKET_MOST, far above any
 * request, so every setting that limit_values_parse accepts is safe.
 *
 *   T1  a bucket's time never goes back, because the limiter's time (limiter.h) does not. A bucket
 *       that took an older reading would be filled twice for the same time.
 *
 *   T4  time that has passed fills a bucket at the rate, and up to the capacity, that it had while
 *       the time passed. The bucket keeps both, and a new rate counts from the call that sets it.
 *
 * T1 is asserted in bucket_fill.
 */
#pragma once

#include <assert.h>
#include <stdbool.h>
#include <stdint.h>

#include "base/compiler.h"

enum { BUCKET_UNIT = 1000000 };
#define BUCKET_MOST (INT64_C(1) << 60)

struct bucket {
    int64_t level; /* millionths of units; within plus and minus BUCKET_MOST */
    int64_t at_us; /* when it was last filled; 0 if it is new */
    int64_t rate, cap; /* in force since then (T4); below 1: not known */
};

/* a * b for two numbers from 0; at most BUCKET_MOST. */
static inline int64_t bucket_times(int64_t a, int64_t b) {
    int64_t product;
    return __builtin_mul_overflow(a, b, &product) || product > BUCKET_MOST ? BUCKET_MOST : product;
}

/* Takes n units, down to the deepest debt; a negative n returns them. */
static inline void bucket_take(struct bucket *b, int64_t n) {
    int64_t micro = n < 0 ? -bucket_times(-n, BUCKET_UNIT) : bucket_times(n, BUCKET_UNIT);
    int64_t level = b->level - micro; /* both are within BUCKET_MOST */
    b->level = level < -BUCKET_MOST ? -BUCKET_MOST : level > BUCKET_MOST ? BUCKET_MOST : level;
}

/* Refills the bucket for the time up to now_us, and sets the rate, units a second, and the capacity
 * that it has from now on. A new bucket begins with start units. */
static inline void bucket_fill(struct bucket *b, int64_t now_us, int64_t rate, int64_t cap, int64_t start) {
    assert(!b->at_us || b->at_us <= now_us); /* T1 */
    if (b->rate < 1 || b->cap < 1) b->rate = rate, b->cap = cap;
    int64_t rim = bucket_times(b->cap, BUCKET_UNIT);
    if (!b->at_us) b->level = bucket_times(start, BUCKET_UNIT);
    else if (b->level < rim) b->level += bucket_times(b->rate, now_us - b->at_us); /* at most twice BUCKET_MOST */
    if (b->level > rim) b->level = rim;
    if (UNLIKELY(b->rate != rate || b->cap != cap)) {
        rim = bucket_times(cap, BUCKET_UNIT);
        if (b->level > rim) b->level = rim;
        b->rate = rate;
        b->cap = cap;
    }
    b->at_us = now_us;
}

/* The level that a bucket must have before n units may be taken. Prepaid: all n units, or a full
 * bucket when n is larger than the bucket. Postpaid (the work is already done): any
 * positive level. */
static inline int64_t bucket_needs(int64_t n, int64_t cap, bool postpaid) {
    if (postpaid) return 1;
    return bucket_times(n < cap ? n : cap, BUCKET_UNIT);
}

static inline bool bucket_has(const struct bucket *b, int64_t needs) { return b->level >= needs; }

/* Microseconds until bucket_has is true; rate is at least 1. */
static inline int64_t bucket_wait_us(const struct bucket *b, int64_t needs, int64_t rate) {
    return b->level >= needs ? 0 : (needs - b->level + rate - 1) / rate;
}

/* Buckets of the most recently used partitions, in bounded memory. A bucket of a partition holds a
 * second's worth, so a bucket that was not used for a second is full, and may be evicted. When more
 * than PARTITION_BUCKETS partitions are used within a second, the least recently used buckets are
 * evicted, and their partitions are not limited. The bucket of a hot partition is never evicted.
 *
 * Not thread-safe.
 */
enum { PARTITION_SETS = 4096, PARTITION_WAYS = 8, PARTITION_BUCKETS = PARTITION_SETS * PARTITION_WAYS };

struct partition_bucket {
    int64_t token;
    uint32_t object;
    /* number of the ask that used it last, from 1; 0 if the slot is free. An ask does not evict its own buckets */
    uint64_t ask;
    struct bucket read, write, entities;
    uint64_t round; /* the round that the demand belongs to; several servers only */
    uint64_t read_demand, write_demand;
};

struct partition_buckets {
    struct partition_bucket *slots;
};

int partition_buckets_init(struct partition_buckets *p) MUST_CHECK;
void partition_buckets_fini(struct partition_buckets *p);
/* Returns NULL if the bucket was evicted, which is equivalent to a full one. */
struct partition_bucket *partition_bucket_find(const struct partition_buckets *p, uint32_t object, int64_t token);
/* Returns NULL if this ask has used up all slots of the set. */
struct partition_bucket *partition_bucket_open(struct partition_buckets *p, uint32_t object, int64_t token,
                                               uint64_t ask);
