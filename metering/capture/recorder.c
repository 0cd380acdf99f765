#include "metering/capture/recorder.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "base/log.h"

/* Size of the table of statements that the current file has: open addressing by the first 8
 * bytes of the id, 0 is free. The table is emptied when it is half full, so that a statement may
 * be in a file twice. */
enum { KNOWN = 1 << 14 };

struct capture_recorder {
    struct capture_switch is; /* first */
    struct capture_options o;
    pthread_mutex_t control_lock; /* serialises starting and stopping */
    pthread_t thread;
    pthread_mutex_t lock; /* protects the fields below, down to known */
    pthread_cond_t more, idle;
    struct buf pending;   /* records for the file */
    uint64_t dropped_now; /* since the last record */
    struct capture_status status;
    struct capture_header header;
    struct capture_key key;
    bool stopping;
    uint32_t n_known;
    uint64_t known[KNOWN];
    /* used by the writer's thread only while it runs */
    int fd;
    uint64_t file_bytes;
    struct buf writing;
};

/* Bytes that one file may have. A capture that rotates keeps two files. */
static uint64_t file_max(const struct capture_recorder *r) {
    return r->status.rotates ? r->status.max_bytes / 2 : r->status.max_bytes;
}
/* Bytes that may wait in the buffer: at most a quarter of a file, so that the file keeps its
 * bound at any rate of requests. */
static size_t pending_max(const struct capture_recorder *r) {
    size_t queue = r->o.queue_bytes ? r->o.queue_bytes : CAPTURE_QUEUE, quarter = (size_t)(file_max(r) / 4);
    return queue < quarter ? queue : quarter;
}

/* ---- posting a request ---- */

/* Records that the current file has the statement. Returns false when it already has it. */
static bool add_known(struct capture_recorder *r, struct slice id) {
    uint64_t key = load_u64(id.p);
    if (r->n_known >= KNOWN / 2) {
        memset(r->known, 0, sizeof(r->known));
        r->n_known = 0;
    }
    if (!key) return true;
    size_t i = (size_t)key % KNOWN;
    for (; r->known[i]; i = (i + 1) % KNOWN)
        if (r->known[i] == key) return false;
    r->known[i] = key;
    r->n_known++;
    return true;
}

static void put(struct capture_recorder *r, const struct capture_record *record) {
    capture_put_record(&r->pending, &r->header, record);
}

static void put_dropped(struct capture_recorder *r) {
    const struct capture_record gap = {.kind = CAPTURE_DROPPED, .dropped = r->dropped_now};
    if (r->dropped_now) put(r, &gap);
    r->dropped_now = 0;
}

void capture_post(struct capture_recorder *r, const struct capture_statement *statements, size_t n,
                  const struct capture_request *q) {
    enum { FIXED = 160 }; /* more than the other fields of a record take */
    size_t bytes = FIXED + q->body.n + q->keyspace.n;
    for (size_t i = 0; i < n; i++) bytes += FIXED + statements[i].keyspace.n + statements[i].text.n;
    pthread_mutex_lock(&r->lock);
    bool on = atomic_load_explicit(&r->is.on, memory_order_relaxed);
    if (on && (buf_failed(&r->pending) || r->pending.n + bytes > pending_max(r))) {
        r->status.dropped++;
        r->dropped_now++;
    } else if (on) {
        put_dropped(r);
        for (size_t i = 0; i < n; i++)
            if (add_known(r, statements[i].id))
                put(r, &(struct capture_record){.kind = CAPTURE_STATEMENT, .statement = statements[i]});
        put(r, &(struct capture_record){.kind = CAPTURE_REQUEST, .request = *q});
        r->status.requests++;
        if (r->pending.n > pending_max(r) / 4) pthread_cond_signal(&r->more);
    }
    pthread_mutex_unlock(&r->lock);
}

struct capture_key capture_key_of(struct capture_recorder *r) {
    pthread_mutex_lock(&r->lock);
    struct capture_key k = r->key;
    pthread_mutex_unlock(&r->lock);
    return k;
}

/* ---- the writer ---- */

static int write_out(struct capture_recorder *r, struct slice s) {
    while (s.n) {
        ssize_t n = r->o.write ? r->o.write(r->fd, s.p, s.n) : write(r->fd, s.p, s.n);
        if (n < 0 && errno == EINTR) continue;
        if (n <= 0) return -1;
        r->file_bytes += (uint64_t)n;
        s = slice_of(s.p + n, s.n - (size_t)n);
    }
    return 0;
}

static int open_file(const char *path, struct err *e) {
    int fd = open(path, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
    if (fd >= 0) return fd;
    return errno == EEXIST ? err_set(e, ERR_INVALID, "the file %s is there already; a capture makes a new one", path)
                           : err_set(e, ERR_INVALID, "cannot make the capture %s: %s", path, strerror(errno));
}

/* Renames the finished file to FILE.1 and opens the next one. */
static int rotate_file(struct capture_recorder *r, struct err *e) {
    char before[CAPTURE_PATH_MAX + 2];
    snprintf(before, sizeof(before), "%s.1", r->status.path);
    if (rename(r->status.path, before))
        return err_set(e, ERR_SERVER, "cannot rename the capture to %s: %s", before, strerror(errno));
    int fd = open_file(r->status.path, e);
    if (fd < 0) return -1;
    close(r->fd);
    r->fd = fd;
    r->file_bytes = 0;
    return 0;
}

/* Puts the last record, with the reason. Under the lock. */
static void finish(struct capture_recorder *r, const char *reason) {
    put_dropped(r);
    put(r, &(struct capture_record){.kind = CAPTURE_END, .reason = slice_str(reason)});
    snprintf(r->status.reason, sizeof(r->status.reason), "%s", reason);
    atomic_store(&r->is.on, false);
}

/* Waits for records, at most 100 ms, and hands them to the writer. Returns true when they are
 * the capture's last; *rotates: they are the last of this file, and a next one follows. */
static bool take(struct capture_recorder *r, bool *rotates) {
    int64_t until_us = clock_machine_us(&clock_real) + 100000;
    pthread_mutex_lock(&r->lock);
    while (!r->stopping && r->pending.n <= pending_max(r) / 4)
        if (!clock_cond_wait_until(&r->more, &r->lock, until_us)) break;
    bool last = r->stopping, full = !last && r->file_bytes + r->pending.n + pending_max(r) > file_max(r);
    *rotates = full && r->status.rotates;
    if (full && !*rotates) {
        char reason[128];
        snprintf(reason, sizeof(reason), "the bound of %llu bytes is reached", (unsigned long long)r->status.max_bytes);
        finish(r, reason);
        last = true;
    } else if (*rotates) {
        put(r, &(struct capture_record){.kind = CAPTURE_END, .reason = slice_str("it continues in the next file")});
    }
    struct buf empty = r->writing;
    r->writing = r->pending;
    r->pending = empty;
    r->pending.failed = false;
    buf_clear(&r->pending, CAPTURE_QUEUE);
    if (*rotates) { /* later records go to the next file, which begins with its header */
        r->n_known = 0;
        memset(r->known, 0, sizeof(r->known));
        r->header.part = ++r->status.part;
        capture_put_header(&r->pending, &r->header);
    }
    pthread_mutex_unlock(&r->lock);
    return last;
}

static void *run(void *arg) {
    struct capture_recorder *r = arg;
    struct err e = {0};
    for (bool last = false, rotates; !last;) {
        last = take(r, &rotates);
        bool failed = write_out(r, buf_slice(&r->writing)) || (rotates && rotate_file(r, &e));
        const char *why = e.set ? e.text : strerror(errno);
        pthread_mutex_lock(&r->lock);
        if (failed) {
            atomic_store(&r->is.on, false);
            last = true;
            snprintf(r->status.reason, sizeof(r->status.reason), "%.*s", (int)sizeof(r->status.reason) - 1, why);
            log_error("the capture %s has ended: %s", r->status.path, why);
        } else {
            r->status.bytes = r->file_bytes;
        }
        pthread_mutex_unlock(&r->lock);
    }
    if (fsync(r->fd) && errno != EINVAL)
        log_error("the capture %s cannot be synced: %s", r->status.path, strerror(errno));
    return NULL;
}

/* ---- life ---- */

struct capture_recorder *capture_recorder_new(const struct capture_options *o, struct err *e) {
    struct capture_recorder *r = calloc(1, sizeof(*r));
    if (!r) return (void)err_nomem(e), NULL;
    r->o = *o;
    r->fd = -1;
    pthread_mutex_init(&r->control_lock, NULL);
    pthread_mutex_init(&r->lock, NULL);
    pthread_cond_init(&r->more, NULL);
    buf_init(&r->pending, 0);
    buf_init(&r->writing, 0);
    return r;
}

/* Waits for the thread's end and closes the file. The caller holds control_lock. */
static void join(struct capture_recorder *r) {
    if (r->fd < 0) return;
    pthread_join(r->thread, NULL);
    close(r->fd);
    r->fd = -1;
}

void capture_recorder_free(struct capture_recorder *r) {
    struct err ignored = {0};
    if (!r) return;
    (void)(capture_stop(r, "the server has stopped", &ignored) == 0);
    buf_fini(&r->pending);
    buf_fini(&r->writing);
    pthread_mutex_destroy(&r->control_lock);
    pthread_mutex_destroy(&r->lock);
    pthread_cond_destroy(&r->more);
    free(r);
}

static void begin(struct capture_recorder *r, const char *path, const struct capture_wish *w,
                  const struct capture_key *key) {
    int64_t now = clock_wall_us(r->o.clock);
    pthread_mutex_lock(&r->lock);
    r->status = (struct capture_status){.on = true,
                                        .rotates = w->rotates,
                                        .hashed = w->hashed,
                                        .max_bytes = w->max_bytes ? w->max_bytes : CAPTURE_FILE_DEFAULT,
                                        .started_us = now};
    snprintf(r->status.path, sizeof(r->status.path), "%s", path);
    r->header = (struct capture_header){.hashed = w->hashed,
                                        .strict = r->o.strict,
                                        .cassandra = r->o.cassandra,
                                        .size_model = r->o.size_model,
                                        .write_size = r->o.write_size,
                                        .timestamp_size = r->o.timestamp_size,
                                        .started_us = now};
    r->key = *key;
    r->stopping = false;
    r->dropped_now = r->n_known = 0;
    r->file_bytes = 0;
    memset(r->known, 0, sizeof(r->known));
    buf_clear(&r->pending, CAPTURE_QUEUE);
    capture_put_header(&r->pending, &r->header);
    atomic_store(&r->is.hashed, w->hashed);
    pthread_mutex_unlock(&r->lock);
}

static int start(struct capture_recorder *r, const char *path, const struct capture_wish *w, struct err *e) {
    if (atomic_load(&r->is.on)) return err_set(e, ERR_INVALID, "a capture is running already: %s", r->status.path);
    if (strlen(path) >= CAPTURE_PATH_MAX - 2) return err_set(e, ERR_INVALID, "the path of the capture is too long");
    if (w->max_bytes && w->max_bytes < CAPTURE_FILE_MIN)
        return err_set(e, ERR_INVALID, "a capture may have %d bytes or more, not %llu", CAPTURE_FILE_MIN,
                       (unsigned long long)w->max_bytes);
    struct capture_key key;
    if (capture_key_random(&key, e)) return -1;
    join(r);
    int fd = open_file(path, e);
    if (fd < 0) return -1;
    r->fd = fd;
    begin(r, path, w, &key);
    if (pthread_create(&r->thread, NULL, run, r)) {
        close(r->fd);
        r->fd = -1;
        return err_set(e, ERR_SERVER, "the thread of the capture does not start");
    }
    atomic_store(&r->is.on, true);
    return 0;
}

int capture_start(struct capture_recorder *r, const char *path, const struct capture_wish *w, struct err *e) {
    pthread_mutex_lock(&r->control_lock);
    int rc = start(r, path, w, e);
    pthread_mutex_unlock(&r->control_lock);
    return rc;
}

int capture_stop(struct capture_recorder *r, const char *reason, struct err *e) {
    pthread_mutex_lock(&r->control_lock);
    pthread_mutex_lock(&r->lock);
    bool ran = atomic_load(&r->is.on);
    if (ran) finish(r, reason);
    r->stopping = true;
    pthread_cond_signal(&r->more);
    pthread_mutex_unlock(&r->lock);
    join(r);
    pthread_mutex_unlock(&r->control_lock);
    return ran ? 0 : err_set(e, ERR_INVALID, "no capture is running");
}

void capture_status_get(struct capture_recorder *r, struct capture_status *out) {
    pthread_mutex_lock(&r->lock);
    *out = r->status;
    out->on = atomic_load(&r->is.on);
    pthread_mutex_unlock(&r->lock);
}
