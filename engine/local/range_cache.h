/* Cached ranges: the stored keys and values of a range of one partition, for reads of slices.
 *
 * Life of a cached range. A scan that finds none at its begin notes the state of the partition's
 * guard (engine/local/guard.h) and lets the store's iterator answer. The second time that a scan
 * misses at this begin without a write to the partition in between, it notes the records that the
 * iterator passes (engine/local/range_iter.h). At its end these become a cached range: all keys of
 * [lo, hi), and no other. Scans that begin there are then answered from the range, forward or
 * backward, until the next write. The code above an iterator (deletions, TTL, dropped columns, pages, charges) works
 * the same for both kinds. If a range was dropped before it was used, the next one waits for twice
 * as many misses, and so on, so that alternating writes and reads do not pay for cached ranges.
 *
 * Invariant 7: a cached range that a scan takes equals the answer of the store's iterator at that
 *              moment. (a) A thread that writes or deletes a key of a partition shares the
 *              partition's guard from before the store has the write until it has it, and the guard
 *              counts how often it was taken: a range is valid only while the guard is in the same
 *              state as before the iterator was opened, and it was free then. (b) A change
 *              of a whole table, or a switch to another store, gives the table a new generation
 *              (engi_table_change_begin), and a range is valid only in its own. A fold
 *              and a compaction change no value. So a writer need not find a range: it makes
 *              the range invalid, and a later search frees it. Slices of a bucket that may hold
 *              deletions of ranges or partitions (engine/local/marks.h) are read from the store.
 *
 * A cached range never changes. A reader of it holds a reference.
 */
#pragma once

#include <assert.h>

#include "engine/local/cache.h"
#include "engine/local/rocksdb/kv.h"

struct local;

struct own;

enum {
    ENGI_CACHED_RANGE_MAX = 512 << 10 /* bytes, and at most an eighth of a shard of the cache */,
    ENGI_RANGES_OF_PARTITION = 16,
    ENGI_RANGE_DRAFTS = 16 /* at a time; their bytes come on top of the cache's */
};

/* ---- cached ranges ---- */

struct engi_cached_range {
    struct engi_cached head;
    uint32_t n;   /* keys */
    bool was_hit; /* under the bucket's lock */
    struct slice lo, hi;
    const uint32_t *ends; /* the end of each row in bytes; a row begins at the end of the one before */
    const uint8_t *bytes; /* of each row: [u32 bytes of key][key][value] */
    uint64_t state;       /* of the partition's guard */
};

static inline struct slice engi_cached_range_row(const struct engi_cached_range *r, uint32_t i) {
    uint32_t from = i ? r->ends[i - 1] : 0;
    return slice_of(r->bytes + from, r->ends[i] - from);
}
static inline struct slice engi_cached_range_key(struct slice row) {
    uint32_t n;
    memcpy(&n, row.p, sizeof(n));
    return slice_of(row.p + sizeof(n), n);
}
static inline struct slice engi_cached_range_value(struct slice row) {
    struct slice key = engi_cached_range_key(row);
    return slice_of(key.p + key.n, row.n - sizeof(uint32_t) - key.n);
}

/* The range that a scan of one partition reads: keys of [from, to). whole: only a cached range of
 * the whole range is useful. The bytes stay the caller's. */
struct engi_range_want {
    struct local_table *table;
    struct slice from, to;
    bool back, whole;
};

/* The state of one scan's search, taken before the store is asked. */
struct engi_range_look {
    struct engi_cache_look at; /* of the partition */
    uint64_t begin;            /* the scan's begin and direction, hashed: misses are counted by it */
    uint32_t epoch;
};

/* Returns a reference to a cached range that has the scan's begin, or its whole range; NULL: there
 * is none, and the look serves to note the store's answer. Any thread. */
struct engi_cached_range *engi_range_cache_find(struct local *own, const struct engi_range_want *want,
                                                struct engi_range_look *look);
/* Whether the partition had no write and the table no change since the look. Then all reads of the
 * partition meanwhile are of one moment. */
bool engi_range_cache_holds(const struct local *own, const struct engi_range_look *look) MUST_CHECK;
void engi_range_cache_count(struct local *own, const struct engi_range_look *look, bool hit);

/* ---- bringing in ---- */

/* Counts the miss, and returns whether the store's answer to it should be noted. */
bool engi_range_cache_is_due(struct local *own, const struct engi_range_look *look, enum eng_tier tier) MUST_CHECK;
/* This begin cannot become a cached range: require more misses next time. */
void engi_range_cache_give_up(struct local *own, const struct engi_range_look *look);

/* The records that an iterator has passed, in its order. All zero: empty. */
struct engi_range_draft {
    struct engi_cache *of;
    struct buf rows, ends, lo, hi; /* rows: as in a cached range; ends: u32 each */
    uint32_t n;
    bool back;
};
/* False: ENGI_RANGE_DRAFTS scans are noting already, some perhaps paused. Then this scan reads
 * without noting. */
bool engi_range_draft_init(struct engi_range_draft *d, struct engi_cache *of, bool back) MUST_CHECK;
void engi_range_draft_fini(struct engi_range_draft *d);
/* -1: it is too large, has no memory, or cannot be kept. */
int engi_range_draft_add(struct engi_range_draft *d, struct slice key, struct slice value) MUST_CHECK;
/* Makes the draft a cached range, if it is still valid. */
void engi_range_cache_keep(struct local *own, const struct engi_range_look *look, struct engi_range_draft *d);
