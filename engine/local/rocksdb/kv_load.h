/* A bulk load into RocksDB: the pairs are written to table files beside the store, which then takes
 * over all the files at once, unchanged. Private to engine/.
 *
 * The files are in the data folder's loading/; opening the store removes files that a crash has
 * left there.
 */
#pragma once

#include <rocksdb/c.h>

#include "engine/kv.h"

struct kv_load_spec {
    const struct kv_ops *ops;
    rocksdb_t *db;
    const rocksdb_options_t *options; /* the store's options, for the format and prefixes of its tables */
    const char *data_dir;
    uint64_t number; /* different for every load since the store was opened */
};

struct kv_load *kv_load_new(const struct kv_load_spec *spec, struct err *e) MUST_CHECK;
int kv_load_add(struct kv_load *load, struct slice key, struct slice value, struct err *e) MUST_CHECK;
int kv_load_finish(struct kv_load *load, struct err *e) MUST_CHECK;
void kv_load_free(struct kv_load *load);
/* Removes the files that loads of an earlier run have left. */
int kv_load_clean(const char *data_dir, struct err *e) MUST_CHECK;
