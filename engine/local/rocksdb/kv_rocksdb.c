/* The store on RocksDB's C API (Debian's 7.8.3 and later).
 *
 * The log is written without sync and, with Debian's RocksDB, with manual_wal_flush: only sync()
 * brings it to disk, so one sync serves the writes of all threads. unordered_write must stay off
 * with it: together they deadlock on the first write (7.8.3).
 *
 * The data folder has rows/ (RocksDB's folder; or rows.N, when a saved state was put back:
 * engine/local/rocksdb/kv_state.h) and tally.stamp, which names that folder and says what it must
 * hold (engine/local/rocksdb/kv_stamp.h). The folder is checked before RocksDB opens it
 * (engine/local/rocksdb/kv_check.h). RocksDB then finds no torn end, so it runs in its strict mode.
 */
#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <pthread.h>
#include <rocksdb/c.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/fault.h"
#include "base/hot.h"
#include "base/log.h"
#include "engine/local/rocksdb/kv_backup.h"
#include "engine/local/rocksdb/kv_check.h"
#include "engine/local/rocksdb/kv_state.h"
#include "engine/local/rocksdb/kv_load.h"
#include "engine/local/rocksdb/kv_log.h"
#include "engine/local/rocksdb/kv_log_sync.h"
#include "engine/local/rocksdb/kv_replay.h"
#include "engine/local/rocksdb/kv_trim.h"

/* Since RocksDB 9.7 a log with manual_wal_flush stays unusable after one failed write
 * (https://github.com/facebook/rocksdb/pull/12995), so that a server would have to be restarted
 * after a full disk. With these versions every write reaches the operating system before it
 * returns, which has no measurable cost. Older versions, Debian's too, abort when a write meets a
 * sync that fails, so with them fewer writes to the log are safer. */
enum { GATHERS_LOG = TALLY_ROCKSDB_MAJOR < 10 };

struct rocks {
    struct kv kv;
    struct kv_options o;
    rocksdb_t *db;
    rocksdb_cache_t *cache;
    rocksdb_options_t *options;
    rocksdb_readoptions_t *read[2]; /* by tier */
    rocksdb_writeoptions_t *write[2]; /* by patience */
    char rows[PATH_MAX], stamp_path[PATH_MAX];
    bool retired; /* another store has replaced this one */
    bool view;    /* reads a checkpoint, and owns nothing in the data folder */
    _Atomic uint32_t iterators;
    _Atomic bool write_failed;    /* the last write did */
    _Atomic bool log_suspect;     /* an operation on the log has failed since the last successful write */
    _Atomic uint64_t errors_over; /* background errors after which a write succeeded */
    _Atomic uint64_t synced; /* every sequence up to this one is on disk */
    _Atomic uint64_t loads;  /* begun */
    /* number of compactions' filters alive; they call the engine, so closing waits until there is
     * none */
    _Atomic uint32_t filters;
    struct kv_trim trim;
    /* Held for reading by writes that do not wait, for writing while the log is handed to the
     * operating system. A write that met a log between a failure and RocksDB's record of it would
     * make the error final (engine/local/rocksdb/kv_log_sync.h). No other lock is taken while it is
     * held. */
    pthread_rwlock_t log_lock;
    /* Used by the thread that syncs. */
    struct kv_log_sync log_sync;
    uint64_t deleted;        /* deleted keys since the last flush because of them; used by the thread that tidies */
    bool stamp_failed;       /* the last attempt to write a stamp failed */
    bool sync_failed;        /* after that no write may count as on disk */
    struct kv_stamp stamp;   /* the last one written */
    uint64_t stamped;        /* the value of synced at that time */
    int64_t stamped_us;
    uint64_t version; /* RocksDB's version number when the stamp last covered every log; 0: it did not */
};

struct rocks_batch {
    struct kv_batch batch;
    rocksdb_writebatch_t *b;
    size_t near_len; /* of the store */
    struct buf conditions; /* [u8 present][u32 n][key][u32 n][value]... */
};

struct kv_snapshot {
    const rocksdb_snapshot_t *s;
};

struct rocks_iter {
    struct kv_iter it;
    struct rocks *of;
    enum eng_tier tier;
    rocksdb_iterator_t *i;
    rocksdb_readoptions_t *read;
};

static const char *chars(struct slice s) { return (const char *)s.p; }

/* Sets the error from RocksDB's text, and frees the text. */
static int failed(char *text, const char *what, struct err *e) {
    err_set(e, ERR_SERVER, "%s: %s", what, text);
    rocksdb_free(text);
    return -1;
}

static int read_failed(char *text, struct err *e) {
    /* The C API has no status codes. */
    if (strstr(text, "no blocking io") || strstr(text, "Result incomplete")) {
        rocksdb_free(text);
        return KV_INCOMPLETE;
    }
    return failed(text, "the store cannot be read", e);
}

static int injected(enum fault_point point, const char *what, struct err *e) {
    return fault_hit(point) ? err_set(e, ERR_SERVER, "%s: injected fault", what) : 0;
}

/* ---- batches ---- */

static struct kv_batch *batch_new(struct kv *kv) {
    struct rocks_batch *b = calloc(1, sizeof(*b));
    if (!b) return NULL;
    b->batch.ops = kv->ops;
    b->b = rocksdb_writebatch_create();
    b->near_len = ((struct rocks *)kv)->o.near_len;
    buf_init(&b->conditions, 0);
    return &b->batch;
}

static rocksdb_writebatch_t *wb(struct kv_batch *b) { return ((struct rocks_batch *)b)->b; }

static void batch_free(struct kv_batch *b) {
    rocksdb_writebatch_destroy(wb(b));
    buf_fini(&((struct rocks_batch *)b)->conditions);
    free(b);
}

static int batch_put(struct kv_batch *b, struct slice key, struct slice value) {
    rocksdb_writebatch_put(wb(b), chars(key), key.n, chars(value), value.n);
    return 0;
}

static int batch_merge(struct kv_batch *b, struct slice key, struct slice operand) {
    rocksdb_writebatch_merge(wb(b), chars(key), key.n, chars(operand), operand.n);
    return 0;
}

static int batch_delete(struct kv_batch *b, struct slice key) {
    rocksdb_writebatch_delete(wb(b), chars(key), key.n);
    return 0;
}

/* Whether a range delete may begin at this key. A memtable keeps an insert hint for each value of
 * the first near_len bytes. RocksDB shares the hints between rows and range deletes, which are two
 * lists (MemTable::Add, 7.8.3): a hint into one list is invalid in the other, and its use ends the
 * process. A range that begins with a key shorter than near_len uses no hint. */
static bool begins_short(size_t near_len, struct slice from) { return !near_len || from.n < near_len; }

static int batch_delete_range(struct kv_batch *b, struct slice from, struct slice to) {
    assert(begins_short(((struct rocks_batch *)b)->near_len, from));
    rocksdb_writebatch_delete_range(wb(b), chars(from), from.n, chars(to), to.n);
    return 0;
}

static int batch_expect(struct kv_batch *b, struct slice key, const struct slice *value) {
    struct buf *c = &((struct rocks_batch *)b)->conditions;
    buf_u8(c, value != NULL);
    buf_u32(c, (uint32_t)key.n);
    buf_put_slice(c, key);
    buf_u32(c, value ? (uint32_t)value->n : 0);
    if (value) buf_put_slice(c, *value);
    return buf_failed(c) ? -1 : 0;
}

static void batch_clear(struct kv_batch *b) {
    rocksdb_writebatch_clear(wb(b));
    buf_clear(&((struct rocks_batch *)b)->conditions, 4096);
}

/* The one writer excludes its other writes to these keys, so they do not change between this check
 * and the write. */
static int check_conditions(struct kv *kv, struct kv_batch *b, struct err *e) {
    struct rd r = rd_of(buf_slice(&((struct rocks_batch *)b)->conditions));
    bool hold = true;
    while (hold && rd_left(&r)) {
        bool present = rd_u8(&r);
        struct slice key = rd_bytes(&r, rd_u32(&r)), value = rd_bytes(&r, rd_u32(&r));
        struct kv_value now;
        int got = kv->ops->get(kv, ENG_TIER_ANY, key, &now, e);
        if (got < 0) return -1;
        hold = (got == 1) == present && (!present || slice_eq(now.bytes, value));
        if (got == 1) kv->ops->release(kv, &now);
    }
    return hold ? 0 : KV_CHANGED;
}

/* Disables RocksDB's per-thread counters, which it updates with every key it reads and which Tally
 * does not use. The level applies to the calling thread. */
static void count_nothing(void) {
    enum { DISABLE = 1 };
    rocksdb_set_perf_level(DISABLE);
}

static bool has_room(struct kv *kv) {
    uint64_t stopped = 0;
    return rocksdb_property_int(((struct rocks *)kv)->db, "rocksdb.is-write-stopped", &stopped) || !stopped;
}

/* True if the store wants writes slowed down; then nothing was written. */
static bool is_busy(char **text) {
    if (!*text || !strstr(*text, "Result incomplete")) return false;
    rocksdb_free(*text);
    *text = NULL;
    return true;
}

/* Returns whether the store was too busy. A write that has to wait does so without the lock, so
 * that it does not delay syncs. It alone can still meet a log that fails at that moment. */
static bool put_batch(struct rocks *r, struct kv_batch *b, bool patience, char **text) {
    pthread_rwlock_rdlock(&r->log_lock);
    rocksdb_write(r->db, r->write[false], wb(b), text);
    bool busy = is_busy(text);
    if (*text) atomic_store(&r->log_suspect, true);
    pthread_rwlock_unlock(&r->log_lock);
    if (!busy) return false;
    if (!patience) return true;
    rocksdb_write(r->db, r->write[true], wb(b), text);
    busy = is_busy(text);
    if (*text) atomic_store(&r->log_suspect, true);
    return busy;
}

static int write_batch(struct kv *kv, struct kv_batch *b, bool patience, struct err *e) {
    struct rocks *r = (struct rocks *)kv;
    char *text = NULL;
    if (injected(FAULT_KV_WRITE, "the store cannot be written", e)) return -1;
    if (fault_hit(FAULT_KV_BUSY) || (patience && !has_room(kv))) return KV_BUSY;
    int met = check_conditions(kv, b, e);
    if (met) return met;
    uint8_t note[KV_LOG_NOTE];
    kv_log_note(note, atomic_load_explicit(&r->synced, memory_order_relaxed));
    rocksdb_writebatch_put_log_data(wb(b), (const char *)note, sizeof(note));
    count_nothing();
    if (put_batch(r, b, patience, &text)) return KV_BUSY;
    if (UNLIKELY((text != NULL) != atomic_load_explicit(&r->write_failed, memory_order_relaxed)))
        atomic_store(&r->write_failed, text != NULL);
    return text ? failed(text, "the store cannot be written", e) : 0;
}

/* Writes a batch with only a note, which changes nothing, to find out whether the store takes
 * writes. */
static int try_write(struct rocks *r, struct err *e) {
    struct kv_batch *b = batch_new(&r->kv);
    int rc = b ? write_batch(&r->kv, b, false, e) : err_nomem(e);
    if (b) batch_free(b);
    return rc == -1 ? -1 : 0;
}

/* Debian's RocksDB aborts when it writes to a log after a failed write. Its writes check for that;
 * a flush of the log does not, so this function writes first. */
static int check_log(struct rocks *r, struct err *e) {
    if (LIKELY(!atomic_load_explicit(&r->log_suspect, memory_order_relaxed))) return 0;
    atomic_store(&r->log_suspect, false);
    return try_write(r, e);
}

static int flush_log(struct rocks *r, bool to_disk, struct err *e) {
    char *text = NULL;
    uint64_t last = rocksdb_get_latest_sequence_number(r->db);
    if (check_log(r, e)) {
        r->sync_failed = true;
        return -1;
    }
    pthread_rwlock_wrlock(&r->log_lock);
    bool suspect = atomic_load(&r->log_suspect); /* a write has failed since the check */
    if (!suspect) rocksdb_flush_wal(r->db, false, &text);
    pthread_rwlock_unlock(&r->log_lock);
    if (suspect || text) r->sync_failed = true;
    if (suspect) return err_set(e, ERR_SERVER, "the log cannot be synced: a write to it has failed");
    if (text) {
        atomic_store(&r->log_suspect, true);
        return failed(text, "the log cannot be synced", e);
    }
    if (to_disk && kv_log_sync(&r->log_sync, r->db, r->rows, e)) {
        r->sync_failed = true;
        return -1;
    }
    if (to_disk) atomic_store_explicit(&r->synced, last, memory_order_relaxed);
    return 0;
}

/* Syncs the MANIFEST, because the stamp counts only bytes that are on disk. */
static int sync_manifest(const struct rocks *r, uint64_t number, struct err *e) {
    char path[PATH_MAX];
    if (snprintf(path, sizeof(path), "%s/MANIFEST-%06llu", r->rows, (unsigned long long)number) >= (int)sizeof(path))
        return err_set(e, ERR_SERVER, "the path %s is too long", r->rows);
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    int rc = fd >= 0 && !fdatasync(fd) ? 0 : err_set(e, ERR_SERVER, "cannot sync %s: %s", path, strerror(errno));
    if (fd >= 0) close(fd);
    return rc;
}

/* The sizes of the logs in the stamp are read before the logs are synced. */
static int write_stamp(struct rocks *r, struct err *e) {
    struct kv_stamp now;
    r->stamped_us = clock_machine_us(&clock_real);
    if (kv_stamp_take(r->rows, &now, e)) return -1;
    snprintf(now.rows, sizeof(now.rows), "%s", strrchr(r->rows, '/') + 1);
    if (sync_manifest(r, now.manifest, e) || flush_log(r, true, e)) return -1;
    if (kv_stamp_write(r->stamp_path, &now, e)) return -1;
    r->stamp = now;
    r->stamped = atomic_load_explicit(&r->synced, memory_order_relaxed);
    return 0;
}

/* A flush begins a new log, so its failure makes the log suspect. */
static int flush_failed(struct rocks *r, char *text, const char *what, struct err *e) {
    atomic_store(&r->log_suspect, true);
    return failed(text, what, e);
}

/* Deletes a key that the store never has: a flush of an empty memtable would not begin a new
 * log. */
static int write_deletion(struct rocks *r, struct err *e) {
    struct kv_batch *b = batch_new(&r->kv);
    int rc = !b || batch_delete(b, slice_of("", 1)) ? err_nomem(e) : write_batch(&r->kv, b, false, e);
    if (b) batch_free(b);
    return rc == KV_BUSY ? err_set(e, ERR_SERVER, "the store takes no writes") : rc;
}

/* Flushes rows that were only in the log from memory to table files, and begins a new log: the old
 * one may have a hole where its sync failed. After a full disk RocksDB does that by itself, every
 * five seconds, once nothing runs in the background. A flush requested meanwhile fails after a
 * second, and one request each second would prevent its own flush for good, so this function first
 * tries a write. */
static int heal(struct kv *kv, struct err *e) {
    struct rocks *r = (struct rocks *)kv;
    char *text = NULL;
    if (injected(FAULT_KV_SYNC, "the log cannot be synced", e) || write_deletion(r, e)) return -1;
    rocksdb_flushoptions_t *fo = rocksdb_flushoptions_create();
    rocksdb_flush(r->db, fo, &text);
    rocksdb_flushoptions_destroy(fo);
    if (text) return flush_failed(r, text, "the store cannot be flushed", e);
    if (flush_log(r, true, e)) return -1;
    r->sync_failed = false;
    return 0;
}

static bool manifest_grew(const struct rocks *r) {
    char path[PATH_MAX];
    struct stat st;
    int n = snprintf(path, sizeof(path), "%s/MANIFEST-%06llu", r->rows, (unsigned long long)r->stamp.manifest);
    return n >= (int)sizeof(path) || stat(path, &st) || (uint64_t)st.st_size != r->stamp.manifest_bytes;
}

/* A failure is only logged: an older stamp requires less than it could, but it is still true, so a
 * full disk is no reason to stop. */
static void renew_stamp(struct rocks *r) {
    struct err e = {0};
    if (r->sync_failed) return;
    r->stamp_failed = write_stamp(r, &e) != 0;
    if (r->stamp_failed) log_warn("the stamp of the data folder is not renewed: %s", e.text);
}

static uint64_t property(const struct rocks *r, const char *name, uint64_t otherwise) {
    uint64_t n = 0;
    return rocksdb_property_int(r->db, name, &n) ? otherwise : n;
}

/* Whether the stamp knows some bytes of every log that has any. A new log begins together with a
 * memtable, which changes RocksDB's version number. */
static bool knows_logs(struct rocks *r) {
    uint64_t version = property(r, "rocksdb.current-super-version-number", 0);
    struct kv_stamp now;
    struct err e = {0};
    if (version && version == r->version) return true;
    if (kv_stamp_take(r->rows, &now, &e)) return true; /* then a stamp could not be made either */
    bool all = true, begun = now.n_logs > 0 && now.logs[now.n_logs - 1].bytes > 0;
    for (uint32_t i = 0; i < now.n_logs; i++)
        all = all && (!now.logs[i].bytes || kv_stamp_log_bytes(&r->stamp, now.logs[i].number));
    if (all && begun) r->version = version;
    return all;
}

/* The stamp names a new log before any write in it is acknowledged as on disk; otherwise a start
 * would not notice that the log's content is missing. */
static void stamp_new_log(struct rocks *r) {
    enum { AGAIN_US = 200000 };
    bool failed = r->stamp_failed && clock_machine_us(&clock_real) - r->stamped_us < AGAIN_US;
    if (!failed && !knows_logs(r)) renew_stamp(r);
}

static int sync_log(struct kv *kv, bool to_disk, struct err *e) {
    struct rocks *r = (struct rocks *)kv;
    if (injected(FAULT_KV_SYNC, "the log cannot be synced", e)) return -1;
    if (flush_log(r, to_disk, e)) return -1;
    if (to_disk) stamp_new_log(r);
    return r->sync_failed ? err_set(e, ERR_SERVER, "the log cannot be synced") : 0;
}

static void synced(struct kv *kv) {
    enum { STAMP_US = 5000000, STAMP_AGAIN_US = 200000 };
    struct rocks *r = (struct rocks *)kv;
    int64_t age = clock_machine_us(&clock_real) - r->stamped_us;
    if (age > STAMP_US || (age > STAMP_AGAIN_US && manifest_grew(r))) renew_stamp(r);
}

static size_t memtable_bytes(const struct rocks *r) {
    return r->o.memtable_bytes ? r->o.memtable_bytes : (size_t)64 << 20;
}

/* Starts a flush without waiting for its end. RocksDB waits before the flush begins while one file
 * or one memtable more would make it slow down writers, so the caller is a thread that may wait. */
static void flush_soon(struct rocks *r) {
    char *text = NULL;
    struct err e = {0};
    rocksdb_flushoptions_t *fo = rocksdb_flushoptions_create();
    rocksdb_flushoptions_set_wait(fo, 0);
    rocksdb_flush(r->db, fo, &text);
    rocksdb_flushoptions_destroy(fo);
    if (text && flush_failed(r, text, "the store cannot be flushed", &e)) log_warn("%s", e.text);
}

/* Flushes a store at rest, so that few rows are only in the log: a start after a kill reads every
 * such row into memory again, which takes nearly all of its time. Less than an eighth of a memtable
 * stays, because small files would be compacted with large ones too often. The thread that syncs
 * must not wait (flush_soon), and RocksDB does not wait when no flush or compaction is running or
 * due. */
static void flush_at_rest(struct rocks *r) {
    static const char *const work[] = {"rocksdb.num-immutable-mem-table", "rocksdb.num-running-flushes",
                                       "rocksdb.num-running-compactions", "rocksdb.compaction-pending"};
    enum { OF = 8 };
    bool works = false;
    for (size_t i = 0; i < ARRAY_LEN(work); i++) works = works || property(r, work[i], 1);
    if (!works && property(r, "rocksdb.cur-size-active-mem-table", 0) >= memtable_bytes(r) / OF) flush_soon(r);
}

/* The store is at rest if there was nothing to record since the last call. */
static void settle(struct kv *kv) {
    struct rocks *r = (struct rocks *)kv;
    if (atomic_load_explicit(&r->synced, memory_order_relaxed) != r->stamped || manifest_grew(r)) renew_stamp(r);
    else if (!r->sync_failed) flush_at_rest(r);
}

/* RocksDB counts the errors of its background work and never lowers the count. Writing a note to
 * the log shows whether the newest error still matters. */
static bool ailing(struct kv *kv, char *why, size_t size) {
    struct rocks *r = (struct rocks *)kv;
    uint64_t errors = 0;
    if (rocksdb_property_int(r->db, "rocksdb.background-errors", &errors)) errors = 0;
    if (!atomic_load(&r->write_failed) && errors == atomic_load(&r->errors_over)) return false;
    struct err e = {0};
    int rc = try_write(r, &e);
    if (!rc) atomic_store(&r->errors_over, errors);
    else snprintf(why, size, "storage failed: %s", e.text);
    return rc != 0;
}

/* ---- reads ---- */

static int get_at(struct rocks *r, rocksdb_readoptions_t *options, struct slice key, struct kv_value *value,
                  struct err *e) {
    char *text = NULL;
    count_nothing();
    rocksdb_pinnableslice_t *pinned = rocksdb_get_pinned(r->db, options, chars(key), key.n, &text);
    if (text) return read_failed(text, e);
    if (!pinned) return 0;
    value->handle = pinned;
    value->bytes.p = (const uint8_t *)rocksdb_pinnableslice_value(pinned, &value->bytes.n);
    return 1;
}

static int get(struct kv *kv, enum eng_tier tier, struct slice key, struct kv_value *value, struct err *e) {
    struct rocks *r = (struct rocks *)kv;
    if (injected(FAULT_KV_READ, "the store cannot be read", e)) return -1;
    if (kv_is_cold(tier)) return KV_INCOMPLETE;
    return get_at(r, r->read[tier], key, value, e);
}

static void release(struct kv *kv, struct kv_value *value) {
    (void)kv;
    rocksdb_pinnableslice_destroy(value->handle);
}

static struct kv_snapshot *snapshot_new(struct kv *kv) {
    struct kv_snapshot *s = malloc(sizeof(*s));
    if (s) s->s = rocksdb_create_snapshot(((struct rocks *)kv)->db);
    return s;
}

static void snapshot_free(struct kv *kv, struct kv_snapshot *s) {
    rocksdb_release_snapshot(((struct rocks *)kv)->db, s->s);
    free(s);
}

/* Writes the deletion of a key that never exists, which changes nothing. */
static int write_nothing(struct rocks *r, struct err *e) {
    struct kv_batch *b = batch_new(&r->kv);
    int rc = b && !batch_delete(b, slice_of("", 0)) ? write_batch(&r->kv, b, false, e) : err_nomem(e);
    if (b) batch_free(b);
    return rc;
}

/* A file that was moved to the last level without a rewrite still has its tombstones. When a
 * snapshot is released, RocksDB looks for files with tombstones older than the last write and
 * compacts them; so this function takes and releases a snapshot. */
static void tidy(struct kv *kv, uint64_t deleted) {
    struct rocks *r = (struct rocks *)kv;
    struct err e = {0};
    r->deleted += deleted;
    if (r->deleted >= KV_DENSE && !write_nothing(r, &e)) { /* if the log cannot be written, the next call tries again */
        r->deleted = 0;
        flush_soon(r);
        (void)!write_nothing(r, &e);
    }
    struct kv_snapshot *s = snapshot_new(kv);
    if (s) snapshot_free(kv, s);
}

static rocksdb_readoptions_t *read_options(enum eng_tier tier) {
    rocksdb_readoptions_t *o = rocksdb_readoptions_create();
    rocksdb_readoptions_set_verify_checksums(o, 1);
    if (tier == ENG_TIER_CACHE) {
        rocksdb_readoptions_set_read_tier(o, 1);
        rocksdb_readoptions_set_max_skippable_internal_keys(o, KV_PASSED_MAX);
    }
    return o;
}

static int get_many(struct kv *kv, enum eng_tier tier, const struct kv_snapshot *at, const struct slice *keys,
                    uint32_t n, struct kv_value *values, bool *found, struct err *e) {
    if (injected(FAULT_KV_READ, "the store cannot be read", e)) return -1;
    if (kv_is_cold(tier)) return KV_INCOMPLETE;
    struct kv_snapshot *own = at ? NULL : snapshot_new(kv);
    if (!at && !own) return err_nomem(e);
    rocksdb_readoptions_t *options = read_options(tier);
    rocksdb_readoptions_set_snapshot(options, at ? at->s : own->s);
    int got = 0;
    uint32_t i = 0;
    for (; i < n && (got = get_at((struct rocks *)kv, options, keys[i], &values[i], e)) >= 0; i++) found[i] = got == 1;
    for (uint32_t k = 0; got < 0 && k < i; k++)
        if (found[k]) release(kv, &values[k]);
    rocksdb_readoptions_destroy(options);
    if (own) snapshot_free(kv, own);
    return got < 0 ? got : 0;
}

static struct kv_iter *iter_new(struct kv *kv, const struct kv_iter_spec *spec, struct err *e) {
    struct rocks *r = (struct rocks *)kv;
    struct rocks_iter *it = calloc(1, sizeof(*it));
    if (!it) return err_nomem(e), NULL;
    it->it.ops = kv->ops;
    count_nothing();
    it->read = read_options(spec->tier);
    if (spec->snapshot) rocksdb_readoptions_set_snapshot(it->read, spec->snapshot->s);
    if (!spec->one_prefix) rocksdb_readoptions_set_total_order_seek(it->read, 1);
    /* RocksDB 7.8.3 loses the error of an unreadable block when it then passes keys that a range
     * deletion covers, and at the end of a file: the iterator is at its end as if there were no
     * more keys (https://github.com/facebook/rocksdb/pull/11786, 11782; fixed in 8.5.2). Without
     * range deletions it does not. */
    if (spec->undeleted) rocksdb_readoptions_set_ignore_range_deletions(it->read, 1);
    if (spec->lower.p) rocksdb_readoptions_set_iterate_lower_bound(it->read, chars(spec->lower), spec->lower.n);
    if (spec->upper.p) rocksdb_readoptions_set_iterate_upper_bound(it->read, chars(spec->upper), spec->upper.n);
    it->i = rocksdb_create_iterator(r->db, it->read);
    it->of = r;
    it->tier = spec->tier;
    atomic_fetch_add_explicit(&r->iterators, 1, memory_order_relaxed);
    return &it->it;
}

SELDOM static int iter_ended(rocksdb_iterator_t *i, struct err *e) {
    char *text = NULL;
    rocksdb_iter_get_error(i, &text);
    return text ? read_failed(text, e) : 0;
}

static int iter_move(struct kv_iter *iter, enum kv_move move, struct slice key, struct err *e) {
    rocksdb_iterator_t *i = ((struct rocks_iter *)iter)->i;
    if (injected(FAULT_KV_READ, "the store cannot be read", e)) return -1;
    if (kv_is_cold(((struct rocks_iter *)iter)->tier)) return KV_INCOMPLETE;
    switch (move) {
    case KV_SEEK: rocksdb_iter_seek(i, chars(key), key.n); break;
    case KV_SEEK_BACK: rocksdb_iter_seek_for_prev(i, chars(key), key.n); break;
    case KV_NEXT: rocksdb_iter_next(i); break;
    case KV_PREV: rocksdb_iter_prev(i); break;
    }
    if (UNLIKELY(!rocksdb_iter_valid(i))) return kv_iter_lend(iter, iter_ended(i, e), e);
    iter->key.p = (const uint8_t *)rocksdb_iter_key(i, &iter->key.n);
    iter->value.p = (const uint8_t *)rocksdb_iter_value(i, &iter->value.n);
    return kv_iter_lend(iter, 1, e);
}

static void iter_free(struct kv_iter *iter) {
    struct rocks_iter *it = (struct rocks_iter *)iter;
    (void)kv_iter_lend(iter, 0, NULL);
    rocksdb_iter_destroy(it->i);
    atomic_fetch_sub_explicit(&it->of->iterators, 1, memory_order_release);
    rocksdb_readoptions_destroy(it->read);
    free(it);
}

/* ---- the whole store ---- */

static struct kv_load *load_new(struct kv *kv, struct err *e) {
    struct rocks *r = (struct rocks *)kv;
    return kv_load_new(&(struct kv_load_spec){.ops = kv->ops,
                                              .db = r->db,
                                              .options = r->options,
                                              .data_dir = r->o.data_dir,
                                              .number = atomic_fetch_add(&r->loads, 1)},
                       e);
}

static uint64_t bytes(struct kv *kv, struct slice from, struct slice to) {
    return kv_trim_bytes(((struct rocks *)kv)->db, from, to);
}

/* Adds deletions of a bounded number of keys to the batch. 1: there are more keys, 0: none, -1. */
static int delete_some(struct kv_batch *b, struct kv_iter *it, struct slice from, struct err *e) {
    enum { MANY = 1000 };
    int got = it->key.p ? 1 : iter_move(it, KV_SEEK, from, e);
    for (int n = 0; got > 0 && n < MANY; n++) {
        batch_delete(b, it->key);
        got = iter_move(it, KV_NEXT, from, e);
    }
    return got;
}

/* The iterator ignores range deletions, which RocksDB would sort again after each new one, for
 * every table that is dropped. */
static int delete_each(struct kv *kv, struct kv_batch *b, struct slice from, struct slice to, struct err *e) {
    struct kv_iter *it =
        iter_new(kv, &(struct kv_iter_spec){.tier = ENG_TIER_ANY, .undeleted = true, .lower = from, .upper = to}, e);
    if (!it) return -1;
    int more;
    do {
        more = delete_some(b, it, from, e);
        if (more >= 0 && kv_write_patiently(kv, b, e)) more = -1;
        batch_clear(b);
    } while (more > 0);
    iter_free(it);
    return more;
}

static int drop_range(struct kv *kv, struct slice from, struct slice to, struct err *e) {
    struct rocks *r = (struct rocks *)kv;
    char *text = NULL;
    rocksdb_delete_file_in_range(r->db, chars(from), from.n, chars(to), to.n, &text);
    if (text) return failed(text, "the files of a table cannot be deleted", e);
    struct kv_batch *b = batch_new(kv);
    if (!b) return err_nomem(e);
    int rc;
    if (begins_short(r->o.near_len, from)) {
        batch_delete_range(b, from, to);
        rc = kv_write_patiently(kv, b, e);
    } else {
        rc = delete_each(kv, b, from, to, e);
    }
    batch_free(b);
    if (rc == 0) kv_trim_add(&r->trim, from, to);
    return rc;
}

static int backup(struct kv *kv, const char *folder, uint32_t keep, struct eng_backup *out, struct err *e) {
    int rc = kv_backup_make(((struct rocks *)kv)->db, folder, keep, out, e);
    if (rc) atomic_store(&((struct rocks *)kv)->log_suspect, true);
    return rc;
}

static int compact(struct kv *kv, struct err *e) {
    struct rocks *r = (struct rocks *)kv;
    char *text = NULL;
    rocksdb_flushoptions_t *fo = rocksdb_flushoptions_create();
    rocksdb_flush(r->db, fo, &text);
    rocksdb_flushoptions_destroy(fo);
    if (text) return flush_failed(r, text, "the store cannot be flushed", e);
    rocksdb_compactoptions_t *co = rocksdb_compactoptions_create();
    rocksdb_compactoptions_set_bottommost_level_compaction(co, 2); /* force: files of the last level too */
    rocksdb_compact_range_opt(r->db, co, NULL, 0, NULL, 0);
    rocksdb_compactoptions_destroy(co);
    return 0;
}

static void close_store(struct kv *kv) {
    struct rocks *r = (struct rocks *)kv;
    if (r->db) {
        kv_trim_fini(&r->trim);
        if (!r->retired && !r->view) renew_stamp(r);
        rocksdb_close(r->db);
    }
    assert(atomic_load(&r->filters) == 0);
    for (int i = 0; i < 2; i++) {
        rocksdb_writeoptions_destroy(r->write[i]);
        rocksdb_readoptions_destroy(r->read[i]);
    }
    if (r->options) rocksdb_options_destroy(r->options);
    if (r->cache) rocksdb_cache_destroy(r->cache);
    kv_log_sync_free(&r->log_sync);
    pthread_rwlock_destroy(&r->log_lock);
    struct err e = {0};
    if (r->retired && kv_state_remove(r->rows, &e)) log_warn("%s", e.text);
    free(r);
}

/* ---- callbacks: state is the struct rocks ---- */

static void keep_state(void *state) { (void)state; }

static struct slice slice_at(const char *p, size_t n) { return slice_of(p, n); }

struct operands {
    struct rocks *r;
    const char *const *at;
    const size_t *sizes;
};

static int merge_two(const struct rocks *r, struct slice a, struct slice b, struct buf *out) {
    return r->o.merge(r->o.arg, a, b, out) || buf_failed(out) ? -1 : 0;
}

/* Folds each half first, so that small operands are joined before they meet a large one, and each
 * byte is written a logarithmic number of times. The result is in out, or, of a single operand,
 * where the operand is. p NULL: damaged. */
static struct slice fold_operands(const struct operands *o, int from, int n, struct buf *out) {
    if (n == 1) return slice_at(o->at[from], o->sizes[from]);
    struct buf halves[2];
    for (int i = 0; i < 2; i++) buf_init(&halves[i], 0);
    struct slice a = fold_operands(o, from, n / 2, &halves[0]),
                 b = fold_operands(o, from + n / 2, n - n / 2, &halves[1]);
    int rc = !a.p || !b.p || merge_two(o->r, a, b, out);
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

/* The value a filter changed must outlive its call and is copied before the next one: it belongs to
 * the filter object, of which every compaction has its own. */
struct filter {
    struct rocks *r;
    struct buf out;
    bool whole;
};

static unsigned char filter_value(void *state, int level, const char *key, size_t key_len, const char *value,
                                  size_t value_len, char **new_value, size_t *new_len, unsigned char *changed) {
    struct filter *f = state;
    (void)level;
    *changed = 0;
    if (!f->whole) return 0;
    f->out.n = 0;
    enum kv_verdict v = f->r->o.filter(f->r->o.arg, slice_at(key, key_len), slice_at(value, value_len), &f->out);
    if (v == KV_CHANGE && !buf_failed(&f->out)) {
        *new_value = (char *)f->out.p;
        *new_len = f->out.n;
        *changed = 1;
    }
    return v == KV_REMOVE;
}

static void filter_destroy(void *state) {
    struct filter *f = state;
    struct rocks *r = f->r;
    buf_fini(&f->out);
    free(f);
    atomic_fetch_sub(&r->filters, 1);
}

static const char *filter_name(void *state) {
    (void)state;
    return "tally.purge";
}

static rocksdb_compactionfilter_t *filter_create(void *state, rocksdb_compactionfiltercontext_t *context) {
    struct filter *f = calloc(1, sizeof(*f));
    if (!f) return NULL;
    f->r = state;
    atomic_fetch_add(&f->r->filters, 1);
    f->whole = rocksdb_compactionfiltercontext_is_full_compaction(context);
    buf_init(&f->out, 0);
    return rocksdb_compactionfilter_create(f, filter_destroy, filter_value, filter_name);
}

static char *prefix_of(void *state, const char *key, size_t n, size_t *len) {
    struct rocks *r = state;
    *len = r->o.prefix_len(slice_at(key, n));
    return (char *)(uintptr_t)key;
}

static unsigned char has_prefix(void *state, const char *key, size_t n) {
    struct rocks *r = state;
    return r->o.prefix_len(slice_at(key, n)) > 0;
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

/* Blocks have XXH3 checksums, which cost a fraction of CRC-32C where that is computed in software,
 * as in Debian's RocksDB. Every RocksDB since 6.6 reads format 5, and since 6.27 this checksum, so
 * a data folder works with every RocksDB that Tally is built with. */
static void set_table_options(struct rocks *r) {
    enum { XXH3 = 4 };
    rocksdb_block_based_table_options_t *t = rocksdb_block_based_options_create();
    /* a read of a row that is not in memory decompresses one block; blocks of half the size would
     * double the memory of indexes, to save 7 % of such a read */
    rocksdb_block_based_options_set_block_size(t, 8 << 10);
    rocksdb_block_based_options_set_checksum(t, XXH3);
    rocksdb_block_based_options_set_format_version(t, 5);
    rocksdb_block_based_options_set_filter_policy(t, rocksdb_filterpolicy_create_bloom_full(10));
    r->cache = rocksdb_cache_create_lru(r->o.block_cache_bytes ? r->o.block_cache_bytes : (size_t)128 << 20);
    rocksdb_block_based_options_set_block_cache(t, r->cache);
    rocksdb_block_based_options_set_cache_index_and_filter_blocks(t, 0); /* resident, outside the cache */
    rocksdb_options_set_block_based_table_factory(r->options, t);
    rocksdb_block_based_options_destroy(t);
}

/* Level sizes are derived from the last level: each level holds a tenth of the next, so nine tenths
 * of all rows lie once, in the last one. A compaction rewrites a file and the files below it, and
 * deletes the old ones only afterwards, so small files need little extra room. Deeper levels have
 * larger files, because they have more of them. */
static void set_levels(struct rocks *r) {
    /* FLUSHED: number of files that starts a compaction. FIRST and FILES: a memtable's size divided
     * by the size of the first level and of one of its files. GROWTH: factor of the file size from
     * level to level */
    enum { FLUSHED = 2, FIRST = 2, FILES = 8, GROWTH = 2 };
    int compression[7] = {rocksdb_no_compression, rocksdb_no_compression, rocksdb_lz4_compression,
                          rocksdb_lz4_compression,
                          /* entry 0 is for flushed files, entry 1 for the first level in use, the
                           * others for the levels below it */
                          rocksdb_lz4_compression, rocksdb_lz4_compression, rocksdb_lz4_compression};
    rocksdb_options_set_compression_per_level(r->options, compression, 7);
    rocksdb_options_set_level_compaction_dynamic_level_bytes(r->options, 1);
    rocksdb_options_set_level0_file_num_compaction_trigger(r->options, FLUSHED);
    rocksdb_options_set_max_bytes_for_level_base(r->options, memtable_bytes(r) / FIRST);
    rocksdb_options_set_target_file_size_base(r->options, memtable_bytes(r) / FILES);
    rocksdb_options_set_target_file_size_multiplier(r->options, GROWTH);
}

static void set_options(struct rocks *r) {
    enum { AHEAD = 1 << 20, WINDOW = 2 * KV_DENSE };
    rocksdb_options_t *o = r->options = rocksdb_options_create();
    /* kAbsoluteConsistency: kv_check has cut what a crash tore; kPointInTimeRecovery where it may
     * not */
    rocksdb_options_set_wal_recovery_mode(o, r->o.damage == KV_DAMAGE_LOOK ? 2 : 1);
    /* no folder, so RocksDB runs without a log file of its own */
    if (r->view) rocksdb_options_set_db_log_dir(o, "/dev/null");
    rocksdb_options_set_paranoid_checks(o, 1);
    rocksdb_options_set_write_buffer_size(o, memtable_bytes(r));
    rocksdb_options_set_max_write_buffer_number(o, r->o.memtables ? r->o.memtables : 4);
    rocksdb_options_set_arena_block_size(o, r->o.memtable_bytes && r->o.memtable_bytes < 8 << 20
                                                ? r->o.memtable_bytes / 8
                                                : 1 << 20);
    set_levels(r);
    rocksdb_options_set_max_background_jobs(o, r->o.background_jobs ? (int)r->o.background_jobs : 2);
    rocksdb_options_set_bytes_per_sync(o, 1 << 20);
    /* AHEAD bytes of the log and the MANIFEST are allocated in advance, where RocksDB would
     * allocate 1.1 memtables, which a log seldom fills, and 4 MB. The option ends no log: with one
     * column family the end of a log follows from the memtable's size (rocksdb/options.h) */
    rocksdb_options_set_max_total_wal_size(o, AHEAD);
    rocksdb_options_set_manifest_preallocation_size(o, AHEAD);
    rocksdb_options_set_manual_wal_flush(o, GATHERS_LOG && !r->o.write_through);
    rocksdb_options_set_keep_log_file_num(o, 2);
    rocksdb_options_set_max_log_file_size(o, 4 << 20);
    /* fatal: Debian's RocksDB aborts at the next line when one could not be written, on a full disk
     * say */
    rocksdb_options_set_info_log_level(o, 4);
    rocksdb_options_set_merge_operator(
        o, rocksdb_mergeoperator_create(r, keep_state, full_merge, partial_merge, free_merged, merge_name));
    if (r->o.prefix_len)
        rocksdb_options_set_prefix_extractor(
            o, rocksdb_slicetransform_create(r, keep_state, prefix_of, has_prefix, IN_RANGE prefix_name));
    /* a client waits while a state is put back: use one thread for the few files, and read no
     * statistics of them */
    if (r->o.rows || r->view) {
        rocksdb_options_set_max_file_opening_threads(o, 1);
        rocksdb_options_set_skip_stats_update_on_db_open(o, 1);
    }
    if (r->o.filter)
        rocksdb_options_set_compaction_filter_factory(
            o, rocksdb_compactionfilterfactory_create(r, keep_state, filter_create, filter_name));
    /* readers of a quiet store would otherwise pass tombstones forever */
    rocksdb_options_add_compact_on_deletion_collector_factory(o, WINDOW, KV_DENSE);
    set_table_options(r);
}

static int watch(struct kv *kv, struct slice lower, struct slice upper, kv_notice_fn fn, void *arg, struct err *e) {
    (void)kv, (void)lower, (void)upper, (void)fn, (void)arg, (void)e;
    return 0; /* there is no other writer */
}

static int make_folder(const char *path, struct err *e) {
    if (!mkdir(path, 0700) || errno == EEXIST) return 0;
    return err_set(e, ERR_CONFIG, "cannot make the folder %s: %s", path, strerror(errno));
}

static int save(struct kv *kv, const char *folder, struct err *e) {
    char *text = NULL;
    rocksdb_checkpoint_t *c = rocksdb_checkpoint_object_create(((struct rocks *)kv)->db, &text);
    if (!text) rocksdb_checkpoint_create(c, folder, 0, &text);
    if (c) rocksdb_checkpoint_object_destroy(c);
    return text ? flush_failed((struct rocks *)kv, text, "the state cannot be saved", e) : 0;
}

static void retire(struct kv *kv) { ((struct rocks *)kv)->retired = true; }
static uint32_t iterators(const struct kv *kv) { return atomic_load(&((const struct rocks *)kv)->iterators); }

static struct kv *checkpoint(struct kv *kv, const struct kv_options *o, struct err *e) {
    char rows[PATH_MAX], *text = NULL;
    if (!o->data_dir || snprintf(rows, sizeof(rows), "%s/rows", o->data_dir) >= (int)sizeof(rows))
        return err_set(e, ERR_CONFIG, "a checkpoint of files needs a folder"), NULL;
    if (make_folder(o->data_dir, e)) return NULL;
    rocksdb_checkpoint_t *c = rocksdb_checkpoint_object_create(((struct rocks *)kv)->db, &text);
    if (!text) rocksdb_checkpoint_create(c, rows, 0, &text);
    if (c) rocksdb_checkpoint_object_destroy(c);
    if (text) return flush_failed((struct rocks *)kv, text, "the checkpoint cannot be made", e), NULL;
    return kv_rocksdb_open(o, e);
}

static const struct kv_ops rocks_ops = {
    .close = close_store,
    .get = get,
    .release = release,
    .get_many = get_many,
    .snapshot_new = snapshot_new,
    .snapshot_free = snapshot_free,
    .iter_new = iter_new,
    .iter_move = iter_move,
    .iter_free = iter_free,
    .batch_new = batch_new,
    .batch_free = batch_free,
    .batch_put = batch_put,
    .batch_merge = batch_merge,
    .batch_delete = batch_delete,
    .batch_delete_range = batch_delete_range,
    .batch_expect = batch_expect,
    .batch_clear = batch_clear,
    .watch = watch,
    .checkpoint = checkpoint,
    .load_new = load_new,
    .load_add = kv_load_add,
    .load_finish = kv_load_finish,
    .load_free = kv_load_free,
    .write = write_batch,
    .has_room = has_room,
    .ailing = ailing,
    .sync = sync_log,
    .synced = synced,
    .heal = heal,
    .settle = settle,
    .tidy = tidy,
    .save = save,
    .retire = retire,
    .iterators = iterators,
    .backup = backup,
    .bytes = bytes,
    .drop_range = drop_range,
    .compact = compact,
};

/* ---- insert hints of memtables (near_len) ---- */

/* The C API has no function for this option. */
static rocksdb_options_t *with_hints(const struct rocks *r, char **text) {
    char what[100];
    rocksdb_options_t *with = rocksdb_options_create();
    snprintf(what, sizeof(what), "memtable_insert_with_hint_prefix_extractor=fixed:%zu", r->o.near_len);
    rocksdb_get_options_from_string(r->options, what, with, text);
    return with;
}

/* Sets p to the least key behind all keys with this beginning. False: there is none. */
static bool next_beginning(uint8_t *p, size_t n) {
    while (n && p[n - 1] == UINT8_MAX) p[--n] = 0;
    if (n) p[n - 1]++;
    return n > 0;
}

/* The number of different beginnings of n bytes that keys have, at most `most`. Read errors are
 * ignored here, since later reads report them. The blocks read do not stay in the cache. */
static size_t count_beginnings(struct rocks *r, size_t n, size_t most) {
    uint8_t at[KV_NEAR_MAX] = {0};
    size_t found = 0;
    rocksdb_readoptions_t *o = read_options(ENG_TIER_ANY);
    rocksdb_readoptions_set_total_order_seek(o, 1);
    rocksdb_readoptions_set_fill_cache(o, 0);
    rocksdb_iterator_t *i = rocksdb_create_iterator(r->db, o);
    rocksdb_iter_seek_to_first(i);
    for (bool more = true; more && found < most && rocksdb_iter_valid(i); found++) {
        struct slice key;
        key.p = (const uint8_t *)rocksdb_iter_key(i, &key.n);
        memset(at, 0, n);
        memcpy(at, key.p, key.n < n ? key.n : n);
        more = next_beginning(at, n);
        rocksdb_iter_seek(i, (const char *)at, n);
    }
    rocksdb_iter_destroy(i);
    rocksdb_readoptions_destroy(o);
    return found;
}

/* Whether the stored keys may need more insert hints than a quarter of a memtable holds. If writes
 * were spread evenly over so many beginnings, each row would make a hint that no other row uses.
 * Keys are counted by their first near_len - 1 bytes; each such beginning counts as 256 hints, one
 * for each value of the last byte. */
static bool has_many_hints(struct rocks *r) {
    enum { OF = 4, HINT_BYTES = 300, VALUES = 256 };
    size_t may = memtable_bytes(r) / OF / (HINT_BYTES * VALUES);
    return count_beginnings(r, r->o.near_len - 1, may + 1) > may;
}

static int open_db(struct rocks *r, bool hints, struct err *e) {
    char *text = NULL;
    rocksdb_options_t *o = hints ? with_hints(r, &text) : r->options;
    if (!text) r->db = rocksdb_open(o, r->rows, &text);
    if (hints) rocksdb_options_destroy(o);
    return text ? failed(text, "cannot open the data folder", e) : 0;
}

/* Opens the store, and opens it again without insert hints if its keys have too many beginnings:
 * these can be counted only in an open store. */
static int open_with_hints(struct rocks *r, struct err *e) {
    assert(r->o.near_len <= KV_NEAR_MAX);
    if (open_db(r, true, e)) return -1;
    if (!has_many_hints(r)) return 0;
    rocksdb_close(r->db);
    r->db = NULL;
    return open_db(r, false, e);
}

static int open_store(struct rocks *r, struct err *e) {
    const char *folder = r->o.data_dir;
    struct kv_found found;
    if (snprintf(r->stamp_path, sizeof(r->stamp_path), "%s/tally.stamp", folder) >= (int)sizeof(r->stamp_path))
        return err_set(e, ERR_CONFIG, "the path of the data folder is too long");
    if (make_folder(folder, e)) return -1;
    int stamped = r->o.rows ? 0 : kv_stamp_read(r->stamp_path, &r->stamp, e);
    if (stamped < 0) return -1;
    const char *rows = r->o.rows ? r->o.rows : stamped ? r->stamp.rows : "rows";
    if (snprintf(r->rows, sizeof(r->rows), "%s/%s", folder, rows) >= (int)sizeof(r->rows))
        return err_set(e, ERR_CONFIG, "the path of the data folder is too long");
    if (stamped && kv_state_clean(folder, rows, e)) return -1;
    if ((!r->o.rows && kv_load_clean(folder, e)) || make_folder(r->rows, e) ||
        kv_check(r->rows, stamped ? &r->stamp : NULL, r->o.damage, &found, e))
        return -1;
    set_options(r);
    rocksdb_options_set_create_if_missing(r->options, !found.store);
    count_nothing();
    if (kv_replay(r->options, r->rows, r->o.near_len && found.range_from >= r->o.near_len, e)) return -1;
    if (r->o.near_len ? open_with_hints(r, e) : open_db(r, false, e)) return -1;
    kv_trim_init(&r->trim, r->db);
    return write_stamp(r, e);
}

/* A thread that waits for writing goes before new readers. Otherwise a stream of writes to the
 * store would keep the flush of the log waiting. */
static void init_lock(pthread_rwlock_t *lock) {
    pthread_rwlockattr_t a;
    pthread_rwlockattr_init(&a);
    pthread_rwlockattr_setkind_np(&a, PTHREAD_RWLOCK_PREFER_WRITER_NONRECURSIVE_NP);
    pthread_rwlock_init(lock, &a);
    pthread_rwlockattr_destroy(&a);
}

static struct rocks *rocks_new(const struct kv_options *o, struct err *e) {
    struct rocks *r = calloc(1, sizeof(*r));
    if (!r) return err_nomem(e), NULL;
    r->kv.ops = &rocks_ops;
    r->o = *o;
    kv_log_sync_init(&r->log_sync);
    init_lock(&r->log_lock);
    r->read[ENG_TIER_CACHE] = read_options(ENG_TIER_CACHE);
    r->read[ENG_TIER_ANY] = read_options(ENG_TIER_ANY);
    for (int patience = 0; patience < 2; patience++) {
        r->write[patience] = rocksdb_writeoptions_create();
        rocksdb_writeoptions_set_no_slowdown(r->write[patience], !patience);
    }
    return r;
}

struct kv *kv_rocksdb_open(const struct kv_options *o, struct err *e) {
    struct rocks *r = rocks_new(o, e);
    if (!r) return NULL;
    if (!open_store(r, e)) return &r->kv;
    close_store(&r->kv);
    return NULL;
}

struct kv *kv_rocksdb_view(const struct kv_options *o, const char *folder, struct err *e) {
    struct rocks *r = rocks_new(o, e);
    char *text = NULL;
    if (!r) return NULL;
    r->view = true;
    set_options(r);
    r->db = rocksdb_open_for_read_only(r->options, folder, 0, &text);
    if (!text) {
        kv_trim_init(&r->trim, r->db);
        return &r->kv;
    }
    (void)failed(text,
                 r->o.damage == KV_DAMAGE_LOOK ? "the store cannot be opened" : "the saved state cannot be opened", e);
    close_store(&r->kv);
    return NULL;
}

/* ---- looked through ---- */

/* Reads from the iterator's position to last (NULL: the end), or to the first unreadable block.
 * takes: passes the pairs on, rather than only reading the blocks. False: damaged. */
static bool read_through(rocksdb_iterator_t *i, const struct slice *last, const struct kv_verify *v, bool takes) {
    char *text = NULL;
    for (; rocksdb_iter_valid(i); rocksdb_iter_next(i)) {
        struct slice key, value;
        key.p = (const uint8_t *)rocksdb_iter_key(i, &key.n);
        value.p = (const uint8_t *)rocksdb_iter_value(i, &value.n);
        if (last && slice_cmp(key, *last) > 0) return true;
        if (takes) v->take(v->arg, key, value);
    }
    rocksdb_iter_get_error(i, &text);
    if (!text) return true;
    v->damaged(v->arg, text);
    rocksdb_free(text);
    return false;
}

/* An iterator stops at the first damage, so each file is read by seeking its own keys. */
static void read_each_file(struct rocks *r, rocksdb_iterator_t *i, const struct kv_verify *v) {
    const rocksdb_livefiles_t *files = rocksdb_livefiles(r->db);
    for (int f = 0, n = rocksdb_livefiles_count(files); f < n; f++) {
        struct slice first, last;
        first.p = (const uint8_t *)rocksdb_livefiles_smallestkey(files, f, &first.n);
        last.p = (const uint8_t *)rocksdb_livefiles_largestkey(files, f, &last.n);
        rocksdb_iter_seek(i, chars(first), first.n);
        (void)read_through(i, &last, v, false);
    }
    rocksdb_livefiles_destroy(files);
}

/* Opening the store has already read each file's index, filter and properties. */
int kv_rocksdb_verify(const struct kv_options *o, const char *folder, const struct kv_verify *v, struct err *e) {
    struct err why = {0};
    struct kv *kv = kv_rocksdb_view(o, folder, &why);
    if (!kv && why.no_memory) return err_nomem(e);
    if (!kv) {
        v->damaged(v->arg, why.text);
        return 0;
    }
    struct rocks *r = (struct rocks *)kv;
    rocksdb_readoptions_t *read = read_options(ENG_TIER_ANY);
    rocksdb_readoptions_set_fill_cache(read, 0);
    rocksdb_readoptions_set_total_order_seek(read, 1);
    rocksdb_readoptions_set_ignore_range_deletions(read, 1); /* otherwise blocks that they cover are skipped */
    rocksdb_iterator_t *i = rocksdb_create_iterator(r->db, read);
    rocksdb_iter_seek_to_first(i);
    bool whole = read_through(i, NULL, v, true);
    if (!whole) read_each_file(r, i, v);
    rocksdb_iter_destroy(i);
    rocksdb_readoptions_destroy(read);
    int rc = whole ? v->taken(v->arg, kv, e) : 0;
    close_store(kv);
    return rc;
}
