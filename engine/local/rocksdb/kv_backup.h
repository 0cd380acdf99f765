/* Backups of a store: RocksDB's backup engine, with verified checksums.
 *
 * A folder of backups has `tally.backups`, which marks it as one, and RocksDB's meta/, private/ and
 * shared_checksum/. The backups of a folder share table files, so a backup adds only the files that
 * are new since the one before. meta/<number> names the files of a backup, with the CRC-32C of each
 * at the time of its copy. A backup exists once its meta file does, which is written last.
 */
#pragma once

#include <rocksdb/c.h>
#include <stdint.h>

#include "base/err.h"
#include "engine/engine.h"

/* Makes a backup of a running store, which may be written to meanwhile. Everything written before
 * the call is in it. keep: how many of the newest backups stay, older ones are deleted; 0: all
 * stay. One thread at a time for a folder. */
int kv_backup_make(rocksdb_t *db, const char *folder, uint32_t keep, struct eng_backup *out, struct err *e) MUST_CHECK;
