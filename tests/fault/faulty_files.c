/* Loaded in front of a server by tests (LD_PRELOAD): files below one folder fail when they are told
 * to, and what would survive a power cut is written down.
 *
 * FAULTY_FILES_FOLDER   the folder, as the server names it
 * FAULTY_FILES_STATE    a folder beside it, on the same file system, which holds:
 *   control    for each of WRITE, SYNC, OPEN, RENAME, READ in this order four i64, shared with the
 *              test: calls so far | the first that fails (0: none) | how many fail |
 *              with which errno
 *   journal    a line for each call that succeeded and changes what is on disk, when it is over:
 *              microseconds of the monotonic clock, what, inode, then size and paths
 *              (file_faults.py reads them); of a write the size that the file then has
 *   grave/     hard links to files that were removed or renamed over, named by their inodes: a
 *              power cut may bring them back
 *
 * Files are taken for append-only: their bytes up to a length are on disk once they were synced at
 * that length, of those behind it any sectors may be.
 */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

enum call { WRITE, SYNC, OPEN, RENAME, READ, CALLS };
enum { FDS = 1 << 16, LINE = 3 * PATH_MAX };

struct control {
    _Atomic int64_t seen, first, n, error;
};

static struct {
    char folder[PATH_MAX], state[PATH_MAX];
    struct control *control;
    int journal;
    _Atomic bool below[FDS];
} the;

#define REAL(name) ((__typeof__(&name))real(#name))
static void *real(const char *name) { return dlsym(RTLD_NEXT, name); }

/* ---- what fails ---- */

static bool fails(enum call call) {
    struct control *c = &the.control[call];
    int64_t at = atomic_fetch_add(&c->seen, 1) + 1, first = atomic_load(&c->first);
    if (!first || at < first || at >= first + atomic_load(&c->n)) return false;
    errno = (int)atomic_load(&c->error);
    return true;
}

static const char *under(const char *path) {
    size_t n = strlen(the.folder);
    if (!the.control || strncmp(path, the.folder, n) || (path[n] && path[n] != '/')) return NULL;
    return path[n] ? path + n + 1 : ".";
}

static bool is_below(int fd) {
    return fd >= 0 && fd < FDS && atomic_load_explicit(&the.below[fd], memory_order_relaxed);
}

/* ---- what is written down ---- */

__attribute__((format(printf, 1, 2))) static void note(const char *fmt, ...) {
    char line[LINE];
    struct timespec t;
    va_list ap;
    int saved = errno;
    clock_gettime(CLOCK_MONOTONIC, &t);
    int n = snprintf(line, sizeof(line), "%lld ", (long long)t.tv_sec * 1000000 + t.tv_nsec / 1000);
    va_start(ap, fmt);
    n += vsnprintf(line + n, sizeof(line) - (size_t)n - 1, fmt, ap);
    va_end(ap);
    line[n++] = '\n';
    if (REAL(write)(the.journal, line, (size_t)n) != n) abort();
    errno = saved;
}

static unsigned long long inode_of(const char *path, bool *folder) {
    struct stat st;
    if (lstat(path, &st)) return 0;
    *folder = S_ISDIR(st.st_mode);
    return st.st_ino;
}

/* Before it loses a name. */
static unsigned long long keep(const char *path) {
    char grave[2 * PATH_MAX];
    bool folder = false;
    unsigned long long inode = inode_of(path, &folder);
    if (!inode || folder) return inode;
    snprintf(grave, sizeof(grave), "%s/grave/%llu", the.state, inode);
    if (REAL(link)(path, grave) && errno != EEXIST) abort();
    return inode;
}

/* ---- calls ---- */

int open(const char *path, int flags, ...) {
    va_list ap;
    va_start(ap, flags);
    mode_t mode = flags & (O_CREAT | O_TMPFILE) ? va_arg(ap, mode_t) : 0;
    va_end(ap);
    const char *name = under(path);
    bool writes = name && (flags & O_ACCMODE) != O_RDONLY, folder = false;
    bool creates = writes && flags & O_CREAT && access(path, F_OK);
    if (writes && fails(OPEN)) return -1;
    int fd = REAL(open)(path, flags, mode);
    if (!name || fd < 0) return fd;
    if (fd < FDS) atomic_store(&the.below[fd], true);
    if (creates) note("C %llu %s", inode_of(path, &folder), name);
    else if (writes && flags & O_TRUNC) note("T %llu 0", inode_of(path, &folder));
    return fd;
}

static void forget(int fd) {
    if (fd >= 0 && fd < FDS) atomic_store(&the.below[fd], false);
}

int close(int fd) {
    forget(fd);
    return REAL(close)(fd);
}

int fclose(FILE *f) {
    forget(fileno(f));
    return REAL(fclose)(f);
}

ssize_t read(int fd, void *bytes, size_t n) { return is_below(fd) && fails(READ) ? -1 : REAL(read)(fd, bytes, n); }

ssize_t pread(int fd, void *bytes, size_t n, off_t at) {
    return is_below(fd) && fails(READ) ? -1 : REAL(pread)(fd, bytes, n, at);
}

/* RocksDB's for what it reads from beginning to end: logs and lists of files. Less than was asked
 * for is a failure where it is not the end of the file. */
size_t(fread_unlocked)(void *bytes, size_t size, size_t n, FILE *f) {
    return is_below(fileno(f)) && fails(READ) ? 0 : REAL(fread_unlocked)(bytes, size, n, f);
}

/* The name of an open file below the folder, or NULL; path has room for it. */
static const char *name_of(int fd, char path[PATH_MAX]) {
    char link[64];
    snprintf(link, sizeof(link), "/proc/self/fd/%d", fd);
    ssize_t n = readlink(link, path, PATH_MAX - 1);
    if (n <= 0) return NULL;
    path[n] = 0;
    return under(path);
}

static void note_size(const char *what, int fd, const struct stat *st) {
    char path[PATH_MAX];
    const char *name = name_of(fd, path);
    if (name) note("%s %llu %lld %s", what, (unsigned long long)st->st_ino, (long long)st->st_size, name);
}

static ssize_t written(int fd, ssize_t n) {
    struct stat st;
    int saved = errno;
    if (n > 0 && !fstat(fd, &st)) note_size("W", fd, &st);
    errno = saved;
    return n;
}

ssize_t write(int fd, const void *bytes, size_t n) {
    if (!is_below(fd)) return REAL(write)(fd, bytes, n);
    return fails(WRITE) ? -1 : written(fd, REAL(write)(fd, bytes, n));
}

ssize_t pwrite(int fd, const void *bytes, size_t n, off_t at) {
    if (!is_below(fd)) return REAL(pwrite)(fd, bytes, n, at);
    return fails(WRITE) ? -1 : written(fd, REAL(pwrite)(fd, bytes, n, at));
}

/* fopen's files, too, come here only to be synced. */
static int sync_with(int (*sync)(int), int fd) {
    char path[PATH_MAX];
    struct stat before;
    const char *name = name_of(fd, path);
    if (!name || fstat(fd, &before)) return sync(fd);
    if (fails(SYNC)) return -1;
    int rc = sync(fd);
    if (rc == 0 && S_ISDIR(before.st_mode)) note("D %llu %s", (unsigned long long)before.st_ino, name);
    else if (rc == 0) note("S %llu %lld %s", (unsigned long long)before.st_ino, (long long)before.st_size, name);
    return rc;
}

int fsync(int fd) { return sync_with(REAL(fsync), fd); }
int fdatasync(int fd) { return sync_with(REAL(fdatasync), fd); }

int ftruncate(int fd, off_t size) {
    struct stat st;
    int rc = REAL(ftruncate)(fd, size);
    if (rc == 0 && is_below(fd) && !fstat(fd, &st)) note("T %llu %lld", (unsigned long long)st.st_ino, (long long)size);
    return rc;
}

int rename(const char *from, const char *to) {
    const char *a = under(from), *b = under(to);
    bool folder = false;
    if (!a || !b) return REAL(rename)(from, to);
    if (fails(RENAME)) return -1;
    unsigned long long inode = inode_of(from, &folder);
    keep(to);
    int rc = REAL(rename)(from, to);
    if (rc == 0) note("R %llu %s %s", inode, a, b);
    return rc;
}

int link(const char *from, const char *to) {
    bool folder = false;
    int rc = REAL(link)(from, to);
    if (rc == 0 && under(to)) note("C %llu %s", inode_of(to, &folder), under(to));
    return rc;
}

int mkdir(const char *path, mode_t mode) {
    bool folder = false;
    int rc = REAL(mkdir)(path, mode);
    if (rc == 0 && under(path)) note("M %llu %s", inode_of(path, &folder), under(path));
    return rc;
}

int unlink(const char *path) {
    const char *name = under(path);
    unsigned long long inode = name ? keep(path) : 0;
    int rc = REAL(unlink)(path);
    if (rc == 0 && name) note("U %llu %s", inode, name);
    return rc;
}

int rmdir(const char *path) {
    const char *name = under(path);
    bool folder = false;
    unsigned long long inode = name ? inode_of(path, &folder) : 0;
    int rc = REAL(rmdir)(path);
    if (rc == 0 && name) note("U %llu %s", inode, name);
    return rc;
}

int unlinkat(int fd, const char *path, int flags) {
    char link[64], folder[PATH_MAX], whole[2 * PATH_MAX];
    snprintf(link, sizeof(link), "/proc/self/fd/%d", fd);
    ssize_t n = fd == AT_FDCWD ? 0 : readlink(link, folder, sizeof(folder) - 1);
    if (n < 0) return REAL(unlinkat)(fd, path, flags);
    folder[n] = 0;
    snprintf(whole, sizeof(whole), "%s%s%s", folder, n ? "/" : "", path);
    return flags & AT_REMOVEDIR ? rmdir(whole) : unlink(whole);
}

/* ---- life ---- */

__attribute__((constructor)) static void begin(void) {
    const char *folder = getenv("FAULTY_FILES_FOLDER"), *state = getenv("FAULTY_FILES_STATE");
    char path[PATH_MAX + 16];
    if (!folder || !state) return;
    snprintf(the.folder, sizeof(the.folder), "%s", folder);
    snprintf(the.state, sizeof(the.state), "%s", state);
    snprintf(path, sizeof(path), "%s/journal", state);
    the.journal = REAL(open)(path, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600);
    snprintf(path, sizeof(path), "%s/control", state);
    int fd = REAL(open)(path, O_RDWR | O_CLOEXEC);
    struct control *c = fd < 0 ? MAP_FAILED : mmap(NULL, CALLS * sizeof(*c), PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    if (the.journal < 0 || c == MAP_FAILED) abort();
    the.control = c;
}
