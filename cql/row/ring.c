#include "cql/row/ring.h"

#include <openssl/evp.h>

#include "types/decimal.h"

enum { MD5_BYTES = 16 };

/* MD5's token 0 has place 2: the minimum, -1, lies below it, and place 0 below the ring. */
static const ring_place greatest_md5 = ((ring_place)1 << 127) + 2;

const struct cql_type *ring_token_type(enum partitioner_id p) {
    return cql_type_scalar(p != PARTITIONER_MURMUR3 ? CQL_VARINT : CQL_BIGINT);
}

/* Murmur3's ring has each bigint. */
ring_place ring_least(enum partitioner_id p) { return p != PARTITIONER_MURMUR3; }
ring_place ring_greatest(enum partitioner_id p) { return p != PARTITIONER_MURMUR3 ? greatest_md5 : UINT64_MAX; }

ring_place ring_quarter_end(enum partitioner_id p, uint32_t quarter) {
    return p != PARTITIONER_MURMUR3 ? ((ring_place)(quarter + 1) << 125) + 2 : ((ring_place)(quarter + 1) << 62) - 1;
}

int ring_md5(struct slice bytes, uint8_t *out, struct err *e) {
    return EVP_Digest(bytes.p, bytes.n, out, NULL, EVP_md5(), NULL) == 1
               ? 0
               : err_set(e, ERR_SERVER, "MD5 is not available");
}

static ring_place number_of(const uint8_t *p, size_t n) {
    ring_place number = 0;
    for (size_t i = 0; i < n; i++) number = number << 8 | p[i];
    return number;
}

/* RandomPartitioner.getToken: the absolute value of the digest, which is a signed number. */
int ring_place_of(enum partitioner_id p, const struct eng_part *part, ring_place *out, struct err *e) {
    uint8_t digest[MD5_BYTES];
    *out = (uint64_t)part->token ^ UINT64_C(1) << 63;
    if (p == PARTITIONER_MURMUR3) return 0;
    *out = ring_least(p);
    if (!part->key.n) return 0;
    if (ring_md5(part->key, digest, e)) return -1;
    ring_place number = number_of(digest, sizeof digest);
    *out = (digest[0] & 0x80 ? -number : number) + 2;
    return 0;
}

int ring_range_has(const struct ring_range *r, const struct eng_part *part, struct err *e) {
    ring_place at;
    if (ring_place_of(r->partitioner, part, &at, e)) return -1;
    return at >= r->from && at <= r->to;
}

bool ring_read(enum partitioner_id p, struct value v, ring_place *out) {
    if (p == PARTITIONER_MURMUR3) {
        if (v.n != 8) return false;
        *out = load_u64(v.p) ^ UINT64_C(1) << 63;
        return true;
    }
    if (v.n <= 0) return false;
    struct slice s = cql_varint_shortest(value_slice(v));
    bool above = s.n > MD5_BYTES + 1 || (s.n == MD5_BYTES + 1 && s.p[0]);
    ring_place number = above ? 0 : number_of(s.p, s.n);
    if (s.p[0] & 0x80) *out = s.n == 1 && s.p[0] == 0xff; /* -1, or below the ring */
    else *out = above || number > greatest_md5 - 2 ? greatest_md5 + 1 : number + 2;
    return true;
}

void ring_write(enum partitioner_id p, ring_place place, struct buf *out) {
    uint8_t bytes[MD5_BYTES + 1] = {place < 2 ? 0xff : 0}; /* the sign, in front of the number */
    if (p == PARTITIONER_MURMUR3) return buf_u64(out, (uint64_t)place ^ UINT64_C(1) << 63);
    ring_place number = place - 2;
    for (size_t i = MD5_BYTES; i > 0; i--, number >>= 8) bytes[i] = (uint8_t)number;
    buf_put_slice(out, cql_varint_shortest(slice_of(bytes, sizeof bytes)));
}
