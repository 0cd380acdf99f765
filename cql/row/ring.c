#include "cql/row/ring.h"

#include <openssl/evp.h>

#include "types/decimal.h"

enum { MD5_BYTES = 16 };

/* MD5's token 0 has position 2: the minimum, -1, is below it, and position 0 is below the ring. */
static const ring_position greatest_md5 = ((ring_position)1 << 127) + 2;

const struct cql_type *ring_token_type(enum partitioner_id p) {
    return cql_type_scalar(p != PARTITIONER_MURMUR3 ? CQL_VARINT : CQL_BIGINT);
}

/* Murmur3's ring has each bigint. */
ring_position ring_least(enum partitioner_id p) { return p != PARTITIONER_MURMUR3; }
ring_position ring_greatest(enum partitioner_id p) { return p != PARTITIONER_MURMUR3 ? greatest_md5 : UINT64_MAX; }

ring_position ring_quarter_end(enum partitioner_id p, uint32_t quarter) {
    ring_position next = quarter + 1;
    return p != PARTITIONER_MURMUR3 ? (next << 125) + 2 : (next << 62) - 1;
}

int ring_md5(struct slice bytes, uint8_t *out, struct err *e) {
    return EVP_Digest(bytes.p, bytes.n, out, NULL, EVP_md5(), NULL) == 1
               ? 0
               : err_set(e, ERR_SERVER, "MD5 is not available");
}

static ring_position number_of(const uint8_t *p, size_t n) {
    ring_position number = 0;
    for (size_t i = 0; i < n; i++) number = number << 8 | p[i];
    return number;
}

/* RandomPartitioner.getToken: the absolute value of the digest, which is a signed number. */
int ring_position_of(enum partitioner_id p, const struct eng_part *part, ring_position *out, struct err *e) {
    uint8_t digest[MD5_BYTES];
    *out = (uint64_t)part->token ^ UINT64_C(1) << 63;
    if (p == PARTITIONER_MURMUR3) return 0;
    *out = ring_least(p);
    if (!part->key.n) return 0;
    if (ring_md5(part->key, digest, e)) return -1;
    ring_position number = number_of(digest, sizeof digest);
    *out = (digest[0] & 0x80 ? -number : number) + 2;
    return 0;
}

int ring_range_has(const struct ring_range *r, const struct eng_part *part, struct err *e) {
    ring_position at;
    if (ring_position_of(r->partitioner, part, &at, e)) return -1;
    return at >= r->from && at <= r->to;
}

bool ring_read(enum partitioner_id p, struct value v, ring_position *out) {
    if (p == PARTITIONER_MURMUR3) {
        if (v.n != 8) return false;
        *out = load_u64(v.p) ^ UINT64_C(1) << 63;
        return true;
    }
    if (v.n <= 0) return false;
    struct slice s = cql_varint_shortest(value_slice(v));
    bool above = s.n > MD5_BYTES + 1 || (s.n == MD5_BYTES + 1 && s.p[0]);
    ring_position number = above ? 0 : number_of(s.p, s.n);
    if (s.p[0] & 0x80) *out = s.n == 1 && s.p[0] == 0xff; /* -1, or below the ring */
    else *out = above || number > greatest_md5 - 2 ? greatest_md5 + 1 : number + 2;
    return true;
}

void ring_write(enum partitioner_id p, ring_position position, struct buf *out) {
    uint8_t bytes[MD5_BYTES + 1] = {position < 2 ? 0xff : 0}; /* the sign, before the number */
    if (p == PARTITIONER_MURMUR3) return buf_u64(out, (uint64_t)position ^ UINT64_C(1) << 63);
    ring_position number = position - 2;
    for (size_t i = MD5_BYTES; i > 0; i--, number >>= 8) bytes[i] = (uint8_t)number;
    buf_put_slice(out, cql_varint_shortest(slice_of(bytes, sizeof bytes)));
}
