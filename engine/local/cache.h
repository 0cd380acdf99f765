/* The common rules of the row cache (engine/local/row_cache.h) and the cached ranges
 * (engine/local/range_cache.h): when an answer of the store may be kept, and the counters. Private
 * to engine/.
 *
 * A thread that asks the store begins a look first. The look notes the state of the key's guard
 * (engine/local/guard.h) and the generation of its table. The store's answer may be kept, and kept
 * answers of the same state may be used, as long as the look holds: no write to a key of the guard
 * has begun, and the table has not changed as a whole. Invariants 6 and 7 say where each cache
 * relies on that.
 */
#pragma once

#include "engine/local/guard.h"

struct engi_table;

struct engi_cache_look {
    struct engi_table *table; /* NULL: the caches have no part in this read */
    const _Atomic uint64_t *guard;
    uint64_t hash;              /* of the row's key, or of the partition's prefix */
    uint64_t state, generation; /* of the guard, of the table */
    uint64_t place;             /* of the row found, 0: none; or of the begin of a scan, hashed */
    bool fills;                 /* no write was under way: the store's answer may be kept */
};

/* False: neither may a kept answer be used nor one be kept. A fault of reads that a test has injected
 * must reach the store. */
bool engi_cache_look_begin(struct engi_cache_look *l, struct engi_table *t, const _Atomic uint64_t *guard,
                           uint64_t hash) MUST_CHECK;
bool engi_cache_look_holds(const struct engi_cache_look *l) MUST_CHECK;

/* kept: rows or ranges. */
struct engi_cache_stats {
    uint64_t hits, misses, kept, bytes;
};
