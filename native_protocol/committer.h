/* Batches that the store did not take at once: one thread commits them in their order and waits
 * while the store flushes and compacts.
 *
 * Life of a batch here: a loop tries its commit, the store wants writers to wait, and the loop
 * hands batch and answers over and goes on with another batch; while any batch is here, those of
 * all loops come here, so that no loop waits for a lock that a waiting commit holds. Done, it comes
 * back to its loop (npi_loop_give_late), which sends the answers when they are durable. How much a
 * loop may have here is bounded (NP_LATE_MAX): then those connections of it that wait for such
 * answers are not read.
 */
#pragma once

#include "native_protocol/loop.h"

struct np_late {
    struct np_late *next;
    struct np_loop *loop;
    struct eng_batch *batch;
    struct np_held *held;
    size_t bytes; /* of the batch and the answers */
    int rc;
    uint64_t seq; /* when rc is 0 */
    struct err err;
};

struct np_committer;
struct np_committer *npi_committer_new(struct err *e) MUST_CHECK;
/* Commits what is here, then ends. */
void npi_committer_stop(struct np_committer *c);
void npi_committer_free(struct np_committer *c);
/* Any thread. */
void npi_committer_submit(struct np_committer *c, struct np_late *late);
bool npi_committer_busy(const struct np_committer *c);
