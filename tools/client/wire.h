/* The client's side of the native protocol, v3 to v5 (native_protocol_v5.spec, section 4, with the
 * differences of v3 and v4): appends requests to a buffer, decodes responses in place. Pure
 * functions.
 */
#pragma once

#include "base/buf.h"
#include "native_protocol/frame.h"

enum { WIRE_LOCAL_QUORUM = 6 };

/* Writes the header and returns its offset; wire_end patches the length. */
size_t wire_begin(struct buf *b, uint8_t version, uint16_t stream, enum np_opcode opcode);
void wire_end(struct buf *b, size_t start);

/* The parameters of QUERY, EXECUTE and BATCH other than the statement. values: a sequence of [value]s
 * as wire_put_value writes them. */
struct wire_params {
    uint16_t consistency, serial_consistency; /* serial: 0: not sent */
    uint16_t n_values;
    struct slice values;
    int32_t page_size;         /* 0 if not sent */
    struct slice paging_state; /* p NULL: none */
    bool has_timestamp;
    int64_t timestamp;
    bool skip_metadata;
    bool wants_capacity; /* request the payload "capacity"; v4 and later */
    bool tracing;        /* request a trace */
};
void wire_put_value(struct buf *b, const void *p, size_t n);
void wire_put_null(struct buf *b);

/* options: pairs of names and values besides CQL_VERSION, ended by NULL; may be NULL. */
void wire_startup(struct buf *b, uint8_t version, uint16_t stream, const char *const *options);
void wire_auth(struct buf *b, uint8_t version, uint16_t stream, struct slice token);
void wire_query(struct buf *b, uint8_t version, uint16_t stream, struct slice text, const struct wire_params *p);
/* keyspace: for unqualified table names, only sent in v5; p NULL: none. */
void wire_prepare(struct buf *b, uint8_t version, uint16_t stream, struct slice text, struct slice keyspace);
/* result_id: id of the result metadata, only sent in v5. */
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

/* A decoded response; it points into the input bytes. */
struct wire_response {
    uint8_t version, flags, opcode;
    uint16_t stream;
    struct slice trace_id;          /* 16 bytes; p NULL: the request was not traced */
    struct slice payload, warnings; /* still encoded; p NULL: none */
    struct slice body;
};
/* Bytes consumed, or 0: need more. */
size_t wire_parse(struct slice in, struct wire_response *out);
/* A value of the custom payload; p NULL: no such key. */
struct slice wire_payload(const struct wire_response *r, const char *key);
/* RequestCharge of the payload, in units; below 0: the server does not report charges. */
double wire_charge(const struct wire_response *r);
/* The number of that name in the payload "capacity"; below 0: the payload has none. */
double wire_capacity(const struct wire_response *r, const char *name);
/* Rows of a RESULT of kind Rows; -1 if it is something else. */
int64_t wire_rows(const struct wire_response *r);
/* The paging state of the next page; p NULL: this page is the last. */
struct slice wire_paging_state(const struct wire_response *r);
/* The code of an ERROR; *text: its message. */
uint32_t wire_error_code(const struct wire_response *r, struct slice *text);
/* Whether a write that got this response may be retried after a pause: the server is overloaded, or
 * the write timed out. */
bool wire_is_busy(const struct wire_response *r);
/* Formats the code and message of an ERROR as a line, cut to cap. */
void wire_error(const struct wire_response *r, char *text, size_t cap);
