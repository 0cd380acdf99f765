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

void npi_loop_record_reads(struct np_loop *l) {
    struct np_fast_reads *p = &l->reads;
    if (!p->n) return;
    l->now_us = clock_wall_us(l->o->clock);
    np_metric_requests(&l->metrics, NP_EXECUTE, NP_OUTCOME_OK, p->n);
    if (p->read_halves) np_metric_add(&l->metrics, NP_METRIC_READ_UNITS, (int64_t)p->read_halves);
    if (l->o->ledger) ledger_time_reads(l->o->ledger, l->number, l->now_us > p->began_us ? l->now_us - p->began_us : 0);
    p->n = 0;
    p->read_halves = 0;
}
