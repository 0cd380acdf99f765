/* The history of a table, for point-in-time recovery (docs/restore.md). Only a local store records
 * histories. */
#pragma once

#include "engine/engine.h"

/* Begins the history of a table: its id is a storage id that nothing else has. copy: the table may
 * hold rows already. after_us: the history begins no earlier, even if the clock is earlier.
 * Restorable from eng_history_since on when it returns. Blocking; long when rows are copied, while
 * the table is written to. */
int eng_history_begin(struct eng *eng, uint32_t table, uint32_t history, bool copy, int64_t after_us,
                      struct err *e) MUST_CHECK;
/* Continues a table's history after the engine was opened, before any write. table 0: the table is
 * gone, but its history is kept. */
int eng_history_follow(struct eng *eng, uint32_t table, uint32_t history, struct err *e) MUST_CHECK;
/* Ends the recording of the table's writes; the history so far stays. */
void eng_history_end(struct eng *eng, uint32_t table);
/* Frees a history that has no writer and no reader left. Its id is not used
 * again. Blocking. */
int eng_history_drop(struct eng *eng, uint32_t history, struct err *e) MUST_CHECK;
/* Merges all changes before floor_us into one state; the caller will not restore an earlier moment.
 * Blocking, long; one thread at a time for a history. */
int eng_history_roll(struct eng *eng, uint32_t history, int64_t floor_us, struct err *e) MUST_CHECK;
/* The earliest moment that can be restored, in microseconds; INT64_MAX: there is no such
 * history. */
int64_t eng_history_since(struct eng *eng, uint32_t history);
/* The moment of a change of the table other than its rows, such as one of its definition: now, but not
 * before an earlier commit, an earlier result, or at_least_us. Later commits have no earlier moment.
 * So the moments of a history follow the order of its changes, even if the wall clock steps back. */
int64_t eng_history_moment(struct eng *eng, uint32_t history, int64_t at_least_us);
/* The bytes that a history takes: on disk, and logged since the engine was opened. */
uint64_t eng_history_bytes(struct eng *eng, uint32_t history);
/* Copies a history of another engine into a new one, whose table is copied by eng_ingest before or
 * after. Neither history is written to meanwhile. Otherwise as eng_ingest. */
int eng_history_ingest(struct eng *eng, uint32_t history, struct eng *from, uint32_t from_history,
                       struct err *e) MUST_CHECK;
/* Restores into a table the writes committed up to at_us, which is not in the future. The table is
 * emptied first, and must have no other writer. Durable when it returns. Blocking, long; the table
 * whose history is read may be written to meanwhile. ERR_INVALID: too early. */
int eng_history_restore(struct eng *eng, uint32_t history, int64_t at_us, uint32_t table, struct err *e) MUST_CHECK;
