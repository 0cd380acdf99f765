#include "native_protocol/segment.h"

#include <assert.h>
#include <zlib.h>

#include "native_protocol/compress.h"

enum { CRC_HEADER = 3, CRC_PAYLOAD = 4, PLAIN_HEADER = 3, COMPRESSED_HEADER = 5 };
enum { CRC24_INIT = 0x875060, CRC24_POLY = 0x1974F0B };

uint32_t np_crc24(const uint8_t *p, size_t n) {
    uint32_t crc = CRC24_INIT;
    for (size_t i = 0; i < n; i++) {
        crc ^= (uint32_t)p[i] << 16;
        for (int bit = 0; bit < 8; bit++) {
            crc <<= 1;
            if (crc & 0x1000000) crc ^= CRC24_POLY;
        }
    }
    return crc;
}

uint32_t np_crc32(struct slice payload) {
    static const uint8_t prefix[] = {0xFA, 0x2D, 0x55, 0xCA};
    return (uint32_t)crc32_z(crc32(0, prefix, sizeof(prefix)), payload.p, payload.n);
}

static uint64_t load_le(const uint8_t *p, size_t n) {
    uint64_t v = 0;
    while (n--) v = v << 8 | p[n];
    return v;
}

static void put_le(struct buf *out, uint64_t v, size_t n) {
    for (size_t i = 0; i < n; i++) buf_u8(out, (uint8_t)(v >> 8 * i));
}

ssize_t np_segment_decode(struct slice in, bool compressed, struct buf *scratch, struct np_segment *seg,
                          struct err *e) {
    size_t head = compressed ? COMPRESSED_HEADER : PLAIN_HEADER;
    if (in.n < head + CRC_HEADER) return NP_NEED_MORE;
    uint64_t h = load_le(in.p, head);
    uint32_t crc = (uint32_t)load_le(in.p + head, CRC_HEADER);
    uint32_t want = np_crc24(in.p, head);
    if (crc != want) return err_set(e, ERR_PROTOCOL, "Corrupt segment header: checksum %06x, computed %06x", crc, want);
    uint32_t length = h & NP_SEGMENT_MAX, plain = compressed ? h >> 17 & NP_SEGMENT_MAX : 0;
    seg->self_contained = compressed ? h >> 34 & 1 : h >> 17 & 1;
    size_t total = head + CRC_HEADER + length + CRC_PAYLOAD;
    if (in.n < total) return NP_NEED_MORE;
    seg->payload = slice_of(in.p + head + CRC_HEADER, length);
    crc = (uint32_t)load_le(seg->payload.p + length, CRC_PAYLOAD);
    want = np_crc32(seg->payload);
    if (crc != want)
        return err_set(e, ERR_PROTOCOL, "Corrupt segment payload: checksum %08x, computed %08x", crc, want);
    if (!plain) return (ssize_t)total;
    buf_clear(scratch, NP_SEGMENT_MAX + 1);
    uint8_t *to = buf_reserve(scratch, plain);
    if (!to) return err_nomem(e);
    if (np_block_decompress(seg->payload, plain, to))
        return err_set(e, ERR_PROTOCOL, "Damaged LZ4 block in a segment");
    buf_advance(scratch, plain);
    seg->payload = buf_slice(scratch);
    return (ssize_t)total;
}

static void put_header(struct buf *out, size_t head, uint64_t h) {
    size_t at = out->n;
    put_le(out, h, head);
    if (!buf_failed(out)) put_le(out, np_crc24(out->p + at, head), CRC_HEADER);
}

static void encode_one(struct slice payload, bool self_contained, bool compress, struct buf *out) {
    size_t head = compress ? COMPRESSED_HEADER : PLAIN_HEADER;
    size_t at = out->n, body = at + head + CRC_HEADER;
    uint64_t h = compress ? (uint64_t)self_contained << 34 : payload.n | (uint64_t)self_contained << 17;
    put_header(out, head, h);
    if (compress && np_block_compress(payload, out)) h |= (out->n - body) | (uint64_t)payload.n << 17;
    else {
        buf_put_slice(out, payload);
        if (compress) h |= payload.n;
    }
    if (buf_failed(out)) return;
    struct slice sent = slice_of(out->p + body, out->n - body);
    put_le(out, np_crc32(sent), CRC_PAYLOAD);
    if (!compress) return;
    size_t end = out->n;
    out->n = at;
    put_header(out, head, h);
    out->n = end;
}

/* Bytes of the leading envelopes that fit a segment together. More than NP_SEGMENT_MAX when the
 * first envelope alone does not fit. */
static size_t take_whole(struct slice envelopes) {
    size_t n = 0;
    while (envelopes.n - n >= NP_HEADER) {
        size_t next = NP_HEADER + (size_t)load_u32(envelopes.p + n + 5);
        if (n && n + next > NP_SEGMENT_MAX) break;
        n += next;
        if (n > NP_SEGMENT_MAX) break;
    }
    return n;
}

void np_segment_encode(struct slice envelopes, bool compress, uint32_t *left, struct buf *out) {
    while (envelopes.n && !buf_failed(out)) {
        size_t n = *left ? *left : take_whole(envelopes);
        if (*left || n > NP_SEGMENT_MAX) {
            /* As much of a large envelope as there is. */
            *left = (uint32_t)n;
            if (n > envelopes.n) n = envelopes.n;
            for (size_t at = 0; at < n; at += NP_SEGMENT_MAX) {
                size_t part = n - at < NP_SEGMENT_MAX ? n - at : NP_SEGMENT_MAX;
                encode_one(slice_of(envelopes.p + at, part), false, compress, out);
            }
            *left -= (uint32_t)n;
        } else {
            assert(n && n <= envelopes.n); /* only a large envelope may be cut */
            encode_one(slice_of(envelopes.p, n), true, compress, out);
        }
        envelopes = slice_of(envelopes.p + n, envelopes.n - n);
    }
}
