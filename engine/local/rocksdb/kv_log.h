/* Reads RocksDB's log files before RocksDB does, because none of its recovery modes distinguishes a
 * torn tail from damage in the middle.
 *
 * A log is blocks of 32 KiB. A block holds pieces, drawn below; a record is one FULL piece, or
 * FIRST, MIDDLE..., LAST; a rest of a block of less than seven bytes is unused. The
 * MANIFEST has the same form.
 *
 *     [u32 masked CRC-32C of type and bytes][u16 length][u8 type: 1 FULL, 2 FIRST, 3 MIDDLE, 4
 *     LAST][bytes]     little-endian
 *
 * A record of a log is a write batch: [u64 sequence][u32 count][entries]. The last entry of ours is
 * a note that RocksDB skips: [u8 3][u8 16]["tally-ok"][u64 synced]: every sequence up to that one
 * was on disk when the batch was written. So the log itself proves how far it must be whole, up to
 * its newest records.
 */
#pragma once

#include "base/buf.h"
#include "base/err.h"

enum { KV_LOG_NOTE = 16 };

struct kv_log_record {
    uint64_t at, end;     /* where it is in the file */
    uint64_t first, last; /* sequences; of logs only */
    uint64_t synced;      /* the sequence in its note; 0 if it has no note */
    struct slice bytes;   /* until the next call */
};

struct kv_log {
    int fd;
    const char *path;            /* the caller's, for errors */
    uint64_t size, at;           /* at: of the next piece */
    uint64_t block_at;           /* bytes in block */
    size_t block_n;
    uint64_t bad_at;             /* of the piece that was bad */
    struct buf record;
    uint8_t *block;
};

int kv_log_open(struct kv_log *l, const char *path, struct err *e) MUST_CHECK;
void kv_log_close(struct kv_log *l);
enum kv_log_got { KV_LOG_RECORD, KV_LOG_END, KV_LOG_BAD, KV_LOG_FAILED };
/* BAD: there is no whole record at r->at; the file continues. FAILED: it cannot be read. */
enum kv_log_got kv_log_next(struct kv_log *l, struct kv_log_record *r, struct err *e);
/* After BAD: moves to the next whole piece. Returns 1 if there is one, 0 if none, or -1 on error.
 * hole: the bytes in between may be sectors that never reached the disk, because one of them is all
 * zeros, or the first ends in zeros. */
int kv_log_resync(struct kv_log *l, bool *hole, struct err *e) MUST_CHECK;

/* The bytes of a note. */
void kv_log_note(uint8_t note[KV_LOG_NOTE], uint64_t synced);
