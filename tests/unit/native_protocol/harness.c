#include "harness.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/socket.h>
#include <unistd.h>

#include "native_protocol/dispatch.h"

static int64_t fake_us(struct clock *c) {
    return ((struct harness *)((char *)c - offsetof(struct harness, clock)))->now_us;
}

static struct harness *current; /* the loop's callbacks have no argument for it */

/* ---- the protocol ---- */

static void answer(struct np_conn *c, const struct np_envelope *env, struct slice body) {
    struct np_reply r;
    np_reply_begin(&r, npi_conn_out(c), env->version, env->stream, NP_RESULT, false);
    buf_put_slice(r.out, body);
    npi_conn_reply(c, &r);
}

static void answer_large(struct np_conn *c, const struct np_envelope *env, size_t n) {
    struct np_reply r;
    np_reply_begin(&r, npi_conn_out(c), env->version, env->stream, NP_RESULT, false);
    memset(buf_reserve(r.out, n), 'l', n);
    buf_advance(r.out, n);
    npi_conn_reply(c, &r);
}

static void answer_when_durable(struct np_conn *c, const struct np_envelope *env) {
    struct buf *out = npi_conn_out(c);
    size_t before = out->n;
    answer(c, env, env->body);
    struct np_account account = {.opcode = env->opcode};
    assert_int_equal(npi_hold(c->loop->durability, c, out, out->n - before, env, &account), 0);
}

static void to_worker(struct np_conn *c, const struct np_envelope *env) {
    struct np_call *call = npi_call_take(c->loop);
    assert_true(current->n_working < ARRAY_LEN(current->working));
    npi_conn_ref(c);
    call->conn = c;
    call->env = *env;
    call->work.client = &c->work;
    c->in_flight++;
    c->offloaded++;
    current->working[current->n_working++] = call;
}

static void on_envelope(struct np_conn *c, const struct np_envelope *env) {
    current->n_envelopes++;
    if (env->opcode == NP_STARTUP) {
        c->version = env->version;
        npi_conn_set_state(c, NP_CONN_READY);
        answer(c, env, slice_of((const uint8_t *)"", 0));
        if (env->version >= 5) assert_int_equal(np_output_begin_framing(&c->output, false), 0);
        return;
    }
    switch (env->body.p[0]) {
    case 'e': answer(c, env, env->body); break;
    case 'l': answer_large(c, env, load_u32(env->body.p + 1)); break;
    case 'h': answer_when_durable(c, env); break;
    case 'w': to_worker(c, env); break;
    default: fail_msg("unknown request %c", env->body.p[0]);
    }
}

static void returned(struct np_task *x, bool ended) {
    struct np_call *call = (struct np_call *)x;
    struct np_conn *c = call->conn;
    if (ended) {
        np_reply_drop(&call->reply);
        npi_conn_unref(c);
        npi_call_free(call);
        return;
    }
    if (call->state == NP_CALL_WRITTEN) {
        struct np_account account = {.opcode = call->env.opcode};
        assert_int_equal(npi_hold_call(c->loop->durability, call, &account), 0);
    } else if (c->state != NP_CONN_CLOSED) npi_conn_append(c, &call->out, &call->reply);
    c->offloaded--;
    npi_conn_answered(c);
    npi_call_give(c->loop, call);
    npi_conn_unref(c);
}

void harness_work(struct harness *h, unsigned i, size_t n) {
    struct np_call *call = h->working[i];
    struct err e = {0};
    assert_non_null(call);
    h->working[i] = NULL;
    np_reply_begin(&call->reply, &call->out, call->env.version, call->env.stream, NP_RESULT, false);
    call->reply.share = &call->conn->output.share;
    enum { ROW = 1000 };
    for (size_t at = 0; at < n; at += ROW) {
        size_t row = n - at < ROW ? n - at : ROW;
        struct buf *to = np_reply_room(&call->reply, row, &e);
        if (!to) break;
        memset(buf_reserve(to, row), 'w', row);
        buf_advance(to, row);
    }
    if (e.set) {
        np_reply_cancel(&call->reply);
        np_reply_begin(&call->reply, &call->out, call->env.version, call->env.stream, NP_ERROR, false);
        np_put_error(&call->out, call->env.version, &e);
    }
    assert_int_equal(np_reply_end(&call->reply, 0, NULL), 0);
    np_reply_made(&call->reply);
    call->task.done = returned;
    npi_inbox_give(&call->conn->loop->inbox, &call->task);
}

/* ---- life ---- */

static void open_store(struct harness *h) {
    struct err e = {0};
    *h = (struct harness){.clock = {.wall_us = fake_us, .mono_us = fake_us}, .now_us = 1000000000};
    current = h;
    struct eng_options eo = {.durability = ENG_NONE, .clock = &h->clock};
    h->options = (struct np_options){.clock = &h->clock,
                                     .eng = eng_open(&eo, &e),
                                     .newest_version = NP_VERSION_MAX,
                                     .frame_max = 16 << 20,
                                     .handshake_us = 10000000,
                                     .request_us = 5000000,
                                     .send_us = 5000000};
    assert_non_null(h->options.eng);
}

static void open_loop(struct harness *h, struct np_input_fns input, size_t unfinished, size_t unread) {
    struct err e = {0};
    npi_peers_init(&h->bounds.peers, 1000, 1000);
    struct np_budget_options bo = {.clock = &h->clock, .limit = unfinished, .notify = npi_loop_evict};
    npi_budget_init(&h->bounds.unfinished, &bo);
    bo.limit = unread;
    bo.still_us = 2000000;
    bo.long_us = 10000000;
    npi_budget_init(&h->bounds.unread, &bo);
    h->bounds.work.limit = SIZE_MAX;
    assert_int_equal(npi_loop_init(&h->loop, &h->options, input, &h->bounds, &e), 0);
}

void harness_open(struct harness *h, size_t unfinished, size_t unread) {
    open_store(h);
    open_loop(h, (struct np_input_fns){.on_envelope = on_envelope}, unfinished, unread);
}

void harness_open_database(struct harness *h) {
    enum { BYTES = 64 << 20 };
    struct err e = {0};
    struct np_options *o = &h->options;
    open_store(h);
    struct catalog_options co = {.eng = o->eng,
                                 .clock = &h->clock,
                                 .mode = MODE_CASSANDRA,
                                 .node = {.cluster_name = "Test Cluster",
                                          .datacenter = "datacenter1",
                                          .rack = "rack1",
                                          .release_version = "5.0.8",
                                          .cql_version = "3.4.7",
                                          .listen_address = "127.0.0.1",
                                          .port = 9042}};
    o->catalog = catalog_open(&co, &e);
    assert_non_null(o->catalog);
    struct cql_db_options dbo = {.eng = o->eng, .catalog = o->catalog, .clock = &h->clock, .mode = MODE_CASSANDRA};
    o->db = cql_db_new(&dbo, &e);
    assert_non_null(o->db);
    open_loop(h, npi_dispatch_fns, BYTES, BYTES);
    struct np_workers_options wo = {.ops = &npi_dispatch_work, .eng = o->eng, .clock = &h->clock};
    h->loop.workers = np_workers_new(&wo, &e);
    assert_non_null(h->loop.workers);
}

void harness_close(struct harness *h) {
    const struct np_options *o = &h->options;
    if (h->loop.workers) np_workers_stop(h->loop.workers);
    npi_loop_close(&h->loop);
    if (o->db) cql_db_free(o->db);
    if (o->catalog) catalog_close(o->catalog);
    eng_close(o->eng); /* its threads may call the loop until then, as in a server */
    npi_loop_fini(&h->loop);
    if (h->loop.workers) np_workers_free(h->loop.workers);
    npi_peers_fini(&h->bounds.peers);
    npi_budget_fini(&h->bounds.unfinished);
    npi_budget_fini(&h->bounds.unread);
}

void harness_wait(struct harness *h) {
    ev_run(h->loop.ev, EVRUN_ONCE);
    harness_crank(h);
}

struct np_conn *harness_connect(struct harness *h, int *peer) { return harness_connect_by(h, NULL, peer); }

struct np_conn *harness_connect_by(struct harness *h, struct np_tls *tls, int *peer) {
    int fds[2], small = 64 << 10;
    assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK, 0, fds), 0);
    setsockopt(fds[0], SOL_SOCKET, SO_SNDBUF, &small, sizeof(small));
    setsockopt(fds[1], SOL_SOCKET, SO_SNDBUF, &small, sizeof(small));
    *peer = fds[1];
    struct np_conn *c = npi_conn_new(&h->loop, fds[0], tls);
    assert_non_null(c);
    npi_conn_ref(c);
    return c;
}

void harness_crank(struct harness *h) {
    for (int i = 0; i < 4; i++) ev_run(h->loop.ev, EVRUN_NOWAIT);
}

void harness_pass(struct harness *h, unsigned seconds) {
    while (seconds--) {
        h->now_us += 1000000;
        npi_loop_tick(&h->loop);
        harness_crank(h);
    }
}

/* ---- the client's side ---- */

void harness_envelope(struct buf *b, uint8_t version, enum np_opcode opcode, int16_t stream, struct slice body) {
    size_t at = np_envelope_begin(b, version, stream, opcode);
    b->p[at] = version; /* a request */
    buf_put_slice(b, body);
    np_envelope_end(b, at, 0);
}

void harness_query(struct buf *b, int16_t stream, struct slice body) { harness_envelope(b, 4, NP_QUERY, stream, body); }

void harness_startup(struct harness *h, int peer, uint8_t version) {
    struct buf b;
    buf_init(&b, 0);
    harness_envelope(&b, version, NP_STARTUP, 0, slice_of((const uint8_t *)"", 0));
    assert_int_equal(harness_send(h, peer, buf_slice(&b)), b.n);
    b.n = 0;
    assert_true(harness_receive_all(h, peer, &b));
    assert_int_equal(b.n, NP_HEADER);
    buf_fini(&b);
}

size_t harness_send(struct harness *h, int peer, struct slice bytes) {
    size_t at = 0;
    for (int idle = 0; at < bytes.n && idle < 3;) {
        ssize_t n = send(peer, bytes.p + at, bytes.n - at, MSG_NOSIGNAL);
        idle = n > 0 ? 0 : idle + 1;
        if (n > 0) at += (size_t)n;
        harness_crank(h);
    }
    return at;
}

bool harness_receive(int peer, size_t n, struct buf *b) {
    while (n) {
        size_t step = n < 65536 ? n : 65536;
        ssize_t got = recv(peer, buf_reserve(b, step), step, 0);
        if (got < 0) return errno == EAGAIN;
        if (!got) return false;
        buf_advance(b, (size_t)got);
        n -= (size_t)got;
    }
    return true;
}

bool harness_receive_all(struct harness *h, int peer, struct buf *b) {
    for (int idle = 0; idle < 3;) {
        size_t before = b->n;
        harness_crank(h);
        if (!harness_receive(peer, SIZE_MAX, b)) return false;
        idle = b->n > before ? 0 : idle + 1;
    }
    return true;
}
