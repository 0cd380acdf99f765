/* Records a capture while the server serves. The thread that finishes a request appends it to a
 * buffer in memory; a separate thread writes the buffer to the file.
 *
 * The buffer is bounded (queue_bytes). A request that finds no room in it is not recorded; a
 * DROPPED record then says how many are missing at this place. Clients never wait for the capture.
 * The file is bounded, too (max_bytes). At its bound the capture ends with the reason as its last
 * record, or it rotates: it continues in a new file, and the previous one is kept as FILE.1, each with at
 * most half of the bytes. A write error, such as a full disk, ends the capture.
 *
 * While no capture is running, a request costs one load of a flag (capture_is_on). Any thread may
 * call these functions, except new and free.
 */
#pragma once

#include <stdatomic.h>

#include "base/clock.h"
#include "metering/capture/digest.h"
#include "metering/capture/format.h"

enum { CAPTURE_PATH_MAX = 4096, CAPTURE_QUEUE = 16 << 20, CAPTURE_FILE_MIN = 1 << 20 };
#define CAPTURE_FILE_DEFAULT (UINT64_C(1) << 30)

struct capture_options {
    struct clock *clock;
    bool strict, cassandra; /* this and the next three: as in the capture's header */
    uint8_t size_model, write_size;
    uint32_t timestamp_size;
    size_t queue_bytes; /* 0 means CAPTURE_QUEUE */
    /* replaces write(2) in tests; NULL means write(2) */
    ssize_t (*write)(int fd, const void *p, size_t n);
};

struct capture_wish {
    uint64_t max_bytes; /* 0 for a GiB; at least CAPTURE_FILE_MIN */
    bool rotates, hashed;
};

struct capture_status {
    bool on;
    char path[CAPTURE_PATH_MAX];
    bool rotates, hashed;
    uint64_t max_bytes, bytes, requests, dropped;
    uint32_t part;
    int64_t started_us;  /* 0 if no capture was started yet */
    char reason[256];    /* why it ended; empty while it runs */
};

struct capture_recorder;

struct capture_recorder *capture_recorder_new(const struct capture_options *o, struct err *e) MUST_CHECK;
/* Ends a running capture first. */
void capture_recorder_free(struct capture_recorder *r);

/* Makes the file, with mode 0600. Returns -1 with ERR_INVALID if a capture is running, the file
 * exists or cannot be made, or the wish is out of range, or with ERR_SERVER without a random key or a
 * thread. */
int capture_start(struct capture_recorder *r, const char *path, const struct capture_wish *w, struct err *e) MUST_CHECK;
/* Returns when the last record is written. Returns -1 with ERR_INVALID if no capture is running. */
int capture_stop(struct capture_recorder *r, const char *reason, struct err *e) MUST_CHECK;
void capture_status_get(struct capture_recorder *r, struct capture_status *out);

struct capture_switch {
    _Atomic bool on, hashed;
};
/* The switch of a recorder, which begins with it. r NULL: returns NULL, which capture_is_on takes as
 * off. */
static inline const struct capture_switch *capture_switch_of(const struct capture_recorder *r) {
    return (const struct capture_switch *)r;
}
static inline bool capture_is_on(const struct capture_switch *s) {
    return s && atomic_load_explicit(&s->on, memory_order_relaxed);
}
static inline bool capture_is_hashed(const struct capture_switch *s) {
    return atomic_load_explicit(&s->hashed, memory_order_relaxed);
}

/* Records a request, and before it those of its prepared statements that the file does not have
 * yet. Copies all bytes. Never waits for the disk. */
void capture_post(struct capture_recorder *r, const struct capture_statement *statements, size_t n,
                  const struct capture_request *q);
/* The key of the running capture's hashes. */
struct capture_key capture_key_of(struct capture_recorder *r);
