/* Runs: cached ranges of one partition's stored keys and values, for reads of slices. Private to
 * engine/.
 *
 * Life of a run. A scan that finds no run at its begin notes the state of the partition's ward and
 * lets the store's iterator answer. The second time that a scan misses at this begin without a
 * write to the ward in between, it notes the records that the iterator passes (engine/run_iter.h).
 * At its end these become a run: all keys of [lo, hi), and no other. Scans that begin there are
 * then answered from the run, forward or backward, until the next write. The code above an iterator
 * (deletions, TTL, dropped columns, pages, charges) works the same for both kinds. If a run was
 * dropped before it was used, the next one waits for twice as many misses, and so on, so that
 * alternating writes and reads do not pay for runs.
 *
 * Invariant 7: a run that a scan takes equals the answer of the store's iterator at that moment.
 *              (a) A thread that writes, deletes or settles a key of a partition has entered its
 *              ward from before the store has the write until it has it, and each entering is
 *              counted: a run is valid only while its ward is in the same state as before the
 *              iterator was opened, and that state was free. (b) A change of a whole table, or a
 *              switch to another store, gives the table a new generation (engi_row_cache_shut), and
 *              a run is valid only in its own. (c) Where a compaction may by now have removed data
 *              without a write (engine/purge.h), the store is asked. A fold changes no value. So a
 *              writer need not find a run: it makes the run invalid, and a later search frees it.
 *              Slices of a bucket that may hold deletions of ranges or partitions (engine/marks.h)
 *              are read from the store.
 *
 * A run is one piece of memory that never changes. Shards keep runs by partition, each within its
 * share of the bytes, and evict the run inserted first that was not read since (CLOCK). A shard is
 * locked for a few loads and stores; a thread that does not get the lock does without runs. A
 * reader of a run holds a reference.
 *
 *   ward:  [40 bits: how often it was entered][24 bits: by how many it is now]
 *   door:  [16 bits of the place's hash][32 bits: how often the ward had been entered][8 bits:
 *          misses since][7 bits: misses that it takes][1 bit: a loop has counted one, and the same
 *          read may come again on a worker]
 */
#pragma once

#include <assert.h>
#include <pthread.h>
#include <stdatomic.h>

#include "base/buf.h"
#include "engine/kv.h"

struct eng;
struct engi_table;
struct engi_run_shard;

enum {
    ENGI_RUNS_SHARE = 4 /* the runs' share of the row cache's bytes, as a divisor */,
    ENGI_WARDS = 65536,
    ENGI_RUN_MAX = 512 << 10 /* bytes */,
    ENGI_RUNS_OF_PARTITION = 16,
    ENGI_RUN_DRAFTS = 16 /* at a time */
};

struct engi_runs {
    _Atomic uint64_t wards[ENGI_WARDS];
    _Atomic uint32_t epoch; /* of the store: drafts from before a switch of the store are not kept */
    _Atomic uint32_t drafts;
    uint32_t n_shards;
    size_t n_heads, n_doors; /* of a shard; powers of two */
    size_t most, run_most;   /* bytes: of a shard, of a run */
    struct engi_run_shard *shards;
};

/* NULL: no memory, or bytes are too few. Runs take at most bytes, except those dropped while a scan
 * still reads them. Drafts come on top, each at most as large as a run. */
struct engi_runs *engi_runs_new(size_t bytes);
void engi_runs_free(struct engi_runs *r);
/* Removes the runs of every table, for a switch to another store. No thread reads meanwhile. */
void engi_runs_clear(struct engi_runs *r);

/* ---- wards ---- */

/* The ward of a key, by its table and token. */
static inline _Atomic uint64_t *engi_ward(struct engi_runs *r, struct slice key) {
    return &r->wards[(load_u64(key.p + 4) ^ load_u32(key.p)) * UINT64_C(0x9e3779b97f4a7c15) >> 48];
}
static inline bool engi_ward_is_free(uint64_t state) { return !(state & 0xffffff); }
/* engi_ward_enter and engi_ward_leave enclose a write to the key. r NULL: there are no runs. */
static inline void engi_ward_enter(struct engi_runs *r, struct slice key) {
    if (r) atomic_fetch_add(engi_ward(r, key), ((uint64_t)1 << 24) + 1);
}
static inline void engi_ward_leave(struct engi_runs *r, struct slice key) {
    uint64_t before = r ? atomic_fetch_sub_explicit(engi_ward(r, key), 1, memory_order_release) : 1;
    assert(!engi_ward_is_free(before));
}
static inline bool engi_ward_is_entered(struct engi_runs *r, struct slice key) {
    return !r || !engi_ward_is_free(atomic_load_explicit(engi_ward(r, key), memory_order_relaxed));
}

/* ---- runs ---- */

struct engi_run {
    _Atomic uint32_t refs;
    uint32_t n; /* keys */
    struct slice lo, hi;
    const uint32_t *ends; /* the end of each row in bytes; a row begins at the end of the one before */
    const uint8_t *bytes; /* of each row: [u32 bytes of key][key][value] */
    uint64_t hash, state, generation;
    int64_t purged_from; /* seconds: earliest moment from which gc_grace counts for any part of the run */
    size_t size;
    /* The shard's fields, under its lock. */
    struct engi_run *next, *older, *newer; /* next: list of the same head; older, newer: ring in order of insertion */
    uint32_t hits;
    bool used;
};

static inline struct slice engi_run_row(const struct engi_run *r, uint32_t i) {
    uint32_t from = i ? r->ends[i - 1] : 0;
    return slice_of(r->bytes + from, r->ends[i] - from);
}
static inline struct slice engi_run_key(struct slice row) {
    uint32_t n;
    memcpy(&n, row.p, sizeof(n));
    return slice_of(row.p + sizeof(n), n);
}
static inline struct slice engi_run_value(struct slice row) {
    struct slice key = engi_run_key(row);
    return slice_of(key.p + key.n, row.n - sizeof(uint32_t) - key.n);
}

/* The range that a scan of one partition reads: keys of [from, to). whole: only a run of the whole
 * range is useful. The bytes stay the caller's. */
struct engi_run_want {
    struct engi_table *table;
    struct slice from, to;
    bool back, whole;
};

/* The state of one scan's search, taken before the store is asked. */
struct engi_run_look {
    struct engi_table *table;
    uint64_t hash, state, generation;
    _Atomic uint64_t *ward, *door;
    uint64_t place; /* of the scan's begin, hashed */
    uint32_t epoch;
    bool fills; /* no write was under way */
};

/* Returns a reference to a run that has the scan's begin, or its whole range; NULL: there is none,
 * and the look serves to note the store's answer. Any thread. */
struct engi_run *engi_run_find(struct eng *eng, const struct engi_run_want *want, struct engi_run_look *look);
void engi_run_unref(struct engi_run *r);
/* Whether the partition had no write and the table no change since the look. Then all reads of the
 * partition meanwhile are of one moment. */
bool engi_run_holds(const struct eng *eng, const struct engi_run_look *look) MUST_CHECK;
void engi_run_count(struct eng *eng, const struct engi_run_look *look, bool hit);

/* ---- bringing in ---- */

/* Counts the miss, and returns whether the store's answer to it should be noted. */
bool engi_run_is_due(const struct engi_run_look *look, enum eng_tier tier);
/* This begin cannot become a run: require more misses next time. */
void engi_run_give_up(const struct engi_run_look *look);

/* The records that an iterator has passed, in its order. All zero: empty. */
struct engi_run_draft {
    struct engi_runs *of;
    struct buf rows, ends, lo, hi; /* rows: as in a run; ends: u32 each */
    uint32_t n;
    bool back;
    int64_t purged_from;
};
/* False: ENGI_RUN_DRAFTS scans are noting already, some perhaps paused. Then this scan reads
 * without noting. */
bool engi_run_draft_init(struct engi_run_draft *d, struct engi_runs *of, bool back) MUST_CHECK;
void engi_run_draft_fini(struct engi_run_draft *d);
/* -1: it is too large, has no memory, or cannot be kept. */
int engi_run_draft_add(const struct eng *eng, struct engi_run_draft *d, struct slice key,
                       struct slice value) MUST_CHECK;
/* Makes the draft a run, if it is still valid. */
void engi_run_keep(struct eng *eng, const struct engi_run_look *look, struct engi_run_draft *d);

struct engi_run_stats {
    uint64_t hits, misses, runs, bytes;
};
struct engi_run_stats engi_run_stats(const struct engi_runs *r);
