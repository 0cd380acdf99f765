/* Stored rows by key in the engine's cache (engine/local/cache.h): the store's answer to a get,
 * also that it has no such row. Private to engine/.
 *
 * Life of an entry. A reader that does not find its row here notes the state of the row's guard
 * (engine/local/guard.h) and gets the row from the store. The second time in a while that a read
 * misses the row, it inserts the row, unless a write to a row of that guard has begun since. A
 * writer evicts the row after it has taken the guard and before the store has the write. If no
 * other thread was at the guard meanwhile, the writer can compute the store's new answer from the
 * evicted one, and inserts that: so a row that is read and written in turn stays cached. Scans
 * neither use nor fill this cache; slices are in cached ranges (engine/local/range_cache.h).
 *
 * Invariant 6: an entry that can be found equals the store's answer to a get of its key at that
 *              moment. (a) It is inserted only when no write to its guard took place from before
 *              the get until the entry can be found, or, by a writer, when its own was the only
 *              write from before the eviction. (b) A writer of a row's key in the store holds the
 *              row's guard from before it evicts the entry until the store has the write. (c) A
 *              change of a whole table, or a switch to another store, lies between
 *              engi_table_change_begin and engi_table_change_end, which no entry of the table
 *              survives. A fold and a compaction change no value.
 */
#pragma once

#include "base/arena.h"
#include "engine/local/cache.h"

struct local;

struct own;

/* Larger ones are not kept. */
enum { ENGI_ROW_CACHE_VALUE_MAX = 4096, ENGI_ROW_CACHE_KEY_MAX = 512 };

enum { ENGI_ROW_CACHE_MISS = -1 };
/* Returns 1 if *value is the row's, in the arena, or 0 if the store has no such row; MISS: ask the
 * store. Any thread. */
int engi_row_cache_find(struct local *own, struct local_table *t, struct slice key, struct arena *a,
                        struct engi_cache_look *look, struct slice *value) MUST_CHECK;
/* Inserts the store's answer after a miss; NULL if the store has no such row. Does nothing after a
 * hit. */
void engi_row_cache_fill(struct local *own, const struct engi_cache_look *look, struct slice key,
                         const struct slice *value);
/* Evicts the row. Called by a writer that holds the row's guard, before the store has the write. */
void engi_row_cache_evict(struct local *own, uint64_t hash, struct slice key);
/* Evicts the row, too. Returns true if it was cached and the caller alone holds the guard. Then the
 * store's answer until it has the write is appended to out, or *absent is set; look is for
 * engi_row_cache_put_back. */
bool engi_row_cache_evict_copy(struct local *own, struct local_table *t, uint64_t hash, struct slice key,
                               struct buf *out, bool *absent, struct engi_cache_look *look) MUST_CHECK;
/* Called after the store has the write and the guard was left. Inserts value, which is the store's
 * new answer, if no other thread was at the guard since the eviction. */
void engi_row_cache_put_back(struct local *own, const struct engi_cache_look *look, struct slice key,
                             struct slice value);
