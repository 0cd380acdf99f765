/* Buffers that a loop lends while there is something to write, so that an idle connection owns none. One thread. */
#pragma once

#include "base/buf.h"

enum { NP_SPARE_BUFS = 64, NP_SPARE_BUF_MAX = 128 << 10 };

struct np_spare {
    struct buf bufs[NP_SPARE_BUFS];
    unsigned n;
};

/* An empty buffer; b owns nothing before. */
void npi_spare_take(struct np_spare *s, struct buf *b);
/* b owns nothing afterwards. */
void npi_spare_give(struct np_spare *s, struct buf *b);
void npi_spare_fini(struct np_spare *s);
