/* Paging states from hostile bytes: [mode][salt 4][rest]. Decoded as they are; or made into a state
 * that must come back the same, and must be refused with one bit changed, cut short, or for another
 * statement. */
#include <stdlib.h>

#include "cql/read/paging.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static bool same(const struct paging_state *a, const struct paging_state *b) {
    if (a->has_limit != b->has_limit || a->limit_left != b->limit_left || a->given != b->given ||
        a->partition != b->partition)
        return false;
    return slice_eq(a->key, b->key) && !a->ck.p == !b->ck.p && slice_eq(a->ck, b->ck);
}

static void must_refuse(struct slice bytes, uint32_t salt) {
    struct paging_state s;
    struct err e = {0};
    if (paging_decode(bytes, salt, &s, &e) == 0 || e.code != ERR_PROTOCOL) abort();
}

static void round_trip(struct slice in, uint32_t salt, struct arena *a) {
    struct rd r = rd_of(in);
    struct paging_state s = {.has_limit = rd_u8(&r) & 1}, back;
    struct slice bytes;
    struct err e = {0};
    size_t bit = rd_u16(&r);
    s.limit_left = s.has_limit ? rd_u32(&r) : 0;
    s.given = rd_u32(&r);
    s.partition = rd_u16(&r);
    s.key = rd_bytes(&r, rd_left(&r) ? rd_u8(&r) % (rd_left(&r) + 1) : 0);
    if (rd_left(&r)) s.ck = rd_bytes(&r, rd_left(&r));
    if (paging_encode(&s, salt, a, &bytes, &e)) return;
    if (paging_decode(bytes, salt, &back, &e) || !same(&s, &back)) abort();
    must_refuse(bytes, salt + 1);
    must_refuse(slice_of(bytes.p, bytes.n - 1), salt);
    uint8_t *p = (uint8_t *)bytes.p;
    p[bit / 8 % bytes.n] ^= (uint8_t)(1u << bit % 8);
    must_refuse(bytes, salt);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    struct arena a;
    struct paging_state s;
    struct err e = {0};
    if (size < 5) return 0;
    uint32_t salt = load_u32(data + 1);
    struct slice in = slice_of(data + 5, size - 5);
    arena_init(&a, 4096, 1 << 20);
    if (data[0] & 1) round_trip(in, salt, &a);
    else if (paging_decode(in, salt, &s, &e) && !e.set) abort();
    arena_fini(&a);
    return 0;
}
