#include "native_protocol/compress.h"

#include <lz4.h>
#include <snappy-c.h>
#include <strings.h>

enum { LZ4_PREFIX = 4 };

int np_compression_find(struct slice name, enum np_compression *out) {
    if (name.n == 3 && !strncasecmp((const char *)name.p, "lz4", 3)) *out = NP_COMPRESS_LZ4;
    else if (name.n == 6 && !strncasecmp((const char *)name.p, "snappy", 6)) *out = NP_COMPRESS_SNAPPY;
    else return -1;
    return 0;
}

int np_block_decompress(struct slice block, size_t n, uint8_t *out) {
    if (block.n > INT32_MAX || n > INT32_MAX) return -1;
    return LZ4_decompress_safe((const char *)block.p, (char *)out, (int)block.n, (int)n) == (int)n ? 0 : -1;
}

bool np_block_compress(struct slice plain, struct buf *out) {
    if (plain.n < 2 || plain.n > LZ4_MAX_INPUT_SIZE) return false;
    uint8_t *to = buf_reserve(out, plain.n - 1);
    if (!to) return false;
    int n = LZ4_compress_default((const char *)plain.p, (char *)to, (int)plain.n, (int)plain.n - 1);
    if (n <= 0) return false;
    buf_advance(out, (size_t)n);
    return true;
}

static int announce_check(size_t n, uint32_t max, struct err *e) {
    if (n <= max) return 0;
    return err_set(e, ERR_INVALID, "Request is too big: length %zu exceeds maximum allowed length %u.", n, max);
}

static int lz4_body(struct slice body, uint32_t max, struct buf *out, struct err *e) {
    if (body.n < LZ4_PREFIX) return err_set(e, ERR_PROTOCOL, "Compressed body is too short for its length");
    uint32_t n = load_u32(body.p);
    if (announce_check(n, max, e)) return -1;
    /* an LZ4 block expands at most 255 times, so a lying length is found before it costs memory */
    if (n / 255 > body.n) return err_set(e, ERR_PROTOCOL, "Compressed body does not match its length");
    uint8_t *to = buf_reserve(out, n ? n : 1);
    if (!to) return err_nomem(e);
    if (np_block_decompress(slice_of(body.p + LZ4_PREFIX, body.n - LZ4_PREFIX), n, to))
        return err_set(e, ERR_PROTOCOL, "Compressed body is damaged");
    buf_advance(out, n);
    return 0;
}

static int snappy_body(struct slice body, uint32_t max, struct buf *out, struct err *e) {
    size_t n;
    if (snappy_uncompressed_length((const char *)body.p, body.n, &n) != SNAPPY_OK)
        return err_set(e, ERR_PROTOCOL, "Compressed body is damaged");
    if (announce_check(n, max, e)) return -1;
    /* three bytes of Snappy make at most 64 */
    if (n / 32 > body.n || snappy_validate_compressed_buffer((const char *)body.p, body.n) != SNAPPY_OK)
        return err_set(e, ERR_PROTOCOL, "Compressed body is damaged");
    uint8_t *to = buf_reserve(out, n ? n : 1);
    if (!to) return err_nomem(e);
    if (snappy_uncompress((const char *)body.p, body.n, (char *)to, &n) != SNAPPY_OK)
        return err_set(e, ERR_PROTOCOL, "Compressed body is damaged");
    buf_advance(out, n);
    return 0;
}

int np_body_decompress(enum np_compression how, struct slice body, uint32_t max, struct buf *out, struct err *e) {
    switch (how) {
    case NP_COMPRESS_LZ4: return lz4_body(body, max, out, e);
    case NP_COMPRESS_SNAPPY: return snappy_body(body, max, out, e);
    case NP_COMPRESS_NONE: break;
    }
    return err_set(e, ERR_PROTOCOL, "Compressed frame on a connection without compression");
}

bool np_body_compress(enum np_compression how, struct slice body, struct buf *out) {
    size_t start = out->n;
    if (how == NP_COMPRESS_LZ4 && body.n <= LZ4_MAX_INPUT_SIZE) {
        int most = LZ4_compressBound((int)body.n);
        buf_u32(out, (uint32_t)body.n);
        uint8_t *to = buf_reserve(out, (size_t)most);
        int n = to ? LZ4_compress_default((const char *)body.p, (char *)to, (int)body.n, most) : 0;
        if (n > 0) {
            buf_advance(out, (size_t)n);
            return true;
        }
    } else if (how == NP_COMPRESS_SNAPPY) {
        size_t n = snappy_max_compressed_length(body.n);
        uint8_t *to = buf_reserve(out, n);
        if (to && snappy_compress((const char *)body.p, body.n, (char *)to, &n) == SNAPPY_OK) {
            buf_advance(out, n);
            return true;
        }
    }
    out->n = start;
    return false;
}
