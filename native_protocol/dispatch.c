#include "native_protocol/dispatch.h"

#include "metering/charge.h"
#include "native_protocol/loop.h"
#include "native_protocol/offload.h"
#include "native_protocol/trace.h"

/* ---- responses that need no call ---- */

static void answer_error(struct np_conn *c, const struct np_envelope *env, const struct err *e) {
    npi_answer_error(c, env->version, env->stream, env->opcode, e);
}

static void answer_empty(struct np_conn *c, const struct np_envelope *env, enum np_opcode opcode) {
    struct np_reply r;
    np_reply_begin(&r, npi_conn_out(c), env->version, env->stream, opcode, false);
    npi_conn_reply(c, &r);
    np_metric_request(&c->loop->metrics, env->opcode, NP_OUTCOME_OK);
}

static void on_STARTUP(struct np_conn *c, const struct np_envelope *env, struct slice body) {
    struct np_startup s;
    struct err e = {0};
    if (c->state != NP_CONN_NEW)
        err_set(&e, ERR_PROTOCOL, "Unexpected message STARTUP, the connection is already initialized");
    else if (!np_startup_decode(env->version, body, &s, &e)) {
        c->version = c->session.protocol_version = env->version;
        npi_conn_set_state(c, NP_CONN_READY);
        c->throw_on_overload = s.throw_on_overload;
        c->capacity_full = s.capacity_full;
        /* the answer to STARTUP is the last envelope outside of segments, and is never compressed */
        answer_empty(c, env, NP_READY);
        c->compression = s.compression;
        if (env->version >= 5 && np_output_begin_framing(&c->output, s.compression == NP_COMPRESS_LZ4)) npi_conn_close(c);
        return;
    }
    answer_error(c, env, &e);
}

static void on_OPTIONS(struct np_conn *c, const struct np_envelope *env, struct slice body) {
    (void)body;
    struct np_reply r;
    np_reply_begin(&r, npi_conn_out(c), env->version, env->stream, NP_SUPPORTED, false);
    np_put_supported(r.out, catalog_node(c->loop->o->catalog)->cql_version);
    npi_conn_reply(c, &r);
    np_metric_request(&c->loop->metrics, env->opcode, NP_OUTCOME_OK);
}

static void on_REGISTER(struct np_conn *c, const struct np_envelope *env, struct slice body) {
    struct err e = {0};
    unsigned events;
    if (np_register_decode(body, &events, &e)) {
        answer_error(c, env, &e);
        return;
    }
    c->events |= events;
    answer_empty(c, env, NP_READY);
}

static void on_AUTH_RESPONSE(struct np_conn *c, const struct np_envelope *env, struct slice body) {
    struct err e = {0};
    struct slice token;
    if (!np_auth_decode(body, &token, &e))
        err_set(&e, ERR_PROTOCOL, "Unexpected message AUTH_RESPONSE, no authentication is going on");
    answer_error(c, env, &e);
}

/* ---- query requests ---- */

void npi_call_run(struct np_call *call, struct eng_batch *batch, bool blocking) {
    struct np_conn *c = call->conn;
    const struct np_options *o = c->loop->o;
    call->cost = (struct op_cost){.arena = &call->arena, .size_model = o->size_model};
    call->r = (struct cql_request){
        .db = o->db,
        .session = blocking ? &call->session : &c->session,
        .arena = &call->arena,
        .err = &call->err,
        .cost = &call->cost,
        .sink = &call->rows.sink,
        .batch = batch,
        .now_us = clock_wall_us(o->clock),
        .blocking = blocking,
        .cancelled = blocking ? call->work.cancelled : NULL,
        .deadline_us = blocking ? call->work.deadline_us : 0,
        .stmt_kind = STMT_KINDS,
    };
    err_clear(&call->err);
    call->outcome = CQL_FAILED;
    np_reply_begin(&call->reply, blocking ? &call->out : npi_conn_out(c), call->env.version, call->env.stream, NP_RESULT,
                   o->capacity_payload != NP_CAPACITY_OFF);
    call->reply.share = &c->output.share;
    if (np_query_decode(&call->env, call->body, &call->arena, &call->r, &call->options, &call->err)) return;
    np_rows_init(&call->rows, &call->reply, call->options.skip_metadata, &call->err);
    eng_batch_savepoint(batch);
    call->outcome = cql_run(&call->r);
    if (call->outcome == CQL_DONE || call->outcome == CQL_COMMIT) eng_batch_release(batch);
    else eng_batch_rollback(batch);
}

void npi_call_more(struct np_call *call, struct eng_batch *batch) {
    call->r.batch = batch;
    call->outcome = cql_run_more(&call->r);
}

static void put_result(struct np_call *call) {
    const struct cql_result *res = &call->r.result;
    struct buf *out = call->reply.out;
    uint8_t version = call->env.version;
    switch (res->kind) {
    case RESULT_VOID: np_put_void(out); break;
    case RESULT_ROWS: np_rows_end(&call->rows, res); break;
    case RESULT_SET_KEYSPACE: np_put_set_keyspace(out, res->keyspace); break;
    case RESULT_PREPARED: np_put_prepared(out, version, cql_prepared_info(res->prepared)); break;
    case RESULT_SCHEMA_CHANGE: np_put_schema_change(out, version, &res->change); break;
    }
}

static void put_failure(struct np_call *call) {
    bool with_charge = call->reply.has_charge;
    struct np_reply *r = &call->reply;
    if (r->out) np_reply_cancel(r);
    else { /* it never ran on the worker that it went to */
        r->out = &call->out;
        with_charge = call->conn->loop->o->capacity_payload != NP_CAPACITY_OFF;
    }
    np_reply_begin(r, r->out, call->env.version, call->env.stream, NP_ERROR, with_charge);
    np_put_error(r->out, call->env.version, &call->err);
}

static bool eventual(uint16_t consistency) { return consistency == CL_ONE || consistency == CL_LOCAL_ONE; }

/* Fills in the rest of the response. -1: not even an error could be written. */
static int complete(struct np_call *call, const struct charge *charge) {
    struct np_conn *c = call->conn;
    struct np_loop *l = c->loop;
    uint8_t tracing_id[16];
    struct buf json;
    buf_init(&json, 0);
    struct np_reply_extras x = {
        .n_warnings = call->r.n_warnings,
        .warnings = call->r.warnings,
        .asked = call->options.wants_capacity || c->capacity_full,
        .charge = charge->total,
        .compression = npi_conn_framed(c) ? NP_COMPRESS_NONE : c->compression,
        .scratch = &l->packed,
    };
    if (call->reply.has_charge && (x.asked || l->o->capacity_payload == NP_CAPACITY_FULL)) {
        charge_json(&call->cost, charge, &json);
        x.capacity = buf_slice(&json);
    }
    if (call->env.flags & NP_FLAG_TRACING) {
        npi_trace(call, charge, tracing_id);
        x.tracing_id = tracing_id;
    }
    int rc = np_reply_end(&call->reply, &x);
    if (rc) {
        x = (struct np_reply_extras){.charge = charge->total};
        err_set(&call->err, ERR_SERVER, "No memory for the response");
        put_failure(call);
        rc = np_reply_end(&call->reply, &x);
    }
    buf_fini(&json);
    return rc;
}

static void count(struct np_call *call, const struct charge *charge) {
    struct np_metrics *m = &call->conn->loop->metrics;
    bool timeout = call->err.set && (call->err.code == ERR_READ_TIMEOUT || call->err.code == ERR_WRITE_TIMEOUT);
    if (timeout) np_metric_add(m, NP_METRIC_TIMEOUTS, 1);
    if (call->offloaded) {
        np_metric_add(m, NP_METRIC_WORKER_PARTS, call->n_parts);
        np_metric_add(m, NP_METRIC_WORKER_WAIT_US, call->work.waited_us);
    }
    np_metric_request(m, call->env.opcode, np_outcome_of(&call->err));
    if (charge->read_units > 0) np_metric_add(m, NP_METRIC_READ_UNITS, (int64_t)(charge->read_units * 2));
    double written = charge->write_units + charge->static_write_units;
    if (written > 0) np_metric_add(m, NP_METRIC_WRITE_UNITS, (int64_t)(written * 2));
    if (call->err.set && call->err.code == ERR_PROTOCOL) np_metric_add(m, NP_METRIC_PROTOCOL_ERRORS, 1);
    if (call->err.set) return;
    if (call->r.result.kind == RESULT_PREPARED) np_metric_add(m, NP_METRIC_PREPARED, 1);
    if (call->r.result.kind == RESULT_SCHEMA_CHANGE) np_metric_add(m, NP_METRIC_SCHEMA_CHANGES, 1);
}

/* The response goes to the connection: now, or when its write is durable. */
static int deliver(struct np_call *call) {
    struct np_conn *c = call->conn;
    struct np_reply *r = &call->reply;
    bool waits = call->outcome == CQL_COMMIT && !call->err.set;
    if (call->offloaded) {
        if (waits && call->seq > eng_durable_seq(c->loop->o->eng)) return npi_hold_call(c->loop, call);
        if (c->state != NP_CONN_CLOSED) npi_conn_append(c, &call->out, r);
        return 0;
    }
    if (!waits) return np_output_append_rest(&c->output, r);
    if (r->more.n && np_reply_gather(r)) return -1;
    if (!call->r.commit_seq) return npi_hold(c->loop, c, r->out, r->out->n - r->start, &call->env);
    call->seq = call->r.commit_seq;
    buf_put(&call->out, r->out->p + r->start, r->out->n - r->start);
    r->out->n = r->start;
    return buf_failed(&call->out) ? -1 : npi_hold_call(c->loop, call);
}

static void adopt_session(struct np_call *call) {
    if (call->offloaded && !call->err.set && call->r.result.kind == RESULT_SET_KEYSPACE)
        memcpy(call->conn->session.keyspace, call->session.keyspace, sizeof(call->session.keyspace));
}

void npi_call_forget(struct np_call *call) {
    struct cql_result *res = &call->r.result;
    if (res->kind == RESULT_PREPARED && res->prepared) cql_prepared_unref(res->prepared);
    res->prepared = NULL;
    cql_request_fini(&call->r);
}

void npi_call_finish(struct np_call *call) {
    struct np_conn *c = call->conn;
    struct charge charge = {0};
    if (call->outcome == CQL_FAILED) {
        if (!call->err.set) err_set(&call->err, ERR_SERVER, "The request failed without saying why");
        put_failure(call);
    } else {
        put_result(call);
        adopt_session(call);
    }
    /* What failed is free: it has no result, and leaves no trace in the data. */
    if (call->outcome != CQL_FAILED)
        charge_compute(&call->cost, eventual(call->r.params.consistency) ? CHARGE_EVENTUAL : CHARGE_STRONG, &charge);
    bool broken = complete(call, &charge) || deliver(call);
    count(call, &charge);
    npi_call_forget(call);
    if (call->offloaded) {
        c->offloaded--;
        npi_conn_answered(c);
    }
    npi_call_give(c->loop, call);
    if (broken) npi_conn_close(c);
    npi_conn_unref(c);
}

static bool overloaded(const struct np_conn *c) {
    return npi_conn_unsent(c) > NP_OUT_MAX || (c->throw_on_overload && c->in_flight >= NP_IN_FLIGHT_MAX - 1);
}

static void on_query(struct np_conn *c, const struct np_envelope *env, struct slice body) {
    struct np_call *call = overloaded(c) ? NULL : npi_call_take(c->loop);
    if (!call) {
        struct err e = {0};
        err_set(&e, ERR_OVERLOADED, "Too many requests are in flight on this connection");
        answer_error(c, env, &e);
        return;
    }
    npi_conn_ref(c);
    call->conn = c;
    call->env = *env;
    call->body = body;
    if (env->flags & NP_FLAG_TRACING) call->started_us = clock_mono_us(c->loop->o->clock);
    npi_call_run(call, c->loop->batch, false);
    if (call->outcome == CQL_OFFLOAD) npi_offload(call);
    else npi_call_finish(call);
}

#define on_QUERY on_query
#define on_PREPARE on_query
#define on_EXECUTE on_query
#define on_BATCH on_query

/* ---- every envelope ---- */

typedef void (*handler_fn)(struct np_conn *c, const struct np_envelope *env, struct slice body);

static handler_fn handler_of(uint8_t opcode) {
#define HANDLER_REQUEST(id) \
    case NP_##id: return on_##id;
#define HANDLER_RESPONSE(id)
    switch (opcode) {
#define OPCODE(id, code, name, direction) HANDLER_##direction(id)
#include "native_protocol/opcode.def"
#undef OPCODE
    default: return NULL;
    }
}

/* What is wrong with the envelope where the connection stands; 0: nothing. */
static int check_envelope(const struct np_conn *c, const struct np_envelope *env, struct err *e) {
    const char *name = np_opcode_name(env->opcode);
    if (c->version && env->version != c->version)
        return err_set(e, ERR_PROTOCOL, "Invalid message version. Got %u/v%u but previous messages on this connection had version %u/v%u",
                       env->version, env->version, c->version, c->version);
    if (env->stream < 0) return err_set(e, ERR_PROTOCOL, "Invalid stream id %d: negative ones are the server's", env->stream);
    if (!name) return err_set(e, ERR_PROTOCOL, "Unknown opcode %u", env->opcode);
    if (!np_opcode_is_request(env->opcode))
        return err_set(e, ERR_PROTOCOL, "Wrong protocol direction (expected RESPONSE, got REQUEST) for opcode %u (%s)", env->opcode, name);
    if (c->state == NP_CONN_NEW && env->opcode != NP_STARTUP && env->opcode != NP_OPTIONS)
        return err_set(e, ERR_PROTOCOL, "Unexpected message %s, expecting STARTUP or OPTIONS", name);
    return 0;
}

void npi_dispatch(struct np_conn *c, const struct np_envelope *env) {
    struct err e;
    struct slice body = env->body;
    err_clear(&e);
    if (check_envelope(c, env, &e)) {
        struct np_envelope as = *env;
        if (c->version) as.version = c->version;
        answer_error(c, &as, &e);
        return;
    }
    if (env->flags & NP_FLAG_COMPRESSED && !npi_conn_framed(c)) {
        struct buf *plain = &c->loop->body;
        buf_clear(plain, NP_WINDOW);
        if (np_body_decompress(c->compression, body, c->loop->o->frame_max, plain, &e)) {
            answer_error(c, env, &e);
            return;
        }
        body = buf_slice(plain);
    }
    handler_of(env->opcode)(c, env, body);
}

const struct np_loop_ops npi_dispatch_ops = {.envelope = npi_dispatch, .finish = npi_call_finish,
                                            .abandoned = npi_offload_abandoned, .forget = npi_call_forget};
