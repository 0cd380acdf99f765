#include "native_protocol/sequence.h"

#include "metering/charge.h"
#include "native_protocol/answer.h"
#include "native_protocol/audit.h"
#include "native_protocol/fault.h"
#include "native_protocol/conn.h"
#include "native_protocol/loop.h"
#include "native_protocol/posting.h"
#include "native_protocol/trace.h"
#include "native_protocol/recording.h"

/* ---- plan ---- */

/* Reads, evaluates and decides; a write that reads first holds its locks from here to apply. */
static enum cql_outcome plan(struct np_call *call, struct eng_batch *batch, bool blocking) {
    struct np_conn *c = call->conn;
    struct np_loop *l = c->loop;
    const struct np_options *o = l->o;
    /* the loop reads the clock once for the end of a request and the beginning of the next one */
    if (!blocking && !l->now_us) l->now_us = clock_wall_us(o->clock);
    call->cost = (struct op_cost){.arena = &call->arena, .size_model = o->size_model, .write_size = o->write_size,
                                  .timestamp_size = o->timestamp_size, .unmetered = o->unmetered};
    call->charge = (struct charge){0};
    call->r = (struct cql_run){
        .in = &call->request,
        .db = o->db,
        .session = blocking ? &call->session : &c->session,
        .arena = &call->arena,
        .err = &call->err,
        .cost = &call->cost,
        .sink = &call->rows.sink,
        .batch = batch,
        .now_us = blocking ? clock_wall_us(o->clock) : l->now_us,
        .blocking = blocking,
        .cancelled = blocking ? call->work.cancelled : NULL,
        .deadline_us = blocking ? call->work.deadline_us : 0,
        .answer.stmt_kind = STMT_KINDS,
        .noted = call->fault.rule != NULL || call->crowded_out,
    };
    err_clear(&call->err);
    np_reply_begin(&call->reply, blocking ? &call->out : npi_conn_out(c), call->env.version, call->env.stream,
                   NP_RESULT, o->capacity_payload != NP_CAPACITY_OFF);
    call->reply.share = &c->output.share;
    if (np_query_decode(&call->env, call->body, &call->arena, &call->request, &call->options, &call->err))
        return CQL_FAILED;
    np_rows_init(&call->rows, &call->reply, call->options.skip_metadata, &call->err);
    return cql_run(&call->r);
}

/* ---- size, admit, apply ---- */

enum charge_consistency npi_call_consistency(const struct np_call *call) {
    uint16_t level = call->r.in->params.consistency;
    return level == CL_ONE || level == CL_LOCAL_ONE ? CHARGE_EVENTUAL : CHARGE_STRONG;
}

void npi_call_size(struct np_call *call) {
    if (UNLIKELY(call->cost.unmetered)) return;
    charge_compute(&call->cost, npi_call_consistency(call), &call->charge);
}

static struct limit_took took(const struct np_call *call) {
    return limit_took(call->r.answer.verdict, call->r.answer.admitted_us);
}

static bool is_planned(enum cql_outcome o) { return o == CQL_DONE || o == CQL_COMMIT; }

static void go_on(struct np_call *call, enum cql_outcome planned) {
    if (UNLIKELY(planned == CQL_FAILED) && call->reply.no_room && call->r.answer.stmt_kind == STMT_SELECT) {
        /* There is no room for a small answer: the read starts over on a worker once there is room,
         * and holds no memory meanwhile. */
        npi_call_unplan(call);
        err_clear(&call->err);
        call->crowded_out = true;
        call->r.answer.work_class = WORK_READ;
        planned = CQL_OFFLOAD;
    }
    call->outcome = planned;
    if (planned == CQL_OFFLOAD) npi_trace_step(call, NP_TRACE_OFFLOAD, call->r.answer.work_class);
    if (planned == CQL_AGAIN) npi_trace_step(call, NP_TRACE_PART, call->n_parts);
    if (!is_planned(planned)) return;
    npi_trace_step(call, NP_TRACE_PLANNED, 0);
    npi_call_size(call);
    npi_trace_step(call, NP_TRACE_SIZED, 0);
    if (npi_fault_may(call)) {
        if (npi_fault_before(call)) return;
        if (npi_fault_cut(call)) npi_call_size(call);
    }
    if (cql_admit(&call->r)) {
        npi_trace_step(call, NP_TRACE_REFUSED, 0);
        cql_abandon(&call->r);
        call->outcome = CQL_FAILED;
        return;
    }
    npi_trace_step(call, NP_TRACE_ADMITTED, 0);
    call->outcome = cql_apply(&call->r, planned);
    call->seq = call->r.answer.commit_seq;
    if (call->outcome == CQL_COMMIT) npi_trace_step(call, NP_TRACE_APPLIED, 0);
    const struct np_options *o = call->conn->loop->o;
    if (UNLIKELY(call->outcome == CQL_FAILED) && o->write_failed.fn) { /* the limits get its units back */
        struct ledger_claim claim = ledger_claim_of(&call->cost, npi_operation_of(call->r.answer.stmt_kind), 0);
        o->write_failed.fn(o->write_failed.arg, &claim, took(call));
        ledger_claim_fini(&claim);
    }
    if (UNLIKELY(call->fault.rule != NULL) && is_planned(call->outcome)) npi_fault_after(call);
}

void npi_call_run(struct np_call *call, struct eng_batch *batch) {
    npi_trace_step(call, NP_TRACE_WORKER, call->work.waited_us);
    go_on(call, plan(call, batch, true));
}

void npi_call_plan(struct np_call *call) { call->outcome = plan(call, call->conn->loop->batch, false); }

void npi_call_go_on(struct np_call *call) { go_on(call, call->outcome); }

void npi_call_more(struct np_call *call, struct eng_batch *batch) {
    call->r.batch = batch;
    go_on(call, cql_run_more(&call->r));
}

/* ---- durable, acknowledge, account ---- */

/* Sends and accounts the response; for a write that must become durable first, the loop does both
 * then. False: the connection cannot be answered, or must not be. */
static bool acknowledge_and_account(struct np_call *call) {
    call->account = np_account_of(call->env.opcode, &call->charge);
    call->account.throttled = call->r.answer.verdict && limit_refuses(call->r.answer.verdict);
    call->account.prepared = call->r.answer.result.kind == RESULT_PREPARED;
    call->account.schema_changed = call->r.answer.result.kind == RESULT_SCHEMA_CHANGE;
    call->account.failed = call->fault.applied && call->err.set;
    if (call->account.failed) call->account.failure = call->err.code;
    if (call->outcome == CQL_COMMIT && call->conn->loop->o->ledger) {
        enum operation operation = npi_operation_of(call->r.answer.stmt_kind);
        call->account.claim = ledger_claim_of(&call->cost, operation, call->statement_id);
        call->account.took = took(call);
    }
    if (UNLIKELY(npi_fault_hangs_up(call))) {
        /* for a call that was committed elsewhere; the loop requests the sync of its own commits */
        eng_want_durable(call->conn->loop->o->eng, call->seq, 0);
        ledger_claim_fini(&call->account.claim);
        np_account(&call->conn->loop->metrics, &call->account, call->account.failed ? NULL : &call->err);
        return false;
    }
    int held = npi_answer_encode(call) ? -1 : npi_answer_deliver(call);
    if (held != 1 && call->account.claim.n) ledger_claim_fini(&call->account.claim);
    if (held != 1) np_account(&call->conn->loop->metrics, &call->account, call->account.failed ? NULL : &call->err);
    return held >= 0;
}

static void answer(struct np_call *call) {
    if (call->outcome == CQL_FAILED) {
        if (!call->err.set) err_set(&call->err, ERR_SERVER, "The request failed without saying why");
        if (call->share.crowded && call->err.code == ERR_SERVER) {
            err_clear(&call->err);
            err_set(&call->err, ERR_OVERLOADED,
                    "The requests that run hold all the memory that they may together (--max-work-bytes); ask for less "
                    "at once, or again later");
        }
        call->charge = (struct charge){0};
    }
    if (call->offloaded) {
        struct np_metrics *m = &call->conn->loop->metrics;
        np_metric_add(m, NP_METRIC_WORKER_PARTS, call->n_parts);
        np_metric_add(m, NP_METRIC_WORKER_WAIT_US, call->work.waited_us);
        if (!call->err.set && call->r.answer.result.kind == RESULT_SET_KEYSPACE)
            memcpy(call->conn->session.keyspace, call->session.keyspace, sizeof(call->session.keyspace));
    }
    npi_post_name(call);
    call->broken = !acknowledge_and_account(call);
}

void npi_call_let_go(struct np_call *call) {
    struct np_conn *c = call->conn;
    struct np_loop *l = c->loop;
    bool broken = call->broken;
    npi_call_forget(call);
    if (call->offloaded) {
        c->offloaded--;
        npi_conn_answered(c);
    }
    npi_call_give(l, call);
    if (broken) npi_conn_close(c);
    npi_conn_unref(c);
}

void npi_call_finish(struct np_call *call) {
    struct np_loop *l = call->conn->loop;
    answer(call);
    l->now_us = clock_wall_us(l->o->clock);
    npi_audit_call(call);
    npi_post(call);
    npi_record(call);
    npi_call_let_go(call);
}
