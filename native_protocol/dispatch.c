#include "native_protocol/dispatch.h"

#include "native_protocol/login.h"
#include "native_protocol/conn.h"
#include "native_protocol/loop.h"
#include "native_protocol/offload.h"
#include "native_protocol/recording.h"
#include "native_protocol/plain_read.h"
#include "native_protocol/sequence.h"

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
        npi_conn_introduce(c, &s);
        npi_conn_set_state(c, c->loop->logins ? NP_CONN_AUTH : NP_CONN_READY);
        c->throw_on_overload = s.throw_on_overload;
        c->capacity_full = s.capacity_full;
        /* the answer to STARTUP is the last envelope outside of segments, and is never compressed */
        if (c->loop->logins) {
            struct np_reply r;
            np_reply_begin(&r, npi_conn_out(c), env->version, env->stream, NP_AUTHENTICATE, false);
            /* drivers compare this class with those that they know, and ignore the rest */
            np_put_string(r.out, "org.apache.cassandra.auth.PasswordAuthenticator");
            npi_conn_reply(c, &r);
            np_metric_request(&c->loop->metrics, env->opcode, NP_OUTCOME_OK);
        } else answer_empty(c, env, NP_READY);
        c->compression = s.compression;
        if (env->version >= 5 && np_output_begin_framing(&c->output, s.compression == NP_COMPRESS_LZ4))
            npi_conn_close(c);
        return;
    }
    answer_error(c, env, &e);
}

static void on_OPTIONS(struct np_conn *c, const struct np_envelope *env, struct slice body) {
    (void)body;
    struct np_reply r;
    np_reply_begin(&r, npi_conn_out(c), env->version, env->stream, NP_SUPPORTED, false);
    np_put_supported(r.out, env->version, c->loop->o->newest_version, catalog_node(c->loop->o->catalog)->cql_version);
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
    if (!np_auth_decode(body, &token, &e)) {
        if (c->state == NP_CONN_AUTH) return npi_login(c, env, token);
        err_set(&e, ERR_PROTOCOL, "Unexpected message AUTH_RESPONSE, no authentication is going on");
    }
    answer_error(c, env, &e);
}

/* ---- query requests ---- */

/* NULL: it is answered. */
static struct np_call *take(struct np_conn *c, const struct np_envelope *env, struct slice body) {
    bool overloaded = npi_conn_unsent(c) > NP_OUT_MAX ||
                      (c->throw_on_overload && c->in_flight >= NP_IN_FLIGHT_MAX - 1);
    struct np_call *call = overloaded ? NULL : npi_call_take(c->loop);
    if (!call) {
        struct err e = {0};
        npi_loop_record_reads(c->loop);
        err_set(&e, ERR_OVERLOADED, "Too many requests are in flight on this connection");
        answer_error(c, env, &e);
        npi_record_refused(c, env, body, &e);
        return NULL;
    }
    npi_conn_ref(c);
    call->conn = c;
    call->env = *env;
    call->body = body;
    call->started_us = env->flags & NP_FLAG_TRACING ? clock_machine_us(c->loop->o->clock) : 0;
    call->trace.n = 0;
    call->fault = (struct np_call_fault){0};
    return call;
}

static void go_on(struct np_call *call) {
    npi_call_go_on(call);
    if (call->outcome == CQL_OFFLOAD) npi_offload(call);
    else npi_call_finish(call);
}

static void on_query(struct np_conn *c, const struct np_envelope *env, struct slice body) {
    struct np_call *call = take(c, env, body);
    if (!call) return;
    npi_call_plan(call);
    go_on(call);
}

/* Handles a request for which npi_plain_may returned true. */
static void on_plain(struct np_conn *c, const struct np_envelope *env) {
    struct np_call *call = take(c, env, env->body);
    if (!call) return;
    call->fault.asked = true;
    npi_call_plan(call);
    if (LIKELY(npi_plain_answer(call))) return;
    npi_loop_record_reads(c->loop);
    go_on(call);
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

/* Checks the envelope against the state of the connection. 0: valid. */
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

void npi_dispatch(struct np_conn *c, const struct np_envelope *env) {
    struct err e;
    struct slice body = env->body;
    if (npi_plain_may(c, env)) return on_plain(c, env);
    npi_loop_record_reads(c->loop);
    err_clear(&e);
    if (check_envelope(c, env, &e)) {
        struct np_envelope as = *env;
        if (c->version) as.version = c->version;
        answer_error(c, &as, &e);
        return;
    }
    if (env->flags & NP_FLAG_COMPRESSED && !npi_conn_framed(c)) {
        struct buf *plain = &c->loop->scratch.body;
        buf_clear(plain, NP_WINDOW);
        if (np_body_decompress(c->compression, body, c->loop->o->frame_max, plain, &e)) {
            answer_error(c, env, &e);
            return;
        }
        body = buf_slice(plain);
    }
    handler_of(env->opcode)(c, env, body);
}
