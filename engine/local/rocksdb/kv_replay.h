/* Writes the logs of a store that was not closed cleanly to table files before the store is opened.
 * Private to engine/.
 *
 * RocksDB reads the rows of a log into a memtable that is always sorted. Each insertion finds its
 * position, which takes most of a start after a kill. No thread reads while a store is being
 * opened, so here the rows go to memtables that are sorted once each, when their table file is
 * written. The store is then opened with no rows in its logs. In all other respects RocksDB replays
 * the log as in every start.
 *
 * These memtables keep no insert hints (near_len, engine/local/rocksdb/kv.h), so a log in which ranges begin with
 * arbitrary keys is as fast.
 */
#pragma once

#include <rocksdb/c.h>

#include "base/err.h"

/* options: those with which the store is opened afterwards. kv_check has found the folder sound.
 * Returns 0 also without a replay, when the logs are too small to gain from one and must is false;
 * -1: error. */
int kv_replay(const rocksdb_options_t *options, const char *rows, bool must, struct err *e) MUST_CHECK;
