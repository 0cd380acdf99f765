#include "tests/bench/ceiling.h"

#include <arpa/inet.h>
#include <errno.h>
#include <ev.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <unistd.h>

#include "tests/bench/ceiling_store.h"
#include "tests/bench/disk.h"
#include "tests/bench/drive.h"
#include "tools/client/wire.h"

enum { MAX_CONNS = 1024, READ_CHUNK = 256 * 1024 };

struct ceiling_conn {
    struct ceiling *server;
    int fd;
    ev_io io;
    struct buf in, out;
    bool dirty;
};

struct waiting {
    struct ceiling_conn *conn;
    uint16_t stream;
};

/* Answers of one batch wait together. */
struct ceiling {
    struct ceiling_options options;
    struct ev_loop *loop;
    ev_io listener;
    ev_prepare prepare;
    ev_async durable;
    ev_signal term;
    struct ceiling_store *store;
    struct disk *disk;
    ev_timer late;
    struct ceiling_conn *conns[MAX_CONNS];
    unsigned n;
    struct buf row;      /* that an update changes */
    struct buf gathered; /* struct waiting of this wake-up */
    struct buf waiting;  /* struct waiting of written batches, in order; from waiting_at on */
    size_t waiting_at;
    struct buf batches; /* pairs of u64: sequence, end offset in waiting */
    size_t batches_at;
};

static void answer_void(struct ceiling_conn *c, uint16_t stream) {
    size_t at = wire_begin(&c->out, WORKLOAD_VERSION, stream, NP_RESULT);
    buf_u32(&c->out, 1);
    wire_end(&c->out, at);
    c->dirty = true;
}

/* Rows without metadata; the row count is patched when they are known. */
static size_t begin_rows(struct ceiling_conn *c, uint16_t stream, uint32_t columns) {
    size_t at = wire_begin(&c->out, WORKLOAD_VERSION, stream, NP_RESULT);
    buf_u32(&c->out, 2);
    buf_u32(&c->out, 4);
    buf_u32(&c->out, columns);
    buf_u32(&c->out, 0);
    c->dirty = true;
    return at;
}

static void end_rows(struct ceiling_conn *c, size_t at, uint32_t rows) {
    buf_patch_u32(&c->out, at + NP_HEADER + 12, rows);
    wire_end(&c->out, at);
}

static void canned_rows(struct ceiling_conn *c, uint16_t stream, uint32_t rows, bool with_ck) {
    static const uint8_t value[LOAD_VALUE_BYTES];
    size_t at = begin_rows(c, stream, LOAD_VALUES + with_ck);
    for (uint32_t r = 0; r < rows; r++) {
        if (with_ck) buf_u32(&c->out, 4), buf_u32(&c->out, r);
        for (int i = 0; i < LOAD_VALUES; i++)
            buf_u32(&c->out, LOAD_VALUE_BYTES), buf_put(&c->out, value, LOAD_VALUE_BYTES);
    }
    end_rows(c, at, rows);
}

static void answer_canned(struct ceiling_conn *c, uint16_t stream, uint8_t statement) {
    if (statement == LOAD_ID_READ) canned_rows(c, stream, 1, false);
    else if (statement == LOAD_ID_SLICE) canned_rows(c, stream, LOAD_SLICE_ROWS, true);
    else answer_void(c, stream);
}

static bool is_write(uint8_t statement) {
    return statement == LOAD_ID_INSERT || statement == LOAD_ID_MERGED || statement == LOAD_ID_UPDATE;
}

/* The row with its first column changed, as the store must read it to know the size of the whole. */
static struct slice changed(struct ceiling *s, uint32_t pk, uint32_t ck, struct slice column) {
    s->row.n = 0;
    if (!ceiling_store_get(s->store, CEILING_MERGED, pk, ck, &s->row) || s->row.n < column.n) return column;
    memcpy(s->row.p, column.p, column.n);
    return buf_slice(&s->row);
}

static void gather(struct ceiling_conn *c, uint16_t stream) {
    struct waiting w = {.conn = c, .stream = stream};
    buf_put(&c->server->gathered, &w, sizeof(w));
}

static void answer_rocksdb(struct ceiling_conn *c, uint16_t stream, uint8_t statement, struct rd *values) {
    struct ceiling *s = c->server;
    struct slice written = statement == LOAD_ID_UPDATE ? rd_bytes(values, 4 + LOAD_VALUE_BYTES) : (struct slice){0};
    rd_u32(values);
    uint32_t pk = rd_u32(values), ck = 0;
    if (statement != LOAD_ID_SLICE) rd_u32(values), ck = rd_u32(values);
    if (is_write(statement)) {
        written = written.n ? changed(s, pk, ck, written) : slice_of(values->p, rd_left(values));
        ceiling_store_put(s->store, statement == LOAD_ID_INSERT ? CEILING_ROWS : CEILING_MERGED, pk, ck, written);
        gather(c, stream);
    } else if (statement == LOAD_ID_READ) {
        size_t at = begin_rows(c, stream, LOAD_VALUES);
        end_rows(c, at, ceiling_store_get(s->store, CEILING_ROWS, pk, ck, &c->out));
    } else {
        size_t at = begin_rows(c, stream, LOAD_VALUES + 1);
        end_rows(c, at, ceiling_store_slice(s->store, pk, &c->out));
    }
}

static void on_frame(struct ceiling_conn *c, const struct wire_response *frame) {
    struct rd in = rd_of(frame->body);
    rd_u16(&in);
    uint8_t statement = rd_u8(&in);
    rd_bytes(&in, 15 + 2 + 1 + 2); /* rest of the id, consistency, flags, number of values */
    if (c->server->options.rocksdb) answer_rocksdb(c, frame->stream, statement, &in);
    else if (c->server->disk && is_write(statement)) gather(c, frame->stream);
    else answer_canned(c, frame->stream, statement);
}

static void flush(struct ceiling_conn *c) {
    size_t at = 0;
    c->dirty = false;
    while (at < c->out.n) {
        ssize_t n = send(c->fd, c->out.p + at, c->out.n - at, MSG_NOSIGNAL);
        if (n < 0 && errno != EAGAIN) break;
        if (n > 0) at += (size_t)n;
    }
    c->out.n = 0;
}

/* Each turn of each workload comes with connections of its own. A write of this one may still wait:
 * what it is remains, without bytes. */
static void leave(struct ceiling_conn *c) {
    struct ceiling *s = c->server;
    ev_io_stop(s->loop, &c->io);
    close(c->fd);
    for (unsigned i = 0; i < s->n; i++)
        if (s->conns[i] == c) s->conns[i] = s->conns[--s->n];
    buf_fini(&c->in);
    buf_fini(&c->out);
}

/* Requests and responses have the same header, so the client's parser serves both. */
static void on_readable(struct ev_loop *loop, ev_io *w, int events) {
    (void)loop, (void)events;
    struct ceiling_conn *c = w->data;
    uint8_t *to = buf_reserve(&c->in, READ_CHUNK);
    ssize_t n = to ? recv(c->fd, to, READ_CHUNK, 0) : -1;
    if (n < 0 && errno == EAGAIN) return;
    if (n <= 0) return leave(c);
    buf_advance(&c->in, (size_t)n);
    size_t at = 0;
    struct wire_response frame;
    for (size_t used; (used = wire_parse(slice_of(c->in.p + at, c->in.n - at), &frame)); at += used)
        on_frame(c, &frame);
    memmove(c->in.p, c->in.p + at, c->in.n - at);
    c->in.n -= at;
}

static void sync_gathered(struct ceiling *s) {
    unsigned n = (unsigned)(s->gathered.n / sizeof(struct waiting));
    if (disk_sync(s->disk, n)) exit(1);
    for (unsigned i = 0; i < n; i++) {
        struct waiting w;
        memcpy(&w, s->gathered.p + i * sizeof(w), sizeof(w));
        answer_void(w.conn, w.stream);
    }
    s->gathered.n = 0;
}

/* Who has stopped to write is not waited for longer than this. */
static void sync_if_all_asked(struct ceiling *s) {
    enum { LATE_MS = 2 };
    size_t asked = s->gathered.n / sizeof(struct waiting);
    if (!asked) return;
    if (asked >= s->n) {
        ev_timer_stop(s->loop, &s->late);
        sync_gathered(s);
    } else if (!ev_is_active(&s->late)) {
        ev_timer_set(&s->late, LATE_MS / 1e3, 0);
        ev_timer_start(s->loop, &s->late);
    }
}

static void on_late(struct ev_loop *loop, ev_timer *w, int events) {
    (void)loop, (void)events;
    sync_gathered(w->data);
}

static void release_durable(struct ceiling *s) {
    uint64_t durable = ceiling_store_durable(s->store), pair[2];
    while (s->batches_at < s->batches.n) {
        memcpy(pair, s->batches.p + s->batches_at, sizeof(pair));
        if (pair[0] > durable) return;
        for (; s->waiting_at < pair[1]; s->waiting_at += sizeof(struct waiting)) {
            struct waiting w;
            memcpy(&w, s->waiting.p + s->waiting_at, sizeof(w));
            answer_void(w.conn, w.stream);
        }
        s->batches_at += sizeof(pair);
    }
    s->batches.n = s->batches_at = s->waiting.n = s->waiting_at = 0;
}

static void on_prepare(struct ev_loop *loop, ev_prepare *w, int events) {
    (void)loop, (void)events;
    struct ceiling *s = w->data;
    uint64_t sequence = s->store ? ceiling_store_commit(s->store) : 0;
    if (sequence) {
        buf_put(&s->waiting, s->gathered.p, s->gathered.n);
        s->gathered.n = 0;
        uint64_t pair[2] = {sequence, s->waiting.n};
        buf_put(&s->batches, pair, sizeof(pair));
    }
    if (s->store) release_durable(s);
    if (s->disk) sync_if_all_asked(s);
    for (unsigned i = 0; i < s->n; i++)
        if (s->conns[i]->dirty) flush(s->conns[i]);
}

/* on_prepare does the rest */
static void on_durable(struct ev_loop *loop, ev_async *w, int events) { (void)loop, (void)w, (void)events; }

static void tell_durable(void *arg) {
    struct ceiling *s = arg;
    ev_async_send(s->loop, &s->durable);
}

static void on_accept(struct ev_loop *loop, ev_io *w, int events) {
    (void)events;
    struct ceiling *s = w->data;
    int one = 1, fd = accept(w->fd, NULL, NULL);
    if (fd < 0 || s->n == MAX_CONNS) return;
    fcntl(fd, F_SETFL, O_NONBLOCK);
    setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof(one));
    struct ceiling_conn *c = calloc(1, sizeof(*c));
    if (!c) exit(1);
    *c = (struct ceiling_conn){.server = s, .fd = fd};
    buf_init(&c->in, 0);
    buf_init(&c->out, 0);
    ev_io_init(&c->io, on_readable, fd, EV_READ);
    c->io.data = c;
    ev_io_start(loop, &c->io);
    s->conns[s->n++] = c;
}

static void on_term(struct ev_loop *loop, ev_signal *w, int events) {
    (void)w, (void)events;
    ev_break(loop, EVBREAK_ALL);
}

static int listen_on_free_port(int port_fd) {
    struct sockaddr_in a = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    socklen_t len = sizeof(a);
    int fd = socket(AF_INET, SOCK_STREAM, 0);
    if (fd < 0 || bind(fd, (struct sockaddr *)&a, sizeof(a)) || listen(fd, 128) ||
        getsockname(fd, (struct sockaddr *)&a, &len))
        return -1;
    dprintf(port_fd, "%u\n", ntohs(a.sin_port));
    close(port_fd);
    return fd;
}

int ceiling_main(int port_fd, const char *dir, void *arg) {
    struct ceiling *s = calloc(1, sizeof(*s));
    if (!s) return 1;
    s->options = *(const struct ceiling_options *)arg;
    buf_init(&s->row, 0);
    buf_init(&s->gathered, 0);
    buf_init(&s->waiting, 0);
    buf_init(&s->batches, 0);
    s->loop = ev_loop_new(EVBACKEND_EPOLL);
    ev_async_init(&s->durable, on_durable);
    ev_async_start(s->loop, &s->durable);
    if (s->options.rocksdb) s->store = ceiling_store_open(dir, s->options.fsync, tell_durable, s);
    if (s->options.synced && !(s->disk = disk_open(dir))) return 1;
    int fd = listen_on_free_port(port_fd);
    if (fd < 0) return 1;
    ev_io_init(&s->listener, on_accept, fd, EV_READ);
    ev_prepare_init(&s->prepare, on_prepare);
    ev_signal_init(&s->term, on_term, SIGTERM);
    ev_init(&s->late, on_late);
    s->listener.data = s->prepare.data = s->late.data = s;
    ev_io_start(s->loop, &s->listener);
    ev_prepare_start(s->loop, &s->prepare);
    ev_signal_start(s->loop, &s->term);
    ev_run(s->loop, 0);
    if (s->store) ceiling_store_close(s->store);
    if (s->disk) disk_close(s->disk);
    return 0;
}
