#include "tools/tally/capacity/literal.h"

#include <stdio.h>
#include <stdlib.h>
#include <strings.h>
#include <time.h>

#include "tools/tally/capacity/chance.h"

/* ---- the specification of a column's values ---- */

static bool take_word(const char **at, const char *word) {
    size_t n = strlen(word);
    while (**at == ' ') (*at)++;
    if (strncmp(*at, word, n) || ((*at)[n] && (*at)[n] != ' ')) return false;
    *at += n;
    return true;
}

/* "5" or "5..9" */
static int take_range(const char **at, int64_t least, int64_t *low, int64_t *high, struct err *e) {
    char *end;
    *low = strtoll(*at, &end, 10);
    if (end == *at) return err_set(e, ERR_CONFIG, "a number is expected at '%s'", *at);
    *high = *low;
    if (!strncmp(end, "..", 2)) {
        const char *from = end + 2;
        *high = strtoll(from, &end, 10);
        if (end == from) return err_set(e, ERR_CONFIG, "a number is expected at '%s'", from);
    }
    *at = end;
    return *low < least || *high < *low ? err_set(e, ERR_CONFIG, "%lld..%lld is no range from %lld upward",
                                                  (long long)*low, (long long)*high, (long long)least)
                                        : 0;
}

static int take_choices(struct arena *a, const char *at, struct literal_spec *out, struct err *e) {
    uint32_t n = 1;
    for (const char *p = at; *p; p++) n += *p == '|';
    struct slice *choices = ARENA_ARRAY(a, n, struct slice);
    if (!choices) return err_nomem(e);
    for (uint32_t i = 0; i < n; i++) {
        while (*at == ' ') at++;
        size_t length = strcspn(at, "|"), used = length;
        while (used && at[used - 1] == ' ') used--;
        if (!used) return err_set(e, ERR_CONFIG, "one of: there is nothing between two |");
        choices[i] = arena_dup(a, slice_of(at, used));
        if (!choices[i].p) return err_nomem(e);
        at += length + (at[length] == '|');
    }
    out->n_choices = n;
    out->choices = choices;
    return 0;
}

int literal_spec_parse(struct arena *a, const char *text, struct literal_spec *out, struct err *e) {
    enum { SIZE_MAX_BYTES = 1 << 20, ELEMENTS_MAX = 10000 };
    const char *at = text;
    *out = (struct literal_spec){0};
    while (*at == ' ') at++;
    if (take_word(&at, "one") && take_word(&at, "of")) return take_choices(a, at, out, e);
    at = text;
    while (at += strspn(at, " "), *at) {
        int rc;
        if (take_word(&at, "size")) rc = take_range(&at, 0, &out->size_low, &out->size_high, e), out->has_size = true;
        else if (take_word(&at, "elements"))
            rc = take_range(&at, 0, &out->elements_low, &out->elements_high, e), out->has_elements = true;
        else if (take_word(&at, "range"))
            rc = take_range(&at, INT64_MIN, &out->range_low, &out->range_high, e), out->has_range = true;
        else return err_set(e, ERR_CONFIG, "'%s' is none of size A..B, elements A..B, range A..B, one of X | Y", at);
        if (rc) return -1;
    }
    if (at == text) return err_set(e, ERR_CONFIG, "it says nothing");
    if (out->size_high > SIZE_MAX_BYTES)
        return err_set(e, ERR_CONFIG, "size is at most %d bytes, as a row is", SIZE_MAX_BYTES);
    if (out->elements_high > ELEMENTS_MAX) return err_set(e, ERR_CONFIG, "elements are at most %d", ELEMENTS_MAX);
    return 0;
}

/* ---- made up ---- */

static const struct literal_spec nothing;

/* A value in [low, high]: uniform by the hash of n, or with ORDERED ascending with n. */
static int64_t pick(int64_t low, int64_t high, enum literal_kind kind, uint64_t n) {
    uint64_t span = (uint64_t)high - (uint64_t)low + 1;
    uint64_t k = kind == LITERAL_ORDERED ? n : chance_of(n);
    return (int64_t)((uint64_t)low + (span ? k % span : k));
}

static void put_int(struct buf *out, const struct literal_spec *s, int64_t most, enum literal_kind kind, uint64_t n) {
    enum { UP_TO = 999999 };
    int64_t low = s->has_range ? s->range_low : 0, high = s->has_range                              ? s->range_high
                                                          : kind == LITERAL_ORDERED || most < UP_TO ? most
                                                                                                    : UP_TO;
    buf_printf(out, "%lld", (long long)pick(low, high, kind, n));
}

static void put_text(struct buf *out, const struct literal_spec *s, bool is_blob, enum literal_kind kind, uint64_t n) {
    char number[32];
    int64_t size = pick(s->size_low, s->size_high, LITERAL_RANDOM, n);
    int digits = snprintf(number, sizeof(number), "%llu",
                          (unsigned long long)(kind == LITERAL_ORDERED ? n : chance_of(n) % 10));
    if (digits > size) size = kind == LITERAL_ORDERED ? digits : size;
    buf_put_str(out, is_blob ? "0x" : "'");
    for (int64_t i = 0; i < size; i++) {
        char c = i >= size - digits ? number[i - (size - digits)] : '0';
        if (is_blob) buf_printf(out, "%02x", (unsigned)(uint8_t)c);
        else buf_u8(out, (uint8_t)c);
    }
    if (!is_blob) buf_put_str(out, "'");
}

static void put_uuid(struct buf *out, bool is_time, uint64_t n) {
    uint64_t a = chance_of(n), b = chance_of(~n);
    buf_printf(out, "%08x-%04x-%d%03x-a%03x-%012llx", (unsigned)a, (unsigned)(a >> 32 & 0xffff), is_time ? 1 : 4,
               (unsigned)(a >> 48 & 0xfff), (unsigned)(b >> 48 & 0xfff), (unsigned long long)(b & 0xffffffffffff));
}

static void put_date(struct buf *out, uint64_t n) {
    enum { DAY_S = 86400, DAYS = 20000 };
    time_t at = (time_t)(n % DAYS) * DAY_S;
    struct tm tm;
    char text[16];
    gmtime_r(&at, &tm);
    strftime(text, sizeof(text), "%Y-%m-%d", &tm);
    buf_printf(out, "'%s'", text);
}

static bool has_text(const struct cql_type *t) {
    bool has = t->id == CQL_TEXT || t->id == CQL_ASCII || t->id == CQL_BLOB;
    for (uint32_t i = 0; !has && i < t->n_args; i++) has = has_text(t->args[i]);
    return has;
}

static int put_elements(struct buf *out, const struct cql_type *t, const struct literal_spec *s, enum literal_kind kind,
                        uint64_t n, const char *column, struct err *e) {
    if (t->id != CQL_VECTOR && !s->has_elements)
        return err_set(e, ERR_CONFIG,
                       "how many elements has %s? Say so under values (%s: elements 1..5%s), or give sample rows",
                       column, column, has_text(t) && !s->has_size ? " size 20..400" : "");
    int64_t count = t->id == CQL_VECTOR ? (int64_t)t->dimension
                                        : pick(s->elements_low, s->elements_high, LITERAL_RANDOM, n);
    const char *ends = t->id == CQL_LIST || t->id == CQL_VECTOR ? "[]" : "{}";
    int rc = 0;
    buf_u8(out, (uint8_t)ends[0]);
    for (int64_t i = 0; !rc && i < count; i++) {
        /* the elements of a set and the keys of a map must differ */
        enum literal_kind of_key = t->id == CQL_LIST || t->id == CQL_VECTOR ? kind : LITERAL_ORDERED;
        if (i) buf_put_str(out, ", ");
        rc = literal_make(out, t->args[0], s, of_key, (n % 100000) * 16 + (uint64_t)i, column, e);
        if (!rc && t->id == CQL_MAP) {
            buf_put_str(out, ": ");
            rc = literal_make(out, t->args[1], s, LITERAL_RANDOM, n + (uint64_t)i, column, e);
        }
    }
    buf_u8(out, (uint8_t)ends[1]);
    return rc;
}

static int put_fields(struct buf *out, const struct cql_type *t, const struct literal_spec *s, enum literal_kind kind,
                      uint64_t n, const char *column, struct err *e) {
    int rc = 0;
    buf_u8(out, t->id == CQL_UDT ? '{' : '(');
    for (uint32_t i = 0; !rc && i < t->n_args; i++) {
        if (i) buf_put_str(out, ", ");
        if (t->id == CQL_UDT) buf_printf(out, "\"%s\": ", t->field_names[i]);
        rc = literal_make(out, t->args[i], s, kind, n, column, e);
    }
    buf_u8(out, t->id == CQL_UDT ? '}' : ')');
    return rc;
}

int literal_make(struct buf *out, const struct cql_type *t, const struct literal_spec *spec, enum literal_kind kind,
                 uint64_t n, const char *column, struct err *e) {
    const struct literal_spec *s = spec ? spec : &nothing;
    uint64_t some = kind == LITERAL_ORDERED ? n : chance_of(n) % 1000000;
    if (s->n_choices) return buf_put_slice(out, s->choices[pick(0, s->n_choices - 1, kind, n)]), 0;
    switch (t->id) {
    case CQL_TINYINT: put_int(out, s, INT8_MAX, kind, n); return 0;
    case CQL_SMALLINT: put_int(out, s, INT16_MAX, kind, n); return 0;
    case CQL_INT: put_int(out, s, INT32_MAX, kind, n); return 0;
    case CQL_BIGINT:
    case CQL_COUNTER:
    case CQL_VARINT: put_int(out, s, INT64_MAX, kind, n); return 0;
    case CQL_FLOAT:
    case CQL_DOUBLE:
    case CQL_DECIMAL:
        put_int(out, s, INT32_MAX, kind, n);
        buf_put_str(out, ".25");
        return 0;
    case CQL_BOOLEAN: buf_put_str(out, some % 2 ? "true" : "false"); return 0;
    case CQL_ASCII:
    case CQL_TEXT:
    case CQL_BLOB:
        if (!s->has_size)
            return err_set(e, ERR_CONFIG,
                           "how long is %s (%s)? Say so under values (%s: size 20..400), or give sample rows", column,
                           t->id == CQL_BLOB ? "blob" : "text", column);
        put_text(out, s, t->id == CQL_BLOB, kind, n);
        return 0;
    case CQL_TIMESTAMP: buf_printf(out, "%llu", 1700000000000ull + (unsigned long long)some * 1000); return 0;
    case CQL_DATE: put_date(out, some); return 0;
    case CQL_TIME:
        buf_printf(out, "'%02u:%02u:%02u'", (unsigned)(some / 3600 % 24), (unsigned)(some / 60 % 60),
                   (unsigned)(some % 60));
        return 0;
    case CQL_INET:
        buf_printf(out, "'10.%u.%u.%u'", (unsigned)(some >> 16 & 255), (unsigned)(some >> 8 & 255),
                   (unsigned)(some & 255));
        return 0;
    case CQL_DURATION: buf_printf(out, "%llus", (unsigned long long)some + 1); return 0;
    case CQL_LIST:
    case CQL_SET:
    case CQL_MAP:
    case CQL_VECTOR: return put_elements(out, t, s, kind, n, column, e);
    case CQL_UDT:
    case CQL_TUPLE: return put_fields(out, t, s, kind, n, column, e);
    case CQL_LEXICAL_UUID:
    case CQL_UUID: put_uuid(out, false, n); return 0;
    case CQL_LEGACY_TIMEUUID:
    case CQL_TIMEUUID: put_uuid(out, true, n); return 0;
    case CQL_EMPTY:
    case CQL_PARTITION_ORDER:
    case CQL_COMPOSITE:
    case CQL_DYNAMIC_COMPOSITE:
    case CQL_TYPES: break;
    }
    return err_set(e, ERR_CONFIG, "values of %s cannot be made up: give sample rows", column);
}

/* ---- read ---- */

void literal_of_text(struct buf *out, const struct cql_type *t, struct slice text) {
    bool quoted = t->id == CQL_TEXT || t->id == CQL_ASCII || t->id == CQL_INET || t->id == CQL_TIMESTAMP ||
                  t->id == CQL_DATE || t->id == CQL_TIME;
    if (!quoted) {
        buf_put_slice(out, text);
        return;
    }
    buf_u8(out, '\'');
    for (size_t i = 0; i < text.n; i++) {
        if (text.p[i] == '\'') buf_u8(out, '\'');
        buf_u8(out, text.p[i]);
    }
    buf_u8(out, '\'');
}

/* ---- JSON (RFC 8259), guided by the type ---- */

enum { JSON_DEPTH = CQL_TYPE_DEPTH_MAX };

uint8_t json_peek(struct rd *r) {
    while (rd_left(r) && (*r->p == ' ' || *r->p == '\t' || *r->p == '\n' || *r->p == '\r')) r->p++;
    return rd_left(r) ? *r->p : 0;
}

static bool take_sign(struct rd *r, uint8_t sign) {
    if (json_peek(r) != sign) return false;
    r->p++;
    return true;
}

static void put_utf8(struct buf *out, uint32_t c) {
    if (c < 0x80) buf_u8(out, (uint8_t)c);
    else if (c < 0x800) buf_u8(out, (uint8_t)(0xc0 | c >> 6)), buf_u8(out, (uint8_t)(0x80 | (c & 63)));
    else if (c < 0x10000)
        buf_u8(out, (uint8_t)(0xe0 | c >> 12)), buf_u8(out, (uint8_t)(0x80 | (c >> 6 & 63))),
            buf_u8(out, (uint8_t)(0x80 | (c & 63)));
    else
        buf_u8(out, (uint8_t)(0xf0 | c >> 18)), buf_u8(out, (uint8_t)(0x80 | (c >> 12 & 63))),
            buf_u8(out, (uint8_t)(0x80 | (c >> 6 & 63))), buf_u8(out, (uint8_t)(0x80 | (c & 63)));
}

/* Four hex digits; -1: they are not there. */
static int32_t hex4(struct rd *r) {
    int32_t c = 0;
    for (int i = 0; i < 4; i++) {
        uint8_t x = rd_u8(r);
        int d = x >= '0' && x <= '9' ? x - '0' : (x | 32) >= 'a' && (x | 32) <= 'f' ? (x | 32) - 'a' + 10 : -1;
        if (d < 0) return -1;
        c = c << 4 | d;
    }
    return c;
}

/* Decodes an escape; the backslash is already consumed. */
static int put_escape(struct buf *out, struct rd *r) {
    static const char from[] = "bfnrt\"\\/", to[] = "\b\f\n\r\t\"\\/";
    uint8_t c = rd_u8(r);
    const char *known = c ? strchr(from, c) : NULL;
    if (known) return buf_u8(out, (uint8_t)to[known - from]), 0;
    int32_t unit = c == 'u' ? hex4(r) : -1, low;
    if (unit < 0) return -1;
    if (unit >= 0xd800 && unit < 0xdc00 && rd_left(r) >= 6 && r->p[0] == '\\' && r->p[1] == 'u') {
        r->p += 2;
        low = hex4(r);
        if (low < 0xdc00 || low > 0xdfff) return -1;
        unit = 0x10000 + ((unit - 0xd800) << 10) + (low - 0xdc00);
    }
    put_utf8(out, (uint32_t)unit);
    return 0;
}

int json_string(struct arena *a, struct rd *r, struct slice *out, struct err *e) {
    struct buf text;
    if (!take_sign(r, '"')) return err_set(e, ERR_CONFIG, "a string is expected");
    buf_init(&text, 0);
    int rc = 0;
    while (!rc && rd_left(r) && *r->p != '"') {
        uint8_t c = rd_u8(r);
        if (c == '\\') rc = put_escape(&text, r);
        else if (c < ' ') rc = -1;
        else buf_u8(&text, c);
    }
    if (rc || !rd_left(r)) rc = err_set(e, ERR_CONFIG, "a string has no end, or an escape that JSON does not know");
    else r->p++;
    if (!rc) {
        *out = arena_dup(a, buf_slice(&text));
        if (!out->p) rc = err_nomem(e);
    }
    buf_fini(&text);
    return rc;
}

static int put_json(struct buf *out, struct arena *a, const struct cql_type *t, struct rd *r, bool *null,
                    uint32_t depth, struct err *e);

static int put_inner(struct buf *out, struct arena *a, const struct cql_type *t, struct rd *r, uint32_t depth,
                     struct err *e) {
    bool null = false;
    if (put_json(out, a, t, r, &null, depth, e)) return -1;
    if (null) buf_put_str(out, "null");
    return 0;
}

static int put_json_array(struct buf *out, struct arena *a, const struct cql_type *t, struct rd *r, uint32_t depth,
                          struct err *e) {
    bool tuple = t->id == CQL_TUPLE, set = t->id == CQL_SET;
    if (t->id != CQL_LIST && !set && !tuple && t->id != CQL_VECTOR)
        return err_set(e, ERR_CONFIG, "an array is no value of this type");
    r->p++;
    buf_u8(out, tuple ? '(' : set ? '{' : '[');
    for (uint32_t i = 0; !take_sign(r, ']'); i++) {
        if (i && !take_sign(r, ',')) return err_set(e, ERR_CONFIG, "an array has no end");
        if (i) buf_put_str(out, ", ");
        if (tuple && i >= t->n_args) return err_set(e, ERR_CONFIG, "the tuple has %u fields", t->n_args);
        if (put_inner(out, a, t->args[tuple ? i : 0], r, depth, e)) return -1;
    }
    buf_u8(out, tuple ? ')' : set ? '}' : ']');
    return 0;
}

static int put_json_object(struct buf *out, struct arena *a, const struct cql_type *t, struct rd *r, uint32_t depth,
                           struct err *e) {
    struct slice key;
    if (t->id != CQL_MAP && t->id != CQL_UDT) return err_set(e, ERR_CONFIG, "an object is no value of this type");
    r->p++;
    buf_u8(out, '{');
    for (uint32_t i = 0; !take_sign(r, '}'); i++) {
        uint32_t field = 0;
        if (i && !take_sign(r, ',')) return err_set(e, ERR_CONFIG, "an object has no end");
        if (i) buf_put_str(out, ", ");
        if (json_peek(r) != '"' || json_string(a, r, &key, e) || !take_sign(r, ':'))
            return err_set(e, ERR_CONFIG, "an object is pairs of a name and a value");
        if (t->id == CQL_MAP) literal_of_text(out, t->args[0], key);
        else if ((field = cql_type_field(t, key)) == t->n_args)
            return err_set(e, ERR_CONFIG, "the type has no field %.*s", SLICE_FMT(key));
        else buf_printf(out, "\"%.*s\"", SLICE_FMT(key));
        buf_put_str(out, ": ");
        if (put_inner(out, a, t->args[t->id == CQL_MAP ? 1 : field], r, depth, e)) return -1;
    }
    buf_u8(out, '}');
    return 0;
}

static int put_json(struct buf *out, struct arena *a, const struct cql_type *t, struct rd *r, bool *null,
                    uint32_t depth, struct err *e) {
    struct slice text;
    uint8_t c = json_peek(r);
    if (depth > JSON_DEPTH) return err_set(e, ERR_CONFIG, "values are nested too deep");
    if (c == '[') return put_json_array(out, a, t, r, depth + 1, e);
    if (c == '{') return put_json_object(out, a, t, r, depth + 1, e);
    if (c == '"') {
        if (json_string(a, r, &text, e)) return -1;
        literal_of_text(out, t, text);
        return 0;
    }
    const uint8_t *from = r->p;
    while (rd_left(r) &&
           ((*r->p | 32) >= 'a' ? (*r->p | 32) <= 'z' : (*r->p >= '0' && *r->p <= '9') || memchr("+-.", *r->p, 3)))
        r->p++;
    text = slice_of(from, (size_t)(r->p - from));
    if (slice_is(text, "null")) return *null = true, 0;
    if (!text.n) return err_set(e, ERR_CONFIG, "a value is expected");
    literal_of_text(out, t, text);
    return 0;
}

int literal_of_json(struct buf *out, const struct cql_type *t, struct rd *r, bool *null, struct err *e) {
    struct arena a;
    arena_init(&a, 4096, 16 << 20);
    *null = false;
    int rc = put_json(out, &a, t, r, null, 0, e);
    arena_fini(&a);
    return rc;
}
