/* RocksDB's options, and the functions that RocksDB calls: merging rows, prefixes of keys. */
#include <stdlib.h>

#include "engine/engine.h"
#include "engine/local/rocksdb/rocks.h"

/* Since RocksDB 9.7 a log with manual_wal_flush stays unusable after one failed write
 * (https://github.com/facebook/rocksdb/pull/12995), so that a server would have to be restarted
 * after a full disk. With these versions every write reaches the operating system before it
 * returns, which has no measurable cost. Older versions, Debian's too, abort when a write meets a
 * sync that fails, so with them fewer writes to the log are safer. */
enum { GATHERS_LOG = TALLY_ROCKSDB_MAJOR < 10 };

/* ---- callbacks: state is the struct kv ---- */

static void keep_state(void *state) { (void)state; }

static struct slice slice_at(const char *p, size_t n) { return slice_of(p, n); }

struct operands {
    struct kv *kv;
    const char *const *at;
    const size_t *sizes;
};

static int merge_two(const struct kv *kv, struct slice a, struct slice b, struct buf *out) {
    return !rocks_may_merge(a.n + b.n) || kv->o.merge(a, b, out) || buf_failed(out) ? -1 : 0;
}

/* Folds each half first, so that small operands are joined before they meet a large one, and each
 * byte is written a logarithmic number of times. The result is in out, or, of a single operand,
 * where the operand is. p NULL: damaged, or too much for the read (rocks_may_merge). */
static struct slice fold_operands(const struct operands *o, int from, int n, struct buf *out) {
    if (n == 1) return slice_at(o->at[from], o->sizes[from]);
    struct buf halves[2];
    for (int i = 0; i < 2; i++) buf_init(&halves[i], 0);
    struct slice a = fold_operands(o, from, n / 2, &halves[0]),
                 b = a.p ? fold_operands(o, from + n / 2, n - n / 2, &halves[1]) : a;
    int rc = !b.p || merge_two(o->kv, a, b, out);
    for (int i = 0; i < 2; i++) buf_fini(&halves[i]);
    return rc ? (struct slice){0} : buf_slice(out);
}

static char *give(struct buf *out, bool whole, unsigned char *ok, size_t *len) {
    *ok = whole && !buf_failed(out);
    if (!*ok) buf_fini(out);
    *len = out->n;
    return (char *)out->p;
}

static char *partial_merge(void *state, const char *key, size_t key_len, const char *const *ops, const size_t *lens,
                           int n, unsigned char *ok, size_t *len) {
    (void)key, (void)key_len;
    struct buf out;
    buf_init(&out, 0);
    struct slice all = fold_operands(&(struct operands){state, ops, lens}, 0, n, &out);
    if (all.p && !out.n) buf_put_slice(&out, all);
    return give(&out, all.p != NULL, ok, len);
}

static char *full_merge(void *state, const char *key, size_t key_len, const char *value, size_t value_len,
                        const char *const *ops, const size_t *lens, int n, unsigned char *ok, size_t *len) {
    if (!value) return partial_merge(state, key, key_len, ops, lens, n, ok, len);
    struct buf folded, out;
    buf_init(&folded, 0);
    buf_init(&out, 0);
    struct slice all = fold_operands(&(struct operands){state, ops, lens}, 0, n, &folded);
    bool whole = all.p && !merge_two(state, slice_at(value, value_len), all, &out);
    buf_fini(&folded);
    return give(&out, whole, ok, len);
}

static void free_merged(void *state, const char *value, size_t n) {
    (void)state, (void)n;
    free((char *)(uintptr_t)value);
}

static const char *merge_name(void *state) {
    (void)state;
    return "tally.row";
}

static char *prefix_of(void *state, const char *key, size_t n, size_t *len) {
    struct kv *kv = state;
    *len = kv->o.prefix_len(slice_at(key, n));
    return (char *)(uintptr_t)key;
}

static unsigned char has_prefix(void *state, const char *key, size_t n) {
    struct kv *kv = state;
    return kv->o.prefix_len(slice_at(key, n)) > 0;
}

static const char *prefix_name(void *state) {
    (void)state;
    return "tally.partition";
}

/* A callback that RocksDB never called, and that its API lacks since 11.0. */
#if TALLY_ROCKSDB_MAJOR < 11
#define IN_RANGE has_prefix,
#else
#define IN_RANGE
#endif

/* ---- opening ---- */

size_t rocks_memtable_bytes(const struct kv *kv) {
    return kv->o.memtable_bytes ? kv->o.memtable_bytes : (size_t)64 << 20;
}

/* Blocks have XXH3 checksums, which cost a fraction of CRC-32C where that is computed in software,
 * as in Debian's RocksDB. Every RocksDB since 6.6 reads format 5, and since 6.27 this checksum, so
 * a data folder works with every RocksDB that Tally is built with. */
static void set_table_options(struct kv *kv) {
    enum { XXH3 = 4 };
    rocksdb_block_based_table_options_t *t = rocksdb_block_based_options_create();
    /* a read of a row that is not in memory decompresses one block; blocks of half the size would
     * double the memory of indexes, to save 7 % of such a read */
    rocksdb_block_based_options_set_block_size(t, 8 << 10);
    rocksdb_block_based_options_set_checksum(t, XXH3);
    rocksdb_block_based_options_set_format_version(t, 5);
    rocksdb_block_based_options_set_filter_policy(t, rocksdb_filterpolicy_create_bloom_full(10));
    kv->cache = rocksdb_cache_create_lru(kv->o.block_cache_bytes ? kv->o.block_cache_bytes : (size_t)128 << 20);
    rocksdb_block_based_options_set_block_cache(t, kv->cache);
    rocksdb_block_based_options_set_cache_index_and_filter_blocks(t, 0); /* resident, outside the cache */
    rocksdb_options_set_block_based_table_factory(kv->options, t);
    rocksdb_block_based_options_destroy(t);
}

/* Level sizes are derived from the last level: each level holds a tenth of the next, so nine tenths
 * of all rows lie once, in the last one. A compaction rewrites a file and the files below it, and
 * deletes the old ones only afterwards, so small files need little extra room. Deeper levels have
 * larger files, because they have more of them. */
static void set_levels(struct kv *kv) {
    /* FLUSHED: number of files that starts a compaction. FIRST and FILES: a memtable's size divided
     * by the size of the first level and of one of its files. GROWTH: factor of the file size from
     * level to level */
    enum { FLUSHED = 2, FIRST = 2, FILES = 8, GROWTH = 2 };
    int compression[7] = {rocksdb_no_compression, rocksdb_no_compression, rocksdb_lz4_compression,
                          rocksdb_lz4_compression,
                          /* entry 0 is for flushed files, entry 1 for the first level in use, the
                           * others for the levels below it */
                          rocksdb_lz4_compression, rocksdb_lz4_compression, rocksdb_lz4_compression};
    rocksdb_options_set_compression_per_level(kv->options, compression, 7);
    rocksdb_options_set_level_compaction_dynamic_level_bytes(kv->options, 1);
    rocksdb_options_set_level0_file_num_compaction_trigger(kv->options, FLUSHED);
    rocksdb_options_set_max_bytes_for_level_base(kv->options, rocks_memtable_bytes(kv) / FIRST);
    rocksdb_options_set_target_file_size_base(kv->options, rocks_memtable_bytes(kv) / FILES);
    rocksdb_options_set_target_file_size_multiplier(kv->options, GROWTH);
}

void rocks_set_options(struct kv *kv) {
    enum { AHEAD = 1 << 20, WINDOW = 2 * KV_DENSE };
    rocksdb_options_t *o = kv->options = rocksdb_options_create();
    /* kAbsoluteConsistency: kv_check has cut what a crash tore; kPointInTimeRecovery where it may
     * not */
    rocksdb_options_set_wal_recovery_mode(o, kv->o.damage == KV_DAMAGE_LOOK ? 2 : 1);
    /* no folder, so RocksDB runs without its own log file */
    if (kv->view) rocksdb_options_set_db_log_dir(o, "/dev/null");
    rocksdb_options_set_paranoid_checks(o, 1);
    rocksdb_options_set_write_buffer_size(o, rocks_memtable_bytes(kv));
    rocksdb_options_set_max_write_buffer_number(o, ENG_MEMTABLES);
    rocksdb_options_set_arena_block_size(o, kv->o.memtable_bytes && kv->o.memtable_bytes < 8 << 20
                                                ? kv->o.memtable_bytes / 8
                                                : 1 << 20);
    set_levels(kv);
    rocksdb_options_set_max_background_jobs(o, kv->o.background_jobs ? (int)kv->o.background_jobs : 2);
    rocksdb_options_set_bytes_per_sync(o, 1 << 20);
    /* AHEAD bytes of the log and the MANIFEST are allocated in advance, where RocksDB would
     * allocate 1.1 memtables, which a log seldom fills, and 4 MB. The option ends no log: with one
     * column family the end of a log follows from the memtable's size (rocksdb/options.h) */
    rocksdb_options_set_max_total_wal_size(o, AHEAD);
    rocksdb_options_set_manifest_preallocation_size(o, AHEAD);
    rocksdb_options_set_manual_wal_flush(o, GATHERS_LOG && !kv->o.write_through);
    rocksdb_options_set_keep_log_file_num(o, 2);
    rocksdb_options_set_max_log_file_size(o, 4 << 20);
    /* fatal: Debian's RocksDB aborts at the next line when one could not be written, on a full disk
     * say */
    rocksdb_options_set_info_log_level(o, 4);
    rocksdb_options_set_merge_operator(
        o, rocksdb_mergeoperator_create(kv, keep_state, full_merge, partial_merge, free_merged, merge_name));
    if (kv->o.prefix_len)
        rocksdb_options_set_prefix_extractor(
            o, rocksdb_slicetransform_create(kv, keep_state, prefix_of, has_prefix, IN_RANGE prefix_name));
    /* a client waits while a state is put back: use one thread for the few files, and read no
     * statistics of them */
    if (kv->o.rows || kv->view) {
        rocksdb_options_set_max_file_opening_threads(o, 1);
        rocksdb_options_set_skip_stats_update_on_db_open(o, 1);
    }
    /* readers of a quiet store would otherwise pass tombstones forever */
    rocksdb_options_add_compact_on_deletion_collector_factory(o, WINDOW, KV_DENSE);
    set_table_options(kv);
}

