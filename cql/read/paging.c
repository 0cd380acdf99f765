#include "cql/read/paging.h"

#include "base/murmur3.h"

enum { PAGING_VERSION = 2, PAGING_HAS_CK = 1, PAGING_BEFORE = 2, PAGING_STATIC_ROW = 4, PAGING_MAX = 256 << 10 };

static uint32_t hash(struct slice bytes, uint32_t salt) {
    uint64_t h = murmur3_hash(bytes) * 0x9e3779b97f4a7c15u ^ (uint64_t)salt * 0xff51afd7ed558ccdu;
    return (uint32_t)(h >> 32 ^ h);
}

int paging_encode(const struct paging_state *s, uint32_t salt, struct arena *a, struct slice *out, struct err *e) {
    struct buf b;
    buf_init(&b, PAGING_MAX);
    buf_u8(&b, PAGING_VERSION);
    buf_u8(&b, (uint8_t)((s->ck.p ? PAGING_HAS_CK : 0) | (s->before ? PAGING_BEFORE : 0) |
                         (s->static_row_due ? PAGING_STATIC_ROW : 0)));
    buf_uvarint(&b, s->has_limit ? s->limit_left + 1 : 0);
    buf_uvarint(&b, s->given);
    buf_uvarint(&b, s->partition);
    buf_uvarint(&b, s->key.n);
    buf_put_slice(&b, s->key);
    buf_uvarint(&b, s->ck.n);
    if (s->ck.p) buf_put_slice(&b, s->ck);
    buf_u32(&b, hash(buf_slice(&b), salt));
    *out = buf_failed(&b) ? (struct slice){0} : arena_dup(a, buf_slice(&b));
    buf_fini(&b);
    return out->p ? 0 : err_nomem(e);
}

int paging_refuse(struct err *e) { return err_set(e, ERR_PROTOCOL, "Invalid value for the paging state"); }

int paging_decode(struct slice bytes, uint32_t salt, struct paging_state *out, struct err *e) {
    bool good = bytes.n > 4 && bytes.n <= PAGING_MAX;
    struct slice body = slice_of(bytes.p, good ? bytes.n - 4 : 0);
    good = good && load_u32(bytes.p + body.n) == hash(body, salt);
    struct rd r = rd_of(body);
    uint8_t version = rd_u8(&r), flags = rd_u8(&r);
    uint64_t limit = rd_uvarint(&r);
    *out = (struct paging_state){.has_limit = limit > 0, .limit_left = limit ? limit - 1 : 0, .given = rd_uvarint(&r)};
    out->partition = (uint32_t)rd_uvarint(&r);
    out->key = rd_bytes(&r, rd_uvarint(&r));
    struct slice ck = rd_bytes(&r, rd_uvarint(&r));
    if (flags & PAGING_HAS_CK) out->ck = ck;
    out->before = !out->ck.p && flags & PAGING_BEFORE;
    out->static_row_due = out->ck.p && flags & PAGING_STATIC_ROW;
    if (good && !r.bad && rd_left(&r) == 0 && version == PAGING_VERSION) return 0;
    return paging_refuse(e);
}
