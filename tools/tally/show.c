#include "tools/tally/show.h"

#include <string.h>
#include <unistd.h>

#include "base/buf.h"
#include "types/type.h"

/* One of the two streams. */
struct shown {
    FILE *raw; /* NULL if not opened */
    bool cuts;
    size_t column; /* bytes of the line so far */
    uint8_t left[4]; /* the beginning of a character whose end is not written yet */
    size_t n_left;
};

static struct shown shown[2];

static size_t length_of(uint8_t first) { return first < 0xC0 ? 1 : first < 0xE0 ? 2 : first < 0xF0 ? 3 : 4; }

/* The code point of a valid UTF-8 sequence. */
static uint32_t code_of(const uint8_t *p, size_t n) {
    uint32_t code = n == 1 ? p[0] : p[0] & (0x7F >> n);
    for (size_t i = 1; i < n; i++) code = code << 6 | (p[i] & 0x3F);
    return code;
}

static bool controls(uint32_t c) {
    bool control = (c < 0x20 && c != '\n' && c != '\t') || (c >= 0x7F && c < 0xA0);
    bool direction = c == 0x061C || c == 0x200E || c == 0x200F || (c >= 0x202A && c <= 0x202E) ||
                     (c >= 0x2066 && c <= 0x2069);
    return control || direction || c == 0x2028 || c == 0x2029; /* the last two end a line */
}

static void put_character(struct shown *s, const uint8_t *p, size_t n, struct buf *out) {
    struct err e = {0};
    bool valid = cql_value_validate(cql_type_scalar(CQL_TEXT), slice_of(p, n), &e) == 0;
    uint32_t code = valid ? code_of(p, n) : 0xFFFD;
    if (code == '\n') s->column = 0;
    else if (s->cuts && s->column >= SHOW_LINE_MAX) {
        if (s->column++ == SHOW_LINE_MAX) buf_put_str(out, " [the line is longer]");
        return;
    } else s->column++;
    if (!valid) buf_put_str(out, "\xEF\xBF\xBD");
    else if (controls(code)) buf_printf(out, "\\u%04x", (unsigned)code);
    else buf_put(out, p, n);
}

static ssize_t write_shown(void *cookie, const char *bytes, size_t n) {
    struct shown *s = cookie;
    struct buf in, out;
    size_t at = 0;
    buf_init(&in, 0);
    buf_init(&out, 0);
    buf_put(&in, s->left, s->n_left);
    buf_put(&in, bytes, n);
    s->n_left = 0;
    while (at < in.n) {
        size_t size = length_of(in.p[at]), there = 1;
        while (there < size && at + there < in.n && (in.p[at + there] & 0xC0) == 0x80) there++;
        if (there < size && at + there == in.n) { /* its end may be in the next write */
            memcpy(s->left, in.p + at, there);
            s->n_left = there;
            break;
        }
        put_character(s, in.p + at, there, &out);
        at += there;
    }
    bool failed = buf_failed(&in) || buf_failed(&out) || fwrite(buf_slice(&out).p, 1, out.n, s->raw) < out.n ||
                  fflush(s->raw);
    buf_fini(&in);
    buf_fini(&out);
    return failed ? 0 : (ssize_t)n;
}

static void open_one(struct shown *s, FILE **stream, int fd, bool data) {
    bool terminal = isatty(fd);
    FILE *filtered = data && !terminal ? NULL : fopencookie(s, "w", (cookie_io_functions_t){.write = write_shown});
    if (!filtered) return;
    *s = (struct shown){.raw = *stream, .cuts = terminal && !data};
    setvbuf(filtered, NULL, fd == STDERR_FILENO ? _IONBF : terminal ? _IOLBF : _IOFBF, BUFSIZ);
    *stream = filtered;
}

void show_open(bool data) {
    open_one(&shown[0], &stdout, STDOUT_FILENO, data);
    open_one(&shown[1], &stderr, STDERR_FILENO, data);
}

FILE *show_raw(FILE *stream) {
    const struct shown *s = &shown[stream == stderr];
    fflush(stream);
    return s->raw ? s->raw : stream;
}
