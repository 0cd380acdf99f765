#include "tests/bench/wire.h"

#include <stdio.h>

size_t wire_begin(struct buf *b, uint16_t stream, uint8_t opcode) {
    size_t start = b->n;
    buf_u8(b, 4);
    buf_u8(b, 0);
    buf_u16(b, stream);
    buf_u8(b, opcode);
    buf_u32(b, 0);
    return start;
}

void wire_end(struct buf *b, size_t start) { buf_patch_u32(b, start + 5, (uint32_t)(b->n - start - WIRE_HEADER)); }

static void put_string(struct buf *b, const char *s) {
    buf_u16(b, (uint16_t)strlen(s));
    buf_put_str(b, s);
}

static void put_long_string(struct buf *b, const char *s) {
    buf_u32(b, (uint32_t)strlen(s));
    buf_put_str(b, s);
}

void wire_startup(struct buf *b, uint16_t stream) {
    size_t at = wire_begin(b, stream, WIRE_STARTUP);
    buf_u16(b, 1);
    put_string(b, "CQL_VERSION");
    put_string(b, "3.0.0");
    wire_end(b, at);
}

void wire_query(struct buf *b, uint16_t stream, const char *text) {
    size_t at = wire_begin(b, stream, WIRE_QUERY);
    put_long_string(b, text);
    buf_u16(b, WIRE_LOCAL_QUORUM);
    buf_u8(b, 0);
    wire_end(b, at);
}

void wire_prepare(struct buf *b, uint16_t stream, const char *text) {
    size_t at = wire_begin(b, stream, WIRE_PREPARE);
    put_long_string(b, text);
    wire_end(b, at);
}

/* What stands before the body: warnings, a list of strings, and the custom payload, a map of strings to bytes. */
static void skip_extras(uint8_t flags, struct wire_response *out) {
    struct rd r = rd_of(out->body);
    uint16_t warnings = flags & 0x08 ? rd_u16(&r) : 0;
    while (warnings--) rd_bytes(&r, rd_u16(&r));
    uint16_t entries = flags & 0x04 ? rd_u16(&r) : 0;
    while (entries--) {
        rd_bytes(&r, rd_u16(&r));
        rd_bytes(&r, rd_u32(&r));
    }
    out->body = slice_of(r.p, rd_left(&r));
}

size_t wire_parse(struct slice in, struct wire_response *out) {
    if (in.n < WIRE_HEADER) return 0;
    uint32_t n = load_u32(in.p + 5);
    if (in.n - WIRE_HEADER < n) return 0;
    out->stream = load_u16(in.p + 2);
    out->opcode = in.p[4];
    out->body = slice_of(in.p + WIRE_HEADER, n);
    skip_extras(in.p[1], out);
    return WIRE_HEADER + n;
}

int64_t wire_rows(const struct wire_response *r) {
    if (r->opcode != WIRE_RESULT) return -1;
    struct rd in = rd_of(r->body);
    if (rd_u32(&in) != 2) return -1;
    uint32_t flags = rd_u32(&in);
    rd_u32(&in);
    if (flags & 2) rd_bytes(&in, rd_u32(&in)); /* paging state */
    if (!(flags & 4)) return -1;               /* the client asked for no metadata */
    uint32_t rows = rd_u32(&in);
    return in.bad ? -1 : (int64_t)rows;
}

void wire_error(const struct wire_response *r, char *text, size_t cap) {
    struct rd in = rd_of(r->body);
    uint32_t code = rd_u32(&in);
    struct slice s = rd_bytes(&in, rd_u16(&in));
    snprintf(text, cap, "error 0x%04X: %.*s", code, s.p ? (int)s.n : 0, s.p ? (const char *)s.p : "");
}
