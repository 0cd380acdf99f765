#include "native_protocol/spare.h"

#include <stdlib.h>

void npi_spare_take(struct np_spare *s, struct buf *b) {
    if (s->n) *b = s->bufs[--s->n];
    else buf_init(b, 0);
}

void npi_spare_give(struct np_spare *s, struct buf *b) {
    if (b->p && b->cap <= NP_SPARE_BUF_MAX && s->n < NP_SPARE_BUFS) {
        b->n = 0;
        b->failed = false;
        s->bufs[s->n++] = *b;
    } else {
        free(b->p);
    }
    buf_init(b, 0);
}

void npi_spare_fini(struct np_spare *s) {
    while (s->n) buf_fini(&s->bufs[--s->n]);
}
