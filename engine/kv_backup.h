/* Backups of a store: RocksDB's backup engine, with checksums that are looked at.
 *
 * A folder of backups holds `tally.backups` (which says that it is one) and RocksDB's meta/,
 * private/ and shared_checksum/. Table files are shared between the backups of a folder, so that a
 * backup adds what is new since the one before. meta/<number> names the files of a backup, and the
 * CRC-32C of each, as it was when the file was copied. A backup is there once its meta file is,
 * which comes last.
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
