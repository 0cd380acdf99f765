#include "native_protocol/dispatch.h"

#include <assert.h>

#include "cql/execute.h"
#include "native_protocol/answer.h"
#include "native_protocol/audit.h"
#include "native_protocol/fault.h"
#include "native_protocol/handshake.h"
#include "native_protocol/loop.h"
#include "native_protocol/posting.h"
#include "native_protocol/recording.h"
#include "native_protocol/trace.h"

/* ---- plan ---- */

/* Reads, evaluates and decides; a write that reads first holds its locks from here to apply. */
static enum cql_outcome plan(struct np_call *call, struct eng_batch *batch, bool blocking) {
    struct np_conn *c = call->conn;
    struct np_loop *l = c->loop;
    const struct np_options *o = l->o;
    /* the loop reads the clock once for the end of a request and the beginning of the next one */
    if (!blocking && !l->now_us) l->now_us = clock_wall_us(o->clock);
    call->cost = cql_cost(o->db, &call->arena);
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
        .noted = call->fault.rule != NULL || call->awaits_room || call->n_conflicts,
        .written = call->written,
    };
    err_clear(&call->err);
    np_reply_init(&call->reply, blocking ? &call->out : npi_conn_out(c), call->env.version, call->env.stream,
                  o->capacity_payload != NP_CAPACITY_OFF);
    call->reply.share = &c->output.share;
    if (np_query_decode(&call->env, call->body, &call->arena, &call->request, &call->options, &call->err))
        return CQL_FAILED;
    np_rows_init(&call->rows, &call->reply, call->options.skip_metadata, &c->client,
                 call->request.prepared_id, &call->err);
    return cql_run(&call->r);
}

/* ---- charge, admit, apply ---- */

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
        call->awaits_room = true;
        call->r.answer.work_class = WORK_READ;
        planned = CQL_OFFLOAD;
    }
    call->outcome = planned;
    if (planned == CQL_OFFLOAD) npi_trace_step(call, NP_TRACE_OFFLOAD, call->r.answer.work_class);
    if (planned == CQL_AGAIN) npi_trace_step(call, NP_TRACE_PART, call->n_parts);
    if (!is_planned(planned)) return;
    npi_trace_step(call, NP_TRACE_PLANNED, 0);
    cql_charge(&call->r, &call->charge);
    npi_trace_step(call, NP_TRACE_SIZED, 0);
    if (npi_fault_may(call)) {
        if (npi_fault_before(call)) return;
        if (npi_fault_cut(call)) cql_charge(&call->r, &call->charge);
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
    bool failed = call->outcome == CQL_FAILED || call->outcome == CQL_CONFLICT;
    if (UNLIKELY(failed) && o->write_failed.fn) { /* the limits get its units back */
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

void npi_call_more(struct np_call *call, struct eng_batch *batch) {
    call->r.batch = batch;
    go_on(call, cql_run_more(&call->r));
}

/* ---- durable, acknowledge, account ---- */

/* Makes the account of a request that succeeds, or that a fault lets fail after apply. */
static void set_account(struct np_call *call) {
    const struct cql_answer *a = &call->r.answer;
    call->account = (struct np_account){
        .opcode = call->env.opcode,
        .read_halves = (int64_t)(call->charge.read_units * 2),
        .write_halves = (int64_t)(call->charge.region_write_units * 2),
        .throttled = a->verdict && limit_refuses(a->verdict),
        .prepared = a->result.kind == RESULT_PREPARED,
        .schema_changed = a->result.kind == RESULT_SCHEMA_CHANGE,
        .failed = call->fault.applied && call->err.set,
        .failure = call->err.code,
    };
    if (call->outcome == CQL_COMMIT && call->conn->loop->o->ledger) {
        call->account.claim = ledger_claim_of(&call->cost, npi_operation_of(a->stmt_kind), call->statement_id);
        call->account.took = took(call);
    }
}

/* Sends the response and accounts it, unless durability does both once the write is durable.
 * Returns false if the connection cannot be answered, or must not be. */
static bool answer(struct np_call *call) {
    struct np_loop *l = call->conn->loop;
    bool hangs_up = UNLIKELY(npi_fault_hangs_up(call));
    /* for a call that was committed elsewhere; the loop requests the sync of its own commits */
    if (hangs_up) eng_want_durable(l->o->eng, call->seq, 0);
    int held = hangs_up || npi_answer_encode(call) ? -1 : npi_answer_deliver(call);
    if (held == 1) return true;
    if (call->account.claim.n) ledger_claim_fini(&call->account.claim);
    np_account(&l->metrics, &call->account, call->account.failed ? NULL : &call->err);
    return held == 0;
}

void npi_call_finish(struct np_call *call) {
    struct np_conn *c = call->conn;
    struct np_loop *l = c->loop;
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
        np_metric_add(&l->metrics, NP_METRIC_WORKER_PARTS, call->n_parts);
        np_metric_add(&l->metrics, NP_METRIC_WORKER_WAIT_US, call->work.waited_us);
        if (!call->err.set && call->r.answer.result.kind == RESULT_SET_KEYSPACE)
            memcpy(c->session.keyspace, call->session.keyspace, sizeof(call->session.keyspace));
    }
    npi_post_statement(call);
    set_account(call);
    bool answered = answer(call);
    if (UNLIKELY(l->o->audit != NULL)) npi_audit_call(call);
    npi_post(call);
    npi_record(call);
    npi_call_forget(call);
    if (call->offloaded) {
        c->offloaded--;
        npi_conn_answered(c);
    }
    npi_call_give(l, call);
    if (!answered) npi_conn_close(c);
    npi_conn_unref(c);
}

/* ---- to the workers ---- */

void npi_call_set_deadline(struct np_call *call, enum cql_work_class class) {
    const struct np_options *o = call->conn->loop->o;
    int64_t now_us = clock_machine_us(o->clock);
    int64_t begins_us = now_us < call->fault.until_us ? call->fault.until_us : now_us;
    if (o->timeout_us[class]) call->work.deadline_us = begins_us + o->timeout_us[class];
}

void npi_call_start_over(struct np_call *call) {
    struct np_conn *c = call->conn;
    const struct cql_answer *a = &call->r.answer;
    np_reply_cancel(&call->reply);
    call->reply = (struct np_reply){0};
    call->work = (struct np_work){.client = &c->work,
                                  .class = a->work_class,
                                  .bytes = npi_call_bytes(call),
                                  .cancelled = &c->gone};
    npi_call_set_deadline(call, a->work_class);
    call->request = (struct cql_request){.params.consistency = call->request.params.consistency};
    call->r = (struct cql_run){
        .in = &call->request,
        .db = c->loop->o->db,
        .err = &call->err,
        .answer = {.stmt_kind = STMT_KINDS, .work_class = a->work_class, .write_type = a->write_type},
        .cancelled = call->work.cancelled,
        .deadline_us = call->work.deadline_us,
    };
}

/* Queues a call whose outcome is OFFLOAD; the wake-up submits it at its end. */
static void offload(struct np_call *call) {
    static const enum np_metric metrics[WORK_CLASSES] = {
        [WORK_READ] = NP_METRIC_OFFLOADED_READS,
        [WORK_UPDATE] = NP_METRIC_OFFLOADED_UPDATES,
        [WORK_SCAN] = NP_METRIC_OFFLOADED_SCANS,
        [WORK_DDL] = NP_METRIC_OFFLOADED_DDL,
    };
    struct np_conn *c = call->conn;
    struct np_loop *l = c->loop;
    call->body = arena_dup(&call->arena, call->body); /* must outlive the loop's window */
    if (!call->body.p) {
        err_nomem(&call->err);
        call->outcome = CQL_FAILED;
        npi_call_finish(call);
        return;
    }
    cql_run_fini(&call->r);
    npi_call_start_over(call);
    call->session = c->session;
    call->offloaded = true;
    c->offloaded++;
    c->in_flight++;
    np_metric_add(&l->metrics, NP_METRIC_IN_FLIGHT, 1);
    np_metric_add(&l->metrics, metrics[call->work.class], 1);
    TAILQ_INSERT_TAIL(&l->leaving, &call->work, entry);
}

/* ---- groups ---- */

static void finish(struct np_call *call, enum cql_outcome planned) {
    go_on(call, planned);
    if (call->outcome == CQL_OFFLOAD) offload(call);
    else npi_call_finish(call);
}

/* A connection that was closed meanwhile has freed its input, and its requests are dropped. */
static void finish_group(struct np_loop *l) {
    unsigned n = l->group.n;
    l->group.n = 0;
    l->group.is_finishing = true;
    for (unsigned i = 0; i < n; i++) {
        struct np_call *call = l->group.calls[i];
        struct np_conn *c = call->conn;
        c->in_flight--;
        if (c->state != NP_CONN_CLOSED) {
            np_reply_place(&call->reply, npi_conn_out(c));
            finish(call, CQL_COMMIT);
        } else {
            npi_call_forget(call);
            npi_call_give(l, call);
            npi_conn_unref(c);
        }
    }
    l->group.is_finishing = l->group.is_timed = false;
    assert(!l->group.n); /* no request was read meanwhile: it would have taken the place of one of these */
}

/* The reply, which has nothing yet, gets its place when the group is finished, because the replies of
 * a connection are written one after the other. */
static void join_group(struct np_call *call) {
    struct np_loop *l = call->conn->loop;
    call->conn->in_flight++;
    l->group.calls[l->group.n++] = call;
    if (l->group.n == NP_GROUP) finish_group(l);
}

/* ---- every envelope ---- */

/* Runs a query request on the loop, or hands it to the workers. */
static void on_query(struct np_conn *c, const struct np_envelope *env, struct slice body) {
    bool overloaded = npi_conn_unsent(c) > NP_OUT_MAX ||
                      (c->throw_on_overload && c->in_flight >= NP_IN_FLIGHT_MAX - 1);
    struct np_call *call = overloaded ? NULL : npi_call_take(c->loop);
    if (!call) {
        struct err e = {0};
        err_set(&e, ERR_OVERLOADED, "Too many requests are in flight on this connection");
        npi_answer_error(c, env, &e);
        npi_record_refused(c, env, body, &e);
        return;
    }
    npi_conn_ref(c);
    call->conn = c;
    call->env = *env;
    call->body = body;
    call->started_us = env->flags & NP_FLAG_TRACING ? clock_machine_us(c->loop->o->clock) : 0;
    call->trace.n = 0;
    call->fault = (struct np_call_fault){0};
    enum cql_outcome planned = plan(call, c->loop->batch, false);
    bool stays = body.p == env->body.p; /* an unpacked body is gone at the next envelope */
    if (planned == CQL_COMMIT && call->r.independent && stays) join_group(call);
    else finish(call, planned);
}

/* Checks the envelope against the state of the connection. Returns 0 if it is valid. */
static int check_envelope(const struct np_conn *c, const struct np_envelope *env, struct err *e) {
    const char *name = np_opcode_name(env->opcode);
    if (c->version && env->version != c->version)
        return err_set(
            e, ERR_PROTOCOL,
            "Invalid message version. Got %u/v%u but previous messages on this connection had version %u/v%u",
            env->version, env->version, c->version, c->version);
    if (env->stream < 0)
        return err_set(e, ERR_PROTOCOL, "Invalid stream id %d: negative ones are the server's", env->stream);
    if (!name) return err_set(e, ERR_PROTOCOL, "Unknown opcode %u", env->opcode);
    if (!np_opcode_is_request(env->opcode))
        return err_set(e, ERR_PROTOCOL, "Wrong protocol direction (expected RESPONSE, got REQUEST) for opcode %u (%s)",
                       env->opcode, name);
    if (c->state == NP_CONN_NEW && env->opcode != NP_STARTUP && env->opcode != NP_OPTIONS)
        return err_set(e, ERR_PROTOCOL, "Unexpected message %s, expecting STARTUP or OPTIONS", name);
    if (c->state == NP_CONN_AUTH && env->opcode != NP_AUTH_RESPONSE && env->opcode != NP_OPTIONS &&
        env->opcode != NP_STARTUP)
        return err_set(e, ERR_PROTOCOL, "Unexpected message %s, expecting SASL_RESPONSE", name);
    return 0;
}

static void dispatch(struct np_conn *c, const struct np_envelope *env) {
    struct err e;
    struct slice body = env->body;
    err_clear(&e);
    if (check_envelope(c, env, &e)) {
        struct np_envelope as = *env;
        if (c->version) as.version = c->version;
        npi_answer_error(c, &as, &e);
        return;
    }
    if (env->flags & NP_FLAG_COMPRESSED && !npi_conn_framed(c)) {
        struct buf *plain = &c->loop->scratch.body;
        buf_clear(plain, NP_WINDOW);
        if (np_body_decompress(c->compression, body, c->loop->o->frame_max, plain, &e)) {
            npi_answer_error(c, env, &e);
            return;
        }
        body = buf_slice(plain);
    }
    switch ((enum np_opcode)env->opcode) {
    case NP_STARTUP: npi_on_STARTUP(c, env, body); break;
    case NP_OPTIONS: npi_on_OPTIONS(c, env, body); break;
    case NP_REGISTER: npi_on_REGISTER(c, env, body); break;
    case NP_AUTH_RESPONSE: npi_on_AUTH_RESPONSE(c, env, body); break;
    case NP_QUERY:
    case NP_PREPARE:
    case NP_EXECUTE:
    case NP_BATCH: on_query(c, env, body); break;
    case NP_ERROR: case NP_READY: case NP_AUTHENTICATE: case NP_SUPPORTED: case NP_RESULT: case NP_EVENT:
    case NP_AUTH_CHALLENGE: case NP_AUTH_SUCCESS: /* responses: check_envelope has refused them */
    case NP_OPCODES: assert(false);
    }
}

const struct np_input_fns npi_dispatch_fns = {.on_envelope = dispatch, .on_end = finish_group};
