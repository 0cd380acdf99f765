/* Which locks a thread may wait for, by those it holds: invariant 10. */
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "engine/front/lock_order.h"

static void test_a_thread_waits_only_for_locks_that_rank_after_those_it_holds(void **state) {
    (void)state;
    for (uint32_t has = 0; has < ENGI_RANKS; has++) {
        struct engi_held held = {0};
        engi_order_add(&held, (enum engi_rank)has, 0);
        for (uint32_t r = 0; r < ENGI_RANKS; r++) {
            bool allowed = r > has || (r == has && r == ENGI_RANK_GUARD);
            assert_int_equal(engi_order_allows(&held, (enum engi_rank)r, 0), allowed);
        }
        engi_order_remove(&held, (enum engi_rank)has);
        assert_true(engi_order_allows(&held, ENGI_RANK_STORE, 0));
    }
}

static void test_stripes_are_waited_for_in_ascending_order(void **state) {
    (void)state;
    struct engi_held held = {0};
    engi_order_add(&held, ENGI_RANK_STRIPE, 7);
    engi_order_add(&held, ENGI_RANK_STRIPE, 3); /* by trying */
    assert_false(engi_order_allows(&held, ENGI_RANK_STRIPE, 3));
    assert_false(engi_order_allows(&held, ENGI_RANK_STRIPE, 5));
    assert_false(engi_order_allows(&held, ENGI_RANK_STRIPE, 7));
    assert_true(engi_order_allows(&held, ENGI_RANK_STRIPE, 8));
    engi_order_remove(&held, ENGI_RANK_STRIPE);
    engi_order_remove(&held, ENGI_RANK_STRIPE);
    assert_true(engi_order_allows(&held, ENGI_RANK_STRIPE, 0));
}

/* A child that waits for the locks in this order: whether it was stopped. */
static bool is_stopped(enum engi_rank first, enum engi_rank second) {
    static pthread_mutex_t locks[2] = {PTHREAD_MUTEX_INITIALIZER, PTHREAD_MUTEX_INITIALIZER};
    pid_t child = fork();
    assert_true(child >= 0);
    if (!child) {
        signal(SIGABRT, SIG_DFL);
        close(STDERR_FILENO); /* the assertion's words are expected */
        engi_mutex_lock(&locks[0], first);
        engi_mutex_lock(&locks[1], second);
        engi_mutex_unlock(&locks[1], second);
        engi_mutex_unlock(&locks[0], first);
        _exit(0);
    }
    int status;
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_true(WIFSIGNALED(status) || (WIFEXITED(status) && !WEXITSTATUS(status)));
    return WIFSIGNALED(status) && WTERMSIG(status) == SIGABRT;
}

static void test_a_build_that_checks_stops_a_thread_that_waits_in_another_order(void **state) {
    (void)state;
    assert_false(is_stopped(ENGI_RANK_HISTORY, ENGI_RANK_SYNC));
    assert_int_equal(is_stopped(ENGI_RANK_SYNC, ENGI_RANK_HISTORY), ENGI_CHECKS_ORDER);
    assert_int_equal(is_stopped(ENGI_RANK_LEAF, ENGI_RANK_LEAF), ENGI_CHECKS_ORDER);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_a_thread_waits_only_for_locks_that_rank_after_those_it_holds),
        cmocka_unit_test(test_stripes_are_waited_for_in_ascending_order),
        cmocka_unit_test(test_a_build_that_checks_stops_a_thread_that_waits_in_another_order),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
