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
