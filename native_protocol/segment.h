/* Segments: how v5 carries envelopes after STARTUP (v5 specification, section 2; the checksums are
 * CASSANDRA-15299's).
 *
 *   plain:      17 bits payload length | 1 bit self-contained | 6 bits zero | CRC24 (3 bytes) |
 *               payload | CRC32 (4 bytes)
 *   compressed: 17 bits length | 17 bits plain length (0: not compressed) | 1 bit self-contained |
 *   5 bits zero | CRC24 | payload | CRC32
 *
 * all little-endian. A self-contained segment holds whole envelopes; an envelope that is larger
 * than a segment's payload is cut over several segments that hold nothing else.
 */
#pragma once

#include "native_protocol/frame.h"

enum { NP_SEGMENT_MAX = (1 << 17) - 1 };

struct np_segment {
    bool self_contained;
    struct slice payload; /* in the input, or in scratch when it was compressed */
};

/* Bytes consumed, NP_NEED_MORE, or NP_BAD with e (a checksum does not match, a length lies): the
 * connection cannot continue. scratch is cleared and used when the payload is compressed. */
ssize_t np_segment_decode(struct slice in, bool compressed, struct buf *scratch, struct np_segment *seg,
                          struct err *e) MUST_CHECK;
/* Appends the segments that carry envelopes. All envelopes but the last are whole. A last one that
 * is larger than a segment may be cut anywhere behind its header; then *left, 0 at first, is the
 * number of its bytes that the next call begins with. */
void np_segment_encode(struct slice envelopes, bool compress, uint32_t *left, struct buf *out);

uint32_t np_crc24(const uint8_t *p, size_t n);
uint32_t np_crc32(struct slice payload);
