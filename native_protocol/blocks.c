#include "native_protocol/blocks.h"

#include <stdlib.h>

/* SMALL: a buffer up to this size is copied into a common block. */
enum { SMALL = 16 << 10 };

struct np_block {
    struct np_block *next;
    struct buf b;
};

static int append(struct np_blocks *q, struct buf b) {
    struct np_block *block = malloc(sizeof(*block));
    if (!block) return -1;
    *block = (struct np_block){.b = b};
    if (q->last) q->last->next = block;
    else q->first = block;
    q->last = block;
    q->n += b.n;
    q->held += b.cap;
    return 0;
}

int np_blocks_push(struct np_blocks *q, struct buf *b) {
    if (!b->n) {
        buf_fini(b);
        return 0;
    }
    if (b->n > SMALL) {
        if (append(q, *b)) return -1;
        buf_init(b, 0);
        return 0;
    }
    if (!q->last || q->last->b.cap - q->last->b.n < b->n) {
        struct buf fresh; /* has room for further small buffers */
        buf_init(&fresh, 0);
        if (!buf_reserve(&fresh, SMALL) || append(q, fresh)) return buf_fini(&fresh), -1;
    }
    buf_put_slice(&q->last->b, buf_slice(b));
    q->n += b->n;
    buf_fini(b);
    return 0;
}

bool np_blocks_pop(struct np_blocks *q, struct buf *b) {
    struct np_block *block = q->first;
    if (!block) return false;
    *b = block->b;
    q->first = block->next;
    if (!q->first) q->last = NULL;
    q->n -= b->n;
    q->held -= b->cap;
    free(block);
    return true;
}

void np_blocks_join(struct np_blocks *q, struct np_blocks *more) {
    if (!more->first) return;
    if (q->last) q->last->next = more->first;
    else q->first = more->first;
    q->last = more->last;
    q->n += more->n;
    q->held += more->held;
    *more = (struct np_blocks){0};
}

void np_blocks_fini(struct np_blocks *q) {
    struct buf b;
    while (np_blocks_pop(q, &b)) buf_fini(&b);
}

void npi_buf_pool_take(struct np_buf_pool *p, struct buf *b) {
    if (p->n) *b = p->bufs[--p->n];
    else buf_init(b, 0);
}

void npi_buf_pool_give(struct np_buf_pool *p, struct buf *b) {
    if (b->p && b->cap <= NP_POOLED_BUF_MAX && p->n < NP_POOLED_BUFS) {
        b->n = 0;
        b->failed = false;
        p->bufs[p->n++] = *b;
    } else {
        free(b->p);
    }
    buf_init(b, 0);
}

void npi_buf_pool_fini(struct np_buf_pool *p) {
    while (p->n) buf_fini(&p->bufs[--p->n]);
}
