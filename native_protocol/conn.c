#include "native_protocol/conn.h"

#include <assert.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <unistd.h>

#include "native_protocol/metric.h"
#include "native_protocol/audit_queue.h"
#include "native_protocol/loop.h"
#include "native_protocol/request.h"
#include "native_protocol/segment.h"
#include "native_protocol/workers.h"

enum { READ_STEP = 64 << 10, SEND_EARLY = 64 << 10 };

/* ---- state ---- */

void npi_conn_set_state(struct np_conn *c, enum np_conn_state state) {
    assert(state > c->state);
    if (state == NP_CONN_CLOSED) np_metric_add(&c->loop->metrics, NP_METRIC_CONNECTIONS, -1);
    c->state = state;
    c->state_us = clock_machine_us(c->loop->o->clock);
}

static bool active(const struct np_conn *c) { return c->state >= NP_CONN_NEW && c->state <= NP_CONN_READY; }

void npi_conn_ref(struct np_conn *c) { c->refs++; }

/* ---- its entry in the ledger ---- */

static void enter_ledger(struct np_conn *c) {
    const struct np_options *o = c->loop->o;
    if (!o->ledger) return;
    snprintf(c->account.role, sizeof(c->account.role), "%s", c->session.role);
    if (c->transport.ssl) {
        snprintf(c->account.client.cipher, sizeof(c->account.client.cipher), "%s",
                 SSL_get_cipher_name(c->transport.ssl));
        snprintf(c->account.client.tls, sizeof(c->account.client.tls), "%s", SSL_get_version(c->transport.ssl));
    }
    c->account.opened_us = clock_wall_us(o->clock);
    ledger_connect(o->ledger, c->loop->number, &c->account);
}

static void leave_ledger(struct np_conn *c) {
    if (c->account.id) ledger_disconnect(c->loop->o->ledger, c->loop->number, &c->account);
}

void npi_conn_introduce(struct np_conn *c, const struct np_startup *s) {
    leave_ledger(c);
    c->account.client.version = c->version;
    ledger_driver_unref(c->account.client.driver);
    c->account.client.driver = ledger_driver_new(s->driver_name, s->driver_version);
    snprintf(c->account.client.compression, sizeof(c->account.client.compression), "%s",
             s->compression == NP_COMPRESS_LZ4 ? "lz4" : s->compression == NP_COMPRESS_SNAPPY ? "snappy" : "");
    enter_ledger(c);
}

int npi_conn_log_in(struct np_conn *c, const char *role) {
    c->role = strdup(role);
    if (!c->role) return -1;
    c->session.role = c->role;
    leave_ledger(c);
    enter_ledger(c);
    npi_conn_set_state(c, NP_CONN_READY);
    return 0;
}

void npi_conn_unref(struct np_conn *c) {
    if (--c->refs) return;
    leave_ledger(c);
    np_output_drop(&c->output);
    assert(!c->output.share.bytes && !c->in.share.bytes); /* all that was charged is given back */
    ledger_driver_unref(c->account.client.driver);
    free(c->role);
    free(c);
}

static void drop_input(struct np_conn *c) {
    buf_fini(&c->in.kept);
    buf_fini(&c->in.large);
    npi_share_sub(&c->in.share, c->in.share.bytes);
    c->in.begun_us = 0;
}

void npi_conn_close(struct np_conn *c) {
    if (c->state == NP_CONN_CLOSED) return;
    struct np_loop *l = c->loop;
    npi_conn_set_state(c, NP_CONN_CLOSED);
    atomic_store(&c->gone, true);
    if (c->offloaded && l->workers) np_workers_wake_monitor(l->workers); /* drops its waiting calls */
    ev_io_stop(l->ev, &c->read_io);
    ev_io_stop(l->ev, &c->write_io);
    if (c->dirty) {
        struct np_conn **at = &l->dirty;
        while (*at != c) at = &(*at)->dirty_next;
        *at = c->dirty_next;
        c->dirty = false;
    }
    np_transport_fini(&c->transport);
    drop_input(c);
    np_output_drop(&c->output);
    if (c->prev) c->prev->next = c->next;
    else l->conns = c->next;
    if (c->next) c->next->prev = c->prev;
    if (c->address_entry) npi_peers_leave(&l->bounds->peers, c->address_entry);
    c->address_entry = NULL;
    cql_client_close(l->o->db, &c->client);
    npi_conn_unref(c);
}

/* ---- output ---- */

struct buf *npi_conn_out(struct np_conn *c) {
    if (!c->dirty && c->state != NP_CONN_CLOSED) {
        c->dirty = true;
        c->dirty_next = c->loop->dirty;
        c->loop->dirty = c;
    }
    return np_output_open(&c->output);
}

void npi_conn_append(struct np_conn *c, struct buf *front, struct np_reply *reply) {
    npi_conn_out(c);
    if (np_output_append(&c->output, front, reply)) npi_conn_close(c);
}

static void may_read_again(struct np_conn *c);

void npi_conn_flush(struct np_conn *c) {
    size_t n;
    if (c->state == NP_CONN_CLOSED) return;
    npi_loop_publish(c->loop);
    enum np_sent sent = np_output_send(&c->output, &c->transport, &n);
    np_metric_add(&c->loop->metrics, NP_METRIC_BYTES_OUT, (int64_t)n);
    switch (sent) {
    case NP_SENT_ALL:
        c->taken_us = 0;
        ev_io_stop(c->loop->ev, &c->write_io);
        /* the peer reads the last answer, then closes; its input is discarded meanwhile */
        if (c->state == NP_CONN_CLOSING && !c->in_flight) np_transport_shutdown(&c->transport);
        break;
    case NP_SENT_SOME:
        if (n || !c->taken_us) c->taken_us = c->loop->tick_us;
        if (n) npi_share_moved(&c->output.share, c->loop->tick_us);
        ev_io_start(c->loop->ev, &c->write_io);
        break;
    case NP_SENT_BROKEN: npi_conn_close(c); return;
    }
    may_read_again(c);
}

void npi_conn_reply(struct np_conn *c, struct np_reply *r) {
    struct np_reply_extras x = {.compression = npi_conn_framed(c) ? NP_COMPRESS_NONE : c->compression,
                                .scratch = &c->loop->scratch.packed};
    if (np_reply_end(r, 0, &x)) {
        np_reply_cancel(r);
        npi_conn_close(c);
    }
}

void npi_send_error(struct np_conn *c, uint8_t version, int16_t stream, const struct err *e) {
    struct np_reply r;
    np_reply_begin(&r, npi_conn_out(c), version, stream, NP_ERROR, false);
    np_put_error(r.out, version, e);
    npi_conn_reply(c, &r);
}

void npi_answer_error(struct np_conn *c, const struct np_envelope *env, const struct err *e) {
    if (c->state == NP_CONN_CLOSED) return;
    npi_send_error(c, env->version, env->stream, e);
    np_account(&c->loop->metrics, &(struct np_account){.opcode = env->opcode}, e);
}

void npi_conn_end(struct np_conn *c, uint8_t version, int16_t stream, const struct err *e) {
    if (!active(c)) return;
    struct np_reply r;
    np_reply_begin(&r, npi_conn_out(c), version, stream, NP_ERROR, false);
    np_put_error(r.out, version, e);
    if (np_reply_end(&r, 0, NULL)) np_reply_cancel(&r);
    npi_conn_set_state(c, NP_CONN_CLOSING);
}

/* Like npi_conn_end, for a violation of the protocol, which is counted. */
static void fail(struct np_conn *c, uint8_t version, int16_t stream, const struct err *e) {
    if (active(c)) np_metric_add(&c->loop->metrics, NP_METRIC_PROTOCOL_ERRORS, 1);
    npi_conn_end(c, version, stream, e);
}

/* ---- back-pressure ---- */

static void pause_reading(struct np_conn *c) {
    c->paused = true;
    ev_io_stop(c->loop->ev, &c->read_io);
}

void npi_conn_stop_reading(struct np_conn *c) {
    if (active(c)) pause_reading(c);
}

static uint32_t offloaded_max(const struct np_conn *c) {
    return c->loop->o->offloaded_max ? c->loop->o->offloaded_max : NP_OFFLOADED_MAX;
}

/* The loop is woken when there is room, and checks its paused connections. */
static bool audit_is_full(const struct np_conn *c) {
    bool full = c->loop->o->audit && npi_audit_full(c->loop->o->audit);
    if (UNLIKELY(full)) c->loop->audit_waits = true;
    return full;
}

static void may_read_again(struct np_conn *c) {
    if (!c->paused || !active(c) || c->loop->stop.begun) return;
    if (c->in_flight > NP_IN_FLIGHT_MAX / 2 || c->offloaded > offloaded_max(c) / 2) return;
    if (npi_conn_unsent(c) > NP_OUT_HIGH / 2) return;
    if (c->in_flight && c->loop->deferred_bytes > NP_DEFERRED_MAX / 2) return; /* its next answer checks again */
    if (audit_is_full(c)) return;
    c->paused = false;
    ev_io_start(c->loop->ev, &c->read_io);
    /* the pause was the server's, so the request gets its full time again */
    if (c->in.begun_us) c->in.begun_us = c->loop->tick_us;
    if (!c->in.kept.n && !np_transport_pending(&c->transport)) return;
    ev_feed_event(c->loop->ev, &c->read_io, EV_CUSTOM);
    npi_loop_wake(c->loop); /* its answers must not wait for the next input */
}

void npi_conn_answered(struct np_conn *c) {
    c->in_flight--;
    np_metric_add(&c->loop->metrics, NP_METRIC_IN_FLIGHT, -1);
    if (c->paused && c->state != NP_CONN_CLOSED) npi_conn_out(c); /* the flush checks whether to read again */
}

/* ---- input ---- */

static uint32_t frame_max(const struct np_conn *c) {
    enum { BEFORE_STARTUP = 64 << 10 };
    return c->state < NP_CONN_READY && c->loop->o->frame_max > BEFORE_STARTUP ? BEFORE_STARTUP : c->loop->o->frame_max;
}

/* The input before this point is about to be overwritten or freed. */
static void end_input(struct np_loop *l) {
    if (l->input.on_end) l->input.on_end(l);
}

/* Takes one envelope: of v3 or v4, of v5 before STARTUP is answered, or of a segment. Returns bytes
 * consumed, NP_NEED_MORE or NP_BAD. */
static ssize_t take_envelope(struct np_conn *c, struct slice in) {
    struct np_envelope env;
    struct err e;
    err_clear(&e);
    uint8_t newest = c->loop->o->newest_version;
    ssize_t n = np_envelope_decode(in, newest, frame_max(c), &env, &e);
    if (n == NP_BAD) {
        bool spoken = np_speaks(newest, &env), beta = newest == NP_VERSION_MAX && env.version == NP_VERSION_BETA;
        uint8_t version = npi_conn_framed(c) ? c->version : spoken || beta ? env.version : 4;
        fail(c, version, spoken ? env.stream : 0, &e);
        return NP_BAD;
    }
    if (n == NP_TOO_BIG) {
        np_metric_add(&c->loop->metrics, NP_METRIC_PROTOCOL_ERRORS, 1);
        npi_answer_error(c, &env, &e);
        c->in.skip = env.length;
        return NP_HEADER;
    }
    if (n > 0) c->loop->input.on_envelope(c, &env);
    return n;
}

static size_t pass_over(struct np_conn *c, size_t n) {
    size_t take = c->in.skip < n ? (size_t)c->in.skip : n;
    c->in.skip -= take;
    return take;
}

static void bad_segment(struct np_conn *c, const char *why) {
    struct err e = {0};
    err_set(&e, ERR_PROTOCOL, "%s", why);
    fail(c, 5, 0, &e);
}

/* Takes one segment's part of an envelope that is larger than a segment. The last part ends with the
 * envelope, also when its body is skipped. */
static void take_part(struct np_conn *c, struct slice in) {
    static const char rest_is_bad[] = "A segment that is not self-contained has bytes after its envelope";
    if (c->in.skip) {
        if (pass_over(c, in.n) < in.n) bad_segment(c, rest_is_bad);
        return;
    }
    buf_put_slice(&c->in.large, in);
    if (buf_failed(&c->in.large)) {
        bad_segment(c, "No memory for the request");
        return;
    }
    ssize_t n = take_envelope(c, buf_slice(&c->in.large));
    if (n == NP_NEED_MORE) return;
    end_input(c->loop);
    size_t rest = n > 0 ? c->in.large.n - (size_t)n : 0;
    if (active(c) && pass_over(c, rest) < rest) bad_segment(c, rest_is_bad);
    if (c->state == NP_CONN_CLOSED) return;
    buf_fini(&c->in.large);
}

static ssize_t take_segment(struct np_conn *c, struct slice in) {
    struct np_segment seg;
    struct err e;
    err_clear(&e);
    ssize_t n = np_segment_decode(in, c->compression == NP_COMPRESS_LZ4, &c->loop->scratch.segment, &seg, &e);
    if (n == NP_BAD) fail(c, 5, 0, &e);
    if (n <= 0) return n;
    if (!seg.self_contained) take_part(c, seg.payload);
    else if (c->in.large.n || c->in.skip) bad_segment(c, "A self-contained segment inside an envelope");
    else {
        /* Whole envelopes: the segment must end with the last of them. */
        for (struct slice rest = seg.payload; rest.n && active(c);) {
            ssize_t taken = take_envelope(c, rest);
            if (taken == NP_NEED_MORE || c->in.skip) bad_segment(c, "Incomplete envelope in a self-contained segment");
            if (taken <= 0 || c->in.skip) break;
            rest = slice_of(rest.p + taken, rest.n - (size_t)taken);
        }
        end_input(c->loop);
    }
    return n;
}

/* Runs the complete requests of the input; returns the bytes consumed. */
static size_t consume(struct np_conn *c, struct slice in) {
    size_t done = 0;
    while (done < in.n && active(c)) {
        bool over = c->in_flight >= NP_IN_FLIGHT_MAX || c->offloaded >= offloaded_max(c) ||
                    npi_conn_unsent(c) > NP_OUT_HIGH ||
                    /* the store is behind: writers wait */
                    (c->in_flight && c->loop->deferred_bytes > NP_DEFERRED_MAX) || audit_is_full(c);
        if (over && !c->loop->stop.begun) {
            pause_reading(c);
            break;
        }
        if (c->in.skip && !npi_conn_framed(c)) {
            done += pass_over(c, in.n - done);
            continue;
        }
        struct slice rest = slice_of(in.p + done, in.n - done);
        ssize_t n = npi_conn_framed(c) ? take_segment(c, rest) : take_envelope(c, rest);
        if (n <= 0) break;
        done += (size_t)n;
        c->in.begun_us = 0;
        if (c->output.open.n < SEND_EARLY) continue;
        /* A large answer leaves now, so that its buffer stays small and in the processor's cache. */
        if (c->output.open.n == npi_conn_unsent(c)) npi_conn_flush(c);
    }
    end_input(c->loop);
    return done;
}

/* Runs after the input of one event: charges the kept bytes, and records when their request began
 * to arrive. */
static void count_input(struct np_conn *c) {
    if (!active(c)) {
        drop_input(c);
        return;
    }
    bool unfinished = c->in.kept.n || c->in.large.n;
    if (!unfinished) c->in.begun_us = 0;
    else if (!c->in.begun_us) c->in.begun_us = c->loop->tick_us;
    size_t held = c->in.kept.cap + c->in.large.cap;
    if (held < NP_SHARE_SMALL) held = 0;
    if (held > c->in.share.bytes) npi_share_add(&c->in.share, held - c->in.share.bytes);
    else if (held < c->in.share.bytes) npi_share_sub(&c->in.share, c->in.share.bytes - held);
}

static void consume_kept(struct np_conn *c) {
    size_t done = consume(c, buf_slice(&c->in.kept));
    /* stops here while the frame is incomplete: a large one comes in hundreds of pieces */
    if (c->state == NP_CONN_CLOSED || !done) return;
    memmove(c->in.kept.p, c->in.kept.p + done, c->in.kept.n - done);
    c->in.kept.n -= done;
    if (!c->in.kept.n) buf_fini(&c->in.kept);
}

static void read_more(struct np_conn *c) {
    struct np_loop *l = c->loop;
    bool shakes = np_transport_shakes_hands(&c->transport);
    if (shakes && l->handshakes++ >= NP_HANDSHAKES_MAX) {
        /* The socket is still readable or writable at the next wake-up. */
        if (c->transport.wants_write) ev_io_start(l->ev, &c->write_io);
        return;
    }
    uint8_t *to = c->in.kept.n ? buf_reserve(&c->in.kept, READ_STEP) : l->scratch.window;
    if (!to) {
        npi_conn_close(c);
        return;
    }
    ssize_t n = np_transport_read(&c->transport, to, c->in.kept.n ? READ_STEP : NP_WINDOW);
    if (shakes && !np_transport_shakes_hands(&c->transport)) np_metric_add(&l->metrics, NP_METRIC_HANDSHAKES, 1);
    else if (shakes && (n == 0 || n == NP_IO_ERROR)) np_metric_add(&l->metrics, NP_METRIC_HANDSHAKES_FAILED, 1);
    if (n <= 0) {
        if (n != NP_IO_AGAIN) npi_conn_close(c);
        else if (c->transport.wants_write) ev_io_start(l->ev, &c->write_io);
        return;
    }
    c->received_us = l->tick_us;
    np_metric_add(&l->metrics, NP_METRIC_BYTES_IN, n);
    if (!active(c)) return; /* closing: the input is discarded */
    if (c->in.kept.n) {
        buf_advance(&c->in.kept, (size_t)n);
        consume_kept(c);
        return;
    }
    size_t done = consume(c, slice_of(l->scratch.window, (size_t)n));
    if (!active(c) || done == (size_t)n) return; /* an empty put would allocate */
    buf_put(&c->in.kept, l->scratch.window + done, (size_t)n - done);
    if (buf_failed(&c->in.kept)) npi_conn_close(c);
}

static void on_readable(struct ev_loop *ev, ev_io *w, int revents) {
    struct np_conn *c = w->data;
    npi_conn_ref(c);
    if (revents & EV_CUSTOM && c->in.kept.n && active(c) && !c->paused) consume_kept(c);
    else if (!c->paused || c->state == NP_CONN_CLOSING) read_more(c);
    count_input(c);
    if (active(c) && !c->paused && np_transport_pending(&c->transport)) ev_feed_event(ev, w, EV_READ);
    npi_conn_unref(c);
}

static void on_writable(struct ev_loop *ev, ev_io *w, int revents) {
    (void)revents;
    struct np_conn *c = w->data;
    npi_conn_ref(c);
    if (c->transport.wants_write && !c->paused) {
        if (npi_conn_unsent(c) == 0) ev_io_stop(ev, w);
        read_more(c);
        count_input(c);
    }
    npi_conn_flush(c);
    npi_conn_unref(c);
}

/* ---- time-outs and eviction ---- */

/* Answers an error, closes the connection, and drops its input so far. */
static void expel(struct np_conn *c, enum np_metric why, enum err_code code, const char *text) {
    struct err e = {0};
    err_set(&e, code, "%s", text);
    np_metric_add(&c->loop->metrics, why, 1);
    fail(c, c->version ? c->version : 4, 0, &e);
    drop_input(c);
}

static bool past(const struct np_conn *c, int64_t since_us, int64_t limit_us) {
    enum { TICK_US = 1000000 }; /* since_us has the resolution of a tick */
    return since_us && limit_us && c->loop->tick_us - since_us > limit_us + TICK_US;
}

void npi_conn_tick(struct np_conn *c) {
    const struct np_options *o = c->loop->o;
    if (c->taken_us) {
        /* A slow reader can take bytes from the socket's own buffer for a long time before the
         * socket accepts more. So the bytes queued in the socket show its progress, too. */
        size_t queued = np_transport_queued(&c->transport);
        if (queued < c->queued) {
            c->taken_us = c->loop->tick_us;
            npi_share_moved(&c->output.share, c->taken_us);
        }
        c->queued = queued;
    }
    int64_t age = clock_machine_us(o->clock) - c->state_us;
    bool mute = c->state < NP_CONN_READY && o->handshake_us && age > o->handshake_us;
    bool stuck = past(c, c->taken_us, o->send_us);
    if (stuck) np_metric_add(&c->loop->metrics, NP_METRIC_TIMED_OUT, 1);
    if (mute || stuck || (c->state == NP_CONN_CLOSING && age > NP_CLOSE_US)) npi_conn_close(c);
    else if (active(c) && !c->paused && past(c, c->in.begun_us, o->request_us))
        expel(c, NP_METRIC_TIMED_OUT, ERR_PROTOCOL, "The request did not arrive as a whole in time");
}

void npi_conn_check_evicted(struct np_conn *c) {
    if (c->state == NP_CONN_CLOSED) return;
    if (atomic_load(&c->output.share.evicted)) { /* it would not read why */
        np_metric_add(&c->loop->metrics, NP_METRIC_EVICTED, 1);
        npi_conn_close(c);
        return;
    }
    if (active(c) && atomic_load(&c->in.share.evicted))
        expel(c, NP_METRIC_EVICTED, ERR_OVERLOADED,
              "The server holds too many unfinished requests, and most of that is this connection's");
}

/* ---- creation ---- */

static void read_addresses(struct np_conn *c, int fd) {
    struct sockaddr_storage a;
    socklen_t n = sizeof(a);
    if (!getsockname(fd, (struct sockaddr *)&a, &n)) {
        struct ip_address own = ip_address_of_socket(&a);
        ip_address_print(&own, c->session.local_address);
        c->session.local_port = ntohs(((struct sockaddr_in *)&a)->sin_port);
    }
    n = sizeof(a);
    c->peer.n = 4; /* 0.0.0.0 when the client has gone already */
    if (getpeername(fd, (struct sockaddr *)&a, &n) || (a.ss_family != AF_INET && a.ss_family != AF_INET6)) return;
    c->peer = ip_address_of_socket(&a);
    c->account.client.port = ntohs(((struct sockaddr_in *)&a)->sin_port); /* sin6_port has the same offset */
}

struct np_conn *npi_conn_new(struct np_loop *l, int fd, struct np_tls *tls) {
    static const struct {
        int level, name, value;
    } options[] = {{IPPROTO_TCP, TCP_NODELAY, 1},
                   {SOL_SOCKET, SO_KEEPALIVE, 1},
                   {IPPROTO_TCP, TCP_KEEPIDLE, 60},
                   {IPPROTO_TCP, TCP_KEEPINTVL, 15},
                   {IPPROTO_TCP, TCP_KEEPCNT, 4}};
    struct np_conn *c = calloc(1, sizeof(*c));
    if (c) {
        read_addresses(c, fd);
        c->address_entry = npi_peers_enter(&l->bounds->peers, &c->peer);
        if (!c->address_entry) np_metric_add(&l->metrics, NP_METRIC_CONNECTIONS_REFUSED, 1);
    }
    if (!c || !c->address_entry || np_transport_init(&c->transport, fd, tls)) {
        if (c && c->address_entry) npi_peers_leave(&l->bounds->peers, c->address_entry);
        free(c);
        close(fd);
        return NULL;
    }
    for (size_t i = 0; i < ARRAY_LEN(options); i++)
        setsockopt(fd, options[i].level, options[i].name, &options[i].value, sizeof(options[i].value));
    c->loop = l;
    c->refs = 1;
    c->state_us = clock_machine_us(l->o->clock);
    c->session.role = "anonymous";
    if (l->o->catalog) c->session.partitioner = catalog_partitioner(l->o->catalog);
    ip_address_print(&c->peer, c->account.address);
    c->session.client_address = c->account.address;
    c->session.limit = &c->limit;
    cql_client_open(l->o->db, &c->client);
    enter_ledger(c);
    np_work_client_init(&c->work);
    buf_init(&c->in.kept, 0);
    buf_init(&c->in.large, 0);
    np_output_init(&c->output, &l->bufs, &l->bounds->unread, l);
    npi_share_init(&c->in.share, &l->bounds->unfinished, l);
    c->next = l->conns;
    if (c->next) c->next->prev = c;
    l->conns = c;
    ev_io_init(&c->read_io, on_readable, fd, EV_READ);
    ev_io_init(&c->write_io, on_writable, fd, EV_WRITE);
    c->read_io.data = c->write_io.data = c;
    ev_io_start(l->ev, &c->read_io);
    np_metric_add(&l->metrics, NP_METRIC_CONNECTIONS, 1);
    np_metric_add(&l->metrics, NP_METRIC_CONNECTIONS_OPENED, 1);
    return c;
}
