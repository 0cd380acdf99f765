/* boolean, tinyint, smallint, int, bigint, counter: fixed width, two's complement, big-endian. */
#include <inttypes.h>

#include "base/hot.h"
#include "types/family.h"

static int64_t load(struct slice v) {
    switch (v.n) {
    case 1: return (int8_t)v.p[0];
    case 2: return (int16_t)load_u16(v.p);
    case 4: return (int32_t)load_u32(v.p);
    default: return (int64_t)load_u64(v.p);
    }
}

/* The two narrow types are newer in Cassandra and refuse the empty value. */
static bool empty_ok(enum cql_type_id id) { return id != CQL_TINYINT && id != CQL_SMALLINT; }

static int validate(const struct cql_type *t, struct slice v, struct err *e) {
    if (LIKELY(v.n == (size_t)cqlt_type_info(t->id)->wire) || (v.n == 0 && empty_ok(t->id))) return 0;
    switch (t->id) {
    case CQL_BOOLEAN: return err_invalid(e, "Expected 1 or 0 byte value (%zu)", v.n);
    case CQL_TINYINT: return err_invalid(e, "Expected 1 byte for a tinyint (%zu)", v.n);
    case CQL_SMALLINT: return err_invalid(e, "Expected 2 bytes for a smallint (%zu)", v.n);
    case CQL_INT: return err_invalid(e, "Expected 4 or 0 byte int (%zu)", v.n);
    default: return err_invalid(e, "Expected 8 or 0 byte long (%zu)", v.n);
    }
}

static int compare(const struct cql_type *t, struct slice a, struct slice b) {
    if (a.n == 0 || b.n == 0) return (a.n > 0) - (b.n > 0);
    if (t->id == CQL_BOOLEAN) return (a.p[0] != 0) - (b.p[0] != 0);
    int64_t x = load(a), y = load(b);
    return (x > y) - (x < y);
}

static int parse(const struct cql_type *t, struct slice text, struct cql_reading how, struct buf *out, struct err *e) {
    (void)how;
    if (text.n == 0) return 0;
    if (t->id == CQL_BOOLEAN) {
        char word[6] = "";
        for (size_t i = 0; i < text.n && text.n < sizeof word; i++) word[i] = (char)(text.p[i] | 0x20);
        bool is_true = strcmp(word, "true") == 0;
        if (!is_true && strcmp(word, "false") != 0)
            return err_invalid(e, "Unable to make boolean from '%.*s'", CQLT_QUOTE(text));
        buf_u8(out, is_true);
        return 0;
    }
    int wire = cqlt_type_info(t->id)->wire;
    const char *name = wire == 1 ? "byte" : wire == 2 ? "short" : wire == 4 ? "int" : "long";
    int64_t v, limit = wire == 8 ? INT64_MAX : ((int64_t)1 << (wire * 8 - 1)) - 1;
    if (cqlt_parse_int64(text, &v) < 0 || v > limit || v < -limit - 1)
        return err_invalid(e, "Unable to make %s from '%.*s'", name, CQLT_QUOTE(text));
    for (int shift = (wire - 1) * 8; shift >= 0; shift -= 8) buf_u8(out, (uint8_t)((uint64_t)v >> shift));
    return 0;
}

static void text(const struct cql_type *t, struct slice v, struct buf *out) {
    if (v.n == 0) return;
    if (t->id == CQL_BOOLEAN)
        buf_put_str(out, v.p[0] ? "true" : "false");
    else
        buf_printf(out, "%" PRId64, load(v));
}

static int key_encode(const struct cql_type *t, struct slice v, struct buf *out, bool *exact, struct err *e) {
    (void)e;
    bool marked = empty_ok(t->id); /* a byte before the value is 0 if the value is empty */
    uint8_t *p = buf_reserve(out, marked + v.n);
    if (!p) return 0; /* the caller sees that the buffer failed */
    buf_advance(out, marked + v.n);
    if (marked) *p++ = v.n > 0;
    if (v.n == 0) return 0;
    if (t->id == CQL_BOOLEAN) {
        if (v.p[0] > 1) *exact = false;
        *p = v.p[0] != 0;
        return 0;
    }
    copy_short(p, v.p, v.n);
    *p ^= 0x80;
    return 0;
}

static int key_decode(const struct cql_type *t, struct key_rd *key, struct buf *out) {
    if (empty_ok(t->id)) {
        uint8_t present = cqlt_key_u8(key);
        if (present > 1) return -1;
        if (!present) return 0;
    }
    size_t n = (size_t)cqlt_type_info(t->id)->wire;
    struct slice form = rd_bytes(key->rd, n);
    uint8_t *p = form.p ? buf_reserve(out, n) : NULL;
    if (!p) return -1;
    if (LIKELY(n == 4)) store_u32(p, load_u32(form.p) ^ 0x01010101u * key->flip);
    else for (size_t i = 0; i < n; i++) p[i] = form.p[i] ^ key->flip;
    if (t->id != CQL_BOOLEAN) p[0] ^= 0x80;
    buf_advance(out, n);
    return 0;
}

const struct cql_family cqlt_integer = {.validate = validate,
                                        .compare = compare,
                                        .parse = parse,
                                        .text = text,
                                        .key_encode = key_encode,
                                        .key_decode = key_decode};
