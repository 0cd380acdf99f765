/* Buffers that a loop lends while there is something to write, so that an idle connection owns none. One thread. */
#pragma once

#include "base/buf.h"

enum { NP_POOLED_BUFS = 64, NP_POOLED_BUF_MAX = 128 << 10 };

struct np_buf_pool {
    struct buf bufs[NP_POOLED_BUFS];
    unsigned n;
};

/* An empty buffer; b owns nothing before. */
void npi_buf_pool_take(struct np_buf_pool *p, struct buf *b);
/* b owns nothing afterwards. */
void npi_buf_pool_give(struct np_buf_pool *p, struct buf *b);
void npi_buf_pool_fini(struct np_buf_pool *p);
