/* Writes a capture while a server serves: requests are put into a buffer in memory by whoever has
 * finished them, and a thread of its own writes the buffer to the file.
 *
 * Bounds, and who pays: the buffer holds so many bytes; a request that finds no room in it is not
 * recorded, and counted (a DROPPED record says how many are missing where they are): the capture
 * pays, never the client. The file holds so many bytes: then the capture ends, with its reason as
 * the last record, or goes on in a new file while the one before it stays as FILE.1 (each of at
 * most half of the bytes). A disk that is full, or fails, ends the capture.
 *
 * While none is running, capture_is_on is one load of a flag and nothing else is called. Any
 * thread, but for new and free.
 */
#pragma once

#include <stdatomic.h>

#include "base/clock.h"
#include "capture/digest.h"
#include "capture/format.h"

enum { CAPTURE_PATH_MAX = 4096, CAPTURE_QUEUE = 16 << 20, CAPTURE_FILE_MIN = 1 << 20 };
#define CAPTURE_FILE_DEFAULT (UINT64_C(1) << 30)

struct capture_options {
    struct clock *clock;
    bool strict, cassandra; /* as in the header, like what follows */
    uint8_t size_model, write_size;
    uint32_t timestamp_size;
    size_t queue_bytes; /* 0: CAPTURE_QUEUE */
    /* How bytes leave; NULL: write(2). For tests. */
    ssize_t (*write)(int fd, const void *p, size_t n);
};

struct capture_wish {
    uint64_t max_bytes; /* 0: a GiB; at least CAPTURE_FILE_MIN */
    bool rotates, hashed;
};

struct capture_status {
    bool on;
    char path[CAPTURE_PATH_MAX];
    bool rotates, hashed;
    uint64_t max_bytes, bytes, requests, dropped;
    uint32_t part;
    int64_t started_us;  /* 0: there was none yet */
    char reason[256];    /* why it ended; empty while it runs */
};

struct capture_recorder;

struct capture_recorder *capture_recorder_new(const struct capture_options *o, struct err *e) MUST_CHECK;
/* What runs is ended. */
void capture_recorder_free(struct capture_recorder *r);

/* The file must not be there yet; it is nobody else's to read (0600). -1: ERR_INVALID, one is running; ERR_CONFIG. */
int capture_start(struct capture_recorder *r, const char *path, const struct capture_wish *w, struct err *e) MUST_CHECK;
/* Returns when the last record is written. -1: none is running. */
int capture_stop(struct capture_recorder *r, const char *reason, struct err *e) MUST_CHECK;
void capture_status_get(struct capture_recorder *r, struct capture_status *out);

struct capture_switch {
    _Atomic bool on, hashed;
};
/* Of a recorder; r NULL: never on. */
const struct capture_switch *capture_switch_of(const struct capture_recorder *r);
static inline bool capture_is_on(const struct capture_switch *s) {
    return s && atomic_load_explicit(&s->on, memory_order_relaxed);
}
static inline bool capture_is_hashed(const struct capture_switch *s) {
    return atomic_load_explicit(&s->hashed, memory_order_relaxed);
}

/* Statements that the request names by their ids, and the request. What they point to is copied.
 * Never waits for the disk. */
void capture_post(struct capture_recorder *r, const struct capture_statement *statements, size_t n,
                  const struct capture_request *q);
/* The key of the values that are hashed. */
struct capture_key capture_key_of(struct capture_recorder *r);
