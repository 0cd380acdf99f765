#include "native_protocol/loop.h"

#include <stdlib.h>

struct np_call *npi_call_take(struct np_loop *l) {
    struct np_call *c = l->free_calls.first;
    if (c) {
        l->free_calls.first = c->next;
        l->free_calls.n--;
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
    c->offloaded = c->awaits_room = false;
    c->n_conflicts = 0;
    c->written = NULL;
    c->share.crowded = false;
    c->n_parts = 0;
    c->seq = 0;
    np_reply_drop(&c->reply);
    npi_buf_pool_give(&l->bufs, &c->out);
    if (l->free_calls.n >= NP_FREE_CALLS) {
        npi_call_free(c);
        return;
    }
    arena_reset(&c->arena);
    c->next = l->free_calls.first;
    l->free_calls.first = c;
    l->free_calls.n++;
}

void npi_call_forget(struct np_call *call) {
    struct cql_result *res = &call->r.answer.result;
    if (res->kind == RESULT_PREPARED && res->prepared) cql_prepared_unref(res->prepared);
    res->prepared = NULL;
    cql_run_fini(&call->r);
}

void npi_call_unplan(struct np_call *call) {
    npi_call_forget(call);
    call->cost = (struct op_cost){.arena = &call->arena}; /* the cost names objects that may be freed meanwhile */
}

void npi_loop_wake(struct np_loop *l) { npi_inbox_wake(&l->inbox); }
