/* Rows of many cells and of many bytes: a read of one asks within the row whether it may go on, and
 * a loop leaves it to a worker before it has worked on it. */
#include "harness.h"

#include <stdio.h>
#include <stdlib.h>

#include "base/stop_check.h"
#include "base/steps.h"

static const char *const tables[] = {
    "CREATE TABLE t (k int PRIMARY KEY, v int, s set<blob>, l list<blob>)",
    "CREATE TABLE w (k int, c int, s set<blob>, st set<blob> static, PRIMARY KEY (k, c))",
    NULL,
};

/* The machine's time is the number of times that this thread has asked for it. */
static _Thread_local int64_t asked;
static int64_t ask(struct clock *c) { return (void)c, ++asked; }

static int setup(void **state) {
    struct harness *h = *state = harness_new(MODE_CASSANDRA, tables);
    h->clock.clock.machine_us = ask;
    return 0;
}

/* Adds n elements of so many bytes, behind the first ones. */
static void add(struct harness *h, const char *cql, uint32_t first, uint32_t n, uint32_t bytes) {
    struct buf b;
    buf_init(&b, 0);
    cql_collection_begin(n, &b);
    uint8_t *element = calloc(1, bytes);
    assert_non_null(element);
    for (uint32_t i = 0; i < n; i++) {
        store_u32(element, first + i);
        cql_elem_put(value_of_slice(slice_of(element, bytes)), &b);
    }
    struct value v = value_of_slice(buf_slice(&b));
    assert_int_equal(harness_run(h, cql, 1, &v), CQL_COMMIT);
    free(element);
    buf_fini(&b);
}

static int64_t asks_of(struct harness *h, const char *cql) {
    asked = 0;
    h->deadline_us = INT64_MAX;
    assert_int_equal(harness_run(h, cql, 0, NULL), CQL_DONE);
    h->deadline_us = 0;
    return asked;
}

static void test_deadline_is_looked_at_within_a_row(void **state) {
    enum { CELLS = 4 * STOP_CHECK_CELLS + 1 };
    struct harness *h = *state;
    static const struct {
        const char *add, *read;
    } cases[] = {
        {"UPDATE t SET s = s + ? WHERE k = 1", "SELECT s FROM t WHERE k = 1"},
        {"UPDATE t SET l = l + ? WHERE k = 2", "SELECT l FROM t WHERE k = 2"},
        {"UPDATE w SET s = s + ? WHERE k = 3 AND c = 1", "SELECT s FROM w WHERE k = 3"},
        {"UPDATE w SET st = st + ? WHERE k = 4", "SELECT st FROM w WHERE k = 4"},
    };
    run_ok(h, "INSERT INTO t (k, v) VALUES (0, 0)");
    int64_t small = asks_of(h, "SELECT s FROM t WHERE k = 0");
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        for (uint32_t n = 0; n < CELLS; n += STOP_CHECK_CELLS)
            add(h, cases[i].add, n, n + STOP_CHECK_CELLS < CELLS ? STOP_CHECK_CELLS : CELLS - n, 4);
        int64_t large = asks_of(h, cases[i].read);
        /* when the cells are decoded and when they are put together, at least; else it merges them, too */
        assert_in_range(large - small, 2 * (CELLS / STOP_CHECK_CELLS), 10 * (CELLS / STOP_CHECK_CELLS));
        for (h->deadline_us = small + 1; h->deadline_us <= large; h->deadline_us++) {
            asked = 0;
            assert_int_equal(harness_run(h, cases[i].read, 0, NULL), CQL_FAILED);
            assert_int_equal(h->err.code, ERR_READ_TIMEOUT);
            assert_in_range(asked, h->deadline_us, h->deadline_us + 1); /* a merge that was stopped asks why */
        }
        h->deadline_us = 0;
        assert_true(asks_of(h, cases[i].read) == large && h->n_rows == 1);
    }
}

/* Neither the merge nor the decoding of a large row is done on a loop, which other clients wait for. */
static void test_large_row_is_read_by_a_worker(void **state) {
    struct harness *h = *state;
    static const struct {
        const char *add, *read;
        uint32_t times, cells, bytes;
    } cases[] = {
        {"UPDATE t SET s = s + ? WHERE k = 1", "SELECT s FROM t WHERE k = 1", 1, 6, 100000},
        {"UPDATE t SET s = s + ? WHERE k = 2", "SELECT v FROM t WHERE k = 2", 9, 50000, 16},
        {"UPDATE w SET s = s + ? WHERE k = 3 AND c = 1", "SELECT s FROM w WHERE k = 3 AND c = 1", 1, 6, 100000},
        {"UPDATE w SET s = s + ? WHERE k = 4 AND c = 1", "SELECT s FROM w WHERE k = 4", 9, 50000, 16},
        {"UPDATE w SET st = st + ? WHERE k = 5", "SELECT st FROM w WHERE k = 5", 1, 6, 100000},
    };
    run_ok(h, "INSERT INTO t (k, v) VALUES (0, 7)");
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        for (uint32_t n = 0; n < cases[i].times; n++)
            add(h, cases[i].add, n * cases[i].cells, cases[i].cells, cases[i].bytes);
        h->on_loop = true;
#ifdef TALLY_STEPS
        uint64_t before = steps_of_thread();
#endif
        assert_int_equal(harness_run(h, cases[i].read, 0, NULL), CQL_OFFLOAD);
#ifdef TALLY_STEPS
        /* of a merge of 4 MiB, which is where the loop stops */
        assert_true(steps_of_thread() - before < (uint64_t)40 * 200000);
#endif
        assert_rows(h, "SELECT v FROM t WHERE k = 0", "7"); /* another client's */
        h->on_loop = false;
        run_ok(h, cases[i].read);
        assert_int_equal(h->n_rows, 1);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_deadline_is_looked_at_within_a_row, setup, harness_teardown),
        cmocka_unit_test_setup_teardown(test_large_row_is_read_by_a_worker, setup, harness_teardown),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
