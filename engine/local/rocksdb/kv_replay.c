#include "engine/local/rocksdb/kv_replay.h"

#include <inttypes.h>

#include "base/log.h"
#include "engine/local/rocksdb/kv_stamp.h"

/* Bytes of logs from which a replay pays: opening a store once more writes and syncs a few
 * files. */
enum { WORTH_IT = 2 << 20 };

static uint64_t bytes_of_logs(const struct kv_stamp *found) {
    uint64_t n = 0;
    for (uint32_t i = 0; i < found->n_logs; i++) n += found->logs[i].bytes;
    return n;
}

/* The size of a memtable. Small ones sort faster per row, and reuse each other's memory. For a long
 * log it is larger, since more than about FILES files would make writers wait for compactions. */
static size_t sorted_at_once(const rocksdb_options_t *options, uint64_t bytes) {
    enum { OF = 4, FILES = 8 };
    size_t part = rocksdb_options_get_write_buffer_size((rocksdb_options_t *)(uintptr_t)options) / OF;
    return part > bytes / FILES ? part : bytes / FILES;
}

/* Options that open as few table files as possible, since the store opens them again. */
static rocksdb_options_t *options_of_replay(const rocksdb_options_t *options, uint64_t bytes) {
    enum { FILES = 16 };
    rocksdb_options_t *o = rocksdb_options_create_copy((rocksdb_options_t *)(uintptr_t)options);
    rocksdb_options_set_create_if_missing(o, 0);
    rocksdb_options_set_write_buffer_size(o, sorted_at_once(options, bytes));
    rocksdb_options_set_memtable_vector_rep(o);
    rocksdb_options_set_allow_concurrent_memtable_write(o, 0); /* which that has not */
    rocksdb_options_set_disable_auto_compactions(o, 1);
    rocksdb_options_set_max_open_files(o, FILES);
    rocksdb_options_set_max_file_opening_threads(o, 1);
    rocksdb_options_set_skip_stats_update_on_db_open(o, 1);
    return o;
}

int kv_replay(const rocksdb_options_t *options, const char *rows, bool must, struct err *e) {
    struct kv_stamp found;
    char *text = NULL;
    if (kv_stamp_take(rows, &found, e)) return -1;
    uint64_t bytes = bytes_of_logs(&found);
    if (!found.manifest || (bytes < WORTH_IT && !must)) return 0;
    rocksdb_options_t *o = options_of_replay(options, bytes);
    rocksdb_t *db = rocksdb_open(o, rows, &text);
    if (db) rocksdb_close(db);
    rocksdb_options_destroy(o);
    if (!text) {
        log_info("%" PRIu64 " bytes of the log are in table files", bytes);
        return 0;
    }
    err_set(e, ERR_SERVER, "cannot open the data folder: %s", text);
    rocksdb_free(text);
    return -1;
}
