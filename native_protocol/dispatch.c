#include "native_protocol/dispatch.h"

#include <assert.h>
#include <stddef.h>

#include "base/random.h"
#include "cql/execute.h"
#include "native_protocol/answer.h"
#include "native_protocol/audit.h"
#include "native_protocol/durability.h"
#include "native_protocol/faults/faults.h"
#include "native_protocol/login.h"
#include "native_protocol/loop.h"
#include "native_protocol/posting.h"
#include "native_protocol/recording.h"
#include "native_protocol/trace.h"

enum { NO_ROOM_US = 10000 /* until a call without room for its answer checks again */ };

/* ---- failing and starting over ---- */

static void fail(struct np_call *call) {
    cql_abandon(&call->r);
    npi_call_set_state(call, NP_CALL_FAILED);
}

static void set_deadline(struct np_call *call, enum cql_work_class class) {
    const struct np_options *o = call->conn->loop->o;
    int64_t now_us = clock_machine_us(o->clock);
    int64_t begins_us = now_us < call->fault.until_us ? call->fault.until_us : now_us;
    if (o->timeout_us[class]) call->work.deadline_us = begins_us + o->timeout_us[class];
    call->r.deadline_us = call->work.deadline_us;
}

/* Queues the call for a worker, which decodes its body again. Drops the plan and the answer so far, and
 * reduces the request to what reports why it did not run need. On the loop the call is submitted at the
 * end of the wake-up; on a worker its deadline stays. */
static void start_over(struct np_call *call, enum cql_work_class class) {
    static const enum np_metric metrics[WORK_CLASSES] = {
        [WORK_READ] = NP_METRIC_OFFLOADED_READS,
        [WORK_UPDATE] = NP_METRIC_OFFLOADED_UPDATES,
        [WORK_SCAN] = NP_METRIC_OFFLOADED_SCANS,
        [WORK_DDL] = NP_METRIC_OFFLOADED_DDL,
    };
    struct np_conn *c = call->conn;
    struct np_loop *l = c->loop;
    bool leaves_loop = !npi_call_was_queued(call);
    int64_t deadline_us = call->work.deadline_us;
    if (leaves_loop) {
        struct slice *trace = &call->options.traceparent;
        call->body = arena_dup(&call->arena, call->body); /* must outlive the loop's window */
        if (trace->n) *trace = arena_dup(&call->arena, *trace);
        if (!call->body.p) {
            err_nomem(call->err);
            npi_call_set_state(call, NP_CALL_FAILED);
            return;
        }
    }
    npi_call_forget(call);
    /* the cost of a complete plan refers to objects that may be freed meanwhile */
    if (call->state != NP_CALL_PLANNING || call->had_no_room) call->cost = (struct op_cost){.arena = &call->arena};
    err_clear(call->err);
    np_reply_cancel(&call->reply);
    call->reply = (struct np_reply){0};
    call->request = (struct cql_request){.params.consistency = call->request.params.consistency};
    call->work = (struct np_work){
        .client = &c->work, .class = class, .bytes = npi_call_bytes(call), .cancelled = &c->gone};
    call->r = (struct cql_run){
        .in = &call->request,
        .db = l->o->db,
        .err = call->err,
        .answer = {.stmt_kind = STMT_KINDS, .work_class = class, .write_type = call->r.answer.write_type},
        .cancelled = call->work.cancelled,
    };
    npi_call_set_state(call, NP_CALL_QUEUED);
    if (!leaves_loop) {
        call->work.deadline_us = call->r.deadline_us = deadline_us;
        return;
    }
    set_deadline(call, class);
    call->session = c->session;
    c->offloaded++;
    c->in_flight++;
    np_metric_add(&l->metrics, NP_METRIC_IN_FLIGHT, 1);
    np_metric_add(&l->metrics, metrics[class], 1);
    TAILQ_INSERT_TAIL(&l->leaving, &call->work, entry);
}

/* Starts over once there is room for the answer, and holds no memory meanwhile. */
static void start_over_without_room(struct np_call *call, enum cql_work_class class) {
    call->had_no_room = true;
    start_over(call, class);
    call->work.not_before_us = clock_machine_us(call->conn->loop->o->clock) + NO_ROOM_US;
}

/* Another server has written to the same partitions at the same time. The call has no effect yet,
 * except on the partitions that it keeps a list of, and its units were given back. So it starts over
 * after a random time, whose limit doubles with each conflict; otherwise the two servers would
 * conflict again. After too many conflicts, or at its deadline, it fails with the engine's error. */
static void avoid_conflict(struct np_call *call) {
    enum { CONFLICTS_MAX = 64, DOUBLED_MAX = 6, LEAST_US = 1000 };
    uint32_t doubled = call->n_conflicts < DOUBLED_MAX ? call->n_conflicts : DOUBLED_MAX, random;
    struct err failed = {0};
    int64_t now_us = clock_machine_us(call->conn->loop->o->clock), deadline_us = call->work.deadline_us;
    if (random_bytes(&random, sizeof(random), &failed)) random = (uint32_t)now_us;
    int64_t then_us = now_us + random % (LEAST_US << doubled);
    if (++call->n_conflicts == CONFLICTS_MAX || (deadline_us && then_us >= deadline_us)) {
        npi_call_set_state(call, NP_CALL_FAILED);
        return;
    }
    call->written = call->r.written;
    start_over(call, call->r.answer.work_class);
    call->work.not_before_us = then_us;
}

/* ---- faults ---- */

static int64_t machine_us(const struct np_call *call) { return clock_machine_us(call->conn->loop->o->clock); }

static void set_fault_error(struct np_call *call, const struct fault_rule *rule) {
    if (rule->fails) fault_rule_fail(rule, &call->r, call->err);
    if (rule->close) err_set(call->err, ERR_SERVER, "The fault %s closed the connection", rule->name);
}

/* Applies the fault that hits a planned and charged call, if any does. Returns true if the call has failed or
 * starts over. */
SELDOM static bool hit_before_apply(struct np_call *call) {
    if (!call->fault.checked) { /* once in a call, on the thread and in the part that plans it first */
        call->fault.checked = true;
        call->fault.rule = faults_hit(call->conn->loop->o->faults, &call->r, call->conn->account.id);
        if (call->fault.rule) npi_trace_step(call, NP_TRACE_FAULT, 0);
    }
    const struct fault_rule *rule = call->fault.rule;
    if (rule && !call->err->set) {
        bool waits = rule->delay_ms && !call->fault.until_us;
        /* a delay after apply takes place on a worker, too, whose queue can delay the answer */
        if (waits && (!rule->after || !npi_call_was_queued(call))) {
            enum stmt_category category = stmt_category(call->r.answer.stmt_kind);
            enum cql_work_class class =
                category == STMT_IS_QUERY ? WORK_READ : category == STMT_IS_DML ? WORK_UPDATE : WORK_DDL;
            if (!rule->after) call->fault.until_us = machine_us(call) + rule->delay_ms * 1000;
            start_over(call, class);
            if (call->state == NP_CALL_QUEUED) set_deadline(call, class);
            call->work.not_before_us = call->fault.until_us;
            return true;
        }
        if (!rule->after) set_fault_error(call, rule);
    }
    if (call->err->set) {
        fail(call);
        return true;
    }
    if (rule && rule->partly) {
        cql_keep_half(&call->r);
        cql_charge(&call->r, &call->charge);
    }
    return false;
}

/* Returns true if the fault closes the connection without an answer; the answer so far is dropped. */
static bool fault_hangs_up(struct np_call *call) {
    const struct fault_rule *rule = call->fault.rule;
    if (LIKELY(!rule) || !rule->close || !call->err->set || rule->after != npi_call_was_hit_after_apply(call))
        return false;
    if (call->reply.out) np_reply_cancel(&call->reply);
    return true;
}

/* ---- plan ---- */

/* Reads, evaluates and decides; a write that reads first holds its locks from here to apply. */
static enum cql_outcome plan(struct np_call *call, struct eng_batch *batch, bool blocking) {
    struct np_conn *c = call->conn;
    struct np_loop *l = c->loop;
    const struct np_options *o = l->o;
    npi_call_set_state(call, NP_CALL_PLANNING);
    /* the loop reads the clock once for the end of a request and the beginning of the next one */
    if (!blocking && !l->now_us) l->now_us = clock_wall_us(o->clock);
    if (!blocking) call->begun_us = l->now_us;
    call->cost = cql_cost(o->db, &call->arena);
    call->charge = (struct charge){0};
    call->r = (struct cql_run){
        .in = &call->request,
        .db = o->db,
        .session = blocking ? &call->session : &c->session,
        .arena = &call->arena,
        .err = call->err,
        .cost = &call->cost,
        .sink = &call->rows.sink,
        .batch = batch,
        .now_us = blocking ? clock_wall_us(o->clock) : l->now_us,
        .blocking = blocking,
        .cancelled = blocking ? call->work.cancelled : NULL,
        .deadline_us = blocking ? call->work.deadline_us : 0,
        .answer.stmt_kind = STMT_KINDS,
        .noted = call->fault.rule != NULL || call->had_no_room || call->n_conflicts,
        .written = call->written,
    };
    np_reply_init(&call->reply, blocking ? &call->out : npi_conn_out(c), call->env.version, call->env.stream,
                  o->capacity_payload != NP_CAPACITY_OFF);
    call->reply.share = &c->output.share;
    if (np_query_decode(&call->env, call->body, &call->arena, &call->request, &call->options, call->err))
        return CQL_FAILED;
    np_rows_init(&call->rows, &call->reply, call->options.skip_metadata, &c->client,
                 call->request.prepared_id, call->err);
    return cql_run(&call->r);
}

/* ---- charge, admit, apply ---- */

static struct limit_took took(const struct np_call *call) {
    return limit_took(call->r.answer.verdict, call->r.answer.admitted_us);
}

/* Takes a call through charge, admit and apply, when its plan is complete. Afterwards the call has ended,
 * waits for its next part, or starts over. */
static void carry_out(struct np_call *call, enum cql_outcome planned) {
    const struct np_options *o = call->conn->loop->o;
    switch (planned) {
    case CQL_DONE:
    case CQL_COMMIT: break;
    case CQL_AGAIN:
        npi_trace_step(call, NP_TRACE_PART, call->n_parts);
        npi_call_set_state(call, NP_CALL_PARTLY);
        return;
    case CQL_OFFLOAD:
        if (call->r.blocking) {
            err_set(call->err, ERR_SERVER, "The request could not run");
            npi_call_set_state(call, NP_CALL_FAILED);
            return;
        }
        npi_trace_step(call, NP_TRACE_OFFLOAD, call->r.answer.work_class);
        start_over(call, call->r.answer.work_class);
        return;
    case CQL_FAILED:
    case CQL_CONFLICT:
        if (call->reply.no_room && call->r.answer.stmt_kind == STMT_SELECT) { /* for a small answer */
            npi_trace_step(call, NP_TRACE_OFFLOAD, WORK_READ);
            start_over_without_room(call, WORK_READ);
        } else npi_call_set_state(call, NP_CALL_FAILED);
        return;
    }
    npi_call_set_state(call, NP_CALL_PLANNED);
    npi_trace_step(call, NP_TRACE_PLANNED, 0);
    cql_charge(&call->r, &call->charge);
    npi_trace_step(call, NP_TRACE_SIZED, 0);
    bool may_hit = UNLIKELY(o->faults != NULL) && (faults_count(o->faults) || call->fault.rule);
    if (may_hit && hit_before_apply(call)) return;
    if (cql_admit(&call->r)) {
        npi_trace_step(call, NP_TRACE_REFUSED, 0);
        fail(call);
        return;
    }
    npi_call_set_state(call, NP_CALL_ADMITTED);
    npi_trace_step(call, NP_TRACE_ADMITTED, 0);
    enum cql_outcome applied = cql_apply(&call->r, planned);
    if (LIKELY(applied == CQL_DONE || applied == CQL_COMMIT)) {
        if (applied == CQL_COMMIT) npi_trace_step(call, NP_TRACE_APPLIED, 0);
        npi_call_set_state(call, applied == CQL_COMMIT ? NP_CALL_WRITTEN : NP_CALL_DONE);
        if (LIKELY(!npi_call_was_hit_after_apply(call))) return;
        const struct fault_rule *rule = call->fault.rule;
        if (rule->delay_ms) call->fault.until_us = machine_us(call) + rule->delay_ms * 1000;
        set_fault_error(call, rule);
        return;
    }
    if (applied == CQL_AGAIN) {
        npi_call_set_state(call, NP_CALL_PARTLY);
        return;
    }
    if (o->write_failed.fn) { /* the limits get its units back */
        struct ledger_posting posting = ledger_posting_of(&call->cost, npi_operation_of(call->r.answer.stmt_kind), 0);
        o->write_failed.fn(o->write_failed.arg, &posting, took(call));
        ledger_posting_fini(&posting);
    }
    if (applied == CQL_CONFLICT) avoid_conflict(call);
    else npi_call_set_state(call, NP_CALL_FAILED);
}

/* ---- durable, acknowledge, account ---- */

/* Returns the account of a call that was applied or has failed. */
static struct np_account account_of(const struct np_call *call) {
    const struct cql_answer *a = &call->r.answer;
    struct np_account account = {
        .opcode = call->env.opcode,
        .read_halves = (int64_t)(call->charge.read_units * 2),
        .write_halves = (int64_t)(call->charge.region_write_units * 2),
        .throttled = a->verdict && limit_refuses(a->verdict),
        .prepared = a->result.kind == RESULT_PREPARED,
        .schema_changed = a->result.kind == RESULT_SCHEMA_CHANGE,
        .failed = npi_call_was_hit_after_apply(call) && call->err->set,
        .failure = call->err->code,
    };
    if (call->state != NP_CALL_WRITTEN) return account;
    account.kind = npi_kind_of(call);
    account.begun_us = call->begun_us;
    if (call->conn->loop->o->ledger) {
        account.posting = ledger_posting_of(&call->cost, npi_operation_of(a->stmt_kind), call->statement_id);
        account.took = took(call);
    }
    return account;
}

/* Sends the response and accounts it, unless durability does both once the write is durable; then *is_held
 * becomes true. Returns false if the connection cannot be answered, or must not be. */
static bool answer(struct np_call *call, bool *is_held) {
    struct np_loop *l = call->conn->loop;
    struct np_account account = account_of(call);
    bool hangs_up = UNLIKELY(fault_hangs_up(call));
    /* for a call that a worker committed; the loop requests the sync of its own commits */
    if (hangs_up && npi_call_is_applied(call)) eng_want_durable(l->o->eng, call->r.answer.commit_seq, 0);
    bool encoded = !hangs_up && !npi_answer_encode(call);
    if (UNLIKELY(call->trace != NULL)) account.trace = call->trace->session;
    int held = encoded ? npi_answer_deliver(call, &account) : -1;
    *is_held = held == 1;
    if (*is_held) return true;
    if (account.posting.n) ledger_posting_fini(&account.posting);
    np_account(&l->metrics, &account, account.failed ? NULL : call->err);
    return held == 0;
}

/* Reports the outcome of a call to all that record requests. */
static void observe(struct np_call *call, bool is_held) {
    if (UNLIKELY(call->conn->loop->o->audit != NULL)) npi_audit_call(call);
    npi_post(call, is_held);
    npi_record(call);
}

/* The one exit of all calls: answers, reports and frees a call that has ended. The loop's thread. */
static void finish(struct np_call *call) {
    struct np_conn *c = call->conn;
    struct np_loop *l = c->loop;
    bool was_queued = npi_call_was_queued(call);
    if (call->state == NP_CALL_FAILED) {
        if (!call->err->set) err_set(call->err, ERR_SERVER, "The request failed without saying why");
        if (call->share.crowded && call->err->code == ERR_SERVER) {
            err_clear(call->err);
            err_set(call->err, ERR_OVERLOADED,
                    "The requests that run hold all the memory that they may together (--max-work-bytes); ask for less "
                    "at once, or again later");
        }
        call->charge = (struct charge){0};
    }
    if (was_queued) {
        np_metric_add(&l->metrics, NP_METRIC_WORKER_PARTS, call->n_parts);
        np_metric_add(&l->metrics, NP_METRIC_WORKER_WAIT_US, call->work.waited_us);
        if (!call->err->set && call->r.answer.result.kind == RESULT_SET_KEYSPACE)
            memcpy(c->session.keyspace, call->session.keyspace, sizeof(call->session.keyspace));
    }
    npi_post_statement(call);
    bool is_held, answered = answer(call, &is_held);
    observe(call, is_held);
    npi_call_forget(call);
    if (was_queued) {
        c->offloaded--;
        npi_conn_answered(c);
    }
    npi_call_give(l, call);
    if (!answered) npi_conn_close(c);
    npi_conn_unref(c);
}

/* ---- on a worker ---- */

static struct np_call *call_of(struct np_work *w) {
    return (struct np_call *)((char *)w - offsetof(struct np_call, work));
}

/* Delays a call whose answer would only wait in memory: while the connection has not read its
 * earlier answers, or all connections together hold too many unread bytes. The time that the client
 * takes to read does not count against the request's deadline. */
static enum np_may may_run(struct np_call *call) {
    struct np_share *unread = &call->conn->output.share;
    enum cql_work_class class = call->work.class;
    if (call->state == NP_CALL_PARTLY) {
        enum np_may may = npi_share_may_make(unread, &call->reply, call->reply.charged);
        if (may == NP_MAY_WAIT && npi_share_has_unread(unread)) set_deadline(call, class);
        return may;
    }
    if (class != WORK_READ && class != WORK_SCAN) return NP_MAY_GO_ON;
    if (npi_share_bytes(unread) > NP_SHARE_OWN) {
        set_deadline(call, class);
        return NP_MAY_WAIT;
    }
    return call->had_no_room && !npi_share_has_room(unread) ? NP_MAY_WAIT : NP_MAY_GO_ON;
}

static enum np_work_part run(struct np_work *w, struct eng_batch *batch) {
    struct np_call *call = call_of(w);
    if (UNLIKELY(call->fault.until_us != 0) && machine_us(call) < call->fault.until_us) {
        w->not_before_us = call->fault.until_us;
        return NP_PART_LATER;
    }
    if (npi_call_is_applied(call)) return NP_PART_LAST;
    enum np_may may = may_run(call);
    if (may == NP_MAY_WAIT) {
        w->not_before_us = machine_us(call) + NO_ROOM_US;
        return NP_PART_LATER;
    }
    if (may == NP_MAY_GIVE_UP && call->reply.charged <= NP_SHARE_OWN) {
        start_over_without_room(call, call->r.answer.work_class);
        return NP_PART_LATER;
    }
    if (may == NP_MAY_GIVE_UP) {
        npi_call_set_state(call, NP_CALL_FAILED);
        np_err_no_room(call->err);
        return NP_PART_LAST;
    }
    call->n_parts++;
    if (call->state == NP_CALL_PARTLY) {
        call->r.batch = batch;
        npi_call_set_state(call, NP_CALL_PLANNING);
        carry_out(call, cql_run_more(&call->r));
    } else {
        npi_trace_step(call, NP_TRACE_WORKER, w->waited_us);
        carry_out(call, plan(call, batch, true));
    }
    if (call->state == NP_CALL_QUEUED) return NP_PART_LATER;
    if (call->state == NP_CALL_PARTLY) {
        w->bytes = npi_call_bytes(call);
        if (call->r.answer.deadline_per_part) set_deadline(call, call->r.answer.work_class);
        w->not_before_us = call->r.answer.again_us;
        return w->not_before_us ? NP_PART_LATER : NP_PART_MORE;
    }
    if (LIKELY(!call->fault.until_us) || machine_us(call) >= call->fault.until_us) return NP_PART_LAST;
    set_deadline(call, w->class); /* only the answer waits */
    w->bytes = npi_call_bytes(call);
    w->not_before_us = call->fault.until_us;
    return NP_PART_LATER;
}

static void set_end_error(struct np_call *call, enum np_work_end why) {
    bool ddl = call->work.class == WORK_DDL, waited_for_room = call->state == NP_CALL_QUEUED && call->had_no_room;
    npi_call_set_state(call, NP_CALL_FAILED);
    switch (why) {
    case NP_WORK_STALE:
        if (waited_for_room && !atomic_load(call->work.cancelled)) np_err_no_room(call->err);
        else if (!cql_check_running(&call->r)) err_set(call->err, ERR_SERVER, "The request could not run in time");
        return;
    case NP_WORK_NO_ROOM:
        err_set(call->err, ERR_OVERLOADED,
                "Too many requests wait for the storage, and this connection has the most of them");
        return;
    case NP_WORK_STOPPING:
        if (ddl)
            err_set(call->err, ERR_SERVER,
                    "The server is stopping; a schema change that has begun continues when it starts again");
        else err_set(call->err, ERR_OVERLOADED, "The server is stopping");
        return;
    case NP_WORK_DONE: return;
    }
}

/* A call is back from its worker. */
static void returned(struct np_task *x, bool ended) {
    struct np_call *call = (struct np_call *)x;
    if (!ended) {
        finish(call);
        return;
    }
    npi_call_forget(call);
    np_reply_drop(&call->reply);
    npi_conn_unref(call->conn);
    npi_call_free(call);
}

static void ended(struct np_work *w, enum np_work_end why) {
    struct np_call *call = call_of(w);
    if (why != NP_WORK_DONE && !npi_call_is_applied(call)) set_end_error(call, why);
    /* frees the memory now: other requests may need it before the loop handles this call */
    if (call->state == NP_CALL_FAILED) np_reply_drop(&call->reply);
    np_reply_made(&call->reply);
    call->task.done = returned;
    npi_inbox_give(&call->conn->loop->inbox, &call->task);
}

const struct np_work_ops npi_dispatch_work = {.run = run, .ended = ended};

/* ---- groups ---- */

static void finish_planned(struct np_call *call, enum cql_outcome planned) {
    carry_out(call, planned);
    if (call->state != NP_CALL_QUEUED) finish(call);
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
            finish_planned(call, CQL_COMMIT);
        } else {
            npi_call_forget(call);
            npi_call_give(l, call);
            npi_conn_unref(c);
        }
    }
    l->group.is_finishing = l->group.is_timed = false;
    assert(!l->group.n); /* no request was read meanwhile: it would have taken the place of one of these */
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
    call->trace = env->flags & NP_FLAG_TRACING ? npi_trace_new(call) : NULL;
    memset(&call->fault, 0, sizeof(call->fault));
    enum cql_outcome planned = plan(call, c->loop->batch, false);
    bool stays = body.p == env->body.p; /* an unpacked body is overwritten by the next envelope */
    if (planned != CQL_COMMIT || !call->r.independent || !stays) {
        finish_planned(call, planned);
        return;
    }
    /* The reply, which has nothing yet, gets its position when the group is finished, because the replies
     * of a connection are written one after the other. */
    struct np_loop *l = c->loop;
    c->in_flight++;
    l->group.calls[l->group.n++] = call;
    if (l->group.n == NP_GROUP) finish_group(l);
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
