/* A thread that calls a function again and again. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include "base/clock.h"
#include "base/ticker.h"

struct counter {
    struct ticker ticker;
    pthread_mutex_t lock;
    pthread_cond_t changed;
    int calls;
    int64_t wait_us; /* what the function returns */
    bool stays;      /* a call does not return before the ticker is stopped */
};

static int64_t count(void *arg) {
    struct counter *c = arg;
    pthread_mutex_lock(&c->lock);
    c->calls++;
    int64_t wait_us = c->wait_us;
    bool stays = c->stays;
    pthread_cond_broadcast(&c->changed);
    pthread_mutex_unlock(&c->lock);
    while (stays && !ticker_is_stopping(&c->ticker)) continue;
    return wait_us;
}

static void init(struct counter *c, int64_t wait_us) {
    *c = (struct counter){.wait_us = wait_us};
    pthread_mutex_init(&c->lock, NULL);
    pthread_cond_init(&c->changed, NULL);
    ticker_init(&c->ticker, count, c);
}

static void fini(struct counter *c) {
    ticker_stop(&c->ticker);
    ticker_fini(&c->ticker);
    pthread_cond_destroy(&c->changed);
    pthread_mutex_destroy(&c->lock);
}

static void await_calls(struct counter *c, int n) {
    pthread_mutex_lock(&c->lock);
    while (c->calls < n) pthread_cond_wait(&c->changed, &c->lock);
    pthread_mutex_unlock(&c->lock);
}

static void start(struct counter *c, int64_t first_us) {
    struct err e = {0};
    assert_int_equal(ticker_start(&c->ticker, first_us, &e), 0);
}

static void test_ticker_calls_again_after_the_time_that_the_function_returned(void **state) {
    (void)state;
    struct counter c;
    init(&c, 1000);
    int64_t began_us = clock_machine_us(&clock_real);
    start(&c, 1000);
    await_calls(&c, 5);
    assert_true(clock_machine_us(&clock_real) - began_us >= 5000);
    fini(&c);
}

static void test_ticker_calls_at_once_when_it_is_woken(void **state) {
    (void)state;
    struct counter c;
    init(&c, TICKER_WHEN_WOKEN);
    ticker_wake(&c.ticker); /* counts for the start */
    start(&c, TICKER_WHEN_WOKEN);
    for (int i = 1; i < 100; i++) {
        await_calls(&c, i);
        ticker_wake(&c.ticker);
    }
    await_calls(&c, 100);
    fini(&c);
    assert_int_equal(c.calls, 100);
}

static void test_stopped_ticker_makes_no_call_and_can_start_again(void **state) {
    (void)state;
    struct counter c;
    init(&c, 1);
    ticker_stop(&c.ticker); /* not started: does nothing */
    start(&c, 0);
    await_calls(&c, 1);
    ticker_stop(&c.ticker);
    int calls = c.calls;
    c.wait_us = TICKER_WHEN_WOKEN;
    start(&c, 0);
    await_calls(&c, calls + 1);
    ticker_stop(&c.ticker);
    assert_int_equal(c.calls, calls + 1);
    fini(&c);
}

static void test_a_long_call_sees_that_the_ticker_is_being_stopped(void **state) {
    (void)state;
    struct counter c;
    init(&c, 0);
    c.stays = true;
    start(&c, 0);
    await_calls(&c, 1);
    fini(&c);
    assert_int_equal(c.calls, 1);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_ticker_calls_again_after_the_time_that_the_function_returned),
        cmocka_unit_test(test_ticker_calls_at_once_when_it_is_woken),
        cmocka_unit_test(test_stopped_ticker_makes_no_call_and_can_start_again),
        cmocka_unit_test(test_a_long_call_sees_that_the_ticker_is_being_stopped),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
