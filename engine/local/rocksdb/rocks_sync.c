/* The log on disk, and the stamp of the data folder, which says how far it is
 * (engine/local/rocksdb/kv_stamp.h). */
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/hot.h"
#include "base/log.h"
#include "engine/local/rocksdb/kv_folder.h"
#include "engine/local/rocksdb/rocks.h"

int rocks_log_failed(struct kv *kv, char *text, const char *what, struct err *e) {
    atomic_store(&kv->log_suspect, true);
    return rocks_failed(text, what, e);
}

/* ---- the log ----
 *
 * RocksDB 7.8 could sync its log itself (rocksdb_flush_wal with sync), but one failure there may
 * end all writes until a restart: a write that meets the log between the failed sync and the record
 * of that error gets "Writer has previous error", which RocksDB takes for an error that it cannot
 * recover from (https://github.com/facebook/rocksdb/issues/12998). So RocksDB only hands the log to
 * the operating system, and fdatasync is called here. RocksDB does not hear of a failure, so no
 * write counts as durable until the memtable is flushed and a new log has begun. */

static int sync_failed(const char *what, struct err *e) {
    return err_set(e, ERR_SERVER, "the log cannot be synced: %s: %s", what, strerror(errno));
}

struct logs {
    struct kv *kv;
    uint64_t first; /* number of the first one to sync */
};

/* Syncs a log, and keeps it open if it is the newest so far. RocksDB may have deleted it already,
 * because its rows are in table files. */
static int sync_one(void *arg, const char *name, struct err *e) {
    const struct logs *l = arg;
    char path[PATH_MAX];
    uint64_t number;
    int end = 0;
    if (sscanf(name, "%" SCNu64 ".log%n", &number, &end) != 1 || !end || name[end] || number < l->first) return 0;
    if (kv_path(path, l->kv->rows, name, e)) return -1;
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd < 0) return errno == ENOENT ? 0 : sync_failed(name, e);
    int rc = fdatasync(fd) ? sync_failed(name, e) : 0, other = fd;
    if (!rc && (l->kv->log_fd < 0 || number > l->kv->log_number)) {
        other = l->kv->log_fd;
        l->kv->log_fd = fd;
        l->kv->log_number = number;
    }
    if (other >= 0) close(other);
    return rc;
}

/* Everything that RocksDB has handed to the operating system is on disk. A new log begins together
 * with a memtable, which changes RocksDB's version number; then the folder is synced, too, which
 * names the log. */
static int sync_logs(struct kv *kv, struct err *e) {
    uint64_t version = rocks_property(kv->db, "rocksdb.current-super-version-number", 0);
    if (kv->log_fd >= 0 && fdatasync(kv->log_fd)) return sync_failed(kv->rows, e);
    if (kv->log_fd >= 0 && version && version == kv->log_version) return 0;
    struct logs l = {.kv = kv, .first = kv->log_fd >= 0 ? kv->log_number + 1 : 0};
    int rc = kv_each_name(kv->rows, sync_one, &l, e) || kv_sync_folder(kv->rows, e) ? -1 : 0;
    kv->log_version = rc ? 0 : version;
    return rc;
}

static int flush_log(struct kv *kv, bool to_disk, struct err *e) {
    char *text = NULL;
    uint64_t last = rocksdb_get_latest_sequence_number(kv->db);
    /* Debian's RocksDB aborts when it writes to a log after a failed write. Its writes check for
     * that; a flush of the log does not, so a write goes first. */
    if (UNLIKELY(atomic_load_explicit(&kv->log_suspect, memory_order_relaxed))) {
        atomic_store(&kv->log_suspect, false);
        if (rocks_write_nothing(kv, false, e) == -1) {
            kv->sync_failed = true;
            return -1;
        }
    }
    pthread_rwlock_wrlock(&kv->log_lock);
    bool suspect = atomic_load(&kv->log_suspect); /* a write has failed since the check */
    if (!suspect) rocksdb_flush_wal(kv->db, false, &text);
    pthread_rwlock_unlock(&kv->log_lock);
    if (suspect || text) kv->sync_failed = true;
    if (suspect) return err_set(e, ERR_SERVER, "the log cannot be synced: a write to it has failed");
    if (text) return rocks_log_failed(kv, text, "the log cannot be synced", e);
    if (to_disk && sync_logs(kv, e)) {
        kv->sync_failed = true;
        return -1;
    }
    if (to_disk) atomic_store_explicit(&kv->synced, last, memory_order_relaxed);
    return 0;
}

/* ---- the stamp ---- */

static int manifest_path(const struct kv *kv, uint64_t number, char path[PATH_MAX], struct err *e) {
    char name[64];
    snprintf(name, sizeof(name), "MANIFEST-%06llu", (unsigned long long)number);
    return kv_path(path, kv->rows, name, e);
}

/* The number of the oldest log that RocksDB needs. RocksDB writes it to the MANIFEST before it
 * reports it here. */
static uint64_t first_log(const struct kv *kv) {
    return rocks_property(kv->db, "rocksdb.min-log-number-to-keep", 0);
}

/* The MANIFEST is synced, because the stamp counts only bytes that are on disk. The sizes of
 * the logs in the stamp are read before the logs are synced. */
int rocks_write_stamp(struct kv *kv, struct err *e) {
    struct kv_stamp now;
    char path[PATH_MAX];
    kv->stamped_us = clock_machine_us(&clock_real);
    if (kv_stamp_take(kv->rows, first_log(kv), &now, e)) return -1;
    snprintf(now.rows, sizeof(now.rows), "%s", strrchr(kv->rows, '/') + 1);
    int rc = manifest_path(kv, now.manifest, path, e), fd = rc ? -1 : open(path, O_RDONLY | O_CLOEXEC);
    if (!rc && (fd < 0 || fdatasync(fd))) rc = kv_cannot("sync", path, e);
    if (fd >= 0) close(fd);
    if (rc || flush_log(kv, true, e) || kv_stamp_write(kv->stamp_path, &now, e)) {
        kv_stamp_fini(&now);
        return -1;
    }
    kv_stamp_fini(&kv->stamp);
    kv->stamp = now;
    kv->stamped = atomic_load_explicit(&kv->synced, memory_order_relaxed);
    return 0;
}

int rocks_flush(struct kv *kv, bool wait, struct err *e) {
    char *text = NULL;
    rocksdb_flushoptions_t *fo = rocksdb_flushoptions_create();
    rocksdb_flushoptions_set_wait(fo, wait);
    rocksdb_flush(kv->db, fo, &text);
    rocksdb_flushoptions_destroy(fo);
    return text ? rocks_log_failed(kv, text, "the store cannot be flushed", e) : 0;
}

/* Flushes rows that were only in the log from memory to table files, and begins a new log: the old
 * one may have a hole where its sync failed. After a full disk RocksDB does that by itself, every
 * five seconds, once nothing runs in the background. A flush requested meanwhile fails after a
 * second, and one request each second would prevent its own flush for good, so this function first
 * tries a write. A flush of an empty memtable would not begin a new log, so the write is a
 * deletion. */
int kv_heal(struct kv *kv, struct err *e) {
    if (rocks_injected(FAULT_KV_SYNC, "the log cannot be synced", e)) return -1;
    if (kv->memory) return 0;
    int rc = rocks_write_nothing(kv, true, e);
    if (rc == KV_BUSY) return err_set(e, ERR_SERVER, "the store accepts no writes");
    if (rc || rocks_flush(kv, true, e) || flush_log(kv, true, e)) return -1;
    kv->sync_failed = false;
    return 0;
}

static bool manifest_grew(const struct kv *kv) {
    char path[PATH_MAX];
    struct stat st;
    struct err e = {0};
    return manifest_path(kv, kv->stamp.manifest, path, &e) || stat(path, &st) ||
           (uint64_t)st.st_size != kv->stamp.manifest_bytes;
}

/* A failure is only logged: an older stamp requires less than it could, but it is still true, so a
 * full disk is no reason to stop. */
void rocks_renew_stamp(struct kv *kv) {
    struct err e = {0};
    if (kv->sync_failed) return;
    kv->stamp_failed = rocks_write_stamp(kv, &e) != 0;
    if (kv->stamp_failed) log_warn("the stamp of the data folder is not renewed: %s", e.text);
}

/* Whether the stamp covers some bytes of every log that is not empty. A new log begins together with a
 * memtable, which changes RocksDB's version number. */
static bool knows_logs(struct kv *kv) {
    uint64_t version = rocks_property(kv->db, "rocksdb.current-super-version-number", 0);
    struct kv_stamp now;
    struct err e = {0};
    if (version && version == kv->version) return true;
    if (kv_stamp_take(kv->rows, first_log(kv), &now, &e)) return true; /* then a stamp could not be made either */
    bool all = true, begun = now.n_logs > 0 && now.logs[now.n_logs - 1].bytes > 0;
    for (uint32_t i = 0; i < now.n_logs; i++)
        all = all && (!now.logs[i].bytes || kv_stamp_log_bytes(&kv->stamp, now.logs[i].number));
    kv_stamp_fini(&now);
    if (all && begun) kv->version = version;
    return all;
}

/* The stamp names a new log before any write in it is acknowledged as on disk; otherwise a start
 * would not notice that the log's content is missing. */
int kv_sync(struct kv *kv, bool to_disk, struct err *e) {
    enum { AGAIN_US = 200000 };
    if (rocks_injected(FAULT_KV_SYNC, "the log cannot be synced", e)) return -1;
    if (kv->memory) return 0;
    if (flush_log(kv, to_disk, e)) return -1;
    bool failed = kv->stamp_failed && clock_machine_us(&clock_real) - kv->stamped_us < AGAIN_US;
    if (to_disk && !failed && !knows_logs(kv)) rocks_renew_stamp(kv);
    return kv->sync_failed ? err_set(e, ERR_SERVER, "the log cannot be synced") : 0;
}

void kv_synced(struct kv *kv) {
    enum { STAMP_US = 5000000, STAMP_AGAIN_US = 200000 };
    if (kv->memory) return;
    int64_t age = clock_machine_us(&clock_real) - kv->stamped_us;
    if (age > STAMP_US || (age > STAMP_AGAIN_US && manifest_grew(kv))) rocks_renew_stamp(kv);
}

/* Starts a flush. RocksDB waits before the flush begins while one file or one memtable more would
 * make it slow down writers, so the caller is a thread that may wait. */
static void flush_soon(struct kv *kv) {
    struct err e = {0};
    if (rocks_flush(kv, false, &e)) log_warn("%s", e.text);
}

/* The store is at rest if there was nothing to record since the last call. Then rows that are only
 * in the log are flushed: a start after a kill reads every such row into memory again, which takes
 * nearly all of its time. Less than an eighth of a memtable stays, because small files would be
 * compacted with large ones too often. The thread that syncs must not wait (flush_soon), and
 * RocksDB does not wait when no flush or compaction is running or due. */
void kv_settle(struct kv *kv) {
    static const char *const work[] = {"rocksdb.num-immutable-mem-table", "rocksdb.num-running-flushes",
                                       "rocksdb.num-running-compactions", "rocksdb.compaction-pending"};
    enum { OF = 8 };
    if (kv->memory) return;
    if (atomic_load_explicit(&kv->synced, memory_order_relaxed) != kv->stamped || manifest_grew(kv)) {
        rocks_renew_stamp(kv);
        return;
    }
    bool works = kv->sync_failed;
    for (size_t i = 0; i < ARRAY_LEN(work) && !works; i++) works = rocks_property(kv->db, work[i], 1);
    uint64_t bytes = rocks_property(kv->db, "rocksdb.cur-size-active-mem-table", 0);
    if (!works && bytes >= rocks_memtable_bytes(kv) / OF) flush_soon(kv);
}

/* RocksDB counts the errors of its background work and never lowers the count. Writing a note to
 * the log shows whether the newest error still matters. */
bool kv_ailing(struct kv *kv, char *why, size_t size) {
    uint64_t errors = rocks_property(kv->db, "rocksdb.background-errors", 0);
    if (!atomic_load(&kv->write_failed) && errors == atomic_load(&kv->errors_over)) return false;
    struct err e = {0};
    bool ails = rocks_write_nothing(kv, false, &e) == -1;
    if (!ails) atomic_store(&kv->errors_over, errors);
    else snprintf(why, size, "storage failed: %s", e.text);
    return ails;
}

/* A file that was moved to the last level without a rewrite still has its tombstones. When a
 * snapshot is released, RocksDB looks for files with tombstones older than the last write and
 * compacts them; so this function takes and releases a snapshot. */
void kv_tidy(struct kv *kv, uint64_t deleted) {
    struct err e = {0};
    kv->deleted += deleted;
    /* if the log cannot be written, the next call tries again */
    if (kv->deleted >= KV_DENSE && !rocks_write_nothing(kv, true, &e)) {
        kv->deleted = 0;
        flush_soon(kv);
        (void)!rocks_write_nothing(kv, true, &e);
    }
    rocksdb_release_snapshot(kv->db, rocksdb_create_snapshot(kv->db));
}
