/* Gives back what dropped ranges still hold on disk: files that hold other tables' keys, too, and
 * all of level 0, which file deletion does not touch.
 *
 * A range that was deleted is compacted on a thread of its own, one after the other, so that
 * neither the thread that dropped it waits nor readers pass the deletion's mark for long. RocksDB
 * looks for the levels that have something of the range when it begins: what another compaction had
 * in hand then, and has taken to a lower level since, is there still, below the mark. So what is
 * left is looked at, and compacted again. The thread is there while there is something to do.
 * Private to engine/.
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
    bool running; /* the thread looks for ranges */
    bool joinable, closing;
    uint32_t n;
    struct {
        uint8_t from[KV_TRIM_KEY], to[KV_TRIM_KEY];
        size_t from_n, to_n;
    } ranges[KV_TRIM_RANGES];
};

void kv_trim_init(struct kv_trim *t, rocksdb_t *db);
/* The range, keys of at most KV_TRIM_KEY bytes, has been deleted. When little of it is left, or
 * there are too many at once, ordinary compactions give back its space. */
void kv_trim_add(struct kv_trim *t, struct slice from, struct slice to);
/* About what table files hold of a range. */
uint64_t kv_trim_bytes(rocksdb_t *db, struct slice from, struct slice to);
/* Stops what is under way and waits for the thread; before the store is closed. */
void kv_trim_fini(struct kv_trim *t);
