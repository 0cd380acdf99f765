/* ascii, text, blob: bytes in byte order. */
#include "types/family.h"

/* The length of the well-formed UTF-8 sequence at p, or 0. As in UTF8Serializer, surrogates and
 * overlong forms are not well-formed. */
static size_t utf8_sequence(const uint8_t *p, size_t left) {
    uint8_t c = p[0];
    size_t n = c < 0x80 ? 1 : c >= 0xC2 && c < 0xE0 ? 2 : c >= 0xE0 && c < 0xF0 ? 3 : c >= 0xF0 && c < 0xF5 ? 4 : 0;
    if (n == 0 || n > left) return 0;
    for (size_t i = 1; i < n; i++)
        if ((p[i] & 0xC0) != 0x80) return 0;
    if ((c == 0xE0 && p[1] < 0xA0) || (c == 0xED && p[1] > 0x9F) || (c == 0xF0 && p[1] < 0x90) ||
        (c == 0xF4 && p[1] > 0x8F))
        return 0;
    return n;
}

#define NOT_ASCII UINT64_C(0x8080808080808080) /* of each byte, the bit that ASCII does not have */

/* In the byte order of the machine. */
static inline uint64_t eight(const uint8_t *p) {
    uint64_t v;
    memcpy(&v, p, 8);
    return v;
}

/* The last eight bytes may overlap those before. */
static inline bool is_ascii(struct slice v) {
    uint64_t all = 0;
    size_t i = 0;
    if (v.n < 8)
        for (; i < v.n; i++) all |= v.p[i];
    else
        for (all = eight(v.p + v.n - 8); i + 8 < v.n; i += 8) all |= eight(v.p + i);
    return !(all & NOT_ASCII);
}

static bool is_utf8(struct slice v) {
    if (LIKELY(is_ascii(v))) return true;
    for (size_t i = 0, n; i < v.n; i += n) {
        while (v.n - i > 8 && !(eight(v.p + i) & NOT_ASCII)) i += 8;
        n = utf8_sequence(v.p + i, v.n - i);
        if (n == 0) return false;
    }
    return true;
}

void cql_utf8_clean(char *text) {
    for (size_t left = strlen(text), n; left; text += n, left -= n) {
        n = utf8_sequence((const uint8_t *)text, left);
        if (n == 0) *text = '?', n = 1;
    }
}

static int validate(const struct cql_type *t, struct slice v, struct err *e) {
    if (t->id == CQL_BLOB) return 0;
    if (t->id == CQL_TEXT) return is_utf8(v) ? 0 : err_invalid(e, "String didn't validate.");
    for (size_t i = 0; i < v.n; i++)
        if (v.p[i] & 0x80) return err_invalid(e, "Invalid byte for ascii: %d", (int8_t)v.p[i]);
    return 0;
}

static int parse(const struct cql_type *t, struct slice text, struct cql_reading how, struct buf *out, struct err *e) {
    (void)how;
    if (t->id == CQL_BLOB) {
        bool ok = text.n % 2 == 0;
        for (size_t i = 0; ok && i < text.n; i += 2) {
            int high = cqlt_hex_digit(text.p[i]), low = cqlt_hex_digit(text.p[i + 1]);
            ok = high >= 0 && low >= 0;
            if (ok) buf_u8(out, (uint8_t)(high << 4 | low));
        }
        return ok ? 0 : err_invalid(e, "cannot parse '%.*s' as hex bytes", CQLT_QUOTE(text));
    }
    for (size_t i = 0; t->id == CQL_ASCII && i < text.n; i++)
        if (text.p[i] & 0x80)
            return err_invalid(e, "Invalid ASCII character in string literal: "
                                  "java.nio.charset.UnmappableCharacterException: Input length = 1");
    if (t->id == CQL_TEXT && !is_utf8(text)) return err_invalid(e, "String didn't validate.");
    buf_put_slice(out, text);
    return 0;
}

static void text(const struct cql_type *t, struct slice v, struct buf *out) {
    static const char digits[] = "0123456789abcdef";
    if (t->id != CQL_BLOB) {
        buf_put_slice(out, v);
        return;
    }
    for (size_t i = 0; i < v.n; i++) {
        buf_u8(out, (uint8_t)digits[v.p[i] >> 4]);
        buf_u8(out, (uint8_t)digits[v.p[i] & 15]);
    }
}

const struct cql_family cqlt_text = {
    .validate = validate, .compare = cqlt_compare_bytes, .parse = parse, .text = text,
    .key_encode = cqlt_key_encode_bytes, .key_decode = cqlt_key_decode_bytes};
