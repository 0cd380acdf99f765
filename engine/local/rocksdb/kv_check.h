/* Checks that a store on disk is whole, before RocksDB opens it. RocksDB would continue with the
 * readable part of a damaged store and delete the rest.
 *
 * Refused, with the file and what can be done: a store that is not the stamp's
 * (engine/local/rocksdb/kv_stamp.h) or is gone; a MANIFEST or a log that is shorter than the stamp
 * says, or missing; damage in the part of a MANIFEST that the stamp covers, or before a whole record of
 * it that is no sector which never reached the disk; damage in a log before anything that was
 * on disk when it was written (engine/local/rocksdb/kv_log.h). Accepted: a tail of the MANIFEST or
 * of the logs that never was known to be on disk, torn, full of zeros or of garbage. It is cut off.
 */
#pragma once

#include "engine/local/rocksdb/kv.h"
#include "engine/local/rocksdb/kv_stamp.h"

enum { KV_CHECK_UNREAD = -2 };
/* stamp NULL: the folder never had one. Returns 1 if there is a store to open, and *log_bytes is the size
 * of the logs that RocksDB will read, or 0 if there is none, and a new one may be made; -1; UNREAD, with e
 * set: its MANIFEST or its logs are such that RocksDB must not open it either (unreadable, sparse). */
int kv_check(const char *folder, const struct kv_stamp *stamp, enum kv_damage damage, uint64_t *log_bytes,
             struct err *e) MUST_CHECK;
