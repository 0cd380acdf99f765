/* The unsent output of a connection: responses as they are encoded, whole answers from workers, and
 * bytes on their way to the socket.
 *
 *   open ──┐
 *          ├─> queue of blocks ──frame one──> sending ──> transport
 *   answer ┘
 *
 * open takes the responses of one wake-up; usually it becomes sending unchanged (v5: framed) and is
 * sent with one write. Bytes that the peer does not take wait in the queue, unframed. Each block is
 * framed only when its turn comes, and freed when it is sent. So bytes are copied only into
 * segments, and the memory of a slow reader is bounded by what it has not read.
 *
 *   O1  counted is the memory of queue, open and sending, as of the last np_output_send; below
 *       NP_SHARE_SMALL it is 0
 *   O2  the share's bytes are counted plus the charges of answers in the making and of answers that
 *       wait for durability
 *
 * The loop's thread; only the share may be used by others.
 */
#pragma once

#include "native_protocol/blocks.h"
#include "native_protocol/budget.h"
#include "native_protocol/response.h"
#include "native_protocol/tls.h"

struct np_output {
    struct np_buf_pool *pool;
    struct buf open;
    struct np_blocks queue;
    struct buf sending;
    size_t sent;         /* of sending */
    uint32_t large_left; /* v5: bytes of an envelope larger than a segment that are not framed yet */
    bool framed, lz4;    /* v5: in segments; these compressed */
    struct np_share share;
    size_t counted;
};

void np_output_init(struct np_output *o, struct np_buf_pool *pool, struct np_budget *budget, void *owner);
/* Drops the unsent bytes. The share stays, for answers that are still on workers. */
void np_output_drop(struct np_output *o);

/* The buffer to append responses to. */
static inline struct buf *np_output_open(struct np_output *o) {
    if (!o->open.p) npi_buf_pool_take(o->pool, &o->open);
    return &o->open;
}
/* Appends a whole answer: its beginning in front, and the reply's further blocks with their charge;
 * both are empty afterwards. Returns -1 if memory is exhausted. */
int np_output_append(struct np_output *o, struct buf *front, struct np_reply *reply) MUST_CHECK;
/* Appends the further blocks of a reply whose beginning is the end of open. */
int np_output_append_rest(struct np_output *o, struct np_reply *reply) MUST_CHECK;
/* Sends the output so far unframed, and everything after it in segments. */
int np_output_begin_framing(struct np_output *o, bool lz4) MUST_CHECK;

static inline size_t np_output_unsent(const struct np_output *o) {
    return o->open.n + o->queue.n + o->sending.n - o->sent;
}

/* ALL: nothing is left. SOME: the peer takes no more, or others should have their turn. BROKEN: the
 * connection failed, or there is no memory. */
enum np_sent { NP_SENT_ALL, NP_SENT_SOME, NP_SENT_BROKEN };
/* Sends as much as possible now; *n: the bytes sent. */
enum np_sent np_output_send(struct np_output *o, struct np_transport *t, size_t *n) MUST_CHECK;
