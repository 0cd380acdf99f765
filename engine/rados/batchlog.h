/* Writes of whole batches. Changes that must happen together and touch several partitions are first
 * recorded in a log, an object of the pool, so that all of them happen even if this process dies
 * between two partitions: any store that has the pool open applies a record BATCHLOG_AGE_S after it first read it,
 * and the records of a server that has died at once. A store counts the age of a record with its own monotonic clock:
 * a step of a server's wall clock makes no record older or younger.
 *
 * Q23. A replay begins to apply a record within BATCHLOG_REPLAY_S of having read it. The server that logged the
 *      batch, or another replay, may remove the record meanwhile, so that it no longer keeps tombstones
 *      from being removed (Q14). But a replay ends within IN_FLIGHT_S of when the record was written, if a store
 *      read the log after BATCHLOG_EVERY_S and again BATCHLOG_EVERY_S after the record had its age, or earlier.
 *      No tombstone that is newer than the record is removed before.
 * Q24. The name of a log has the incarnation of the run of a server whose batches it holds, and no other run has
 *      logs of that name. A replay applies the batches of that run alone before they are old. If two runs have one
 *      incarnation by chance, or a server was taken for dead that lives, batches are applied early, which
 *      changes nothing (Q23).
 * Q28. A log is removed only when it has neither its mark nor records, and each record is written on condition that
 *      the mark is there. The mark is written once, before the log is registered, and a name is used once. So no
 *      record goes to a log that is not registered, or is lost with one, and a server that was taken for dead
 *      notices it and begins another log. A log that is registered and has no object was removed.
 *
 * Each run of a server has a log, and a new one each time that other servers consider it dead while it lives. When it
 * ends, or others are notified that it has died, the mark is removed, and then the log, once its batches have been
 * applied. If no server is notified of a death, this happens when the registration was not renewed for a day.
 *
 *   object "batches", key [incarnation: 8 hexadecimal digits].[number: 8]: [u64 time], registered logs
 *   object "batches.[incarnation].[number]", key [01]: ["1"], its mark
 *                             key [time: 7 digits][count: 5 digits]: changes, each [u32 n][key][u32 n][value]
 *   time: in microseconds since 1970; count: of the server's batches, so that those of one microsecond differ
 */
#pragma once

#include "engine/rados/rados.h"
#include "engine/rows/batch.h"

#define BATCHLOG_MARK "\x01" /* sorts before all records, whose keys are longer */
enum { BATCHLOG_NAME = 32 };
struct batchlog {
    uint32_t incarnation, number;
    char object[BATCHLOG_NAME];
    uint64_t registered_us; /* when, since 1970; 0 if unknown */
};

/* Begins a log in place of the store's log with the number `lost`; 0 for the first one. Threads that find the same log
 * lost meanwhile do not wait: they get ERR_OVERLOADED. Returns 0, or -1 with *e set. */
int batchlog_begin(struct rados *s, uint32_t lost, struct err *e) MUST_CHECK;
/* Ends the store's log; batches that cannot be applied are left to other servers. No batch is written meanwhile or
 * later. */
void batchlog_close(struct rados *s);
/* Calls fn with each registered log of an incarnation, or of all if that is 0, until fn returns less than 0. Returns 0,
 * fn's result or another negative error number. */
typedef int (*batchlog_fn)(void *arg, const struct batchlog *log);
int batchlog_each(struct rados *s, uint32_t incarnation, batchlog_fn fn, void *arg) MUST_CHECK;
/* Writes all changes of a batch. Returns 0, or -1 with *e set. After -1 some partitions may have been
 * written; a group of several partitions is, or will be, written as a whole or not at all. */
int batchlog_write(struct rados *s, const struct eng_batch *b, struct err *e) MUST_CHECK;
/* Counts the changes of a logged batch. Returns -1 if it is damaged. */
int batchlog_check(struct slice logged, size_t *n, struct err *e) MUST_CHECK;
/* Sets *us to the time at which the oldest batch in the logs was recorded, in microseconds since 1970, or to INT64_MAX
 * if they are empty. */
int batchlog_oldest(struct rados *s, int64_t *us, struct err *e) MUST_CHECK;
enum {
    BATCHLOG_AGE_S = 20,    /* time between a store's first read of a record and its replay */
    BATCHLOG_EVERY_S = 10,  /* time between two reads of all logs */
    BATCHLOG_REPLAY_S = 10, /* time between reading a record and beginning to apply it, at most */
};

/* died 0: applies the batches in all logs that this function first read age_us ago or earlier. Otherwise applies all
 * batches in the logs of the incarnation that has died, whatever their age. Some may stay for the next call. *n: the
 * number of batches that were applied. Returns 0, or -1 with *e set. One thread of a store calls it at a time (Q27). */
int batchlog_replay(struct rados *s, uint32_t died, int64_t age_us, size_t *n, struct err *e) MUST_CHECK;
