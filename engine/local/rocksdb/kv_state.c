#include "engine/local/rocksdb/kv_state.h"

#include <ctype.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static int cannot(const char *what, const char *path, struct err *e) {
    return err_set(e, ERR_SERVER, "cannot %s %s: %s", what, path, strerror(errno));
}

static int join(char path[PATH_MAX], const char *folder, const char *name, struct err *e) {
    return snprintf(path, PATH_MAX, "%s/%s", folder, name) < PATH_MAX
               ? 0
               : err_set(e, ERR_CONFIG, "the path %s is too long", folder);
}

int kv_state_check_name(const char *name, struct err *e) {
    enum { NAME_MAX_CHARS = 48 };
    size_t n = strlen(name);
    bool good = n > 0 && n <= NAME_MAX_CHARS;
    for (size_t i = 0; i < n && good; i++) good = isalnum((unsigned char)name[i]) || name[i] == '-' || name[i] == '_';
    return good ? 0 : err_invalid(e, "The name of a saved state is 1 to %d letters, digits, - and _", NAME_MAX_CHARS);
}

int kv_state_path(const char *data_dir, const char *name, char *path, struct err *e) {
    char states[PATH_MAX];
    if (join(states, data_dir, "states", e)) return -1;
    if (mkdir(states, 0700) && errno != EEXIST) return cannot("make the folder", states, e);
    return join(path, states, name, e);
}

static int sync_folder(const char *path, struct err *e) {
    int fd = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    int rc = fd >= 0 && !fsync(fd) ? 0 : cannot("sync the folder", path, e);
    if (fd >= 0) close(fd);
    return rc;
}

static const char note_name[] = "tally.of";

int kv_state_note(const char *folder, const char *of, struct err *e) {
    char path[PATH_MAX];
    if (!*of) return 0;
    if (join(path, folder, note_name, e)) return -1;
    int fd = open(path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
    ssize_t n = (ssize_t)strlen(of);
    int rc = fd >= 0 && write(fd, of, (size_t)n) == n && !fsync(fd) ? 0 : cannot("write", path, e);
    if (fd >= 0) close(fd);
    return rc ? rc : sync_folder(folder, e);
}

int kv_state_read_note(const char *folder, char *of, size_t size, struct err *e) {
    char path[PATH_MAX];
    of[0] = 0;
    if (join(path, folder, note_name, e)) return -1;
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd < 0) return errno == ENOENT ? 0 : cannot("read", path, e);
    ssize_t n = read(fd, of, size - 1);
    int rc = n > 0 ? 0 : cannot("read", path, e);
    of[n > 0 ? n : 0] = 0;
    close(fd);
    return rc;
}

static int copy_bytes(int from, int to) {
    ssize_t n;
    do n = copy_file_range(from, NULL, to, NULL, 1 << 30, 0);
    while (n > 0);
    return n < 0 || fsync(to) ? -1 : 0;
}

static int copy_file(const char *from, const char *to, struct err *e) {
    int in = open(from, O_RDONLY | O_CLOEXEC),
        out = in < 0 ? -1 : open(to, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
    int rc = out >= 0 && !copy_bytes(in, out) ? 0 : cannot("copy to", to, e);
    if (in >= 0) close(in);
    if (out >= 0) close(out);
    return rc;
}

/* Links table files, which RocksDB never changes, and copies all others, which RocksDB continues to
 * write. */
static int take_file(const char *from, const char *to, const char *name, struct err *e) {
    char source[PATH_MAX], target[PATH_MAX];
    size_t n = strlen(name);
    if (join(source, from, name, e) || join(target, to, name, e)) return -1;
    if (n > 4 && !strcmp(name + n - 4, ".sst")) return link(source, target) ? cannot("link", target, e) : 0;
    return copy_file(source, target, e);
}

/* Calls fn for every name in a folder but . and .. ; 0 when there is no such folder. */
static int each_name(const char *path, int (*fn)(void *arg, const char *name, struct err *e), void *arg,
                     struct err *e) {
    DIR *dir = opendir(path);
    int rc = 0;
    if (!dir) return errno == ENOENT ? 0 : cannot("read the folder", path, e);
    for (const struct dirent *d; !rc && (d = readdir(dir));)
        if (strcmp(d->d_name, ".") && strcmp(d->d_name, "..")) rc = fn(arg, d->d_name, e);
    closedir(dir);
    return rc;
}

struct stage {
    const char *from, *to;
};

static int stage_one(void *arg, const char *name, struct err *e) {
    const struct stage *s = arg;
    return take_file(s->from, s->to, name, e);
}

int kv_state_stage(const char *data_dir, const char *name, char rows[32], struct err *e) {
    char from[PATH_MAX], to[PATH_MAX];
    int made = -1;
    if (kv_state_check_name(name, e) || kv_state_path(data_dir, name, from, e)) return -1;
    if (access(from, F_OK)) return err_invalid(e, "There is no saved state '%s'", name);
    for (unsigned i = 1; made && i < 1000000; i++) {
        snprintf(rows, 32, "rows.%u", i);
        if (join(to, data_dir, rows, e)) return -1;
        made = mkdir(to, 0700);
        if (made && errno != EEXIST) break;
    }
    if (made) return cannot("make the folder", to, e);
    struct stage s = {from, to};
    return each_name(from, stage_one, &s, e) || sync_folder(to, e) || sync_folder(data_dir, e) ? -1 : 0;
}

static int remove_one(void *arg, const char *name, struct err *e) {
    char path[PATH_MAX];
    if (join(path, arg, name, e)) return -1;
    return unlink(path) && errno != ENOENT ? cannot("remove", path, e) : 0;
}

int kv_state_remove(const char *path, struct err *e) {
    if (each_name(path, remove_one, (void *)path, e)) return -1;
    return rmdir(path) && errno != ENOENT ? cannot("remove the folder", path, e) : 0;
}

struct clean {
    const char *data_dir, *rows; /* rows: the folder that stays; NULL: clean the states */
};

static int clean_one(void *arg, const char *name, struct err *e) {
    const struct clean *c = arg;
    char path[PATH_MAX];
    bool stale = c->rows ? !strncmp(name, "rows", 4) && (!name[4] || name[4] == '.') && strcmp(name, c->rows)
                         : strchr(name, '.') != NULL;
    if (!stale) return 0;
    return join(path, c->data_dir, name, e) || kv_state_remove(path, e) ? -1 : 0;
}

int kv_state_clean(const char *data_dir, const char *rows, struct err *e) {
    char states[PATH_MAX];
    struct clean of_rows = {data_dir, rows}, of_states = {states, NULL};
    if (join(states, data_dir, "states", e) || each_name(data_dir, clean_one, &of_rows, e)) return -1;
    return each_name(states, clean_one, &of_states, e);
}
