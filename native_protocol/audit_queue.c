#include "native_protocol/audit_queue.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/file.h"
#include "base/log.h"

enum { STOP_US = 5000000, POLL_MS = 200 };

struct np_audit {
    const char *path;
    unsigned categories;
    enum np_audit_full when_full;
    struct clock *clock;
    pthread_t thread;
    pthread_mutex_t lock;
    pthread_cond_t more;
    struct buf queue;  /* under the lock: whole lines that the thread has not taken */
    int next_fd;       /* under the lock: the file that replaces fd; -1 if none */
    int64_t stop_us;   /* under the lock: machine time at which the thread stops at the latest; 0 if it does not stop */
    bool complained;   /* under the lock: an error was logged since the last write */
    void (*on_room)(void *arg); /* set before the loops start */
    void *arg;
    _Atomic bool full; /* requests wait */
    _Atomic uint64_t lost;
    int fd;    /* the thread only */
    bool torn; /* the thread only: the file ends in part of a line */
};

/* ---- the queue ---- */

/* Counts n lines as lost, and logs the first of them since the last write. The caller holds the
 * lock. */
static void lose(struct np_audit *a, size_t n, const char *why) {
    atomic_fetch_add(&a->lost, n);
    if (!a->complained) log_error("the audit log %s cannot be written: %s", a->path, why);
    a->complained = true;
}

/* Requests that wait are held back before they run; the lines of those that run already are queued
 * above the bound, which is a quarter of the buffer's limit. */
void npi_audit_put(struct np_audit *a, const struct buf *line) {
    pthread_mutex_lock(&a->lock);
    bool full = a->queue.n + line->n > NP_AUDIT_QUEUE, idle = !a->queue.n;
    if (full && a->when_full == NP_AUDIT_WAIT) atomic_store(&a->full, true);
    if (buf_failed(line)) lose(a, 1, strerror(ENOMEM));
    else if ((full && a->when_full == NP_AUDIT_DROP) || !buf_reserve(&a->queue, line->n))
        lose(a, 1, "it accepts no lines, and the queue is full");
    else buf_put_slice(&a->queue, buf_slice(line));
    a->queue.failed = a->queue.over = false;
    if (idle) pthread_cond_signal(&a->more);
    pthread_mutex_unlock(&a->lock);
}

bool npi_audit_full(const struct np_audit *a) { return atomic_load_explicit(&a->full, memory_order_relaxed); }

unsigned npi_audit_categories(const struct np_audit *a) { return a->categories; }

uint64_t np_audit_lost(const struct np_audit *a) { return atomic_load(&a->lost); }

/* ---- the thread ---- */

/* Uses the file that np_audit_reopen has opened. Returns whether there is one. */
static bool take_next_file(struct np_audit *a) {
    pthread_mutex_lock(&a->lock);
    int fd = a->next_fd;
    a->next_fd = -1;
    pthread_mutex_unlock(&a->lock);
    if (fd < 0) return false;
    close(a->fd);
    a->fd = fd;
    a->torn = false;
    return true;
}

static bool out_of_time(struct np_audit *a) {
    pthread_mutex_lock(&a->lock);
    bool out = a->stop_us && clock_machine_us(a->clock) > a->stop_us;
    pthread_mutex_unlock(&a->lock);
    return out;
}

/* Writes one stretch. Returns the bytes written, 0 if the file takes none yet, or -1 with errno
 * set. */
static ssize_t write_some(struct np_audit *a, struct slice s) {
    struct pollfd p = {.fd = a->fd, .events = POLLOUT};
    if (poll(&p, 1, POLL_MS) <= 0) return 0;
    ssize_t n = write(a->fd, s.p, s.n);
    if (n < 0 && (errno == EINTR || errno == EAGAIN)) return 0;
    if (n == 0) errno = ENOSPC;
    return n > 0 ? n : -1;
}

static void write_lines(struct np_audit *a, struct slice lines) {
    const char *why = NULL;
    size_t lost = 0;
    bool inside = false; /* lines begins inside a line */
    while (lines.n && !why) {
        if (take_next_file(a) && inside) { /* the new file does not begin with the rest of a line */
            size_t rest = (size_t)((const uint8_t *)memchr(lines.p, '\n', lines.n) + 1 - lines.p);
            lines = slice_of(lines.p + rest, lines.n - rest);
            inside = false;
            lost++;
            continue;
        }
        bool mends = a->torn && !inside;
        ssize_t n = write_some(a, mends ? slice_str("\n") : lines);
        if (n < 0) why = strerror(errno);
        else if (n == 0 && out_of_time(a)) why = "it accepts no lines, and the server stops";
        else if (mends) a->torn = n == 0;
        else if (n > 0) {
            a->torn = inside = lines.p[n - 1] != '\n';
            lines = slice_of(lines.p + n, lines.n - (size_t)n);
        }
    }
    for (size_t i = 0; i < lines.n; i++) lost += lines.p[i] == '\n';
    pthread_mutex_lock(&a->lock);
    if (!why) a->complained = false;
    if (lost) lose(a, lost, why ? why : "the file was replaced inside a line");
    pthread_mutex_unlock(&a->lock);
}

/* Takes all queued lines at a time. */
static void *run(void *arg) {
    struct np_audit *a = arg;
    struct buf taken;
    buf_init(&taken, a->queue.limit);
    pthread_mutex_lock(&a->lock);
    while (a->queue.n || !a->stop_us) {
        if (!a->queue.n && a->next_fd < 0) {
            pthread_cond_wait(&a->more, &a->lock);
            continue;
        }
        struct buf empty = taken;
        taken = a->queue;
        a->queue = empty;
        pthread_mutex_unlock(&a->lock);
        take_next_file(a);
        write_lines(a, buf_slice(&taken));
        buf_clear(&taken, NP_AUDIT_QUEUE);
        if (atomic_exchange(&a->full, false)) a->on_room(a->arg);
        pthread_mutex_lock(&a->lock);
    }
    pthread_mutex_unlock(&a->lock);
    buf_fini(&taken);
    return NULL;
}

/* ---- life ---- */

/* A write to a FIFO or a terminal must not block the thread, which has to notice that the server
 * stops. */
static int open_file(const char *path, struct err *e) {
    const char *why;
    int fd = file_open_append(path, &why);
    if (fd < 0) return err_set(e, ERR_CONFIG, "cannot write the audit log to %s: %s", path, why);
    (void)fcntl(fd, F_SETFL, O_APPEND | O_NONBLOCK);
    return fd;
}

int np_audit_reopen(struct np_audit *a, struct err *e) {
    int fd = open_file(a->path, e);
    if (fd < 0) return -1;
    pthread_mutex_lock(&a->lock);
    if (a->next_fd >= 0) close(a->next_fd);
    a->next_fd = fd;
    pthread_cond_signal(&a->more);
    pthread_mutex_unlock(&a->lock);
    return 0;
}

void np_audit_on_room(struct np_audit *a, void (*on_room)(void *arg), void *arg) {
    a->on_room = on_room;
    a->arg = arg;
}

struct np_audit *np_audit_open(const char *path, unsigned categories, enum np_audit_full when_full,
                               struct clock *clock, struct err *e) {
    struct np_audit *a = calloc(1, sizeof(*a));
    if (!a) return err_null(err_nomem(e));
    *a = (struct np_audit){.path = path, .categories = categories, .when_full = when_full, .clock = clock,
                           .next_fd = -1, .fd = open_file(path, e)};
    if (a->fd < 0) {
        free(a);
        return NULL;
    }
    buf_init(&a->queue, 4 * NP_AUDIT_QUEUE);
    pthread_mutex_init(&a->lock, NULL);
    pthread_cond_init(&a->more, NULL);
    if (!pthread_create(&a->thread, NULL, run, a)) return a;
    err_set(e, ERR_SERVER, "cannot start the thread of the audit log");
    close(a->fd);
    pthread_mutex_destroy(&a->lock);
    pthread_cond_destroy(&a->more);
    free(a);
    return NULL;
}

void np_audit_close(struct np_audit *a) {
    if (!a) return;
    pthread_mutex_lock(&a->lock);
    a->stop_us = clock_machine_us(a->clock) + STOP_US;
    pthread_cond_signal(&a->more);
    pthread_mutex_unlock(&a->lock);
    pthread_join(a->thread, NULL);
    close(a->fd);
    if (a->next_fd >= 0) close(a->next_fd);
    buf_fini(&a->queue);
    pthread_cond_destroy(&a->more);
    pthread_mutex_destroy(&a->lock);
    free(a);
}
