/* The queue of jobs for the store's threads (engine/rados/store.c). They split shards that are full, move rows of wide
 * partitions out of them, fold records of many operands, and apply the batches that dead stores have left in the log.
 *
 * Q27. At most one job of a shard runs at a time, and at most one replay. So a shard whose OSD hangs blocks one of the
 *      threads. A job that forgets a table runs alone, after all that were queued before it (Q21).
 */
#pragma once

#include "engine/rados/rados.h"

struct rados_job {
    struct rados_job *next;
    enum rados_job_kind { RADOS_SPLIT, RADOS_FOLD, RADOS_FORGET, RADOS_REPLAY } kind;
    struct shard *shard; /* to split, or where the record to fold was read; NULL if the job has none */
    uint32_t table;      /* to forget */
    uint32_t died;       /* the incarnation of a server, whose batches are to be applied */
    size_t n;
    uint8_t key[]; /* of the record to fold */
};

void jobs_init(struct rados *s);
void jobs_fini(struct rados *s); /* drops the queued jobs, which others may run later */
/* Queues a split of the shard, unless one is queued already. */
void jobs_add_split(struct rados *s, struct shard *sh);
/* Queues the fold of a record. Its table has a reader. */
void jobs_add_fold(struct rados *s, struct slice record_key);
/* Queues a replay of the batches of a server that has died, unless one is queued already. died: its incarnation; 0 for
 * the old batches of all servers. */
void jobs_add_replay(struct rados *s, uint32_t died);
/* Queues the removal of a table from memory. */
void jobs_add_forget(struct rados *s, uint32_t table);
/* Waits for the next job that may run (Q27); the caller runs it and calls jobs_done. *job: NULL if none was queued in
 * time. Returns false after jobs_end. */
bool jobs_take(struct rados *s, int64_t timeout_us, struct rados_job **job) MUST_CHECK;
void jobs_done(struct rados *s, struct rados_job *job);
void jobs_end(struct rados *s);
