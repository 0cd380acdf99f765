/* timestamp (milliseconds since 1970), date (days, 1970-01-01 is 2^31) and time (nanoseconds of the
 * day). */
#include <inttypes.h>

#include "types/calendar.h"
#include "types/family.h"
#include "types/zone.h"

enum { DAY_MS = 86400000, YEARS_MAX = 292000000 /* their milliseconds fit into 64 bits */ };
static const int64_t day_ns = INT64_C(86400000000000);

static int validate(const struct cql_type *t, struct slice v, struct err *e) {
    switch (t->id) {
    case CQL_TIMESTAMP:
        return v.n == 8 || v.n == 0 ? 0 : err_invalid(e, "Expected 8 or 0 byte long for date (%zu)", v.n);
    case CQL_DATE: return v.n == 4 ? 0 : err_invalid(e, "Expected 4 byte long for date (%zu)", v.n);
    default: return v.n == 8 ? 0 : err_invalid(e, "Expected 8 byte long for time (%zu)", v.n);
    }
}

static int compare(const struct cql_type *t, struct slice a, struct slice b) {
    if (t->id != CQL_TIMESTAMP || a.n == 0 || b.n == 0) return slice_cmp(a, b);
    int64_t x = (int64_t)load_u64(a.p), y = (int64_t)load_u64(b.p);
    return (x > y) - (x < y);
}

/* ---- reading ---- */

struct cursor {
    const uint8_t *p, *end;
};

/* Reads between min and max digits; -1 when there are fewer. */
static int64_t take_number(struct cursor *c, int min, int max) {
    int64_t v = 0;
    int n = 0;
    for (; c->p < c->end && n < max && *c->p >= '0' && *c->p <= '9'; n++) v = v * 10 + (*c->p++ - '0');
    return n < min ? -1 : v;
}

static bool take_char(struct cursor *c, uint8_t ch) {
    if (c->p == c->end || *c->p != ch) return false;
    c->p++;
    return true;
}

/* [+-]year-month-day. Only a year with a sign may have more than four digits. */
static int take_date(struct cursor *c, int64_t *year, int *month, int *day) {
    bool negative = take_char(c, '-'), sign = negative || take_char(c, '+');
    *year = take_number(c, 4, sign ? 10 : 4);
    if (*year < 0 || !take_char(c, '-')) return -1;
    if (negative) *year = -*year;
    int64_t m = take_number(c, 2, 2);
    if (m < 1 || m > 12 || !take_char(c, '-')) return -1;
    int64_t d = take_number(c, 2, 2);
    if (d < 1 || d > 31) return -1;
    *month = (int)m, *day = (int)d;
    return 0;
}

/* .f to .fffffffff as nanoseconds. */
static int64_t take_fraction(struct cursor *c) {
    const uint8_t *from = c->p;
    int64_t v = take_number(c, 1, 9);
    for (ptrdiff_t n = c->p - from; v >= 0 && n < 9; n++) v *= 10;
    return v;
}

/* HH:mm[:ss[.fraction]] in milliseconds; 24:00 is the end of the day. */
static int64_t take_clock(struct cursor *c) {
    int64_t h = take_number(c, 2, 2), s = 0, ns = 0;
    if (h < 0 || h > 24 || !take_char(c, ':')) return -1;
    int64_t m = take_number(c, 2, 2);
    if (m < 0 || m > 59) return -1;
    if (take_char(c, ':')) {
        s = take_number(c, 2, 2);
        if (s < 0 || s > 59) return -1;
        if (take_char(c, '.') && (ns = take_fraction(c)) < 0) return -1;
    }
    if (h == 24 && (m || s || ns)) return -1;
    return ((h * 60 + m) * 60 + s) * 1000 + ns / 1000000;
}

/* Offsets of names in keyspaces mode, in hours: in Cassandra 3.11 (SimpleDateFormat) a name means winter or
 * summer time, whatever the date. */
static const struct {
    const char *name;
    int hours;
} fixed_zones[] = {
    {"EST", -5}, {"EDT", -4}, {"CST", -6}, {"CDT", -5}, {"MST", -7},
    {"MDT", -6}, {"PST", -8}, {"PDT", -7}, {"CET", 1},  {"CEST", 2},
};

/* Forms of an offset. */
enum { SHORT = 1 /* +hh, +hhmm */, SECONDS = 2 /* +hh:mm:ss */ };

/* Reads an offset, +hh:mm or of another of the forms, up to the end of the text, in seconds. */
static int take_offset(struct cursor *c, unsigned forms, int64_t *offset_s) {
    bool negative = take_char(c, '-');
    if (!negative && !take_char(c, '+')) return -1;
    int64_t h = take_number(c, 2, 2), m = 0, s = 0;
    if (take_char(c, ':')) {
        m = take_number(c, 2, 2);
        if (forms & SECONDS && take_char(c, ':')) s = take_number(c, 2, 2);
    } else {
        if (!(forms & SHORT)) return -1;
        if (c->p < c->end) m = take_number(c, 2, 2);
    }
    *offset_s = (h * 60 + m) * 60 + s;
    if (h < 0 || m < 0 || m > 59 || s < 0 || s > 59 || *offset_s > 18 * 3600 || c->p != c->end) return -1;
    if (negative) *offset_s = -*offset_s;
    return 0;
}

/* Reads a zone by name up to the end of the text: its offset at the local time. */
static int take_zone_name(struct cursor *c, int64_t local_s, bool fixed, int64_t *offset_s) {
    static const char *const utc[] = {"UTC", "GMT", "UT"};
    struct slice name = slice_of(c->p, (size_t)(c->end - c->p));
    *offset_s = 0;
    if (slice_is(name, "GMT0")) return 0;
    for (size_t i = 0; i < ARRAY_LEN(utc); i++) {
        size_t n = strlen(utc[i]);
        if (name.n < n || memcmp(name.p, utc[i], n)) continue;
        c->p += n;
        return c->p == c->end ? 0 : take_offset(c, SECONDS, offset_s);
    }
    for (size_t i = 0; fixed && i < ARRAY_LEN(fixed_zones); i++) {
        if (!slice_is(name, fixed_zones[i].name)) continue;
        *offset_s = fixed_zones[i].hours * INT64_C(3600);
        return 0;
    }
    const struct zone *z = fixed ? NULL : zone_find(name);
    if (z) *offset_s = zone_offset(z, local_s);
    return z ? 0 : -1;
}

/* Reads the rest after date and clock: an offset, or a space and an offset or a name. */
static int take_zone(struct cursor *c, int64_t local_s, bool date_only, bool fixed, int64_t *offset_s) {
    *offset_s = 0;
    if (c->p == c->end) return 0;
    bool space = take_char(c, ' ');
    size_t left = (size_t)(c->end - c->p);
    if (left == 1 && (*c->p == 'Z' || (*c->p == 'z' && date_only && !space))) return 0;
    if (left && (*c->p == '+' || *c->p == '-'))
        return take_offset(c, SHORT | (space || date_only ? SECONDS : 0), offset_s);
    return space ? take_zone_name(c, local_s, fixed, offset_s) : -1;
}

/* A number with any number of digits, or -1. */
static int64_t take_loose(struct cursor *c, int64_t least, int64_t most) {
    int64_t v = take_number(c, 1, 18);
    return v < least || v > most ? -1 : v;
}

/* year-month-day h:m[:s[.fraction]] with any number of digits each. */
static int take_loose_moment(struct cursor *c, int64_t *year, int *month, int *day, int64_t *clock_ms) {
    int64_t m, d, h, minute, s = 0, ns = 0;
    if ((*year = take_loose(c, 1, YEARS_MAX)) < 0 || !take_char(c, '-')) return -1;
    if ((m = take_loose(c, 1, 12)) < 0 || !take_char(c, '-')) return -1;
    if ((d = take_loose(c, 1, 31)) < 0 || !(take_char(c, ' ') || take_char(c, 'T'))) return -1;
    if ((h = take_loose(c, 0, 24)) < 0 || !take_char(c, ':') || (minute = take_loose(c, 0, 59)) < 0) return -1;
    if (take_char(c, ':')) {
        if ((s = take_loose(c, 0, 59)) < 0) return -1;
        if (take_char(c, '.') && c->p < c->end && *c->p >= '0' && *c->p <= '9') ns = take_fraction(c);
    }
    if (h == 24 && (minute || s || ns)) return -1;
    *month = (int)m, *day = (int)d;
    *clock_ms = ((h * 60 + minute) * 60 + s) * 1000 + ns / 1000000;
    return 0;
}

/* A date and, if given, a clock, with all their digits. *clock_ms is -1 when there is none. */
static int take_moment(struct cursor *c, int64_t *year, int *month, int *day, int64_t *clock_ms) {
    *clock_ms = -1;
    if (take_date(c, year, month, day) < 0 || *year < -YEARS_MAX || *year > YEARS_MAX) return -1;
    if (c->p < c->end && (*c->p == 'T' || (*c->p == ' ' && c->end - c->p > 1 && c->p[1] >= '0' && c->p[1] <= '9'))) {
        c->p++;
        *clock_ms = take_clock(c);
        return *clock_ms < 0 ? -1 : 0;
    }
    return 0;
}

static int read_timestamp(struct slice text, bool fixed, int64_t *ms) {
    struct cursor c = {.p = text.p, .end = text.p + text.n};
    int64_t year, clock_ms, offset_s;
    int month, day;
    if (take_moment(&c, &year, &month, &day, &clock_ms) < 0) {
        c.p = text.p;
        if (take_loose_moment(&c, &year, &month, &day, &clock_ms) < 0) return -1;
    }
    int length = calendar_month_length(year, month);
    int64_t local_ms = calendar_days(year, month, day < length ? day : length) * DAY_MS + (clock_ms < 0 ? 0 : clock_ms);
    int64_t local_s = local_ms / 1000 - (local_ms % 1000 < 0);
    if (take_zone(&c, local_s, clock_ms < 0, fixed, &offset_s) < 0) return -1;
    *ms = local_ms - offset_s * 1000;
    return 0;
}

static bool is_integer(struct slice text) {
    return cqlt_is_digits(text.n > 1 && text.p[0] == '-' ? slice_of(text.p + 1, text.n - 1) : text);
}

static int parse_timestamp(struct slice text, struct cql_reading how, struct buf *out, struct err *e) {
    int64_t ms;
    if (text.n == 0) return 0;
    if (text.n == 3 && (text.p[0] | 32) == 'n' && (text.p[1] | 32) == 'o' && (text.p[2] | 32) == 'w') {
        ms = how.now_us / 1000;
    } else if (is_integer(text)) {
        if (cqlt_parse_int64(text, &ms) < 0)
            return err_invalid(e, "Unable to make long (for date) from: '%.*s'", CQLT_QUOTE(text));
    } else if (read_timestamp(text, how.fixed_zones, &ms) < 0) {
        return err_invalid(e, "Unable to parse a date/time from '%.*s'", CQLT_QUOTE(text));
    }
    buf_u64(out, (uint64_t)ms);
    return 0;
}

static int parse_date(struct slice text, struct buf *out, struct err *e) {
    int64_t days, year;
    int month, day;
    if (is_integer(text)) {
        if (cqlt_parse_int64(text, &days) < 0 || days < 0 || days > UINT32_MAX)
            return err_invalid(e, "Unable to make unsigned int (for date) from: '%.*s'", CQLT_QUOTE(text));
        buf_u32(out, (uint32_t)days);
        return 0;
    }
    struct cursor c = {.p = text.p, .end = text.p + text.n};
    bool ok = take_date(&c, &year, &month, &day) == 0 && c.p == c.end && day <= calendar_month_length(year, month);
    days = ok ? calendar_days(year, month, day) + ((int64_t)1 << 31) : -1;
    if (days < 0 || days > UINT32_MAX)
        return err_invalid(e, "Unable to coerce '%.*s' to a formatted date (long)", CQLT_QUOTE(text));
    buf_u32(out, (uint32_t)days);
    return 0;
}

/* One number of a time as Java's Long.parseLong reads it: a sign and any number of digits; least to
 * most, else -1. */
static int64_t time_part(struct slice text, int64_t most) {
    int64_t v;
    return cqlt_parse_int64(text, &v) == 0 && v >= 0 && v <= most ? v : -1;
}

/* h:m:s[.fraction], with spaces around it. */
static int read_time(struct slice text, int64_t *ns) {
    while (text.n && *text.p <= ' ') text.p++, text.n--;
    while (text.n && text.p[text.n - 1] <= ' ') text.n--;
    int64_t h = time_part(slice_cut(&text, ':'), 23), m = time_part(slice_cut(&text, ':'), 59), fraction = 0;
    if (h < 0 || m < 0 || !text.p) return -1;
    int64_t s = time_part(slice_cut(&text, '.'), 59);
    if (s < 0) return -1;
    struct cursor c = {.p = text.p, .end = text.p + text.n};
    if (text.p && ((fraction = take_fraction(&c)) < 0 || c.p != c.end)) return -1;
    *ns = ((h * 60 + m) * 60 + s) * 1000000000 + fraction;
    return 0;
}

static int parse_time(struct slice text, struct buf *out, struct err *e) {
    int64_t ns;
    if (is_integer(text)) {
        if (cqlt_parse_int64(text, &ns) < 0 || ns < 0 || ns >= day_ns)
            return err_invalid(e, "Unable to make long (for time) from: '%.*s'", CQLT_QUOTE(text));
    } else if (read_time(text, &ns) < 0) {
        return err_invalid(e, "(TimeType) Unable to coerce '%.*s' to a formatted time (long)", CQLT_QUOTE(text));
    }
    buf_u64(out, (uint64_t)ns);
    return 0;
}

static int parse(const struct cql_type *t, struct slice text, struct cql_reading how, struct buf *out, struct err *e) {
    return t->id == CQL_TIMESTAMP ? parse_timestamp(text, how, out, e)
           : t->id == CQL_DATE    ? parse_date(text, out, e)
                                  : parse_time(text, out, e);
}

/* ---- writing ---- */

/* Cassandra prints the year of the era, without the era: the year 0 is printed as 1. */
void cqlt_timestamp_text(int64_t ms, char separator, struct buf *out) {
    int64_t days = ms / DAY_MS - (ms % DAY_MS < 0), rest = ms % DAY_MS + (ms % DAY_MS < 0 ? DAY_MS : 0), year;
    int month, day;
    calendar_date(days, &year, &month, &day);
    if (year <= 0) year = 1 - year;
    buf_printf(out, "%s%04" PRId64 "-%02d-%02d%c%02d:%02d:%02d.%03dZ", year > 9999 ? "+" : "", year, month, day,
               separator, (int)(rest / 3600000), (int)(rest / 60000 % 60), (int)(rest / 1000 % 60), (int)(rest % 1000));
}

static void text(const struct cql_type *t, struct slice v, struct buf *out) {
    if (v.n == 0) return;
    if (t->id == CQL_TIMESTAMP) {
        cqlt_timestamp_text((int64_t)load_u64(v.p), 'T', out);
    } else if (t->id == CQL_DATE) {
        int64_t year;
        int month, day;
        calendar_date((int64_t)load_u32(v.p) - ((int64_t)1 << 31), &year, &month, &day);
        buf_printf(out, "%s%04" PRId64 "-%02d-%02d",
                   year < 0      ? "-"
                   : year > 9999 ? "+"
                                 : "",
                   year < 0 ? -year : year, month, day);
    } else {
        uint64_t ns = load_u64(v.p), s = ns / 1000000000;
        buf_printf(out, "%02" PRIu64 ":%02d:%02d.%09d", s / 3600, (int)(s / 60 % 60), (int)(s % 60),
                   (int)(ns % 1000000000));
    }
}

static int key_encode(const struct cql_type *t, struct slice v, struct buf *out, bool *exact, struct err *e) {
    (void)exact, (void)e;
    if (t->id == CQL_TIMESTAMP) {
        buf_u8(out, v.n > 0);
        if (v.n) buf_u64(out, load_u64(v.p) ^ (uint64_t)1 << 63);
    } else {
        buf_put_slice(out, v);
    }
    return 0;
}

static int key_decode(const struct cql_type *t, struct key_rd *key, struct buf *out) {
    if (t->id == CQL_DATE) {
        buf_u32(out, (uint32_t)cqlt_key_uint(key, 4));
    } else if (t->id == CQL_TIME) {
        buf_u64(out, cqlt_key_uint(key, 8));
    } else {
        uint8_t present = cqlt_key_u8(key);
        if (present > 1) return -1;
        if (present) buf_u64(out, cqlt_key_uint(key, 8) ^ (uint64_t)1 << 63);
    }
    return 0;
}

const struct cql_family cqlt_datetime = {.validate = validate,
                                         .compare = compare,
                                         .parse = parse,
                                         .text = text,
                                         .key_encode = key_encode,
                                         .key_decode = key_decode};
