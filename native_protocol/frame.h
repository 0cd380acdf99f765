/* Envelopes: the header and body that every version of the native protocol has (v5 specification,
 * section 2.4).
 *
 *      0         8        16        24        32         40
 *      | version |  flags  |      stream       | opcode  |
 *      |                length                 |  body ...
 *
 * Bytes come from the connection's window (v3, v4) or out of a segment (v5, segment.h). Nothing is
 * copied: the body of a decoded envelope points into the bytes it was decoded from.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/buf.h"
#include "base/err.h"

enum np_opcode {
#define OPCODE(id, code, name, direction) NP_##id = code,
#include "native_protocol/opcode.def"
#undef OPCODE
    NP_OPCODES
};

/* Returns NULL if there is no such opcode. */
const char *np_opcode_name(uint8_t code);
bool np_opcode_is_request(uint8_t code);

/* NP_VERSION_BETA is v5 under another number, as in Cassandra 5.0: a server that speaks v5 speaks
 * it with clients that set the flag. */
enum { NP_VERSION_MIN = 3, NP_VERSION_MAX = 5, NP_VERSION_BETA = 6, NP_HEADER = 9, NP_RESPONSE_BIT = 0x80 };

enum np_flag {
    NP_FLAG_COMPRESSED = 0x01,
    NP_FLAG_TRACING = 0x02,
    NP_FLAG_PAYLOAD = 0x04,
    NP_FLAG_WARNING = 0x08,
    NP_FLAG_BETA = 0x10,
};

struct np_envelope {
    uint8_t version; /* without the direction bit */
    uint8_t flags, opcode;
    int16_t stream;
    uint32_t length; /* of the body as the header announces it */
    struct slice body;
};

enum { NP_NEED_MORE = 0, NP_BAD = -1, NP_TOO_BIG = -2 };

/* newest: the newest version that the server speaks, 4 or 5. Returns the bytes consumed (header and
 * body); NP_NEED_MORE; NP_BAD with e when the stream cannot be decoded any further (an unknown
 * version is detected on the first byte, v6 with the flags behind it, and env->version names it);
 * NP_TOO_BIG with e when the body is longer than max: env has the header, and the caller may skip
 * NP_HEADER + env->length bytes. */
ssize_t np_envelope_decode(struct slice in, uint8_t newest, uint32_t max, struct np_envelope *env,
                           struct err *e) MUST_CHECK;

/* Writes a header; the length is patched by np_envelope_end. Returns where the header begins. */
size_t np_envelope_begin(struct buf *out, uint8_t version, int16_t stream, enum np_opcode opcode);
/* Stores a header of length 0 at p, which has room for it. */
static inline void np_envelope_put(uint8_t *p, uint8_t version, uint8_t flags, int16_t stream, enum np_opcode opcode) {
    p[0] = version | NP_RESPONSE_BIT;
    p[1] = flags | (version == NP_VERSION_BETA ? NP_FLAG_BETA : 0);
    store_u16(p + 2, (uint16_t)stream);
    p[4] = (uint8_t)opcode;
    store_u32(p + 5, 0);
}
/* more: bytes of the body that follow elsewhere. */
void np_envelope_end(struct buf *out, size_t start, size_t more);

/* Whether a server whose newest version is `newest` speaks the version of this envelope, whose
 * flags are decoded. */
bool np_speaks(uint8_t newest, const struct np_envelope *env);

/* [string]: a length of two bytes and the bytes; cut at 65535. */
void np_put_string(struct buf *out, const char *s);
