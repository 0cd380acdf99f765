/* Responses: one envelope each, written at the end of an output buffer (v5 specification, section
 * 4.2, and v3, v4).
 *
 * Life: np_reply_init gives the response its place; np_reply_open writes the header there (and, for
 * queries on v4+, room for the RequestCharge payload); the body is appended; np_reply_end fills in
 * the parts that are known only at the end: charge, tracing id, warnings, capacity, length,
 * compression. np_reply_cancel drops the response instead, so that another one can be written. A
 * failed buffer stays failed until cancel.
 *
 * Rows beyond the first NP_BLOCK bytes go to blocks of their own, each charged to the connection's
 * share before it is written. The charge moves with the blocks to the output (output.h).
 */
#pragma once

#include "base/ip_address.h"
#include "cql/cql.h"
#include "membership/membership.h"
#include "native_protocol/blocks.h"
#include "native_protocol/budget.h"
#include "native_protocol/compress.h"
#include "native_protocol/frame.h"

enum {
    NP_BLOCK = 256 << 10,
    NP_END_ROOM = 4 << 10 /* room for the parts inserted at the end, so that the buffer need not grow once more */
};

struct np_reply {
    struct buf *out;
    size_t start, body; /* where the envelope and its message begin */
    uint8_t version;
    bool has_charge;
    bool is_open; /* the header is written */
    int16_t stream;
    struct buf tail;       /* the block that is being written; p NULL: rows still go to out */
    struct np_blocks more; /* blocks behind out; at the end the tail, too */
    struct np_share *share; /* set by the caller after begin; NULL if blocks are not charged */
    size_t charged, making; /* for blocks; the part of charged that is in the making */
    bool no_room;           /* a block was refused, and waiting for room would help */
};

/* The response will be written at the end of out, to which nothing else is appended until then. */
void np_reply_init(struct np_reply *r, struct buf *out, uint8_t version, int16_t stream, bool with_charge);
/* Gives a response that is not open another place, at the end of out. */
void np_reply_place(struct np_reply *r, struct buf *out);
/* Writes the header, unless it is written. */
void np_reply_open(struct np_reply *r, enum np_opcode opcode);
/* Both: init and open. */
void np_reply_begin(struct np_reply *r, struct buf *out, uint8_t version, int16_t stream, enum np_opcode opcode,
                    bool with_charge);
void np_reply_cancel(struct np_reply *r);
/* Drops the blocks and their charge; out is unchanged. */
void np_reply_drop(struct np_reply *r);
/* Moves all blocks of from, with their charge, to to, which has none. */
void np_reply_move(struct np_reply *to, struct np_reply *from);
/* The blocks become part of out. Returns -1 if memory is exhausted. */
int np_reply_flatten(struct np_reply *r) MUST_CHECK;
/* The reply is finished: its blocks, and the memory of out when out belongs to the reply alone,
 * count as held by the connection, no longer as in the making. */
void np_reply_made(struct np_reply *r);
/* Drops the message, not the envelope. */
void np_reply_restart(struct np_reply *r);
/* The buffer for the next rows; *room: the bytes that fit without a new allocation. */
static inline struct buf *np_reply_space(struct np_reply *r, size_t *room) {
    struct buf *b = r->tail.p ? &r->tail : r->out;
    size_t end = b->cap;
    if (!r->tail.p && end > r->start + NP_BLOCK - NP_END_ROOM) end = r->start + NP_BLOCK - NP_END_ROOM;
    *room = end > b->n && !b->failed ? end - b->n : 0;
    return b;
}
/* The buffer for the next n bytes of rows, in one piece; the caller reserves them. NULL and e: no
 * room for more answers, or no memory. */
struct buf *np_reply_room(struct np_reply *r, size_t n, struct err *e) MUST_CHECK;
/* Sets the error that there is no room for the answer. -1. */
int np_err_no_room(struct err *e);
/* Bytes of the message so far. */
static inline size_t np_reply_size(const struct np_reply *r) { return r->out->n - r->body + r->more.n + r->tail.n; }

/* The rare parts of a reply. */
struct np_reply_extras {
    const uint8_t *tracing_id; /* 16 bytes, or NULL */
    uint32_t n_warnings;       /* left out before v4 */
    const char *const *warnings;
    bool requested;            /* the client requested the payload; else it is left out when there are warnings */
    struct slice capacity;     /* payload capacity; p NULL: none; needs with_charge */
    struct slice throttle;     /* payload throttle, likewise */
    enum np_compression compression; /* of the body; NONE on v5 */
    struct buf *scratch;             /* needed when compression is set; cleared */
};
/* charge: payload RequestCharge, when begun with_charge. x NULL: none of the rare parts. 0, or -1
 * when the buffer failed: the caller cancels. */
int np_reply_end(struct np_reply *r, double charge, const struct np_reply_extras *x) MUST_CHECK;

/* ---- messages, appended between begin and end ---- */

/* Error codes that the version does not know become the nearest one it does. */
void np_put_error(struct buf *out, uint8_t version, const struct err *e);
/* version: the client's; newest: the newest that the server speaks. */
void np_put_supported(struct buf *out, uint8_t version, uint8_t newest, const char *cql_version);
void np_put_void(struct buf *out);
void np_put_set_keyspace(struct buf *out, const char *keyspace);
void np_put_schema_change(struct buf *out, uint8_t version, const struct schema_change *c); /* RESULT */
void np_put_prepared(struct buf *out, uint8_t version, const struct prepared_info *p);
/* A whole EVENT envelope. */
void np_event_schema(struct buf *out, uint8_t version, const struct schema_change *c);
/* TOPOLOGY_CHANGE or STATUS_CHANGE. */
void np_event_member(struct buf *out, uint8_t version, enum member_event event, const struct ip_address *address,
                     uint16_t port);

/* Metadata of results and of prepared statements: flags, column count, column specifications (v5
 * specification, section 4.2.5.2). */

enum np_metadata_flag {
    NP_META_GLOBAL = 0x0001,
    NP_META_MORE_PAGES = 0x0002,
    NP_META_NO_METADATA = 0x0004,
    NP_META_CHANGED = 0x0008,
};

/* NP_META_GLOBAL when all columns are of one table, else 0. */
uint32_t np_metadata_flags(const struct result_meta *m);
/* [<global table>]<column specs>, as the flags of np_metadata_flags say. */
void np_put_columns(struct buf *out, uint8_t version, const struct result_meta *m);
