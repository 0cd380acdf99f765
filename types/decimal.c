/* varint and decimal: integers of any length, and such an integer with a decimal scale. */
#include "types/decimal.h"

#include <inttypes.h>
#include <stdlib.h>

#include "types/family.h"

/* The most zeros that the plain form adds to the digits. Without a bound the scale alone could ask
 * for two thousand million. */
enum { PLAIN_ZEROS_MAX = 1 << 16 };

void cql_varint_read(struct slice v, mpz_t out) {
    mpz_import(out, v.n, 1, 1, 1, 0, v.p);
    if (v.n == 0 || !(v.p[0] & 0x80)) return;
    mpz_t span;
    mpz_init(span);
    mpz_setbit(span, v.n * 8);
    mpz_sub(out, out, span);
    mpz_clear(span);
}

void cql_varint_write(const mpz_t v, struct buf *out) {
    mpz_t t;
    bool negative = mpz_sgn(v) < 0;
    mpz_init(t);
    if (negative)
        mpz_com(t, v); /* -v - 1: its bits are those of v inverted */
    else
        mpz_set(t, v);
    size_t bits = mpz_sgn(t) ? mpz_sizeinbase(t, 2) : 0, n = bits / 8 + 1, used = (bits + 7) / 8;
    uint8_t *p = buf_reserve(out, n);
    if (p) {
        memset(p, 0, n);
        if (used) mpz_export(p + n - used, NULL, 1, 1, 1, 0, t);
        for (size_t i = 0; negative && i < n; i++) p[i] ^= 0xFF;
        buf_advance(out, n);
    }
    mpz_clear(t);
}

void cql_decimal_read(struct slice v, mpz_t unscaled, int32_t *scale) {
    *scale = (int32_t)load_u32(v.p);
    cql_varint_read(slice_of(v.p + 4, v.n - 4), unscaled);
}

void cql_decimal_write(const mpz_t unscaled, int32_t scale, struct buf *out) {
    buf_u32(out, (uint32_t)scale);
    cql_varint_write(unscaled, out);
}

static int validate(const struct cql_type *t, struct slice v, struct err *e) {
    if (t->id == CQL_VARINT || v.n == 0 || v.n >= 4) return 0;
    return err_invalid(e, "Expected 0 or at least 4 bytes (%zu)", v.n);
}

/* ---- order ---- */

struct slice cql_varint_shortest(struct slice v) {
    size_t i = 0;
    while (i + 1 < v.n && ((v.p[i] == 0 && !(v.p[i + 1] & 0x80)) || (v.p[i] == 0xFF && (v.p[i + 1] & 0x80)))) i++;
    return slice_of(v.p + i, v.n - i);
}

static int compare_varint(struct slice a, struct slice b) {
    static const uint8_t zero;
    if (!a.n) a = slice_of(&zero, 1); /* a decimal without bytes after its scale */
    if (!b.n) b = slice_of(&zero, 1);
    a = cql_varint_shortest(a);
    b = cql_varint_shortest(b);
    bool x = a.n && a.p[0] & 0x80, y = b.n && b.p[0] & 0x80;
    if (x != y) return x ? -1 : 1;
    if (a.n != b.n) return (a.n > b.n) == !x ? 1 : -1;
    return slice_cmp(a, b);
}

/* A decimal as sign * 0.digits * 10^exponent, digits without zeros at either end; zero has none. */
struct digits {
    int sign;
    int64_t exponent;
    char *text; /* malloc'ed; NULL for zero, or when there is no memory */
    size_t n;
};

static struct digits digits_of(struct slice v) {
    struct digits d = {0};
    int32_t scale;
    mpz_t unscaled;
    mpz_init(unscaled);
    cql_decimal_read(v, unscaled, &scale);
    d.sign = mpz_sgn(unscaled);
    if (d.sign) {
        mpz_abs(unscaled, unscaled);
        d.text = malloc(mpz_sizeinbase(unscaled, 10) + 2);
        if (d.text) {
            mpz_get_str(d.text, 10, unscaled);
            d.n = strlen(d.text);
            d.exponent = (int64_t)d.n - scale;
            while (d.n > 1 && d.text[d.n - 1] == '0') d.n--;
        }
    }
    mpz_clear(unscaled);
    return d;
}

static int compare(const struct cql_type *t, struct slice a, struct slice b) {
    if (a.n == 0 || b.n == 0) return (a.n > 0) - (b.n > 0);
    if (t->id == CQL_VARINT) return compare_varint(a, b);
    if (memcmp(a.p, b.p, 4) == 0) return compare_varint(slice_of(a.p + 4, a.n - 4), slice_of(b.p + 4, b.n - 4));
    struct digits p = digits_of(a), q = digits_of(b);
    int c = (p.sign > q.sign) - (p.sign < q.sign);
    if (!c && p.sign) c = p.sign * ((p.exponent > q.exponent) - (p.exponent < q.exponent));
    if (!c && p.sign) c = p.sign * slice_cmp(slice_of(p.text, p.n), slice_of(q.text, q.n));
    free(p.text);
    free(q.text);
    return c;
}

/* ---- text ---- */

/* Copies the digits of a varint, [+-]digits, or of a decimal, [+-]digits[.digits][e[+-]digits], without the
 * point. Returns -1 if the text is no such number. */
static int split_number(struct slice text, bool varint, char *copy, int64_t *scale) {
    size_t i = text.p[0] == '-' || text.p[0] == '+', n = 0;
    bool point = false;
    *scale = 0;
    for (; i < text.n && (varint || (text.p[i] | 32) != 'e'); i++) {
        if (text.p[i] == '.' && !point && !varint) {
            point = true;
        } else if (text.p[i] < '0' || text.p[i] > '9') {
            return -1;
        } else {
            copy[n++] = (char)text.p[i];
            *scale += point;
        }
    }
    copy[n] = 0;
    if (n == 0) return -1;
    if (i < text.n) {
        int64_t exponent;
        if (text.n - i > 12 || cqlt_parse_int64(slice_of(text.p + i + 1, text.n - i - 1), &exponent) < 0) return -1;
        *scale -= exponent;
    }
    return *scale > INT32_MAX || *scale < INT32_MIN ? -1 : 0;
}

static int parse(const struct cql_type *t, struct slice text, struct cql_reading how, struct buf *out, struct err *e) {
    (void)how;
    if (text.n == 0) return 0;
    bool varint = t->id == CQL_VARINT;
    char *copy = malloc(text.n + 1);
    int64_t scale;
    if (!copy) return err_nomem(e);
    if (split_number(text, varint, copy, &scale) < 0) {
        free(copy);
        return err_invalid(e, "unable to make %s from '%.*s'", varint ? "int" : "BigDecimal", CQLT_QUOTE(text));
    }
    mpz_t v;
    mpz_init_set_str(v, copy, 10);
    free(copy);
    if (text.p[0] == '-') mpz_neg(v, v);
    if (varint) cql_varint_write(v, out);
    else cql_decimal_write(v, (int32_t)scale, out);
    mpz_clear(v);
    return 0;
}

static void put_zeros(struct buf *out, int64_t n) {
    for (; n > 0 && !buf_failed(out); n--) buf_u8(out, '0');
}

void cql_decimal_text(const mpz_t unscaled, int32_t scale, bool plain, struct buf *out) {
    char *text = malloc(mpz_sizeinbase(unscaled, 10) + 2);
    if (!text) {
        out->failed = true;
        return;
    }
    mpz_get_str(text, 10, unscaled);
    char *digits = text + (text[0] == '-');
    int64_t n = (int64_t)strlen(digits), exponent = n - 1 - scale;
    if (digits != text) buf_u8(out, '-');
    bool fits = scale >= 0 && exponent >= -6;
    if (fits || (plain && (scale < 0 ? -(int64_t)scale : scale - n) <= PLAIN_ZEROS_MAX)) {
        if (scale <= 0) {
            buf_put(out, digits, (size_t)n);
            if (digits[0] != '0') put_zeros(out, -(int64_t)scale);
        } else if (n > scale) {
            buf_put(out, digits, (size_t)(n - scale));
            buf_u8(out, '.');
            buf_put(out, digits + n - scale, (size_t)scale);
        } else {
            buf_put_str(out, "0.");
            put_zeros(out, scale - n);
            buf_put(out, digits, (size_t)n);
        }
    } else {
        buf_u8(out, (uint8_t)digits[0]);
        if (n > 1) buf_u8(out, '.');
        buf_put(out, digits + 1, (size_t)(n - 1));
        if (exponent) buf_printf(out, "E%+" PRId64, exponent);
    }
    free(text);
}

static void text(const struct cql_type *t, struct slice v, struct buf *out) {
    if (v.n == 0) return;
    mpz_t n;
    int32_t scale = 0;
    mpz_init(n);
    if (t->id == CQL_VARINT)
        cql_varint_read(v, n);
    else
        cql_decimal_read(v, n, &scale);
    cql_decimal_text(n, scale, true, out);
    mpz_clear(n);
}

/* ---- key forms ----
 *
 * varint: 0x00 is empty. A positive number is 0x80 + the length of its magnitude (0xFE and 4 bytes
 * of length from 126 on) and the magnitude. A negative number is the form of -n, inverted.
 *
 * decimal: 0x00 is empty, 0x02 zero. 0x03 is positive: the exponent (8 bytes, sign flipped), then
 * pairs of digits as 1 to 100, then 0. 0x01 is negative: the same inverted.
 */

enum { SHORT_MAX = 125, DECIMAL_NEGATIVE = 1, DECIMAL_ZERO, DECIMAL_POSITIVE };

static void encode_varint(struct slice v, struct buf *out, bool *exact) {
    if (v.n == 0) {
        buf_u8(out, 0);
        return;
    }
    if (cql_varint_shortest(v).n != v.n) *exact = false;
    mpz_t n;
    mpz_init(n);
    cql_varint_read(v, n);
    bool negative = mpz_sgn(n) < 0;
    mpz_abs(n, n);
    size_t bytes = mpz_sgn(n) ? (mpz_sizeinbase(n, 2) + 7) / 8 : 0, from = out->n;
    if (bytes <= SHORT_MAX) {
        buf_u8(out, (uint8_t)(0x80 + bytes));
    } else {
        buf_u8(out, 0xFE);
        buf_u32(out, (uint32_t)bytes);
    }
    uint8_t *p = buf_reserve(out, bytes + 1);
    if (p && bytes) mpz_export(p, NULL, 1, 1, 1, 0, n);
    if (p) buf_advance(out, bytes);
    for (size_t i = from; negative && p && i < out->n; i++) out->p[i] ^= 0xFF;
    mpz_clear(n);
}

static int decode_varint(struct key_rd *key, struct buf *out) {
    uint8_t head = cqlt_key_u8(key);
    if (head == 0 || key->rd->bad) return key->rd->bad ? -1 : 0;
    bool negative = head < 0x80;
    struct key_rd k = {.rd = key->rd, .flip = negative ? key->flip ^ 0xFF : key->flip};
    if (negative) head ^= 0xFF;
    size_t bytes = head == 0xFE ? cqlt_key_uint(&k, 4) : (size_t)head - 0x80;
    if (head == 0xFF || bytes > rd_left(key->rd)) return -1;
    mpz_t n;
    mpz_init(n);
    struct slice raw = rd_bytes(key->rd, bytes);
    uint8_t *copy = malloc(bytes + 1);
    if (copy) {
        for (size_t i = 0; i < bytes; i++) copy[i] = raw.p[i] ^ k.flip;
        mpz_import(n, bytes, 1, 1, 1, 0, copy);
        if (negative) mpz_neg(n, n);
        cql_varint_write(n, out);
        free(copy);
    }
    mpz_clear(n);
    return copy ? 0 : -1;
}

static void encode_decimal(struct slice v, struct buf *out) {
    struct digits d = digits_of(v);
    buf_u8(out, (uint8_t)(DECIMAL_ZERO + d.sign));
    if (d.sign) {
        size_t from = out->n;
        buf_u64(out, (uint64_t)d.exponent ^ (uint64_t)1 << 63);
        for (size_t i = 0; d.text && i < d.n; i += 2)
            buf_u8(out, (uint8_t)(1 + (d.text[i] - '0') * 10 + (i + 1 < d.n ? d.text[i + 1] - '0' : 0)));
        buf_u8(out, 0);
        if (!d.text) out->failed = true;
        for (size_t i = from; d.sign < 0 && !buf_failed(out) && i < out->n; i++) out->p[i] ^= 0xFF;
    }
    free(d.text);
}

/* Integers of up to this many digits are decoded with scale 0, as they are usually written. */
enum { INTEGER_EXPONENT_MAX = 40, KEY_DIGITS_MAX = 1 << 18 };

static int decode_digits(struct key_rd *k, struct buf *out, bool negative) {
    int64_t exponent = (int64_t)(cqlt_key_uint(k, 8) ^ (uint64_t)1 << 63);
    struct buf digits;
    buf_init(&digits, 0);
    for (;;) {
        uint8_t pair = cqlt_key_u8(k);
        if (k->rd->bad || pair > 100) goto bad;
        if (pair == 0) break;
        buf_u8(&digits, (uint8_t)('0' + (pair - 1) / 10));
        buf_u8(&digits, (uint8_t)('0' + (pair - 1) % 10));
    }
    if (digits.n == 0 || exponent > INT64_C(1) << 40 || exponent < -(INT64_C(1) << 40)) goto bad;
    if (digits.p[digits.n - 1] == '0') digits.n--;
    int64_t scale = (int64_t)digits.n - exponent;
    for (; scale < 0 && exponent <= INTEGER_EXPONENT_MAX; scale++) buf_u8(&digits, '0');
    /* The form has no zeros at its end. They are appended again if the scale would be too small without
     * them. */
    for (; scale < INT32_MIN && scale >= (int64_t)INT32_MIN - KEY_DIGITS_MAX; scale++) buf_u8(&digits, '0');
    buf_u8(&digits, 0);
    if (buf_failed(&digits) || scale > INT32_MAX || scale < INT32_MIN) goto bad;
    mpz_t n;
    mpz_init_set_str(n, (const char *)digits.p, 10);
    if (negative) mpz_neg(n, n);
    cql_decimal_write(n, (int32_t)scale, out);
    mpz_clear(n);
    buf_fini(&digits);
    return 0;
bad:
    buf_fini(&digits);
    return -1;
}

static int decode_decimal(struct key_rd *key, struct buf *out) {
    uint8_t head = cqlt_key_u8(key);
    if (head > DECIMAL_POSITIVE || key->rd->bad) return -1;
    if (head == DECIMAL_ZERO) {
        buf_u32(out, 0);
        buf_u8(out, 0);
    }
    if (head == 0 || head == DECIMAL_ZERO) return 0;
    bool negative = head == DECIMAL_NEGATIVE;
    struct key_rd k = {.rd = key->rd, .flip = negative ? key->flip ^ 0xFF : key->flip};
    return decode_digits(&k, out, negative);
}

static int key_encode(const struct cql_type *t, struct slice v, struct buf *out, bool *exact, struct err *e) {
    (void)e;
    size_t from = out->n;
    if (t->id == CQL_VARINT) {
        encode_varint(v, out, exact);
    } else if (v.n == 0) {
        buf_u8(out, 0);
    } else {
        encode_decimal(v, out);
        if (buf_failed(out)) return 0;
        struct buf back;
        buf_init(&back, 0);
        struct rd r = rd_of(slice_of(out->p + from, out->n - from));
        struct key_rd k = {.rd = &r};
        if (decode_decimal(&k, &back) < 0 || !slice_eq(buf_slice(&back), v)) *exact = false;
        buf_fini(&back);
    }
    return 0;
}

static int key_decode(const struct cql_type *t, struct key_rd *key, struct buf *out) {
    return t->id == CQL_VARINT ? decode_varint(key, out) : decode_decimal(key, out);
}

const struct cql_family cqlt_decimal = {.validate = validate,
                                        .compare = compare,
                                        .parse = parse,
                                        .text = text,
                                        .key_encode = key_encode,
                                        .key_decode = key_decode};
