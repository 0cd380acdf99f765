/* The history of a table: what point-in-time recovery restores it from. docs/restore.md says why it
 * is made so. Private to engine/.
 *
 * A history has two parts, and a moment between them, its floor:
 *
 *   the base, a separate ordinary table, whose storage id is the history's id: all that was
 *   written up to the floor, reconciled the log: every delta written after it, in the batch that
 *   wrote it, under the time at which it was committed
 *
 *       [u32 ENGI_TABLE_HISTORY][u32 history][u64 committed, us][u64 serial]  ->  [u32 n][n bytes:
 *       key behind the table id][delta]
 *       [u32 ENGI_TABLE_HISTORY][u32 history][u64 0][u64 0]                   ->  [u64 floor, us]
 *
 * The table at a moment T, not before the floor, is the base with the log's deltas up to T merged
 * into it. Reconciliation is associative, commutative and idempotent, so neither the order of
 * commits nor a delta that is in both parts makes a difference, and what a row's own timestamps say
 * counts as it does in the table. To roll a history up is to raise its floor, merge the deltas
 * below it into the base and take them out of the log: whatever a crash leaves of that is right.
 *
 * Invariant 9: a write to a table with a history is in the log with it, in one batch, at a time
 *              above the floor (engi_history_log); the base
 * holds nothing above the floor, and the log nothing that is not in the table's past. The floor is
 * raised under the history's lock, and then no commit is under way that knew the one before.
 *
 * Invariant 14: the log's times follow the order of commits. A commit that begins after another one
 *               has ended has no earlier time, whatever the wall clock does meanwhile, and over a
 *               restart. So a restore has a beginning of the commits.
 */
#pragma once

#include <pthread.h>
#include <stdatomic.h>

#include "engine/local/local.h"

struct kv_batch;

struct engi_history {
    uint32_t id;
    pthread_mutex_t lock; /* held to move the floor or to rely on it */
    _Atomic int64_t floor_us;
    _Atomic int64_t last_us; /* the newest time of a commit, or of what eng_history_moment was called for */
    _Atomic uint64_t logged; /* bytes since the engine was opened */
    struct engi_history *next;
};

int engi_histories_init(struct engi_histories *h, struct err *e) MUST_CHECK;
/* Forgets all histories, until eng_history_follow is called for them again. */
void engi_histories_forget(struct engi_histories *h);
void engi_histories_fini(struct engi_histories *h);
/* Adds the delta to the log, in the batch that writes it. now_us: when the commit began. Called
 * within a commit lock. */
int engi_history_log(struct local *own, struct engi_history *h, struct kv_batch *b, int64_t now_us, struct slice key,
                     struct slice delta, struct buf *scratch) MUST_CHECK;
