/* Writes. The changes of one partition are one operation, which is applied as a whole or not at all.
 *
 * Life of a group: its thread puts it in the queue of its shard. If no operation of this store on
 * the shard is under way, the thread sends one with all waiting groups; otherwise it waits. While
 * one operation is under way, later groups gather for the next. A frozen shard
 * is being split: the thread waits for that, or completes the split, and the group moves to a half.
 *
 * Q26. A write ends although an OSD hangs. An operation is sent at most WRITE_SEND_S after write_groups began,
 *      whatever the queue, the shard's head and its split have taken; it ends within POOL_TIMEOUT_S, and Q14
 *      relies on the sum. At most WRITE_PATIENT threads wait for an operation that has been under way for
 *      POOL_WAIT_US, or for the next operation after it, in addition to the one that sent it. When it times out,
 *      the groups in the queue fail, too.
 */
#pragma once

#include "engine/rados/rados.h"

enum write_kind {
    WRITE_APPEND,  /* adds an operand */
    WRITE_REPLACE, /* adds their combination, and removes the operands that a reader saw */
    WRITE_REMOVE,  /* removes the operands that a reader saw */
};

struct write_change {
    enum write_kind kind;
    struct slice key;   /* of the record (engine/rows/key.h) */
    struct slice value; /* not empty; unused for WRITE_REMOVE */
    const struct omap_pair *seen; /* operands, oldest first, as a reader returned them */
    size_t n_seen;
};

enum { WRITE_CHANGED = -4 /* the ballot, the mark or the pieces are not as expected; nothing was written */ };
enum { WRITE_SEND_S = POOL_TIMEOUT_S, WRITE_PATIENT = POOL_IN_FLIGHT };
enum write_phase { WRITE_WAITS, WRITE_RUNS, WRITE_MOVES, WRITE_DONE };

struct write_group {
    struct slice prefix; /* of the partition */
    const struct write_change *changes;
    size_t n;
    const struct slice *expected; /* the partition's ballot as it was read, empty: none; NULL for no condition */
    struct slice ballot;          /* the new one, not empty; p NULL: it stays */
    /* The partition's mark of removals, as it was read with the operands that the group removes; empty if there was
     * none. So no operand is removed, and counted as removed, twice. NULL if the group removes none. */
    const struct slice *removals;
    /* The partition's pieces as they were read, empty if there were none; NULL if they stay. */
    const struct slice *pieces;
    struct slice next_pieces; /* not empty; only with pieces */
    const struct slice *fences; /* keys of objects to be set (OMAP_FENCE) */
    size_t n_fences;
    const struct slice *old_fences; /* to be removed */
    size_t n_old_fences;
    int result;                   /* 0, -1 or WRITE_CHANGED */
    /* The writer's: */
    enum write_phase phase;
    bool alone; /* an operation with several groups was refused, perhaps because of this group's condition */
    int rc;     /* why the result is -1: an error number, negative */
    int64_t send_until_us; /* machine time (Q26) */
    struct shard *shard;
    struct write_group *next;
};

/* Writes groups, each of another partition. The groups are not atomic together: each has its own
 * result. Returns 0 if no result is -1, or -1 if e is the first error. */
int write_groups(struct rados *s, struct write_group *groups, size_t n, struct err *e) MUST_CHECK;
