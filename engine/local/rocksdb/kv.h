/* An ordered key-value store: what the local engine uses of RocksDB.
 *
 * Keys are bytes in byte order. A store is used by any number of threads; a batch or an iterator
 * belongs to one thread at a time. A batch is written atomically, but nothing above relies on
 * atomicity across partitions. merge(key, operand) means value = combine(value, operand), and the
 * store may do it whenever it likes, in any grouping.
 */
#pragma once

#include "base/buf.h"
#include "base/fault.h"
#include "engine/iter.h"

/* The treatment of a store that is damaged before acknowledged writes. REFUSE: opening fails.
 * CUT: opening cuts off the damage and everything after it. LOOK: opening fails and touches nothing. */
enum kv_damage { KV_DAMAGE_REFUSE, KV_DAMAGE_CUT, KV_DAMAGE_LOOK };

enum { KV_NEAR_MAX = 8 };

/* Deleted keys. KV_DENSE of them side by side are dense. An iterator of the cache tier passes at
 * most KV_PASSED_MAX in one move, because the loop serves no other connection meanwhile. In sum it
 * passes that many for each of the rows that a loop reads at a time (CACHE_ROWS_MAX of
 * engine/rows/scan.c): some 30 ms where all are dense, which does not last long. */
enum { KV_DENSE = 512, KV_PASSED_MAX = 100 };

struct kv_options {
    const char *data_dir; /* created with mode 0700; NULL if the store is in memory */
    enum kv_damage damage;
    size_t block_cache_bytes, memtable_bytes; /* memtable: each; 0 means defaults */
    unsigned background_jobs;                 /* flushes and compactions at a time; 0 for default */
    /* every write reaches the operating system before it returns: it survives the end of this
     * process */
    bool write_through;
    /* the folder in data_dir to open as the store from now on; NULL for the present one */
    const char *rows;
    /* out (empty) = combine(a, b); -1 if the bytes are damaged. It runs on any thread and must not
     * call the store. */
    int (*merge)(struct slice a, struct slice b, struct buf *out);
    /* Length of the part of a key that point lookups and prefix scans share; 0 if there is none. */
    size_t (*prefix_len)(struct slice key);
    /* Keys with this many equal first bytes get insert hints: the search for a key's position in a
     * memtable starts from the last insertion with the same first bytes. At most KV_NEAR_MAX; 0 for
     * no hints. A store that already holds too many different beginnings when it is opened uses no
     * hints. */
    size_t near_len;
};

struct eng_backup;
struct kv;
struct kv_batch;
struct kv_load;     /* a bulk load of many pairs, used by one thread */
struct kv_snapshot; /* one moment of a store */

struct kv_iter_spec {
    enum eng_tier tier;
    bool one_prefix;           /* every seek goes forward; all keys below upper are of one prefix (see prefix_len) */
    bool undeleted;            /* no key between its seeks and its bounds was ever deleted by a range */
    const struct kv_snapshot *snapshot; /* NULL if the moment when it is made */
    struct slice lower, upper; /* [lower, upper); p NULL: no bound. Must live as long as the iterator. */
};

/* A found value; release it after use. */
struct kv_value {
    struct slice bytes;
    void *handle;
};

/* An injected fault: a read in the cache tier finds its data on disk only. */
static inline bool kv_is_cold(enum eng_tier tier) { return tier == ENG_TIER_CACHE && fault_hit(FAULT_KV_COLD); }

void kv_close(struct kv *kv); /* batches and iterators are gone */
/* Returns 1 if found, 0 if not, or -1 or KV_INCOMPLETE */
int kv_get(struct kv *kv, enum eng_tier tier, struct slice key, struct kv_value *value, struct err *e);
void kv_release(void *handle);

struct kv_snapshot *kv_snapshot_new(struct kv *kv); /* NULL if memory is exhausted */
void kv_snapshot_free(struct kv *kv, struct kv_snapshot *s);

/* sees one moment of the store */
struct kv_iter *kv_iter_new(struct kv *kv, const struct kv_iter_spec *spec, struct err *e);

struct kv_batch *kv_batch_new(struct kv *kv);
void kv_batch_free(struct kv_batch *b);
void kv_batch_put(struct kv_batch *b, struct slice key, struct slice value);
void kv_batch_merge(struct kv_batch *b, struct slice key, struct slice operand);
void kv_batch_delete(struct kv_batch *b, struct slice key);
/* from must be shorter than near_len, unless near_len is 0 */
void kv_batch_delete_range(struct kv_batch *b, struct slice from, struct slice to);
/* Makes the write conditional: it succeeds only if the key then has that value, or (NULL) none.
 * The caller excludes its own other writes to the key. */
int kv_batch_expect(struct kv_batch *b, struct slice key, const struct slice *value);
void kv_batch_clear(struct kv_batch *b);
/* Visible on return, durable after sync. 0 or -1; KV_BUSY, KV_CHANGED: nothing was written and
 * the batch is unchanged. With patience it sleeps a little when the store wants writes slowed
 * down; otherwise it never blocks. */
int kv_write(struct kv *kv, struct kv_batch *b, bool patience, struct err *e);
/* Whether an error in the background makes writes fail; if so, its text goes to why. */
bool kv_ailing(struct kv *kv, char *why, size_t size);
/* Everything written before the call is in the log; with to_disk, on disk. One thread. */
int kv_sync(struct kv *kv, bool to_disk, struct err *e);
/* Called after a failed sync by the same thread: puts everything written on disk in files that the
 * failure has not touched. Returns -1 if not yet. A second sync would prove nothing: it may succeed
 * although the first one lost data. */
int kv_heal(struct kv *kv, struct err *e);
/* Called by the same thread after a sync to disk was published: records outside of the log how
 * far it is synced, if enough time has passed. */
void kv_synced(struct kv *kv);
/* Called by the thread that syncs from time to time while nothing is left to sync. Records
 * outside of the log how far it must be whole. If that is recorded already, it flushes rows to
 * files that a start would otherwise have to read from the log one by one. */
void kv_settle(struct kv *kv);
/* Called by one thread from time to time: deleted keys were deleted since the last call. Once
 * the sum reaches KV_DENSE, the tombstones are flushed from memory, and dense ranges in table
 * files are compacted, so that readers do not pass the tombstones for long. Waits for none of
 * it. */
void kv_tidy(struct kv *kv, uint64_t deleted);

/* Life of a load: new, add in ascending order of keys, finish, free. The store must hold no key
 * between the first and the last one. The pairs become visible at finish, all or none, and are
 * durable on return. Without finish, free leaves no trace. Blocking, long. */
struct kv_load *kv_load_new(struct kv *kv, struct err *e);
int kv_load_add(struct kv_load *l, struct slice key, struct slice value, struct err *e);
int kv_load_finish(struct kv_load *l, struct err *e);
void kv_load_free(struct kv_load *l);

/* Writes a checkpoint to a new folder. */
int kv_save(struct kv *kv, const char *folder, struct err *e);
/* Called when another store has replaced this one: close then removes its files. */
void kv_retire(struct kv *kv);
/* Number of iterators that are not freed yet. */
uint32_t kv_iterators(const struct kv *kv);
/* A backup of everything into a folder of backups (engine/local/rocksdb/kv_backup.c). */
int kv_backup(struct kv *kv, const char *folder, uint32_t keep, struct eng_backup *out, struct err *e);
/* Bytes of files that hold the keys in [from, to), approximately. */
uint64_t kv_bytes(struct kv *kv, struct slice from, struct slice to);
/* frees whole files at once, then deletes */
int kv_drop_range(struct kv *kv, struct slice from, struct slice to, struct err *e);
/* The same key by key, for keys that are used again. */
int kv_delete_each(struct kv *kv, struct slice from, struct slice to, struct err *e);
int kv_compact(struct kv *kv, struct err *e); /* rewrites everything */

/* Calls fn for every key in [from, to) until it does not return 0; at NULL: now. */
int kv_scan(struct kv *kv, const struct kv_snapshot *at, struct slice from, struct slice to,
            int (*fn)(void *arg, struct slice key, struct slice value, struct err *e), void *arg,
            struct err *e) MUST_CHECK;
/* Sleeps until a write may be tried again after KV_BUSY; -1, ERR_OVERLOADED: not within a
 * minute. */
int kv_wait_for_room(struct kv *kv, struct err *e) MUST_CHECK;
/* Writes, and waits until the store has room: 0, -1 or KV_CHANGED. */
int kv_write_patiently(struct kv *kv, struct kv_batch *b, struct err *e) MUST_CHECK;

struct kv *kv_open(const struct kv_options *o, struct err *e) MUST_CHECK;
/* Opens a checkpoint (save) in its folder, read-only. */
struct kv *kv_view(const struct kv_options *o, const char *folder, struct err *e) MUST_CHECK;

struct kv_verify {
    void (*take)(void *arg, struct slice key, struct slice value); /* every pair */
    void (*damaged)(void *arg, const char *words);                 /* which name the file */
    /* Called after all pairs of an undamaged store, with the store open for reading. */
    int (*taken)(void *arg, struct kv *kv, struct err *e);
    void *arg;
};
/* Reads every block of every file of a store that is not open, verifies its checksum, and changes
 * nothing. Returns -1 if memory is exhausted. */
int kv_verify(const struct kv_options *o, const char *folder, const struct kv_verify *v,
              struct err *e) MUST_CHECK;
