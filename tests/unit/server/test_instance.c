/* A whole server in this process, spoken to over its socket: what clients are told when the storage fails. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>
#include <arpa/inet.h>
#include <errno.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/fault.h"
#include "server/instance.h"
#include "server/page/page.h"

enum { VERSION = 4, ANSWER_ERROR = 0, ANSWER_READY = 2, ANSWER_RESULT = 8, ASK_STARTUP = 1, ASK_QUERY = 7 };

struct world {
    struct config config;
    struct instance in;
    uint16_t admin_port;
    int fd;
    bool closed;
};

static int dial(uint16_t port) {
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    struct sockaddr_in a = {.sin_family = AF_INET, .sin_port = htons(port), .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    assert_true(fd >= 0);
    if (connect(fd, (struct sockaddr *)&a, sizeof(a))) return close(fd), -1;
    return fd;
}

static bool send_all(int fd, struct slice s) {
    for (ssize_t n; s.n; s = slice_of(s.p + n, s.n - (size_t)n))
        if ((n = send(fd, s.p, s.n, MSG_NOSIGNAL)) <= 0) return false;
    return true;
}

static bool receive_all(int fd, uint8_t *to, size_t n) {
    for (ssize_t got; n; to += got, n -= (size_t)got)
        if ((got = recv(fd, to, n, 0)) <= 0) return false;
    return true;
}

struct answer {
    int opcode; /* -1: the connection ended */
    int stream;
    uint32_t code;  /* of an error */
    char text[256]; /* of an error */
    uint32_t n;     /* bytes of the body */
};

static struct answer receive(int fd) {
    struct answer a = {.opcode = -1};
    uint8_t head[9];
    if (!receive_all(fd, head, sizeof(head))) return a;
    a.n = load_u32(head + 5);
    uint8_t *body = malloc(a.n + 1);
    assert_non_null(body);
    bool whole = receive_all(fd, body, a.n);
    struct rd r = rd_of(slice_of(body, a.n));
    if (head[1] & 4) { /* custom payload */
        uint16_t n = rd_u16(&r);
        for (uint16_t i = 0; i < n; i++) rd_bytes(&r, rd_u16(&r)), rd_bytes(&r, rd_u32(&r));
    }
    if (whole) a.opcode = head[4];
    a.stream = load_u16(head + 2);
    if (a.opcode == ANSWER_ERROR) {
        a.code = rd_u32(&r);
        struct slice text = rd_bytes(&r, rd_u16(&r));
        snprintf(a.text, sizeof(a.text), "%.*s", SLICE_FMT(text));
    }
    free(body);
    return a;
}

static void put_envelope(struct buf *b, int stream, int opcode, struct slice body) {
    buf_u8(b, VERSION), buf_u8(b, 0), buf_u16(b, (uint16_t)stream), buf_u8(b, (uint8_t)opcode);
    buf_u32(b, (uint32_t)body.n);
    buf_put_slice(b, body);
}

static void put_query(struct buf *b, int stream, const char *cql) {
    struct buf body;
    buf_init(&body, 0);
    buf_u32(&body, (uint32_t)strlen(cql));
    buf_put_str(&body, cql);
    buf_u16(&body, CL_LOCAL_QUORUM);
    buf_u8(&body, 0);
    put_envelope(b, stream, ASK_QUERY, buf_slice(&body));
    buf_fini(&body);
}

static int open_connection(uint16_t port) {
    static const uint8_t startup[] = "\0\1\0\x0b" "CQL_VERSION" "\0\5" "3.0.0";
    struct buf b;
    int fd = dial(port);
    if (fd < 0) return -1;
    buf_init(&b, 0);
    put_envelope(&b, 0, ASK_STARTUP, slice_of(startup, sizeof(startup) - 1));
    bool good = send_all(fd, buf_slice(&b)) && receive(fd).opcode == ANSWER_READY;
    buf_fini(&b);
    if (!good) close(fd);
    return good ? fd : -1;
}

static struct answer ask(int fd, const char *cql) {
    struct buf b;
    buf_init(&b, 0);
    put_query(&b, 1, cql);
    bool sent = send_all(fd, buf_slice(&b));
    buf_fini(&b);
    return sent ? receive(fd) : (struct answer){.opcode = -1};
}

static void assert_done(struct answer a) {
    if (a.opcode != ANSWER_RESULT) fail_msg("opcode %d, error %04x: %s", a.opcode, a.code, a.text);
}

static void assert_server_error(struct answer a, const char *text) {
    assert_int_equal(a.opcode, ANSWER_ERROR);
    assert_int_equal(a.code, 0);
    if (!strstr(a.text, text)) fail_msg("'%s' is not in: %s", text, a.text);
}

static int http_send(uint16_t port, const char *request) {
    int fd = dial(port);
    assert_true(fd >= 0);
    assert_true(send_all(fd, slice_str(request)));
    return fd;
}

static int http_receive(int fd) {
    char text[13] = "";
    assert_true(receive_all(fd, (uint8_t *)text, 12));
    close(fd);
    return atoi(text + 9);
}

static int http_status(uint16_t port, const char *path) {
    char text[128];
    snprintf(text, sizeof(text), "GET %s HTTP/1.0\r\n\r\n", path);
    return http_receive(http_send(port, text));
}

static int setup(void **state) {
    static int tries;
    struct world *w = test_calloc(1, sizeof(*w));
    struct settings s;
    struct err e = {0};
    char admin[8];
    signal(SIGPIPE, SIG_IGN);
    /* below the ports that the system gives to clients, which other tests use */
    for (int fd = -1; fd < 0; fd = fd < 0 ? fd : close(fd)) {
        err_clear(&e);
        w->admin_port = (uint16_t)(10000 + (getpid() + tries++) % 20000);
        fd = np_port_reserve("127.0.0.1", &w->admin_port, &e);
    }
    snprintf(admin, sizeof(admin), "%u", w->admin_port);
    char *argv[] = {"tallyd",       "--data-dir", ":memory:",   "--port", "0",         "--mode", "cassandra",
                    "--admin-port", admin,        "--api-port", "0",      "--threads", "2",      NULL};
    assert_int_equal(config_load(&w->config, ARRAY_LEN(argv) - 1, argv, &e), 0);
    assert_int_equal(settings_read(&s, &w->config, &e), 0);
    if (instance_open(&w->in, &s, &e)) fail_msg("%s", e.text);
    w->fd = open_connection(np_front_port(w->in.front));
    assert_true(w->fd >= 0);
    assert_done(
        ask(w->fd, "CREATE KEYSPACE k WITH replication = {'class': 'SimpleStrategy', 'replication_factor': 1}"));
    assert_done(ask(w->fd, "CREATE TABLE k.t (pk int, ck int, v text, PRIMARY KEY (pk, ck))"));
    *state = w;
    return 0;
}

static int teardown(void **state) {
    struct world *w = *state;
    close(w->fd);
    for (int i = 0; i < FAULT_POINTS; i++) fault_arm((enum fault_point)i, 0);
    if (!w->closed) instance_close(&w->in);
    config_fini(&w->config);
    test_free(w);
    return 0;
}

static void test_failed_sync_ends_acknowledging_and_reads_go_on(void **state) {
    static const char text[] = "no write is acknowledged";
    static const char *const writes[] = {
        "INSERT INTO k.t (pk, ck, v) VALUES (3, 3, 'a')",
        "INSERT INTO k.t (pk, ck, v) VALUES (3, 3, 'a') IF NOT EXISTS",
        "INSERT INTO k.t (pk, ck, v) VALUES (1, 1, 'a') IF NOT EXISTS",
        "BEGIN BATCH INSERT INTO k.t (pk, ck, v) VALUES (3, 3, 'a'); DELETE FROM k.t WHERE pk = 4; APPLY BATCH",
        "DELETE FROM k.t WHERE pk = 1",
        "CREATE TABLE k.u (pk int PRIMARY KEY)",
        "DROP TABLE k.t",
        "TRUNCATE k.t",
    };
    struct world *w = *state;
    assert_done(ask(w->fd, "INSERT INTO k.t (pk, ck, v) VALUES (1, 1, 'a')"));
    assert_int_equal(http_status(w->admin_port, "/ready"), 200);
    fault_arm(FAULT_KV_SYNC, FAULT_ALWAYS);
    assert_server_error(ask(w->fd, "INSERT INTO k.t (pk, ck, v) VALUES (2, 2, 'a')"), text);
    for (size_t i = 0; i < ARRAY_LEN(writes); i++) {
        struct answer a = ask(w->fd, writes[i]);
        if (a.opcode != ANSWER_ERROR) fail_msg("acknowledged: %s", writes[i]);
        if (!strstr(writes[i], "TRUNCATE")) assert_server_error(a, text);
    }
    assert_done(ask(w->fd, "SELECT * FROM k.t WHERE pk = 1"));
    assert_done(ask(w->fd, "SELECT * FROM k.t"));
    assert_int_equal(http_status(w->admin_port, "/ready"), 503);
    assert_int_equal(http_status(w->admin_port, "/health"), 200);
    int other = open_connection(np_front_port(w->in.front));
    assert_server_error(ask(other, writes[0]), text);
    assert_done(ask(other, "SELECT * FROM k.t WHERE pk = 1"));
    close(other);
    fault_arm(FAULT_KV_SYNC, 0);
    for (int i = 0; i < 1000 && http_status(w->admin_port, "/ready") != 200; i++) usleep(10000);
    assert_done(ask(w->fd, writes[0])); /* everything is on disk again */
}

static void test_failed_commit_is_an_error_and_leaves_nothing(void **state) {
    struct world *w = *state;
    uint32_t empty = ask(w->fd, "SELECT * FROM k.t").n;
    fault_arm(FAULT_KV_WRITE, 1);
    assert_server_error(ask(w->fd, "INSERT INTO k.t (pk, ck, v) VALUES (1, 1, 'a')"), "injected");
    assert_int_equal(ask(w->fd, "SELECT * FROM k.t").n, empty);
    fault_arm(FAULT_KV_WRITE, 1);
    assert_server_error(ask(w->fd, "INSERT INTO k.t (pk, ck, v) VALUES (1, 1, 'a') IF NOT EXISTS"), "injected");
    fault_arm(FAULT_KV_WRITE, 1);
    assert_server_error(ask(w->fd, "CREATE TABLE k.u (pk int PRIMARY KEY)"), "injected");
    assert_int_equal(ask(w->fd, "SELECT * FROM k.t").n, empty);
    assert_done(ask(w->fd, "CREATE TABLE k.u (pk int PRIMARY KEY)"));
    assert_done(ask(w->fd, "INSERT INTO k.t (pk, ck, v) VALUES (1, 1, 'a') IF NOT EXISTS"));
    assert_true(ask(w->fd, "SELECT * FROM k.t").n > empty);
    assert_int_equal(http_status(w->admin_port, "/ready"), 200);
}

/* All of one wake-up share a batch: each stream gets its own error. */
static void test_failed_commit_answers_every_stream(void **state) {
    enum { WRITES = 20 };
    struct world *w = *state;
    struct buf b;
    bool seen[WRITES] = {false};
    int failed = 0;
    buf_init(&b, 0);
    for (int i = 0; i < WRITES; i++) {
        char cql[96];
        snprintf(cql, sizeof(cql), "INSERT INTO k.t (pk, ck, v) VALUES (%d, 1, 'a')", i);
        put_query(&b, i, cql);
    }
    fault_arm(FAULT_KV_WRITE, 1);
    assert_true(send_all(w->fd, buf_slice(&b)));
    for (int i = 0; i < WRITES; i++) {
        struct answer a = receive(w->fd);
        assert_true(a.stream < WRITES && !seen[a.stream]);
        seen[a.stream] = true;
        failed += a.opcode == ANSWER_ERROR;
    }
    assert_true(failed > 0);
    buf_fini(&b);
}

static void test_failed_reads_are_errors(void **state) {
    struct world *w = *state;
    assert_done(ask(w->fd, "INSERT INTO k.t (pk, ck, v) VALUES (1, 1, 'a')"));
    static const char *const reads[] = {"SELECT * FROM k.t WHERE pk = 1 AND ck = 1", "SELECT * FROM k.t WHERE pk = 1",
                                        "SELECT * FROM k.t",
                                        "INSERT INTO k.t (pk, ck, v) VALUES (1, 1, 'a') IF NOT EXISTS"};
    for (size_t i = 0; i < ARRAY_LEN(reads); i++) {
        fault_arm(FAULT_KV_READ, 1);
        assert_server_error(ask(w->fd, reads[i]), "injected");
        assert_done(ask(w->fd, reads[i]));
    }
}

/* ---- many at once: what the thread sanitizer looks at ---- */

struct client {
    pthread_t thread;
    uint16_t port;
    unsigned number;
    atomic_uint *acknowledged;
};

static void *talk(void *arg) {
    struct client *c = arg;
    static const char *const forms[] = {
        "INSERT INTO k.t (pk, ck, v) VALUES (%u, %u, 'text')",
        "SELECT * FROM k.t WHERE pk = %u AND ck = %u",
        "UPDATE k.t SET v = 'other' WHERE pk = %u AND ck = %u IF v = 'text'",
        "SELECT * FROM k.t WHERE pk IN (%u, %u)",
        "BEGIN BATCH INSERT INTO k.t (pk, ck, v) VALUES (%u, 1, 'b'); DELETE FROM k.t WHERE pk = 1 AND ck = %u; APPLY "
        "BATCH",
    };
    int fd = -1;
    for (unsigned i = 0; i < 60; i++) {
        struct buf b;
        if (fd < 0) fd = open_connection(c->port);
        if (fd < 0) return NULL; /* the server has stopped */
        buf_init(&b, 0);
        for (int k = 0; k < 8; k++) {
            char cql[256];
            snprintf(cql, sizeof(cql), forms[(i + (unsigned)k) % ARRAY_LEN(forms)], i % 7, c->number);
            put_query(&b, k, cql);
        }
        bool sent = send_all(fd, buf_slice(&b));
        buf_fini(&b);
        bool leave = !sent || i % 10 == 9; /* with its requests on their way */
        for (int k = 0; k < 8 && !leave; k++) {
            leave = receive(fd).opcode < 0;
            if (!leave) atomic_fetch_add(c->acknowledged, 1);
        }
        if (leave) close(fd), fd = -1;
    }
    if (fd >= 0) close(fd);
    return NULL;
}

static void test_clients_come_and_go_while_others_are_served(void **state) {
    struct world *w = *state;
    atomic_uint acknowledged = 0;
    struct client clients[4];
    for (unsigned i = 0; i < ARRAY_LEN(clients); i++) {
        clients[i] = (struct client){.port = np_front_port(w->in.front), .number = i, .acknowledged = &acknowledged};
        assert_int_equal(pthread_create(&clients[i].thread, NULL, talk, &clients[i]), 0);
    }
    for (int i = 0; i < 4; i++) {
        char cql[96];
        snprintf(cql, sizeof(cql), "CREATE TABLE k.more%d (pk int PRIMARY KEY)", i);
        assert_done(ask(w->fd, cql));
        assert_done(ask(w->fd, "SELECT * FROM k.t"));
    }
    for (unsigned i = 0; i < ARRAY_LEN(clients); i++) pthread_join(clients[i].thread, NULL);
    assert_int_equal(atomic_load(&acknowledged), ARRAY_LEN(clients) * 54 * 8);
}

static void test_stopping_under_load_ends(void **state) {
    struct world *w = *state;
    atomic_uint acknowledged = 0;
    struct client clients[3];
    for (unsigned i = 0; i < ARRAY_LEN(clients); i++) {
        clients[i] = (struct client){.port = np_front_port(w->in.front), .number = i, .acknowledged = &acknowledged};
        assert_int_equal(pthread_create(&clients[i].thread, NULL, talk, &clients[i]), 0);
    }
    while (!atomic_load(&acknowledged)) sched_yield();
    instance_close(&w->in);
    w->closed = true;
    for (unsigned i = 0; i < ARRAY_LEN(clients); i++) pthread_join(clients[i].thread, NULL);
}

/* The server chooses its port before it opens the store, and listens after that. */
static void test_reserved_port_is_not_given_to_others(void **state) {
    struct sockaddr_in a = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    uint16_t port = 0, same;
    struct err e = {0};
    (void)state;
    int reserved = np_port_reserve("127.0.0.1", &port, &e), fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    assert_true(reserved >= 0 && port);
    a.sin_port = htons(port);
    assert_int_equal(bind(fd, (struct sockaddr *)&a, sizeof(a)), -1);
    assert_int_equal(errno, EADDRINUSE);
    assert_int_equal(dial(port), -1); /* it does not accept connections yet */
    same = port;
    assert_int_equal(np_port_reserve("127.0.0.1", &same, &e), -1);
    assert_int_equal(e.code, ERR_CONFIG);
    err_clear(&e);
    close(reserved);
    assert_int_equal(bind(fd, (struct sockaddr *)&a, sizeof(a)), 0);
    close(fd);
}

/* The page's slow requests wait for a thread. One too many is refused; those that wait are served, and so are quick
 * requests, probes and the statements, which wait in a queue of their own. */
static void test_page_refuses_only_what_finds_its_queue_full(void **state) {
    enum { SENT = PAGE_QUEUE + 2 /* the thread has taken one, or none */ };
    static const char rows[] = "GET /api/rows?of=limits HTTP/1.0\r\n\r\n",
                      statement[] = "POST /api/query HTTP/1.0\r\nX-Tally: test\r\nContent-Length: 17\r\n\r\n"
                                    "SELECT * FROM k.t";
    struct world *w = *state;
    struct pollfd fds[SENT];
    int refused = 0, open = 0;
    page_pause(w->in.page);
    for (int i = 0; i < SENT; i++) fds[i] = (struct pollfd){.fd = http_send(w->admin_port, rows), .events = POLLIN};
    assert_true(poll(fds, SENT, -1) > 0);
    for (int i = 0; i < SENT; i++) {
        if (!fds[i].revents) {
            fds[open++].fd = fds[i].fd;
            continue;
        }
        assert_int_equal(http_receive(fds[i].fd), 503);
        refused++;
    }
    int other = http_send(w->admin_port, statement);
    assert_int_equal(http_status(w->admin_port, "/health"), 200);
    assert_int_equal(http_status(w->admin_port, "/api/tables"), 200);
    page_continue(w->in.page);
    assert_int_equal(http_receive(other), 200);
    for (int i = 0; i < open; i++) refused += http_receive(fds[i].fd) == 503;
    assert_in_range(refused, 1, SENT - PAGE_QUEUE);
    assert_int_equal(http_status(w->admin_port, "/api/rows?of=limits"), 200);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_reserved_port_is_not_given_to_others),
        cmocka_unit_test_setup_teardown(test_page_refuses_only_what_finds_its_queue_full, setup, teardown),
        cmocka_unit_test_setup_teardown(test_failed_sync_ends_acknowledging_and_reads_go_on, setup, teardown),
        cmocka_unit_test_setup_teardown(test_failed_commit_is_an_error_and_leaves_nothing, setup, teardown),
        cmocka_unit_test_setup_teardown(test_failed_commit_answers_every_stream, setup, teardown),
        cmocka_unit_test_setup_teardown(test_failed_reads_are_errors, setup, teardown),
        cmocka_unit_test_setup_teardown(test_clients_come_and_go_while_others_are_served, setup, teardown),
        cmocka_unit_test_setup_teardown(test_stopping_under_load_ends, setup, teardown),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
