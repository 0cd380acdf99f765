#include "types/zone.h"

#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/buf.h"
#include "base/compiler.h"
#include "base/file.h"
#include "types/calendar.h"

enum { DAY_S = 86400, FILE_MAX = 64 << 10, ID_MAX = 63, SLOTS = 1024 /* about 600 zones */ };

static const struct {
    const char *id, *names;
} rows[] = {
#define ZONE(id, names) {id, names},
#include "types/zone.def"
#undef ZONE
};

/* ---- the rule of the years after the last transition: the text TZ of POSIX ---- */

static bool take(struct rd *r, char c) {
    if (!rd_left(r) || *r->p != (uint8_t)c) return false;
    r->p++;
    return true;
}

/* Digits of a number up to max; -1 if none, or it is larger. */
static int take_number(struct rd *r, int max) {
    int v = -1;
    while (rd_left(r) && *r->p >= '0' && *r->p <= '9' && v <= max) v = (v < 0 ? 0 : v * 10) + (*r->p++ - '0');
    return v > max ? -1 : v;
}

/* [+-]h[:m[:s]] in seconds. */
static bool take_time(struct rd *r, int32_t *s) {
    bool negative = take(r, '-');
    if (!negative) take(r, '+');
    int h = take_number(r, 167), m = 0, rest = 0;
    if (h >= 0 && take(r, ':') && (m = take_number(r, 59)) >= 0 && take(r, ':')) rest = take_number(r, 59);
    *s = (h * 60 + m) * 60 + rest;
    if (negative) *s = -*s;
    return h >= 0 && m >= 0 && rest >= 0;
}

/* CET or <+0330>. */
static bool take_name(struct rd *r) {
    const uint8_t *from = r->p;
    if (take(r, '<')) {
        while (rd_left(r) && *r->p != '>') r->p++;
        return take(r, '>');
    }
    while (rd_left(r) && ((*r->p | 32) >= 'a' && (*r->p | 32) <= 'z')) r->p++;
    return r->p > from;
}

/* ,M3.5.0/2 or ,J60/2 or ,59/2; without /, it is at 2 o'clock. */
static bool take_day(struct rd *r, struct zone_day *day) {
    *day = (struct zone_day){.kind = ZONE_DAY, .s = 7200};
    bool ok = take(r, ',');
    if (take(r, 'M')) {
        day->kind = ZONE_MONTH;
        ok = ok && (day->month = take_number(r, 12)) > 0 && take(r, '.') && (day->w = take_number(r, 5)) > 0 &&
             take(r, '.') && (day->d = take_number(r, 6)) >= 0;
    } else {
        if (take(r, 'J')) day->kind = ZONE_JULIAN;
        ok = ok && (day->d = take_number(r, 365)) >= (day->kind == ZONE_JULIAN);
    }
    return ok && (!take(r, '/') || take_time(r, &day->s));
}

static bool read_rule(struct slice text, struct zone *z) {
    struct rd r = rd_of(text);
    if (!take_name(&r) || !take_time(&r, &z->standard)) return false;
    z->standard = -z->standard; /* POSIX counts to the west */
    z->rule = true;
    if (!rd_left(&r)) return true;
    z->saves = true;
    z->saving = z->standard + 3600;
    if (!take_name(&r)) return false;
    if (rd_left(&r) && *r.p != ',') {
        if (!take_time(&r, &z->saving)) return false;
        z->saving = -z->saving;
    }
    return take_day(&r, &z->begin) && take_day(&r, &z->end) && !rd_left(&r);
}

/* Local seconds since 1970, on the clock from before. */
static int64_t moment_of(const struct zone_day *at, int64_t year) {
    int64_t day = calendar_days(year, 1, 1) + at->d;
    if (at->kind == ZONE_JULIAN) {
        day += (at->d >= 60 && calendar_month_length(year, 2) == 29) - 1;
    } else if (at->kind == ZONE_MONTH) {
        int64_t first = calendar_days(year, at->month, 1);
        int64_t weekday = ((first + 4) % 7 + 7) % 7; /* 1970-01-01 was a Thursday */
        day = first + (at->d - weekday + 7) % 7 + (at->w - 1) * 7;
        while (day >= first + calendar_month_length(year, at->month)) day -= 7;
    }
    return day * DAY_S + at->s;
}

static int32_t offset_by_rule(const struct zone *z, int64_t local_s) {
    if (!z->saves) return z->standard;
    int64_t year, days = local_s / DAY_S - (local_s % DAY_S < 0);
    int month, day;
    calendar_date(days, &year, &month, &day);
    int32_t jump = z->saving - z->standard, offset = z->standard;
    int64_t newest = INT64_MIN;
    for (int64_t y = year - 1; y <= year + 1; y++) {
        /* The new offset applies after the hours that the clock skips or repeats. */
        int64_t begin = moment_of(&z->begin, y) + (jump > 0 ? jump : 0);
        int64_t end = moment_of(&z->end, y) + (jump < 0 ? -jump : 0);
        if (begin <= local_s && begin > newest) newest = begin, offset = z->saving;
        if (end <= local_s && end > newest) newest = end, offset = z->standard;
    }
    return offset;
}

/* ---- a file ----
 *
 *   "TZif" version 15 bytes | 6 counts: isut isstd leap time type char | data with times of 4 bytes
 *   the same header         | data with times of 8 bytes               | \n rule \n
 *
 *   data: times | type of each | types: offset (4 bytes), is daylight saving, index of its name | names | leap
 *   seconds | isstd | isut
 */

/* The header's counts as sizes of the data; the data are next. */
struct sizes {
    uint32_t n_times, n_types;
    uint64_t rest; /* bytes after the types */
};

static bool read_header(struct rd *r, unsigned width, struct sizes *s) {
    struct slice magic = rd_bytes(r, 4);
    uint8_t version = rd_u8(r);
    rd_bytes(r, 15);
    uint64_t isut = rd_u32(r), isstd = rd_u32(r), leap = rd_u32(r);
    s->n_times = rd_u32(r), s->n_types = rd_u32(r);
    s->rest = isut + isstd + leap * (width + 4) + rd_u32(r);
    return !r->bad && slice_is(magic, "TZif") && version >= '2';
}

bool zone_read(struct slice file, struct zone *z) {
    struct rd r = rd_of(file);
    struct sizes s;
    *z = (struct zone){0};
    if (!read_header(&r, 4, &s)) return false;
    rd_bytes(&r, (uint64_t)s.n_times * 5 + (uint64_t)s.n_types * 6 + s.rest);
    if (!read_header(&r, 8, &s)) return false;
    z->n_times = s.n_times, z->n_offsets = s.n_types;
    z->times = rd_bytes(&r, (uint64_t)s.n_times * 8).p;
    z->kinds = rd_bytes(&r, s.n_times).p;
    z->offsets = rd_bytes(&r, (uint64_t)s.n_types * 6).p;
    rd_bytes(&r, s.rest);
    if (r.bad || !s.n_types || !take(&r, '\n')) return false;
    for (uint32_t i = 0; i < s.n_times; i++)
        if (z->kinds[i] >= s.n_types) return false;
    struct slice rest = slice_of(r.p, rd_left(&r)), rule = slice_cut(&rest, '\n');
    return rest.p && (!rule.n || read_rule(rule, z));
}

static int32_t offset_of_kind(const struct zone *z, uint32_t kind) { return (int32_t)load_u32(z->offsets + 6 * kind); }

int32_t zone_offset(const struct zone *z, int64_t local_s) {
    for (uint32_t i = z->n_times; i-- > 0;) {
        int32_t after = offset_of_kind(z, z->kinds[i]), before = offset_of_kind(z, i ? z->kinds[i - 1] : 0);
        if (local_s < (int64_t)load_u64(z->times + 8 * i) + (after > before ? after : before)) continue;
        return z->rule && i == z->n_times - 1 ? offset_by_rule(z, local_s) : after;
    }
    return z->n_times || !z->rule ? offset_of_kind(z, 0) : offset_by_rule(z, local_s);
}

/* ---- the zones in memory ---- */

struct kept {
    struct zone zone;
    char id[ID_MAX + 1];
    uint8_t file[];
};
static _Atomic(struct kept *) slots[SLOTS]; /* each is set once */

/* Whether Cassandra has a zone of this id. Other names in the folder are only in tzdata, not in the JDK. Without
 * a dot the path stays in the folder. */
static bool is_id(struct slice name) {
    static const char *const others[] = {"EST", "Factory", "HST", "MST", "ROC", "localtime", "posixrules"};
    bool letter = false;
    for (size_t i = 0; i < ARRAY_LEN(others); i++)
        if (slice_is(name, others[i])) return false;
    for (size_t i = 0; i < name.n; i++) {
        bool is_letter = (name.p[i] | 32) >= 'a' && (name.p[i] | 32) <= 'z';
        if (i == 0) letter = is_letter;
        if (!is_letter && !(name.p[i] && strchr("0123456789+-_/", name.p[i]))) return false;
    }
    bool offset = name.n > 7 && memcmp(name.p, "Etc/GMT", 7) == 0; /* Etc/GMT+5 */
    bool copy = name.n > 6 && (memcmp(name.p, "posix/", 6) == 0 || memcmp(name.p, "right/", 6) == 0);
    return letter && name.n <= ID_MAX && !offset && !copy;
}

static struct kept *load(const char *id) {
    char path[sizeof("/usr/share/zoneinfo/") + ID_MAX];
    struct buf file;
    struct err ignored = {0};
    snprintf(path, sizeof(path), "/usr/share/zoneinfo/%s", id);
    buf_init(&file, 2 * FILE_MAX);
    bool read = file_append_to(path, FILE_MAX, &file, &ignored) == 0;
    struct kept *k = read ? malloc(sizeof(*k) + file.n) : NULL;
    if (k) {
        memcpy(k->file, file.p, file.n);
        snprintf(k->id, sizeof(k->id), "%s", id);
    }
    if (k && !zone_read(slice_of(k->file, file.n), &k->zone)) {
        free(k);
        k = NULL;
    }
    buf_fini(&file);
    return k;
}

const struct zone *zone_find(struct slice name) {
    char id[ID_MAX + 1];
    const char *other = NULL;
    for (size_t i = 0; i < ARRAY_LEN(rows) && !other; i++)
        for (struct slice names = slice_str(rows[i].names); names.p && !other;)
            if (slice_eq(slice_cut(&names, '|'), name)) other = rows[i].id;
    if (!other && !is_id(name)) return NULL;
    if (other) snprintf(id, sizeof(id), "%s", other);
    else snprintf(id, sizeof(id), "%.*s", SLICE_FMT(name));
    uint32_t at = 0;
    for (const char *c = id; *c; c++) at = at * 31 + (uint8_t)*c;
    struct kept *made = NULL;
    for (int i = 0; i < SLOTS; i++, at++) {
        struct kept *k = atomic_load(&slots[at % SLOTS]);
        if (!k && !made && !(made = load(id))) return NULL;
        if (!k && atomic_compare_exchange_strong(&slots[at % SLOTS], &k, made)) return &made->zone;
        if (strcmp(k->id, id)) continue;
        free(made);
        return &k->zone;
    }
    free(made);
    return NULL;
}
