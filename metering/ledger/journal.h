/* The ledger's file: the counters of every table, minute by minute, so that a restart loses no
 * charge; and blobs of the other state that survives a restart.
 *
 * An append-only file of records. The last record of a table's minute counts:
 *
 *   length u32 | CRC-32C u32 | kind u8 | object u32 | minute u32 | keyspace, name: length u8, bytes
 *   | (figure uvarint, count uvarint)*, or bytes
 *
 * kind MINUTE: the sums of that minute so far, and the spans of its samples; BASE: sums of the time
 * before the minutes that follow; DROP: the table is dropped; DROPPED: sums of all dropped tables.
 * LIMITS: a table's blob; ROLES: the blob of roles; SHARD: the blob of the shard whose number is
 * in the field object; ID: the id of the ledger's records in the store (totals.h). A figure's number is its index
 * in figure.def, or 1000 + 100 * operation + its index in operation_figure.def. A span with
 * identifier i has the numbers 10000 + 4 * i for its least value, one more for its greatest, and
 * two more for its number of samples. Writes go to the operating system at once; journal_sync
 * brings them to disk. When a record is torn or damaged, it and all following records are cut off,
 * with a line in the log. A file that has grown large is written again under another
 * name, and then replaces the old one.
 *
 * A write has two steps: the records are put into a buffer under the statistics' lock, and the
 * buffer is written under the file's lock.
 */
#pragma once

#include "base/buf.h"
#include "base/err.h"
#include "metering/ledger/stats.h"

struct journal {
    int fd; /* -1 if there is no file */
    uint64_t bytes, fresh_bytes; /* of the file now; of the file when it was last rewritten */
    char path[4096];
    bool failing; /* the last write failed, and the log says so */
};

/* Reads the file at path, if there is one, into the statistics, and rewrites it. *latest becomes
 * the latest minute in it. Returns -1 if the file cannot be read or made. */
int journal_open(struct journal *j, const char *path, struct stats *b, uint32_t *latest, struct err *e) MUST_CHECK;
void journal_close(struct journal *j);

/* Takes the records of a file into the statistics, up to the first invalid one. Returns the number
 * of bytes taken, or -1 if memory is exhausted. */
int64_t journal_take(struct stats *b, struct slice all, uint32_t *latest) MUST_CHECK;
/* Takes one record, given without its length and checksum. Returns 0, 1 if it is invalid, or -1 if
 * memory is exhausted. */
int journal_take_record(struct stats *b, struct slice payload, uint32_t *latest) MUST_CHECK;

/* Puts the records of all that changed since the last call. all: every minute that is kept, needed
 * after a failed write. */
void journal_put_changes(struct buf *out, struct stats *b, bool all);
void journal_put_drop(struct buf *out, const struct stats *b, uint32_t object);
void journal_put_whole(struct buf *out, struct stats *b);

/* Puts the records of a table for the other servers (totals.h): its newest minutes, and the sums before them. */
enum { JOURNAL_TOTALS_MINUTES = 10 };
void journal_put_totals(struct buf *out, const struct table_stats *t);
void journal_put_dropped_totals(struct buf *out, const struct stats *b);

/* These fail with a line in the log, and failing set. */
void journal_append(struct journal *j, const struct buf *records);
void journal_sync(struct journal *j);
bool journal_is_large(const struct journal *j);
/* Replaces the file by these records, which are all statistics. On failure the old file stays
 * valid. */
void journal_replace(struct journal *j, const struct buf *whole);
