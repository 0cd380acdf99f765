#include "server/local_socket.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <poll.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include "base/json.h"
#include "base/log.h"
#include "engine/backup.h"

struct local_socket {
    struct eng *eng;
    int folder, fd, stop[2]; /* stop: a pipe, closed to end the thread */
    pthread_t thread;
};

enum { LINE_MAX_BYTES = PATH_MAX + 64, PATIENCE_MS = 5000, AGAIN_MS = 100 };

/* ---- requests ---- */

static void put_error(const struct err *e, struct buf *out) {
    json_open(out, NULL, '{');
    json_flag(out, "ok", false);
    json_text(out, "error", e->text);
    buf_put_str(out, "}\n");
}

static void backup(struct local_socket *s, char *words, struct buf *out) {
    struct eng_backup made;
    struct err e = {0};
    char *folder;
    unsigned long keep = strtoul(words, &folder, 10);
    int rc = folder == words || folder[0] != ' ' || folder[1] != '/' || keep > UINT32_MAX
                 ? err_invalid(&e, "backup takes a number and an absolute path")
                 : 0;
    if (!rc) rc = eng_backup_make(s->eng, folder + 1, (uint32_t)keep, &made, &e);
    if (rc) {
        put_error(&e, out);
        return;
    }
    json_open(out, NULL, '{');
    json_flag(out, "ok", true);
    json_count(out, "backup", made.number);
    json_count(out, "made", (uint64_t)made.made_s);
    json_count(out, "files", made.files);
    json_count(out, "bytes", made.bytes);
    buf_put_str(out, "}\n");
}

/* ---- connections ---- */

/* Waits until fd can be read or written; fd -1: for the time alone. Returns false after patience_ms,
 * or when the server stops. */
static bool ready(struct local_socket *s, int fd, short what, int patience_ms) {
    struct pollfd p[2] = {{.fd = fd, .events = what}, {.fd = s->stop[0], .events = POLLIN}};
    int n;
    while ((n = poll(p, 2, patience_ms)) < 0 && errno == EINTR) {}
    return n > 0 && !p[1].revents;
}

static bool read_line(struct local_socket *s, int fd, char *line) {
    size_t n = 0;
    while (n < LINE_MAX_BYTES && ready(s, fd, POLLIN, PATIENCE_MS)) {
        ssize_t got = read(fd, line + n, LINE_MAX_BYTES - n);
        if (got <= 0) return false;
        n += (size_t)got;
        char *end = memchr(line, '\n', n);
        if (!end) continue;
        *end = 0;
        return true;
    }
    return false;
}

static void serve(struct local_socket *s, int fd) {
    char line[LINE_MAX_BYTES + 1];
    struct buf out;
    if (!read_line(s, fd, line)) return;
    buf_init(&out, 0);
    if (!strncmp(line, "backup ", 7)) {
        backup(s, line + 7, &out);
    } else {
        struct err e = {0};
        (void)err_invalid(&e, "it is not known what to do with '%.32s'", line);
        put_error(&e, &out);
    }
    for (size_t at = 0; at < out.n && ready(s, fd, POLLOUT, PATIENCE_MS);) {
        ssize_t n = send(fd, out.p + at, out.n - at, MSG_NOSIGNAL | MSG_DONTWAIT);
        if (n < 0 && errno != EAGAIN) break;
        if (n > 0) at += (size_t)n;
    }
    buf_fini(&out);
}

static void *run(void *arg) {
    struct local_socket *s = arg;
    while (ready(s, s->fd, POLLIN, -1)) {
        int fd = accept4(s->fd, NULL, NULL, SOCK_CLOEXEC);
        if (fd < 0) { /* no descriptor is free: without a pause this would spin until one is */
            (void)ready(s, -1, 0, AGAIN_MS);
            continue;
        }
        serve(s, fd);
        close(fd);
    }
    return NULL;
}

/* ---- life ---- */

static void close_all(struct local_socket *s) {
    const int fds[] = {s->fd, s->stop[0], s->stop[1], s->folder};
    if (s->folder >= 0) (void)unlinkat(s->folder, "tallyd.sock", 0);
    for (size_t i = 0; i < ARRAY_LEN(fds); i++)
        if (fds[i] >= 0) close(fds[i]);
    free(s);
}

/* Binds through /proc/self/fd, because the folder's path may be longer than a socket's address may
 * be. The file that bind makes takes its mode from the socket. */
int local_socket_start(struct local_socket **out, const char *data_dir, struct eng *eng, struct err *e) {
    struct sockaddr_un at = {.sun_family = AF_UNIX};
    *out = NULL;
    if (!data_dir) return 0;
    struct local_socket *s = malloc(sizeof(*s));
    if (!s) return err_nomem(e);
    *s = (struct local_socket){.eng = eng, .folder = -1, .fd = -1, .stop = {-1, -1}};
    s->folder = open(data_dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    s->fd = s->folder < 0 ? -1 : socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (s->fd >= 0) {
        snprintf(at.sun_path, sizeof(at.sun_path), "/proc/self/fd/%d/tallyd.sock", s->folder);
        (void)unlinkat(s->folder, "tallyd.sock", 0); /* of an earlier run: the folder is locked */
    }
    if (s->fd < 0 || fchmod(s->fd, 0600) || bind(s->fd, (struct sockaddr *)&at, sizeof(at)) || listen(s->fd, 4) ||
        pipe2(s->stop, O_CLOEXEC))
        err_set(e, ERR_CONFIG, "cannot listen on %s/tallyd.sock: %s", data_dir, strerror(errno));
    else if (pthread_create(&s->thread, NULL, run, s))
        err_set(e, ERR_SERVER, "the thread of the local socket does not start");
    else {
        (void)pthread_setname_np(s->thread, "local-socket");
        *out = s;
        return 0;
    }
    close_all(s);
    return -1;
}

void local_socket_stop(struct local_socket *s) {
    close(s->stop[1]);
    s->stop[1] = -1;
    pthread_join(s->thread, NULL);
    close_all(s);
}
