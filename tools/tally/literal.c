#include "tools/tally/literal.h"

#include <stdio.h>
#include <stdlib.h>

#include "tools/tally/chance.h"

/* ---- the specification of a column's values ---- */

/* "size 5" or "size 5..9". Returns 0 if it is another word. */
static int take_range(const char **at, const char *word, int64_t least, bool *has, int64_t *low, int64_t *high,
                      struct err *e) {
    size_t n = strlen(word);
    char *end;
    if (strncmp(*at, word, n) || ((*at)[n] && (*at)[n] != ' ')) return 0;
    *has = true;
    *at += n;
    *low = strtoll(*at, &end, 10);
    if (end == *at) return err_set(e, ERR_CONFIG, "a number is expected at '%s'", *at);
    *high = *low;
    if (!strncmp(end, "..", 2)) {
        const char *from = end + 2;
        *high = strtoll(from, &end, 10);
        if (end == from) return err_set(e, ERR_CONFIG, "a number is expected at '%s'", from);
    }
    *at = end + strspn(end, " ");
    return *low < least || *high < *low ? err_set(e, ERR_CONFIG, "%lld..%lld is no range from %lld upward",
                                                  (long long)*low, (long long)*high, (long long)least)
                                        : 1;
}

static int take_choices(struct arena *a, struct slice text, struct literal_spec *out, struct err *e) {
    uint32_t most = 1;
    for (size_t i = 0; i < text.n; i++) most += text.p[i] == '|';
    struct slice *choices = ARENA_ARRAY(a, most, struct slice);
    out->choices = choices;
    for (; choices && out->n_choices < most; out->n_choices++) {
        struct slice one = slice_cut(&text, '|');
        while (one.n && *one.p == ' ') one = slice_of(one.p + 1, one.n - 1);
        while (one.n && one.p[one.n - 1] == ' ') one.n--;
        if (!one.n) return err_set(e, ERR_CONFIG, "one of: there is nothing between two |");
        choices[out->n_choices] = arena_dup(a, one);
        if (!choices[out->n_choices].p) return err_nomem(e);
    }
    return choices ? 0 : err_nomem(e);
}

int literal_spec_parse(struct arena *a, const char *text, struct literal_spec *out, struct err *e) {
    enum { SIZE_MAX_BYTES = 1 << 20, ELEMENTS_MAX = 10000 };
    char one[8], of[8];
    int words = 0;
    *out = (struct literal_spec){0};
    if (sscanf(text, "%7s %7s%n", one, of, &words) == 2 && !strcmp(one, "one") && !strcmp(of, "of"))
        return take_choices(a, slice_str(text + words), out, e);
    for (const char *at = text + strspn(text, " "); *at;) {
        int rc = take_range(&at, "size", 0, &out->has_size, &out->size_low, &out->size_high, e);
        if (!rc) rc = take_range(&at, "elements", 0, &out->has_elements, &out->elements_low, &out->elements_high, e);
        if (!rc) rc = take_range(&at, "range", INT64_MIN, &out->has_range, &out->range_low, &out->range_high, e);
        if (!rc) rc = err_set(e, ERR_CONFIG, "'%s' is none of size A..B, elements A..B, range A..B, one of X | Y", at);
        if (rc < 0) return -1;
    }
    if (!out->has_size && !out->has_elements && !out->has_range) return err_set(e, ERR_CONFIG, "it says nothing");
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
    int64_t low = s->has_range ? s->range_low : 0;
    int64_t high = kind == LITERAL_ORDERED || most < UP_TO ? most : UP_TO;
    if (s->has_range) high = s->range_high;
    buf_printf(out, "%lld", (long long)pick(low, high, kind, n));
}

/* Ends with a number that makes ordered texts differ; zeros precede it. */
static void put_text(struct buf *out, const struct literal_spec *s, bool is_blob, enum literal_kind kind, uint64_t n) {
    char number[32];
    bool ordered = kind == LITERAL_ORDERED;
    int64_t size = pick(s->size_low, s->size_high, LITERAL_RANDOM, n);
    int64_t digits = snprintf(number, sizeof(number), "%llu", (unsigned long long)(ordered ? n : chance_of(n) % 10));
    if (ordered && digits > size) size = digits;
    buf_put_str(out, is_blob ? "0x" : "'");
    for (int64_t i = 0; i < size; i++) {
        char c = i >= size - digits ? number[i - (size - digits)] : '0';
        if (is_blob) buf_printf(out, "%02x", (unsigned)(uint8_t)c);
        else buf_u8(out, (uint8_t)c);
    }
    if (!is_blob) buf_put_str(out, "'");
}

static bool has_text(const struct cql_type *t) {
    bool has = t->id == CQL_TEXT || t->id == CQL_ASCII || t->id == CQL_BLOB;
    for (uint32_t i = 0; !has && i < t->n_args; i++) has = has_text(t->args[i]);
    return has;
}

/* A collection, vector, tuple or UDT. */
static int put_parts(struct buf *out, const struct cql_type *t, const struct literal_spec *s, enum literal_kind kind,
                     uint64_t n, const char *column, struct err *e) {
    bool fields = t->id == CQL_TUPLE || t->id == CQL_UDT, list = t->id == CQL_LIST || t->id == CQL_VECTOR;
    int64_t count = fields ? t->n_args : t->id == CQL_VECTOR ? t->dimension : 0;
    if (!fields && t->id != CQL_VECTOR) {
        if (!s->has_elements)
            return err_set(e, ERR_CONFIG,
                           "how many elements has %s? Say so under values (%s: elements 1..5%s), or give sample rows",
                           column, column, has_text(t) && !s->has_size ? " size 20..400" : "");
        count = pick(s->elements_low, s->elements_high, LITERAL_RANDOM, n);
    }
    int rc = 0;
    buf_u8(out, t->id == CQL_TUPLE ? '(' : list ? '[' : '{');
    for (int64_t i = 0; !rc && i < count; i++) {
        uint64_t number = fields ? n : (n % 100000) * 16 + (uint64_t)i;
        if (i) buf_put_str(out, ", ");
        if (t->id == CQL_UDT) buf_printf(out, "\"%s\": ", t->field_names[i]);
        /* the elements of a set and the keys of a map must differ */
        rc = literal_make(out, t->args[fields ? i : 0], s, fields || list ? kind : LITERAL_ORDERED, number, column, e);
        if (rc || t->id != CQL_MAP) continue;
        buf_put_str(out, ": ");
        rc = literal_make(out, t->args[1], s, LITERAL_RANDOM, n + (uint64_t)i, column, e);
    }
    buf_u8(out, t->id == CQL_TUPLE ? ')' : list ? ']' : '}');
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
    case CQL_DATE: {
        uint8_t days[4];
        store_u32(days, 0x80000000u + (uint32_t)(some % 20000));
        cql_value_print(t, slice_of(days, 4), out);
        return 0;
    }
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
    case CQL_VECTOR:
    case CQL_UDT:
    case CQL_TUPLE: return put_parts(out, t, s, kind, n, column, e);
    case CQL_LEXICAL_UUID:
    case CQL_UUID:
    case CQL_LEGACY_TIMEUUID:
    case CQL_TIMEUUID: {
        uint64_t a = chance_of(n), b = chance_of(~n);
        bool is_time = t->id == CQL_TIMEUUID || t->id == CQL_LEGACY_TIMEUUID;
        buf_printf(out, "%08x-%04x-%d%03x-a%03x-%012llx", (unsigned)a, (unsigned)(a >> 32 & 0xffff), is_time ? 1 : 4,
                   (unsigned)(a >> 48 & 0xfff), (unsigned)(b >> 48 & 0xfff), (unsigned long long)b & 0xffffffffffff);
        return 0;
    }
    case CQL_EMPTY:
    case CQL_PARTITION_ORDER:
    case CQL_COMPOSITE:
    case CQL_DYNAMIC_COMPOSITE:
    case CQL_TYPES: break;
    }
    return err_set(e, ERR_CONFIG, "values of %s cannot be made up: give sample rows", column);
}
