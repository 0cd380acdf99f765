/* float and double: IEEE 754, ordered as Java's Float.compare and Double.compare, written as their
 * toString. */
#include <math.h>
#include <stdlib.h>

#include "types/family.h"
#include "types/real_digits.h"

static int validate(const struct cql_type *t, struct slice v, struct err *e) {
    size_t wire = (size_t)cqlt_type_info(t->id)->wire;
    if (LIKELY(v.n == wire) || v.n == 0) return 0;
    return err_invalid(e, "Expected %zu or 0 byte value for a %s (%zu)", wire, t->id == CQL_FLOAT ? "float" : "double",
                       v.n);
}

/* A value as an integer. The order of the integers is -inf, ..., -0.0, 0.0, ..., inf, NaN (all NaNs
 * are one). */
static uint64_t sortable(struct slice v) {
    if (v.n == 4) {
        uint32_t b = load_u32(v.p);
        if ((b & 0x7FFFFFFFu) > 0x7F800000u) b = 0x7FC00000u;
        return b & 0x80000000u ? ~b : b | 0x80000000u;
    }
    uint64_t b = load_u64(v.p), sign = (uint64_t)1 << 63;
    if ((b & ~sign) > 0x7FF0000000000000u) b = 0x7FF8000000000000u;
    return b & sign ? ~b : b | sign;
}

static int compare(const struct cql_type *t, struct slice a, struct slice b) {
    (void)t;
    if (a.n == 0 || b.n == 0) return (a.n > 0) - (b.n > 0);
    uint64_t x = sortable(a), y = sortable(b);
    return (x > y) - (x < y);
}

static bool is_word(struct slice text, const char *word) {
    if (text.n != strlen(word)) return false;
    for (size_t i = 0; i < text.n; i++)
        if ((text.p[i] | 0x20) != (word[i] | 0x20)) return false;
    return true;
}

/* Parses a number. Refuses texts that only the C library accepts, not Java: hexadecimal,
 * "nan(...)", spaces. */
static int read_number(struct slice text, bool single, double *out) {
    struct slice bare = text.n && (text.p[0] == '-' || text.p[0] == '+') ? slice_of(text.p + 1, text.n - 1) : text;
    bool negative = text.n && text.p[0] == '-';
    if (is_word(bare, "nan") || is_word(bare, "infinity")) {
        *out = is_word(bare, "nan") ? (double)NAN : negative ? -HUGE_VAL : HUGE_VAL;
        return 0;
    }
    for (size_t i = 0; i < bare.n; i++)
        if (!strchr("0123456789.eE+-", bare.p[i]) || bare.p[i] == 0) return -1;
    char small[64], *copy = text.n < sizeof small ? small : malloc(text.n + 1), *end;
    if (!copy || text.n == 0) return -1;
    memcpy(copy, text.p, text.n);
    copy[text.n] = 0;
    *out = single ? (double)strtof(copy, &end) : strtod(copy, &end);
    int rc = *end ? -1 : 0;
    if (copy != small) free(copy);
    return rc;
}

static int parse(const struct cql_type *t, struct slice text, struct cql_reading how, struct buf *out, struct err *e) {
    (void)how;
    double d;
    if (text.n == 0) return 0;
    bool single = t->id == CQL_FLOAT;
    if (read_number(text, single, &d) < 0)
        return err_invalid(e, "Unable to make %s from '%.*s'", single ? "float" : "double", CQLT_QUOTE(text));
    if (single) {
        float f = (float)d;
        uint32_t bits;
        memcpy(&bits, &f, sizeof bits);
        buf_u32(out, isnan(f) ? 0x7FC00000u : bits);
    } else {
        uint64_t bits;
        memcpy(&bits, &d, sizeof bits);
        buf_u64(out, isnan(d) ? 0x7FF8000000000000u : bits);
    }
    return 0;
}

static void text(const struct cql_type *t, struct slice v, struct buf *out) {
    if (v.n == 0) return;
    bool single = t->id == CQL_FLOAT;
    double d;
    if (single) {
        float f;
        uint32_t bits = load_u32(v.p);
        memcpy(&f, &bits, sizeof f);
        d = (double)f;
    } else {
        uint64_t bits = load_u64(v.p);
        memcpy(&d, &bits, sizeof d);
    }
    if (isnan(d) || isinf(d)) {
        buf_put_str(out, isnan(d) ? "NaN" : d < 0 ? "-Infinity" : "Infinity");
        return;
    }
    if (signbit(d)) buf_u8(out, '-');
    if (d == 0) {
        buf_put_str(out, "0.0");
        return;
    }
    struct real_digits r;
    cqlt_real_digits(fabs(d), single, &r);
    int n = r.n, whole = r.exponent + 1;
    while (n > 1 && r.digits[n - 1] == '0') n--;
    if (r.exponent < -3 || r.exponent >= 7) {
        buf_printf(out, "%c.%.*sE%d", r.digits[0], n > 1 ? n - 1 : 1, n > 1 ? r.digits + 1 : "0", r.exponent);
    } else if (r.exponent < 0) {
        buf_printf(out, "0.%.*s%.*s", -r.exponent - 1, "000", n, r.digits);
    } else {
        for (int i = 0; i < whole; i++) buf_u8(out, (uint8_t)(i < n ? r.digits[i] : '0'));
        buf_printf(out, ".%.*s", n > whole ? n - whole : 1, n > whole ? r.digits + whole : "0");
    }
}

static int key_encode(const struct cql_type *t, struct slice v, struct buf *out, bool *exact, struct err *e) {
    (void)t, (void)e;
    buf_u8(out, v.n > 0);
    if (v.n == 0) return 0;
    uint64_t bits = sortable(v);
    uint64_t nan = v.n == 4 ? 0xFFC00000u : 0xFFF8000000000000u;
    if (bits == nan && (v.p[0] != 0x7F || v.p[1] != (v.n == 4 ? 0xC0 : 0xF8))) *exact = false;
    for (size_t i = 2; bits == nan && i < v.n; i++)
        if (v.p[i]) *exact = false;
    if (v.n == 4)
        buf_u32(out, (uint32_t)bits);
    else
        buf_u64(out, bits);
    return 0;
}

static int key_decode(const struct cql_type *t, struct key_rd *key, struct buf *out) {
    uint8_t present = cqlt_key_u8(key);
    if (present > 1) return -1;
    if (!present) return 0;
    if (t->id == CQL_FLOAT) {
        uint32_t b = (uint32_t)cqlt_key_uint(key, 4);
        buf_u32(out, b & 0x80000000u ? b & 0x7FFFFFFFu : ~b);
    } else {
        uint64_t b = cqlt_key_uint(key, 8), sign = (uint64_t)1 << 63;
        buf_u64(out, b & sign ? b & ~sign : ~b);
    }
    return 0;
}

const struct cql_family cqlt_real = {.validate = validate,
                                     .compare = compare,
                                     .parse = parse,
                                     .text = text,
                                     .key_encode = key_encode,
                                     .key_decode = key_decode};
