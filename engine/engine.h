/* The row store: partitions, static rows, rows, tombstones, TTL, over an ordered key-value table
 * (engine/kv.h).
 *
 * Life of a write: a loop adds the deltas of all requests of one wake-up to its eng_batch, commits
 * it once (no sync), and asks for its sequence to become durable; the log is synced again and again
 * while anybody waits, and who syncs calls back. Life of a read: open a scan or get a row, in the
 * cache-only tier on a loop (ENG_INCOMPLETE: try again in the blocking tier on another thread),
 * pull items, close.
 *
 * The engine knows bytes: table ids, serialised partition keys with their tokens, clustering keys
 * in key form, column ids, values as they are.
 */
#pragma once

#include "base/clock.h"
#include "metering/size/op_cost.h"
#include "engine/row.h"
#include "engine/tier.h"

struct eng;
struct eng_batch;
struct eng_scan;

/* Returned, beside 0 / 1 / -1, by reads in the cache-only tier when the data is on disk only or is
 * too much; err is not set. */
enum { ENG_INCOMPLETE = -2, ENG_PAUSED = -3 /* eng_scan_allow */ };
/* Returned by eng_batch_try_commit beside 0 and -1: the store wants writers to wait; other commits
 * are writing the same rows. */
enum { ENG_BUSY = -3, ENG_MET = -5 /* -4 is the store's: a condition does not hold */ };

enum eng_durability {
    ENG_FSYNC,    /* a write is acknowledged when it is on disk */
    /* acknowledged when the operating system has it, synced every 10 s (Cassandra's default):
     * survives the end of this process */
    ENG_PERIODIC,
    ENG_NONE,     /* the same without syncing at all */
};

/* Memory of rows that are not in files yet: one is written to, the others are being flushed. */
enum { ENG_MEMTABLES = 4 };

struct eng_options {
    const char *data_dir; /* NULL: the memory store */
    enum eng_durability durability;
    /* open a store that is damaged in front of acknowledged rows, and lose what stands behind the damage */
    bool cut_damage;
    size_t block_cache_bytes, memtable_bytes; /* memtable: each of ENG_MEMTABLES; 0: defaults */
    /* of rows and slices that are read again, in memory; 0: none. A shared store has none */
    size_t row_cache_bytes;
    unsigned background_jobs;                 /* flushes and compactions at a time; 0: default */
    uint32_t reclaim_rows_per_second; /* the pace of the thread that takes away what is dead; 0: none runs */
    struct clock *clock;
    bool shared;         /* of the memory store: other engines will be opened beside this one */
    struct eng *beside;  /* whose memory store to share; closed later than this one or before, as it comes */
    struct eng *copy_of; /* begin with what that engine's store holds at one moment; data_dir must hold none */
};

struct eng *eng_open(const struct eng_options *o, struct err *e) MUST_CHECK;
/* Every batch and scan must be gone, and every arena that rows were read into. Syncs. */
void eng_close(struct eng *eng);

/* Whether nobody else writes to the store. When somebody does, nothing is proven from memory, and
 * what was decided under a stripe lock commits only if no other engine has had a turn on the stripe
 * meanwhile: else the commit fails with ERR_WRITE_TIMEOUT, write type CAS. */
bool eng_one_writer(const struct eng *eng);

/* ---- addresses ---- */

struct eng_part {
    uint32_t table;    /* storage id of the table; ids below 16 are the catalogue's and the engine's own */
    int64_t token;     /* murmur3_token(key) */
    /* as Cassandra serialises it: the value, or for composites [u16 length][value][0] each; <= 65535 bytes */
    struct slice key;
};

/* A place between rows of a partition: before or after every clustering key that begins with key. */
struct eng_bound {
    struct slice key; /* a whole clustering key or a prefix of whole components; empty: the partition's start or end */
    bool after;
};

struct eng_slice {
    struct eng_bound from, to; /* rows between; from must not be after to */
};
bool eng_slice_has(const struct eng_slice *s, struct slice ck);

/* ---- writing ---- */

/* A batch is one thread's. Nothing in it is visible before eng_batch_commit. */
struct eng_batch *eng_batch_new(struct eng *eng) MUST_CHECK;
void eng_batch_free(struct eng_batch *b);
/* Each: ERR_SERVER when the table was freed (eng_table_drop). */
int eng_batch_row(struct eng_batch *b, const struct eng_part *part, const struct eng_row *delta, struct op_cost *cost,
                  struct err *e) MUST_CHECK;
/* ts in microseconds, now in seconds (local deletion time). */
int eng_batch_delete_range(struct eng_batch *b, const struct eng_part *part, const struct eng_slice *range, int64_t ts,
                           int64_t now, struct op_cost *cost, struct err *e) MUST_CHECK;
int eng_batch_delete_partition(struct eng_batch *b, const struct eng_part *part, int64_t ts, int64_t now,
                               struct op_cost *cost, struct err *e) MUST_CHECK;
/* A savepoint before a request's deltas, and back to it when the request fails half-way. Each is
 * ended by a rollback or a release, and they nest ENG_SAVEPOINTS_MAX deep. What is added within the
 * outermost one is written atomically, and so is what is added without any between two of them. */
enum { ENG_SAVEPOINTS_MAX = 4 };
void eng_batch_savepoint(struct eng_batch *b);
void eng_batch_rollback(struct eng_batch *b); /* to the newest savepoint, which is removed */
void eng_batch_release(struct eng_batch *b);  /* removes the newest savepoint */
bool eng_batch_empty(const struct eng_batch *b);
/* Writes the batch and empties it; no savepoint is open. *seq: what eng_durable_seq must reach
 * before it may be acknowledged. Rows that another commit is writing just now are written after the
 * others, each with all that must be written with it. On -1 the batch is empty, and nothing was
 * written but perhaps those others. When the store is flushing and compacting it waits, a minute at
 * most (then ERR_OVERLOADED): not on a loop. */
int eng_batch_commit(struct eng_batch *b, uint64_t *seq, struct err *e) MUST_CHECK;
/* The same without waiting: after ENG_BUSY and ENG_MET the batch is still to be committed, and may
 * be added to. MET is for batches with a function of eng_batch_on_met: it is called, on any thread,
 * when the rows may be free; it must not call the engine. For so long a batch is put off at most,
 * from then on it waits for the rows. */
enum { ENG_MET_US = 200000 };
void eng_batch_on_met(struct eng_batch *b, void (*fn)(void *arg), void *arg);
int eng_batch_try_commit(struct eng_batch *b, uint64_t *seq, struct err *e) MUST_CHECK;
/* Empties it. */
void eng_batch_drop(struct eng_batch *b);
/* What the batch holds of memory, more or less. */
size_t eng_batch_bytes(const struct eng_batch *b);

/* ---- durability ---- */

/* Every write with a sequence up to this one survives a crash (with periodic and none: may be
 * acknowledged). Any thread; one atomic load. */
uint64_t eng_durable_seq(const struct eng *eng);
/* A new sequence: durable once every write that could be read before this call is. */
uint64_t eng_barrier_seq(struct eng *eng);
/* Called on the thread that has synced after durable_seq moved, or after a sync failed (eng_failed is then true). */
typedef void (*eng_durable_cb)(void *arg);
/* One thread sets all callbacks, before anybody waits for them. */
void eng_on_durable(struct eng *eng, eng_durable_cb cb, void *arg);
/* Has the commit thread make a sequence durable, for which n requests wait. Any thread. */
void eng_want_durable(struct eng *eng, uint64_t seq, uint32_t n);
/* The same in parts, for a loop that may sync by itself. It asks; as long as others are waited for
 * (eng_gathers) it looks who comes; then it syncs here, or wakes the commit thread, which it also
 * does instead of sleeping. */
void eng_ask_durable(struct eng *eng, uint64_t seq, uint32_t n);
bool eng_gathers(struct eng *eng);
/* Blocks as long as a sync takes. False: nothing was done, for another thread syncs, or syncs take long here. */
bool eng_sync_here(struct eng *eng) MUST_CHECK;
void eng_wake_sync(struct eng *eng);
/* Blocks until seq is durable: 0, or -1 when a sync failed. Not on a loop. */
int eng_wait_durable(struct eng *eng, uint64_t seq, struct err *e) MUST_CHECK;
/* A sync has failed, and what was written since the one before is not on disk yet: no write is
 * taken or acknowledged, and reads may see rows that a restart loses. Ends when the store has put
 * everything on disk another way. */
bool eng_failed(const struct eng *eng);
/* Whether writes are taken; false: what is wrong, as text into why. Any thread; may write a few bytes to find out. */
bool eng_ready(struct eng *eng, char *why, size_t size);

/* ---- write timestamps ---- */

/* A timestamp in microseconds for a write that brings none: now_us, or the next one above all that
 * were given out, in earlier runs too. Any thread. */
int64_t eng_write_us(struct eng *eng, int64_t now_us);
/* The first of n successive ticks of 100 ns since 1970, all later than any before: they order the elements of lists. */
int64_t eng_write_ticks(struct eng *eng, int64_t now_us, uint32_t n);
/* ts, or above newest (as eng_row_get found it under the lock), so that what was decided on the row
 * takes effect on it, whoever gave the row its timestamps. At the end of time nothing is above. */
static inline int64_t eng_ts_above(int64_t ts, int64_t newest) {
    return newest < ts || newest == INT64_MAX ? ts : newest + 1;
}

/* ---- read-modify-write ---- */

/* The stripe lock of a partition: held by whoever reads before it writes, until its batch is
 * committed. Blocking: not on a loop. */
void eng_lock(struct eng *eng, const struct eng_part *part);
void eng_unlock(struct eng *eng, const struct eng_part *part);
/* Whether this thread does: asserted where it is relied on. */
bool eng_holds(const struct eng *eng, const struct eng_part *part);
/* Several partitions at once, in an order that cannot deadlock. */
void eng_lock_many(struct eng *eng, const struct eng_part *const *parts, uint32_t n);
void eng_unlock_many(struct eng *eng, const struct eng_part *const *parts, uint32_t n);
/* The same for a loop, which must not wait: the stripe is the batch's until that is committed, or
 * dropped, by whoever, and other writes of the batch share it. What the batch has not committed yet
 * is not read: so a row that it wrote under a stripe (eng_batch_wrote) cannot be read for another
 * write (eng_batch_has_written; may say so of one that it did not).
 * 1: the stripe has become the batch's, and eng_batch_unlock gives it back while nothing was
 *    written under it; 0: it was; -1: it is not free, or the store has several
 * writers. */
int eng_batch_try_lock(struct eng_batch *b, const struct eng_part *part) MUST_CHECK;
void eng_batch_unlock(struct eng_batch *b, const struct eng_part *part);
bool eng_batch_holds(const struct eng_batch *b, const struct eng_part *part);
void eng_batch_wrote(struct eng_batch *b, const struct eng_part *part, enum eng_row_kind kind, struct slice ck);
bool eng_batch_has_written(const struct eng_batch *b, const struct eng_part *part, enum eng_row_kind kind,
                           struct slice ck);

/* ---- reading ---- */

/* One row or static row, resolved at now (seconds; ENG_NEVER_EXPIRES, or ENG_AS_STORED: 1 when
 * anything is stored of it). 1: visible, 0: not, -1: error, ENG_INCOMPLETE. What row points to
 * lives as long as what is handed out of the arena now; a large row does not count towards the
 * arena's limit. row->newest_ts is filled in with 1 and with 0. */
int eng_row_get(struct eng *eng, enum eng_tier tier, const struct eng_part *part, enum eng_row_kind kind,
                struct slice ck, int64_t now, struct arena *a, struct eng_row *row, struct op_cost *cost,
                struct err *e) MUST_CHECK;

/* A row and the static row of its partition, as they were at one moment. */
struct eng_pair {
    bool has_row, has_statics; /* visible */
    bool expired;              /* the row is not, for its time to live has ended, and is here as it is still stored */
    struct eng_row row, statics; /* newest_ts of both is filled in whether visible or not */
};
/* 0, -1: error, ENG_INCOMPLETE. Memory as for eng_row_get. */
int eng_pair_get(struct eng *eng, enum eng_tier tier, const struct eng_part *part, struct slice ck, int64_t now,
                 struct arena *a, struct eng_pair *out, struct op_cost *cost, struct err *e) MUST_CHECK;

struct eng_scan_spec {
    uint32_t table;
    const struct eng_part *part;      /* one partition, or NULL: a range of tokens */
    int64_t token_from, token_to;     /* both inclusive; used when part is NULL */
    /* of clustering keys, in table order, not overlapping; n_slices 0: whole partitions */
    const struct eng_slice *slices;
    uint32_t n_slices;
    bool reverse;                     /* rows of each partition in reverse order (partitions always in token order) */
    bool statics;                     /* deliver static rows (with the partition item) */
    bool rows;                        /* deliver rows; false: partitions and static rows only */
    bool expired;                     /* deliver rows whose time to live has ended, as they are still stored, too */
    /* and rows of which nothing but deletions is stored, as ENG_ITEM_EXPIRED; partitions tell of their markers */
    bool deletions;
    int64_t now;                      /* seconds */
    struct eng_layout *layout;        /* rows of plain cells are laid out there; NULL: every row has its cells */
    /* Where a page left off; resume_key.p NULL: from the start. */
    struct slice resume_key; /* partition */
    struct slice resume_ck;  /* p NULL: before the partition's first row; else after this row (in scan order) */
    bool resume_skip;        /* the partition itself is done: go on after it */
    bool resume_statics;     /* no page has its static row: it is given even when no row follows resume_ck */
};

enum eng_item_kind {
    ENG_ITEM_PARTITION,
    ENG_ITEM_ROW,
    ENG_ITEM_EXPIRED /* a row with nothing visible but what has expired */
};

/* So many ranges that are deleted are counted of a partition; what lies side by side and was
 * deleted at one moment is one. */
enum { ENG_MARKERS_MAX = 256 };

/* An item's bytes live until the next call on the scan; all its calls are given the same item. A
 * partition item comes before its rows, also when it has only a static row; a partition with
 * nothing visible (no visible row in the slices and no visible static row) may still be delivered,
 * and its has_static and rows then say so by their absence. */
struct eng_item {
    enum eng_item_kind kind;
    struct eng_part part;
    bool has_static;
    /* PARTITION, when what has expired is delivered: statics has nothing visible, and n_expired cells */
    bool static_expired;
    bool static_only;       /* PARTITION: no row of it follows */
    /* PARTITION, when deletions are delivered, and no page before had it: records of deletions, of
     * the partition and of ranges in the slices */
    uint32_t n_markers;
    struct eng_row statics; /* of the partition; valid until the next partition item */
    struct eng_row *row;    /* of the scan, for the caller to change */
};

/* The spec is copied, what it points to must live as long as the scan. Cells are decoded into the
 * arena's memory of the scan. */
struct eng_scan *eng_scan_open(struct eng *eng, enum eng_tier tier, const struct eng_scan_spec *spec,
                               struct op_cost *cost, struct err *e) MUST_CHECK;
/* In the blocking tier: the rows and stored bytes that may be passed before eng_scan_next answers
 * ENG_PAUSED; no bound until it is called. The scan goes on where it stands once more are allowed. */
void eng_scan_allow(struct eng_scan *s, size_t rows, size_t bytes);
/* 1: item, 0: end, -1: error, ENG_INCOMPLETE, ENG_PAUSED. */
int eng_scan_next(struct eng_scan *s, struct eng_item *item, struct err *e) MUST_CHECK;
void eng_scan_close(struct eng_scan *s);

/* ---- counters ---- */

enum eng_stat {
#define STAT(id, name, scale, help) ENG_STAT_##id,
#include "engine/stat.def"
#undef STAT
    ENG_STATS
};
/* Any thread. */
uint64_t eng_stat(const struct eng *eng, enum eng_stat stat);

/* ---- what has changed ---- */

/* A table's partitions are in so many buckets, by ranges of their tokens. */
enum { ENG_BUCKETS = 256 };
static inline int64_t eng_bucket_from(uint16_t bucket) { return (int64_t)((uint64_t)bucket << 56); }
static inline int64_t eng_bucket_to(uint16_t bucket) { return (int64_t)((uint64_t)bucket << 56 | (~(uint64_t)0 >> 8)); }
/* Whether anything of the bucket may have been written, dropped or taken away since this was last
 * called, or the engine was opened; it is asked before the bucket is read. Any thread. */
bool eng_changed_take(struct eng *eng, uint32_t table, uint16_t bucket);
/* Gives it back: what was read is not used after all. */
void eng_changed_put(struct eng *eng, uint32_t table, uint16_t bucket);

/* Called with every row of which the engine takes away what has expired, as it was stored; on any
 * thread, and it must not call the engine. What row points to lives until it returns. It is not
 * called any more when eng_on_expiry has returned with another one, or with NULL. */
struct eng_expiry {
    struct eng_part part;
    struct eng_row row; /* nothing is resolved */
};
typedef void (*eng_expiry_fn)(void *arg, const struct eng_expiry *x);
void eng_on_expiry(struct eng *eng, eng_expiry_fn fn, void *arg);

/* ---- whole tables and small things ---- */

/* gc_grace decides what compaction may drop; told once per table at start and on change. Any thread. */
void eng_table_set(struct eng *eng, uint32_t table, int64_t gc_grace_seconds);
/* A column that was dropped at this write time: what is stored of it up to then is not there for
 * readers. What is newer shows again when the column comes again; while it is gone, nothing of it
 * is there. */
struct eng_dropped {
    uint32_t column;
    int64_t ts;
    bool gone;
};
/* All of the table's, by column; told at start and on change, before anybody reads with the changed
 * definition. One thread at a time. */
int eng_table_set_dropped(struct eng *eng, uint32_t table, uint32_t n, const struct eng_dropped *items,
                          struct err *e) MUST_CHECK;
/* Frees a table: no batch takes a write to it any more; then every key goes (range delete and
 * file deletion), and what is known of it in memory. As durable as the next named record that is
 * written. Its id is not used again: who reads rows looks past range deletes
 * (kv_iter_spec.undeleted). 0, or -1; ENG_BUSY, err not set: batches still hold writes to it,
 * and the call is to be made again once they are committed or dropped. Blocking, but not for
 * them. */
int eng_table_drop(struct eng *eng, uint32_t table, struct err *e) MUST_CHECK;
/* Calls fn for every id under which something is stored: rows, what is known of them (marks),
 * the log of a history; ascending, an id may come more than once. It sees one moment. fn returns
 * 0 to go on, -1 to stop with its error. Blocking, long where much was deleted. */
typedef int (*eng_stored_fn)(void *arg, uint32_t id, struct err *e);
int eng_each_stored(struct eng *eng, eng_stored_fn fn, void *arg, struct err *e) MUST_CHECK;
/* Rewrites every file, dropping expired data and tombstones older than gc_grace that nothing can
 * resurface under. Blocking, long. */
int eng_compact(struct eng *eng, struct err *e) MUST_CHECK;
/* A pass over all that may hold dead data, now and at full speed: expired data and tombstones older
 * than gc_grace go, what a deletion covers goes at once, and what deletions had switched off works
 * again where none is left. The engine's thread does the same at its pace. Blocking, long. */
int eng_reclaim(struct eng *eng, struct err *e) MUST_CHECK;
/* The same where reads have passed many rows that a deletion covers: what it does in its next round. */
int eng_reclaim_passed(struct eng *eng, struct err *e) MUST_CHECK;

/* Copies a table from another engine, under another id perhaps, into a table that holds nothing
 * yet; nobody writes to either. All of its rows or, on -1, none. What was proven of the table is
 * off. Durable when it returns. Blocking, long. */
int eng_ingest(struct eng *eng, uint32_t table, struct eng *from, uint32_t from_table, struct err *e) MUST_CHECK;

/* ---- the history of a table: point-in-time recovery (docs/restore.md) ---- */

/* Begins the history of a table: its id is a storage id that nothing else has. copy: the table may
 * hold rows already. Restorable from eng_history_since on when it returns. Blocking; long when rows
 * are copied, while the table is written to. */
int eng_history_begin(struct eng *eng, uint32_t table, uint32_t history, bool copy, struct err *e) MUST_CHECK;
/* After the engine was opened, before anybody writes: the table goes on with its history. table 0:
 * it is gone, its history is not. */
int eng_history_follow(struct eng *eng, uint32_t table, uint32_t history, struct err *e) MUST_CHECK;
/* What is written to the table from now on is not kept any more; its history stays. */
void eng_history_end(struct eng *eng, uint32_t table);
/* Frees a history that has no writer and no reader left. Its id is not used
 * again. Blocking. */
int eng_history_drop(struct eng *eng, uint32_t history, struct err *e) MUST_CHECK;
/* Nothing before this moment will be asked for: what is older is made one state. Blocking, long;
 * one thread at a time for a history. */
int eng_history_roll(struct eng *eng, uint32_t history, int64_t floor_us, struct err *e) MUST_CHECK;
/* The earliest moment that can be restored, in microseconds; INT64_MAX: there is no such history. */
int64_t eng_history_since(struct eng *eng, uint32_t history);
/* What it takes: on disk, and what was logged since the engine was opened. */
uint64_t eng_history_bytes(struct eng *eng, uint32_t history);
/* Copies a history of another engine into one that is not there yet, whose table has been or will
 * be copied likewise; nobody writes to either. As eng_ingest. */
int eng_history_ingest(struct eng *eng, uint32_t history, struct eng *from, uint32_t from_history,
                       struct err *e) MUST_CHECK;
/* Makes a table of what was committed up to at_us, which is not in the future; the table is emptied
 * first, and nobody else writes to it. Durable when it returns. Blocking, long; while the table
 * whose history it is is written to. ERR_INVALID: too early. */
int eng_history_restore(struct eng *eng, uint32_t history, int64_t at_us, uint32_t table, struct err *e) MUST_CHECK;

/* ---- saved states (engine/kv_state.h, docs/restore.md) ---- */

enum { ENG_STATE_OF_MAX = 256 };
/* Saves everything under a name, which may be there already, for the sake of a part that `of`
 * names, at most ENG_STATE_OF_MAX - 1 bytes; "": all. Blocking. ERR_INVALID: a bad name, or there
 * is no data folder. */
int eng_state_save(struct eng *eng, const char *name, const char *of, struct err *e) MUST_CHECK;
/* What it was saved for. ERR_INVALID: there is no such state. */
int eng_state_of(const struct eng *eng, const char *name, char of[ENG_STATE_OF_MAX], struct err *e) MUST_CHECK;
/* Everything is again as it was saved. Nobody may be in the engine but for its own threads, and
 * those who only look whether it is ready or make a backup; what was told to the engine of tables
 * and histories is to be told anew. Crash: either state. -1: nothing has changed. */
int eng_state_put_back(struct eng *eng, const char *name, struct err *e) MUST_CHECK;
/* Closes the store that was there before, when nothing reads it any more, and frees what it took;
 * else the next put back or the end does. Waits a little. */
void eng_state_settle(struct eng *eng);
int eng_state_remove(struct eng *eng, const char *name, struct err *e) MUST_CHECK;
/* Calls fn for every saved state, in no order; until it says -1. */
int eng_state_each(struct eng *eng, int (*fn)(void *arg, const char *name, const char *of, int64_t saved_s), void *arg,
                   struct err *e) MUST_CHECK;
/* A saved state as it lies there, only for eng_ingest and eng_history_ingest to take from and
 * eng_meta_scan to read; NULL: e says why. It may be removed while it is open. Close it. */
struct eng *eng_state_open(const struct eng *eng, const char *name, struct err *e) MUST_CHECK;
void eng_state_close(struct eng *state);

/* ---- backups (engine/kv_backup.h, docs/restore.md) ---- */

struct eng_backup {
    uint32_t number, files;
    bool damaged; /* what describes it cannot be read; the rest of this is 0 */
    int64_t made_s;
    uint64_t bytes; /* of its files, those that it shares with others too */
};

/* A backup of the whole store into a folder of backups, which is made when it is not there;
 * everything acknowledged before the call is in it. keep: only the newest so many stay; 0: all.
 * Blocking, long; while rows are written. */
int eng_backup_make(struct eng *eng, const char *folder, uint32_t keep, struct eng_backup *out,
                    struct err *e) MUST_CHECK;
/* Without an engine. All of a folder, oldest first: at most max are filled in, *n is how many there are. */
int eng_backup_list(const char *folder, struct eng_backup *out, uint32_t max, uint32_t *n, struct err *e) MUST_CHECK;
/* Reads every file of a backup; -1: it is not whole, and e names the file. */
int eng_backup_verify(const char *folder, uint32_t number, struct err *e) MUST_CHECK;
/* Makes a data folder, which holds none yet, of a backup; each file's checksum is compared. An
 * engine may be opened on it then, which writes its stamp. */
int eng_backup_restore(const char *folder, uint32_t number, const char *data_dir, struct err *e) MUST_CHECK;

/* fn is called when another engine on the store has changed a named record; any thread, and it must
 * not call the engine. One at a time; NULL: it is not called any more once this returns. */
typedef void (*eng_notice_fn)(void *arg);
int eng_meta_watch(struct eng *eng, eng_notice_fn fn, void *arg, struct err *e) MUST_CHECK;

/* Named records for the catalogue: put and delete are durable when they return. Blocking, any thread. */
struct eng_meta_change {
    struct slice key, value;
    bool deleted;
};
/* All of them or none. */
int eng_meta_write(struct eng *eng, uint32_t n, const struct eng_meta_change *changes, struct err *e) MUST_CHECK;
int eng_meta_put(struct eng *eng, struct slice key, struct slice value, struct err *e) MUST_CHECK;
int eng_meta_delete(struct eng *eng, struct slice key, struct err *e) MUST_CHECK;
/* Calls fn for every record whose key begins with prefix, in key order; fn returns 0 to go on, -1
 * to stop with its error. */
typedef int (*eng_meta_fn)(void *arg, struct slice key, struct slice value, struct err *e);
int eng_meta_scan(struct eng *eng, struct slice prefix, eng_meta_fn fn, void *arg, struct err *e) MUST_CHECK;
