/* Reads a capture from its file, record by record. What is damaged ends it, with file, offset and
 * reason; the records before it are sound. One thread. */
#pragma once

#include "capture/format.h"

enum capture_got { CAPTURE_GOT_RECORD, CAPTURE_GOT_END, CAPTURE_GOT_DAMAGE };

struct capture_reader {
    const char *path;
    struct slice file; /* mapped */
    uint64_t at;
    bool mapped, ended;
    struct capture_header header;
};

/* -1: ERR_CONFIG, which names the file. */
int capture_reader_open(struct capture_reader *r, const char *path, struct err *e) MUST_CHECK;
/* Of bytes that the caller keeps; path is what errors name. */
int capture_reader_of(struct capture_reader *r, const char *path, struct slice file, struct err *e) MUST_CHECK;
void capture_reader_close(struct capture_reader *r);
/* A record points into the file until the reader is closed. END: behind the record of that kind,
 * which is given, too; a file that ends without one is damaged: cut off, or still being written. */
enum capture_got capture_reader_next(struct capture_reader *r, struct capture_record *out, struct err *e);
