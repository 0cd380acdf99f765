/* Cached ranges: the stored keys and values of a range of one partition, for reads of slices.
 *
 * Life of a cached range. A scan that finds none at its begin notes the state of the partition's
 * guard (engine/local/guard.h) and lets the store's iterator answer. The second time that a scan
 * misses at this begin without a write to the partition in between, it notes the records that the
 * iterator passes. At its end these become a cached range: all keys of [lo, hi), and no other.
 * Scans that begin there are then answered from the range, forward or backward, until the next
 * write. The code above an iterator (deletions, TTL, dropped columns, pages, charges) works the
 * same for both kinds. If a range was dropped before it was used, the next one waits for twice as
 * many misses, and so on, so that alternating writes and reads do not pay for cached ranges.
 *
 * Invariant 7: a cached range that a scan takes equals the answer of the store's iterator at that
 *              moment. (a) A thread that writes or deletes a key of a partition shares the
 *              partition's guard from before the store has the write until it has it, and the guard
 *              counts how often it was taken: a range is valid only while the guard is in the same
 *              state as before the iterator was opened, and it was free then. (b) A change of a
 *              whole table, or a switch to another store, gives the table a new generation
 *              (engi_table_change_begin), and a range is valid only in its own. A fold and a
 *              compaction change no value. So a writer need not find a range: it makes the range
 *              invalid, and a later search frees it. Slices of a bucket that may hold deletions of
 *              ranges or partitions (engine/local/marks.h) are read from the store.
 *
 * A cached range never changes. A reader of it holds a reference. It may end before a scan does.
 * Then the store's iterator continues after the cached range, provided that no write to the
 * partition took place since the cached range was found, so that all records are of one moment.
 * Otherwise the read is incomplete and starts again on a worker, which takes a cached range only if
 * it has the whole range of the scan.
 */
#pragma once

#include "engine/local/cache.h"
#include "engine/local/rocksdb/kv.h"

struct local;

enum {
    ENGI_RANGES_OF_PARTITION = 16,
    ENGI_RANGE_DRAFTS = 16 /* at a time; their bytes come on top of the cache's */
};

/* The range that a scan of one partition reads: keys of [from, to). whole: only a cached range of
 * the whole range is useful. The bytes stay the caller's. */
struct engi_range_want {
    struct local_table *table;
    struct slice from, to;
    bool back, whole;
};

/* The iterator of a scan of one partition. The bounds of spec are the partition's. Returns NULL
 * with e set. */
struct kv_iter *engi_range_iter_new(struct local *own, const struct kv_iter_spec *spec,
                                    const struct engi_range_want *want, struct err *e) MUST_CHECK;
