/* Key forms: order-preserving bytes of clustering values, inverted as a whole for descending
 * columns. */
#include "types/family.h"

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
