/* A token bucket in whole numbers: the same trace gives the same answers, bit for bit.
 *
 * It holds millionths of units, so that what comes in is exactly rate units a second times the microseconds that have passed. It may be in debt. Time that goes back fills nothing.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

enum { BUCKET_UNIT = 1000000 };

struct bucket {
    int64_t level; /* millionths of units */
    int64_t at_us; /* when it was last filled; 0: it is new */
};

/* A bucket that nobody used yet begins with start units. */
static inline void bucket_fill(struct bucket *b, int64_t now_us, int64_t rate, int64_t cap, int64_t start) {
    enum { LONGEST_US = 1000000000 }; /* fills any bucket of ours, and is no overflow */
    if (!b->at_us) b->level = start * BUCKET_UNIT;
    else if (now_us > b->at_us) b->level += rate * (now_us - b->at_us < LONGEST_US ? now_us - b->at_us : LONGEST_US);
    if (b->level > cap * BUCKET_UNIT) b->level = cap * BUCKET_UNIT;
    b->at_us = now_us ? now_us : 1;
}

/* What must be there before n units may be taken. Ahead: all of them, or a full bucket when they are more. Behind (what was done already): anything. */
static inline int64_t bucket_needs(int64_t n, int64_t cap, bool behind) {
    if (behind) return 1;
    return (n < cap ? n : cap) * BUCKET_UNIT;
}

static inline bool bucket_has(const struct bucket *b, int64_t needs) { return b->level >= needs; }

/* Microseconds until it has; rate is at least 1. */
static inline int64_t bucket_wait_us(const struct bucket *b, int64_t needs, int64_t rate) {
    return b->level >= needs ? 0 : (needs - b->level + rate - 1) / rate;
}
