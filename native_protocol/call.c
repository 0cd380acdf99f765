#include "native_protocol/call.h"

#include <assert.h>
#include <stdlib.h>

#include "native_protocol/faults/rule.h"

struct np_call *npi_call_take(struct np_loop *l) {
    struct np_call *c = l->free_calls.first;
    if (LIKELY(c != NULL)) {
        l->free_calls.first = c->next;
        l->free_calls.n--;
    } else {
        c = calloc(1, sizeof(*c));
        if (!c) return NULL;
        c->share.pool = &l->bounds->work;
        arena_init_in(&c->arena, &c->share, NP_CALL_ARENA_CHUNK, NP_CALL_ARENA_MAX);
        buf_init(&c->out, 0);
    }
    c->err = arena_alloc(&c->arena, sizeof(*c->err));
    if (UNLIKELY(!c->err)) {
        npi_call_free(c);
        return NULL;
    }
    err_clear(c->err);
    return c;
}

void npi_call_free(struct np_call *c) {
    arena_fini(&c->arena);
    buf_fini(&c->out);
    free(c);
}

void npi_call_give(struct np_loop *l, struct np_call *c) {
    c->conn = NULL;
    npi_call_set_state(c, NP_CALL_FREE);
    c->work.client = NULL;
    c->had_no_room = false;
    c->n_conflicts = 0;
    c->written = NULL;
    c->share.crowded = false;
    c->n_parts = 0;
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

void npi_call_set_state(struct np_call *call, enum np_call_state state) {
    enum { ENDED = 1u << NP_CALL_DONE | 1u << NP_CALL_WRITTEN | 1u << NP_CALL_FAILED };
    static const unsigned next[NP_CALL_STATES] = {
        [NP_CALL_FREE] = 1u << NP_CALL_FREE | 1u << NP_CALL_PLANNING,
        [NP_CALL_PLANNING] = 1u << NP_CALL_PLANNED | 1u << NP_CALL_QUEUED | 1u << NP_CALL_PARTLY |
                             1u << NP_CALL_FAILED | 1u << NP_CALL_FREE,
        [NP_CALL_PLANNED] = 1u << NP_CALL_ADMITTED | 1u << NP_CALL_QUEUED | 1u << NP_CALL_FAILED,
        [NP_CALL_ADMITTED] = 1u << NP_CALL_QUEUED | 1u << NP_CALL_PARTLY | ENDED,
        [NP_CALL_QUEUED] = 1u << NP_CALL_PLANNING | 1u << NP_CALL_FAILED,
        [NP_CALL_PARTLY] = 1u << NP_CALL_PLANNING | 1u << NP_CALL_QUEUED | 1u << NP_CALL_FAILED,
        [NP_CALL_DONE] = 1u << NP_CALL_FREE,
        [NP_CALL_WRITTEN] = 1u << NP_CALL_FREE,
        [NP_CALL_FAILED] = 1u << NP_CALL_FREE,
    };
    assert(next[call->state] >> state & 1);
    call->state = state;
}

bool npi_call_was_hit_after_apply(const struct np_call *call) {
    return UNLIKELY(call->fault.rule != NULL) && call->fault.rule->after && npi_call_is_applied(call);
}
