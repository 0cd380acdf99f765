#include "base/log.h"

#include <errno.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdio.h>
#include <time.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/file.h"

enum { ROOMS_MAX = 16, ROOM_NAME_MAX = 32, TEXT_MAX = 1024, LINE_MAX = 8 * TEXT_MAX };

static const char *const names[] = {"error", "warn", "info", "debug"};

struct levels {
    enum log_level all;
    unsigned n;
    struct {
        char name[ROOM_NAME_MAX];
        enum log_level level;
    } rooms[ROOMS_MAX];
};

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER; /* guards the variables below except most */
static struct levels current = {.all = LOG_LEVEL_INFO};
static _Atomic int most = LOG_LEVEL_INFO; /* the highest level of all rooms: a line above it costs one load */
static enum log_format shape = LOG_HUMAN;
static int to = STDERR_FILENO;

/* ---- levels ---- */

static int take_part(struct levels *l, struct slice part, struct err *e) {
    const uint8_t *eq = memchr(part.p, '=', part.n);
    struct slice room = slice_of(part.p, eq ? (size_t)(eq - part.p) : 0),
                 name = eq ? slice_of(eq + 1, part.n - room.n - 1) : part;
    int level = (int)ARRAY_LEN(names) - 1;
    while (level >= 0 && !slice_is(name, names[level])) level--;
    if (level < 0)
        return err_set(e, ERR_CONFIG, "'%.*s' is no level of the log: error, warn, info or debug", SLICE_FMT(name));
    if (!eq) {
        l->all = (enum log_level)level;
        return 0;
    }
    if (!room.n || room.n >= ROOM_NAME_MAX || l->n == ROOMS_MAX)
        return err_set(e, ERR_CONFIG, "levels of the log are given like info,engine=debug: at most %d rooms",
                       ROOMS_MAX);
    memcpy(l->rooms[l->n].name, room.p, room.n);
    l->rooms[l->n++].level = (enum log_level)level;
    return 0;
}

static int parse(struct levels *l, const char *text, struct err *e) {
    *l = (struct levels){.all = LOG_LEVEL_INFO};
    for (;;) {
        size_t n = strcspn(text, ",");
        if (take_part(l, slice_of((const uint8_t *)text, n), e)) return -1;
        if (!text[n]) return 0;
        text += n + 1;
    }
}

int log_check_levels(const char *levels, struct err *e) {
    struct levels l;
    return parse(&l, levels, e);
}

int log_set_levels(const char *levels, struct err *e) {
    struct levels l;
    if (parse(&l, levels, e)) return -1;
    int top = l.all;
    for (unsigned i = 0; i < l.n; i++)
        if ((int)l.rooms[i].level > top) top = l.rooms[i].level;
    pthread_mutex_lock(&lock);
    current = l;
    pthread_mutex_unlock(&lock);
    atomic_store(&most, top);
    return 0;
}

/* The folder of a source file, relative to the project's root. The root is found from the path
 * of this file. */
static struct slice room_of(const char *file) {
    static const char here[] = "base/log.c";
    size_t root = sizeof(__FILE__) - sizeof(here);
    if (strlen(file) > root) file += root;
    const char *end = strrchr(file, '/');
    return slice_of((const uint8_t *)file, end ? (size_t)(end - file) : 0);
}

/* The level of a room: that of the longest name that fits. The caller holds the lock. */
static enum log_level level_in(struct slice room) {
    enum log_level level = current.all;
    size_t best = 0;
    for (unsigned i = 0; i < current.n; i++) {
        const char *name = current.rooms[i].name;
        size_t n = strlen(name);
        bool within = room.n >= n && !memcmp(room.p, name, n) && (room.n == n || room.p[n] == '/');
        if (!within || n <= best) continue;
        best = n;
        level = current.rooms[i].level;
    }
    return level;
}

/* ---- lines ---- */

static void put_time(struct buf *out) {
    struct timespec t;
    struct tm tm;
    char text[32];
    clock_gettime(CLOCK_REALTIME, &t);
    gmtime_r(&t.tv_sec, &tm);
    strftime(text, sizeof(text), "%Y-%m-%dT%H:%M:%S", &tm);
    buf_printf(out, "%s.%03ldZ", text, t.tv_nsec / 1000000);
}

static void put_line(struct buf *out, enum log_level level, struct slice room, struct slice text) {
    static const char *const columns[] = {"ERROR", "WARN ", "INFO ", "DEBUG"};
    if (shape == LOG_HUMAN) {
        put_time(out);
        buf_printf(out, " %s ", columns[level]);
        /* The text may contain bytes that a client sent. Control characters become spaces, so that
         * it cannot imitate a line of the server or move a terminal's cursor. */
        for (size_t i = 0; i < text.n; i++) buf_u8(out, text.p[i] < 0x20 || text.p[i] == 0x7f ? ' ' : text.p[i]);
        buf_u8(out, '\n');
        return;
    }
    buf_put_str(out, shape == LOG_JSON ? "{\"time\":\"" : "time=");
    put_time(out);
    buf_printf(out, shape == LOG_JSON ? "\",\"level\":\"%s\",\"room\":\"%.*s\",\"text\":" : " level=%s room=%.*s text=",
               names[level], SLICE_FMT(room));
    buf_json_str(out, text); /* logfmt quotes like JSON */
    buf_put_str(out, shape == LOG_JSON ? "}\n" : "\n");
}

static void write_all(const uint8_t *p, size_t n) {
    while (n) {
        ssize_t done = write(to, p, n);
        if (done < 0 && errno == EINTR) continue;
        if (done <= 0) return; /* a log that cannot be written has no place to report it */
        p += done;
        n -= (size_t)done;
    }
}

void log_line(enum log_level level, const char *file, const char *fmt, ...) {
    char text[TEXT_MAX];
    va_list ap;
    if ((int)level > atomic_load_explicit(&most, memory_order_relaxed)) return;
    va_start(ap, fmt);
    vsnprintf(text, sizeof(text), fmt, ap);
    va_end(ap);
    struct slice room = room_of(file);
    struct buf out;
    buf_init(&out, LINE_MAX);
    pthread_mutex_lock(&lock);
    if (level <= level_in(room)) {
        put_line(&out, level, room, slice_str(text));
        if (buf_failed(&out)) write_all((const uint8_t *)text, strlen(text)); /* no memory for the whole line */
        else write_all(out.p, out.n);
    }
    pthread_mutex_unlock(&lock);
    buf_fini(&out);
}

/* ---- where and how ---- */

void log_set_format(enum log_format format) {
    pthread_mutex_lock(&lock);
    shape = format;
    pthread_mutex_unlock(&lock);
}

int log_open(const char *path, struct err *e) {
    const char *why;
    int fd = *path ? file_open_append(path, &why) : STDERR_FILENO;
    if (fd < 0) return err_set(e, ERR_CONFIG, "cannot write the log to %s: %s", path, why);
    pthread_mutex_lock(&lock);
    if (to != STDERR_FILENO) close(to);
    to = fd;
    pthread_mutex_unlock(&lock);
    return 0;
}
