#include "tools/client/wire.h"

#include <stdio.h>
#include <stdlib.h>

/* Flags of <query_parameters> (section 4.1.4). */
enum {
    HAS_VALUES = 0x01,
    SKIP_METADATA = 0x02,
    HAS_PAGE_SIZE = 0x04,
    HAS_PAGING_STATE = 0x08,
    HAS_SERIAL = 0x10,
    HAS_TIMESTAMP = 0x20
};
enum { RESULT_KIND_ROWS = 2, ROWS_MORE_PAGES = 2 };

size_t wire_begin(struct buf *b, uint8_t version, uint16_t stream, enum np_opcode opcode) {
    size_t start = b->n;
    buf_u8(b, version);
    buf_u8(b, 0);
    buf_u16(b, stream);
    buf_u8(b, (uint8_t)opcode);
    buf_u32(b, 0);
    return start;
}

void wire_end(struct buf *b, size_t start) {
    if (!buf_failed(b)) buf_patch_u32(b, start + 5, (uint32_t)(b->n - start - NP_HEADER));
}

static void put_string(struct buf *b, struct slice s) {
    buf_u16(b, (uint16_t)s.n);
    buf_put_slice(b, s);
}

static void put_long_string(struct buf *b, struct slice s) {
    buf_u32(b, (uint32_t)s.n);
    buf_put_slice(b, s);
}

void wire_put_value(struct buf *b, const void *p, size_t n) {
    buf_u32(b, (uint32_t)n);
    buf_put(b, p, n);
}

void wire_put_null(struct buf *b) { buf_u32(b, UINT32_MAX); }

/* ---- requests ---- */

void wire_startup(struct buf *b, uint8_t version, uint16_t stream, const char *const *options) {
    size_t at = wire_begin(b, version, stream, NP_STARTUP);
    uint16_t pairs = 1;
    for (const char *const *o = options; o && *o; o += 2) pairs++;
    buf_u16(b, pairs);
    put_string(b, slice_str("CQL_VERSION"));
    put_string(b, slice_str("3.0.0"));
    for (const char *const *o = options; o && *o; o++) put_string(b, slice_str(*o));
    wire_end(b, at);
}

void wire_auth(struct buf *b, uint8_t version, uint16_t stream, struct slice token) {
    size_t at = wire_begin(b, version, stream, NP_AUTH_RESPONSE);
    put_long_string(b, token);
    wire_end(b, at);
}

static size_t begin_query(struct buf *b, uint8_t version, uint16_t stream, enum np_opcode opcode,
                          const struct wire_params *p) {
    size_t at = wire_begin(b, version, stream, opcode);
    if (p->tracing && !buf_failed(b)) b->p[at + 1] |= NP_FLAG_TRACING;
    if (!p->wants_capacity || version < 4 || buf_failed(b)) return at;
    b->p[at + 1] |= NP_FLAG_PAYLOAD;
    buf_u16(b, 1);
    put_string(b, slice_str("capacity"));
    buf_u32(b, 0);
    return at;
}

static void put_flags(struct buf *b, uint8_t version, uint32_t flags) {
    if (version >= 5) buf_u32(b, flags);
    else buf_u8(b, (uint8_t)flags);
}

static void put_tail(struct buf *b, const struct wire_params *p) {
    if (p->serial_consistency) buf_u16(b, p->serial_consistency);
    if (p->has_timestamp) buf_u64(b, (uint64_t)p->timestamp);
}

static uint32_t tail_flags(const struct wire_params *p) {
    return (p->serial_consistency ? HAS_SERIAL : 0) | (p->has_timestamp ? HAS_TIMESTAMP : 0u);
}

static void put_params(struct buf *b, uint8_t version, const struct wire_params *p) {
    buf_u16(b, p->consistency);
    put_flags(b, version,
              (p->n_values ? HAS_VALUES : 0) | (p->skip_metadata ? SKIP_METADATA : 0) |
                  (p->page_size ? HAS_PAGE_SIZE : 0) | (p->paging_state.p ? HAS_PAGING_STATE : 0) | tail_flags(p));
    if (p->n_values) {
        buf_u16(b, p->n_values);
        buf_put_slice(b, p->values);
    }
    if (p->page_size) buf_u32(b, (uint32_t)p->page_size);
    if (p->paging_state.p) put_long_string(b, p->paging_state);
    put_tail(b, p);
}

void wire_query(struct buf *b, uint8_t version, uint16_t stream, struct slice text, const struct wire_params *p) {
    size_t at = begin_query(b, version, stream, NP_QUERY, p);
    put_long_string(b, text);
    put_params(b, version, p);
    wire_end(b, at);
}

void wire_prepare(struct buf *b, uint8_t version, uint16_t stream, struct slice text, struct slice keyspace) {
    size_t at = wire_begin(b, version, stream, NP_PREPARE);
    put_long_string(b, text);
    if (version >= 5) buf_u32(b, keyspace.p != NULL);
    if (version >= 5 && keyspace.p) put_string(b, keyspace);
    wire_end(b, at);
}

void wire_execute(struct buf *b, uint8_t version, uint16_t stream, struct slice id, struct slice result_id,
                  const struct wire_params *p) {
    size_t at = begin_query(b, version, stream, NP_EXECUTE, p);
    put_string(b, id);
    if (version >= 5) put_string(b, result_id);
    put_params(b, version, p);
    wire_end(b, at);
}

void wire_batch(struct buf *b, uint8_t version, uint16_t stream, uint8_t kind, const struct wire_batch_item *items,
                uint16_t n, const struct wire_params *p) {
    size_t at = begin_query(b, version, stream, NP_BATCH, p);
    buf_u8(b, kind);
    buf_u16(b, n);
    for (uint16_t i = 0; i < n; i++) {
        buf_u8(b, items[i].id.p != NULL);
        if (items[i].id.p) put_string(b, items[i].id);
        else put_long_string(b, items[i].text);
        buf_u16(b, items[i].n_values);
        buf_put_slice(b, items[i].values);
    }
    buf_u16(b, p->consistency);
    put_flags(b, version, tail_flags(p));
    put_tail(b, p);
    wire_end(b, at);
}

/* ---- responses ---- */

/* [bytes]; p NULL: null. */
static struct slice read_bytes(struct rd *r) {
    uint32_t n = rd_u32(r);
    return n > INT32_MAX ? (struct slice){0} : rd_bytes(r, n);
}

size_t wire_parse(struct slice in, struct wire_response *out) {
    if (in.n < NP_HEADER) return 0;
    uint32_t n = load_u32(in.p + 5);
    if (in.n - NP_HEADER < n) return 0;
    *out = (struct wire_response){.version = in.p[0] & 0x7F,
                                  .flags = in.p[1], .stream = load_u16(in.p + 2), .opcode = in.p[4],
                                  .body = slice_of(in.p + NP_HEADER, n)};
    /* the optional fields before the body: tracing id, warnings (a list of strings), and custom
     * payload (a map of strings to bytes) */
    if (out->flags & (NP_FLAG_TRACING | NP_FLAG_WARNING | NP_FLAG_PAYLOAD)) {
        struct rd r = rd_of(out->body);
        if (out->flags & NP_FLAG_TRACING) out->trace_id = rd_bytes(&r, 16);
        const uint8_t *at = r.p;
        if (out->flags & NP_FLAG_WARNING) {
            for (uint16_t left = rd_u16(&r); left && !r.bad; left--) rd_bytes(&r, rd_u16(&r));
            out->warnings = slice_of(at, (size_t)(r.p - at));
        }
        at = r.p;
        if (out->flags & NP_FLAG_PAYLOAD) {
            for (uint16_t left = rd_u16(&r); left && !r.bad; left--) {
                rd_bytes(&r, rd_u16(&r));
                read_bytes(&r);
            }
            out->payload = slice_of(at, (size_t)(r.p - at));
        }
        out->body = slice_of(r.p, rd_left(&r));
    }
    return NP_HEADER + n;
}

struct slice wire_payload(const struct wire_response *r, const char *key) {
    struct rd in = rd_of(r->payload);
    for (uint16_t n = r->payload.p ? rd_u16(&in) : 0; n && !in.bad; n--) {
        struct slice name = rd_bytes(&in, rd_u16(&in)), value = read_bytes(&in);
        if (!in.bad && slice_is(name, key)) return value;
    }
    return (struct slice){0};
}

double wire_charge(const struct wire_response *r) {
    struct slice s = wire_payload(r, "RequestCharge");
    double units = -1;
    if (!s.p || s.n != 8) return units;
    uint64_t bits = load_u64(s.p);
    memcpy(&units, &bits, sizeof(units));
    return units;
}

double wire_capacity(const struct wire_response *r, const char *name) {
    struct slice json = wire_payload(r, "capacity");
    char key[64], number[32];
    int n = snprintf(key, sizeof(key), "\"%s\":", name);
    const uint8_t *at = json.p ? memmem(json.p, json.n, key, (size_t)n) : NULL;
    if (!at) return -1;
    snprintf(number, sizeof(number), "%.*s", SLICE_FMT(slice_of(at + n, (size_t)(json.p + json.n - at) - (size_t)n)));
    return strtod(number, NULL);
}

/* Reads flags and number of columns of a RESULT Rows. false: the response is of another kind. */
static bool open_rows(const struct wire_response *r, struct rd *in, uint32_t *flags, uint32_t *columns) {
    *in = rd_of(r->body);
    if (r->opcode != NP_RESULT || rd_u32(in) != RESULT_KIND_ROWS) return false;
    *flags = rd_u32(in);
    *columns = rd_u32(in);
    return !in->bad;
}

int64_t wire_rows(const struct wire_response *r) {
    struct rd in;
    uint32_t flags, columns;
    if (!open_rows(r, &in, &flags, &columns)) return -1;
    if (flags & ROWS_MORE_PAGES) rd_bytes(&in, rd_u32(&in));
    if (!(flags & 4)) return -1; /* the client asked for no metadata */
    uint32_t rows = rd_u32(&in);
    return in.bad ? -1 : (int64_t)rows;
}

struct slice wire_paging_state(const struct wire_response *r) {
    struct rd in;
    uint32_t flags, columns;
    return open_rows(r, &in, &flags, &columns) && flags & ROWS_MORE_PAGES ? read_bytes(&in) : (struct slice){0};
}

uint32_t wire_error_code(const struct wire_response *r, struct slice *text) {
    struct rd in = rd_of(r->body);
    uint32_t code = rd_u32(&in);
    struct slice s = rd_bytes(&in, rd_u16(&in));
    *text = s.p ? s : slice_str("");
    return code;
}

bool wire_is_busy(const struct wire_response *r) {
    enum { OVERLOADED = 0x1001, WRITE_TIMEOUT = 0x1100 };
    struct slice text;
    uint32_t code = r->opcode == NP_ERROR ? wire_error_code(r, &text) : 0;
    return code == OVERLOADED || code == WRITE_TIMEOUT;
}

void wire_error(const struct wire_response *r, char *text, size_t cap) {
    struct slice s;
    uint32_t code = wire_error_code(r, &s);
    snprintf(text, cap, "error 0x%04X: %.*s", code, SLICE_FMT(s));
}
