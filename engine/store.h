/* A store as a table of functions: the interface that the engine's rows need of it (engine/rows).
 *
 * A store keeps records under keys [prefix of the partition][kind][rest] in byte order
 * (engine/rows/key.h). The value of a record is the reconciliation of the operands that were
 * written to it, in any order and as often as they were written (engine/row.h). So a writer need
 * not read, and a store may combine operands whenever it likes. A reader sees each partition as it
 * was at one moment.
 *
 * Life of a read: begin a view of a table, read a row or move a cursor, end the view. The functions
 * may be called on any thread; a view and a cursor belong to one thread at a time.
 *
 * Life of a write that depends on a read: lock the partition, which excludes this process's other
 * writers and reads the ballot; read; decide; commit on the condition that the ballot is unchanged.
 * In a store with one writer the lock alone suffices.
 */
#pragma once

#include "engine/backup.h"
#include "engine/copy.h"
#include "engine/iter.h"
#include "engine/named.h"
#include "engine/row.h"
#include "engine/stats.h"
#include "engine/table.h"
#include "engine/tier.h"

struct eng;
struct eng_batch;
struct eng_part;
struct engi_dropped;
struct store;

/* A table while it is read. */
struct store_view {
    const struct engi_dropped *dropped; /* its dropped columns; NULL if none. Stays until the view ends */
    bool gone;                          /* it was freed and has no rows; the store is not to be asked for any */
    uint32_t moment;                    /* the rest is the store's */
    uint64_t section;
    void *table;
};

/* A record's value. */
struct store_value {
    struct slice bytes;  /* p NULL: there is no record */
    struct arena *cells; /* receives its cells. It lives as long as the bytes */
};

/* A read of one row, or of a partition's static row. */
struct store_read {
    const struct eng_part *part;
    struct slice key;     /* of the row or static row */
    size_t n_prefix;      /* bytes of the partition's prefix in key */
    struct arena *arena;  /* receives the values; large ones stay outside of it, as long as its present memory */
    bool with_statics;    /* the row's partition's static row is wanted, too */
    /* The result, a consistent snapshot: */
    struct store_value row, statics;
    size_t n_statics_key;
    int64_t partition_ts; /* the partition's deletion; ENG_NO_TS: none */
    int64_t covered_ts;   /* the newest deletion that covers the row: the partition's, or one of a range */
    uint32_t n_covering;  /* deletion records that cover it */
    uint32_t n_loose;     /* range deletions that were compared one by one */
    uint64_t ballot;      /* the partition's; 0 if no write was conditional yet, or the store has one writer */
};

/* The keys that a cursor goes through. The spec stays as it is until the cursor is freed. */
struct store_range {
    enum eng_tier tier;
    const struct eng_part *part; /* one partition; NULL means partitions */
    bool reverse;                /* it moves backwards, too: a scan of one partition in reverse */
    struct slice lower, upper;   /* [lower, upper): of one partition, or between partitions */
    /* In a range of one partition: where nothing was deleted, only keys in [from, to) are read. p
     * NULL: unknown */
    struct slice from, to;
    uint64_t wanted;             /* records that the caller will take, about; 0 if unknown */
    bool both_ends;              /* the cursor reads keys at both ends of the range first */
};

/* A reader's report of records that are slow to read, so that the store may spare the next reader. */
enum store_hint {
    STORE_MANY_COVERED, /* many rows of the partition are covered by a deletion */
    STORE_MANY_LOOSE,   /* many range deletions of the partition are not in fragments. Blocks until they are */
};

/* A pass returns this when it has ended because its turn was over. */
enum { STORE_MORE = 1 };

/* A pass over a table that removes dead data. */
struct store_reclaim {
    uint32_t table;
    void *front; /* the table, as the front pinned it */
    bool whole;  /* false: only where readers passed much (STORE_MANY_COVERED) */
    int64_t now_seconds;
    int64_t before_seconds; /* tombstones and expired data from before may be removed */
    int64_t period_seconds; /* a part of the table that another engine has visited since then is left out; 0 if none */
    /* Called after each record, and where nothing is held; may wait. Not 0: the pass ends with it.
     * Above STORE_MORE. */
    int (*visited)(void *arg);
    /* Returns true once the pass has visited its share of records. The store then ends the pass at the
     * next place from which it can continue, sets *position to that place, and returns STORE_MORE.
     * *position is 0 at the beginning of a table. NULL if the pass ends with the table. */
    bool (*turn_over)(void *arg);
    uint64_t *position;
    /* Called after data were dropped from a record, which was value before, under a deletion that
     * covers data up to covered_ts. expired: some of them had expired. */
    void (*dropped)(void *arg, struct slice key, struct slice value, int64_t covered_ts, bool expired);
    void *arg;
};

/* The kinds of data that a change deletes or lets expire, as bits. */
enum store_deletes {
    STORE_DELETES_MANY = 1, /* a partition or a range of it */
    STORE_DELETES_ROW = 2,
    STORE_DELETES_CELLS = 4, /* or lets them expire */
};

/* An operand that a batch adds to a record: its key and then its value, from at on in the batch's
 * bytes. */
struct store_change {
    size_t at;
    uint32_t n_key, n_value;
    uint32_t group;         /* changes of one group are written together */
    uint32_t columns;       /* the highest column id in it, plus one */
    uint32_t covers_below;  /* as in struct eng_row */
    uint8_t deletes;        /* bits of enum store_deletes */
    bool is_range;          /* a deletion of a range: every operand of this key has this value */
    int64_t oldest, newest; /* its timestamps */
    void *table;            /* as the front pinned it */
    /* The commit sets them: it takes place only if the partition's ballot still is this one. */
    bool conditional;
    uint64_t ballot, next_ballot; /* next_ballot: the partition's afterwards */
    bool written; /* the store sets it when the commit answers KV_CHANGED */
};

/* The properties of a store, as bits. */
enum store_offers {
    /* Its engine is its only writer, and may prove things from memory. Otherwise a write that
     * depends on a read carries the partition's ballot as its condition. */
    STORE_ONE_WRITER = 1,
    /* Every call waits for other machines: reads in the cache tier are incomplete, and commits
     * without patience are ENG_BUSY. */
    STORE_REMOTE = 2,
};

/* The log of a store whose commits are visible before they are durable. One thread at a time. */
struct store_log_ops {
    /* As kv_sync, kv_heal, kv_synced and kv_settle (engine/local/rocksdb/kv.h). */
    int (*sync)(struct store *s, bool to_disk, struct err *e);
    int (*heal)(struct store *s, struct err *e);
    void (*synced)(struct store *s);
    void (*settle)(struct store *s);
};

struct store_ops {
    unsigned offers;
    /* 0, -1, KV_INCOMPLETE */
    int (*read)(struct store *s, const struct store_view *view, enum eng_tier tier, struct store_read *r,
                struct err *e);
    /* A cursor; iter_free of its ops frees it, before the view ends. Returns NULL with e set. */
    struct kv_iter *(*cursor_open)(struct store *s, struct store_view *view, const struct store_range *range,
                                   struct err *e);

    /* A batch (engine/rows/batch.h), whose first member the store does not initialise. Returns NULL
     * if memory is exhausted. */
    struct eng_batch *(*batch_new)(struct store *s);
    void (*batch_free)(struct eng_batch *b);
    /* Writes all changes. eng_batch_commit says what that means; patience: it may wait. 0, -1,
     * ENG_BUSY, ENG_ROWS_HELD; KV_CHANGED: conditions of some partitions do not hold, and each change
     * says whether its partition was written. The changes of a group to one partition are written
     * atomically. A conditional write also changes the partition's ballot. */
    int (*commit)(struct eng_batch *b, bool patience, struct err *e);

    /* These do what eng_meta_write, eng_meta_scan and eng_each_stored promise. */
    int (*meta_write)(struct store *s, uint32_t n, const struct eng_meta_change *changes, struct err *e);
    int (*meta_scan)(struct store *s, struct slice prefix, eng_meta_fn fn, void *arg, struct err *e);
    int (*each_stored)(struct store *s, eng_stored_fn fn, void *arg, struct err *e);
    /* Removes all records of a table that has no writer. */
    int (*drop)(struct store *s, uint32_t table, struct err *e);
    /* Batches, views and cursors are gone. */
    void (*close)(struct store *s);

    /* A store may also offer the following functions; NULL if it does not. */

    /* Whether the partition with this token may have deletions of ranges or of itself, as the
     * view's newest cursor sees it; without it, any may have. */
    bool (*may_be_deleted)(struct store *s, const struct store_view *view, int64_t token);
    void (*hint)(struct store *s, const struct store_view *view, struct slice prefix, enum store_hint hint);
    /* The store's part of adding b->changes[b->n], which n does not include yet. */
    int (*batch_add)(struct eng_batch *b, struct err *e);
    /* The batch was written or dropped. */
    void (*batch_done)(struct eng_batch *b);
    /* The bytes of a table in memory, which begins with a struct engi_table (engine/front/table.h);
     * 0 if it has nothing else. table_init initialises the rest, which is zero. */
    size_t table_bytes;
    void (*table_init)(void *table);
    /* The table was freed, by this engine or another one, and no batch, view or cursor of it is
     * left. Waits for nothing. */
    void (*forget)(struct store *s, uint32_t table);
    /* Removes what engi_purge_row and the deletions of a table allow to remove, and folds records.
     * 0, -1, STORE_MORE, or what visited returned. Without it dead data stay. */
    int (*reclaim)(struct store *s, const struct store_reclaim *r, struct err *e);
    /* A round of such passes over the tables has ended. */
    void (*reclaimed)(struct store *s);
    /* Calls fn after another writer has changed a record, until the store is closed. Called
     * once. */
    int (*meta_watch)(struct store *s, eng_notice_fn fn, void *arg, struct err *e);
    const struct store_log_ops *log; /* NULL if a commit is durable when it returns */
    /* Whether an error in the background makes writes fail, writes have waited for long, or a
     * cluster does not answer; if so, a text about it goes to why. It waits for nothing. */
    bool (*ailing)(struct store *s, char *why, size_t size);
    /* Does what eng_peer_died promises. */
    void (*peer_died)(struct store *s, uint32_t incarnation);
    /* The value of a statistic that the store counts itself; 0 of any other. */
    uint64_t (*stat)(const struct store *s, enum eng_stat stat);
    /* Does what eng_store_figures promises. */
    void (*figures)(const struct store *s, struct eng_store_figures *out);
    int (*backup)(struct store *s, const char *folder, uint32_t keep, struct eng_backup *out, struct err *e);
    int (*compact)(struct store *s, struct err *e);
};

/* The front of an engine: its state in this process, whatever its store. */
struct store_front {
    void (*begin)(struct store *s, uint32_t table, struct store_view *view);
    void (*end)(struct store *s, const struct store_view *view);
    /* Holds a table that is written to. NULL, ERR_SERVER: it was freed, or there is no memory. */
    void *(*pin)(struct store *s, uint32_t table, struct err *e);
    void (*unpin)(struct store *s, void *table);
    /* Whether this thread holds the lock of the partition, and its ballot from the first read under the
     * lock. Without one it is read now. */
    bool (*ballot)(struct store *s, struct slice prefix, uint64_t *ballot);
    /* A read of the partition has returned this ballot; a conditional write of this thread has given it this
     * one. Both do nothing unless this thread holds the lock. */
    void (*ballot_read)(struct store *s, struct slice prefix, uint64_t ballot);
    void (*ballot_moved)(struct store *s, struct slice prefix, uint64_t ballot);
    /* The sequence of a batch that was just written. */
    uint64_t (*written)(struct store *s);
};

/* First member of every engine. */
struct store {
    const struct store_ops *ops; /* NULL until the store is open */
    const struct store_front *front;
    void *own; /* the store's */
};

static inline struct store *store_of(struct eng *eng) { return (struct store *)eng; }
