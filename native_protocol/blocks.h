/* A queue of byte blocks. Large answers are encoded, queued and sent block by block, without
 * copies; each block is freed once it is sent. */
#pragma once

#include "base/buf.h"

struct np_block;

struct np_blocks { /* zeroed: empty */
    struct np_block *first, *last;
    size_t n;    /* bytes */
    size_t held; /* memory of the blocks */
};

/* Takes over the memory of b, which is empty afterwards. Small buffers are copied into a common
 * block instead. Returns -1 if memory is exhausted; b is unchanged. */
int np_blocks_push(struct np_blocks *q, struct buf *b) MUST_CHECK;
/* Takes the first block, whose memory belongs to the caller afterwards. Returns false if the queue
 * is empty. */
bool np_blocks_pop(struct np_blocks *q, struct buf *b);
/* Moves all blocks of more behind those of q. */
void np_blocks_join(struct np_blocks *q, struct np_blocks *more);
void np_blocks_fini(struct np_blocks *q);

/* Buffers that a loop lends while there is something to write, so that an idle connection owns none. One thread. */
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
