/* The row store: partitions, static rows, rows, tombstones, TTL, over an ordered store of keys and
 * values (engine/store.h).
 *
 * Life of a write: a loop adds the deltas of all requests of one wake-up to its eng_batch, commits
 * it once (no sync), and asks for its sequence to become durable. The log is synced repeatedly
 * while requests wait for durability, and the thread that syncs calls back. Life of a read: open a
 * scan or get a row, in the cache-only tier on a loop (ENG_INCOMPLETE: try again in the blocking
 * tier on another thread), pull items, close.
 *
 * The engine stores bytes: table ids, serialised partition keys with their tokens, clustering keys
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

/* Results of a read in addition to 0, 1 and -1; err is not set. INCOMPLETE: in the cache-only tier, the
 * data is only on disk, or is too much. PAUSED: the scan has read as much as eng_scan_allow allowed. */
enum { ENG_INCOMPLETE = -2, ENG_PAUSED = -6 };
/* Results of a write in addition to 0 and -1. BUSY: the store accepts no write until it has flushed or
 * compacted; or, for eng_table_drop, batches still hold writes. MET: other commits write the same rows. */
enum { ENG_BUSY = -3, ENG_ROWS_HELD = -5 };
/* Result of eng_meta_write and eng_batch_commit_locked in addition to 0 and -1: a condition
 * does not hold. */
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

/* Faults of a shared store in memory, for tests: each value n injects one fault per n operations; 0 for none. */
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
     * nothing reports its death */
    uint32_t incarnation;
};

struct eng_options {
    const struct eng_rados *rados; /* keeps rows and named records there, and nothing in data_dir; NULL if no */
    const char *data_dir; /* NULL if rows are in memory */
    enum eng_durability durability;
    /* open a store that is damaged before acknowledged rows, and lose the rows after the
     * damage */
    bool cut_damage;
    size_t block_cache_bytes, memtable_bytes; /* memtable: each of ENG_MEMTABLES; 0 means defaults */
    /* memory for the cache of rows and slices; 0 for no cache. A shared store has none */
    size_t row_cache_bytes;
    unsigned background_jobs;                 /* flushes and compactions at a time; 0 for default */
    uint32_t reclaim_rows_per_second; /* pace of the reclaimer; 0 for no reclaimer */
    struct clock *clock;
    bool shared;         /* the store is in memory, and other engines will share it */
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
 * eng_batch_commit reports; the caller may lock, read and decide again. */
int eng_batch_commit_locked(struct eng_batch *b, const struct eng_part *const *parts, uint32_t n, bool *written,
                            uint64_t *seq, struct err *e) MUST_CHECK;
/* eng_batch_commit without waiting. After ENG_BUSY and ENG_ROWS_HELD the batch is still to be committed,
 * and may be added to. ENG_ROWS_HELD is returned only for a batch with a function of eng_batch_on_rows_free:
 * the engine calls it, on any thread, when the rows may be free; it must not call the engine. A
 * batch is deferred for at most ENG_ROWS_HELD_US; after that the commit waits for the rows. */
enum { ENG_ROWS_HELD_US = 200000 };
void eng_batch_on_rows_free(struct eng_batch *b, void (*fn)(void *arg), void *arg);
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
/* eng_want_durable in parts, for a loop that may sync by itself: it registers; while eng_gathers says
 * that further requests are expected, it handles incoming requests; then it syncs here or wakes the
 * commit thread. It also wakes the commit thread before it sleeps. */
void eng_register_durable(struct eng *eng, uint64_t seq, uint32_t n);
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
 * find out. For a remote store: whether it responds, without waiting for it. */
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

/* A row and the static row of its partition, in one consistent snapshot. */
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
    /* For a range of tokens. Returns 1, or 0 to skip the partition, which counts as not read, or -1
     * on error. NULL to read all. */
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
    bool resume_skip;        /* the partition itself is done: continue after it */
    bool resume_statics;     /* no page had its static row: deliver it even when no row follows resume_ck */
};

enum eng_item_kind {
    ENG_ITEM_PARTITION,
    ENG_ITEM_ROW,
    ENG_ITEM_EXPIRED /* a row whose only data has expired */
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
 * ENG_PAUSED; no bound until it is called. The scan continues from there when more are
 * allowed. */
void eng_scan_allow(struct eng_scan *s, size_t rows, size_t bytes);
/* Returns 1 if there is an item, 0 at the end, or -1 on error, ENG_INCOMPLETE, or ENG_PAUSED. */
int eng_scan_next(struct eng_scan *s, struct eng_item *item, struct err *e) MUST_CHECK;
/* With spec.batches: rows that the scan gives from now on stay, as far as their item says so; those
 * before stay no longer. */
void eng_scan_begin_batch(struct eng_scan *s);
void eng_scan_close(struct eng_scan *s);
