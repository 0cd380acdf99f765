/* Envelopes, segments and compressed bodies from hostile bytes: the first byte picks the decoder. */
#include <stdlib.h>

#include "native_protocol/compress.h"
#include "native_protocol/segment.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void envelopes(struct slice in, struct err *e) {
    struct np_envelope env;
    for (ssize_t n; (n = np_envelope_decode(in, NP_VERSION_MAX, 1 << 16, &env, e)) > 0;
         in = slice_of(in.p + n, in.n - (size_t)n))
        if (env.body.n > in.n) abort();
}

static void segments(struct slice in, bool compressed, struct buf *scratch, struct err *e) {
    struct np_segment seg;
    for (ssize_t n; (n = np_segment_decode(in, compressed, scratch, &seg, e)) > 0;
         in = slice_of(in.p + n, in.n - (size_t)n))
        envelopes(seg.payload, e);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    struct buf scratch;
    struct err e = {0};
    if (!size) return 0;
    struct slice in = slice_of(data + 1, size - 1);
    buf_init(&scratch, 0);
    switch (data[0] % 5) {
    case 0: envelopes(in, &e); break;
    case 1: segments(in, false, &scratch, &e); break;
    case 2: segments(in, true, &scratch, &e); break;
    case 3: if (np_body_decompress(NP_COMPRESS_LZ4, in, 1 << 20, &scratch, &e)) e.set = false; break;
    case 4: if (np_body_decompress(NP_COMPRESS_SNAPPY, in, 1 << 20, &scratch, &e)) e.set = false; break;
    }
    buf_fini(&scratch);
    return 0;
}
