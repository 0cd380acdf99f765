/* Writes of whole batches. Changes that must happen together and touch several partitions are first
 * recorded in a log, an object of the pool, so that all of them happen even if this process dies
 * between two partitions: any store that has the pool open applies what it finds there after a
 * while. Applying changes twice changes nothing.
 *
 *   object "batches", key [number: time][number: random]: changes, each [u32 n][key][u32 n][value]
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
/* Applies logged changes that are older than age_us. *n: how many records. 0, -1. */
int batchlog_replay(struct rados *s, int64_t age_us, size_t *n, struct err *e) MUST_CHECK;
