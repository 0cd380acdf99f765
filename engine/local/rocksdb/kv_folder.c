#include "engine/local/rocksdb/kv_folder.h"

#include <ctype.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/file.h"

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
    const char *why;
    int fd = file_open_read(path, &why);
    if (fd < 0) return errno == ENOENT ? 0 : err_set(e, ERR_CONFIG, "cannot read %s: %s", path, why);
    size_t n = 0;
    ssize_t got = 0;
    while (n < size && (got = read(fd, text + n, size - n)) != 0) {
        if (got < 0 && errno == EINTR) continue;
        if (got < 0) break;
        n += (size_t)got;
    }
    if (got < 0) kv_cannot("read", path, e);
    else if (n == size) got = err_set(e, ERR_CONFIG, "%s has more than %zu bytes", path, size - 1);
    close(fd);
    text[n < size ? n : 0] = 0;
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

/* ---- saved states ---- */

int kv_state_path(const char *data_dir, const char *name, char *path, struct err *e) {
    enum { NAME_MAX_CHARS = 48 };
    char states[PATH_MAX];
    size_t n = strlen(name);
    bool good = n > 0 && n <= NAME_MAX_CHARS;
    for (size_t i = 0; i < n && good; i++) good = isalnum((unsigned char)name[i]) || name[i] == '-' || name[i] == '_';
    if (!good) return err_invalid(e, "The name of a saved state is 1 to %d letters, digits, - and _", NAME_MAX_CHARS);
    return kv_path(states, data_dir, "states", e) || kv_make_folder(states, e) ? -1 : kv_path(path, states, name, e);
}

static const char note_name[] = "tally.of";

int kv_state_note(const char *folder, const char *of, struct err *e) {
    char path[PATH_MAX];
    if (!*of) return 0;
    return kv_path(path, folder, note_name, e) || kv_write_synced(path, slice_str(of), e) ? -1
                                                                                          : kv_sync_folder(folder, e);
}

int kv_state_read_note(const char *folder, char *of, size_t size, struct err *e) {
    char path[PATH_MAX];
    of[0] = 0;
    return kv_path(path, folder, note_name, e) || kv_read_text(path, of, size, e) < 0 ? -1 : 0;
}

struct stage {
    const char *from, *to;
};

/* Links a table file, which RocksDB never changes, and copies any other, which RocksDB continues to
 * write. */
static int stage_one(void *arg, const char *name, struct err *e) {
    const struct stage *s = arg;
    char source[PATH_MAX], target[PATH_MAX];
    size_t n = strlen(name);
    if (kv_path(source, s->from, name, e) || kv_path(target, s->to, name, e)) return -1;
    if (n > 4 && !strcmp(name + n - 4, ".sst")) return link(source, target) ? kv_cannot("link", target, e) : 0;
    int in = open(source, O_RDONLY | O_CLOEXEC),
        out = in < 0 ? -1 : open(target, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
    ssize_t left = out < 0 ? -1 : 1;
    while (left > 0) left = copy_file_range(in, NULL, out, NULL, 1 << 30, 0);
    int rc = left == 0 && !fsync(out) ? 0 : kv_cannot("copy to", target, e);
    if (in >= 0) close(in);
    if (out >= 0) close(out);
    return rc;
}

int kv_state_stage(const char *data_dir, const char *from, char rows[32], struct err *e) {
    char to[PATH_MAX];
    int made = -1;
    for (unsigned i = 1; made && i < 1000000; i++) {
        snprintf(rows, 32, "rows.%u", i);
        if (kv_path(to, data_dir, rows, e)) return -1;
        made = mkdir(to, 0700);
        if (made && errno != EEXIST) break;
    }
    if (made) return kv_cannot("make the folder", to, e);
    struct stage s = {from, to};
    return kv_each_name(from, stage_one, &s, e) || kv_sync_folder(to, e) || kv_sync_folder(data_dir, e) ? -1 : 0;
}

struct clean {
    const char *data_dir, *rows; /* rows: the folder that stays; NULL means clean the states */
};

static int clean_one(void *arg, const char *name, struct err *e) {
    const struct clean *c = arg;
    char path[PATH_MAX];
    bool stale = c->rows ? !strncmp(name, "rows", 4) && (!name[4] || name[4] == '.') && strcmp(name, c->rows)
                         : strchr(name, '.') != NULL;
    if (!stale) return 0;
    return kv_path(path, c->data_dir, name, e) || kv_remove_folder(path, e) ? -1 : 0;
}

int kv_state_clean(const char *data_dir, const char *rows, struct err *e) {
    char states[PATH_MAX];
    struct clean of_rows = {data_dir, rows}, of_states = {states, NULL};
    if (kv_path(states, data_dir, "states", e) || kv_each_name(data_dir, clean_one, &of_rows, e)) return -1;
    return kv_each_name(states, clean_one, &of_states, e);
}
