/* The few frames of the native protocol v4 that the load client speaks (native_protocol_v4.spec, sections 2 and 4). */
#pragma once

#include "base/buf.h"

enum { WIRE_HEADER = 9, WIRE_ERROR = 0, WIRE_STARTUP = 1, WIRE_QUERY = 7, WIRE_RESULT = 8, WIRE_PREPARE = 9, WIRE_EXECUTE = 10, WIRE_READY = 2 };
enum { WIRE_LOCAL_QUORUM = 6 };

/* Header now, length patched by wire_end; the frame's start is returned. */
size_t wire_begin(struct buf *b, uint16_t stream, uint8_t opcode);
void wire_end(struct buf *b, size_t start);

void wire_startup(struct buf *b, uint16_t stream);
void wire_query(struct buf *b, uint16_t stream, const char *text);
void wire_prepare(struct buf *b, uint16_t stream, const char *text);

/* What the client sees of a response. */
struct wire_response {
    uint8_t opcode;
    uint16_t stream;
    struct slice body;
};
/* Bytes consumed, or 0: need more. */
size_t wire_parse(struct slice in, struct wire_response *out);
/* Rows of a RESULT of kind Rows; -1: something else. */
int64_t wire_rows(const struct wire_response *r);
/* Text of an ERROR, cut to cap. */
void wire_error(const struct wire_response *r, char *text, size_t cap);
