/* How the reading grows that metering needs: the rows under a deletion (cql/write/row_sizing.c), and
 * what a table comes to (cql/row/table_size.h). Counted in looks at the deadline, of which there is
 * one every few hundred rows, and in steps (base/steps.h) at n and 4n. */
#include "harness.h"

#include <stdio.h>

#include "base/steps.h"
#include "system_schema/objects/schema.h"

enum {
    ROWS = 4096,
    OF_A_BATCH = 512,
    RATIO = 6,
    RATIO_OF_STEPS = 6 /* quadratic is 16 */,
    ROWS_OF_A_LOOK = 512 /* at most */
};

static uint32_t n_looks, look_that_is_late; /* 0: none is */
static int64_t count_look(struct clock *c) { return (void)c, ++n_looks == look_that_is_late ? INT64_MAX : 0; }

/* Sized, and not written: the next try finds the same. */
static int admit_nothing(void *arg, struct cql_run *r, struct err *e) {
    (void)arg, (void)r;
    return err_set(e, ERR_OVERLOADED, "refused by the test");
}

static void fill(struct harness *h, int p, uint32_t rows) {
    for (uint32_t c = 0; c < rows;) {
        struct buf text;
        buf_init(&text, 0);
        buf_put_str(&text, "BEGIN UNLOGGED BATCH ");
        for (uint32_t i = 0; i < OF_A_BATCH && c < rows; i++, c++)
            buf_printf(&text, "INSERT INTO t (p, c, v) VALUES (%d, %u, 1); ", p, c);
        buf_put_str(&text, "APPLY BATCH");
        buf_u8(&text, 0);
        run_ok(h, (const char *)text.p);
        buf_fini(&text);
    }
}

static void open_table(struct harness *h) {
    harness_open(h, MODE_CASSANDRA);
    h->clock.clock.machine_us = count_look;
    h->write_size = WRITE_SIZE_ROW;
    look_that_is_late = 0;
    run_ok(h, "CREATE KEYSPACE k WITH replication = {'class': 'SimpleStrategy', 'replication_factor': 1}");
    run_ok(h, "USE k");
    run_ok(h, "CREATE TABLE t (p int, c int, v int, PRIMARY KEY (p, c))");
}

static enum cql_outcome run_with_deadline(struct harness *h, const char *cql) {
    struct cql_request r = {.kind = REQUEST_QUERY, .query = slice_str(cql)};
    n_looks = 0;
    h->deadline_us = 1;
    return harness_request(h, &r);
}

static uint64_t steps_so_far(void) {
#ifdef TALLY_STEPS
    return steps_of_thread();
#else
    return 0; /* only the looks are compared */
#endif
}

/* ---- deletions ---- */

static uint64_t cost_of(struct harness *h, const char *cql, uint32_t *looks) {
    uint64_t from = steps_so_far();
    assert_int_equal(run_with_deadline(h, cql), CQL_FAILED);
    uint64_t steps = steps_so_far() - from;
    assert_int_equal(h->err.code, ERR_OVERLOADED);
    *looks = n_looks;
    return steps;
}

/* p = 1 has ROWS rows and p = 2 four times as many: what deletes p = 1, with other text for p = 2. */
static void expect_linear(struct harness *h, const char *format) {
    char one[200], four[200];
    uint32_t looks = 0, looks_of_four = 0;
    snprintf(one, sizeof one, format, 1);
    snprintf(four, sizeof four, format, 2);
    uint64_t steps = cost_of(h, one, &looks), steps_of_four = cost_of(h, four, &looks_of_four);
    assert_in_range(looks, ROWS / ROWS_OF_A_LOOK, ROWS);
    assert_in_range(looks_of_four, 4 * ROWS / ROWS_OF_A_LOOK, RATIO * looks);
    assert_in_range(steps_of_four, 0, RATIO_OF_STEPS * steps);
}

static void test_sizing_a_deletion_grows_with_its_rows(void **state) {
    (void)state;
    struct harness h;
    open_table(&h);
    fill(&h, 1, ROWS);
    fill(&h, 2, 4 * ROWS);
    harness_ask(&h, &(struct cql_admission){.admit = admit_nothing}, NULL);
    expect_linear(&h, "DELETE FROM t WHERE p = %d");
    expect_linear(&h, "DELETE FROM t WHERE p = %d AND c >= 0");
    expect_linear(
        &h,
        "BEGIN UNLOGGED BATCH UPDATE t SET v = 2 WHERE p = %1$d AND c = 7; DELETE FROM t WHERE p = %1$d; APPLY BATCH");
    harness_close(&h);
}

/* Whether the rows are there, or were deleted before and are passed without being looked at. */
static void expect_timeout(struct harness *h, uint32_t rows, const char *left) {
    look_that_is_late = rows / ROWS_OF_A_LOOK;
    assert_int_equal(run_with_deadline(h, "DELETE FROM t WHERE p = 1"), CQL_FAILED);
    assert_int_equal(h->err.code, ERR_WRITE_TIMEOUT);
    assert_int_equal(n_looks, look_that_is_late);
    assert_true(eng_batch_empty(h->batch));
    look_that_is_late = 0;
    assert_rows(h, "SELECT count(*) FROM t", left);
    /* nobody holds the partition */
    assert_int_not_equal(run_with_deadline(h, "UPDATE t SET v = 1 WHERE p = 1 AND c = 0"), CQL_FAILED);
}

static void test_deadline_ends_the_sizing_of_a_deletion(void **state) {
    (void)state;
    struct harness h;
    open_table(&h);
    fill(&h, 1, ROWS);
    expect_timeout(&h, ROWS, "4096");
    run_ok(&h, "DELETE FROM t USING TIMESTAMP 1800000000000000 WHERE p = 1");
    expect_timeout(&h, ROWS, "0");
    harness_close(&h);
}

/* ---- tables ---- */

static int ask(void *arg) { return ++*(uint32_t *)arg, 0; }

/* The looks that the question takes. */
static uint32_t count_table(struct harness *h, uint64_t rows) {
    const struct schema *schema = catalog_schema(h->catalog);
    struct table_size size;
    uint32_t asked = 0;
    const struct stop_check stop_check = {.check = ask, .arg = &asked};
    assert_int_equal(cql_table_billable_bytes(h->db, schema, schema_table_any(schema, "k", "t"), &stop_check, &size,
                                              &h->err),
                     0);
    assert_int_equal(size.rows, rows);
    schema_unref(schema);
    return asked;
}

/* Of partitions that are in buckets of their own: 1 to 4 are. */
static uint32_t fill_and_count(struct harness *h, uint32_t rows, uint32_t *again) {
    open_table(h);
    for (int p = 1; p <= 4; p++) fill(h, p, rows);
    uint32_t all = count_table(h, 4 * rows);
    assert_int_equal(count_table(h, 4 * rows), 0);
    run_ok(h, "UPDATE t SET v = 3 WHERE p = 1 AND c = 0");
    *again = count_table(h, 4 * rows);
    assert_int_equal(count_table(h, 4 * rows), 0);
    run_ok(h, "DELETE FROM t WHERE p = 2");
    assert_in_range(count_table(h, 3 * rows), rows / ROWS_OF_A_LOOK - 1, 2 * *again); /* also where nothing is left */
    harness_close(h);
    return all;
}

static void test_counting_a_table_grows_with_what_has_changed(void **state) {
    (void)state;
    struct harness h;
    uint32_t again, again_of_four, all = fill_and_count(&h, ROWS, &again),
                                   all_of_four = fill_and_count(&h, 4 * ROWS, &again_of_four);
    assert_in_range(again, ROWS / ROWS_OF_A_LOOK - 1, all / 3);
    assert_in_range(again_of_four, 4 * ROWS / ROWS_OF_A_LOOK - 1, all_of_four / 3);
    assert_in_range(all_of_four, all + 1, RATIO * all);
    assert_in_range(again_of_four, again + 1, RATIO * again);
}

/* The steps that the first count of so many empty tables takes; each has one scan and not one for each bucket. */
static uint64_t count_empty(uint32_t n) {
    struct harness h;
    char text[64];
    open_table(&h);
    for (uint32_t i = 0; i < n; i++) {
        snprintf(text, sizeof(text), "CREATE TABLE e%u (p int PRIMARY KEY)", i);
        run_ok(&h, text);
    }
    const struct schema *schema = catalog_schema(h.catalog);
    uint64_t begin = steps_so_far(), n_tables = 0;
    struct schema_table_cursor c = schema_tables_begin(&schema_space_find(schema, "k")->tables);
    for (const struct schema_table *t; (t = schema_tables_next(&c)); n_tables++) {
        struct table_size size;
        assert_int_equal(cql_table_billable_bytes(h.db, schema, t, &(struct stop_check){0}, &size, &h.err), 0);
        assert_int_equal(size.bytes, 0);
    }
    uint64_t steps = steps_so_far() - begin;
    assert_int_equal(n_tables, n + 1);
    schema_unref(schema);
    harness_close(&h);
    return steps;
}

static void test_counting_tables_grows_with_their_number(void **state) {
    enum { FEW = 500, STEPS_OF_A_TABLE = 20000 };
    (void)state;
    uint64_t few = count_empty(FEW), four = count_empty(4 * FEW);
    assert_in_range(four, 0, 5 * few);
    assert_in_range(few, 0, (uint64_t)FEW * STEPS_OF_A_TABLE);
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_sizing_a_deletion_grows_with_its_rows),
                                       cmocka_unit_test(test_deadline_ends_the_sizing_of_a_deletion),
                                       cmocka_unit_test(test_counting_tables_grows_with_their_number),
                                       cmocka_unit_test(test_counting_a_table_grows_with_what_has_changed)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
