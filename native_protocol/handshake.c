#include "native_protocol/handshake.h"

#include "native_protocol/login.h"
#include "native_protocol/loop.h"
#include "native_protocol/request.h"

static void answer_empty(struct np_conn *c, const struct np_envelope *env, enum np_opcode opcode) {
    struct np_reply r;
    np_reply_begin(&r, npi_conn_out(c), env->version, env->stream, opcode, false);
    npi_conn_reply(c, &r);
    np_metric_request(&c->loop->metrics, env->opcode, NP_OUTCOME_OK);
}

void npi_on_STARTUP(struct np_conn *c, const struct np_envelope *env, struct slice body) {
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
    npi_answer_error(c, env, &e);
}

void npi_on_OPTIONS(struct np_conn *c, const struct np_envelope *env, struct slice body) {
    (void)body;
    struct np_reply r;
    np_reply_begin(&r, npi_conn_out(c), env->version, env->stream, NP_SUPPORTED, false);
    np_put_supported(r.out, env->version, c->loop->o->newest_version, catalog_node(c->loop->o->catalog)->cql_version);
    npi_conn_reply(c, &r);
    np_metric_request(&c->loop->metrics, env->opcode, NP_OUTCOME_OK);
}

void npi_on_REGISTER(struct np_conn *c, const struct np_envelope *env, struct slice body) {
    struct err e = {0};
    unsigned events;
    if (np_register_decode(body, &events, &e)) {
        npi_answer_error(c, env, &e);
        return;
    }
    c->events |= events;
    answer_empty(c, env, NP_READY);
}

void npi_on_AUTH_RESPONSE(struct np_conn *c, const struct np_envelope *env, struct slice body) {
    struct err e = {0};
    struct slice token;
    if (!np_auth_decode(body, &token, &e)) {
        if (c->state == NP_CONN_AUTH) return npi_login(c, env, token);
        err_set(&e, ERR_PROTOCOL, "Unexpected message AUTH_RESPONSE, no authentication is going on");
    }
    npi_answer_error(c, env, &e);
}
