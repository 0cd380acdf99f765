/* Rows as the store has them, by key, in front of it: what the store answers to a get, and that it
 * has nothing. Private to engine/.
 *
 * Life of an entry. A reader that does not find its row looks at the row's slot (engine/slot.h),
 * gets the row from the store, and, the second time in a while that a read has missed it, brings it
 * in: unless somebody has begun to write a row of that slot since. Who writes the row takes it out
 * after he has shared or claimed the slot and before the store has the write. When nobody else was
 * at the slot meanwhile he knows what the store answers now, for he has seen what it answered
 * before, and brings that in: so a row that is read and written in turn stays. A cache that is full
 * forgets what was brought in first and was not read since (CLOCK). Scans neither use it nor fill
 * it: of slices there are runs (engine/run.h).
 *
 * Invariant 6: an entry that can be found is what the store answers to a get of its key at that
 *              moment. (a) It is brought in only when nothing was
 * written to its slot from before the get until it can be found, or, by who wrote the row, nothing
 * but that one write from before the entry was taken out; (b) whoever writes or deletes a row's key
 * in the store holds the row's slot from before he takes the entry out until the store has the
 * write; (c) what changes a table as a whole, or takes it from another store, is between
 * engi_row_cache_shut and engi_row_cache_open, which no entry of the table survives; (d) what a
 * compaction may take away of a row without a write (engine/purge.h), by the clock as it is, is
 * asked of the store. A fold changes no value.
 *
 * Memory is given out once: so many shards, each a ring of entries and an index of buckets, which
 * say where in the ring they are. Positions only grow, so that a reader, who takes no lock, knows
 * that what it has copied was whole when the bucket still says the same position. In a shard one
 * thread at a time brings in and forgets (lock; who would wait goes without); a bucket is changed
 * under its own lock, which is held for some loads and stores.
 *
 *   entry:  [u16 words of all][u16 bytes of key][u16 bytes of value][u16 ABSENT, PAD] [u64 hash]
 *           [i64 seconds: may be purged from] [u64 table's generation] [key] [value]
 *   bucket: [20 bits of the hash][43 bits position][1 bit: read since]
 */
#pragma once

#include "base/arena.h"
#include "base/buf.h"
#include "engine/slot.h"

struct eng;
struct engi_table;
struct engi_row_cache; /* an engine's; NULL: it has none */

/* Larger ones are not kept. */
enum { ENGI_ROW_CACHE_VALUE_MAX = 4096, ENGI_ROW_CACHE_KEY_MAX = 512 };

/* NULL: no memory, or bytes are too few for one shard. It takes no more than bytes, and little before it is used. */
struct engi_row_cache *engi_row_cache_new(size_t bytes);
void engi_row_cache_free(struct engi_row_cache *c);

/* Of one read, from before it asks the store. */
struct engi_row_look {
    struct engi_table *table;
    uint64_t hash, slot, generation;
    uint64_t place; /* of what was found; 0: nothing was */
    bool fills;
};

enum { ENGI_ROW_CACHE_MISS = -1 };
/* 1: *value is the row's, in the arena; 0: the store has none; MISS: it is to be asked. Any thread. */
int engi_row_cache_find(struct eng *eng, struct engi_table *t, struct slice key, struct arena *a,
                        struct engi_row_look *look, struct slice *value) MUST_CHECK;
/* After a miss, what the store has answered; NULL: that it has none. After anything else, nothing happens. */
void engi_row_cache_fill(struct eng *eng, const struct engi_row_look *look, struct slice key,
                         const struct slice *value);
/* Whether what was found is there still: then it was so all the time, and what was found of another
 * row meanwhile is of the same moment. */
bool engi_row_cache_still(const struct eng *eng, const struct engi_row_look *look) MUST_CHECK;

/* Has the processor fetch what says whether the row is there; for who writes it soon. */
void engi_row_cache_fetch(struct engi_row_cache *c, uint64_t hash);
/* By who holds the row's slot, before the store has the write. */
void engi_row_cache_forget(struct eng *eng, uint64_t hash, struct slice key);
/* The same. True: the row was there and the caller alone holds the slot. What the store answers
 * until it has the write is then put behind out, or *absent: it has none; look is for
 * engi_row_cache_bring_back. */
bool engi_row_cache_take_out(struct eng *eng, struct engi_table *t, uint64_t hash, struct slice key, struct buf *out,
                             bool *absent, struct engi_row_look *look) MUST_CHECK;
/* After the store has the write and the slot was left: value is what the store answers if nobody
 * was there since the row was taken out, and is brought in then. */
void engi_row_cache_bring_back(struct eng *eng, const struct engi_row_look *look, struct slice key, struct slice value);
/* Around what changes a table as a whole; the generation it then has, which runs of slices ask for,
 * too (engine/run.h). */
static inline bool engi_row_cache_is_shut(uint64_t generation) { return (uint32_t)generation; }
void engi_row_cache_shut(struct engi_table *t);
void engi_row_cache_open(struct engi_table *t);
/* Of every table; nobody reads. */
void engi_row_cache_clear(struct engi_row_cache *c);

struct engi_row_cache_stats {
    uint64_t hits, misses, rows, bytes;
};
struct engi_row_cache_stats engi_row_cache_stats(const struct engi_row_cache *c);
