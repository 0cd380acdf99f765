#include "server/data_dir.h"

#include <errno.h>
#include <fcntl.h>
#include <fts.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <unistd.h>

/* Cuts the last name of a path. Returns false if the path is the root or empty. */
static bool to_parent(char *path) {
    char *slash = strrchr(path, '/');
    if (!*path || !strcmp(path, "/")) return false;
    if (slash) slash[slash == path] = 0;
    else *path = 0;
    return true;
}

/* Refuses a folder within another data folder, because a copy or removal of the outer one would include the
 * inner one. If the folder is missing, the check begins at its nearest parent that exists. */
static int refuse_nested(const char *path, struct err *e) {
    static const char *const marks[] = {"tallyd.lock", "tally.stamp"};
    char at[PATH_MAX], real[PATH_MAX], mark[PATH_MAX + 16];
    snprintf(at, sizeof(at), "%s", path);
    bool exists = realpath(path, real), found = exists;
    while (!found && to_parent(at)) found = realpath(*at ? at : ".", real);
    if (!found || (exists && !to_parent(real))) return 0;
    do {
        for (size_t i = 0; i < ARRAY_LEN(marks); i++) {
            snprintf(mark, sizeof(mark), "%s/%s", real, marks[i]);
            if (!access(mark, F_OK))
                return err_set(e, ERR_CONFIG, "%s is within %s, which is a data folder itself; name a folder outside",
                               path, real);
        }
    } while (to_parent(real));
    return 0;
}

int data_dir_open(const char *path, struct err *e) {
    char part[PATH_MAX], lock[PATH_MAX];
    struct stat st;
    size_t n = strlen(path);
    if (n >= sizeof(part)) return err_set(e, ERR_CONFIG, "the path of the data folder is too long");
    if (refuse_nested(path, e)) return -1;
    for (size_t i = 1; i <= n; i++) { /* the folder and those above it */
        if (path[i] != '/' && path[i]) continue;
        memcpy(part, path, i);
        part[i] = 0;
        if (mkdir(part, 0700) && errno != EEXIST)
            return err_set(e, ERR_CONFIG, "cannot make the folder %s: %s", part, strerror(errno));
    }
    if (stat(path, &st)) return err_set(e, ERR_CONFIG, "cannot use the data folder %s: %s", path, strerror(errno));
    if (!S_ISDIR(st.st_mode)) return err_set(e, ERR_CONFIG, "the data folder %s is not a folder", path);
    if (st.st_mode & 077 && chmod(path, 0700))
        return err_set(e, ERR_CONFIG, "cannot make the data folder %s private (mode 0700): %s", path, strerror(errno));
    if (snprintf(lock, sizeof(lock), "%s/tallyd.lock", path) >= (int)sizeof(lock))
        return err_set(e, ERR_CONFIG, "the path of the data folder is too long");
    int fd = open(lock, O_RDWR | O_CREAT | O_CLOEXEC, 0600);
    if (fd < 0) return err_set(e, ERR_CONFIG, "cannot open %s: %s", lock, strerror(errno));
    if (!flock(fd, LOCK_EX | LOCK_NB)) return fd;
    int why = errno;
    close(fd);
    if (why == EWOULDBLOCK) return err_set(e, ERR_CONFIG, "the data folder %s is in use by another tallyd", path);
    return err_set(e, ERR_CONFIG, "cannot lock %s: %s", lock, strerror(why));
}

const char *data_dir_part_name(enum data_dir_part p) {
    static const char *const names[] = {[DATA_DIR_TABLES] = "tables",
                                        [DATA_DIR_LOG] = "log",
                                        [DATA_DIR_STATES] = "states",
                                        [DATA_DIR_OTHER] = "other"};
    return names[p];
}

/* name: of a file, relative to the data folder. */
static enum data_dir_part part_of(const char *name) {
    const char *end = strrchr(name, '.');
    if (!strncmp(name, "states/", 7)) return DATA_DIR_STATES;
    if (strncmp(name, "rows", 4) || !strchr(name, '/') || !end) return DATA_DIR_OTHER;
    return !strcmp(end, ".sst") ? DATA_DIR_TABLES : !strcmp(end, ".log") ? DATA_DIR_LOG : DATA_DIR_OTHER;
}

struct data_dir_use data_dir_use(const char *path) {
    enum { BLOCK = 512 }; /* of st_blocks */
    struct data_dir_use use = {0};
    char *roots[] = {(char *)path, NULL}; /* fts_open does not write to it */
    FTS *files = fts_open(roots, FTS_PHYSICAL | FTS_NOCHDIR, NULL);
    for (FTSENT *f; files && (f = fts_read(files));) {
        if (f->fts_info != FTS_F) continue;
        enum data_dir_part part = part_of(f->fts_path + strlen(path) + 1);
        if (part == DATA_DIR_STATES && f->fts_statp->st_nlink > 1) continue;
        use.bytes[part] += (uint64_t)f->fts_statp->st_blocks * BLOCK;
    }
    if (files) fts_close(files);
    struct statvfs fs;
    if (statvfs(path, &fs)) return use;
    use.free = (uint64_t)fs.f_bavail * fs.f_frsize;
    use.size = (uint64_t)fs.f_blocks * fs.f_frsize;
    return use;
}
