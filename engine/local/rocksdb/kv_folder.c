#include "engine/local/rocksdb/kv_folder.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

int kv_cannot(const char *what, const char *path, struct err *e) {
    return err_set(e, ERR_SERVER, "cannot %s %s: %s", what, path, strerror(errno));
}

int kv_path(char path[PATH_MAX], const char *folder, const char *name, struct err *e) {
    return snprintf(path, PATH_MAX, "%s/%s", folder, name) < PATH_MAX
               ? 0
               : err_set(e, ERR_CONFIG, "the path %s is too long", folder);
}

int kv_make_folder(const char *path, struct err *e) {
    return mkdir(path, 0700) && errno != EEXIST ? kv_cannot("make the folder", path, e) : 0;
}

int kv_sync_folder(const char *path, struct err *e) {
    int fd = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    int rc = fd >= 0 && !fsync(fd) ? 0 : kv_cannot("sync the folder", path, e);
    if (fd >= 0) close(fd);
    return rc;
}

int kv_each_name(const char *path, int (*fn)(void *arg, const char *name, struct err *e), void *arg, struct err *e) {
    DIR *dir = opendir(path);
    const struct dirent *d;
    int rc = 0;
    if (!dir) return errno == ENOENT ? 0 : kv_cannot("read the folder", path, e);
    while (!rc && (errno = 0, d = readdir(dir)))
        if (strcmp(d->d_name, ".") && strcmp(d->d_name, "..")) rc = fn(arg, d->d_name, e);
    if (!rc && errno) rc = kv_cannot("read the folder", path, e);
    closedir(dir);
    return rc;
}

static int remove_file(void *folder, const char *name, struct err *e) {
    char path[PATH_MAX];
    if (kv_path(path, folder, name, e)) return -1;
    return unlink(path) && errno != ENOENT ? kv_cannot("remove", path, e) : 0;
}

int kv_remove_folder(const char *path, struct err *e) {
    if (kv_each_name(path, remove_file, (void *)(uintptr_t)path, e)) return -1;
    return rmdir(path) && errno != ENOENT ? kv_cannot("remove the folder", path, e) : 0;
}

int kv_read_text(const char *path, char *text, size_t size, struct err *e) {
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd < 0) return errno == ENOENT ? 0 : kv_cannot("read", path, e);
    size_t n = 0;
    ssize_t got;
    while ((got = read(fd, text + n, size - 1 - n)) != 0) {
        if (got < 0 && errno == EINTR) continue;
        if (got < 0) break;
        n += (size_t)got;
    }
    if (got < 0) kv_cannot("read", path, e);
    close(fd);
    text[n] = 0;
    return got < 0 ? -1 : 1;
}

int kv_write_synced(const char *path, struct slice bytes, struct err *e) {
    int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
    if (fd < 0) return kv_cannot("write", path, e);
    ssize_t n = write(fd, bytes.p, bytes.n);
    if (n >= 0 && (size_t)n < bytes.n) errno = ENOSPC;
    int rc = n == (ssize_t)bytes.n && !fsync(fd) ? 0 : kv_cannot("write", path, e);
    close(fd);
    return rc;
}
