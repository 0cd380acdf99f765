/* A clock that can be moved: over one that the test holds. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "base/clock.h"

struct beneath {
    struct clock clock;
    int64_t wall, mono;
};

static int64_t read_wall(struct clock *c) { return ((struct beneath *)c)->wall; }
static int64_t read_mono(struct clock *c) { return ((struct beneath *)c)->mono; }

struct world {
    struct beneath b;
    struct clock_control c;
    int told;
};

static void count(void *arg) { ++*(int *)arg; }

static void begin(struct world *w) {
    *w = (struct world){.b = {.clock = {.wall_us = read_wall, .mono_us = read_mono, .machine_us = read_mono},
                              .wall = 1000000000,
                              .mono = 500}};
    clock_control_init(&w->c, &w->b.clock);
    clock_control_listen(&w->c, count, &w->told);
}

static void pass(struct world *w, int64_t us) {
    w->b.wall += us;
    w->b.mono += us;
}

static void expect(struct world *w, int64_t wall, int64_t mono, enum clock_state state) {
    assert_int_equal(wall, clock_wall_us(&w->c.clock));
    assert_int_equal(mono, clock_mono_us(&w->c.clock));
    assert_int_equal(state, clock_control_state(&w->c));
}

static void test_clock_is_free_until_it_is_moved(void **state) {
    (void)state;
    struct world w;
    begin(&w);
    pass(&w, 7);
    expect(&w, 1000000007, 507, CLOCK_FREE);
    clock_control_fini(&w.c);
}

static void test_clock_frozen_stands_and_goes_on_from_there(void **state) {
    (void)state;
    struct world w;
    begin(&w);
    clock_control_freeze(&w.c);
    pass(&w, 100);
    expect(&w, 1000000000, 500, CLOCK_FROZEN);
    assert_int_equal(600, clock_machine_us(&w.c.clock)); /* of sockets and threads */
    assert_int_equal(-100, clock_control_ahead_us(&w.c));
    clock_control_run(&w.c);
    pass(&w, 10);
    expect(&w, 1000000010, 510, CLOCK_RUNNING);
    assert_int_equal(2, w.told);
    clock_control_fini(&w.c);
}

static void test_clock_advances_frozen_and_running(void **state) {
    (void)state;
    struct world w;
    begin(&w);
    assert_int_equal(0, clock_control_advance(&w.c, 1000));
    pass(&w, 1);
    expect(&w, 1000001001, 1501, CLOCK_RUNNING);
    clock_control_freeze(&w.c);
    assert_int_equal(0, clock_control_advance(&w.c, 5));
    pass(&w, 1);
    expect(&w, 1000001006, 1506, CLOCK_FROZEN);
    assert_int_equal(-1, clock_control_advance(&w.c, INT64_MAX));
    expect(&w, 1000001006, 1506, CLOCK_FROZEN);
    clock_control_fini(&w.c);
}

/* Whoever waits on the monotonic time must not wait for what is over. */
static void test_clock_set_back_or_free_never_takes_monotonic_time_back(void **state) {
    (void)state;
    struct world w;
    begin(&w);
    assert_int_equal(0, clock_control_set(&w.c, 2000000000));
    expect(&w, 2000000000, 1000000500, CLOCK_RUNNING);
    assert_int_equal(0, clock_control_set(&w.c, 5));
    expect(&w, 5, 1000000500, CLOCK_RUNNING);
    assert_int_equal(-1, clock_control_set(&w.c, -1));
    clock_control_free(&w.c);
    expect(&w, 1000000000, 1000000500, CLOCK_FREE);
    pass(&w, 3);
    expect(&w, 1000000003, 1000000503, CLOCK_FREE);
    clock_control_fini(&w.c);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_clock_is_free_until_it_is_moved),
        cmocka_unit_test(test_clock_frozen_stands_and_goes_on_from_there),
        cmocka_unit_test(test_clock_advances_frozen_and_running),
        cmocka_unit_test(test_clock_set_back_or_free_never_takes_monotonic_time_back),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
