#include "metering/capture/reader.h"

#include <errno.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/file.h"

/* Puts the file's name before the reason. */
static int name_file(const char *path, const struct err *why, struct err *e) {
    return err_set(e, ERR_CONFIG, "%s: %s", path, why->text);
}

int capture_reader_of(struct capture_reader *r, const char *path, struct slice file, struct err *e) {
    struct err why = {0};
    *r = (struct capture_reader){.path = path, .file = file, .at = CAPTURE_HEADER};
    return capture_get_header(file, &r->header, &why) ? name_file(path, &why, e) : 0;
}

int capture_reader_open(struct capture_reader *r, const char *path, struct err *e) {
    struct stat st;
    const char *why = NULL;
    int fd = file_open_read(path, &why);
    *r = (struct capture_reader){.path = path};
    if (fd >= 0 && fstat(fd, &st)) why = strerror(errno);
    if (why) {
        if (fd >= 0) close(fd);
        return err_set(e, ERR_CONFIG, "cannot read %s: %s", path, why);
    }
    void *p = st.st_size > 0 ? mmap(NULL, (size_t)st.st_size, PROT_READ, MAP_PRIVATE, fd, 0) : NULL;
    close(fd);
    if (p == MAP_FAILED) return err_set(e, ERR_CONFIG, "cannot read %s: %s", path, strerror(errno));
    int rc = capture_reader_of(r, path, slice_of(p ? p : "", (size_t)st.st_size), e);
    r->mapped = p != NULL;
    if (rc) capture_reader_close(r);
    return rc;
}

void capture_reader_close(struct capture_reader *r) {
    if (r->mapped) munmap((void *)r->file.p, r->file.n);
    *r = (struct capture_reader){0};
}

enum capture_got capture_reader_next(struct capture_reader *r, struct capture_record *out, struct err *e) {
    struct err why = {0};
    if (r->at >= r->file.n) {
        if (r->ended) return CAPTURE_GOT_END;
        err_set(e, ERR_CONFIG,
                "%s: offset %llu: the capture has no last record: it was cut off here, or is still being written",
                r->path, (unsigned long long)r->at);
        return CAPTURE_GOT_DAMAGE;
    }
    ssize_t n = r->ended ? err_set(&why, ERR_CONFIG, "offset %llu: there are bytes after the last record",
                                   (unsigned long long)r->at)
                         : capture_get_record(r->file, r->at, &r->header, out, &why);
    if (n < 0) {
        (void)name_file(r->path, &why, e);
        return CAPTURE_GOT_DAMAGE;
    }
    r->at += (uint64_t)n;
    r->ended = out->kind == CAPTURE_END;
    return CAPTURE_GOT_RECORD;
}
