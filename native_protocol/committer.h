/* The committer: one thread that commits, in order, the batches that the store did not take at
 * once, and waits while the store flushes and compacts.
 *
 * Life of a batch here: a loop tries its commit and finds that the store wants writers to wait; the
 * loop hands the batch and its answers over and continues with another batch. While the committer
 * has any batch, all loops hand theirs over, so that no loop waits for a lock that a waiting commit
 * holds. A committed batch returns to its loop (loop.h), which sends the answers once
 * they are durable. The bytes that a loop may have here are bounded (NP_DEFERRED_MAX): above the bound
 * it stops reading its connections that wait for such answers.
 */
#pragma once

#include "engine/engine.h"
#include "native_protocol/loop.h"

struct np_deferred {
    struct np_task task; /* first: its way back, with the outcome */
    struct np_inbox *inbox;  /* of its loop */
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
