/* The store on RocksDB's C API (Debian's 7.8.3 and later).
 *
 * The log is written without sync and, with Debian's RocksDB, with manual_wal_flush: only sync()
 * brings it to disk, so one sync serves the writes of all threads. unordered_write must stay off
 * with it: together they deadlock on the first write (7.8.3).
 *
 * The data folder has rows/ (RocksDB's folder; or rows.N, when a saved state was put back:
 * engine/local/rocksdb/kv_folder.h) and tally.stamp, which names that folder and lists what it must
 * contain (engine/local/rocksdb/kv_stamp.h). The folder is checked before RocksDB opens it
 * (engine/local/rocksdb/kv_check.h). RocksDB then finds no torn end, so it runs in its strict mode.
 *
 * A store without a data folder has its files in memory, and neither log nor stamp.
 */
#include <assert.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/log.h"
#include "engine/local/rocksdb/kv_check.h"
#include "engine/local/rocksdb/kv_folder.h"
#include "engine/local/rocksdb/rocks.h"

int rocks_failed(char *text, const char *what, struct err *e) {
    err_set(e, ERR_SERVER, "%s: %s", what, text);
    rocksdb_free(text);
    return -1;
}

int rocks_injected(enum fault_point point, const char *what, struct err *e) {
    return fault_hit(point) ? err_set(e, ERR_SERVER, "%s: injected fault", what) : 0;
}

void rocks_count_nothing(void) {
    enum { DISABLE = 1 };
    rocksdb_set_perf_level(DISABLE);
}

uint64_t rocks_property(rocksdb_t *db, const char *name, uint64_t otherwise) {
    uint64_t n = 0;
    return rocksdb_property_int(db, name, &n) ? otherwise : n;
}

void kv_close(struct kv *kv) {
    if (kv->db) {
        kv_trim_fini(&kv->trim);
        if (!kv->retired && !kv->view && !kv->memory) rocks_renew_stamp(kv);
        rocksdb_close(kv->db);
    }
    for (int i = 0; i < 2; i++) {
        rocksdb_writeoptions_destroy(kv->write[i]);
        rocksdb_readoptions_destroy(kv->read[i]);
    }
    if (kv->options) rocksdb_options_destroy(kv->options);
    if (kv->cache) rocksdb_cache_destroy(kv->cache);
    if (kv->memory) rocksdb_env_destroy(kv->memory);
    if (kv->log_fd >= 0) close(kv->log_fd);
    kv_stamp_fini(&kv->stamp);
    pthread_rwlock_destroy(&kv->log_lock);
    struct err e = {0};
    if (kv->retired && kv_remove_folder(kv->rows, &e)) log_warn("%s", e.text);
    free(kv);
}

void kv_retire(struct kv *kv) { kv->retired = true; }
uint32_t kv_iterators(const struct kv *kv) { return atomic_load(&kv->iterators); }

/* ---- insert hints of memtables (near_len) ---- */

/* Whether the stored keys may need more insert hints than a quarter of a memtable holds. If writes
 * were spread evenly over so many prefixes, each row would make a hint that no other row uses.
 * Keys are counted by their first near_len - 1 bytes; each such beginning counts as 256 hints, one
 * for each value of the last byte. Read errors are ignored here, since later reads report them. The
 * blocks read do not stay in the cache. */
static bool has_many_hints(struct kv *kv) {
    enum { OF = 4, HINT_BYTES = 300, VALUES = 256 };
    uint8_t at[KV_NEAR_MAX] = {0};
    size_t n = kv->o.near_len - 1, may = rocks_memtable_bytes(kv) / OF / (HINT_BYTES * VALUES), found = 0;
    rocksdb_readoptions_t *o = rocks_read_options(ENG_TIER_ANY);
    rocksdb_readoptions_set_total_order_seek(o, 1);
    rocksdb_readoptions_set_fill_cache(o, 0);
    rocksdb_iterator_t *i = rocksdb_create_iterator(kv->db, o);
    rocksdb_iter_seek_to_first(i);
    for (bool more = true; more && found <= may && rocksdb_iter_valid(i); found++) {
        struct slice key;
        key.p = (const uint8_t *)rocksdb_iter_key(i, &key.n);
        memset(at, 0, n);
        memcpy(at, key.p, key.n < n ? key.n : n);
        size_t last = n; /* to the least key after all keys with this prefix, if there is one */
        while (last && at[last - 1] == UINT8_MAX) at[--last] = 0;
        more = last > 0;
        if (more) at[last - 1]++;
        rocksdb_iter_seek(i, (const char *)at, n);
    }
    rocksdb_iter_destroy(i);
    rocksdb_readoptions_destroy(o);
    return found > may;
}

/* Opens the store; hints: with insert hints, for which the C API has no function. */
static int open_db(struct kv *kv, bool hints, struct err *e) {
    char *text = NULL, what[100];
    rocksdb_options_t *o = kv->options;
    if (hints) {
        snprintf(what, sizeof(what), "memtable_insert_with_hint_prefix_extractor=fixed:%zu", kv->o.near_len);
        o = rocksdb_options_create();
        rocksdb_get_options_from_string(kv->options, what, o, &text);
    }
    if (!text) kv->db = rocksdb_open(o, kv->rows, &text);
    if (hints) rocksdb_options_destroy(o);
    return text ? rocks_failed(text, "cannot open the data folder", e) : 0;
}

/* Opens the store, and opens it again without insert hints if its keys have too many beginnings:
 * these can be counted only in an open store. */
static int open_store(struct kv *kv, struct err *e) {
    assert(kv->o.near_len <= KV_NEAR_MAX);
    if (open_db(kv, kv->o.near_len > 0, e)) return -1;
    if (kv->o.near_len && has_many_hints(kv)) {
        rocksdb_close(kv->db);
        kv->db = NULL;
        if (open_db(kv, false, e)) return -1;
    }
    kv_trim_init(&kv->trim, kv->db);
    return 0;
}

/* ---- replay of the log ---- */

/* Writes the logs (bytes) of a store that was not closed cleanly to table files before the store is opened.
 * RocksDB reads the rows of a log into a memtable that is always sorted. Each insertion finds its
 * position, which takes most of a start after a kill. No thread reads while a store is being
 * opened, so here the rows go to memtables that are sorted once each, when their table file is
 * written. The store is then opened with no rows in its logs. In all other respects RocksDB replays
 * the log as in every start. */
static int replay(struct kv *kv, uint64_t bytes, struct err *e) {
    /* WORTH_IT: bytes of logs from which a replay pays, since opening a store once more writes and
     * syncs a few files. Memtables of a quarter sort faster per row and reuse each other's memory;
     * for a long log they are larger, since more than about MEMTABLES files would make writers wait
     * for compactions. */
    enum { WORTH_IT = 2 << 20, OF = 4, MEMTABLES = 8, FILES = 16 /* few, since the store opens them again */ };
    char *text = NULL;
    if (bytes < WORTH_IT) return 0;
    rocksdb_options_t *o = rocksdb_options_create_copy(kv->options);
    size_t part = rocks_memtable_bytes(kv) / OF;
    rocksdb_options_set_create_if_missing(o, 0);
    rocksdb_options_set_write_buffer_size(o, part > bytes / MEMTABLES ? part : bytes / MEMTABLES);
    rocksdb_options_set_memtable_vector_rep(o);
    rocksdb_options_set_allow_concurrent_memtable_write(o, 0); /* which that has not */
    rocksdb_options_set_disable_auto_compactions(o, 1);
    rocksdb_options_set_max_open_files(o, FILES);
    rocksdb_options_set_max_file_opening_threads(o, 1);
    rocksdb_options_set_skip_stats_update_on_db_open(o, 1);
    rocksdb_t *db = rocksdb_open(o, kv->rows, &text);
    if (db) rocksdb_close(db);
    rocksdb_options_destroy(o);
    if (text) return rocks_failed(text, "cannot open the data folder", e);
    log_info("%" PRIu64 " bytes of the log are in table files", bytes);
    return 0;
}

/* ---- opening ---- */

static int open_in_folder(struct kv *kv, struct err *e) {
    const char *folder = kv->o.data_dir;
    char loading[PATH_MAX];
    if (kv_path(kv->stamp_path, folder, "tally.stamp", e) || kv_path(loading, folder, ROCKS_LOADING, e) ||
        kv_make_folder(folder, e))
        return -1;
    int stamped = kv->o.rows ? 0 : kv_stamp_read(kv->stamp_path, &kv->stamp, e);
    if (stamped < 0) return -1;
    const char *rows = kv->o.rows ? kv->o.rows : stamped ? kv->stamp.rows : "rows";
    if (kv_path(kv->rows, folder, rows, e) || (stamped && kv_state_clean(folder, rows, e)) ||
        (!kv->o.rows && kv_remove_folder(loading, e)) || kv_make_folder(kv->rows, e))
        return -1;
    uint64_t log_bytes;
    int found = kv_check(kv->rows, stamped ? &kv->stamp : NULL, kv->o.damage, &log_bytes, e);
    if (found < 0) return -1;
    rocks_set_options(kv);
    rocksdb_options_set_create_if_missing(kv->options, !found);
    rocks_count_nothing();
    if (replay(kv, log_bytes, e)) return -1;
    return open_store(kv, e) ? -1 : rocks_write_stamp(kv, e);
}

static struct kv *rocks_new(const struct kv_options *o, struct err *e) {
    struct kv *kv = calloc(1, sizeof(*kv));
    if (!kv) return err_nomem(e), NULL;
    kv->o = *o;
    kv->log_fd = -1;
    /* A thread that waits for writing goes before new readers. Otherwise a stream of writes to the
     * store would keep the flush of the log waiting. */
    pthread_rwlockattr_t a;
    pthread_rwlockattr_init(&a);
    pthread_rwlockattr_setkind_np(&a, PTHREAD_RWLOCK_PREFER_WRITER_NONRECURSIVE_NP);
    pthread_rwlock_init(&kv->log_lock, &a);
    pthread_rwlockattr_destroy(&a);
    kv->read[ENG_TIER_CACHE] = rocks_read_options(ENG_TIER_CACHE);
    kv->read[ENG_TIER_ANY] = rocks_read_options(ENG_TIER_ANY);
    for (int patience = 0; patience < 2; patience++) {
        kv->write[patience] = rocksdb_writeoptions_create();
        rocksdb_writeoptions_set_no_slowdown(kv->write[patience], !patience);
    }
    return kv;
}

struct kv *kv_open(const struct kv_options *o, struct err *e) {
    struct kv *kv = rocks_new(o, e);
    if (!kv) return NULL;
    if (!o->data_dir) {
        kv->memory = rocksdb_create_mem_env();
        snprintf(kv->rows, sizeof(kv->rows), "/rows");
        rocks_set_options(kv);
        rocksdb_options_set_env(kv->options, kv->memory);
        rocksdb_options_set_create_if_missing(kv->options, 1);
        for (int patience = 0; patience < 2; patience++) rocksdb_writeoptions_disable_WAL(kv->write[patience], 1);
        rocks_count_nothing();
    }
    if (!(o->data_dir ? open_in_folder(kv, e) : open_store(kv, e))) return kv;
    kv_close(kv);
    return NULL;
}

struct kv *kv_view(const struct kv_options *o, const char *folder, struct err *e) {
    struct kv *kv = rocks_new(o, e);
    char *text = NULL;
    if (!kv) return NULL;
    kv->view = true;
    rocks_set_options(kv);
    kv->db = rocksdb_open_for_read_only(kv->options, folder, 0, &text);
    if (!text) {
        kv_trim_init(&kv->trim, kv->db);
        return kv;
    }
    (void)rocks_failed(text,
                 kv->o.damage == KV_DAMAGE_LOOK ? "the store cannot be opened" : "the saved state cannot be opened", e);
    kv_close(kv);
    return NULL;
}
