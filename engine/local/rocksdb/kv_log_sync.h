/* Puts RocksDB's log on disk.
 *
 * RocksDB 7.8 could do it itself (rocksdb_flush_wal with sync), but one failure there may end all
 * writes until a restart: a write that meets the log between the failed sync and the record of that
 * error gets "Writer has previous error", which RocksDB takes for an error that it cannot recover
 * from (https://github.com/facebook/rocksdb/issues/12998). So RocksDB only hands the log to the
 * operating system, and fdatasync is called here. RocksDB does not hear of a failure, so
 * the caller must treat no write as durable until it has flushed the memtable and begun a new log.
 *
 * Used by one thread at a time. Private to engine/.
 */
#pragma once

#include <rocksdb/c.h>
#include <stdint.h>

#include "base/err.h"

struct kv_log_sync {
    int fd;           /* of the newest log that was synced; -1: none yet */
    uint64_t number;  /* of that log */
    uint64_t version; /* RocksDB's version number before that log was looked for: a new log begins a new version */
};

void kv_log_sync_init(struct kv_log_sync *s);
/* Everything that RocksDB has handed to the operating system is on disk. -1: nothing is known. */
int kv_log_sync(struct kv_log_sync *s, rocksdb_t *db, const char *folder, struct err *e) MUST_CHECK;
void kv_log_sync_free(struct kv_log_sync *s);
