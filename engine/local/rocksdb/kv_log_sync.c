#include "engine/local/rocksdb/kv_log_sync.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

void kv_log_sync_init(struct kv_log_sync *s) { *s = (struct kv_log_sync){.fd = -1}; }

static int cannot(const char *what, struct err *e) {
    return err_set(e, ERR_SERVER, "the log cannot be synced: %s: %s", what, strerror(errno));
}

static void keep(struct kv_log_sync *s, int fd, uint64_t number) {
    if (s->fd >= 0) close(s->fd);
    s->fd = fd;
    s->number = number;
}

/* Syncs a log and keeps it open if it is the newest so far. RocksDB may have deleted it already,
 * because its rows are in table files. */
static int sync_file(struct kv_log_sync *s, int folder, const char *name, uint64_t number, struct err *e) {
    int fd = openat(folder, name, O_RDONLY | O_CLOEXEC);
    if (fd < 0) return errno == ENOENT ? 0 : cannot(name, e);
    int rc = fdatasync(fd) ? cannot(name, e) : 0;
    if (!rc && (s->fd < 0 || number > s->number)) keep(s, fd, number);
    else close(fd);
    return rc;
}

/* Syncs all logs from the given number on, and the folder, which names them. */
static int sync_files(struct kv_log_sync *s, DIR *d, uint64_t first, struct err *e) {
    struct dirent *entry;
    while ((errno = 0, entry = readdir(d))) {
        uint64_t number;
        int end = 0;
        bool is_log = sscanf(entry->d_name, "%" SCNu64 ".log%n", &number, &end) == 1 && end && !entry->d_name[end];
        if (is_log && number >= first && sync_file(s, dirfd(d), entry->d_name, number, e)) return -1;
    }
    if (errno) return cannot("the folder", e);
    return fsync(dirfd(d)) ? cannot("the folder", e) : 0;
}

int kv_log_sync(struct kv_log_sync *s, rocksdb_t *db, const char *folder, struct err *e) {
    uint64_t version = 0;
    if (rocksdb_property_int(db, "rocksdb.current-super-version-number", &version)) version = 0;
    if (s->fd >= 0 && fdatasync(s->fd)) return cannot(folder, e);
    if (s->fd >= 0 && version && version == s->version) return 0;
    DIR *d = opendir(folder);
    if (!d) return cannot(folder, e);
    int rc = sync_files(s, d, s->fd >= 0 ? s->number + 1 : 0, e);
    closedir(d);
    s->version = rc ? 0 : version;
    return rc;
}

void kv_log_sync_free(struct kv_log_sync *s) {
    if (s->fd >= 0) close(s->fd);
    s->fd = -1;
}
