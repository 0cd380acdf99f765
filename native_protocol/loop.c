#include "native_protocol/loop.h"

#include <stdlib.h>

struct np_call *npi_call_take(struct np_loop *l) {
    struct np_call *c = l->calls;
    if (c) {
        l->calls = c->next;
        l->n_calls--;
        return c;
    }
    c = calloc(1, sizeof(*c));
    if (!c) return NULL;
    c->share.pool = &l->bounds->work;
    arena_init_in(&c->arena, &c->share, NP_CALL_ARENA_CHUNK, NP_CALL_ARENA_MAX);
    buf_init(&c->out, 0);
    return c;
}

void npi_call_free(struct np_call *c) {
    arena_fini(&c->arena);
    buf_fini(&c->out);
    free(c);
}

void npi_call_give(struct np_loop *l, struct np_call *c) {
    c->conn = NULL;
    c->offloaded = c->crowded_out = false;
    c->share.crowded = false;
    c->n_parts = 0;
    c->seq = 0;
    np_reply_drop(&c->reply);
    npi_spare_give(&l->spare, &c->out);
    if (l->n_calls >= NP_SPARE_CALLS) {
        npi_call_free(c);
        return;
    }
    arena_reset(&c->arena);
    c->next = l->calls;
    l->calls = c;
    l->n_calls++;
}

void npi_loop_wake(struct np_loop *l) { npi_inbox_wake(&l->inbox); }
