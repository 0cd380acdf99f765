/* A loop's writes and the answers that wait until those are durable. It decides which answers wait
 * for which sequence number, which thread syncs, and sends the answers or the error.
 *
 * Life of an answer: a request adds its writes to the loop's batch and its answer to now. Before the loop
 * sleeps, commit hands the batch to the store; now gets the commit's sequence number and moves to
 * held. When that number is durable, release sends the answers. When the sync failed, every answer
 * of the block becomes an error. The committer commits a batch that the store does not accept at once.
 *
 * All functions run on the loop's thread, except npi_durability_moved.
 */
#pragma once

#include <ev.h>
#include <stdatomic.h>

#include "engine/engine.h"
#include "native_protocol/call.h"
#include "native_protocol/loop.h"
#include "native_protocol/metric.h"

/* ---- the committer: one thread that commits, in order, the batches that the store did not accept
 * at once, and waits while the store flushes and compacts ----
 *
 * A loop whose commit would have to wait passes the batch and its answers to the committer and
 * continues with another batch. While the committer has any batch, all loops pass theirs to it, so
 * that no loop waits for a lock that a waiting commit holds. A committed batch returns through the
 * inbox of its loop, which sends the answers once they are durable. The bytes that a loop may have here
 * are bounded (NP_DEFERRED_MAX): above the bound it stops reading its connections that wait for such
 * answers. */

struct np_deferred {
    struct np_task task; /* first: its way back, with the outcome */
    struct np_inbox *inbox; /* of its loop */
    struct np_deferred *next;
    struct eng_batch *batch;
    int rc;
    uint64_t seq; /* when rc is 0 */
    struct err err;
};

struct np_committer;
struct np_committer *npi_committer_new(struct err *e) MUST_CHECK;
/* Commits the queued batches, then ends the thread. */
void npi_committer_stop(struct np_committer *c);
void npi_committer_free(struct np_committer *c);
/* Any thread. */
void npi_committer_submit(struct np_committer *c, struct np_deferred *d);
bool npi_committer_busy(const struct np_committer *c);

/* A wake-up's batch that grows larger is committed at once. */
enum { NP_BATCH_BYTES_MAX = 4 << 20 };

/* An answer that may be sent when its block is durable. */
struct np_ack {
    struct np_conn *conn; /* referenced, counted in its in_flight */
    size_t at, n;         /* in the block's bytes */
    int16_t stream;
    uint8_t version;
    struct np_account account;
};

struct np_held {
    struct np_held *next;
    uint64_t seq;
    struct buf bytes;
    struct np_reply rest; /* further blocks behind bytes, for a call's answer, which has its held block for itself */
    struct np_ack *acks;
    size_t n_acks, cap_acks;
};

struct np_durability {
    struct np_loop *loop;
    struct np_held *now;         /* answers of this wake-up's batch; NULL if none */
    struct np_held *held, *tail; /* committed, by sequence */
    struct np_held *unused;      /* for the next batch; or NULL */
    _Atomic bool waits;          /* held is not empty: a thread that syncs wakes the loop */
    bool unsynced;               /* no sync is under way yet for the newest blocks of held */
    ev_idle quiet;               /* fires when a sync is due and the loop is otherwise idle */
};

struct np_durability *npi_durability_new(struct np_loop *l, struct err *e) MUST_CHECK;
/* Drops the batch and the answers that wait; nothing is sent. */
void npi_durability_close(struct np_durability *d);
void npi_durability_free(struct np_durability *d);

/* Takes n bytes off the end of from and holds them until this wake-up's batch is durable; then they
 * are sent and accounted. 0, or -1: no memory, and from is unchanged. */
int npi_hold(struct np_durability *d, struct np_conn *c, struct buf *from, size_t n, const struct np_envelope *env,
             const struct np_account *account) MUST_CHECK;
/* Likewise for a call that was committed elsewhere: holds its out until its commit_seq is durable. */
int npi_hold_call(struct np_durability *d, struct np_call *c, const struct np_account *account) MUST_CHECK;

/* Commits this wake-up's writes, or hands them to the committer. */
void npi_durability_commit(struct np_durability *d);
/* Called before the loop sleeps while answers wait for a sync (unsynced). Syncs, has the commit thread
 * sync, or waits for more writes. */
void npi_durability_sync(struct np_durability *d);
/* Sends the answers whose writes are durable; the error when the store can sync no more. */
void npi_durability_release(struct np_durability *d);
/* The durable sequence has moved, or a sync failed: wakes the loop if answers wait. Any thread. */
void npi_durability_moved(struct np_durability *d);
