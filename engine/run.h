/* Runs: stretches of one partition's stored keys, kept as the store holds them, for reads of
 * slices. Private to engine/.
 *
 * Life of a run. A scan that finds none where it begins looks at the partition's ward and lets the
 * store's iterator answer; the second time that this place is missed while nobody wrote to the
 * ward, it notes what the iterator passes (engine/run_iter.h), and at its end that is a run: all
 * keys of [lo, hi), and no other. Scans that begin there are then answered from it, forward or
 * back, until somebody writes. What stands above an iterator (deletions, TTL, dropped columns,
 * pages, charges) does not know which of the two it has. Where a run was never used before it went,
 * the next one waits for twice as many misses, and so on: who writes and reads in turn does not pay
 * for runs.
 *
 * Invariant 7: a run that a scan takes is what the store's iterator would answer at that moment.
 *              (a) Whoever writes, deletes or settles a key of a
 * partition has entered its ward from before the store has the write until it has it, and each
 * entering is counted: a run holds only while its ward is as it was before the iterator was opened,
 * and free then; (b) what changes a table as a whole, or takes it from another store, gives it a
 * new generation (engi_row_cache_shut), and a run holds only in its own; (c) what a compaction may
 * take away without a write (engine/purge.h), by the clock as it is, is asked of the store. A fold
 * changes no value. So nobody who writes has to find a run: he makes it void, and who comes by next
 * frees it. A bucket that may hold deletions of ranges or partitions (engine/marks.h) has its
 * slices read from the store.
 *
 * A run is one piece of memory, which never changes. Shards keep them by partition, each within its
 * share of the bytes, and forget what was brought in first and was not read since (CLOCK). A shard
 * is locked for some loads and stores, and who would wait for it does without; who reads a run
 * holds a reference.
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
    ENGI_RUNS_SHARE = 4 /* one in so many bytes of the row cache's */,
    ENGI_WARDS = 65536,
    ENGI_RUN_MAX = 512 << 10 /* bytes */,
    ENGI_RUNS_OF_PARTITION = 16,
    ENGI_RUN_DRAFTS = 16 /* at a time */
};

struct engi_runs {
    _Atomic uint64_t wards[ENGI_WARDS];
    _Atomic uint32_t epoch; /* of the store: those of another one are not kept */
    _Atomic uint32_t drafts;
    uint32_t n_shards;
    size_t n_heads, n_doors; /* of a shard; powers of two */
    size_t most, run_most;   /* bytes: of a shard, of a run */
    struct engi_run_shard *shards;
};

/* NULL: no memory, or bytes are too few. Runs take no more than bytes, but for those that are being
 * read when they go; drafts, of which each may become as large as a run, come to it. */
struct engi_runs *engi_runs_new(size_t bytes);
void engi_runs_free(struct engi_runs *r);
/* Of every table, because of another store; nobody reads. */
void engi_runs_clear(struct engi_runs *r);

/* ---- wards ---- */

/* By the token of a partition's key, whatever follows it. */
static inline _Atomic uint64_t *engi_ward(struct engi_runs *r, struct slice key) {
    return &r->wards[(load_u64(key.p + 4) ^ load_u32(key.p)) * UINT64_C(0x9e3779b97f4a7c15) >> 48];
}
static inline bool engi_ward_is_free(uint64_t state) { return !(state & 0xffffff); }
/* r NULL: there are no runs. Around a write to the key. */
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
    const uint32_t *ends; /* of rows: where each ends in bytes, behind the end of the one before */
    const uint8_t *bytes; /* of each: [u32 bytes of key][key][value] */
    uint64_t hash, state, generation;
    int64_t purged_from; /* seconds: earliest moment from which gc_grace counts for something in it */
    size_t size;
    /* The shard's, under its lock. */
    struct engi_run *next, *older, *newer; /* of the same head; around the clock */
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

/* What a scan looks at of one partition: keys of [from, to). whole: it has no use for a run that
 * ends before. Slices stay the caller's. */
struct engi_run_want {
    struct engi_table *table;
    struct slice from, to;
    bool back, whole;
};

/* Of one scan, from before it asks the store. */
struct engi_run_look {
    struct engi_table *table;
    uint64_t hash, state, generation;
    _Atomic uint64_t *ward, *door;
    uint64_t place; /* of the scan's begin, hashed */
    uint32_t epoch;
    bool fills; /* nobody writes */
};

/* A reference to a run that has the scan's begin, or all of it; NULL: none, and the look is for
 * what the store answers. Any thread. */
struct engi_run *engi_run_find(struct eng *eng, const struct engi_run_want *want, struct engi_run_look *look);
void engi_run_unref(struct engi_run *r);
/* Whether nobody has written since the look, or changed the table: what was read of the partition
 * meanwhile is all of one moment. */
bool engi_run_holds(const struct eng *eng, const struct engi_run_look *look) MUST_CHECK;
void engi_run_count(struct eng *eng, const struct engi_run_look *look, bool hit);

/* ---- bringing in ---- */

/* Whether what the store answers to this miss is to be noted. Counts it. */
bool engi_run_is_due(const struct engi_run_look *look, enum eng_tier tier);
/* Nothing can come of noting this place: it takes more misses next time. */
void engi_run_give_up(const struct engi_run_look *look);

/* What an iterator passes, in its order. Empty: zeros. */
struct engi_run_draft {
    struct engi_runs *of;
    struct buf rows, ends, lo, hi; /* rows: as in a run; ends: u32 each */
    uint32_t n;
    bool back;
    int64_t purged_from;
};
/* False: as many as may be are being noted, of scans that have begun and wait perhaps; this one is
 * read and not noted. */
bool engi_run_draft_init(struct engi_run_draft *d, struct engi_runs *of, bool back) MUST_CHECK;
void engi_run_draft_fini(struct engi_run_draft *d);
/* -1: it is too large, has no memory, or cannot be kept. */
int engi_run_draft_add(const struct eng *eng, struct engi_run_draft *d, struct slice key,
                       struct slice value) MUST_CHECK;
/* It becomes a run if it may. */
void engi_run_keep(struct eng *eng, const struct engi_run_look *look, struct engi_run_draft *d);

struct engi_run_stats {
    uint64_t hits, misses, runs, bytes;
};
struct engi_run_stats engi_run_stats(const struct engi_runs *r);
