/* A load into RocksDB: the pairs go into table files beside the store, which takes the files over
 * as they are, all at once. Private to engine/.
 *
 * The files lie in the data folder's loading/; what a crash has left there is removed when the
 * store is opened.
 */
#pragma once

#include <rocksdb/c.h>

#include "engine/kv.h"

struct kv_load_spec {
    const struct kv_ops *ops;
    rocksdb_t *db;
    const rocksdb_options_t *options; /* of the store: its tables' form and prefixes */
    const char *data_dir;
    uint64_t number; /* another one for every load since the store was opened */
};

struct kv_load *kv_load_new(const struct kv_load_spec *spec, struct err *e) MUST_CHECK;
int kv_load_add(struct kv_load *load, struct slice key, struct slice value, struct err *e) MUST_CHECK;
int kv_load_finish(struct kv_load *load, struct err *e) MUST_CHECK;
void kv_load_free(struct kv_load *load);
/* Removes what loads of an earlier run have left. */
int kv_load_clean(const char *data_dir, struct err *e) MUST_CHECK;
