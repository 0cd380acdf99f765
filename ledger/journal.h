/* The ledger's file: what tables were charged, minute by minute, so that a restart forgets no bill;
 * and memos of what else is to outlive one.
 *
 * A file of records, only ever appended to; the last one of a table's minute counts:
 *
 *   length u32 | CRC-32C u32 | kind u8 | object u32 | minute u32 | keyspace, name: length u8, bytes
 *   | (figure uvarint, count uvarint)*, or bytes
 *
 * kind MINUTE: the sums of that minute so far, and the spans of its samples; BASE: sums of before
 * the minutes that follow; DROP: the table is gone; DROPPED: sums of all tables that are. LIMITS: a
 * table's memo; ROLES: that of roles; SHARD: that of the shard whose number stands for the object.
 * A figure is numbered by its place in figure.def, or 1000 + 100 * operation + its place in
 * operation_figure.def, a span's least, most and number of samples by 10000 + 4 * its id, and 1 and
 * 2 more. What is written is with the operating system at once, and synced by journal_sync. A torn
 * end, or what is damaged and all behind it, is cut off and said. When the file has grown large it
 * is written anew, beside the old one, which is then replaced.
 *
 * What is to be written is put into a buffer first, under the book's lock; then it is written,
 * under the file's.
 */
#pragma once

#include "base/buf.h"
#include "base/err.h"
#include "ledger/book.h"

struct journal {
    int fd; /* -1: there is none */
    uint64_t bytes, fresh_bytes; /* of the file; of what it was when it was last written anew */
    char path[4096];
    bool failing; /* the last write failed, and it was said */
};

/* Reads the file at path, which need not be there, into the book, and writes it anew; *latest
 * becomes the latest minute in it. -1: it cannot be read or made. */
int journal_open(struct journal *j, const char *path, struct book *b, uint32_t *latest, struct err *e) MUST_CHECK;
void journal_close(struct journal *j);

/* Takes the records of a file into the book, up to the first that is none. Bytes that were taken; -1: no memory. */
int64_t journal_take(struct book *b, struct slice all, uint32_t *latest) MUST_CHECK;
/* One of them, behind its length and checksum. 0; 1: it is none; -1: no memory. */
int journal_take_record(struct book *b, struct slice payload, uint32_t *latest) MUST_CHECK;

/* What has changed since it was last put; all: every minute that is kept, after a write that failed. */
void journal_put_changes(struct buf *out, struct book *b, bool all);
void journal_put_drop(struct buf *out, const struct book *b, uint32_t object);
void journal_put_whole(struct buf *out, struct book *b);

/* These fail with a line in the log, and failing set. */
void journal_append(struct journal *j, const struct buf *records);
void journal_sync(struct journal *j);
bool journal_is_large(const struct journal *j);
/* The file becomes these records, which are the whole book; or stays as it was, and good. */
void journal_replace(struct journal *j, const struct buf *whole);
