/* inet: 4 or 16 bytes, in byte order. */
#include <arpa/inet.h>

#include "types/family.h"

static int validate(const struct cql_type *t, struct slice v, struct err *e) {
    (void)t;
    if (v.n == 4 || v.n == 16 || v.n == 0) return 0;
    char hex[2 * 64 + 1];
    size_t n = v.n < 64 ? v.n : 64;
    for (size_t i = 0; i < n; i++)
        hex[2 * i] = "0123456789abcdef"[v.p[i] >> 4], hex[2 * i + 1] = "0123456789abcdef"[v.p[i] & 15];
    hex[2 * n] = 0;
    return err_invalid(e, "Expected 4 or 16 byte inetaddress; got %s", hex);
}

/* Reads one to four decimal parts, as Java does: the last part fills the remaining bytes ("1.2.3"
 * is 1.2.0.3). */
static int parse_v4(const char *s, uint8_t out[4]) {
    uint64_t parts[4] = {0};
    int n = 0, digits = 0;
    for (; *s; s++) {
        if (*s == '.') {
            if (digits == 0 || ++n > 3) return -1;
            digits = 0;
        } else if (*s < '0' || *s > '9' || ++digits > 10) {
            return -1;
        } else {
            parts[n] = parts[n] * 10 + (uint64_t)(*s - '0');
        }
    }
    if (digits == 0) return -1;
    uint64_t last_limit = (uint64_t)1 << 8 * (4 - n), v = parts[n];
    if (v >= last_limit) return -1;
    for (int i = 0; i < n; i++) {
        if (parts[i] > 255) return -1;
        v |= parts[i] << 8 * (3 - i);
    }
    store_u32(out, (uint32_t)v);
    return 0;
}

bool cqlt_inet_is_mapped(struct slice v) {
    static const uint8_t prefix[12] = {[10] = 0xFF, [11] = 0xFF};
    return v.n == 16 && memcmp(v.p, prefix, sizeof prefix) == 0;
}

static int parse(const struct cql_type *t, struct slice text, struct cql_reading how, struct buf *out, struct err *e) {
    (void)how;
    (void)t;
    char s[64];
    uint8_t v4[4];
    struct in6_addr v6;
    if (text.n == 0) return 0;
    size_t n = text.n < sizeof s && !memchr(text.p, 0, text.n) ? text.n : 0;
    memcpy(s, text.p, n);
    s[n] = 0;
    char *at = s;
    if (n > 2 && s[0] == '[' && s[n - 1] == ']') s[n - 1] = 0, at++;
    if (parse_v4(at, v4) == 0)
        buf_put(out, v4, 4);
    else if (inet_pton(AF_INET6, at, &v6) != 1)
        return err_invalid(e, "Unable to make inet address from '%.*s'", CQLT_QUOTE(text));
    else if (cqlt_inet_is_mapped(slice_of(v6.s6_addr, 16)))
        buf_put(out, v6.s6_addr + 12, 4);
    else
        buf_put(out, v6.s6_addr, 16);
    return 0;
}

static void text(const struct cql_type *t, struct slice v, struct buf *out) {
    (void)t;
    if (cqlt_inet_is_mapped(v)) v = slice_of(v.p + 12, 4);
    if (v.n == 4) buf_printf(out, "%d.%d.%d.%d", v.p[0], v.p[1], v.p[2], v.p[3]);
    for (size_t i = 0; v.n == 16 && i < 16; i += 2) buf_printf(out, i ? ":%x" : "%x", load_u16(v.p + i));
}

const struct cql_family cqlt_inet = {
    .validate = validate, .compare = cqlt_compare_bytes, .parse = parse, .text = text,
    .key_encode = cqlt_key_encode_bytes, .key_decode = cqlt_key_decode_bytes};
