#include "native_protocol/answer.h"

#include "base/hot.h"
#include "native_protocol/conn.h"
#include "native_protocol/durability.h"
#include "native_protocol/trace.h"

static void put_failure(struct np_call *call) {
    bool with_charge = call->reply.has_charge;
    struct np_reply *r = &call->reply;
    if (r->out) np_reply_cancel(r);
    else { /* a call that never ran on its worker has no reply yet */
        r->out = &call->out;
        with_charge = call->conn->loop->o->capacity_payload != NP_CAPACITY_OFF;
    }
    np_reply_begin(r, r->out, call->env.version, call->env.stream, NP_ERROR, with_charge);
    np_put_error(r->out, call->env.version, call->err);
}

int npi_answer_deliver(struct np_call *call, const struct np_account *account) {
    struct np_conn *c = call->conn;
    struct np_reply *r = &call->reply;
    bool waits = call->state == NP_CALL_WRITTEN && (!call->err->set || npi_call_was_hit_after_apply(call));
    if (npi_call_was_queued(call)) {
        if (waits && call->r.answer.commit_seq > eng_durable_seq(c->loop->o->eng))
            return npi_hold_call(c->loop->durability, call, account) ? -1 : 1;
        if (c->state != NP_CONN_CLOSED) npi_conn_append(c, &call->out, r);
        return 0;
    }
    if (!waits) return np_output_append_rest(&c->output, r);
    if (r->more.n && np_reply_flatten(r)) return -1;
    if (!call->r.answer.commit_seq)
        return npi_hold(c->loop->durability, c, r->out, r->out->n - r->start, &call->env, account) ? -1 : 1;
    buf_put(&call->out, r->out->p + r->start, r->out->n - r->start);
    r->out->n = r->start;
    return buf_failed(&call->out) || npi_hold_call(c->loop->durability, call, account) ? -1 : 1;
}

/* Whether the answer has more than its result and its charge. */
static bool has_extras(const struct np_call *call) {
    const struct np_conn *c = call->conn;
    bool capacity = call->options.wants_capacity || c->capacity_full ||
                 c->loop->o->capacity_payload == NP_CAPACITY_FULL;
    bool compressed = c->compression != NP_COMPRESS_NONE && !npi_conn_framed(c);
    return capacity || compressed || call->r.answer.n_warnings || call->r.answer.verdict ||
           call->trace;
}

SELDOM static int end_with_extras(struct np_call *call) {
    const struct charge *charge = &call->charge;
    struct np_conn *c = call->conn;
    struct np_loop *l = c->loop;
    uint8_t tracing_id[16];
    struct buf json, throttle;
    buf_init(&json, 0);
    buf_init(&throttle, 0);
    struct np_reply_extras x = {
        .n_warnings = call->r.answer.n_warnings,
        .warnings = call->r.answer.warnings,
        .requested = call->options.wants_capacity || c->capacity_full,
        .compression = npi_conn_framed(c) ? NP_COMPRESS_NONE : c->compression,
        .scratch = &l->scratch.packed,
    };
    if (call->reply.has_charge && (x.requested || l->o->capacity_payload == NP_CAPACITY_FULL)) {
        charge_json(&call->cost, charge, &json);
        x.capacity = buf_slice(&json);
    }
    if (call->reply.has_charge && call->r.answer.verdict) {
        /* the limit that refused the request, else one that would have */
        const struct limit_verdict *v = call->r.answer.verdict;
        bool by_limit = v->over.limit != LIMITS && (v->over.enforced || !v->guidance.enforced);
        limit_over_json(by_limit ? &v->over : &v->guidance, &throttle);
        x.throttle = buf_slice(&throttle);
    }
    if (call->trace && !npi_trace(call, tracing_id)) x.tracing_id = tracing_id;
    int rc = np_reply_end(&call->reply, charge->total, &x);
    buf_fini(&json);
    buf_fini(&throttle);
    return rc;
}

int npi_answer_encode(struct np_call *call) {
    const struct cql_result *res = &call->r.answer.result;
    struct buf *out = call->reply.out;
    uint8_t version = call->env.version;
    if (call->state == NP_CALL_FAILED || (call->err->set && npi_call_was_hit_after_apply(call))) {
        put_failure(call);
    } else {
        np_reply_open(&call->reply, NP_RESULT);
        switch (res->kind) {
        case RESULT_VOID: np_put_void(out); break;
        case RESULT_ROWS: np_rows_end(&call->rows, res); break;
        case RESULT_SET_KEYSPACE: np_put_set_keyspace(out, res->keyspace); break;
        case RESULT_PREPARED:
            np_put_prepared(out, version, cql_prepared_info(res->prepared));
            if (version < 5) cql_client_sent_columns(&call->conn->client, cql_prepared_info(res->prepared));
            break;
        case RESULT_SCHEMA_CHANGE: np_put_schema_change(out, version, res->change); break;
        }
    }
    int rc = UNLIKELY(has_extras(call)) ? end_with_extras(call)
                                        : np_reply_end(&call->reply, call->charge.total, NULL);
    if (LIKELY(!rc)) return 0;
    err_set(call->err, ERR_SERVER, "No memory for the response");
    put_failure(call);
    return np_reply_end(&call->reply, call->charge.total, NULL);
}
