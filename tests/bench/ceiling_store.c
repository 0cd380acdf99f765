#include "tests/bench/ceiling_store.h"

#include <pthread.h>
#include <rocksdb/c.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/murmur3.h"

enum { KEY_BYTES = 4 + 8 + 2 + 4 + 1 + 5, PREFIX_BYTES = 18 };

struct ceiling_store {
    rocksdb_t *db;
    rocksdb_options_t *options;
    rocksdb_block_based_table_options_t *table;
    rocksdb_cache_t *cache;
    rocksdb_readoptions_t *reads, *slices;
    rocksdb_writeoptions_t *writes;
    rocksdb_writebatch_t *batch;
    bool fsync, stopping;
    uint64_t written; /* batches; guarded by lock */
    _Atomic uint64_t durable;
    pthread_t committer;
    pthread_mutex_t lock;
    pthread_cond_t wanted;
    void (*on_durable)(void *arg);
    void *arg;
};

static void make_key(uint8_t key[KEY_BYTES], enum ceiling_table table, uint32_t pk, uint32_t ck) {
    uint8_t pk_bytes[4];
    store_u32(pk_bytes, pk);
    store_u32(key, table);
    store_u64(key + 4, (uint64_t)murmur3_token(slice_of(pk_bytes, 4)) ^ 1ull << 63);
    store_u16(key + 12, 4);
    memcpy(key + 14, pk_bytes, 4);
    key[18] = 3;
    key[19] = 1;
    store_u32(key + 20, ck ^ 1u << 31);
}

static void check(char *error) {
    if (!error) return;
    fprintf(stderr, "rocksdb: %s\n", error);
    exit(1);
}

static void *commit_loop(void *arg) {
    struct ceiling_store *s = arg;
    char *error = NULL;
    pthread_mutex_lock(&s->lock);
    while (!s->stopping) {
        uint64_t target = s->written;
        if (target == atomic_load(&s->durable)) {
            pthread_cond_wait(&s->wanted, &s->lock);
            continue;
        }
        pthread_mutex_unlock(&s->lock);
        rocksdb_flush_wal(s->db, 1, &error);
        check(error);
        atomic_store(&s->durable, target);
        s->on_durable(s->arg);
        pthread_mutex_lock(&s->lock);
    }
    pthread_mutex_unlock(&s->lock);
    return NULL;
}

static void set_options(struct ceiling_store *s) {
    s->options = rocksdb_options_create();
    s->table = rocksdb_block_based_options_create();
    s->cache = rocksdb_cache_create_lru((size_t)CEILING_CACHE_MB << 20);
    rocksdb_block_based_options_set_block_cache(s->table, s->cache);
    rocksdb_block_based_options_set_block_size(s->table, 8192);
    rocksdb_block_based_options_set_checksum(s->table, 4); /* XXH3, as the engine has it */
    rocksdb_block_based_options_set_filter_policy(s->table, rocksdb_filterpolicy_create_bloom_full(10));
    rocksdb_options_set_block_based_table_factory(s->options, s->table);
    rocksdb_options_set_create_if_missing(s->options, 1);
    rocksdb_options_set_write_buffer_size(s->options, (size_t)CEILING_MEMTABLE_MB << 20);
    rocksdb_options_set_max_write_buffer_number(s->options, CEILING_MEMTABLES);
    rocksdb_options_set_compression(s->options, rocksdb_lz4_compression);
    rocksdb_options_set_prefix_extractor(s->options, rocksdb_slicetransform_create_fixed_prefix(PREFIX_BYTES));
    rocksdb_options_set_manual_wal_flush(s->options, 1);
}

/* What tallyd does without, the least work does without, too: counters of what this thread does,
 * which is the loop's, and range deletions beside rows. */
static void set_as_tallyd(struct ceiling_store *s) {
    enum { DISABLE = 1 };
    rocksdb_set_perf_level(DISABLE);
    rocksdb_readoptions_set_ignore_range_deletions(s->slices, 1);
}

struct ceiling_store *ceiling_store_open(const char *dir, bool fsync, void (*on_durable)(void *arg), void *arg) {
    struct ceiling_store *s = calloc(1, sizeof(*s));
    if (!s) return NULL;
    char *error = NULL;
    s->fsync = fsync;
    s->on_durable = on_durable;
    s->arg = arg;
    set_options(s);
    s->db = rocksdb_open(s->options, dir, &error);
    check(error);
    s->reads = rocksdb_readoptions_create();
    s->slices = rocksdb_readoptions_create();
    set_as_tallyd(s);
    s->writes = rocksdb_writeoptions_create();
    s->batch = rocksdb_writebatch_create();
    pthread_mutex_init(&s->lock, NULL);
    pthread_cond_init(&s->wanted, NULL);
    pthread_create(&s->committer, NULL, commit_loop, s);
    return s;
}

void ceiling_store_close(struct ceiling_store *s) {
    pthread_mutex_lock(&s->lock);
    s->stopping = true;
    pthread_cond_signal(&s->wanted);
    pthread_mutex_unlock(&s->lock);
    pthread_join(s->committer, NULL);
    pthread_cond_destroy(&s->wanted);
    pthread_mutex_destroy(&s->lock);
    rocksdb_writebatch_destroy(s->batch);
    rocksdb_writeoptions_destroy(s->writes);
    rocksdb_readoptions_destroy(s->reads);
    rocksdb_readoptions_destroy(s->slices);
    rocksdb_close(s->db);
    rocksdb_block_based_options_destroy(s->table);
    rocksdb_options_destroy(s->options);
    rocksdb_cache_destroy(s->cache);
    free(s);
}

bool ceiling_store_get(struct ceiling_store *s, enum ceiling_table table, uint32_t pk, uint32_t ck, struct buf *out) {
    uint8_t key[KEY_BYTES];
    char *error = NULL;
    make_key(key, table, pk, ck);
    rocksdb_pinnableslice_t *pin = rocksdb_get_pinned(s->db, s->reads, (const char *)key, KEY_BYTES, &error);
    check(error);
    if (!pin) return false;
    size_t n;
    const char *value = rocksdb_pinnableslice_value(pin, &n);
    buf_put(out, value, n);
    rocksdb_pinnableslice_destroy(pin);
    return true;
}

uint32_t ceiling_store_slice(struct ceiling_store *s, uint32_t pk, struct buf *out) {
    uint8_t key[KEY_BYTES];
    uint32_t rows = 0;
    make_key(key, CEILING_ROWS, pk, 0);
    rocksdb_iterator_t *it = rocksdb_create_iterator(s->db, s->slices);
    for (rocksdb_iter_seek(it, (const char *)key, PREFIX_BYTES); rocksdb_iter_valid(it);
         rocksdb_iter_next(it), rows++) {
        size_t n;
        const char *k = rocksdb_iter_key(it, &n);
        if (n != KEY_BYTES || memcmp(k, key, PREFIX_BYTES) != 0) break;
        buf_u32(out, 4);
        buf_u32(out, load_u32((const uint8_t *)k + 20) ^ 1u << 31);
        const char *value = rocksdb_iter_value(it, &n);
        buf_put(out, value, n);
    }
    rocksdb_iter_destroy(it);
    return rows;
}

void ceiling_store_put(struct ceiling_store *s, enum ceiling_table table, uint32_t pk, uint32_t ck,
                       struct slice values) {
    uint8_t key[KEY_BYTES];
    make_key(key, table, pk, ck);
    rocksdb_writebatch_put(s->batch, (const char *)key, KEY_BYTES, (const char *)values.p, values.n);
}

uint64_t ceiling_store_commit(struct ceiling_store *s) {
    if (!rocksdb_writebatch_count(s->batch)) return 0;
    char *error = NULL;
    rocksdb_write(s->db, s->writes, s->batch, &error);
    check(error);
    rocksdb_writebatch_clear(s->batch);
    pthread_mutex_lock(&s->lock);
    uint64_t sequence = ++s->written;
    if (s->fsync) pthread_cond_signal(&s->wanted);
    else atomic_store(&s->durable, sequence);
    pthread_mutex_unlock(&s->lock);
    return sequence;
}

uint64_t ceiling_store_durable(const struct ceiling_store *s) { return atomic_load(&s->durable); }
