/* A restart with the clock gone back: what was acknowledged before it is neither lost nor in the
 * way of what comes after. */
#include "harness.h"

#include <stdio.h>
#include <stdlib.h>

enum { HOUR_US = 3600000000 };
static const int64_t START_US = 1700000000000000;

static char dir[64];

static int setup(void **state) {
    struct harness *h = test_calloc(1, sizeof *h);
    strcpy(dir, "/tmp/tally-restart-XXXXXX");
    if (!mkdtemp(dir)) return -1;
    harness_open_in(h, MODE_CASSANDRA, dir, START_US);
    run_ok(h, "CREATE KEYSPACE k WITH replication = {'class': 'SimpleStrategy', 'replication_factor': 1}");
    run_ok(h, "CREATE TABLE k.t (p int, c int, v int, s int static, PRIMARY KEY (p, c))");
    run_ok(h, "CREATE TABLE k.n (p int PRIMARY KEY, n counter)");
    run_ok(h, "CREATE TABLE k.l (p int PRIMARY KEY, l list<int>, m map<int, int>)");
    *state = h;
    return 0;
}

static int teardown(void **state) {
    struct harness *h = *state;
    char command[96];
    harness_close(h);
    test_free(h);
    snprintf(command, sizeof command, "rm -rf %s", dir);
    return system(command);
}

static void hour_back(struct harness *h) { harness_restart(h, h->clock.now_us - HOUR_US); }

static void test_increments_are_kept_when_the_clock_goes_back(void **state) {
    struct harness *h = *state;
    run_ok(h, "UPDATE k.n SET n = n + 5 WHERE p = 1");
    for (int i = 0; i < 3; i++) {
        hour_back(h);
        run_ok(h, "UPDATE k.n SET n = n + 5 WHERE p = 1");
        run_ok(h, "BEGIN COUNTER BATCH UPDATE k.n SET n = n + 5 WHERE p = 1; APPLY BATCH");
    }
    assert_rows(h, "SELECT n FROM k.n", "35");
}

static void test_applied_conditions_take_effect_when_the_clock_goes_back(void **state) {
    struct harness *h = *state;
    run_ok(h, "INSERT INTO k.t (p, c, v, s) VALUES (1, 1, 1, 1)");
    hour_back(h);
    assert_rows(h, "UPDATE k.t SET v = 2 WHERE p = 1 AND c = 1 IF v = 1", "true");
    assert_rows(h, "UPDATE k.t SET v = 3 WHERE p = 1 AND c = 1 IF v = 1", "false,2");
    assert_rows(h, "UPDATE k.t SET s = 2 WHERE p = 1 IF s = 1", "true");
    assert_rows(h, "SELECT v, s FROM k.t", "2,2");
    hour_back(h);
    assert_rows(h, "DELETE FROM k.t WHERE p = 1 AND c = 1 IF v = 2", "true");
    assert_rows(h, "SELECT c FROM k.t", "null");
    hour_back(h);
    assert_rows(h, "INSERT INTO k.t (p, c, v) VALUES (1, 1, 4) IF NOT EXISTS", "true");
    assert_rows(h, "SELECT v FROM k.t", "4");
}

static void test_later_plain_writes_win_when_the_clock_goes_back(void **state) {
    struct harness *h = *state;
    run_ok(h, "INSERT INTO k.t (p, c, v) VALUES (1, 1, 1)");
    hour_back(h);
    run_ok(h, "UPDATE k.t SET v = 2 WHERE p = 1 AND c = 1");
    assert_rows(h, "SELECT v FROM k.t", "2");
    run_ok(h, "DELETE FROM k.t WHERE p = 1");
    assert_rows(h, "SELECT v FROM k.t", "");
    hour_back(h);
    run_ok(h, "INSERT INTO k.t (p, c, v) VALUES (1, 1, 3)");
    assert_rows(h, "SELECT v FROM k.t", "3");
}

static void test_list_elements_keep_their_order_when_the_clock_goes_back(void **state) {
    struct harness *h = *state;
    run_ok(h, "INSERT INTO k.l (p, l) VALUES (1, [3, 4])");
    hour_back(h);
    run_ok(h, "UPDATE k.l SET l = l + [5] WHERE p = 1");
    run_ok(h, "UPDATE k.l SET l = [2] + l WHERE p = 1");
    hour_back(h);
    run_ok(h, "UPDATE k.l SET l = l + [6] WHERE p = 1");
    run_ok(h, "UPDATE k.l SET l = [1] + l WHERE p = 1");
    assert_rows(h, "SELECT l FROM k.l", "[1, 2, 3, 4, 5, 6]");
}

/* Who sends timestamps may be ahead of the server's clock, and the server's condition is still
 * decided on what is there. */
static void test_conditions_win_over_timestamps_ahead_of_the_clock(void **state) {
    struct harness *h = *state;
    run_ok(h, "INSERT INTO k.t (p, c, v) VALUES (1, 1, 1) USING TIMESTAMP 1700000009000000");
    assert_rows(h, "UPDATE k.t SET v = 2 WHERE p = 1 AND c = 1 IF v = 1", "true");
    assert_rows(h, "SELECT v, writetime(v) FROM k.t", "2,1700000009000001");
    run_ok(h, "DELETE FROM k.t USING TIMESTAMP 1700000010000000 WHERE p = 1 AND c = 1");
    assert_rows(h, "INSERT INTO k.t (p, c, v) VALUES (1, 1, 3) IF NOT EXISTS", "true");
    assert_rows(h, "SELECT v FROM k.t", "3");
    run_ok(h, "DELETE FROM k.t USING TIMESTAMP 1700000011000000 WHERE p = 1 AND c > 0");
    assert_rows(h, "INSERT INTO k.t (p, c, v) VALUES (1, 1, 4) IF NOT EXISTS", "true");
    assert_rows(h, "SELECT v FROM k.t", "4");
    run_ok(h, "DELETE FROM k.t USING TIMESTAMP 1700000012000000 WHERE p = 1");
    assert_rows(h,
                "BEGIN BATCH INSERT INTO k.t (p, c, v) VALUES (1, 1, 5) IF NOT EXISTS; UPDATE k.t SET v = 6, s = 7 "
                "WHERE p = 1 AND c = 2; APPLY BATCH",
                "true");
    assert_rows(h, "SELECT c, v, s FROM k.t", "1,5,7;2,6,7");
    run_ok(h, "UPDATE k.l USING TIMESTAMP 1700000013000000 SET m = {1: 1} WHERE p = 1");
    assert_rows(h, "UPDATE k.l SET m = {2: 2} WHERE p = 1 IF m[1] = 1", "true");
    assert_rows(h, "SELECT m FROM k.l", "{2: 2}");
    /* and the row alone goes ahead, not the clock */
    run_ok(h, "INSERT INTO k.t (p, c, v) VALUES (9, 9, 9)");
    assert_true(atoll(harness_query(h, "SELECT writetime(v) FROM k.t WHERE p = 9 AND c = 9")) < START_US + 1000);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_increments_are_kept_when_the_clock_goes_back, setup, teardown),
        cmocka_unit_test_setup_teardown(test_applied_conditions_take_effect_when_the_clock_goes_back, setup, teardown),
        cmocka_unit_test_setup_teardown(test_later_plain_writes_win_when_the_clock_goes_back, setup, teardown),
        cmocka_unit_test_setup_teardown(test_list_elements_keep_their_order_when_the_clock_goes_back, setup, teardown),
        cmocka_unit_test_setup_teardown(test_conditions_win_over_timestamps_ahead_of_the_clock, setup, teardown),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
