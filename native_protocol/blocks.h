/* A queue of byte blocks: large answers are made, queued and sent block by block, each freed when
 * it is done with, none copied. */
#pragma once

#include "base/buf.h"

struct np_block;

struct np_blocks { /* zeroed: empty */
    struct np_block *first, *last;
    size_t n;    /* bytes */
    size_t held; /* memory of the blocks */
};

/* Takes over what b owns; b is empty afterwards. Small ones are joined, and their memory given
 * back. -1: no memory, b as it was. */
int np_blocks_push(struct np_blocks *q, struct buf *b) MUST_CHECK;
/* The first block, whose memory is the caller's then. false: there is none. */
bool np_blocks_pop(struct np_blocks *q, struct buf *b);
/* All of more goes behind q. */
void np_blocks_join(struct np_blocks *q, struct np_blocks *more);
void np_blocks_fini(struct np_blocks *q);
