/* Conditional writes and batches: [applied] and the rows that a refusal shows, as Cassandra 5.0.8 gives them. */
#include "harness.h"

static int setup(void **state) {
    static const char *const tables[] = {
        "CREATE TABLE so (pk int, ck int, v int, s int static, PRIMARY KEY (pk, ck))",
        "CREATE TABLE c (pk int PRIMARY KEY, v int, l list<int>, m map<text, int>, d duration)",
        NULL,
    };
    *state = harness_new(MODE_CASSANDRA, tables);
    return 0;
}

static void test_insert_if_not_exists(void **state) {
    struct harness *h = *state;
    assert_rows(h, "INSERT INTO so (pk, ck, v, s) VALUES (1, 1, 1, 1) IF NOT EXISTS", "true");
    assert_rows(h, "INSERT INTO so (pk, ck, v) VALUES (1, 1, 9) IF NOT EXISTS", "false,1,1,null,1");
    assert_int_equal(h->meta->n, 5);
    assert_string_equal(h->meta->columns[0].name, "[applied]");
    assert_rows(h, "INSERT INTO so (pk, s) VALUES (1, 9) IF NOT EXISTS", "false,1,1,1,null");
    assert_rows(h, "INSERT INTO so (pk, s) VALUES (2, 9) IF NOT EXISTS", "true");
    assert_rows(h, "INSERT INTO so (pk, s) VALUES (2, 9) IF NOT EXISTS", "false,2,null,9,null");
    assert_rows(h, "INSERT INTO so (pk, ck, v, s) VALUES (2, 5, 9, 7) IF NOT EXISTS", "true");
}

static void test_update_if_exists(void **state) {
    struct harness *h = *state;
    run_ok(h, "INSERT INTO so (pk, ck, v, s) VALUES (1, 1, 1, 1)");
    assert_rows(h, "UPDATE so SET v = 2 WHERE pk = 1 AND ck = 1 IF EXISTS", "true");
    assert_rows(h, "UPDATE so SET v = 2 WHERE pk = 1 AND ck = 77 IF EXISTS", "false");
    assert_rows(h, "UPDATE so SET s = 2 WHERE pk = 1 IF EXISTS", "true");
    assert_rows(h, "UPDATE so SET s = 2 WHERE pk = 3 IF EXISTS", "false");
    assert_rows(h, "SELECT * FROM so", "1,1,2,2");
}

static void test_conditions_on_values(void **state) {
    struct harness *h = *state;
    run_ok(h, "INSERT INTO so (pk, ck, v, s) VALUES (1, 1, 2, 2)");
#define UPDATE_IF(condition) "UPDATE so SET v = 2 WHERE pk = 1 AND ck = 1 IF " condition
    assert_rows(h, UPDATE_IF("v = 1"), "false,2");
    assert_rows(h, UPDATE_IF("v = 2"), "true");
    assert_rows(h, UPDATE_IF("s = 5 AND v = 2"), "false,2,2");
    assert_string_equal(h->meta->columns[1].name, "v");
    assert_string_equal(h->meta->columns[2].name, "s");
    assert_rows(h, UPDATE_IF("v > 1 AND v < 3"), "true");
    assert_rows(h, UPDATE_IF("v > 5 AND v < 3"), "false,2");
    assert_rows(h, UPDATE_IF("v != 2"), "false,2");
    assert_rows(h, UPDATE_IF("v IN (5, 6)"), "false,2");
    assert_rows(h, UPDATE_IF("v IN (2, 6)"), "true");
    assert_rows(h, UPDATE_IF("v IN ()"), "false,2");
    assert_rows(h, UPDATE_IF("v = null"), "false,2");
    assert_rows(h, UPDATE_IF("v != null"), "true");
    assert_error(h, UPDATE_IF("v > null"), "Invalid comparison with null for operator \">\"");
    assert_error(h, UPDATE_IF("ck = 1"), "PRIMARY KEY column 'ck' cannot have IF conditions");
    assert_error(h, UPDATE_IF("v[1] = 2"), "Invalid element access syntax for non-collection column v");
#undef UPDATE_IF
    assert_rows(h, "UPDATE so SET v = 2 WHERE pk = 1 AND ck = 98 IF v = 3", "false");
    assert_rows(h, "UPDATE so SET v = 2 WHERE pk = 1 AND ck = 97 IF s = 3", "false,2");
    assert_rows(h, "UPDATE so SET v = 2 WHERE pk = 1 AND ck = 98 IF v != 3", "true");
    assert_error(h, "UPDATE so USING TIMESTAMP 5 SET v = 2 WHERE pk = 1 AND ck = 1 IF v = 2",
                 "Cannot provide custom timestamp for conditional updates");
}

static void test_conditions_on_collections(void **state) {
    struct harness *h = *state;
    run_ok(h, "INSERT INTO c (pk, v, l, m) VALUES (1, 1, [1, 2, 3], {'x': 1, 'y': 2})");
#define UPDATE_IF(condition) "UPDATE c SET v = 2 WHERE pk = 1 IF " condition
    assert_rows(h, UPDATE_IF("l = [1]"), "false,[1, 2, 3]");
    assert_rows(h, UPDATE_IF("l = [1, 2, 3]"), "true");
    assert_rows(h, UPDATE_IF("l[0] = 1"), "true");
    assert_rows(h, UPDATE_IF("l[9] = 7"), "false,[1, 2, 3]");
    assert_rows(h, UPDATE_IF("l[9] = null"), "true");
    assert_rows(h, UPDATE_IF("l > [0]"), "true");
    assert_rows(h, UPDATE_IF("l CONTAINS 9"), "false,[1, 2, 3]");
    assert_rows(h, UPDATE_IF("m CONTAINS KEY 'x'"), "true");
    assert_rows(h, UPDATE_IF("m['x'] IN (8, 2)"), "false,{'x': 1, 'y': 2}");
    assert_rows(h, UPDATE_IF("m['q'] = null"), "true");
    assert_error(h, UPDATE_IF("l[-1] = 7"), "Invalid negative list index -1");
    assert_error(h, UPDATE_IF("m[null] = 1"), "Invalid null value for map element access");
    assert_error(h, UPDATE_IF("l CONTAINS KEY 2"), "Cannot use CONTAINS KEY on non-map column l");
    assert_error(h, UPDATE_IF("d > 1d"), "Slice conditions ( > ) are not supported on durations");
#undef UPDATE_IF
}

static void test_delete_if(void **state) {
    struct harness *h = *state;
    run_ok(h, "INSERT INTO so (pk, ck, v, s) VALUES (1, 1, 2, 2)");
    assert_rows(h, "DELETE FROM so WHERE pk = 1 AND ck = 1 IF v = 5", "false,2");
    assert_rows(h, "DELETE FROM so WHERE pk = 1 AND ck = 1 IF EXISTS", "true");
    assert_rows(h, "DELETE FROM so WHERE pk = 1 AND ck = 1 IF EXISTS", "false");
    assert_rows(h, "DELETE s FROM so WHERE pk = 1 IF s = 1", "false,2");
    assert_rows(h, "DELETE s FROM so WHERE pk = 1 IF EXISTS", "true");
    assert_rows(h, "SELECT * FROM so", "");
}

static uint32_t writes_charged(const struct harness *h) {
    uint32_t n = 0;
    for (const struct op_write *w = h->cost.writes; w; w = w->next) n++;
    return n;
}

static void test_batch_is_all_or_nothing(void **state) {
    struct harness *h = *state;
    run_ok(h, "BEGIN BATCH APPLY BATCH");
    assert_int_equal(writes_charged(h), 0);
    run_ok(h, "BEGIN BATCH INSERT INTO so (pk, ck, v) VALUES (1, 1, 1); UPDATE so SET v = 2 WHERE pk = 1 AND ck = 2; "
              "INSERT INTO c (pk, v) VALUES (7, 7) APPLY BATCH");
    assert_int_equal(writes_charged(h), 3);
    assert_rows(h, "SELECT ck, v FROM so", "1,1;2,2");
    assert_rows(h, "SELECT v FROM c", "7");
    harness_error(
        h, "BEGIN BATCH INSERT INTO so (pk, ck, v) VALUES (3, 3, 3); UPDATE c SET l[0] = 1 WHERE pk = 1 APPLY BATCH");
    assert_rows(h, "SELECT ck FROM so", "1;2");
}

static void test_batch_charges_every_statement(void **state) {
    struct harness *h = *state;
    run_ok(h, "BEGIN BATCH INSERT INTO so (pk, ck, v) VALUES (1, 1, 1); INSERT INTO so (pk, ck, v) VALUES (1, 2, 1) "
              "APPLY BATCH");
    assert_true(h->cost.is_logged_batch);
    assert_int_equal(writes_charged(h), 2);
    run_ok(h, "BEGIN UNLOGGED BATCH INSERT INTO so (pk, ck, v) VALUES (1, 1, 1) APPLY BATCH");
    assert_false(h->cost.is_logged_batch);
}

static void test_batch_refuses_mixtures(void **state) {
    struct harness *h = *state;
    run_ok(h, "CREATE TABLE cn (pk int PRIMARY KEY, c counter)");
    assert_error(h, "BEGIN BATCH USING TIMESTAMP 5 INSERT INTO so (pk, ck) VALUES (1, 1) USING TIMESTAMP 6 APPLY BATCH",
                 "Timestamp must be set either on BATCH or individual statements");
    assert_error(h, "BEGIN BATCH USING TIMESTAMP 5 INSERT INTO so (pk, ck) VALUES (1, 1) IF NOT EXISTS APPLY BATCH",
                 "Cannot provide custom timestamp for conditional BATCH");
    assert_error(h, "BEGIN COUNTER BATCH INSERT INTO so (pk, ck) VALUES (1, 1) APPLY BATCH",
                 "Cannot include non-counter statement in a counter batch");
    assert_error(h, "BEGIN BATCH UPDATE cn SET c = c + 1 WHERE pk = 1 APPLY BATCH",
                 "Cannot include a counter statement in a logged batch");
    assert_error(h,
                 "BEGIN BATCH INSERT INTO so (pk, ck) VALUES (1, 1) IF NOT EXISTS; INSERT INTO so (pk, ck) VALUES (2, "
                 "1) APPLY BATCH",
                 "Batch with conditions cannot span multiple partitions");
    assert_error(
        h, "BEGIN BATCH INSERT INTO so (pk, ck) VALUES (1, 1) IF NOT EXISTS; INSERT INTO c (pk) VALUES (1) APPLY BATCH",
        "Batch with conditions cannot span multiple tables");
    assert_error(h,
                 "BEGIN BATCH UPDATE so SET v = 1 WHERE pk = 1 AND ck = 8 IF EXISTS; INSERT INTO so (pk, ck, v) VALUES "
                 "(1, 8, 1) IF NOT EXISTS APPLY BATCH",
                 "Cannot mix IF EXISTS and IF NOT EXISTS conditions for the same row");
}

static void test_batch_conditional_answers(void **state) {
    struct harness *h = *state;
    assert_rows(h,
                "BEGIN BATCH INSERT INTO so (pk, ck, v) VALUES (1, 8, 1) IF NOT EXISTS; INSERT INTO so (pk, ck, v) "
                "VALUES (1, 9, 5) APPLY BATCH",
                "true");
    assert_rows(h,
                "BEGIN BATCH UPDATE so SET v = 1 WHERE pk = 1 AND ck = 9 IF v = 3; UPDATE so SET v = 6 WHERE pk = 1 "
                "AND ck = 8 IF v = 7 APPLY BATCH",
                "false,1,8,1;false,1,9,5");
    assert_rows(h,
                "BEGIN BATCH UPDATE so SET v = 1 WHERE pk = 1 AND ck = 8 IF v = 1; UPDATE so SET v = 6 WHERE pk = 1 "
                "AND ck = 9 IF s = 7 APPLY BATCH",
                "false,1,8,1,null");
    assert_rows(h,
                "BEGIN BATCH UPDATE so SET v = 1 WHERE pk = 1 AND ck = 8 IF EXISTS; UPDATE so SET v = 1 WHERE pk = 1 "
                "AND ck = 77 IF EXISTS APPLY BATCH",
                "false,1,8,null,1");
    assert_rows(
        h, "BEGIN BATCH DELETE FROM so WHERE pk = 1; UPDATE so SET v = 1 WHERE pk = 1 AND ck = 8 IF v = 1 APPLY BATCH",
        "true");
    assert_rows(h, "SELECT * FROM so", "1,8,null,1");
}

static void test_batch_warns_of_many_partitions(void **state) {
    struct harness *h = *state;
    struct buf b;
    buf_init(&b, 0);
    buf_put_str(&b, "BEGIN UNLOGGED BATCH ");
    for (int i = 0; i < 11; i++) buf_printf(&b, "INSERT INTO so (pk, ck, v) VALUES (%d, 1, 1); ", i);
    buf_put_str(&b, "APPLY BATCH");
    buf_u8(&b, 0);
    run_ok(h, (const char *)b.p);
    assert_int_equal(h->n_warnings, 1);
    buf_fini(&b);
}

/* On a loop, whose batch is not committed before the test says so. */
static enum cql_outcome run_on_loop(struct harness *h, const char *cql) {
    h->on_loop = true;
    enum cql_outcome outcome = harness_run(h, cql, 0, NULL);
    h->on_loop = false;
    return outcome;
}

static void assert_on_loop(struct harness *h, const char *cql, enum cql_outcome outcome, const char *rows) {
    assert_int_equal(run_on_loop(h, cql), outcome);
    assert_string_equal((const char *)h->rows.p, rows);
}

static void commit(struct harness *h) {
    uint64_t seq;
    assert_int_equal(eng_batch_commit(h->batch, &seq, &h->err), 0);
}

static void test_a_loop_decides_on_rows_that_its_batch_has_not_written(void **state) {
    struct harness *h = *state;
    run_ok(h, "INSERT INTO so (pk, ck, v, s) VALUES (1, 1, 1, 1)");
    assert_on_loop(h, "UPDATE so SET v = 2 WHERE pk = 1 AND ck = 1 IF v = 1", CQL_COMMIT, "true");
    assert_on_loop(h, "UPDATE so SET v = 3 WHERE pk = 1 AND ck = 1 IF v = 1", CQL_OFFLOAD, "");
    assert_on_loop(h, "UPDATE so SET v = 7, s = 3 WHERE pk = 1 AND ck = 2 IF v = null AND s = 1", CQL_COMMIT, "true");
    assert_on_loop(h, "INSERT INTO so (pk, ck, v) VALUES (1, 4, 8) IF NOT EXISTS", CQL_COMMIT, "true");
    assert_on_loop(h, "UPDATE so SET v = 3 WHERE pk = 1 AND ck = 3 IF EXISTS", CQL_COMMIT, "false");
    assert_on_loop(h, "UPDATE so SET v = 3 WHERE pk = 1 AND ck = 3 IF v = null AND s = 1", CQL_OFFLOAD, "");
    commit(h);
    assert_on_loop(h, "UPDATE so SET v = 3 WHERE pk = 1 AND ck = 1 IF v = 1", CQL_COMMIT, "false,2");
    assert_true(eng_batch_empty(h->batch));
    assert_rows(h, "SELECT * FROM so", "1,1,3,2;1,2,3,7;1,4,3,8");
}

/* The lock of a refusal on a loop is given back: else the worker of the next one, which is this
 * thread, would wait for ever. */
static void test_a_refusal_on_a_loop_leaves_no_lock(void **state) {
    struct harness *h = *state;
    assert_on_loop(h, "UPDATE so SET v = 2 WHERE pk = 1 AND ck = 1 IF EXISTS", CQL_COMMIT, "false");
    assert_rows(h, "UPDATE so SET v = 2 WHERE pk = 1 AND ck = 1 IF EXISTS", "false");
    assert_on_loop(h, "UPDATE so SET v = 2 WHERE pk = 1 AND ck = 1 IF s = 1", CQL_OFFLOAD, "");
    assert_rows(h, "UPDATE so SET v = 2 WHERE pk = 1 AND ck = 1 IF s = 1", "false");
}

static void test_a_large_row_is_decided_on_by_a_worker(void **state) {
    struct harness *h = *state;
    struct buf b;
    buf_init(&b, 0);
    buf_put_str(&b, "INSERT INTO c (pk, v, l) VALUES (1, 1, [0");
    for (int i = 0; i < 2000; i++) buf_put_str(&b, ",0");
    buf_put_str(&b, "])");
    buf_u8(&b, 0);
    run_ok(h, (const char *)b.p);
    run_ok(h, "INSERT INTO c (pk, v) VALUES (2, 1)");
    assert_on_loop(h, "UPDATE c SET v = 2 WHERE pk = 1 IF v = 1", CQL_OFFLOAD, "");
    assert_on_loop(h, "UPDATE c SET v = 2 WHERE pk = 2 IF v = 1", CQL_COMMIT, "true");
    commit(h);
    buf_fini(&b);
}

static void test_a_loop_counts_what_its_batch_has_not_counted(void **state) {
    struct harness *h = *state;
    run_ok(h, "CREATE TABLE n (pk int PRIMARY KEY, n counter)");
    assert_on_loop(h, "UPDATE n SET n = n + 1 WHERE pk = 1", CQL_COMMIT, "");
    assert_on_loop(h, "UPDATE n SET n = n + 1 WHERE pk = 1", CQL_OFFLOAD, "");
    assert_on_loop(h, "UPDATE n SET n = n + 5 WHERE pk = 2", CQL_COMMIT, "");
    commit(h);
    assert_on_loop(h, "UPDATE n SET n = n + 1 WHERE pk = 1", CQL_COMMIT, "");
    commit(h);
    assert_rows(h, "SELECT * FROM n WHERE pk IN (1, 2)", "1,2;2,5");
}

#define CASE(f) cmocka_unit_test_setup_teardown(f, setup, harness_teardown)

int main(void) {
    const struct CMUnitTest tests[] = {
        CASE(test_insert_if_not_exists),
        CASE(test_update_if_exists),
        CASE(test_conditions_on_values),
        CASE(test_conditions_on_collections),
        CASE(test_delete_if),
        CASE(test_batch_is_all_or_nothing),
        CASE(test_batch_charges_every_statement),
        CASE(test_batch_refuses_mixtures),
        CASE(test_batch_conditional_answers),
        CASE(test_batch_warns_of_many_partitions),
        CASE(test_a_loop_decides_on_rows_that_its_batch_has_not_written),
        CASE(test_a_refusal_on_a_loop_leaves_no_lock),
        CASE(test_a_large_row_is_decided_on_by_a_worker),
        CASE(test_a_loop_counts_what_its_batch_has_not_counted),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
