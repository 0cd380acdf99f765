#include "tests/bench/load.h"

#include <arpa/inet.h>
#include <errno.h>
#include <ev.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <unistd.h>

#include "tests/bench/proc.h"
#include "tests/bench/wire.h"

enum { READ_CHUNK = 256 * 1024 };

struct conn {
    struct load *load;
    int fd;
    ev_io reader, writer;
    struct buf in, out;
    size_t in_at, out_at;
    uint64_t *started; /* by stream */
    int64_t *expected; /* rows a response must have, by stream; -1: any */
};

struct load {
    struct ev_loop *loop;
    ev_timer deadline;
    unsigned n, in_flight;
    struct conn *conns;
    uint8_t ids[STATEMENTS][16];
    enum statement request;
    unsigned fills; /* while filling; else 0 */
    bool stopping;
    uint64_t next_row, n_rows, outstanding;
    uint64_t seed;
    struct load_result *result;
};

/* xorshift64*: the same sequence every run. */
static uint64_t next_random(struct load *l) {
    l->seed ^= l->seed >> 12;
    l->seed ^= l->seed << 25;
    l->seed ^= l->seed >> 27;
    return l->seed * 2685821657736338717ull;
}

/* ---- requests ---- */

static bool send_fill(struct conn *c, uint16_t stream) {
    struct load *l = c->load;
    if (l->next_row >= l->n_rows) return false;
    fill_put(&c->out, stream, l->fills, l->next_row++, (const uint8_t(*)[16])l->ids);
    c->expected[stream] = -1;
    return true;
}

static void send_next(struct conn *c, uint16_t stream) {
    struct load *l = c->load;
    if (l->stopping) return;
    if (l->fills) {
        if (!send_fill(c, stream)) return;
    } else {
        uint64_t r = next_random(l);
        enum statement s = workload_pick(l->request, r);
        c->expected[stream] = workload_put(&c->out, stream, s, l->ids[s], r);
    }
    c->started[stream] = now_ns();
    l->outstanding++;
}

/* ---- connection ---- */

static void fail(struct load *l, const char *text) {
    l->result->failed++;
    if (!l->result->first_error[0]) snprintf(l->result->first_error, sizeof(l->result->first_error), "%s", text);
}

static void finish_if_done(struct load *l) {
    if (!l->outstanding) ev_break(l->loop, EVBREAK_ALL);
}

static void on_response(struct conn *c, const struct wire_response *r) {
    struct load *l = c->load;
    char text[256];
    l->outstanding--;
    l->result->requests++;
    hist_add(&l->result->latency, now_ns() - c->started[r->stream]);
    if (r->opcode == WIRE_ERROR) {
        wire_error(r, text, sizeof(text));
        fail(l, text);
    } else if (c->expected[r->stream] >= 0 && wire_rows(r) != c->expected[r->stream]) {
        snprintf(text, sizeof(text), "a response of %lld rows, %lld expected", (long long)wire_rows(r), (long long)c->expected[r->stream]);
        fail(l, text);
    }
    send_next(c, r->stream);
}

static void flush(struct conn *c) {
    while (c->out_at < c->out.n) {
        ssize_t n = send(c->fd, c->out.p + c->out_at, c->out.n - c->out_at, MSG_NOSIGNAL);
        if (n < 0 && errno == EAGAIN) return ev_io_start(c->load->loop, &c->writer);
        if (n < 0) {
            perror("send");
            exit(1);
        }
        c->out_at += (size_t)n;
    }
    c->out.n = c->out_at = 0;
    ev_io_stop(c->load->loop, &c->writer);
}

static void on_writable(struct ev_loop *loop, ev_io *w, int events) {
    (void)loop, (void)events;
    flush(w->data);
}

static void on_readable(struct ev_loop *loop, ev_io *w, int events) {
    (void)loop, (void)events;
    struct conn *c = w->data;
    uint8_t *to = buf_reserve(&c->in, READ_CHUNK);
    ssize_t n = to ? recv(c->fd, to, READ_CHUNK, 0) : -1;
    if (n < 0 && errno == EAGAIN) return;
    if (n <= 0) {
        fprintf(stderr, "the server closed a connection\n");
        exit(1);
    }
    buf_advance(&c->in, (size_t)n);
    struct wire_response r;
    for (size_t used; (used = wire_parse(slice_of(c->in.p + c->in_at, c->in.n - c->in_at), &r)); c->in_at += used) on_response(c, &r);
    memmove(c->in.p, c->in.p + c->in_at, c->in.n - c->in_at);
    c->in.n -= c->in_at;
    c->in_at = 0;
    flush(c);
    finish_if_done(c->load);
}

static int dial(const char *host, uint16_t port) {
    struct sockaddr_in a = {.sin_family = AF_INET, .sin_port = htons(port)};
    int one = 1, fd = socket(AF_INET, SOCK_STREAM, 0);
    if (fd < 0 || inet_pton(AF_INET, host, &a.sin_addr) != 1 || connect(fd, (struct sockaddr *)&a, sizeof(a))) {
        perror("connect");
        return -1;
    }
    setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof(one));
    return fd;
}

/* ---- blocking start ---- */

static int exchange(struct conn *c, struct wire_response *r) {
    if (write(c->fd, c->out.p, c->out.n) != (ssize_t)c->out.n) return -1;
    c->out.n = 0;
    c->in.n = 0;
    for (;;) {
        uint8_t *to = buf_reserve(&c->in, READ_CHUNK);
        ssize_t n = to ? read(c->fd, to, READ_CHUNK) : -1;
        if (n <= 0) return -1;
        buf_advance(&c->in, (size_t)n);
        if (wire_parse(buf_slice(&c->in), r)) break;
    }
    c->in.n = 0;
    if (r->opcode != WIRE_ERROR) return 0;
    char text[256];
    wire_error(r, text, sizeof(text));
    fprintf(stderr, "%s\n", text);
    return -1;
}

static int startup(struct conn *c) {
    struct wire_response r;
    wire_startup(&c->out, 0);
    return exchange(c, &r);
}

static int prepare(struct load *l, enum statement s) {
    struct conn *c = &l->conns[0];
    struct wire_response r;
    wire_prepare(&c->out, 0, statement_text(s));
    if (exchange(c, &r)) return -1;
    struct rd in = rd_of(r.body);
    rd_u32(&in);
    struct slice id = rd_bytes(&in, rd_u16(&in));
    if (id.n != 16) return -1;
    memcpy(l->ids[s], id.p, 16);
    return 0;
}

static int make_schema(struct load *l) {
    struct conn *c = &l->conns[0];
    struct wire_response r;
    for (const char *const *text = workload_schema; *text; text++) {
        wire_query(&c->out, 0, *text);
        if (exchange(c, &r)) return -1;
    }
    for (int s = 0; s < STATEMENTS; s++)
        if (statement_is_prepared((enum statement)s) && prepare(l, (enum statement)s)) return -1;
    return 0;
}

static int conn_init(struct conn *c, struct load *l, const char *host, uint16_t port) {
    c->load = l;
    c->fd = dial(host, port);
    buf_init(&c->in, 0);
    buf_init(&c->out, 0);
    c->started = calloc(l->in_flight, sizeof(*c->started));
    c->expected = calloc(l->in_flight, sizeof(*c->expected));
    if (c->fd < 0 || !c->started || !c->expected) return -1;
    ev_io_init(&c->reader, on_readable, c->fd, EV_READ);
    ev_io_init(&c->writer, on_writable, c->fd, EV_WRITE);
    c->reader.data = c->writer.data = c;
    return 0;
}

struct load *load_open(const char *host, uint16_t port, unsigned connections, unsigned in_flight, bool with_schema) {
    struct load *l = calloc(1, sizeof(*l));
    if (!l) return NULL;
    *l = (struct load){.loop = ev_loop_new(EVBACKEND_EPOLL), .n = connections, .in_flight = in_flight, .seed = 88172645463325252ull};
    l->conns = calloc(connections, sizeof(*l->conns));
    bool ok = l->loop && l->conns;
    for (unsigned i = 0; ok && i < connections; i++) ok = conn_init(&l->conns[i], l, host, port) == 0 && (!with_schema || startup(&l->conns[i]) == 0);
    l->ids[ST_READ][0] = LOAD_ID_READ;
    l->ids[ST_INSERT][0] = LOAD_ID_INSERT;
    l->ids[ST_SLICE][0] = LOAD_ID_SLICE;
    if (ok && (!with_schema || make_schema(l) == 0)) return l;
    load_close(l);
    return NULL;
}

/* ---- running ---- */

static void run_loop(struct load *l) {
    for (unsigned i = 0; i < l->n; i++) {
        struct conn *c = &l->conns[i];
        ev_io_start(l->loop, &c->reader);
        for (unsigned s = 0; s < l->in_flight; s++) send_next(c, (uint16_t)s);
        flush(c);
    }
    if (l->outstanding) ev_run(l->loop, 0);
    for (unsigned i = 0; i < l->n; i++) ev_io_stop(l->loop, &l->conns[i].reader);
}

static void on_deadline(struct ev_loop *loop, ev_timer *w, int events) {
    (void)loop, (void)events;
    struct load *l = w->data;
    l->stopping = true;
    finish_if_done(l);
}

static void set_nonblocking(struct load *l) {
    for (unsigned i = 0; i < l->n; i++) fcntl(l->conns[i].fd, F_SETFL, O_NONBLOCK);
}

int load_fill(struct load *l, unsigned fills) {
    struct load_result r = {0};
    l->result = &r;
    l->fills = fills;
    l->stopping = false;
    l->next_row = 0;
    l->n_rows = fill_size(fills);
    set_nonblocking(l);
    run_loop(l);
    l->fills = 0;
    if (r.failed) fprintf(stderr, "%llu of %llu rows were not written: %s\n", (unsigned long long)r.failed, (unsigned long long)r.requests, r.first_error);
    return r.failed ? -1 : 0;
}

void load_run(struct load *l, enum workload w, double seconds, struct load_result *out) {
    l->result = out;
    l->request = workload_rows[w].request;
    l->stopping = false;
    set_nonblocking(l);
    ev_timer_init(&l->deadline, on_deadline, seconds, 0);
    l->deadline.data = l;
    ev_now_update(l->loop);
    ev_timer_start(l->loop, &l->deadline);
    double t0 = now_seconds();
    run_loop(l);
    out->seconds += now_seconds() - t0;
    ev_timer_stop(l->loop, &l->deadline);
}

void load_close(struct load *l) {
    for (unsigned i = 0; l->conns && i < l->n; i++) {
        struct conn *c = &l->conns[i];
        if (c->fd > 0) close(c->fd);
        buf_fini(&c->in);
        buf_fini(&c->out);
        free(c->started);
        free(c->expected);
    }
    if (l->loop) ev_loop_destroy(l->loop);
    free(l->conns);
    free(l);
}
