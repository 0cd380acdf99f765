/* An open store on a pool of a Ceph cluster. Any number of processes may have the same pool open; all of these
 * stores are equal. All functions of this room wait for the cluster: call them on threads that may block. */
#pragma once

#include "engine/rados/shard.h"
#include "engine/store.h"

/* Puts the reconciliation of a and b in out, empty before. Returns -1 if the bytes are damaged, or memory is
 * exhausted. */
typedef int (*rados_merge_fn)(struct slice a, struct slice b, struct buf *out);

enum {
    RADOS_SPLIT_KEYS = 4000,      /* a shard with more keys, */
    RADOS_SPLIT_BYTES = 4 << 20, /* or bytes, splits; an OSD recovers an object as a whole, while writes to it wait */
    RADOS_MAX_KEYS = 150000, /* a shard of one partition takes no more operands; Ceph warns from 200,000 keys on, */
    RADOS_MAX_BYTES = 768 << 20, /* and from 1 GiB on */
};

struct rados_options {
    struct pool_options pool;
    rados_merge_fn merge;
    uint64_t split_keys, split_bytes, max_keys, max_bytes; /* 0 means the limits above */
    uint32_t incarnation; /* names the store's log of batches; 0 if a number that no other store has */
};

enum { RADOS_THREADS = 4 }; /* that run jobs (engine/rados/jobs.h) */
struct rados_job;
struct batchlog_seen;
struct named_watch;

/* Read-only after opening, except for the fields that have a lock and the atomic ones. */
struct rados {
    struct pool pool;
    struct rados_options o;
    struct shard_map shards;
    pthread_t threads[RADOS_THREADS];
    uint32_t n_threads;
    pthread_mutex_t lock; /* of the jobs */
    pthread_cond_t more;
    struct rados_job *jobs, **last_job, *running;
    bool ends;
    _Atomic int64_t replay_due_us; /* machine time at which old batches are applied next */
    pthread_mutex_t drop_lock; /* held while a table is dropped or forgotten */
    struct named_watch *watch; /* NULL if none */
    _Atomic uint32_t log;      /* the number of the log to which batches go */
    pthread_mutex_t log_lock;  /* held while another log begins; protects the next two fields */
    uint32_t n_logs;           /* that were begun */
    bool made_log;             /* the last log has its object and is not known to be registered */
    _Atomic uint32_t n_logged; /* batches */
    struct batchlog_seen *seen; /* records of all logs, sorted, as the last replay found them */
    size_t n_seen;
    _Atomic uint64_t n_operations, n_groups, n_splits, n_folds, n_moves; /* since the store was opened */
};

/* Opens the store on a pool. The strings of the options need not outlive the call. Returns NULL
 * with e set. */
struct rados *rados_open(const struct rados_options *o, struct err *e) MUST_CHECK;
/* No other call runs any more. */
void rados_close(struct rados *s);

/* Opens a pool as a store of engine/store.h. All of its functions wait for the cluster. So in the cache tier reads
 * are incomplete, and a commit without patience returns ENG_BUSY: the caller repeats it on a thread that may wait.
 * Returns 0, or -1 with e set. */
int rados_store_init(struct store *s, const struct rados_options *o, struct err *e) MUST_CHECK;
static inline struct rados *rados_of(const struct store *s) { return s->own; }

/* ---- whole tables ---- */

/* Removes all objects of a table. The smallest shards are removed first, so that a drop that was cut short
 * finds the rest when it runs again. A write meanwhile or later fails (Q6 in fetch.h), and the id
 * cannot be used again. Blocking, long. */
int table_drop(struct rados *s, uint32_t table, struct err *e) MUST_CHECK;
/* Frees the memory of a table that was freed (Q21 in shard.h). Called by the store's threads. */
void table_forget(struct rados *s, uint32_t table);
/* Keys and bytes of a table, as its shards and pieces count them. */
int table_size(struct rados *s, uint32_t table, uint64_t *keys, uint64_t *bytes, struct err *e) MUST_CHECK;
/* Calls fn for each table that has an object, in ascending order, until it returns -1 with its error.
 * Reads the names of all objects of the pool. */
int table_each(struct rados *s, eng_stored_fn fn, void *arg, struct err *e) MUST_CHECK;
