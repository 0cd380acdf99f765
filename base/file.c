#include "base/file.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

static int fail(int fd, int error, const char *words, const char **why) {
    if (fd >= 0) close(fd);
    *why = words ? words : strerror(error);
    errno = words ? 0 : error;
    return -1;
}

int file_open_read(const char *path, const char **why) {
    struct stat st;
    /* O_NONBLOCK: a FIFO opens at once. It has no effect on regular files. */
    int fd = open(path, O_RDONLY | O_NONBLOCK | O_CLOEXEC);
    if (fd < 0 || fstat(fd, &st)) return fail(fd, errno, NULL, why);
    return S_ISREG(st.st_mode) ? fd : fail(fd, 0, "it is not a regular file", why);
}

bool file_is_sparse(const struct stat *st) {
    enum { UNWRITTEN_MAX = 1 << 30, BLOCK = 512 };
    return st->st_size / BLOCK - st->st_blocks > UNWRITTEN_MAX / BLOCK;
}

int file_open_append(const char *path, const char **why) {
    int fd = open(path, O_WRONLY | O_CREAT | O_APPEND | O_NONBLOCK | O_CLOEXEC, 0600);
    if (fd < 0) return fail(fd, errno, errno == ENXIO ? "no process reads from it" : NULL, why);
    int flags = fcntl(fd, F_GETFL);
    if (flags < 0 || fcntl(fd, F_SETFL, flags & ~O_NONBLOCK)) return fail(fd, errno, NULL, why);
    return fd;
}

int file_append_to(const char *path, size_t max, struct buf *out, struct err *e) {
    enum { PIECE = 4096 };
    const char *why;
    ssize_t n = -1;
    size_t before = out->n;
    int fd = file_open_read(path, &why);
    if (fd < 0) return err_set(e, ERR_CONFIG, "cannot read %s: %s", path, why);
    while (out->n - before <= max) {
        uint8_t *to = buf_reserve(out, PIECE);
        if (!to || (n = read(fd, to, PIECE)) <= 0) break;
        buf_advance(out, (size_t)n);
    }
    int error = errno;
    close(fd);
    if (buf_failed(out)) return err_nomem(e);
    if (out->n - before > max) return err_set(e, ERR_CONFIG, "%s has more than %zu bytes", path, max);
    return n < 0 ? err_set(e, ERR_CONFIG, "cannot read %s: %s", path, strerror(error)) : 0;
}
