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

enum { READ_CHUNK = 256 * 1024, PAGE_SIZE = 5000 /* as the drivers ask for */ };

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
    uint8_t ids[3][16]; /* read, insert, slice */
    enum workload workload;
    bool loading, stopping;
    uint64_t next_row, left_to_send, outstanding;
    uint64_t seed;
    struct load_result *result;
};

static const char *const schema[] = {
    "CREATE KEYSPACE IF NOT EXISTS bench WITH replication = {'class': 'SimpleStrategy', 'replication_factor': 1}",
    "CREATE TABLE IF NOT EXISTS bench.rows (pk int, ck int, c1 text, c2 text, c3 text, c4 text, c5 text, PRIMARY KEY (pk, ck))",
};
static const char *const statements[] = {
    "SELECT c1, c2, c3, c4, c5 FROM bench.rows WHERE pk = ? AND ck = ?",
    "INSERT INTO bench.rows (pk, ck, c1, c2, c3, c4, c5) VALUES (?, ?, ?, ?, ?, ?, ?)",
    "SELECT ck, c1, c2, c3, c4, c5 FROM bench.rows WHERE pk = ?",
};

/* xorshift64*: the same sequence every run. */
static uint64_t next_random(struct load *l) {
    l->seed ^= l->seed >> 12;
    l->seed ^= l->seed << 25;
    l->seed ^= l->seed >> 27;
    return l->seed * 2685821657736338717ull;
}

/* ---- requests ---- */

static void put_int(struct buf *b, uint32_t v) {
    buf_u32(b, 4);
    buf_u32(b, v);
}

static void execute(struct conn *c, uint16_t stream, const uint8_t id[16], uint32_t pk, int64_t ck, bool values) {
    size_t at = wire_begin(&c->out, stream, WIRE_EXECUTE);
    buf_u16(&c->out, 16);
    buf_put(&c->out, id, 16);
    buf_u16(&c->out, WIRE_LOCAL_QUORUM);
    buf_u8(&c->out, 0x01 | 0x02 | (values ? 0 : 0x04)); /* values, skip metadata, page size */
    buf_u16(&c->out, (uint16_t)(1 + (ck >= 0) + (values ? LOAD_VALUES : 0)));
    put_int(&c->out, pk);
    if (ck >= 0) put_int(&c->out, (uint32_t)ck);
    for (int i = 0; values && i < LOAD_VALUES; i++) {
        char text[LOAD_VALUE_BYTES + 1];
        snprintf(text, sizeof(text), "%08x-%08x-%02x", pk, (uint32_t)ck, (unsigned)i);
        buf_u32(&c->out, LOAD_VALUE_BYTES);
        buf_put(&c->out, text, LOAD_VALUE_BYTES);
    }
    if (!values) buf_u32(&c->out, PAGE_SIZE);
    wire_end(&c->out, at);
    c->started[stream] = now_ns();
    c->load->outstanding++;
}

static void send_load_row(struct conn *c, uint16_t stream) {
    struct load *l = c->load;
    uint64_t row = l->next_row++;
    c->expected[stream] = -1;
    if (row < LOAD_POINTS) execute(c, stream, l->ids[1], (uint32_t)row, 0, true);
    else {
        row -= LOAD_POINTS;
        execute(c, stream, l->ids[1], (uint32_t)(LOAD_POINTS + row / LOAD_SLICE_ROWS), (int64_t)(row % LOAD_SLICE_ROWS), true);
    }
}

static void send_next(struct conn *c, uint16_t stream) {
    struct load *l = c->load;
    if (l->stopping || (l->loading && l->next_row >= l->left_to_send)) return;
    if (l->loading) return send_load_row(c, stream);
    enum workload w = l->workload;
    uint64_t r = next_random(l);
    if (w == LOAD_MIXED) w = r >> 60 < 3 ? LOAD_INSERT : LOAD_READ; /* 3 of 16 */
    c->expected[stream] = w == LOAD_READ ? 1 : w == LOAD_SLICE ? LOAD_SLICE_ROWS : -1;
    if (w == LOAD_READ) execute(c, stream, l->ids[0], (uint32_t)(r % LOAD_POINTS), 0, false);
    else if (w == LOAD_INSERT) execute(c, stream, l->ids[1], (uint32_t)(r % LOAD_POINTS), 0, true);
    else execute(c, stream, l->ids[2], (uint32_t)(LOAD_POINTS + r % LOAD_SLICES), -1, false);
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

static int make_schema(struct load *l) {
    struct conn *c = &l->conns[0];
    struct wire_response r;
    for (size_t i = 0; i < ARRAY_LEN(schema); i++) {
        wire_query(&c->out, 0, schema[i]);
        if (exchange(c, &r)) return -1;
    }
    for (size_t i = 0; i < ARRAY_LEN(statements); i++) {
        wire_prepare(&c->out, 0, statements[i]);
        if (exchange(c, &r)) return -1;
        struct rd in = rd_of(r.body);
        rd_u32(&in);
        struct slice id = rd_bytes(&in, rd_u16(&in));
        if (id.n != 16) return -1;
        memcpy(l->ids[i], id.p, 16);
    }
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
    l->ids[0][0] = LOAD_ID_READ;
    l->ids[1][0] = LOAD_ID_INSERT;
    l->ids[2][0] = LOAD_ID_SLICE;
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

int load_rows(struct load *l) {
    struct load_result r = {0};
    l->result = &r;
    l->loading = true;
    l->next_row = 0;
    l->left_to_send = LOAD_POINTS + LOAD_SLICES * LOAD_SLICE_ROWS;
    set_nonblocking(l);
    run_loop(l);
    l->loading = false;
    if (r.failed) fprintf(stderr, "%llu of %llu rows were not written: %s\n", (unsigned long long)r.failed, (unsigned long long)r.requests, r.first_error);
    return r.failed ? -1 : 0;
}

void load_run(struct load *l, enum workload w, double seconds, struct load_result *out) {
    *out = (struct load_result){0};
    l->result = out;
    l->workload = w;
    l->stopping = false;
    set_nonblocking(l);
    ev_timer_init(&l->deadline, on_deadline, seconds, 0);
    l->deadline.data = l;
    ev_now_update(l->loop);
    ev_timer_start(l->loop, &l->deadline);
    double t0 = now_seconds();
    run_loop(l);
    out->seconds = now_seconds() - t0;
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
