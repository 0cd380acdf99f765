/* Whole tables: their settings, their end, the removal of dead data, and which parts of them have
 * changed. */
#pragma once

#include "engine/engine.h"

/* ---- what has changed ---- */

/* A table's partitions are divided into this many buckets, by ranges of their tokens. */
enum { ENG_BUCKETS = 256 };
static inline int64_t eng_bucket_from(uint16_t bucket) { return (int64_t)((uint64_t)bucket << 56); }
static inline int64_t eng_bucket_to(uint16_t bucket) { return (int64_t)((uint64_t)bucket << 56 | (~(uint64_t)0 >> 8)); }
/* Whether any data of the bucket may have been written, dropped or removed since the last call, or
 * since the engine was opened. Call it before reading the bucket. Any thread. */
bool eng_changed_take(struct eng *eng, uint32_t table, uint16_t bucket);
/* Marks the bucket changed again, when the caller discards the data it read. */
void eng_changed_put(struct eng *eng, uint32_t table, uint16_t bucket);

/* Called with every row from which the engine removes expired data, as the row was stored, on any
 * thread. It must not call the engine. The memory that row points to lives until it returns. No
 * call is running any more when eng_on_expiry, with another function or NULL, has returned. */
struct eng_expiry {
    struct eng_part part;
    struct eng_row row; /* as stored, not resolved */
};
typedef void (*eng_expiry_fn)(void *arg, const struct eng_expiry *x);
void eng_on_expiry(struct eng *eng, eng_expiry_fn fn, void *arg);

/* ---- settings, drop, reclaiming ---- */

/* Sets gc_grace, which decides what the reclaimer may drop. Call it for every table at start and on
 * change. Any thread. */
void eng_table_set(struct eng *eng, uint32_t table, int64_t gc_grace_seconds);
/* A column that was dropped at the write time ts: readers do not see values of it up to then. Newer
 * values show again when the column is added again. While it is gone, no value of it shows. */
struct eng_dropped {
    uint32_t column;
    int64_t ts;
    bool gone;
};
/* Sets all dropped columns of the table, sorted by column. Call it at start and on change, before
 * any read with the changed definition. One thread at a time. */
int eng_table_set_dropped(struct eng *eng, uint32_t table, uint32_t n, const struct eng_dropped *items,
                          struct err *e) MUST_CHECK;
/* Frees a table. First batches stop taking writes to it; then its keys are removed (range delete
 * and file deletion), and the engine's memory of it. As durable as the next named record that is
 * written. The id is not used again, so that reads of rows may ignore range deletes
 * (kv_iter_spec.undeleted). Returns 0, or -1, or ENG_BUSY with err not set: batches still hold writes
 * to it; call again once they are committed or dropped. Blocking, but does not wait for these batches. */
int eng_table_drop(struct eng *eng, uint32_t table, struct err *e) MUST_CHECK;
/* Forgets a table that another engine on the store has freed: its id is not used again, and its
 * memory is freed when no view and no batch can use it. Waits for nothing. */
void eng_table_forget(struct eng *eng, uint32_t table);
/* Calls fn for every id with stored records: rows, marks, the log of a history. Ids ascend and may
 * come more than once; all are from one snapshot. fn returns 0 to continue, -1 to stop with its error.
 * Blocking, long where much was deleted. */
typedef int (*eng_stored_fn)(void *arg, uint32_t id, struct err *e);
int eng_each_stored(struct eng *eng, eng_stored_fn fn, void *arg, struct err *e) MUST_CHECK;
/* Rewrites every file. Blocking, long. */
int eng_compact(struct eng *eng, struct err *e) MUST_CHECK;
/* Makes one pass over all buckets that may hold dead data, now and at full speed. It removes data
 * that a deletion covers, and expired data and tombstones older than gc_grace. Where no deletion is
 * left, the optimisations that deletions switch off work again. The engine's thread does the same
 * at its pace. Blocking, long. */
int eng_reclaim(struct eng *eng, struct err *e) MUST_CHECK;
/* One round of the engine's thread: each table that is due has a turn of a bounded number of rows.
 * Returns 1 if some table's pass continues in the next round. */
int eng_reclaim_due(struct eng *eng, struct err *e) MUST_CHECK;
/* The same where reads have passed many rows that a deletion covers: the engine's thread does this in
 * its next round. */
int eng_reclaim_passed(struct eng *eng, struct err *e) MUST_CHECK;
