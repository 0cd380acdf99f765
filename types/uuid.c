/* uuid and timeuuid, and two older classes of Cassandra. LegacyTimeUUIDType is a timeuuid that may
 * have any version. LexicalUUIDType may have any version, too, and has the order of Java's UUIDs
 * (two signed halves). */
#include "types/family.h"

static bool is_by_time(const struct cql_type *t) { return t->id == CQL_TIMEUUID || t->id == CQL_LEGACY_TIMEUUID; }

static int validate(const struct cql_type *t, struct slice v, struct err *e) {
    if (v.n != 16 && v.n != 0) return err_invalid(e, "UUID should be 16 or 0 bytes (%zu)", v.n);
    /* Cassandra names the high half of the first byte, not the version that it has just looked at. */
    if (t->id == CQL_TIMEUUID && v.n == 16 && v.p[6] >> 4 != 1)
        return err_invalid(e, "Invalid version for TimeUUID type: 0x%x", v.p[0] >> 4);
    return 0;
}

/* TimeUUIDType compares each byte of the lower half as signed, UUIDType as unsigned
 * (CASSANDRA-8730). */
static const uint64_t signed_bytes = 0x8080808080808080u, sign = 1ull << 63;

static void sort_halves(const struct cql_type *t, struct slice v, uint64_t half[2]) {
    half[0] = load_u64(v.p);
    half[1] = load_u64(v.p + 8);
    if (t->id == CQL_LEXICAL_UUID) {
        half[0] ^= sign;
        half[1] ^= sign;
        return;
    }
    if (is_by_time(t)) half[1] ^= signed_bytes;
    /* Orders the timestamp's bytes from high to low, after the version. */
    uint64_t msb = half[0];
    if (is_by_time(t) || v.p[6] >> 4 == 1) half[0] = msb << 48 | (msb << 16 & 0xFFFF00000000u) | msb >> 32;
}

static int compare(const struct cql_type *t, struct slice a, struct slice b) {
    if (a.n != 16 || b.n != 16) return (a.n == 16) - (b.n == 16);
    if (t->id == CQL_UUID && a.p[6] >> 4 != b.p[6] >> 4) return (a.p[6] >> 4) - (b.p[6] >> 4);
    uint64_t x[2], y[2];
    sort_halves(t, a, x);
    sort_halves(t, b, y);
    int i = x[0] == y[0];
    return (x[i] > y[i]) - (x[i] < y[i]);
}

static int read_uuid(struct slice text, uint8_t out[16]) {
    if (text.n != 36) return -1;
    size_t at = 0;
    for (size_t i = 0; i < 36;) {
        if (i == 8 || i == 13 || i == 18 || i == 23) {
            if (text.p[i++] != '-') return -1;
            continue;
        }
        int high = cqlt_hex_digit(text.p[i]), low = cqlt_hex_digit(text.p[i + 1]);
        if (high < 0 || low < 0) return -1;
        out[at++] = (uint8_t)(high << 4 | low);
        i += 2;
    }
    return 0;
}

/* Reads a UUID as Java does: five hexadecimal numbers with hyphens between them. A number may have
 * more digits than its part of the UUID, which takes the lowest bits. */
static int read_groups(struct slice text, uint8_t out[16]) {
    static const uint8_t bytes[] = {4, 2, 2, 2, 6};
    size_t at = 0, i = 0;
    for (size_t group = 0; group < ARRAY_LEN(bytes) && text.n <= 36; group++) {
        uint64_t n = 0;
        size_t from = i;
        for (; i < text.n && text.p[i] != '-'; i++) {
            int digit = cqlt_hex_digit(text.p[i]);
            if (digit < 0 || n >> 59) return -1;
            n = n << 4 | (uint64_t)digit;
        }
        if (i == from || (i == text.n) != (group + 1 == ARRAY_LEN(bytes))) return -1;
        for (size_t k = bytes[group]; k-- > 0;) out[at++] = (uint8_t)(n >> 8 * k);
        i++;
    }
    return at == 16 ? 0 : -1;
}

static int parse(const struct cql_type *t, struct slice text, struct cql_reading how, struct buf *out, struct err *e) {
    (void)how;
    uint8_t v[16];
    if (text.n == 0) return 0;
    if ((t->id == CQL_LEXICAL_UUID ? read_groups : read_uuid)(text, v) < 0) {
        if (t->id == CQL_LEXICAL_UUID) return err_invalid(e, "unable to make UUID from '%.*s'", CQLT_QUOTE(text));
        if (t->id == CQL_UUID) return err_invalid(e, "Unable to make UUID from '%.*s'", CQLT_QUOTE(text));
        return err_invalid(e, "Unknown timeuuid representation: %.*s", CQLT_QUOTE(text));
    }
    if (is_by_time(t) && v[6] >> 4 != 1) return err_invalid(e, "TimeUUID supports only version 1 UUIDs");
    buf_put(out, v, sizeof v);
    return 0;
}

static void text(const struct cql_type *t, struct slice v, struct buf *out) {
    (void)t;
    for (size_t i = 0; i < v.n; i++) buf_printf(out, i == 4 || i == 6 || i == 8 || i == 10 ? "-%02x" : "%02x", v.p[i]);
}

/* Key form: 0 for the empty value, otherwise 1 + version, then both halves as they sort. Types
 * whose order does not begin with the version have 2 there. */
static int key_encode(const struct cql_type *t, struct slice v, struct buf *out, bool *exact, struct err *e) {
    (void)exact, (void)e;
    if (v.n != 16) {
        buf_u8(out, 0);
        return 0;
    }
    uint64_t half[2];
    sort_halves(t, v, half);
    buf_u8(out, (uint8_t)(t->id == CQL_UUID ? 1 + (v.p[6] >> 4) : 2));
    buf_u64(out, half[0]);
    buf_u64(out, half[1]);
    return 0;
}

static int key_decode(const struct cql_type *t, struct key_rd *key, struct buf *out) {
    uint8_t head = cqlt_key_u8(key);
    if (head == 0) return 0;
    uint64_t high = cqlt_key_uint(key, 8), low = cqlt_key_uint(key, 8);
    bool lexical = t->id == CQL_LEXICAL_UUID;
    uint64_t from_time = high << 32 | (high >> 16 & 0xFFFF0000u) | high >> 48;
    buf_u64(out, lexical ? high ^ sign : is_by_time(t) || head == 2 ? from_time : high);
    buf_u64(out, lexical ? low ^ sign : is_by_time(t) ? low ^ signed_bytes : low);
    return head > 16 ? -1 : 0;
}

const struct cql_family cqlt_uuid = {.validate = validate,
                                     .compare = compare,
                                     .parse = parse,
                                     .text = text,
                                     .key_encode = key_encode,
                                     .key_decode = key_decode};
