/* What a client writes and reads of the native protocol, v3 to v5 (native_protocol_v5.spec, section
 * 4; v3 and v4 where they differ): requests onto a buffer, responses in place. Pure functions.
 */
#pragma once

#include "base/buf.h"
#include "native_protocol/frame.h"

enum { WIRE_LOCAL_QUORUM = 6 };

/* Header now, length patched by wire_end; the frame's start is returned. */
size_t wire_begin(struct buf *b, uint8_t version, uint16_t stream, enum np_opcode opcode);
void wire_end(struct buf *b, size_t start);

/* Everything that QUERY, EXECUTE and BATCH say beside the statement. Values are [value]s behind
 * each other, as wire_put_value writes them. */
struct wire_params {
    uint16_t consistency, serial_consistency; /* serial: 0: not sent */
    uint16_t n_values;
    struct slice values;
    int32_t page_size;         /* 0: not sent */
    struct slice paging_state; /* p NULL: none */
    bool has_timestamp;
    int64_t timestamp;
    bool skip_metadata;
    bool wants_capacity; /* asks for the payload "capacity"; v4 on */
    bool tracing;        /* asks the server to trace the request */
};
void wire_put_value(struct buf *b, const void *p, size_t n);
void wire_put_null(struct buf *b);

/* options: pairs of names and values beside CQL_VERSION, NULL at the end; may be NULL. */
void wire_startup(struct buf *b, uint8_t version, uint16_t stream, const char *const *options);
void wire_auth(struct buf *b, uint8_t version, uint16_t stream, struct slice token);
void wire_query(struct buf *b, uint8_t version, uint16_t stream, struct slice text, const struct wire_params *p);
/* keyspace: of a statement that names none, v5; p NULL: none. */
void wire_prepare(struct buf *b, uint8_t version, uint16_t stream, struct slice text, struct slice keyspace);
/* result_id: of the result metadata, v5. */
void wire_execute(struct buf *b, uint8_t version, uint16_t stream, struct slice id, struct slice result_id,
                  const struct wire_params *p);

struct wire_batch_item {
    struct slice text, id; /* one of them; the other's p is NULL */
    uint16_t n_values;
    struct slice values;
};
/* kind: 0 logged, 1 unlogged, 2 counter. */
void wire_batch(struct buf *b, uint8_t version, uint16_t stream, uint8_t kind, const struct wire_batch_item *items,
                uint16_t n, const struct wire_params *p);

/* A response; it points into the bytes that it was read from. */
struct wire_response {
    uint8_t version, flags, opcode;
    uint16_t stream;
    struct slice trace_id;          /* 16 bytes; p NULL: the request was not traced */
    struct slice payload, warnings; /* as they stand in front of the body; p NULL: none */
    struct slice body;
};
/* Bytes consumed, or 0: need more. */
size_t wire_parse(struct slice in, struct wire_response *out);
/* A value of the custom payload; p NULL: there is none. */
struct slice wire_payload(const struct wire_response *r, const char *key);
/* RequestCharge of the payload, in units; below 0: the server does not tell. */
double wire_charge(const struct wire_response *r);
/* Rows of a RESULT of kind Rows; -1: something else. */
int64_t wire_rows(const struct wire_response *r);
/* Where the next page goes on; p NULL: there is none. */
struct slice wire_paging_state(const struct wire_response *r);
/* The code of an ERROR, its text. */
uint32_t wire_error_code(const struct wire_response *r, struct slice *text);
/* Whether a write that got it may be sent again a little later: the server is overloaded, or did
 * not answer in its time. */
bool wire_is_busy(const struct wire_response *r);
/* The same as a line, cut to cap. */
void wire_error(const struct wire_response *r, char *text, size_t cap);
