/* Open and closed loops on a clock of the test's, against a server that stalls. */
#include "tools/client/flight.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>

#include <cmocka.h>

#include "tools/client/hist.h"

#define MS UINT64_C(1000000)
static const uint64_t SERVICE = 1 * MS, STALL_AT = 2000 * MS, STALL_ENDS = 3000 * MS, END = 10000 * MS;

/* A server of one request at a time: one that arrives during the stall is begun when it is over. */
struct server {
    uint64_t free_at;
};

static uint64_t answer_at(struct server *s, uint64_t now) {
    uint64_t begin = now > s->free_at ? now : s->free_at;
    if (begin >= STALL_AT && begin < STALL_ENDS) begin = STALL_ENDS;
    return s->free_at = begin + SERVICE;
}

/* Sends one every gap nanoseconds, whatever the answers do, over n slots. */
static void open_loop(uint32_t n, uint64_t gap, struct hist *h) {
    struct flight f;
    struct server server = {0};
    uint64_t due = 0, now = 0, *answers = calloc(n, sizeof(*answers));
    assert_int_equal(flight_init(&f, n), 0);
    while (due < END || f.n_flying) {
        uint64_t next = FLIGHT_NEVER;
        for (uint32_t i = 0; i < n; i++)
            if (f.slots[i].state == SLOT_FLYING && answers[i] < next) next = answers[i];
        if (due < END && f.n_free && due < next) next = due > now ? due : now;
        now = next > now ? next : now;
        for (uint32_t i = 0; i < n; i++)
            if (f.slots[i].state == SLOT_FLYING && answers[i] <= now) hist_add(h, flight_done(&f, &f.slots[i], now));
        for (struct flight_slot *s; due <= now && due < END && (s = flight_take(&f, due)); due += gap) {
            flight_sent(&f, s, now);
            answers[flight_number(&f, s)] = answer_at(&server, now);
        }
    }
    free(answers);
    flight_fini(&f);
}

/* One after the other, as fast as the answers come. */
static void closed_loop(struct hist *h) {
    struct flight f;
    struct server server = {0};
    assert_int_equal(flight_init(&f, 1), 0);
    for (uint64_t now = 0; now < END;) {
        struct flight_slot *s = flight_take(&f, now);
        flight_sent(&f, s, now);
        now = answer_at(&server, now);
        hist_add(h, flight_done(&f, s, now));
    }
    flight_fini(&f);
}

/* 100 requests a second for 10 s meet a stall of 1 s: the hundred that were due in it waited for 1
 * s down to nothing. */
static void test_open_loop_counts_the_requests_that_a_stall_delayed(void **state) {
    (void)state;
    static const uint32_t slots[] = {1, 8, 1000};
    for (size_t i = 0; i < sizeof(slots) / sizeof(*slots); i++) {
        struct hist *h = calloc(1, sizeof(*h));
        open_loop(slots[i], 10 * MS, h);
        assert_int_equal(h->count, 1000);
        assert_true(h->max >= 1000 * MS && h->max <= 1010 * MS);
        assert_true(hist_quantile(h, 0.95) > 400 * MS); /* half of the stalled tenth */
        assert_true(hist_quantile(h, 0.5) <= 2 * MS);
        free(h);
    }
}

/* What the engine must not do: the closed loop sends one request into the stall, and its 99th
 * percentile knows nothing of it. */
static void test_closed_loop_omits_them(void **state) {
    (void)state;
    struct hist *h = calloc(1, sizeof(*h));
    closed_loop(h);
    assert_true(h->max >= 1000 * MS);
    assert_true(hist_quantile(h, 0.999) <= 2 * MS);
    free(h);
}

static void test_a_slot_is_late_when_none_was_free(void **state) {
    (void)state;
    struct flight f;
    assert_int_equal(flight_init(&f, 1), 0);
    struct flight_slot *s = flight_take(&f, 10);
    flight_sent(&f, s, 10);
    assert_null(flight_take(&f, 20));
    assert_int_equal(flight_done(&f, s, 100), 90);
    assert_ptr_equal(flight_take(&f, 20), s); /* due at 20, sent at 100 */
    flight_sent(&f, s, 100);
    assert_int_equal(flight_done(&f, s, 130), 110);
    flight_fini(&f);
}

/* A request that is tried again is one request: its latency counts from when it was due first. */
static void test_tries_again_in_the_order_of_their_times(void **state) {
    (void)state;
    static const uint64_t at[] = {50, 20, 90, 10, 70, 30};
    struct flight f;
    struct flight_slot *s;
    assert_int_equal(flight_init(&f, 6), 0);
    for (int i = 0; i < 6; i++) {
        s = flight_take(&f, 1);
        flight_sent(&f, s, 1);
        flight_again(&f, s, at[i]);
    }
    assert_int_equal(flight_next(&f), 10);
    assert_null(flight_due(&f, 9));
    uint64_t before = 0;
    for (int i = 0; i < 6; i++) {
        s = flight_due(&f, 100);
        assert_non_null(s);
        assert_true(s->again_ns > before);
        before = s->again_ns;
        flight_sent(&f, s, 100);
        assert_int_equal(s->tries, 2);
        assert_int_equal(flight_done(&f, s, 101), 100);
    }
    assert_int_equal(flight_next(&f), FLIGHT_NEVER);
    assert_null(flight_due(&f, FLIGHT_NEVER));
    assert_int_equal(f.n_free, 6);
    flight_fini(&f);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_open_loop_counts_the_requests_that_a_stall_delayed),
        cmocka_unit_test(test_closed_loop_omits_them),
        cmocka_unit_test(test_a_slot_is_late_when_none_was_free),
        cmocka_unit_test(test_tries_again_in_the_order_of_their_times),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
