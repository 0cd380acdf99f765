#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "base/clock.h"
#include "engine/rados/pool.h"
#include "engine/stats.h"

static void test_operations_are_counted_by_use_and_outcome(void **state) {
    struct pool_counts counts = {0};
    struct eng_store_figures f = {0};
    (void)state;
    int64_t a = pool_began(&counts), b = pool_began(&counts), c = pool_began(&counts);
    int64_t d = pool_began(&counts), last = pool_began(&counts);
    pool_ended(&counts, POOL_READS, a, 0);
    pool_ended(&counts, POOL_READS, b, -ENOENT); /* an answer, too */
    pool_ended(&counts, POOL_WRITES, c, -ECANCELED);
    pool_ended(&counts, POOL_WRITES, d, -EIO);
    pool_figures(&counts, &f);
    assert_int_equal(f.n[ENG_STORE_READS], 2);
    assert_int_equal(f.n[ENG_STORE_WRITES], 2);
    assert_int_equal(f.n[ENG_STORE_CONFLICTS], 1);
    assert_int_equal(f.n[ENG_STORE_FAILURES], 1);
    assert_int_equal(f.n[ENG_STORE_TIMEOUTS], 0);
    assert_int_equal(f.n[ENG_STORE_IN_FLIGHT], 1);
    pool_ended(&counts, POOL_WRITES, last, -ETIMEDOUT);
    pool_figures(&counts, &f);
    assert_int_equal(f.n[ENG_STORE_TIMEOUTS], 1);
    assert_int_equal(f.n[ENG_STORE_IN_FLIGHT], 0);
}

static void test_durations_lie_below_their_bounds(void **state) {
    struct pool_counts counts = {0};
    struct eng_store_figures f = {0};
    (void)state;
    int64_t began_us = pool_began(&counts);
    pool_ended(&counts, POOL_READS, began_us - 3600 * INT64_C(1000000), 0);
    pool_figures(&counts, &f);
    assert_int_equal(f.reads.n[ENG_DURATION_BOUNDS], 1);
    assert_true(f.reads.sum_us >= 3600 * UINT64_C(1000000));
    for (int i = 1; i < ENG_DURATION_BOUNDS; i++)
        assert_true(eng_duration_bounds_us[i - 1] < eng_duration_bounds_us[i]);
}

/* An operation began so long ago and has no answer; every answer ends the silence, and a timeout is
 * none. */
static void test_a_cluster_is_silent_until_it_answers(void **state) {
    struct pool_counts counts = {0};
    (void)state;
    assert_int_equal(pool_silent_us(&counts), 0);
    int64_t first = pool_began(&counts);
    counts.silent_since_us -= 5000000;
    int64_t second = pool_began(&counts);
    assert_true(pool_silent_us(&counts) >= 5000000); /* since the first one */
    pool_ended(&counts, POOL_READS, first, -ETIMEDOUT);
    assert_true(pool_silent_us(&counts) >= 5000000);
    pool_ended(&counts, POOL_READS, second, -ENOENT);
    assert_int_equal(pool_silent_us(&counts), 0);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_operations_are_counted_by_use_and_outcome),
        cmocka_unit_test(test_durations_lie_below_their_bounds),
        cmocka_unit_test(test_a_cluster_is_silent_until_it_answers),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
