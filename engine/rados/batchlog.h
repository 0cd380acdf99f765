/* Writes of whole batches. Changes that must happen together and touch several partitions are first
 * recorded in a log, an object of the pool, so that all of them happen even if this process dies
 * between two partitions: any store that has the pool open applies the records that are BATCHLOG_AGE_S
 * old, and those of a server that has died at once.
 *
 * Q23. A replay begins to apply a record within BATCHLOG_REPLAY_S of having read it. The one that logged the
 *      batch, or another replay, may remove the record meanwhile, so that it no longer keeps tombstones
 *      from being removed (Q14). But a replay that begins as early as servers look for old records, or
 *      earlier, ends within IN_FLIGHT_S of the time of the record. No tombstone that is newer than the record
 *      is removed before.
 * Q24. The key of a record names the incarnation of the server that logged it, and no other record of that
 *      server has the key. A replay applies records of that server alone before they are old. Earlier
 *      versions drew a number at random, which names no server, so their records wait until they are
 *      old. If such a number or another server's name is the same by chance, or a server was taken for dead
 *      that lives, records are applied early, which changes nothing (Q23).
 *
 *   object "batches", key [time: 7 digits][number: 6 digits]: changes, each [u32 n][key][u32 n][value]
 *   number: incarnation * 2^15 + a count of the server's batches, so that those of one microsecond differ
 */
#pragma once

#include "engine/rados/rados.h"
#include "engine/rows/batch.h"

/* Writes all changes of a batch. 0, or -1: e says why. After -1 some partitions may have been
 * written; a group of several partitions then is or will be written as a whole, or not at all. */
int batchlog_write(struct rados *s, const struct eng_batch *b, struct err *e) MUST_CHECK;
/* Counts the changes of a logged batch. -1: it is damaged. */
int batchlog_check(struct slice logged, size_t *n, struct err *e) MUST_CHECK;
/* The time at which the oldest batch in the log was recorded, in microseconds since 1970; INT64_MAX:
 * the log is empty. */
int batchlog_oldest(struct rados *s, int64_t *us, struct err *e) MUST_CHECK;
/* A record that is as old is applied; a server looks for such ones so often; time from the read of a record to when its
 * changes are written, at most. */
enum { BATCHLOG_AGE_S = 20, BATCHLOG_EVERY_S = 10, BATCHLOG_REPLAY_S = 10 };

/* Applies logged changes that are older than age_us, and all of the server that has died (its incarnation; 0: none),
 * whose clock does not matter; but some may stay for the next call. *n: how many records. 0, -1. */
int batchlog_replay(struct rados *s, uint32_t died, int64_t age_us, size_t *n, struct err *e) MUST_CHECK;
