/* Reads a capture from its file, record by record. Reading ends at the first damage, with file,
 * offset and reason; the records before it are sound. One thread. */
#pragma once

#include "metering/capture/format.h"

enum capture_got { CAPTURE_GOT_RECORD, CAPTURE_GOT_END, CAPTURE_GOT_DAMAGE };

struct capture_reader {
    const char *path;
    struct slice file; /* mapped */
    uint64_t at;
    bool mapped, ended;
    struct capture_header header;
};

/* Returns -1 with ERR_CONFIG, which names the file. */
int capture_reader_open(struct capture_reader *r, const char *path, struct err *e) MUST_CHECK;
/* Reads a capture from memory, which the caller keeps. Errors name path. */
int capture_reader_of(struct capture_reader *r, const char *path, struct slice file, struct err *e) MUST_CHECK;
void capture_reader_close(struct capture_reader *r);
/* A record points into the file and is valid until the reader is closed. The record of kind
 * CAPTURE_END is returned like any other; CAPTURE_GOT_END comes after it. A file without that
 * record counts as damaged: it was cut off, or a server is still writing it. */
enum capture_got capture_reader_next(struct capture_reader *r, struct capture_record *out, struct err *e);
