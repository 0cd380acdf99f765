/* The logs of a store that did not end well, taken into table files before it is opened. Private to
 * engine/.
 *
 * RocksDB takes rows of a log into a memtable that is sorted at any time: each is put in its place
 * as it comes, which is most of a start after a kill. Nobody reads while a store is being opened,
 * so here they go into some, one after the other, each of which is sorted once, when its table file
 * is written; the store is then opened with no rows in its logs. What RocksDB does for the log in
 * doing so, and in what order, is what it does in every start.
 *
 * These memtables remember no places either (near_len, engine/kv.h), so that a log in which ranges
 * begin with any keys does no harm here.
 */
#pragma once

#include <rocksdb/c.h>

#include "base/err.h"

/* options: those that the store is then opened with. kv_check has found the folder sound. 0, also
 * where there is too little for it to be worth it and it need not be; -1. */
int kv_replay(const rocksdb_options_t *options, const char *rows, bool must, struct err *e) MUST_CHECK;
