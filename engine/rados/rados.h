/* An open store on a pool of a Ceph cluster. Any number of processes may have the same pool open;
 * each is a store of its own, and none of them is special. All functions of this room wait for the
 * cluster: call them on threads that may block. */
#pragma once

#include "engine/rados/shard.h"

/* out (empty) = the reconciliation of a and b; -1 if the bytes are damaged, or memory is exhausted. */
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
    uint64_t split_keys, split_bytes, max_keys, max_bytes; /* 0 means those above */
    uint32_t incarnation; /* names the store's log of batches; 0 if a number that no other store has */
};

enum { RADOS_THREADS = 4 }; /* of the work in the background */
struct rados_job;
struct batchlog_seen;
struct named_watch;

/* Read-only after opening, but for what has a lock of its own. */
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
    pthread_mutex_t log_lock;  /* held while another one begins; of the next two lines */
    uint32_t n_logs;           /* that were begun, */
    bool made_log;             /* the last of which has its object and is not known to be registered */
    _Atomic uint32_t n_logged; /* batches */
    struct batchlog_seen *seen; /* records of all logs, sorted, as the last replay found them */
    size_t n_seen;
    _Atomic uint64_t n_operations, n_groups, n_splits, n_folds, n_moves; /* written, since it was opened */
};
