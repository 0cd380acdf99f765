#include "native_protocol/buf_pool.h"

#include <stdlib.h>

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
