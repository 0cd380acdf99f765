/* duration: months, days, nanoseconds. Durations have no order; equal bytes are equal values. */
#include <inttypes.h>

#include "types/duration.h"
#include "types/family.h"

int cqlt_vint_read(struct rd *r, uint64_t *out) {
    uint8_t first = rd_u8(r);
    int more = first == 0xFF ? 8 : __builtin_clz((unsigned)(uint8_t)~first) - 24;
    uint64_t v = more >= 7 ? 0 : first & (0xFFu >> more);
    for (int i = 0; i < more; i++) v = v << 8 | rd_u8(r);
    *out = v;
    return r->bad ? -1 : 0;
}

/* The number of bytes that follow the first. */
static int vint_more(uint64_t v) {
    int bits = 64 - __builtin_clzll(v | 1);
    return bits > 56 ? 8 : (bits - 1) / 7;
}

size_t cqlt_vint_bytes(uint64_t v) { return (size_t)vint_more(v) + 1; }

void cqlt_vint_write(uint64_t v, struct buf *out) {
    int more = vint_more(v);
    if (more == 8) {
        buf_u8(out, 0xFF);
    } else {
        uint8_t head = (uint8_t)(0xFF00u >> more);
        buf_u8(out, head | (uint8_t)(v >> 8 * more));
    }
    for (int i = more - 1; i >= 0; i--) buf_u8(out, (uint8_t)(v >> 8 * i));
}

static uint64_t zigzag(int64_t v) { return (uint64_t)v << 1 ^ (uint64_t)(v >> 63); }

static int read_parts(struct slice v, int64_t parts[3]) {
    struct rd r = rd_of(v);
    for (int i = 0; i < 3; i++) {
        uint64_t raw;
        if (cqlt_vint_read(&r, &raw) < 0) return -1;
        parts[i] = (int64_t)(raw >> 1) ^ -(int64_t)(raw & 1); /* zigzag */
    }
    return 0;
}

int cql_duration_read(struct slice v, struct cql_duration *out) {
    int64_t p[3];
    if (read_parts(v, p) < 0 || p[0] != (int32_t)p[0] || p[1] != (int32_t)p[1]) return -1;
    *out = (struct cql_duration){.months = (int32_t)p[0], .days = (int32_t)p[1], .ns = p[2]};
    return 0;
}

void cql_duration_write(const struct cql_duration *d, struct buf *out) {
    cqlt_vint_write(zigzag(d->months), out);
    cqlt_vint_write(zigzag(d->days), out);
    cqlt_vint_write(zigzag(d->ns), out);
}

static int validate(const struct cql_type *t, struct slice v, struct err *e) {
    (void)t;
    int64_t p[3];
    if (v.n < 3 || read_parts(v, p) < 0) return err_invalid(e, "Expected at least 3 bytes for a duration (%zu)", v.n);
    if (p[0] != (int32_t)p[0])
        return err_invalid(e, "The duration months must be a 32 bits integer but was: %" PRId64, p[0]);
    if (p[1] != (int32_t)p[1])
        return err_invalid(e, "The duration days must be a 32 bits integer but was: %" PRId64, p[1]);
    bool negative = p[0] < 0 || p[1] < 0 || p[2] < 0, positive = p[0] > 0 || p[1] > 0 || p[2] > 0;
    if (negative && positive)
        return err_invalid(e,
                           "The duration months, days and nanoseconds must be all of the same sign (%" PRId64
                           ", %" PRId64 ", %" PRId64 ")",
                           p[0], p[1], p[2]);
    return 0;
}

/* ---- literals ---- */

enum unit { YEARS, MONTHS, WEEKS, DAYS, HOURS, MINUTES, SECONDS, MILLIS, MICROS, NANOS };

static const struct {
    const char *name, *symbol;
    int part;      /* 0 months, 1 days, 2 nanoseconds */
    int64_t scale;
} units[] = {
    [YEARS] = {"years", "y", 0, 12},
    [MONTHS] = {"months", "mo", 0, 1},
    [WEEKS] = {"weeks", "w", 1, 7},
    [DAYS] = {"days", "d", 1, 1},
    [HOURS] = {"hours", "h", 2, INT64_C(3600000000000)},
    [MINUTES] = {"minutes", "m", 2, INT64_C(60000000000)},
    [SECONDS] = {"seconds", "s", 2, 1000000000},
    [MILLIS] = {"milliseconds", "ms", 2, 1000000},
    [MICROS] = {"microseconds", "us", 2, 1000},
    [NANOS] = {"nanoseconds", "ns", 2, 1},
};

struct builder {
    int64_t parts[3];
    int current; /* the unit added last, or -1 */
};

static int add(struct builder *b, int unit, uint64_t n, struct err *e) {
    static const char *const what[] = {"months", "days", "nanoseconds"};
    static const int64_t limits[] = {INT32_MAX, INT32_MAX, INT64_MAX};
    if (unit == b->current)
        return err_invalid(e, "Invalid duration. The %s are specified multiple times", units[unit].name);
    if (unit < b->current)
        return err_invalid(e, "Invalid duration. The %s should be after %s", units[b->current].name, units[unit].name);
    b->current = unit;
    int part = units[unit].part;
    int64_t v;
    if (n > INT64_MAX || __builtin_mul_overflow((int64_t)n, units[unit].scale, &v) ||
        __builtin_add_overflow(b->parts[part], v, &b->parts[part]) || b->parts[part] > limits[part])
        return err_invalid(e, "Invalid duration. The total number of %s must be less or equal to %" PRId64, what[part],
                           limits[part]);
    return 0;
}

/* Reads digits; a number that is too large for 64 bits becomes UINT64_MAX, which add refuses. false:
 * there are no digits. */
static bool take_digits(struct slice *s, uint64_t *out) {
    size_t i = 0;
    uint64_t v = 0;
    bool over = false;
    for (; i < s->n && s->p[i] >= '0' && s->p[i] <= '9'; i++)
        over = over || __builtin_mul_overflow(v, 10u, &v) || __builtin_add_overflow(v, (uint64_t)(s->p[i] - '0'), &v);
    *s = slice_of(s->p + i, s->n - i);
    *out = over ? UINT64_MAX : v;
    return i > 0;
}

static int take_unit(struct slice *s) {
    static const char micro[] = "\xC2\xB5s";
    if (s->n >= 3 && memcmp(s->p, micro, 2) == 0 && (s->p[2] | 32) == 's') {
        *s = slice_of(s->p + 3, s->n - 3);
        return MICROS;
    }
    for (size_t n = 2; n > 0; n--)
        for (int u = 0; u <= NANOS; u++) {
            const char *symbol = units[u].symbol;
            if (strlen(symbol) != n || s->n < n || (s->p[0] | 32) != symbol[0] ||
                (n == 2 && (s->p[1] | 32) != symbol[1]))
                continue;
            *s = slice_of(s->p + n, s->n - n);
            return u;
        }
    return -1;
}

static int unreadable(struct slice text, struct err *e) {
    return err_invalid(e, "Unable to convert '%.*s' to a duration", CQLT_QUOTE(text));
}

/* P1Y2M3DT4H5M6S or P2W; s is the text after the P. */
static int read_iso(struct slice text, struct slice s, struct builder *b, struct err *e) {
    bool in_time = false;
    while (s.n) {
        uint64_t n;
        if (!in_time && s.p[0] == 'T') {
            in_time = true;
            s = slice_of(s.p + 1, s.n - 1);
            continue;
        }
        if (!take_digits(&s, &n) || s.n == 0) return unreadable(text, e);
        static const char date_letters[] = "YMWD", time_letters[] = "HMS";
        const char *letters = in_time ? time_letters : date_letters, *at = s.p[0] ? strchr(letters, s.p[0]) : NULL;
        if (!at) return unreadable(text, e);
        if (add(b, (in_time ? HOURS : YEARS) + (int)(at - letters), n, e) < 0) return -1;
        s = slice_of(s.p + 1, s.n - 1);
    }
    return 0;
}

/* P0001-02-03T04:05:06 */
static int read_iso_alternative(struct slice s, struct builder *b, struct err *e) {
    static const int order[] = {YEARS, MONTHS, DAYS, HOURS, MINUTES, SECONDS};
    static const char after[] = "--T::";
    for (int i = 0; i < 6; i++) {
        uint64_t n;
        if (!take_digits(&s, &n)) return -1;
        if (i < 5) {
            if (s.n == 0 || s.p[0] != (uint8_t)after[i]) return -1;
            s = slice_of(s.p + 1, s.n - 1);
        }
        if (add(b, order[i], n, e) < 0) return -1;
    }
    return s.n ? -1 : 0;
}

static int parse(const struct cql_type *t, struct slice text, struct cql_reading how, struct buf *out, struct err *e) {
    (void)how;
    (void)t;
    struct builder b = {.current = -1};
    bool negative = text.n > 0 && text.p[0] == '-';
    if (negative) text = slice_of(text.p + 1, text.n - 1);
    if (text.n == 0) return unreadable(text, e);
    struct slice rest = slice_of(text.p + 1, text.n - 1);
    if (text.p[0] != 'P') {
        for (struct slice s = text; s.n;) {
            uint64_t n;
            int unit = take_digits(&s, &n) ? take_unit(&s) : -1;
            if (unit < 0) return unreadable(text, e);
            if (add(&b, unit, n, e) < 0) return -1;
        }
    } else if (memchr(rest.p, '-', rest.n)) {
        if (read_iso_alternative(rest, &b, e) < 0) return e->set ? -1 : unreadable(text, e);
    } else if (read_iso(text, rest, &b, e) < 0) {
        return -1;
    }
    int sign = negative ? -1 : 1;
    struct cql_duration d = {.months = (int32_t)b.parts[0] * sign,
                             .days = (int32_t)b.parts[1] * sign,
                             .ns = b.parts[2] * sign};
    cql_duration_write(&d, out);
    return 0;
}

static void text(const struct cql_type *t, struct slice v, struct buf *out) {
    (void)t;
    struct cql_duration d;
    if (cql_duration_read(v, &d) < 0) return;
    if (d.months < 0 || d.days < 0 || d.ns < 0) buf_u8(out, '-');
    uint64_t parts[3] = {(uint64_t)(d.months < 0 ? -(int64_t)d.months : d.months),
                         (uint64_t)(d.days < 0 ? -(int64_t)d.days : d.days),
                         d.ns < 0 ? -(uint64_t)d.ns : (uint64_t)d.ns};
    for (int u = 0; u <= NANOS; u++) {
        uint64_t *part = &parts[units[u].part], scale = (uint64_t)units[u].scale;
        if (u == WEEKS || *part / scale == 0) continue;
        buf_printf(out, "%" PRIu64 "%s", *part / scale, units[u].symbol);
        *part %= scale;
    }
}

const struct cql_family cqlt_duration = {
    .validate = validate, .compare = cqlt_compare_bytes, .parse = parse, .text = text,
    .key_encode = cqlt_key_encode_bytes, .key_decode = cqlt_key_decode_bytes};
