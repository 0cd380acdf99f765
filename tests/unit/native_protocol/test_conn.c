#include "harness.h"

#include <sys/ioctl.h>
#include <sys/socket.h>
#include <unistd.h>

#include "native_protocol/segment.h"

enum { MB = 1 << 20 };

static struct slice large(uint32_t n, uint8_t body[5]) {
    body[0] = 'l';
    store_u32(body + 1, n);
    return slice_of(body, 5);
}

/* O1, O2 of output.h, while no answer is being made and none waits for durability; B1 of budget.h. */
static void check_counted(struct harness *h, struct np_conn *const *conns, size_t n) {
    size_t unread = 0, unfinished = 0;
    for (size_t i = 0; i < n; i++) {
        const struct np_output *o = &conns[i]->output;
        size_t held = o->queue.held + (o->open.n ? o->open.cap : 0) + (o->sending.n ? o->sending.cap : 0);
        assert_int_equal(o->counted, held < NP_SHARE_SMALL ? 0 : held);
        assert_int_equal(o->share.bytes, o->counted);
        unread += o->counted;
        unfinished += conns[i]->in.share.bytes;
    }
    assert_int_equal(npi_budget_total(&h->bounds.unread), unread);
    assert_int_equal(npi_budget_total(&h->bounds.unfinished), unfinished);
}

static void expect_answers(struct slice got, uint8_t version, const char *bodies[], size_t n) {
    struct rd rd = rd_of(got);
    for (size_t i = 0; i < n; i++) {
        assert_int_equal(rd_u8(&rd), version | NP_RESPONSE_BIT);
        rd_u8(&rd);
        assert_int_equal(rd_u16(&rd), i);
        assert_int_equal(rd_u8(&rd), NP_RESULT);
        assert_true(slice_is(rd_bytes(&rd, rd_u32(&rd)), bodies[i]));
    }
    assert_int_equal(rd_left(&rd), 0);
}

/* ---- input in pieces ---- */

static void test_conn_envelopes_split_at_every_byte(void **state) {
    (void)state;
    struct harness h;
    struct buf in, out;
    int peer;
    const char *bodies[] = {"e", "efirst", "esecond, and longer"};
    harness_open(&h, MB, MB);
    buf_init(&in, 0), buf_init(&out, 0);
    for (int16_t i = 0; i < 3; i++) harness_query(&in, i, slice_str(bodies[i]));
    for (size_t cut = 0; cut <= in.n; cut++) {
        struct np_conn *c = harness_connect(&h, &peer);
        harness_startup(&h, peer, 4);
        assert_int_equal(harness_send(&h, peer, slice_of(in.p, cut)), cut);
        assert_int_equal(c->in.begun_us != 0, c->in.kept.n != 0);
        assert_int_equal(harness_send(&h, peer, slice_of(in.p + cut, in.n - cut)), in.n - cut);
        assert_int_equal(c->in.begun_us, 0);
        out.n = 0;
        assert_true(harness_receive_all(&h, peer, &out));
        expect_answers(buf_slice(&out), 4, bodies, 3);
        npi_conn_unref(c);
        close(peer);
    }
    buf_fini(&in), buf_fini(&out);
    harness_close(&h);
}

static struct slice unframe(struct slice wire, struct buf *plain) {
    struct buf scratch;
    struct err e = {0};
    buf_init(&scratch, 0);
    for (size_t at = 0; at < wire.n;) {
        struct np_segment seg;
        ssize_t n = np_segment_decode(slice_of(wire.p + at, wire.n - at), false, &scratch, &seg, &e);
        assert_true(n > 0);
        buf_put_slice(plain, seg.payload);
        at += (size_t)n;
    }
    buf_fini(&scratch);
    return buf_slice(plain);
}

static void test_conn_segments_split_at_every_byte(void **state) {
    (void)state;
    struct harness h;
    struct buf in, wire, out, plain;
    int peer;
    uint32_t left = 0;
    const char *bodies[] = {"e", "efirst", "esecond"};
    harness_open(&h, MB, MB);
    buf_init(&in, 0), buf_init(&wire, 0), buf_init(&out, 0), buf_init(&plain, 0);
    for (int16_t i = 0; i < 3; i++) harness_envelope(&in, 5, NP_QUERY, i, slice_str(bodies[i]));
    np_segment_encode(slice_of(in.p, NP_HEADER + 1), false, &left, &wire);
    np_segment_encode(slice_of(in.p + NP_HEADER + 1, in.n - NP_HEADER - 1), false, &left, &wire);
    for (size_t cut = 0; cut <= wire.n; cut++) {
        struct np_conn *c = harness_connect(&h, &peer);
        harness_startup(&h, peer, 5);
        assert_int_equal(harness_send(&h, peer, slice_of(wire.p, cut)), cut);
        assert_int_equal(harness_send(&h, peer, slice_of(wire.p + cut, wire.n - cut)), wire.n - cut);
        out.n = plain.n = 0;
        assert_true(harness_receive_all(&h, peer, &out));
        expect_answers(unframe(buf_slice(&out), &plain), 5, bodies, 3);
        npi_conn_unref(c);
        close(peer);
    }
    buf_fini(&in), buf_fini(&wire), buf_fini(&out), buf_fini(&plain);
    harness_close(&h);
}

static void test_conn_large_envelopes_both_ways_in_segments(void **state) {
    (void)state;
    enum { N = 700000 };
    struct harness h;
    struct buf in, wire, out, plain;
    int peer;
    uint32_t left = 0;
    static uint8_t body[N];
    memset(body, 'e', N);
    harness_open(&h, 4 * MB, 4 * MB);
    buf_init(&in, 0), buf_init(&wire, 0), buf_init(&out, 0), buf_init(&plain, 0);
    harness_envelope(&in, 5, NP_QUERY, 7, slice_of(body, N));
    np_segment_encode(buf_slice(&in), false, &left, &wire);
    struct np_conn *c = harness_connect(&h, &peer);
    harness_startup(&h, peer, 5);
    size_t half = wire.n / 2;
    assert_int_equal(harness_send(&h, peer, slice_of(wire.p, half)), half);
    assert_true(c->in.share.bytes >= half / 2 && c->in.begun_us);
    check_counted(&h, &c, 1);
    assert_int_equal(harness_send(&h, peer, slice_of(wire.p + half, wire.n - half)), wire.n - half);
    assert_int_equal(c->in.share.bytes, 0);
    check_counted(&h, &c, 1); /* the answer waits: the socket holds less */
    assert_true(npi_conn_unsent(c) > 0);
    assert_true(harness_receive_all(&h, peer, &out));
    struct slice got = unframe(buf_slice(&out), &plain);
    assert_int_equal(got.n, NP_HEADER + N);
    assert_memory_equal(got.p + NP_HEADER, body, N);
    check_counted(&h, &c, 1);
    npi_conn_unref(c);
    close(peer);
    buf_fini(&in), buf_fini(&wire), buf_fini(&out), buf_fini(&plain);
    harness_close(&h);
}

/* Checks the answers to an oversized envelope in one or two segments, and to a request after it. */
static void expect_skipped(size_t body, size_t first, size_t behind, bool bad) {
    enum { N = 100000 };
    struct harness h;
    struct buf in, wire, out, plain;
    int peer;
    uint32_t left = 0;
    static uint8_t bytes[2 * N];
    harness_open(&h, 4 * MB, 4 * MB);
    h.options.frame_max = 1000;
    buf_init(&in, 0), buf_init(&wire, 0), buf_init(&out, 0), buf_init(&plain, 0);
    harness_envelope(&in, 5, NP_QUERY, 7, slice_of(bytes, body));
    buf_put(&in, bytes, behind);
    for (size_t at = 0, n = first; at < in.n; at += n, n = in.n - at) {
        left = (uint32_t)n; /* a part of an envelope, whatever it begins with */
        np_segment_encode(slice_of(in.p + at, n), false, &left, &wire);
    }
    in.n = 0;
    harness_envelope(&in, 5, NP_QUERY, 9, slice_str("e"));
    np_segment_encode(buf_slice(&in), false, &left, &wire);
    struct np_conn *c = harness_connect(&h, &peer);
    harness_startup(&h, peer, 5);
    assert_int_equal(harness_send(&h, peer, buf_slice(&wire)), wire.n);
    assert_int_equal(harness_receive_all(&h, peer, &out), !bad); /* after a violation of the protocol it closes */
    struct slice got = unframe(buf_slice(&out), &plain);
    size_t second = NP_HEADER + load_u32(got.p + 5);
    assert_int_equal(got.p[4], NP_ERROR);
    assert_int_equal(load_u16(got.p + 2), 7);
    assert_true(got.n >= second + NP_HEADER);
    assert_int_equal(load_u16(got.p + second + 2), bad ? 0 : 9);
    assert_int_equal(got.p[second + 4] == NP_ERROR, bad);
    npi_conn_unref(c);
    close(peer);
    buf_fini(&in), buf_fini(&wire), buf_fini(&out), buf_fini(&plain);
    harness_close(&h);
}

static void test_conn_bytes_behind_a_skipped_envelope_are_an_error(void **state) {
    (void)state;
    expect_skipped(100000, 50000, 0, false);
    expect_skipped(100000, 50000, 20, true);
    expect_skipped(2000, 2000 + NP_HEADER, 0, false);
    expect_skipped(2000, 2000 + NP_HEADER + 20, 20, true);
    expect_skipped(100000, NP_HEADER + 100000, 1, true);
}

/* ---- back-pressure ---- */

static void test_conn_pauses_while_its_answers_are_not_read_and_resumes(void **state) {
    (void)state;
    enum { N = 200, ANSWER = 50000 };
    struct harness h;
    struct buf in, out;
    int peer;
    uint8_t body[5];
    harness_open(&h, MB, 64 * MB);
    struct np_conn *c = harness_connect(&h, &peer);
    harness_startup(&h, peer, 4);
    buf_init(&in, 0), buf_init(&out, 0);
    for (int16_t i = 0; i < N; i++) harness_query(&in, i, large(ANSWER, body));
    assert_int_equal(harness_send(&h, peer, buf_slice(&in)), in.n); /* the rest is in the socket, or kept */
    assert_true(c->paused);
    assert_in_range(h.n_envelopes, 1 + NP_OUT_HIGH / ANSWER, 1 + 2 * NP_OUT_HIGH / ANSWER);
    check_counted(&h, &c, 1);
    harness_pass(&h, 3);
    unsigned before = h.n_envelopes;
    assert_true(harness_receive(peer, 10000, &out)); /* far from half of what it holds */
    harness_crank(&h);
    assert_int_equal(h.n_envelopes, before);
    assert_true(harness_receive_all(&h, peer, &out));
    assert_int_equal(h.n_envelopes, 1 + N);
    assert_false(c->paused);
    assert_int_equal(out.n, N * (NP_HEADER + ANSWER));
    for (size_t i = 0; i < N; i++)
        assert_int_equal(load_u16(out.p + i * (NP_HEADER + ANSWER) + 2), i); /* in their order */
    check_counted(&h, &c, 1);
    npi_conn_unref(c);
    close(peer);
    buf_fini(&in), buf_fini(&out);
    harness_close(&h);
}

static void test_conn_holds_what_is_not_read_not_all_that_was_sent(void **state) {
    (void)state;
    enum { N = 400, ANSWER = 100000 };
    struct harness h;
    struct buf in, out;
    int peer;
    uint8_t body[5];
    size_t most = 0;
    harness_open(&h, MB, 64 * MB);
    struct np_conn *c = harness_connect(&h, &peer);
    harness_startup(&h, peer, 4);
    buf_init(&in, 0), buf_init(&out, 0);
    harness_query(&in, 0, large(ANSWER, body));
    for (int i = 0; i < N; i++) { /* some always wait */
        harness_send(&h, peer, buf_slice(&in));
        if (i < 5) continue;
        out.n = 0;
        assert_true(harness_receive(peer, ANSWER, &out));
        harness_crank(&h);
        if (npi_conn_unsent(c) == 0) continue;
        check_counted(&h, &c, 1);
        if (c->output.counted > most) most = c->output.counted;
    }
    assert_true(most > 0 && most < 4 * MB);
    npi_conn_unref(c);
    close(peer);
    buf_fini(&in), buf_fini(&out);
    harness_close(&h);
}

static void test_conn_paused_does_not_read_because_tls_would_write(void **state) {
    (void)state;
    struct harness h;
    struct buf in;
    int peer, waiting;
    harness_open(&h, MB, MB);
    struct np_conn *c = harness_connect(&h, &peer);
    harness_startup(&h, peer, 4);
    buf_init(&in, 0);
    harness_query(&in, 0, slice_str("e"));
    npi_conn_stop_reading(c);
    c->in_flight = NP_IN_FLIGHT_MAX; /* so that nothing makes it read again */
    c->transport.wants_write = true;
    harness_send(&h, peer, buf_slice(&in));
    unsigned before = h.n_envelopes;
    ev_feed_event(h.loop.ev, &c->write_io, EV_WRITE);
    harness_crank(&h);
    assert_int_equal(h.n_envelopes, before);
    assert_int_equal(ioctl(c->transport.fd, FIONREAD, &waiting), 0);
    assert_int_equal(waiting, in.n);
    c->in_flight = 0;
    npi_conn_unref(c);
    close(peer);
    buf_fini(&in);
    harness_close(&h);
}

/* ---- time ---- */

static void test_conn_that_takes_nothing_is_closed_in_time_and_a_slow_one_is_not(void **state) {
    (void)state;
    struct harness h;
    struct buf in, out;
    int stuck_peer, slow_peer;
    uint8_t body[5];
    harness_open(&h, MB, 64 * MB);
    struct np_conn *stuck = harness_connect(&h, &stuck_peer), *slow = harness_connect(&h, &slow_peer);
    harness_startup(&h, stuck_peer, 4);
    harness_startup(&h, slow_peer, 4);
    buf_init(&in, 0), buf_init(&out, 0);
    harness_query(&in, 0, large(MB, body));
    harness_send(&h, stuck_peer, buf_slice(&in));
    harness_send(&h, slow_peer, buf_slice(&in));
    for (int second = 0; second < 20; second++) {
        assert_true(harness_receive(slow_peer, 20000, &out));
        harness_pass(&h, 1);
        if (second < 5) assert_int_equal(stuck->state, NP_CONN_READY);
    }
    assert_int_equal(stuck->state, NP_CONN_CLOSED);
    assert_int_equal(slow->state, NP_CONN_READY);
    assert_int_equal(stuck->output.share.bytes, 0);
    npi_conn_unref(stuck), npi_conn_unref(slow);
    close(stuck_peer), close(slow_peer);
    buf_fini(&in), buf_fini(&out);
    harness_close(&h);
}

static void test_conn_whose_request_is_not_whole_in_time_hears_it_and_is_closed(void **state) {
    (void)state;
    struct harness h;
    struct buf in, out;
    int peer, idle_peer, paused_peer;
    harness_open(&h, MB, MB);
    struct np_conn *c = harness_connect(&h, &peer), *idle = harness_connect(&h, &idle_peer),
                   *paused = harness_connect(&h, &paused_peer);
    harness_startup(&h, peer, 4);
    harness_startup(&h, idle_peer, 4);
    harness_startup(&h, paused_peer, 4);
    buf_init(&in, 0), buf_init(&out, 0);
    harness_query(&in, 0, slice_str("e0123456789"));
    harness_send(&h, paused_peer, slice_of(in.p, 12));
    npi_conn_stop_reading(paused); /* that it goes no further is our doing */
    for (size_t i = 0; i < in.n && c->state == NP_CONN_READY; i++) { /* a byte a second is no progress */
        harness_send(&h, peer, slice_of(in.p + i, 1));
        harness_pass(&h, 1);
    }
    assert_int_equal(c->state, NP_CONN_CLOSING);
    assert_null(c->in.kept.p);
    assert_true(harness_receive(peer, 4096, &out) || out.n);
    assert_int_equal(out.p[4], NP_ERROR);
    harness_pass(&h, 4);
    assert_int_equal(c->state, NP_CONN_CLOSED);
    assert_int_equal(idle->state, NP_CONN_READY);
    assert_int_equal(paused->state, NP_CONN_READY);
    npi_conn_unref(c), npi_conn_unref(idle), npi_conn_unref(paused);
    close(peer), close(idle_peer), close(paused_peer);
    buf_fini(&in), buf_fini(&out);
    harness_close(&h);
}

static void test_conn_without_startup_is_closed_in_time(void **state) {
    (void)state;
    struct harness h;
    int peer;
    harness_open(&h, MB, MB);
    struct np_conn *c = harness_connect(&h, &peer);
    harness_pass(&h, 10);
    assert_int_equal(c->state, NP_CONN_NEW);
    harness_pass(&h, 1);
    assert_int_equal(c->state, NP_CONN_CLOSED);
    npi_conn_unref(c);
    close(peer);
    harness_close(&h);
}

/* ---- bounds ---- */

static void test_conn_that_holds_the_most_of_unfinished_requests_goes(void **state) {
    (void)state;
    enum { N = 4 };
    static const size_t sizes[N] = {200000, 540000, 300000, 290000};
    struct harness h;
    struct buf in, out;
    struct np_conn *c[N];
    int peer[N];
    static uint8_t body[600000];
    memset(body, 'e', sizeof(body));
    harness_open(&h, 2 * MB, 8 * MB);
    buf_init(&in, 0), buf_init(&out, 0);
    harness_query(&in, 0, slice_of(body, sizeof(body)));
    for (int i = 0; i < N; i++) {
        c[i] = harness_connect(&h, &peer[i]);
        harness_startup(&h, peer[i], 4);
        harness_send(&h, peer[i], slice_of(in.p, sizes[i]));
    }
    harness_crank(&h);
    assert_int_equal(c[0]->state, NP_CONN_READY);
    assert_int_equal(c[1]->state, NP_CONN_CLOSING);
    assert_int_equal(c[2]->state, NP_CONN_READY);
    assert_int_equal(c[3]->state, NP_CONN_READY);
    assert_int_equal(c[1]->in.share.bytes, 0);
    check_counted(&h, c, N);
    for (int i = 0; i < N; i++) { /* the others get their answers */
        if (i == 1) continue;
        harness_send(&h, peer[i], slice_of(in.p + sizes[i], in.n - sizes[i]));
        out.n = 0;
        assert_true(harness_receive_all(&h, peer[i], &out));
        assert_int_equal(out.n, in.n);
    }
    for (int i = 0; i < N; i++) {
        npi_conn_unref(c[i]);
        close(peer[i]);
    }
    buf_fini(&in), buf_fini(&out);
    harness_close(&h);
}

static void ask_worker(struct harness *h, int peer, int16_t stream) {
    struct buf in;
    buf_init(&in, 0);
    harness_query(&in, stream, slice_str("w"));
    harness_send(h, peer, buf_slice(&in));
    buf_fini(&in);
}

static void test_conn_that_holds_the_most_unread_goes_for_who_reads(void **state) {
    (void)state;
    struct harness h;
    struct buf out;
    struct np_conn *c[3];
    int peer[3];
    harness_open(&h, MB, 16 * MB);
    buf_init(&out, 0);
    for (int i = 0; i < 3; i++) {
        c[i] = harness_connect(&h, &peer[i]);
        harness_startup(&h, peer[i], 4);
        ask_worker(&h, peer[i], 1);
    }
    harness_work(&h, 0, 7 * MB);
    harness_work(&h, 1, 4 * MB);
    assert_true(c[0]->output.share.bytes >= 7 * MB); /* in the loop's inbox it counts already */
    harness_crank(&h);
    check_counted(&h, c, 3);
    harness_pass(&h, 3); /* neither has taken anything since */
    harness_work(&h, 2, 3 * MB);
    harness_crank(&h);
    assert_int_equal(c[0]->state, NP_CONN_CLOSED);
    assert_int_equal(c[1]->state, NP_CONN_READY);
    assert_true(harness_receive_all(&h, peer[2], &out));
    assert_int_equal(out.n, NP_HEADER + 3 * MB);
    assert_int_equal(out.p[4], NP_RESULT);
    check_counted(&h, c, 3);
    for (int i = 0; i < 3; i++) {
        npi_conn_unref(c[i]);
        close(peer[i]);
    }
    buf_fini(&out);
    harness_close(&h);
}

static void test_conn_large_answer_without_room_is_an_error_and_costs_nobody_else(void **state) {
    (void)state;
    struct harness h;
    struct buf out;
    struct np_conn *c[2];
    int peer[2];
    harness_open(&h, MB, 16 * MB);
    buf_init(&out, 0);
    for (int i = 0; i < 2; i++) {
        c[i] = harness_connect(&h, &peer[i]);
        harness_startup(&h, peer[i], 4);
        ask_worker(&h, peer[i], 1);
    }
    harness_work(&h, 0, 10 * MB); /* a moment ago: it may be reading */
    harness_work(&h, 1, 10 * MB);
    harness_crank(&h);
    assert_true(harness_receive_all(&h, peer[1], &out));
    assert_int_equal(out.p[4], NP_ERROR);
    assert_int_equal(load_u32(out.p + NP_HEADER), ERR_OVERLOADED);
    out.n = 0;
    assert_true(harness_receive_all(&h, peer[0], &out));
    assert_int_equal(out.n, NP_HEADER + 10 * MB);
    check_counted(&h, c, 2);
    for (int i = 0; i < 2; i++) {
        npi_conn_unref(c[i]);
        close(peer[i]);
    }
    buf_fini(&out);
    harness_close(&h);
}

/* ---- calls in flight ---- */

static void test_conn_closed_while_its_calls_are_in_flight(void **state) {
    (void)state;
    struct harness h;
    struct buf out;
    int peer;
    harness_open(&h, MB, 64 * MB);
    buf_init(&out, 0);
    struct np_conn *c = harness_connect(&h, &peer);
    harness_startup(&h, peer, 4);
    for (int16_t i = 0; i < 4; i++) ask_worker(&h, peer, i);
    assert_int_equal(h.n_working, 4);
    assert_int_equal(c->offloaded, 4);
    harness_work(&h, 0, 3 * MB);
    harness_crank(&h);
    harness_work(&h, 1, 3 * MB); /* in the inbox when the connection closes */
    close(peer);
    ev_feed_event(h.loop.ev, &c->read_io, EV_READ);
    ev_run(h.loop.ev, EVRUN_NOWAIT);
    assert_int_equal(c->state, NP_CONN_CLOSED);
    assert_true(atomic_load(&c->gone));
    harness_work(&h, 2, 100);
    harness_work(&h, 3, 3 * MB);
    harness_crank(&h);
    assert_int_equal(c->in_flight, 0);
    assert_int_equal(npi_budget_total(&h.bounds.unread), 0);
    assert_int_equal(c->refs, 1); /* the test's */
    npi_conn_unref(c);
    buf_fini(&out);
    harness_close(&h);
}

static void test_loop_closed_while_answers_are_in_its_inbox_and_wait_for_durability(void **state) {
    (void)state;
    struct harness h;
    int peer;
    harness_open(&h, MB, 64 * MB);
    struct np_conn *c = harness_connect(&h, &peer);
    harness_startup(&h, peer, 4);
    for (int16_t i = 0; i < 2; i++) ask_worker(&h, peer, i);
    h.working[0]->state = NP_CALL_WRITTEN;
    h.working[0]->r.answer.commit_seq = UINT64_MAX; /* never */
    harness_work(&h, 0, 3 * MB);
    harness_crank(&h);
    assert_int_equal(c->in_flight, 2); /* the one that is held, and the one on a worker */
    assert_true(c->output.share.bytes >= 3 * MB); /* O2: held answers are charged */
    harness_work(&h, 1, 3 * MB);
    npi_conn_unref(c);
    close(peer);
    harness_close(&h); /* whose budgets must be empty then */
}

static void test_loop_uses_a_block_of_held_answers_again(void **state) {
    (void)state;
    struct harness h;
    struct buf in, out;
    int peer;
    const char *bodies[] = {"h0", "h1", "h2", "h3"};
    harness_open(&h, MB, 64 * MB);
    buf_init(&in, 0), buf_init(&out, 0);
    struct np_conn *c = harness_connect(&h, &peer);
    harness_startup(&h, peer, 4);
    for (int round = 0; round < 3; round++) {
        ask_worker(&h, peer, 9); /* held alone in its block, as a condition's answer is */
        h.working[h.n_working - 1]->state = NP_CALL_WRITTEN;
        harness_work(&h, h.n_working - 1, 100);
        out.n = 0;
        assert_true(harness_receive_all(&h, peer, &out));
        assert_int_equal(out.n, NP_HEADER + 100);
        in.n = out.n = 0;
        for (int16_t i = 0; i < 4; i++) harness_query(&in, i, slice_str(bodies[i]));
        harness_send(&h, peer, buf_slice(&in)); /* one wake-up, one block */
        assert_true(harness_receive_all(&h, peer, &out));
        expect_answers(buf_slice(&out), 4, bodies, 4);
    }
    assert_int_equal(c->in_flight, 0);
    npi_conn_unref(c);
    close(peer);
    buf_fini(&in), buf_fini(&out);
    harness_close(&h);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_conn_envelopes_split_at_every_byte),
        cmocka_unit_test(test_conn_segments_split_at_every_byte),
        cmocka_unit_test(test_conn_large_envelopes_both_ways_in_segments),
        cmocka_unit_test(test_conn_bytes_behind_a_skipped_envelope_are_an_error),
        cmocka_unit_test(test_conn_pauses_while_its_answers_are_not_read_and_resumes),
        cmocka_unit_test(test_conn_holds_what_is_not_read_not_all_that_was_sent),
        cmocka_unit_test(test_conn_paused_does_not_read_because_tls_would_write),
        cmocka_unit_test(test_conn_that_takes_nothing_is_closed_in_time_and_a_slow_one_is_not),
        cmocka_unit_test(test_conn_whose_request_is_not_whole_in_time_hears_it_and_is_closed),
        cmocka_unit_test(test_conn_without_startup_is_closed_in_time),
        cmocka_unit_test(test_conn_that_holds_the_most_of_unfinished_requests_goes),
        cmocka_unit_test(test_conn_that_holds_the_most_unread_goes_for_who_reads),
        cmocka_unit_test(test_conn_large_answer_without_room_is_an_error_and_costs_nobody_else),
        cmocka_unit_test(test_conn_closed_while_its_calls_are_in_flight),
        cmocka_unit_test(test_loop_closed_while_answers_are_in_its_inbox_and_wait_for_durability),
        cmocka_unit_test(test_loop_uses_a_block_of_held_answers_again),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
