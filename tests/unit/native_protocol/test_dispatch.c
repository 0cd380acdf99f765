#include "harness.h"

#include <sys/socket.h>
#include <unistd.h>

#include "native_protocol/segment.h"

static void put_query(struct buf *in, int16_t stream, const char *cql) {
    struct buf body;
    buf_init(&body, 0);
    buf_u32(&body, (uint32_t)strlen(cql));
    buf_put_str(&body, cql);
    buf_u16(&body, CL_LOCAL_QUORUM);
    buf_u8(&body, 0);
    harness_query(in, stream, buf_slice(&body));
    buf_fini(&body);
}

/* Waits for n answers. */
static void receive(struct harness *h, int peer, size_t n, struct buf *out) {
    for (;;) {
        assert_true(harness_receive_all(h, peer, out));
        size_t whole = 0;
        for (size_t at = 0; at + NP_HEADER <= out->n; at += NP_HEADER + load_u32(out->p + at + 5))
            if (at + NP_HEADER + load_u32(out->p + at + 5) <= out->n) whole++;
        if (whole == n) return;
        assert_true(whole < n);
        harness_wait(h);
    }
}

static void run(struct harness *h, int peer, const char *cql) {
    struct buf in, out;
    buf_init(&in, 0), buf_init(&out, 0);
    put_query(&in, 1, cql);
    harness_send(h, peer, buf_slice(&in));
    receive(h, peer, 1, &out);
    assert_int_equal(out.p[4], NP_RESULT);
    buf_fini(&in), buf_fini(&out);
}

static struct np_conn *begin(struct harness *h, int *peer) {
    static const uint8_t options[] = {0,   1,   0,   11,  'C', 'Q', 'L', '_', 'V', 'E', 'R',
                                      'S', 'I', 'O', 'N', 0,   5,   '3', '.', '0', '.', '0'};
    struct buf in, out;
    buf_init(&in, 0), buf_init(&out, 0);
    struct np_conn *c = harness_connect(h, peer);
    harness_envelope(&in, 4, NP_STARTUP, 0, slice_of(options, sizeof(options)));
    harness_send(h, *peer, buf_slice(&in));
    receive(h, *peer, 1, &out);
    assert_int_equal(out.p[4], NP_READY);
    buf_fini(&in), buf_fini(&out);
    return c;
}

static void create(struct harness *h, int peer) {
    run(h, peer, "CREATE KEYSPACE k WITH replication = {'class': 'SimpleStrategy', 'replication_factor': 1}");
    run(h, peer, "CREATE TABLE k.t (p int, c int, v blob, PRIMARY KEY (p, c))");
}

static void end(struct harness *h, struct np_conn *c, int peer) {
    npi_conn_unref(c);
    close(peer);
    harness_close(h);
}

static void test_dispatch_answers_every_request_once_and_those_of_the_loop_in_order(void **state) {
    (void)state;
    enum { KINDS = 6, N = 120 };
    static const char *const cql[KINDS] = {"SELECT key FROM system.local",
                                           "INSERT INTO k.t (p, c) VALUES (1, 1)",
                                           "INSERT INTO k.t (p, c) VALUES (1, 2) IF NOT EXISTS",
                                           "SELEC",
                                           "SELECT * FROM k.t WHERE p = 1",
                                           "SELECT v FROM k.nowhere"};
    static const bool fails[KINDS] = {[3] = true, [5] = true};
    struct harness h;
    struct buf in, out;
    int peer;
    harness_open_database(&h);
    struct np_conn *c = begin(&h, &peer);
    create(&h, peer);
    buf_init(&in, 0), buf_init(&out, 0);
    for (int16_t i = 0; i < N; i++) put_query(&in, i, cql[i % KINDS]);
    harness_send(&h, peer, buf_slice(&in));
    receive(&h, peer, N, &out);
    unsigned seen[N] = {0}, last_read = 0;
    for (size_t at = 0; at < out.n; at += NP_HEADER + load_u32(out.p + at + 5)) {
        unsigned stream = load_u16(out.p + at + 2);
        assert_true(stream < N);
        seen[stream]++;
        assert_int_equal(out.p[at + 4], fails[stream % KINDS] ? NP_ERROR : NP_RESULT);
        if (stream % KINDS != 0) continue;
        assert_true(stream >= last_read); /* what the loop answers at once */
        last_read = stream;
    }
    for (size_t i = 0; i < N; i++) assert_int_equal(seen[i], 1);
    assert_int_equal(c->in_flight, 0);
    assert_int_equal(c->offloaded, 0);
    assert_int_equal(c->refs, 2); /* the loop's and the test's */
    buf_fini(&in), buf_fini(&out);
    end(&h, c, peer);
}

static void fill(struct harness *h, int peer, int rows, size_t n) {
    struct buf cql;
    buf_init(&cql, 0);
    for (int i = 0; i < rows; i++) {
        cql.n = 0;
        buf_printf(&cql, "INSERT INTO k.t (p, c, v) VALUES (7, %d, 0x", i);
        memset(buf_reserve(&cql, 2 * n + 2), '0' + i % 10, 2 * n);
        buf_advance(&cql, 2 * n);
        buf_put(&cql, ")", 2);
        run(h, peer, (const char *)cql.p);
    }
    buf_fini(&cql);
}

/* Behind the charge, which is the whole payload. */
static const uint8_t *message_at(const uint8_t *envelope) {
    enum { CHARGE = 2 + 2 + 13 + 4 + 8 };
    assert_int_equal(envelope[1], NP_FLAG_PAYLOAD);
    return envelope + NP_HEADER + CHARGE;
}

static void prepare(struct harness *h, int peer, const char *cql, uint8_t *id) {
    struct buf body, in, out;
    buf_init(&body, 0), buf_init(&in, 0), buf_init(&out, 0);
    buf_u32(&body, (uint32_t)strlen(cql));
    buf_put_str(&body, cql);
    harness_envelope(&in, 4, NP_PREPARE, 0, buf_slice(&body));
    harness_send(h, peer, buf_slice(&in));
    receive(h, peer, 1, &out);
    assert_int_equal(out.p[4], NP_RESULT);
    memcpy(id, message_at(out.p) + 6, 16);
    buf_fini(&body), buf_fini(&in), buf_fini(&out);
}

static void put_execute(struct buf *in, int16_t stream, const uint8_t *id, int p, int c) {
    struct buf body;
    buf_init(&body, 0);
    buf_u16(&body, 16);
    buf_put(&body, id, 16);
    buf_u16(&body, CL_LOCAL_QUORUM);
    buf_u8(&body, 0x03); /* values; no metadata */
    buf_u16(&body, 2);
    buf_u32(&body, 4), buf_u32(&body, (uint32_t)p);
    buf_u32(&body, 4), buf_u32(&body, (uint32_t)c);
    harness_envelope(in, 4, NP_EXECUTE, stream, buf_slice(&body));
    buf_fini(&body);
}

/* Runs of reads that are finished together, of each length up to more than what may wait, and what ends them. */
static void test_dispatch_reads_that_arrive_together_are_answered_in_order_each_with_its_row(void **state) {
    (void)state;
    enum { MOST = 2 * NP_UNTIMED + 3, ROWS = 7 };
    struct harness h;
    int peer;
    uint8_t row[16], other[16];
    harness_open_database(&h);
    struct np_conn *c = begin(&h, &peer);
    create(&h, peer);
    fill(&h, peer, ROWS, 100);
    prepare(&h, peer, "SELECT c, v FROM k.t WHERE p = ? AND c = ?", row);
    prepare(&h, peer, "SELECT c FROM k.t WHERE p = ? AND c = ?", other);
    for (int n = 1; n <= MOST; n++) {
        struct buf in, out;
        buf_init(&in, 0), buf_init(&out, 0);
        for (int16_t i = 0; i < n; i++) put_execute(&in, i, row, 7, i % ROWS);
        put_execute(&in, (int16_t)n, other, 7, 1);
        put_execute(&in, (int16_t)(n + 1), row, 7, ROWS); /* is not there */
        put_execute(&in, (int16_t)(n + 2), row, 7, 1);
        harness_send(&h, peer, buf_slice(&in));
        receive(&h, peer, (size_t)n + 3, &out);
        size_t at = 0;
        for (int i = 0; i < n + 3; i++, at += NP_HEADER + load_u32(out.p + at + 5)) {
            const uint8_t *body = message_at(out.p + at);
            int ck = i < n ? i % ROWS : 1;
            assert_int_equal(load_u16(out.p + at + 2), i);
            assert_int_equal(out.p[at + 4], NP_RESULT);
            assert_int_equal(load_u32(body + 12), i != n + 1); /* rows */
            if (i != n + 1) assert_int_equal(load_u32(body + 20), ck);
            if (i < n) assert_int_equal(body[28], ck * 0x11);
        }
        assert_int_equal(at, out.n);
        assert_int_equal(h.loop.n_untimed, 0);
        assert_int_equal(c->refs, 2);
        buf_fini(&in), buf_fini(&out);
    }
    end(&h, c, peer);
}

/* What is whole is answered, however little it is and whatever has begun behind it. */
static void test_dispatch_reads_do_not_wait_for_those_that_have_not_arrived(void **state) {
    (void)state;
    struct harness h;
    int peer;
    uint8_t id[16];
    harness_open_database(&h);
    struct np_conn *c = begin(&h, &peer);
    create(&h, peer);
    prepare(&h, peer, "SELECT c FROM k.t WHERE p = ? AND c = ?", id);
    struct buf in;
    buf_init(&in, 0);
    for (int16_t i = 0; i < 5; i++) put_execute(&in, i, id, 7, 1);
    /* each cut where the next one begins, or in its middle */
    for (size_t whole = in.n / 5, n = 1; n <= in.n; n += whole - 1) {
        struct buf out;
        buf_init(&out, 0);
        harness_send(&h, peer, slice_of(in.p, n));
        assert_true(harness_receive_all(&h, peer, &out));
        size_t answers = 0;
        for (size_t at = 0; at < out.n; at += NP_HEADER + load_u32(out.p + at + 5), answers++)
            assert_int_equal(out.p[at + 4], NP_RESULT);
        assert_int_equal(answers, n / whole);
        harness_send(&h, peer, slice_of(in.p + n, in.n - n));
        receive(&h, peer, 5, &out);
        buf_fini(&out);
    }
    buf_fini(&in);
    end(&h, c, peer);
}

/* Rows beyond the first block go through blocks of their own, and still stand where their header says. */
static void test_dispatch_large_answers_stand_whole_between_small_ones(void **state) {
    (void)state;
    enum { ROWS = 20, VALUE = 50000, N = 9 };
    struct harness h;
    struct buf in, out;
    int peer;
    harness_open_database(&h);
    struct np_conn *c = begin(&h, &peer);
    create(&h, peer);
    fill(&h, peer, ROWS, VALUE);
    buf_init(&in, 0), buf_init(&out, 0);
    for (int16_t i = 0; i < N; i++)
        put_query(&in, i, i % 3 == 1 ? "SELECT v FROM k.t WHERE p = 7" : "SELECT key FROM system.local");
    harness_send(&h, peer, buf_slice(&in));
    receive(&h, peer, N, &out);
    for (size_t at = 0; at < out.n;) {
        size_t n = load_u32(out.p + at + 5);
        bool is_large = load_u16(out.p + at + 2) % 3 == 1;
        assert_int_equal(out.p[at + 4], NP_RESULT);
        assert_int_equal(n > ROWS * VALUE, is_large);
        at += NP_HEADER + n;
        if (!is_large) continue;
        for (int row = ROWS; row--;) { /* from the end */
            const uint8_t *v = out.p + at - (size_t)(ROWS - row) * (4 + VALUE);
            assert_int_equal(load_u32(v), VALUE);
            assert_int_equal(v[4], row % 10 * 0x11);
            assert_int_equal(v[3 + VALUE], row % 10 * 0x11);
        }
    }
    assert_int_equal(npi_budget_total(&h.bounds.unread), 0);
    assert_int_equal(c->output.share.making, 0);
    buf_fini(&in), buf_fini(&out);
    end(&h, c, peer);
}

/* The last four bytes of the answer, which belong to its last value. */
static uint32_t select_u32(struct harness *h, int peer, const char *select) {
    struct buf in, out;
    buf_init(&in, 0), buf_init(&out, 0);
    put_query(&in, 1, select);
    harness_send(h, peer, buf_slice(&in));
    receive(h, peer, 1, &out);
    assert_int_equal(out.p[4], NP_RESULT);
    uint32_t n = load_u32(out.p + out.n - 4);
    buf_fini(&in), buf_fini(&out);
    return n;
}

/* Groups of each length up to more than two, alone and between requests that join none. */
static void test_dispatch_writes_that_arrive_together_are_all_written_and_each_is_answered(void **state) {
    (void)state;
    enum { MOST = 2 * NP_GROUP + 3 };
    struct harness h;
    int peer;
    uint8_t insert[16], read[16];
    harness_open_database(&h);
    struct np_conn *c = begin(&h, &peer);
    create(&h, peer);
    prepare(&h, peer, "INSERT INTO k.t (p, c) VALUES (?, ?)", insert);
    prepare(&h, peer, "SELECT c FROM k.t WHERE p = ? AND c = ?", read);
    for (int n = 1; n <= MOST; n++) {
        char select[64];
        struct buf in, out;
        buf_init(&in, 0), buf_init(&out, 0);
        for (int16_t i = 0; i < n; i++) put_execute(&in, i, insert, n, i);
        put_execute(&in, (int16_t)n, read, n, 0);
        put_query(&in, (int16_t)(n + 1), "INSERT INTO k.t (p, c) VALUES (1, 1) IF NOT EXISTS");
        put_execute(&in, (int16_t)(n + 2), insert, n, n);
        put_query(&in, (int16_t)(n + 3), "SELEC");
        harness_send(&h, peer, buf_slice(&in));
        receive(&h, peer, (size_t)n + 4, &out);
        uint64_t seen = 0;
        for (size_t at = 0; at < out.n; at += NP_HEADER + load_u32(out.p + at + 5)) {
            unsigned stream = load_u16(out.p + at + 2);
            assert_false(seen >> stream & 1);
            seen |= UINT64_C(1) << stream;
            assert_int_equal(out.p[at + 4], stream == (unsigned)n + 3 ? NP_ERROR : NP_RESULT);
        }
        snprintf(select, sizeof(select), "SELECT count(*) FROM k.t WHERE p = %d", n);
        assert_int_equal(select_u32(&h, peer, select), n + 1);
        assert_int_equal(c->in_flight, 0);
        assert_int_equal(c->refs, 2);
        buf_fini(&in), buf_fini(&out);
    }
    end(&h, c, peer);
}

/* Each segment is unpacked where the one before it was, so a group ends with its segment. */
static void test_dispatch_writes_of_compressed_segments_keep_their_values(void **state) {
    (void)state;
    enum { SEGMENTS = 3, WRITES = 4 };
    static const uint8_t options[] = "\0\2" "\0\13CQL_VERSION" "\0\5" "3.0.0" "\0\13COMPRESSION" "\0\3lz4";
    static const uint8_t no_id[16];
    struct harness h;
    struct buf in, wire, out;
    int peer, packed_peer;
    uint8_t insert[16];
    harness_open_database(&h);
    struct np_conn *c = begin(&h, &peer), *packed = harness_connect(&h, &packed_peer);
    create(&h, peer);
    prepare(&h, peer, "INSERT INTO k.t (p, c, v) VALUES (?, ?, ?)", insert);
    buf_init(&in, 0), buf_init(&wire, 0), buf_init(&out, 0);
    harness_envelope(&in, 5, NP_STARTUP, 0, slice_of(options, sizeof(options) - 1));
    harness_send(&h, packed_peer, buf_slice(&in));
    receive(&h, packed_peer, 1, &out);
    assert_int_equal(out.p[4], NP_READY);
    for (int segment = 0; segment < SEGMENTS; segment++) {
        uint32_t left = 0;
        in.n = 0;
        for (int i = segment * WRITES; i < (segment + 1) * WRITES; i++) {
            size_t at = np_envelope_begin(&in, 5, (int16_t)i, NP_EXECUTE);
            in.p[at] = 5; /* a request */
            buf_u16(&in, 16), buf_put(&in, insert, 16);
            buf_u16(&in, 16), buf_put(&in, no_id, 16); /* of the result's metadata */
            buf_u16(&in, CL_LOCAL_QUORUM), buf_u32(&in, 0x01), buf_u16(&in, 3);
            buf_u32(&in, 4), buf_u32(&in, 9);
            buf_u32(&in, 4), buf_u32(&in, (uint32_t)i);
            buf_u32(&in, 4), buf_u32(&in, (uint32_t)i);
            np_envelope_end(&in, at, 0);
        }
        np_segment_encode(buf_slice(&in), true, &left, &wire);
    }
    harness_send(&h, packed_peer, buf_slice(&wire));
    out.n = 0;
    while (!out.n) {
        assert_true(harness_receive_all(&h, packed_peer, &out));
        if (!out.n) harness_wait(&h);
    }
    for (uint32_t i = 0; i < SEGMENTS * WRITES; i++) {
        char select[64];
        snprintf(select, sizeof(select), "SELECT v FROM k.t WHERE p = 9 AND c = %u", i);
        assert_int_equal(select_u32(&h, peer, select), i);
    }
    assert_int_equal(packed->state, NP_CONN_READY);
    npi_conn_unref(packed);
    close(packed_peer);
    buf_fini(&in), buf_fini(&wire), buf_fini(&out);
    end(&h, c, peer);
}

/* A large answer meets a closed socket while writes in front of it wait for the end of their group. */
static void test_dispatch_client_gone_before_its_group_is_finished(void **state) {
    (void)state;
    enum { ROWS = 20, VALUE = 1500 };
    struct harness h;
    struct buf in;
    int peer, other_peer;
    harness_open_database(&h);
    struct np_conn *c = begin(&h, &peer), *other = begin(&h, &other_peer);
    create(&h, peer);
    fill(&h, peer, ROWS, VALUE);
    buf_init(&in, 0);
    for (int16_t i = 0; i < 5; i++) put_query(&in, i, "SELECT v FROM k.t WHERE p = 7");
    put_query(&in, 5, "INSERT INTO k.t (p, c) VALUES (8, 1)");
    for (int16_t i = 6; i < 9; i++) put_query(&in, i, "SELECT v FROM k.t WHERE p = 7");
    assert_int_equal(send(peer, in.p, in.n, 0), in.n);
    close(peer);
    while (c->refs > 1) harness_wait(&h);
    assert_int_equal(c->state, NP_CONN_CLOSED);
    assert_int_equal(c->in_flight, 0);
    run(&h, other_peer, "SELECT * FROM k.t WHERE p = 7");
    npi_conn_unref(c);
    buf_fini(&in);
    end(&h, other, other_peer);
}

static void test_dispatch_client_gone_while_workers_have_its_requests(void **state) {
    (void)state;
    struct harness h;
    struct buf in;
    int peer, other_peer;
    harness_open_database(&h);
    struct np_conn *c = begin(&h, &peer), *other = begin(&h, &other_peer);
    create(&h, peer);
    buf_init(&in, 0);
    for (int16_t i = 0; i < 12; i++) put_query(&in, i, "UPDATE k.t SET v = 0x00 WHERE p = 1 AND c = 1 IF v = 0x01");
    assert_int_equal(send(peer, in.p, in.n, 0), in.n);
    close(peer);
    while (c->refs > 1) harness_wait(&h);
    assert_int_equal(c->state, NP_CONN_CLOSED);
    assert_int_equal(c->in_flight, 0);
    run(&h, other_peer, "SELECT * FROM k.t WHERE p = 1"); /* the others are served */
    npi_conn_unref(c);
    buf_fini(&in);
    end(&h, other, other_peer);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_dispatch_answers_every_request_once_and_those_of_the_loop_in_order),
        cmocka_unit_test(test_dispatch_reads_that_arrive_together_are_answered_in_order_each_with_its_row),
        cmocka_unit_test(test_dispatch_reads_do_not_wait_for_those_that_have_not_arrived),
        cmocka_unit_test(test_dispatch_large_answers_stand_whole_between_small_ones),
        cmocka_unit_test(test_dispatch_writes_that_arrive_together_are_all_written_and_each_is_answered),
        cmocka_unit_test(test_dispatch_writes_of_compressed_segments_keep_their_values),
        cmocka_unit_test(test_dispatch_client_gone_before_its_group_is_finished),
        cmocka_unit_test(test_dispatch_client_gone_while_workers_have_its_requests),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
