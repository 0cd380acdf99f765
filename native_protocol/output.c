#include "native_protocol/output.h"

#include <assert.h>

#include "native_protocol/segment.h"

/* STEP: bytes that one connection sends before the others have their turn. COPIED: answers up to
 * this size are copied instead of queued as a block. */
enum { STEP = 4 << 20, COPIED = 16 << 10 };

void np_output_init(struct np_output *o, struct np_buf_pool *pool, struct np_budget *budget, void *owner) {
    *o = (struct np_output){.pool = pool};
    buf_init(&o->open, 0);
    buf_init(&o->sending, 0);
    npi_share_init(&o->share, budget, owner);
}

static void count(struct np_output *o) {
    size_t held = o->queue.held + (o->open.n ? o->open.cap : 0) + (o->sending.n ? o->sending.cap : 0);
    if (held < NP_SHARE_SMALL) held = 0;
    if (held == o->counted) return;
    if (held > o->counted) npi_share_add(&o->share, held - o->counted);
    else npi_share_sub(&o->share, o->counted - held);
    o->counted = held; /* O1 */
}

static void release_blocks(struct np_output *o) {
    npi_buf_pool_give(o->pool, &o->open);
    npi_buf_pool_give(o->pool, &o->sending);
    o->sent = 0;
}

void np_output_drop(struct np_output *o) {
    np_blocks_fini(&o->queue);
    release_blocks(o);
    count(o);
}

/* Moves the charge of an answer to this output. The share does not change, so at no moment the
 * bytes are counted twice or not at all (O2). */
static void adopt_charge(struct np_output *o, struct np_reply *reply) {
    assert(!reply->charged || reply->share == &o->share);
    npi_share_made(&o->share, reply->making);
    o->counted += reply->charged;
    reply->charged = reply->making = 0;
}

int np_output_append(struct np_output *o, struct buf *front, struct np_reply *reply) {
    adopt_charge(o, reply);
    if (front->n <= COPIED && !reply->more.n) {
        buf_put_slice(np_output_open(o), buf_slice(front));
        return buf_failed(&o->open) ? -1 : 0;
    }
    if (np_blocks_push(&o->queue, &o->open) || np_blocks_push(&o->queue, front)) return -1;
    np_blocks_join(&o->queue, &reply->more);
    return 0;
}

int np_output_append_rest(struct np_output *o, struct np_reply *reply) {
    if (!reply->more.n) return 0;
    adopt_charge(o, reply);
    if (np_blocks_push(&o->queue, &o->open)) return -1;
    np_blocks_join(&o->queue, &reply->more);
    return 0;
}

int np_output_begin_framing(struct np_output *o, bool lz4) {
    struct buf b;
    if (!o->sending.p) npi_buf_pool_take(o->pool, &o->sending);
    while (np_blocks_pop(&o->queue, &b)) {
        buf_put_slice(&o->sending, buf_slice(&b));
        npi_buf_pool_give(o->pool, &b);
    }
    buf_put_slice(&o->sending, buf_slice(&o->open));
    o->open.n = 0;
    o->framed = true;
    o->lz4 = lz4;
    return buf_failed(&o->sending) ? -1 : 0;
}

/* Loads the next block, or else open, into sending. 1; 0 if nothing is left; -1 if memory is
 * exhausted. */
static int load(struct np_output *o) {
    struct buf b;
    o->sending.n = o->sent = 0;
    if (!np_blocks_pop(&o->queue, &b)) {
        if (buf_failed(&o->open)) return -1;
        if (!o->open.n) return 0;
        b = o->open;
        buf_init(&o->open, 0);
    }
    if (!o->framed) {
        npi_buf_pool_give(o->pool, &o->sending);
        o->sending = b;
        return 1;
    }
    if (!o->sending.p) npi_buf_pool_take(o->pool, &o->sending);
    np_segment_encode(buf_slice(&b), o->lz4, &o->large_left, &o->sending);
    npi_buf_pool_give(o->pool, &b);
    return buf_failed(&o->sending) ? -1 : 1;
}

/* Keeps the unsent bytes: open moves to the end of the queue, so that it does not grow without
 * bound. */
static enum np_sent left_over(struct np_output *o) {
    if (o->open.n && np_blocks_push(&o->queue, &o->open)) return NP_SENT_BROKEN;
    count(o);
    return NP_SENT_SOME;
}

enum np_sent np_output_send(struct np_output *o, struct np_transport *t, size_t *n) {
    *n = 0;
    for (;;) {
        if (o->sent == o->sending.n) {
            int loaded = load(o);
            if (loaded < 0) return NP_SENT_BROKEN;
            if (!loaded) break;
        }
        if (*n >= STEP) return left_over(o);
        ssize_t sent = np_transport_write(t, o->sending.p + o->sent, o->sending.n - o->sent);
        if (sent == NP_IO_AGAIN) return left_over(o);
        if (sent <= 0) return NP_SENT_BROKEN;
        o->sent += (size_t)sent;
        *n += (size_t)sent;
    }
    release_blocks(o);
    count(o);
    return NP_SENT_ALL;
}
