/* Frees the disk space that dropped ranges still hold: files that hold other tables' keys, too, and
 * all of level 0, which file deletion does not touch.
 *
 * A separate thread compacts the deleted ranges, one after the other. So the thread that dropped
 * a range does not wait, and readers soon no longer pass the range's tombstone. A compaction in
 * RocksDB chooses its levels when it begins. Keys that another compaction was moving to a lower
 * level at that time remain, below the tombstone. So the thread checks the rest of a range, and compacts
 * it again.
 *
 * Then it has RocksDB delete the files that are in no version any more. RocksDB deletes them itself
 * when the last user of their version is a compaction, a flush or an iterator. After a get that was
 * under way they stay, until the next flush. So the thread waits until no old version is in use,
 * for at most SETTLE_MS: what is used for longer is used by a compaction or by an iterator. The
 * thread exists while there is something to do. Private to engine/.
 */
#pragma once

#include <pthread.h>
#include <rocksdb/c.h>
#include <stdbool.h>

#include "base/slice.h"

enum { KV_TRIM_RANGES = 256, KV_TRIM_KEY = 8 };

struct kv_trim {
    rocksdb_t *db;
    pthread_mutex_t lock;
    pthread_t thread;
    bool running; /* the thread exists and takes ranges */
    bool joinable, closing;
    bool unlinks; /* files of dropped ranges may be left that RocksDB does not delete */
    uint32_t n;
    struct kv_trim_range {
        uint8_t from[KV_TRIM_KEY], to[KV_TRIM_KEY];
        size_t from_n, to_n;
    } ranges[KV_TRIM_RANGES];
};

void kv_trim_init(struct kv_trim *t, rocksdb_t *db);
/* Adds a deleted range, with keys of at most KV_TRIM_KEY bytes. When little of it is left in table
 * files, or too many ranges wait, its compaction is left to ordinary ones. */
void kv_trim_add(struct kv_trim *t, struct slice from, struct slice to);
/* Bytes of a range in table files, approximately. */
uint64_t kv_trim_bytes(rocksdb_t *db, struct slice from, struct slice to);
/* Stops the compaction under way and waits for the thread. Called before the store is closed. */
void kv_trim_fini(struct kv_trim *t);
