/* The row store: partitions, static rows, rows, tombstones, TTL, over an ordered store of keys and
 * values (engine/store.h).
 *
 * Life of a write: a loop adds the deltas of all requests of one wake-up to its eng_batch, commits
 * it once (no sync), and asks for its sequence to become durable. The log is synced repeatedly
 * while requests wait for durability, and the thread that syncs calls back. Life of a read: open a
 * scan or get a row, in the cache-only tier on a loop (ENG_INCOMPLETE: try again in the blocking
 * tier on another thread), pull items, close.
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

/* Results of reads beside 0, 1 and -1; err is not set. INCOMPLETE: in the cache-only tier, the data
 * is on disk only or is too much. */
enum { ENG_INCOMPLETE = -2, ENG_PAUSED = -3 /* eng_scan_allow */ };
/* Results of eng_batch_try_commit beside 0 and -1. BUSY: the store wants writers to wait. MET:
 * other commits are writing the same rows. */
enum { ENG_BUSY = -3, ENG_MET = -5 };
/* Result of eng_meta_write and eng_batch_commit_locked beside 0 and -1: a condition does not
 * hold. */
enum { ENG_CHANGED = -4 };

enum eng_durability {
    ENG_FSYNC,    /* a write is acknowledged when it is on disk */
    /* acknowledged when the operating system has it, synced every 10 s (Cassandra's default):
     * survives the end of this process */
    ENG_PERIODIC,
    ENG_NONE,     /* as ENG_PERIODIC, but never synced */
};

/* Memtables hold rows that are not in files yet: one is written to, the others are being
 * flushed. */
enum { ENG_MEMTABLES = 4 };

/* Faults of a shared store in memory, for tests: each once in so many times, 0: never. */
struct eng_test_faults {
    uint64_t seed;
    uint32_t conflict_in;    /* a conditional write fails as if another engine had written */
    uint32_t part_in;        /* the same, but only the first of its partitions is not written */
    uint32_t applied_in;     /* the answer to a write is lost: the write takes place and fails */
    uint32_t not_applied_in; /* the same, but the write does not take place */
    uint32_t late_in;        /* an answer comes late_us later */
    uint32_t late_us;
};

/* A pool of a Ceph cluster as the store. */
struct eng_rados {
    const char *conf, *pool; /* path of ceph.conf; the pool's name */
    uint64_t split_keys;     /* a shard with more keys splits; 0 for the default */
    /* Names this engine to the others, in eng_peer_died: a random number, another one each time. 0 if
     * they will not be told of its death */
    uint32_t incarnation;
};

struct eng_options {
    const struct eng_rados *rados; /* keeps rows and named records there, and nothing in data_dir; NULL if no */
    const char *data_dir; /* NULL if rows are in memory */
    enum eng_durability durability;
    /* open a store that is damaged in front of acknowledged rows, and lose the rows behind the
     * damage */
    bool cut_damage;
    size_t block_cache_bytes, memtable_bytes; /* memtable: each of ENG_MEMTABLES; 0 means defaults */
    /* memory for the cache of rows and slices; 0 for no cache. A shared store has none */
    size_t row_cache_bytes;
    unsigned background_jobs;                 /* flushes and compactions at a time; 0 for default */
    uint32_t reclaim_rows_per_second; /* pace of the reclaimer; 0 for no reclaimer */
    struct clock *clock;
    bool shared;         /* the store is in memory, and other engines will be opened beside this one */
    struct eng *beside;  /* shares that engine's store in memory; closed in any order */
    const struct eng_test_faults *faults; /* of a shared store in memory; NULL if none */
};

struct eng *eng_open(const struct eng_options *o, struct err *e) MUST_CHECK;
/* Syncs and closes. The caller has freed every batch, every scan, and every arena that rows were
 * read into. */
void eng_close(struct eng *eng);

/* Whether this engine is the store's only writer. If not, nothing is proven from memory, and a
 * commit of writes to a locked partition fails with ERR_WRITE_TIMEOUT, write type CAS, if another
 * engine has committed such writes since the lock was taken. */
bool eng_one_writer(const struct eng *eng);
/* Whether reads and writes wait for other machines, so that no statement runs on an event loop. */
bool eng_is_remote(const struct eng *eng);

/* ---- addresses ---- */

struct eng_part {
    uint32_t table;    /* storage id of the table; ids below 16 are the catalogue's and the engine's own */
    int64_t token;     /* murmur3_token(key) */
    /* as Cassandra serialises it: the value, or for composites [u16 length][value][0] each; <=
     * 65535 bytes */
    struct slice key;
};

/* A place between rows of a partition: before or after every clustering key that begins with
 * key. */
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
/* The next three fail with ERR_SERVER when the table was freed (eng_table_drop). */
int eng_batch_row(struct eng_batch *b, const struct eng_part *part, const struct eng_row *delta, struct op_cost *cost,
                  struct err *e) MUST_CHECK;
/* ts in microseconds, now in seconds (local deletion time). */
int eng_batch_delete_range(struct eng_batch *b, const struct eng_part *part, const struct eng_slice *range, int64_t ts,
                           int64_t now, struct op_cost *cost, struct err *e) MUST_CHECK;
int eng_batch_delete_partition(struct eng_batch *b, const struct eng_part *part, int64_t ts, int64_t now,
                               struct op_cost *cost, struct err *e) MUST_CHECK;
/* A savepoint before a request's deltas, to roll back to when the request fails half-way. Each is
 * ended by a rollback or a release, and they nest ENG_SAVEPOINTS_MAX deep. All deltas added within
 * one outermost savepoint are written atomically together, and so are all deltas added outside
 * between two of them. */
enum { ENG_SAVEPOINTS_MAX = 4 };
void eng_batch_savepoint(struct eng_batch *b);
void eng_batch_rollback(struct eng_batch *b); /* to the newest savepoint, which is removed */
void eng_batch_release(struct eng_batch *b);  /* removes the newest savepoint */
bool eng_batch_empty(const struct eng_batch *b);
/* Writes the batch and empties it; no savepoint is open. *seq: the batch may be acknowledged when
 * eng_durable_seq has reached it. Rows that another commit is writing at that moment are written
 * after the others, each with all that must be written with it. On -1 the batch is empty, and
 * nothing was written, except perhaps those other rows. While the store flushes or compacts the
 * commit may wait, at most a minute (then ERR_OVERLOADED): not on a loop. */
int eng_batch_commit(struct eng_batch *b, uint64_t *seq, struct err *e) MUST_CHECK;
/* eng_batch_commit of a batch that depends on reads of the parts, which this thread has locked.
 * ENG_CHANGED: another engine has written to some of them since they were locked. written[i]:
 * parts[i] was written nevertheless; of a batch of one partition nothing was. err is what
 * eng_batch_commit reports; the caller may lock, read and decide anew. */
int eng_batch_commit_locked(struct eng_batch *b, const struct eng_part *const *parts, uint32_t n, bool *written,
                            uint64_t *seq, struct err *e) MUST_CHECK;
/* eng_batch_commit without waiting. After ENG_BUSY and ENG_MET the batch is still to be committed,
 * and may be added to. ENG_MET is returned only for a batch with a function of eng_batch_on_met:
 * the engine calls it, on any thread, when the rows may be free; it must not call the engine. A
 * batch is put off for at most ENG_MET_US; after that the commit waits for the rows. */
enum { ENG_MET_US = 200000 };
void eng_batch_on_met(struct eng_batch *b, void (*fn)(void *arg), void *arg);
int eng_batch_try_commit(struct eng_batch *b, uint64_t *seq, struct err *e) MUST_CHECK;
/* Empties the batch without writing it. */
void eng_batch_drop(struct eng_batch *b);
/* The memory that the batch takes, approximately. */
size_t eng_batch_bytes(const struct eng_batch *b);

/* ---- durability ---- */

/* Every write with a sequence up to this one survives a crash (with ENG_PERIODIC and ENG_NONE: may
 * be acknowledged). Any thread; one atomic load. */
uint64_t eng_durable_seq(const struct eng *eng);
/* A new sequence: durable once every write that could be read before this call is. */
uint64_t eng_barrier_seq(struct eng *eng);
/* Called on the thread that has synced after durable_seq moved, or after a sync failed (eng_failed
 * is then true). */
typedef void (*eng_durable_cb)(void *arg);
/* One thread sets all callbacks, before any request waits for durability. */
void eng_on_durable(struct eng *eng, eng_durable_cb cb, void *arg);
/* Has the commit thread make a sequence durable, for which n requests wait. Any thread. */
void eng_want_durable(struct eng *eng, uint64_t seq, uint32_t n);
/* eng_want_durable in parts, for a loop that may sync by itself: it asks; while eng_gathers says
 * that further requests are expected, it handles incoming requests; then it syncs here or wakes the
 * commit thread. It also wakes the commit thread before it sleeps. */
void eng_ask_durable(struct eng *eng, uint64_t seq, uint32_t n);
bool eng_gathers(struct eng *eng);
/* Blocks for the duration of a sync. Returns false if nothing was done, because another thread
 * syncs, or syncs take long on this disk. */
bool eng_sync_here(struct eng *eng) MUST_CHECK;
void eng_wake_sync(struct eng *eng);
/* Blocks until seq is durable: 0, or -1 when a sync failed. Not on a loop. */
int eng_wait_durable(struct eng *eng, uint64_t seq, struct err *e) MUST_CHECK;
/* A sync has failed, and the writes since the one before are not on disk yet: no write is taken or
 * acknowledged, and reads may see rows that a restart loses. Ends when the store has put everything
 * on disk another way. */
bool eng_failed(const struct eng *eng);
/* Whether writes are taken; if not, the reason goes to why. Any thread; may write a few bytes to
 * find out. Of a remote store: whether it answers, without waiting for it. */
bool eng_ready(struct eng *eng, char *why, size_t size);
/* Another engine on the store, which was opened with this incarnation, has died, or may have: soon this one completes
 * the batches that it has left unfinished. Waits for nothing. Any thread. */
void eng_peer_died(struct eng *eng, uint32_t incarnation);

/* ---- write timestamps ---- */

/* A timestamp in microseconds for a write without its own: now_us, or the next one above all that
 * were assigned before, also in earlier runs. Any thread. */
int64_t eng_write_us(struct eng *eng, int64_t now_us);
/* The first of n successive ticks of 100 ns since 1970, all later than any before: they order the
 * elements of lists. */
int64_t eng_write_ticks(struct eng *eng, int64_t now_us, uint32_t n);
/* The greater of ts and newest + 1, where newest comes from eng_row_get under the lock. So the
 * write takes effect on the row it was decided on, even if a client chose that row's timestamps. At
 * INT64_MAX no timestamp is above. */
static inline int64_t eng_ts_above(int64_t ts, int64_t newest) {
    return newest < ts || newest == INT64_MAX ? ts : newest + 1;
}

/* ---- read-modify-write ---- */

/* The stripe lock of a partition. A thread whose write depends on a read holds it from before the
 * read until its batch is committed. Blocking: not on a loop. */
void eng_lock(struct eng *eng, const struct eng_part *part);
void eng_unlock(struct eng *eng, const struct eng_part *part);
/* Whether this thread holds the lock, for assertions. */
bool eng_holds(const struct eng *eng, const struct eng_part *part);
/* Several partitions at once, in an order that cannot deadlock. */
void eng_lock_many(struct eng *eng, const struct eng_part *const *parts, uint32_t n);
void eng_unlock_many(struct eng *eng, const struct eng_part *const *parts, uint32_t n);
/* The lock for a loop, which must not wait: the stripe belongs to the batch until any thread
 * commits or drops it, and other writes of the batch share it. Reads do not see the writes of a
 * batch that is not committed. So a row that the batch wrote under a stripe (eng_batch_wrote)
 * cannot be read for another write (eng_batch_has_written, which may also be true for a row that
 * was not written). Returns 1 if the stripe now belongs to the batch, and eng_batch_unlock frees it
 * as long as nothing was written under it, or 0 if the batch had it already, or -1 if it is not
 * free, or the store has several writers: then the ballot must be read, which may block. */
int eng_batch_try_lock(struct eng_batch *b, const struct eng_part *part) MUST_CHECK;
void eng_batch_unlock(struct eng_batch *b, const struct eng_part *part);
bool eng_batch_holds(const struct eng_batch *b, const struct eng_part *part);
void eng_batch_wrote(struct eng_batch *b, const struct eng_part *part, enum eng_row_kind kind, struct slice ck);
bool eng_batch_has_written(const struct eng_batch *b, const struct eng_part *part, enum eng_row_kind kind,
                           struct slice ck);

/* ---- reading ---- */

/* Gets one row or static row, resolved at now (seconds; ENG_NEVER_EXPIRES, or ENG_AS_STORED: 1 when
 * anything is stored of it). Returns 1 if visible, 0 if not, or -1 on error, ENG_INCOMPLETE. The
 * memory that row points to lives as long as the arena's present allocations; a large row does not
 * count towards the arena's limit. row->newest_ts is set with 1 and with 0. */
int eng_row_get(struct eng *eng, enum eng_tier tier, const struct eng_part *part, enum eng_row_kind kind,
                struct slice ck, int64_t now, struct arena *a, struct eng_row *row, struct op_cost *cost,
                struct err *e) MUST_CHECK;

/* A row and the static row of its partition, as they were at one moment. */
struct eng_pair {
    bool has_row, has_statics; /* visible */
    bool expired;              /* not visible, because its time to live has ended: row is as still stored */
    struct eng_row row, statics; /* newest_ts of both is set whether visible or not */
};
/* Returns 0 or -1 on error, ENG_INCOMPLETE. Memory as for eng_row_get. */
int eng_pair_get(struct eng *eng, enum eng_tier tier, const struct eng_part *part, struct slice ck, int64_t now,
                 struct arena *a, struct eng_pair *out, struct op_cost *cost, struct err *e) MUST_CHECK;

struct eng_scan_spec {
    uint32_t table;
    const struct eng_part *part;      /* one partition, or NULL: a range of tokens */
    int64_t token_from, token_to;     /* both inclusive; used when part is NULL */
    /* Of a range of tokens. 1; 0 if the scan passes over the partition, which counts as not read; -1
     * if it fails. NULL means all are wanted. */
    int (*wants)(void *arg, const struct eng_part *part, struct err *e);
    void *wants_arg;
    /* of clustering keys, in table order, not overlapping; n_slices 0: whole partitions */
    const struct eng_slice *slices;
    uint32_t n_slices;
    bool reverse;                     /* the rows of one partition in reverse order */
    bool statics;                     /* deliver static rows (with the partition item) */
    bool rows;                        /* deliver rows; false: partitions and static rows only */
    bool expired;                     /* deliver rows whose time to live has ended, as they are still stored, too */
    /* also deliver rows of which only deletions are stored, as ENG_ITEM_EXPIRED, and set
     * n_markers */
    bool deletions;
    int64_t now;                      /* seconds */
    uint64_t wanted;                  /* rows that the caller will take, about; 0 if unknown */
    struct eng_layout *layout;        /* rows of plain cells are laid out there; NULL if every row has its cells */
    bool batches;                     /* values are to stay for a batch of rows (eng_scan_begin_batch) */
    /* The end of the page before; resume_key.p NULL: from the start. */
    struct slice resume_key; /* partition */
    struct slice resume_ck;  /* p NULL: before the partition's first row; else after this row (in scan order) */
    bool resume_skip;        /* the partition itself is done: go on after it */
    bool resume_statics;     /* no page had its static row: deliver it even when no row follows resume_ck */
};

enum eng_item_kind {
    ENG_ITEM_PARTITION,
    ENG_ITEM_ROW,
    ENG_ITEM_EXPIRED /* a row with nothing visible but what has expired */
};

/* At most this many deleted ranges of a partition are counted. Adjacent ranges deleted at the same
 * time count as one. */
enum { ENG_MARKERS_MAX = 256 };

/* An item's bytes live until the next call on the scan; the caller passes the same item to all
 * calls. A partition item comes before its rows, also when it has only a static row. A partition
 * with nothing visible (no visible row in the slices and no visible static row) may still be
 * delivered, without a static row and without rows. */
struct eng_item {
    enum eng_item_kind kind;
    struct eng_part part;
    bool has_static;
    /* PARTITION, with expired: statics has nothing visible, and n_expired expired cells */
    bool static_expired;
    bool static_only;       /* PARTITION: no row of it follows */
    /* PARTITION, with deletions, unless an earlier page had it: number of deletion records, of the
     * partition and of ranges in the slices */
    uint32_t n_markers;
    struct eng_row statics; /* of the partition; valid until the next partition item */
    struct eng_row *row;    /* of the scan, for the caller to change */
    /* ROW: the key and the values, though not the cells, stay until the next call of
     * eng_scan_begin_batch */
    bool stays;
};

/* The scan copies the spec; the memory that the spec points to must live as long as the scan. Cells
 * are decoded into memory of the scan. */
struct eng_scan *eng_scan_open(struct eng *eng, enum eng_tier tier, const struct eng_scan_spec *spec,
                               struct op_cost *cost, struct err *e) MUST_CHECK;
/* In the blocking tier: the rows and stored bytes that may be passed before eng_scan_next answers
 * ENG_PAUSED; no bound until it is called. The scan goes on where it stands once more are
 * allowed. */
void eng_scan_allow(struct eng_scan *s, size_t rows, size_t bytes);
/* Returns 1 if there is an item, 0 at the end, or -1 on error, ENG_INCOMPLETE, or ENG_PAUSED. */
int eng_scan_next(struct eng_scan *s, struct eng_item *item, struct err *e) MUST_CHECK;
/* With spec.batches: rows that the scan gives from now on stay, as far as their item says so; those
 * before stay no longer. */
void eng_scan_begin_batch(struct eng_scan *s);
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

enum eng_store_stat {
#define STORE_STAT(id, name, help) ENG_STORE_##id,
#include "engine/store_stat.def"
#undef STORE_STAT
    ENG_STORE_STATS
};
/* Durations of operations, by the first bound that they do not exceed; the last place has those
 * above all bounds. */
enum { ENG_DURATION_BOUNDS = 14 };
extern const uint32_t eng_duration_bounds_us[ENG_DURATION_BOUNDS];
struct eng_durations {
    uint64_t n[ENG_DURATION_BOUNDS + 1];
    uint64_t sum_us;
};
struct eng_store_figures {
    uint64_t n[ENG_STORE_STATS];
    struct eng_durations reads, writes;
};
/* The figures of a remote store. false: the store is not remote. Waits for nothing. Any thread. */
bool eng_store_figures(const struct eng *eng, struct eng_store_figures *out);

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

/* ---- whole tables and small things ---- */

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
 * (kv_iter_spec.undeleted). 0, or -1; ENG_BUSY, err not set: batches still hold writes to it; call
 * again once they are committed or dropped. Blocking, but does not wait for these batches. */
int eng_table_drop(struct eng *eng, uint32_t table, struct err *e) MUST_CHECK;
/* Forgets a table that another engine on the store has freed: its id is not used again, and the
 * memory that knows of it is freed when no view and no batch can use it. Waits for nothing. */
void eng_table_forget(struct eng *eng, uint32_t table);
/* Calls fn for every id with stored records: rows, marks, the log of a history. Ids ascend and may
 * come more than once; all are of one moment. fn returns 0 to go on, -1 to stop with its error.
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
/* The same where reads have passed many rows that a deletion covers: what it does in its next
 * round. */
int eng_reclaim_passed(struct eng *eng, struct err *e) MUST_CHECK;

/* Copies a table from another engine, perhaps to another id, into a table that holds nothing yet.
 * Neither table is written to meanwhile. Copies all rows or, on -1, none. Earlier proofs about the
 * table no longer hold. Durable when it returns. Blocking, long. */
int eng_ingest(struct eng *eng, uint32_t table, struct eng *from, uint32_t from_table, struct err *e) MUST_CHECK;

/* ---- the stored records of a table, to move it to another engine (tools/tally/move.c) ---- */

struct eng_record {
    struct slice at;  /* to go on from; it does not depend on the table's id */
    struct slice key; /* without the table's id */
    struct slice value; /* the reconciliation of everything that was written to the record */
};
/* Calls fn for each stored record of a table, in the order of its place, from one on (empty: the
 * first). Deletions and what has expired are records, too; a range deletion has the same form from
 * every store. Ballots are none: conditional writes of another store begin anew. fn returns 0 to go
 * on, -1 to stop with its error. Blocking, long. */
typedef int (*eng_record_fn)(void *arg, const struct eng_record *r, struct err *e);
int eng_each_record(struct eng *eng, uint32_t table, struct slice from, eng_record_fn fn, void *arg,
                    struct err *e) MUST_CHECK;
/* Adds such a record to a batch. Adding it twice changes nothing. */
int eng_batch_record(struct eng_batch *b, uint32_t table, const struct eng_record *r, struct err *e) MUST_CHECK;
/* Named records of a move into this store that is not complete begin with it. A server does not
 * start on such a store. */
#define ENG_MOVE_RECORDS "move/"

/* ---- the history of a table: point-in-time recovery (docs/restore.md) ---- */

/* Begins the history of a table: its id is a storage id that nothing else has. copy: the table may
 * hold rows already. after_us: the history begins no earlier, even if the clock is behind it.
 * Restorable from eng_history_since on when it returns. Blocking; long when rows are copied, while
 * the table is written to. */
int eng_history_begin(struct eng *eng, uint32_t table, uint32_t history, bool copy, int64_t after_us,
                      struct err *e) MUST_CHECK;
/* Continues a table's history after the engine was opened, before any write. table 0: the table is
 * gone, but its history is kept. */
int eng_history_follow(struct eng *eng, uint32_t table, uint32_t history, struct err *e) MUST_CHECK;
/* Ends the recording of the table's writes; the history so far stays. */
void eng_history_end(struct eng *eng, uint32_t table);
/* Frees a history that has no writer and no reader left. Its id is not used
 * again. Blocking. */
int eng_history_drop(struct eng *eng, uint32_t history, struct err *e) MUST_CHECK;
/* Merges all changes before floor_us into one state; the caller will not restore an earlier moment.
 * Blocking, long; one thread at a time for a history. */
int eng_history_roll(struct eng *eng, uint32_t history, int64_t floor_us, struct err *e) MUST_CHECK;
/* The earliest moment that can be restored, in microseconds; INT64_MAX: there is no such
 * history. */
int64_t eng_history_since(struct eng *eng, uint32_t history);
/* The moment of a change of the table beside its rows, such as one of its definition: now, but not
 * before an earlier commit, an earlier result, or at_least_us. Later commits have no earlier moment.
 * So the moments of a history follow the order of its changes, even if the wall clock steps back. */
int64_t eng_history_moment(struct eng *eng, uint32_t history, int64_t at_least_us);
/* The bytes that a history takes: on disk, and logged since the engine was opened. */
uint64_t eng_history_bytes(struct eng *eng, uint32_t history);
/* Copies a history of another engine into a new one, whose table is copied by eng_ingest before or
 * after. Neither history is written to meanwhile. Otherwise as eng_ingest. */
int eng_history_ingest(struct eng *eng, uint32_t history, struct eng *from, uint32_t from_history,
                       struct err *e) MUST_CHECK;
/* Restores into a table the writes committed up to at_us, which is not in the future. The table is
 * emptied first, and must have no other writer. Durable when it returns. Blocking, long; the table
 * whose history is read may be written to meanwhile. ERR_INVALID: too early. */
int eng_history_restore(struct eng *eng, uint32_t history, int64_t at_us, uint32_t table, struct err *e) MUST_CHECK;

/* ---- saved states (engine/local/rocksdb/kv_folder.h, docs/restore.md) ---- */

enum { ENG_STATE_OF_MAX = 256 };
/* Saves everything under a name, which may be there already, for the sake of a part that `of`
 * names, at most ENG_STATE_OF_MAX - 1 bytes; "": all. Blocking. ERR_INVALID: a bad name, or there
 * is no data folder. */
int eng_state_save(struct eng *eng, const char *name, const char *of, struct err *e) MUST_CHECK;
/* Reads the part that a state was saved for. ERR_INVALID: there is no such state. */
int eng_state_of(const struct eng *eng, const char *name, char of[ENG_STATE_OF_MAX], struct err *e) MUST_CHECK;
/* Replaces the whole content by the saved state. No call to the engine may run meanwhile, except
 * from the engine's own threads, eng_ready, and a backup. The caller repeats its settings of tables
 * and histories afterwards. After a crash the content is either state. Returns -1 if nothing has
 * changed. */
int eng_state_put_back(struct eng *eng, const char *name, struct err *e) MUST_CHECK;
/* Closes the replaced store and removes its files, if no read of it is left; waits a little for
 * that. Otherwise the next eng_state_put_back or eng_close does it. */
void eng_state_settle(struct eng *eng);
int eng_state_remove(struct eng *eng, const char *name, struct err *e) MUST_CHECK;
/* Calls fn for every saved state, in no order, until fn returns -1. */
int eng_state_each(struct eng *eng, int (*fn)(void *arg, const char *name, const char *of, int64_t saved_s), void *arg,
                   struct err *e) MUST_CHECK;
/* Opens a saved state where it lies, only for eng_ingest and eng_history_ingest to copy from and
 * eng_meta_scan to read. Returns NULL with e set. The state may be removed while it is open. Close
 * it with eng_state_close. */
struct eng *eng_state_open(const struct eng *eng, const char *name, struct err *e) MUST_CHECK;
void eng_state_close(struct eng *state);

/* ---- backups (engine/local/rocksdb/kv_backup.c, docs/restore.md) ---- */

struct eng_backup {
    uint32_t number, files;
    bool damaged; /* what describes it cannot be read; the rest of this is 0 */
    int64_t made_s;
    uint64_t bytes; /* of its files, those that it shares with others too */
};

/* A backup of the whole store into a folder of backups, which is made when it is not there;
 * everything acknowledged before the call is in it. keep: only the newest so many stay; 0 for all.
 * Blocking, long; while rows are written. */
int eng_backup_make(struct eng *eng, const char *folder, uint32_t keep, struct eng_backup *out,
                    struct err *e) MUST_CHECK;
/* Without an engine. All of a folder, oldest first: at most max are filled in, *n is how many there
 * are. */
int eng_backup_list(const char *folder, struct eng_backup *out, uint32_t max, uint32_t *n, struct err *e) MUST_CHECK;
/* Reads every file of a backup; -1 if it is not whole, and e names the file. */
int eng_backup_verify(const char *folder, uint32_t number, struct err *e) MUST_CHECK;
/* Makes a data folder, which holds none yet, of a backup; each file's checksum is compared. An
 * engine may be opened on it then, which writes its stamp. */
int eng_backup_restore(const char *folder, uint32_t number, const char *data_dir, struct err *e) MUST_CHECK;

/* Calls fn after another engine on the store, or perhaps this one, has changed a named record; any
 * thread, and fn must not call the engine. At most ENG_WATCHERS_MAX at a time. */
enum { ENG_WATCHERS_MAX = 4 };
typedef void (*eng_notice_fn)(void *arg);
int eng_meta_watch(struct eng *eng, eng_notice_fn fn, void *arg, struct err *e) MUST_CHECK;
/* Ends the watches that have this arg; NULL means all. None of them is called any more when it
 * returns. */
void eng_meta_unwatch(struct eng *eng, const void *arg);

/* Named records for the catalogue: put and delete are durable when they return. Blocking, any
 * thread. */
struct eng_meta_change {
    struct slice key, value;
    bool deleted;
    bool conditional; /* only if the record is as expected; NULL if only if there is none */
    const struct slice *expected;
    /* Watchers need not be told. A scan of more records than a store reads at once may then see the
     * change although it does not see an earlier one. */
    bool quiet;
};
/* All of them or none. A condition is checked and the changes are written at one moment, whatever
 * other threads and other engines on the store write. 0, -1, ENG_CHANGED with err not set. */
int eng_meta_write(struct eng *eng, uint32_t n, const struct eng_meta_change *changes, struct err *e) MUST_CHECK;
int eng_meta_put(struct eng *eng, struct slice key, struct slice value, struct err *e) MUST_CHECK;
int eng_meta_delete(struct eng *eng, struct slice key, struct err *e) MUST_CHECK;
/* Calls fn for every record whose key begins with prefix, in key order; fn returns 0 to go on, -1
 * to stop with its error. */
typedef int (*eng_meta_fn)(void *arg, struct slice key, struct slice value, struct err *e);
int eng_meta_scan(struct eng *eng, struct slice prefix, eng_meta_fn fn, void *arg, struct err *e) MUST_CHECK;
