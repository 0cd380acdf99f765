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

/* Writes at most room bytes to `to`. Returns the bytes written, or 0 if they do not fit. LZ4_compress_default
 * would clear its table of 16 KiB for each body, which takes longer than to compress a small one; a stream
 * that has been reset keeps the table, and its next block does not depend on those before it. */
static int lz4_compress(struct slice plain, uint8_t *to, size_t room) {
    static _Thread_local LZ4_stream_t stream;
    static _Thread_local bool is_valid; /* false at first, and after an error */
    if (is_valid) LZ4_resetStream_fast(&stream);
    else LZ4_initStream(&stream, sizeof(stream));
    int n = LZ4_compress_fast_continue(&stream, (const char *)plain.p, (char *)to, (int)plain.n, (int)room, 1);
    is_valid = n > 0;
    return n;
}

bool np_block_compress(struct slice plain, struct buf *out) {
    if (plain.n < 2 || plain.n > LZ4_MAX_INPUT_SIZE) return false;
    uint8_t *to = buf_reserve(out, plain.n - 1);
    if (!to) return false;
    int n = lz4_compress(plain, to, plain.n - 1);
    if (n <= 0) return false;
    buf_advance(out, (size_t)n);
    return true;
}

int np_body_decompress(enum np_compression how, struct slice body, uint32_t max, struct buf *out, struct err *e) {
    const char *p = (const char *)body.p;
    size_t n = 0;
    if (how == NP_COMPRESS_NONE)
        return err_set(e, ERR_PROTOCOL, "Compressed frame on a connection without compression");
    if (how == NP_COMPRESS_LZ4 && body.n < LZ4_PREFIX)
        return err_set(e, ERR_PROTOCOL, "Compressed body is too short for its length");
    if (how == NP_COMPRESS_LZ4) n = load_u32(body.p);
    else if (snappy_uncompressed_length(p, body.n, &n) != SNAPPY_OK)
        return err_set(e, ERR_PROTOCOL, "Compressed body is damaged");
    if (n > max)
        return err_set(e, ERR_INVALID, "Request is too big: length %zu exceeds maximum allowed length %u.", n, max);
    /* An LZ4 block expands at most 255 times, and three bytes of Snappy make at most 64: so a wrong
     * length is found before it costs memory. */
    if (how == NP_COMPRESS_LZ4 && n / 255 > body.n)
        return err_set(e, ERR_PROTOCOL, "Compressed body does not match its length");
    bool whole = how == NP_COMPRESS_LZ4 ||
                 (n / 32 <= body.n && snappy_validate_compressed_buffer(p, body.n) == SNAPPY_OK);
    uint8_t *to = whole ? buf_reserve(out, n ? n : 1) : NULL;
    if (whole && !to) return err_nomem(e);
    if (whole && how == NP_COMPRESS_LZ4)
        whole = !np_block_decompress(slice_of(body.p + LZ4_PREFIX, body.n - LZ4_PREFIX), n, to);
    else if (whole) whole = snappy_uncompress(p, body.n, (char *)to, &n) == SNAPPY_OK;
    if (!whole) return err_set(e, ERR_PROTOCOL, "Compressed body is damaged");
    buf_advance(out, n);
    return 0;
}

bool np_body_compress(enum np_compression how, struct slice body, struct buf *out) {
    size_t start = out->n;
    if (how == NP_COMPRESS_LZ4 && body.n <= LZ4_MAX_INPUT_SIZE) {
        size_t most = (size_t)LZ4_compressBound((int)body.n);
        buf_u32(out, (uint32_t)body.n);
        uint8_t *to = buf_reserve(out, most);
        int n = to ? lz4_compress(body, to, most) : 0;
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
