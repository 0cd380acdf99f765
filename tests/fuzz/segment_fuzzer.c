/* v5 segments both ways: [mode][u16 place][bytes]. What is encoded comes back whole; with one bit
 * changed anywhere it is refused or incomplete, never something else. Sound checksums are put on
 * hostile contents, so that what lies behind them is reached. */
#include <stdlib.h>

#include "native_protocol/segment.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* All segments of in; what they carry goes to out. 0, or -1 when one is refused or cut off. */
static int unpack(struct slice in, bool compressed, struct buf *scratch, struct buf *out) {
    struct np_segment seg;
    struct err e = {0};
    ssize_t n = 1;
    while (in.n && (n = np_segment_decode(in, compressed, scratch, &seg, &e)) > 0) {
        if ((size_t)n > in.n || seg.payload.n > NP_SEGMENT_MAX) abort();
        if (out) buf_put_slice(out, seg.payload);
        in = slice_of(in.p + n, in.n - (size_t)n);
    }
    if (n == NP_BAD && !e.set) abort();
    return in.n ? -1 : 0;
}

/* Envelopes, as the encoder wants them, with bodies cut from the input. */
static void put_envelopes(struct slice in, struct buf *out) {
    struct rd r = rd_of(in);
    do {
        size_t at = np_envelope_begin(out, 5, 1, NP_RESULT), n = rd_left(&r) ? rd_u8(&r) : 0,
               times = rd_left(&r) ? rd_u8(&r) : 0;
        if (n > rd_left(&r)) n = rd_left(&r);
        struct slice s = rd_bytes(&r, n);
        for (size_t i = 0; i <= times; i++) buf_put_slice(out, s);
        np_envelope_end(out, at, 0);
    } while (rd_left(&r));
}

static void round_trip(struct slice in, bool compressed, size_t place, struct buf *scratch) {
    struct buf plain, wire, back;
    buf_init(&plain, 0);
    buf_init(&wire, 0);
    buf_init(&back, 0);
    put_envelopes(in, &plain);
    uint32_t left = 0;
    np_segment_encode(buf_slice(&plain), compressed, &left, &wire);
    if (unpack(buf_slice(&wire), compressed, scratch, &back) || !slice_eq(buf_slice(&plain), buf_slice(&back))) abort();
    wire.p[place / 8 * 7 % wire.n] ^= (uint8_t)(1u << place % 8);
    if (unpack(buf_slice(&wire), compressed, scratch, NULL) == 0) abort();
    buf_fini(&plain);
    buf_fini(&wire);
    buf_fini(&back);
}

static void put_little(struct buf *b, uint64_t v, int n) {
    for (int i = 0; i < n; i++) buf_u8(b, (uint8_t)(v >> 8 * i));
}

/* Header bits as they come, except the length of what follows. */
static void hostile(struct slice in, bool compressed, struct buf *scratch) {
    int header = compressed ? 5 : 3;
    struct buf wire;
    if (in.n < 5) return;
    struct slice payload = slice_of(in.p + 5, in.n - 5);
    uint64_t bits = load_u32(in.p) | (uint64_t)in.p[4] << 32;
    bits = (bits & ~(uint64_t)NP_SEGMENT_MAX) | (payload.n & NP_SEGMENT_MAX);
    buf_init(&wire, 0);
    put_little(&wire, bits, header);
    put_little(&wire, np_crc24(wire.p, (size_t)header), 3);
    buf_put_slice(&wire, payload);
    put_little(&wire, np_crc32(payload), 4);
    (void)!unpack(buf_slice(&wire), compressed, scratch, NULL);
    buf_fini(&wire);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    struct buf scratch;
    if (size < 3) return 0;
    struct slice in = slice_of(data + 3, size - 3);
    bool compressed = data[0] & 1;
    buf_init(&scratch, 0);
    if (data[0] & 2) round_trip(in, compressed, load_u16(data + 1), &scratch);
    else hostile(in, compressed, &scratch);
    buf_fini(&scratch);
    return 0;
}
