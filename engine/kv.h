/* An ordered key-value store as a table of functions: all that the engine asks of RocksDB, and that another store must give.
 *
 * Keys are bytes in byte order. A store is used by any number of threads; a batch or an iterator belongs to one thread at
 * a time. A batch is written atomically, but nothing above relies on atomicity across partitions. merge(key, operand) means
 * value = combine(value, operand), and the store may do it whenever it likes, in any grouping.
 */
#pragma once

#include "base/buf.h"
#include "base/err.h"

enum kv_tier { KV_CACHE_ONLY, KV_ANY };

/* Beside 1, 0 and -1, err not set: the answer is on disk and the tier forbids to go there; the store wants writers to wait. */
enum { KV_INCOMPLETE = -2, KV_BUSY = -3 };

enum kv_verdict { KV_KEEP, KV_REMOVE, KV_CHANGE };

/* What opening does with a store that is damaged in front of what was acknowledged: refuse it, or lose the rest. */
enum kv_damage { KV_DAMAGE_REFUSE, KV_DAMAGE_CUT };

struct kv_options {
    const char *data_dir; /* of stores that keep files; created with mode 0700 */
    enum kv_damage damage;
    size_t block_cache_bytes, memtable_bytes; /* memtable: each; 0: defaults */
    int memtables;                            /* how many; 0: default */
    unsigned background_jobs;                 /* flushes and compactions at a time; 0: default */
    bool write_through; /* every write reaches the operating system before it returns: it survives the end of this process */
    void *arg; /* of the functions below; they are called on any thread and must not call the store */
    /* out (empty) = combine(a, b); -1: the bytes are damaged. */
    int (*merge)(void *arg, struct slice a, struct slice b, struct buf *out);
    /* Length of the part of a key that point lookups and prefix scans share; 0: none. */
    size_t (*prefix_len)(struct slice key);
    /* Asked for values while the store rewrites all of its files; KV_CHANGE: the new value is in out. May be NULL. */
    enum kv_verdict (*filter)(void *arg, struct slice key, struct slice value, struct buf *out);
};

struct kv {
    const struct kv_ops *ops;
};

struct kv_batch {
    const struct kv_ops *ops;
};

struct kv_iter_spec {
    enum kv_tier tier;
    bool one_prefix;           /* every seek goes forward; all keys below upper are of one prefix (see prefix_len) */
    struct slice lower, upper; /* [lower, upper); p NULL: no bound. Must live as long as the iterator. */
};

/* key and value are valid until the next move, and only after a move that returned 1. */
struct kv_iter {
    const struct kv_ops *ops;
    struct slice key, value;
};

/* A found value; release it after use. */
struct kv_value {
    struct slice bytes;
    void *handle;
};

enum kv_move { KV_SEEK /* first key >= */, KV_SEEK_BACK /* last key <= */, KV_NEXT, KV_PREV };

struct kv_ops {
    void (*close)(struct kv *kv); /* batches and iterators are gone */
    /* 1: found, 0: not, -1, KV_INCOMPLETE */
    int (*get)(struct kv *kv, enum kv_tier tier, struct slice key, struct kv_value *value, struct err *e);
    void (*release)(struct kv *kv, struct kv_value *value);

    struct kv_iter *(*iter_new)(struct kv *kv, const struct kv_iter_spec *spec, struct err *e); /* sees one moment of the store */
    /* 1: on a key, 0: at the end, -1, KV_INCOMPLETE. The key is used by the seeks only. */
    int (*iter_move)(struct kv_iter *it, enum kv_move move, struct slice key, struct err *e);
    void (*iter_free)(struct kv_iter *it);

    struct kv_batch *(*batch_new)(struct kv *kv);
    void (*batch_free)(struct kv_batch *b);
    int (*batch_put)(struct kv_batch *b, struct slice key, struct slice value);
    int (*batch_merge)(struct kv_batch *b, struct slice key, struct slice operand);
    int (*batch_delete)(struct kv_batch *b, struct slice key);
    int (*batch_delete_range)(struct kv_batch *b, struct slice from, struct slice to);
    void (*batch_clear)(struct kv_batch *b);
    /* Visible on return, durable after sync. 0, -1, or KV_BUSY: nothing was written, the batch is as it was. With patience it sleeps
     * a little when the store wants writes slowed down; otherwise it never blocks. */
    int (*write)(struct kv *kv, struct kv_batch *b, bool patience, struct err *e);
    /* Whether a write may be tried again after KV_BUSY. */
    bool (*has_room)(struct kv *kv);
    /* What goes wrong in the background and makes writes fail, as text into why; false: nothing. */
    bool (*ailing)(struct kv *kv, char *why, size_t size);
    /* Everything written before the call is in the log; with to_disk, on disk. One thread. */
    int (*sync)(struct kv *kv, bool to_disk, struct err *e);
    /* After a sync that failed, by the same thread: everything written is on disk all the same, in files that the failure has not
     * touched. -1: not yet. A second sync would be no proof: it may succeed and have lost what the first one lost. */
    int (*heal)(struct kv *kv, struct err *e);
    /* By the thread that syncs, when nothing is left to sync: notes outside of the log how far it must be whole. */
    void (*settle)(struct kv *kv);

    int (*drop_range)(struct kv *kv, struct slice from, struct slice to, struct err *e); /* frees whole files at once, then deletes */
    int (*compact)(struct kv *kv, struct err *e);                                        /* rewrites everything */
};

/* Sleeps until a write may be tried again after KV_BUSY; -1, ERR_OVERLOADED: not within a minute. */
int kv_wait_for_room(struct kv *kv, struct err *e) MUST_CHECK;
/* Writes, and waits for room as long as it takes: 0 or -1. */
int kv_write_patiently(struct kv *kv, struct kv_batch *b, struct err *e) MUST_CHECK;

struct kv *kv_memory_open(const struct kv_options *o, struct err *e) MUST_CHECK;
struct kv *kv_rocksdb_open(const struct kv_options *o, struct err *e) MUST_CHECK;
