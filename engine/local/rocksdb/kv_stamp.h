/* The stamp of a data folder: a small file next to RocksDB's folder that lists what the folder must contain.
 *
 * RocksDB takes an empty folder for a new store, a log that is gone for one that it deleted, and a
 * MANIFEST cut short for one that it was writing. The stamp remembers: the format of the folder,
 * whose store it is, how long the MANIFEST was, and which logs there were with how many bytes that
 * are known to be on disk. It is replaced whole (written under another name, synced, renamed, folder synced):
 * after the store is opened, before a sync says for the first time that something in a log is on
 * disk, when the MANIFEST has grown, every few seconds while there are writes, and when the store
 * is closed. So a log that is emptied or goes is always missed; of one that is cut at the end of a
 * record, what was written within the last seconds is not.
 *
 *     tally-data
 *     format 2              2: keys of tuples have an end (types/tuple.c); 1 is read, but for
 *                           tables that have such keys
 *     store 6f1c…            RocksDB's IDENTITY
 *     rows rows.3            the folder of the store; without the line: rows (engine/local/rocksdb/kv_folder.h)
 *     manifest 5 1342        number, bytes
 *     log 12 88213           number, bytes on disk; a line for every log that RocksDB still needs
 *     sum 1a2b3c4d           CRC-32C of the lines above, hexadecimal
 *
 * RocksDB needs the logs whose number is at least the MANIFEST's log number; the rows of older logs
 * are in table files. There may be any number of older logs, because a backup keeps RocksDB from
 * deleting files.
 */
#pragma once

#include <stdint.h>

#include "base/err.h"

enum { KV_FORMAT = 2, KV_STORE_ID_MAX = 64, KV_ROWS_MAX = 32 };

struct kv_stamp {
    char store[KV_STORE_ID_MAX];
    char rows[KV_ROWS_MAX]; /* the name of the store's folder */
    uint64_t manifest, manifest_bytes;
    size_t n_logs, cap_logs;
    struct kv_stamp_log { uint64_t number, bytes; } *logs; /* ascending */
};

/* Frees the logs of a stamp; one of zeros is fine. */
void kv_stamp_fini(struct kv_stamp *stamp);
/* Returns 1 if read, 0 if there is none, or -1 if damaged, or of a newer format. The caller calls
 * kv_stamp_fini in each case. */
int kv_stamp_read(const char *path, struct kv_stamp *stamp, struct err *e) MUST_CHECK;
/* On disk when it returns. */
int kv_stamp_write(const char *path, const struct kv_stamp *stamp, struct err *e) MUST_CHECK;
/* Bytes of the log that are on disk, by the stamp; 0 if the stamp does not name the log, or there
 * is none (NULL). */
uint64_t kv_stamp_log_bytes(const struct kv_stamp *stamp, uint64_t number);
/* Fills a stamp from the present content of RocksDB's folder, with the logs from number first on.
 * The caller calls kv_stamp_fini, unless this fails. */
int kv_stamp_take(const char *folder, uint64_t first, struct kv_stamp *stamp, struct err *e) MUST_CHECK;
/* Number and bytes of the MANIFEST that CURRENT names. Returns 1, 0 if there is no CURRENT, or -1 on error. */
int kv_stamp_manifest(const char *folder, uint64_t *number, uint64_t *bytes, struct err *e) MUST_CHECK;
