/* Operations on values through the tables of the families, the shared scalars, and functions that
 * several families use. */
#include "types/family.h"

static const struct cql_type_info infos[CQL_TYPES] = {
#define TYPE(id_, option_, cql_, marshal_, wire_, fixed_, family_) \
    [CQL_##id_] = {.id = #id_, \
                   .option = option_, \
                   .cql = cql_, \
                   .marshal = marshal_, \
                   .wire = wire_, \
                   .fixed = fixed_, \
                   .family = &cqlt_##family_},
#include "types/type.def"
#undef TYPE
};

static const struct cql_type scalars[CQL_TYPES] = {
#define TYPE(id_, option, cql, marshal, wire, fixed, family) [CQL_##id_] = {.id = CQL_##id_},
#include "types/type.def"
#undef TYPE
};

const struct cql_type_info *cqlt_type_info(enum cql_type_id id) { return &infos[id]; }

const struct cql_type *cql_type_scalar(enum cql_type_id id) { return &scalars[id]; }

int64_t cqlt_type_fixed(const struct cql_type *t) {
    if (t->id != CQL_VECTOR) return infos[t->id].fixed ? infos[t->id].wire : -1;
    int64_t element = cqlt_type_fixed(t->args[0]);
    return element < 0 ? -1 : element * t->dimension;
}

int cql_value_validate(const struct cql_type *t, struct slice v, struct err *e) {
    return cqlt_family(t)->validate(t, v, e);
}

int cql_value_compare(const struct cql_type *t, struct slice a, struct slice b) {
    return cqlt_family(t)->compare(t, a, b);
}

_Static_assert(CQL_TYPES <= 32, "a type is a bit");
static const uint32_t literal_fits[] = {
#define BIT(id) (1u << CQL_##id)
    [LIT_STRING] = BIT(ASCII) | BIT(TEXT) | BIT(INET) | BIT(DATE) | BIT(TIME) | BIT(TIMESTAMP),
    [LIT_INTEGER] = BIT(BIGINT) | BIT(COUNTER) | BIT(DATE) | BIT(DECIMAL) | BIT(DOUBLE) | BIT(DURATION) | BIT(FLOAT) |
                    BIT(INT) | BIT(SMALLINT) | BIT(TIME) | BIT(TIMESTAMP) | BIT(TINYINT) | BIT(VARINT),
    [LIT_FLOAT] = BIT(DECIMAL) | BIT(DOUBLE) | BIT(FLOAT),
    [LIT_BOOLEAN] = BIT(BOOLEAN),
    [LIT_UUID] = BIT(UUID) | BIT(TIMEUUID) | BIT(LEGACY_TIMEUUID),
    [LIT_HEX] = BIT(BLOB),
    [LIT_DURATION] = BIT(DURATION),
#undef BIT
};

bool cql_literal_fits(const struct cql_type *t, enum cql_literal kind) {
    /* Cassandra parses any literal for a tuple or a class from its text form, and so refuses none. */
    return t->id == CQL_TUPLE || cql_type_takes_text(t) || (literal_fits[kind] & 1u << t->id);
}

int cql_literal_parse(const struct cql_type *t, enum cql_literal kind, struct slice text, const char *receiver,
                      struct cql_reading how, struct buf *out, struct err *e) {
    static const char *const names[] = {"STRING", "INTEGER", "FLOAT", "BOOLEAN", "UUID", "HEX", "DURATION"};
    if (!cql_literal_fits(t, kind)) {
        struct buf refusal;
        buf_init(&refusal, 4096);
        buf_printf(&refusal, "Invalid %s constant (", names[kind]);
        buf_put(&refusal, text.p, text.n > 512 ? 512 : text.n);
        buf_printf(&refusal, ") for \"%s\" of type ", receiver ? receiver : "");
        cql_type_print(t, &refusal);
        return err_set_buf(e, ERR_INVALID, &refusal);
    }
    size_t from = out->n;
    const struct cql_type *as = kind == LIT_HEX ? cql_type_scalar(CQL_BLOB) : t;
    if (kind == LIT_HEX && text.n >= 2) text = slice_of(text.p + 2, text.n - 2);
    if (cqlt_family(as)->parse(as, text, how, out, e) < 0) return -1;
    if (buf_failed(out)) return err_nomem(e);
    /* A literal 0x... contains the bytes of a value of any type. Like Cassandra, composites and
     * PartitionerDefinedOrder accept any bytes, and all other types check them. */
    bool any = t->id == CQL_COMPOSITE || t->id == CQL_DYNAMIC_COMPOSITE || t->id == CQL_PARTITION_ORDER;
    const uint8_t *bytes = out->n > from ? out->p + from : (const uint8_t *)"";
    return kind != LIT_HEX || any ? 0 : cql_value_validate(t, slice_of(bytes, out->n - from), e);
}

void cql_value_text(const struct cql_type *t, struct slice v, struct buf *out) { cqlt_family(t)->text(t, v, out); }

void cql_value_print(const struct cql_type *t, struct slice v, struct buf *out) {
    const struct cql_family *f = cqlt_family(t);
    if (cql_type_takes_text(t)) {
        buf_put_str(out, "0x");
        cql_value_text(cql_type_scalar(CQL_BLOB), v, out);
    } else if (f->print) {
        f->print(t, v, out);
    } else if (v.n == 0 && t->id != CQL_ASCII && t->id != CQL_TEXT && t->id != CQL_BLOB) {
        buf_put_str(out, "null");
    } else if (t->id == CQL_ASCII || t->id == CQL_TEXT) {
        buf_u8(out, '\'');
        for (size_t i = 0; i < v.n; i++) {
            if (v.p[i] == '\'') buf_u8(out, '\'');
            buf_u8(out, v.p[i]);
        }
        buf_u8(out, '\'');
    } else {
        bool quoted = t->id == CQL_INET || t->id == CQL_DATE || t->id == CQL_TIME || t->id == CQL_TIMESTAMP;
        if (t->id == CQL_BLOB) buf_put_str(out, "0x");
        if (quoted) buf_u8(out, '\'');
        f->text(t, v, out);
        if (quoted) buf_u8(out, '\'');
    }
}

bool cqlt_is_digits(struct slice text) {
    for (size_t i = 0; i < text.n; i++)
        if (text.p[i] < '0' || text.p[i] > '9') return false;
    return text.n > 0;
}

int cqlt_parse_int64(struct slice text, int64_t *out) {
    bool negative = text.n > 0 && text.p[0] == '-';
    size_t i = negative || (text.n > 0 && text.p[0] == '+');
    if (!cqlt_is_digits(slice_of(text.p + i, text.n - i))) return -1;
    int64_t v = 0;
    for (; i < text.n; i++) {
        int digit = text.p[i] - '0';
        if (__builtin_mul_overflow(v, 10, &v) || __builtin_sub_overflow(v, digit, &v)) return -1;
    }
    if (!negative && v == INT64_MIN) return -1;
    *out = negative ? v : -v;
    return 0;
}

/* ---- key forms ---- */

int cqlt_compare_bytes(const struct cql_type *t, struct slice a, struct slice b) {
    (void)t;
    return slice_cmp(a, b);
}

uint8_t cqlt_key_u8(struct key_rd *k) {
    uint8_t v = rd_u8(k->rd);
    return k->rd->bad ? 0 : v ^ k->flip;
}

uint64_t cqlt_key_uint(struct key_rd *k, size_t bytes) {
    uint64_t v = 0;
    for (size_t i = 0; i < bytes; i++) v = v << 8 | cqlt_key_u8(k);
    return v;
}

int cqlt_key_encode_bytes(const struct cql_type *t, struct slice v, struct buf *out, bool *exact, struct err *e) {
    (void)t, (void)exact, (void)e;
    size_t from = 0;
    for (size_t i = 0; i < v.n; i++) {
        if (v.p[i] != 0) continue;
        buf_put(out, v.p + from, i + 1 - from);
        buf_u8(out, 0xFF);
        from = i + 1;
    }
    if (v.n > from) buf_put(out, v.p + from, v.n - from);
    buf_u16(out, 0);
    return 0;
}

int cqlt_key_decode_bytes(const struct cql_type *t, struct key_rd *k, struct buf *out) {
    (void)t;
    for (;;) {
        uint8_t c = cqlt_key_u8(k);
        if (k->rd->bad) return -1;
        if (c == 0) {
            uint8_t next = cqlt_key_u8(k);
            if (k->rd->bad || (next != 0 && next != 0xFF)) return -1;
            if (next == 0) return 0;
        }
        buf_u8(out, c);
    }
}

int cql_key_encode(const struct cql_type *t, bool desc, struct slice v, struct buf *out, bool *exact, struct err *e) {
    size_t from = out->n;
    if (cqlt_family(t)->key_encode(t, v, out, exact, e) < 0) return -1;
    if (buf_failed(out)) return err_nomem(e);
    if ((t->n_args || t->id == CQL_DYNAMIC_COMPOSITE) && *exact) {
        /* Lengths and nulls inside a value may have several encodings. */
        struct buf back;
        struct rd form = rd_of(slice_of(out->p + from, out->n - from));
        buf_init(&back, 0);
        if (cql_key_decode(t, false, &form, &back) || !slice_eq(buf_slice(&back), v)) *exact = false;
        buf_fini(&back);
    }
    if (desc)
        for (size_t i = from; i < out->n; i++) out->p[i] ^= 0xFF;
    return 0;
}

int cql_key_decode(const struct cql_type *t, bool desc, struct rd *key, struct buf *out) {
    struct key_rd k = {.rd = key, .flip = desc ? 0xFF : 0};
    if (cqlt_family(t)->key_decode(t, &k, out) < 0) return -1;
    return key->bad || buf_failed(out) ? -1 : 0;
}
