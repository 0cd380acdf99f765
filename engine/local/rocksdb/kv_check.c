#include "engine/local/rocksdb/kv_check.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <limits.h>
#include <stdio.h>
#include <unistd.h>

#include "base/log.h"
#include "engine/local/rocksdb/kv_log.h"

static const char remedy[] = "Restore the data folder from a copy; or, to keep what precedes the damage and lose the "
                             "rest, start once "
                             "with --on-damage cut";

/* ---- the MANIFEST: which logs are still needed ---- */

static void skip_bytes(struct rd *r) { rd_bytes(r, (size_t)rd_uvarint(r)); }

/* One record of the MANIFEST (RocksDB's version edit): fields, each after its tag. Reading stops
 * at an unknown tag. */
static void read_edit(struct slice edit, uint64_t *log_number) {
    enum {
        COMPARATOR = 1, LOG_NUMBER, NEXT_FILE, LAST_SEQUENCE, COMPACT_CURSOR, DELETED_FILE, PREV_LOG_NUMBER = 9,
        MIN_LOG, NEW_FILE = 103, COLUMN_FAMILY = 200, MAX_COLUMN_FAMILY = 203,
        SAFE_TO_IGNORE = 1 << 13, /* a bit */
        LAST_FIELD = 1            /* of a new file */
    };
    struct rd r = rd_of(edit);
    while (rd_left(&r) && !r.bad) {
        uint64_t tag = rd_uvarint(&r), log;
        switch (tag) {
        case LOG_NUMBER:
            log = rd_uvarint(&r);
            if (!r.bad && log > *log_number) *log_number = log;
            break;
        case NEXT_FILE: case LAST_SEQUENCE: case PREV_LOG_NUMBER: case MIN_LOG: case COLUMN_FAMILY:
        case MAX_COLUMN_FAMILY: rd_uvarint(&r); break;
        case COMPARATOR: skip_bytes(&r); break;
        case COMPACT_CURSOR: rd_uvarint(&r), skip_bytes(&r); break;
        case DELETED_FILE: rd_uvarint(&r), rd_uvarint(&r); break;
        case NEW_FILE:
            for (int i = 0; i < 3; i++) rd_uvarint(&r); /* level, number, bytes */
            for (int i = 0; i < 2; i++) skip_bytes(&r); /* smallest and largest key */
            for (int i = 0; i < 2; i++) rd_uvarint(&r); /* smallest and largest sequence */
            while (!r.bad && rd_uvarint(&r) != LAST_FIELD) skip_bytes(&r);
            break;
        default:
            if (!(tag & SAFE_TO_IGNORE)) return;
            skip_bytes(&r);
        }
    }
}

static int cut(const char *path, uint64_t at, uint64_t size, struct err *e) {
    if (at == size) return 0;
    log_warn("%s: %" PRIu64 " bytes after byte %" PRIu64 " cannot be read and are cut off", path, size - at, at);
    int fd = open(path, O_WRONLY | O_CLOEXEC);
    int rc = fd >= 0 && !ftruncate(fd, (off_t)at) && !fsync(fd)
                 ? 0
                 : err_set(e, ERR_CONFIG, "cannot cut %s: %s", path, strerror(errno));
    if (fd >= 0) close(fd);
    return rc;
}

/* Checks the MANIFEST. Bytes after its last whole record were never in force: a crash has torn a
 * record, or lost some of its sectors while later whole records reached the disk. RocksDB
 * would refuse such an end, so it is cut off. The bytes that the stamp covers must be whole. Other
 * damage before a whole record does not come from a crash. */
static int check_manifest(const char *folder, const struct kv_stamp *stamp, enum kv_damage damage, uint64_t *log_number,
                          struct err *e) {
    char path[PATH_MAX];
    uint64_t number = 0, bytes = 0;
    struct kv_log l;
    struct kv_log_record r;
    if (kv_stamp_manifest(folder, &number, &bytes, e) < 0) return -1;
    snprintf(path, sizeof(path), "%s/MANIFEST-%06" PRIu64, folder, number);
    if (stamp && number < stamp->manifest)
        return err_set(e, ERR_CONFIG,
                       "%s is in force, but number %" PRIu64
                       " was already: the files of the store are from different times. Restore the data "
                       "folder from a copy",
                       path, stamp->manifest);
    if (kv_log_open(&l, path, e)) return -1;
    uint64_t needed = stamp && number == stamp->manifest ? stamp->manifest_bytes : 1, whole = 0;
    enum kv_log_got got;
    while ((got = kv_log_next(&l, &r, e)) == KV_LOG_RECORD) {
        read_edit(r.bytes, log_number);
        whole = r.end;
    }
    bool hole = false, bad = got == KV_LOG_BAD;
    int more = bad ? kv_log_resync(&l, &hole, e) : 0;
    kv_log_close(&l);
    if (got == KV_LOG_FAILED || more < 0) return -1;
    if (whole >= needed && (!more || hole)) return bad && damage != KV_DAMAGE_LOOK ? cut(path, whole, l.size, e) : 0;
    return err_set(
        e, ERR_CONFIG,
        "%s is damaged: it is whole up to byte %" PRIu64 " and was known to be so up to %" PRIu64
        ". It lists the files that hold the rows, so nothing can be cut off: restore the data folder from a copy",
        path, whole, needed);
}

/* ---- the logs ---- */

/* The records after the first unreadable position, in its log and in later ones. */
struct behind {
    uint64_t first;  /* sequence of the first record; 0 if there is none */
    uint64_t synced; /* the sequence that the records there state to be on disk */
    bool pieces;     /* there is a whole piece in the same log */
    bool hole;       /* between them there may be bytes that never reached the disk */
};

struct check {
    const char *folder;
    const struct kv_stamp *stamp;
    enum kv_damage damage;
    uint64_t last; /* sequence of the last whole record; 0 if none yet */
};

static int read_records_after(struct kv_log *l, struct behind *b, struct err *e) {
    struct kv_log_record r;
    enum kv_log_got got;
    do {
        while ((got = kv_log_next(l, &r, e)) == KV_LOG_RECORD) {
            if (!b->first) b->first = r.first;
            if (r.synced > b->synced) b->synced = r.synced;
        }
        bool hole;
        if (got == KV_LOG_BAD && kv_log_resync(l, &hole, e) <= 0) got = e->set ? KV_LOG_FAILED : KV_LOG_END;
    } while (got == KV_LOG_BAD);
    return got == KV_LOG_FAILED ? -1 : 0;
}

static void log_path(char path[PATH_MAX], const struct check *c, uint64_t number) {
    snprintf(path, PATH_MAX, "%s/%06" PRIu64 ".log", c->folder, number);
}

/* Handles a log (index i) that is whole only up to `whole`: refuses the store, or cuts the log
 * there and empties the later logs. */
static int decide(const struct check *c, const struct kv_stamp *found, uint32_t i, uint64_t whole,
                  struct behind *b, struct err *e) {
    char path[PATH_MAX];
    int rc = 0;
    for (uint32_t k = i + 1; !rc && k < found->n_logs; k++) {
        struct kv_log l;
        log_path(path, c, found->logs[k].number);
        if (kv_log_open(&l, path, e)) return -1;
        rc = read_records_after(&l, b, e);
        kv_log_close(&l);
    }
    if (rc) return -1;
    /* Whether the unreadable bytes were on disk before, as far as the stamp and the later records
     * show. A crash loses only whole sectors. */
    bool was_on_disk = whole < kv_stamp_log_bytes(c->stamp, found->logs[i].number) ||
                       (b->synced > c->last && (c->last || b->synced + 1 >= b->first)) || (b->pieces && !b->hole);
    log_path(path, c, found->logs[i].number);
    if (c->damage != KV_DAMAGE_CUT && was_on_disk)
        return err_set(e, ERR_CONFIG,
                       "%s is damaged: it is whole up to byte %" PRIu64 ", and acknowledged rows followed. %s",
                       path, whole, remedy);
    if (c->damage == KV_DAMAGE_LOOK) return 0;
    rc = cut(path, whole, found->logs[i].bytes, e);
    for (i++; !rc && i < found->n_logs; i++) {
        log_path(path, c, found->logs[i].number);
        rc = cut(path, 0, found->logs[i].bytes, e);
    }
    return rc;
}

/* Checks a log. Returns 1 if it is whole, 0 if damaged and handled by decide, or -1 on error */
static int check_log(struct check *c, const struct kv_stamp *found, uint32_t i, struct err *e) {
    char path[PATH_MAX];
    struct kv_log l;
    struct kv_log_record r;
    struct behind behind = {0};
    log_path(path, c, found->logs[i].number);
    if (kv_log_open(&l, path, e)) return -1;
    enum kv_log_got got;
    while ((got = kv_log_next(&l, &r, e)) == KV_LOG_RECORD) c->last = r.last;
    int rc = got == KV_LOG_FAILED ? -1 : 0;
    bool bad = got == KV_LOG_BAD;
    if (bad) rc = kv_log_resync(&l, &behind.hole, e);
    if (rc > 0) {
        behind.pieces = true;
        rc = read_records_after(&l, &behind, e);
    }
    kv_log_close(&l);
    bool cut_short = r.at < kv_stamp_log_bytes(c->stamp, found->logs[i].number);
    if (rc || (!bad && !cut_short)) return rc ? -1 : 1;
    return decide(c, found, i, r.at, &behind, e);
}

/* ---- the whole ---- */

/* Checks the store of a folder whose content is *found. Logs that RocksDB does not need any more are
 * removed from *found. */
static int check_store(struct check *c, struct kv_stamp *found, struct err *e) {
    const struct kv_stamp *stamp = c->stamp;
    char path[PATH_MAX];
    uint64_t log_number = 0;
    if (!found->manifest && stamp)
        return err_set(e, ERR_CONFIG,
                       "%s holds no store (its file CURRENT is missing), but there was one. Restore the data folder "
                       "from a copy; to begin with an empty store, remove the whole data folder",
                       c->folder);
    bool bytes = false; /* in logs; a folder without CURRENT is new, or has lost the file */
    for (uint32_t i = 0; i < found->n_logs; i++) bytes = bytes || found->logs[i].bytes;
    if (!found->manifest)
        return bytes ? err_set(e, ERR_CONFIG,
                               "%s/CURRENT is missing, but there are logs of a store. Restore the data folder from a "
                               "copy",
                               c->folder)
                     : 0;
    if (stamp && strcmp(stamp->store, found->store))
        return err_set(e, ERR_CONFIG,
                       "%s/IDENTITY says %s, but the store of this data folder is %s. Restore the data folder from a "
                       "copy, all of it from the same one",
                       c->folder, *found->store ? found->store : "nothing", stamp->store);
    if (check_manifest(c->folder, stamp, c->damage, &log_number, e)) return -1;
    uint32_t old = 0;
    while (old < found->n_logs && found->logs[old].number < log_number) old++;
    found->n_logs -= old;
    if (old) memmove(found->logs, found->logs + old, found->n_logs * sizeof(*found->logs));
    for (uint32_t i = 0; stamp && c->damage != KV_DAMAGE_CUT && i < stamp->n_logs; i++) {
        uint64_t number = stamp->logs[i].number;
        bool there = number < log_number;
        for (uint32_t k = 0; k < found->n_logs && !there; k++) there = found->logs[k].number == number;
        log_path(path, c, number);
        if (!there) return err_set(e, ERR_CONFIG, "%s is missing; acknowledged rows were in it. %s", path, remedy);
    }
    int rc = 1;
    for (uint32_t i = 0; rc > 0 && i < found->n_logs; i++) rc = check_log(c, found, i, e);
    return rc < 0 ? -1 : 1;
}

int kv_check(const char *folder, const struct kv_stamp *stamp, enum kv_damage damage, uint64_t *log_bytes,
             struct err *e) {
    struct check c = {.folder = folder, .stamp = stamp, .damage = damage};
    struct kv_stamp found;
    *log_bytes = 0;
    if (kv_stamp_take(folder, 0, &found, e)) return KV_CHECK_UNREAD;
    int rc = check_store(&c, &found, e);
    for (uint32_t i = 0; i < found.n_logs; i++) *log_bytes += found.logs[i].bytes;
    kv_stamp_fini(&found);
    return rc;
}
