/* The engine's cache: answers of the store that are kept in memory, stored rows
 * (engine/local/row_cache.h) and ranges of a partition (engine/local/range_cache.h). Both have one
 * index, one budget of bytes, one order of eviction and one rule of admission. Private to engine/.
 *
 * When an answer may be kept. A thread that asks the store begins a look first. The look notes the
 * state of the key's guard (engine/local/guard.h) and the generation of its table. The store's
 * answer may be kept, and kept answers of the same state may be used, as long as the look holds: no
 * write to a key of the guard has begun, and the table has not changed as a whole. Invariants 6 and
 * 7 say where rows and ranges rely on that.
 *
 * Admission. A read that misses counts in a table of recent misses, by the hash of its
 * key. An answer is kept when enough reads have missed it, two at first, so that rows read once do
 * not evict rows read often.
 *
 * Each entry is in the list of the bucket that its hash chooses. A bucket has a word with one bit for
 * its lock and 63 as a filter of the hashes in its list, so most threads that look for an entry that
 * is not there only read that word. The lock is held for the search of a list and a copy of at most
 * one row. Readers of a range hold a reference instead.
 *
 * Memory and eviction. All memory is allocated at the start: a few shards, each a ring of blocks
 * side by side. A shard's hand goes around its ring. A thread that inserts uses the gap before the hand,
 * and advances the hand until the gap is large enough: over free blocks, over entries that
 * were not used since the hand was there last, which it evicts (CLOCK), and over used rows, which it
 * moves to the begin of the gap. It passes used ranges and entries with other holders, and the gap
 * restarts after them. So rows and ranges of any size share the memory without fragments that
 * stay.
 *
 * Invariant 13: memory of an entry is used for another one only when no bucket, reader or inserting
 *               thread has a reference to it; and an entry is moved only when its bucket has the only
 *               one, and is locked.
 *
 *   word of a bucket:  [63 bits: filter][1 bit: locked]
 *   counter of misses: [9 bits of the hash][12 bits: how often the guard was taken when it counted
 *                      last][7 bits: misses since][3 bits: log2 of the misses that it takes][1 bit:
 *                      a loop has counted one, and the same read may come again on a worker]
 */
#pragma once

#include "base/buf.h"
#include "engine/local/guard.h"
#include "engine/tier.h"

struct local_table;

/* ---- looks ---- */

struct engi_cache_look {
    struct local_table *table; /* NULL if the cache has no part in this read */
    const _Atomic uint64_t *guard;
    uint64_t hash;              /* of the row's key, or of the partition's prefix */
    uint64_t state, generation; /* of the guard, of the table */
    bool fills;                 /* no write was under way: the store's answer may be kept */
    bool hit;                   /* the cache had the row */
};

/* Returns false if neither may a kept answer be used nor one be kept. A fault of reads that a test
 * has injected must reach the store. */
bool engi_cache_look_begin(struct engi_cache_look *l, struct local_table *t, const _Atomic uint64_t *guard,
                           uint64_t hash) MUST_CHECK;
bool engi_cache_look_holds(const struct engi_cache_look *l) MUST_CHECK;

/* ---- the cache ---- */

enum engi_cached_kind { ENGI_CACHED_ROW, ENGI_CACHED_NO_ROW /* the store has no such row */, ENGI_CACHED_RANGE };

/* The head of a block. In a free block only refs and size have a meaning. All but refs is under the
 * bucket's lock, or does not change. */
struct engi_cached {
    _Atomic uint32_t refs; /* of the bucket or the thread that inserts, and of readers; 0 if the block is free */
    uint32_t size;         /* bytes, with the head */
    struct engi_cached *next; /* in the bucket */
    uint64_t hash, generation;
    uint8_t kind;        /* enum engi_cached_kind */
    bool used;             /* since the hand was here last */
    uint16_t key_n, value_n; /* of a row, whose bytes follow */
};

struct engi_cache_bucket {
    _Atomic uint64_t word;
    struct engi_cached *first;
};

/* The counters of rows are apart from those of ranges. kept: entries. */
struct engi_cache_stats {
    uint64_t hits, misses, kept, bytes;
};

struct engi_cache_counters {
    _Alignas(64) _Atomic uint64_t hits[2], misses[2], kept[2], bytes[2]; /* of rows, of ranges */
};

struct engi_cache_shard {
    pthread_mutex_t lock; /* of the following fields, and held to move or make blocks */
    uint8_t *ring;
    size_t gap, gap_n; /* the free bytes at the hand, which have no head */
};

enum { ENGI_CACHE_COUNTERS = 32 /* by hash */, ENGI_CACHE_SHARDS = 32 /* at most */ };

struct engi_cache {
    uint64_t n_buckets, n_admissions; /* powers of two */
    size_t ring_n;                    /* bytes of a shard's ring */
    uint32_t n_shards;
    struct engi_cache_bucket *buckets;
    _Atomic uint32_t *admissions; /* counters of misses */
    uint8_t *rings;
    _Atomic uint32_t epoch;  /* of the store: answers from before a switch of the store are not kept */
    _Atomic uint32_t drafts; /* of ranges */
    struct engi_cache_shard shards[ENGI_CACHE_SHARDS]; /* by hash */
    struct engi_cache_counters counters[ENGI_CACHE_COUNTERS];
};

/* Returns NULL if no memory, or bytes are too few. The cache takes at most bytes, and little memory
 * before it is used. */
struct engi_cache *engi_cache_new(size_t bytes);
void engi_cache_free(struct engi_cache *c); /* or NULL */
/* Removes all entries, for a switch to another store. No thread reads meanwhile. */
void engi_cache_clear(struct engi_cache *c); /* or NULL */

/* Counts a miss of this hash, and returns whether the store's answer should be kept.
 * taken: how often the guard was taken, so that a write in between makes the count begin again;
 * constant for entries that are kept despite writes in between. */
bool engi_cache_is_due(struct engi_cache *c, uint64_t hash, uint64_t taken, enum eng_tier tier) MUST_CHECK;
/* Sets how many misses it takes the next time: the fewest, twice as many as before, or as many. */
enum engi_cache_need { ENGI_NEED_FEWEST, ENGI_NEED_TWICE, ENGI_NEED_SAME };
void engi_cache_set_need(struct engi_cache *c, uint64_t hash, enum engi_cache_need need);

void engi_cache_count(struct engi_cache *c, uint64_t hash, enum engi_cached_kind kind, bool hit);
struct engi_cache_stats engi_cache_stats(const struct engi_cache *c, enum engi_cached_kind kind);

/* ---- buckets ---- */

#define ENGI_BUCKET_LOCKED ((uint64_t)1)

static inline struct engi_cache_bucket *engi_cache_bucket(const struct engi_cache *c, uint64_t hash) {
    return &c->buckets[hash >> 8 & (c->n_buckets - 1)];
}
static inline uint64_t engi_bucket_bit(uint64_t hash) { return (uint64_t)2 << ((hash >> 48) * 63 >> 16); }
/* Whether the bucket had no entry of the hash at some moment of this call. Only reads the bucket.
 * In the one order of all locking of buckets and taking of guards (seq_cst). */
static inline bool engi_bucket_lacks(const struct engi_cache_bucket *b, uint64_t hash) {
    return !(atomic_load(&b->word) & (engi_bucket_bit(hash) | ENGI_BUCKET_LOCKED));
}
void engi_bucket_lock(struct engi_cache_bucket *b);
/* Returns false if other threads held the lock all the time. */
bool engi_bucket_try_lock(struct engi_cache_bucket *b) MUST_CHECK;
void engi_bucket_unlock(struct engi_cache_bucket *b);

/* Under the bucket's lock. */
void engi_bucket_insert(struct engi_cache *c, struct engi_cache_bucket *b, struct engi_cached *entry);
/* Releases the bucket's reference, so that the entry's memory may be used again at once. */
void engi_bucket_remove(struct engi_cache *c, struct engi_cache_bucket *b, struct engi_cached *entry);

/* ---- entries ---- */

/* Makes an entry of the look's hash and generation, in no bucket yet. Returns NULL if another
 * thread makes one in the same shard, or there is no room that a bounded number of steps of the
 * hand can make. */
struct engi_cached *engi_cached_new(struct engi_cache *c, const struct engi_cache_look *l, enum engi_cached_kind kind,
                                    size_t size);
/* Releases a reader's reference, or that of the thread that has made an entry and not inserted
 * it. */
void engi_cached_unref(struct engi_cached *entry);
