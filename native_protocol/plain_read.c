#include "native_protocol/plain_read.h"

#include <assert.h>

#include "base/hot.h"
#include "metering/charge.h"
#include "native_protocol/answer.h"
#include "native_protocol/audit.h"
#include "native_protocol/fault.h"
#include "native_protocol/conn.h"
#include "native_protocol/loop.h"
#include "native_protocol/posting.h"
#include "native_protocol/recording.h"
#include "native_protocol/sequence.h"

bool npi_plain_may(const struct np_conn *c, const struct np_envelope *env) {
    const struct np_options *o = c->loop->o;
    bool plain = env->opcode == NP_EXECUTE && env->stream >= 0 && env->body.n > sizeof(c->loop->plain.id) &&
                 !(env->flags & (NP_FLAG_TRACING | NP_FLAG_PAYLOAD));
    bool answered_plainly = !c->capacity_full && o->capacity_payload != NP_CAPACITY_FULL &&
                            (npi_conn_framed(c) || c->compression == NP_COMPRESS_NONE);
    if (!plain || !answered_plainly || c->state != NP_CONN_READY || env->version != c->version) return false;
    const struct np_plain *p = &c->loop->plain;
    if (p->n && (p->conn != c || memcmp(env->body.p, p->id, sizeof(p->id)))) return false;
    if (npi_fault_any(o) || cql_admits(o->db)) return false;
    return !o->audit && !npi_post_slow_us(o) && !npi_records(o); /* these need each single request */
}

static void charge(struct np_call *call) {
    if (UNLIKELY(!charge_row_read(&call->cost, npi_call_consistency(call)))) npi_call_size(call);
}

/* False: the ledger needs the whole request. */
SELDOM static bool post_first(const struct np_call *call, struct np_plain *p) {
    struct np_conn *c = call->conn;
    struct np_loop *l = c->loop;
    if (!l->o->ledger) return true;
    if (p->statement_id)
        p->in = ledger_put_read(l->o->ledger, l->number, &c->account, p->statement_id, &call->cost, p->began_us);
    return p->in != NULL;
}

bool npi_plain_answer(struct np_call *call) {
    struct np_loop *l = call->conn->loop;
    struct np_plain *p = &l->plain;
    const struct cql_run *r = &call->r;
    const struct np_reply *reply = &call->reply;
    /* the rows are in the answer, and only the charge is missing */
    const struct cql_answer *a = &r->answer;
    bool read = call->outcome == CQL_DONE && a->stmt_kind == STMT_SELECT && a->result.kind == RESULT_ROWS && !r->apply;
    bool more = reply->more.n || reply->tail.p || buf_failed(reply->out) || r->answer.n_warnings;
    bool plain = read && !more && !call->cost.is_system && call->cost.reads && !call->cost.reads->next;
    if (UNLIKELY(!plain)) return false;
    if (!p->n) {
        p->conn = call->conn;
        p->in = NULL;
        p->began_us = call->r.now_us;
        p->statement_id = call->r.answer.fingerprint.p ? load_u64(call->r.in->prepared_id.p) : 0;
        memcpy(p->id, call->body.p, sizeof(p->id));
    }
    assert(p->began_us == call->r.now_us); /* Q1 */
    if (LIKELY(!call->cost.unmetered)) {
        charge(call);
        /* to the ledger's queue, mostly behind another read of the same statement (Q1) */
        bool posted = LIKELY(p->in && shard_read_again(p->in, &call->cost)) || post_first(call, p);
        if (UNLIKELY(!posted)) return false;
    }
    npi_answer_plain(call);
    p->read_halves += call->cost.reads->halves;
    npi_call_let_go(call);
    if (++p->n == NP_PLAIN_READS) npi_loop_record_reads(l);
    return true;
}
