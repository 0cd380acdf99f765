#include "metering/capture/digest.h"

#include "base/random.h"
#include "metering/capture/format.h"

int capture_key_random(struct capture_key *out, struct err *e) { return random_bytes(out, sizeof(*out), e); }

/* ---- SipHash-2-4 ---- */

static uint64_t rotate(uint64_t x, unsigned n) { return x << n | x >> (64 - n); }

static void sip_round(uint64_t v[4]) {
    v[0] += v[1], v[1] = rotate(v[1], 13) ^ v[0], v[0] = rotate(v[0], 32);
    v[2] += v[3], v[3] = rotate(v[3], 16) ^ v[2];
    v[0] += v[3], v[3] = rotate(v[3], 21) ^ v[0];
    v[2] += v[1], v[1] = rotate(v[1], 17) ^ v[2], v[2] = rotate(v[2], 32);
}

static void take(uint64_t v[4], uint64_t m) {
    v[3] ^= m;
    sip_round(v);
    sip_round(v);
    v[0] ^= m;
}

static uint64_t load_little(const uint8_t *p, size_t n) {
    uint64_t m = 0;
    for (size_t i = 0; i < n; i++) m |= (uint64_t)p[i] << 8 * i;
    return m;
}

uint64_t capture_hash(const struct capture_key *k, struct slice s) {
    uint64_t v[4] = {k->k0 ^ 0x736f6d6570736575, k->k1 ^ 0x646f72616e646f6d, k->k0 ^ 0x6c7967656e657261,
                     k->k1 ^ 0x7465646279746573};
    size_t whole = s.n & ~(size_t)7;
    for (size_t at = 0; at < whole; at += 8) take(v, load_little(s.p + at, 8));
    take(v, (uint64_t)s.n << 56 | load_little(s.p + whole, s.n & 7));
    v[2] ^= 0xff;
    for (int i = 0; i < 4; i++) sip_round(v);
    return v[0] ^ v[1] ^ v[2] ^ v[3];
}

/* ---- the digest ---- */

void capture_put_digest(struct buf *out, const struct capture_digest *d) {
    buf_u16(out, d->consistency);
    buf_u32(out, (uint32_t)d->page_size);
    buf_u8(out, d->paging);
    buf_u8(out, d->batch_kind);
    buf_u16(out, d->n_statements);
}

void capture_put_digest_statement(struct buf *out, struct slice id, struct slice text, uint16_t n_values) {
    static const uint8_t none[CAPTURE_ID];
    bool has_id = id.p && id.n == CAPTURE_ID;
    buf_put(out, has_id ? id.p : none, CAPTURE_ID);
    if (!has_id) {
        buf_uvarint(out, text.n);
        buf_put_slice(out, text);
    }
    buf_u16(out, n_values);
}

void capture_put_digest_value(struct buf *out, const struct capture_key *k, int32_t n, const uint8_t *p) {
    buf_u32(out, (uint32_t)n);
    if (n >= 0) buf_u64(out, capture_hash(k, slice_of(p, (size_t)n)));
}

int capture_get_digest(struct rd *in, struct capture_digest *out) {
    out->consistency = rd_u16(in);
    out->page_size = (int32_t)rd_u32(in);
    out->paging = rd_u8(in);
    out->batch_kind = rd_u8(in);
    out->n_statements = rd_u16(in);
    return in->bad ? -1 : 0;
}

int capture_get_digest_statement(struct rd *in, struct capture_digest_statement *out) {
    static const uint8_t none[CAPTURE_ID];
    *out = (struct capture_digest_statement){.id = rd_bytes(in, CAPTURE_ID)};
    if (in->bad) return -1;
    if (!memcmp(out->id.p, none, CAPTURE_ID)) {
        out->id = (struct slice){0};
        uint64_t n = rd_uvarint(in);
        out->text = rd_bytes(in, n);
    }
    out->n_values = rd_u16(in);
    out->values = *in;
    int32_t n;
    uint64_t hash;
    for (uint16_t i = 0; i < out->n_values; i++)
        if (capture_get_digest_value(in, &n, &hash)) return -1;
    return in->bad ? -1 : 0;
}

int capture_get_digest_value(struct rd *values, int32_t *n, uint64_t *hash) {
    *n = (int32_t)rd_u32(values);
    *hash = *n >= 0 ? rd_u64(values) : 0;
    return values->bad ? -1 : 0;
}
