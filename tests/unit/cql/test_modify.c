/* INSERT, UPDATE, DELETE: what is stored, what is refused and in which words. The expected texts
 * are Cassandra 5.0.8's. */
#include "harness.h"

#include <stdio.h>
#include <stdlib.h>

static int setup(void **state) {
    static const char *const tables[] = {
        "CREATE TABLE t (pk int, ck int, ck2 text, v int, s int static, l list<int>, st set<text>, m map<text, int>, "
        "fl frozen<list<int>>, "
        "PRIMARY KEY (pk, ck, ck2))",
        "CREATE TABLE so (pk int, ck int, v int, s int static, PRIMARY KEY (pk, ck))",
        "CREATE TABLE cn (pk int, ck int, c counter, PRIMARY KEY (pk, ck))",
        "CREATE TABLE tt (pk text PRIMARY KEY, v int) WITH default_time_to_live = 100",
        NULL,
    };
    *state = harness_new(MODE_CASSANDRA, tables);
    return 0;
}

static void test_insert_refuses_bad_keys(void **state) {
    struct harness *h = *state;
    assert_error(h, "INSERT INTO t (pk, ck) VALUES (1, 1)", "Some clustering keys are missing: ck2");
    assert_error(h, "INSERT INTO t (pk) VALUES (1)", "Some clustering keys are missing: ck, ck2");
    assert_error(h, "INSERT INTO t (ck, ck2) VALUES (1, 'a')", "Some partition key parts are missing: pk");
    assert_error(h, "INSERT INTO t (pk, ck, ck2, zz) VALUES (1, 1, 'a', 1)", "Undefined column name zz in table k.t");
    assert_error(h, "INSERT INTO t (pk, ck, ck2, v, v) VALUES (1, 1, 'a', 1, 2)",
                 "The column names contains duplicates");
    assert_error(h, "INSERT INTO t (pk, ck, ck2, v) VALUES (1, 1, null, 1)",
                 "Invalid null value in condition for column ck2");
    assert_error(h, "INSERT INTO tt (pk, v) VALUES ('', 1)", "Key may not be empty");
    assert_error(h, "INSERT INTO cn (pk, ck, c) VALUES (1, 1, 1)",
                 "INSERT statements are not allowed on counter tables, use UPDATE instead");
}

/* A statement with a text of n bytes in the place of %s. */
static char *with_text(const char *format, size_t n) {
    char *text = malloc(n + 1), *out = malloc(n + strlen(format) + 1);
    assert_non_null(text);
    assert_non_null(out);
    memset(text, 'x', n);
    text[n] = 0;
    sprintf(out, format, text);
    free(text);
    return out;
}

static void test_a_clustering_key_that_is_too_long_is_refused_or_not_there(void **state) {
    struct harness *h = *state;
    static const char *const writes[] = {"INSERT INTO t (pk, ck, ck2) VALUES (1, 1, '%s')",
                                         "UPDATE t SET v = 1 WHERE pk = 1 AND ck = 1 AND ck2 = '%s'",
                                         "DELETE FROM t WHERE pk = 1 AND ck = 1 AND ck2 = '%s'"};
    for (size_t i = 0; i < ARRAY_LEN(writes); i++) {
        char *cql = with_text(writes[i], 65536 - 4); /* ck has four bytes of its own */
        assert_error(h, cql, "Key length of 65536 is longer than maximum of 65535");
        free(cql);
    }
    char *fits = with_text(writes[0], 65535 - 4),
         *read = with_text("SELECT v FROM t WHERE pk = 1 AND ck = 1 AND ck2 = '%s'", 65536);
    run_ok(h, fits);
    assert_rows(h, read, "");
    free(fits);
    free(read);
}

/* Each deletion of the first element moves all others; who asks for too much of that pays with an error. */
static void test_list_operations_of_one_statement_have_a_bound(void **state) {
    struct harness *h = *state;
    enum { ELEMENTS = 6000, DELETIONS = 5000 };
    struct buf cql;
    buf_init(&cql, 0);
    buf_put_str(&cql, "INSERT INTO t (pk, ck, ck2, l) VALUES (1, 1, 'a', [");
    for (int i = 0; i < ELEMENTS; i++) buf_printf(&cql, "%s%d", i ? ", " : "", i);
    buf_put_str(&cql, "])");
    buf_u8(&cql, 0);
    run_ok(h, (const char *)cql.p);
    for (int n = 3; n <= DELETIONS; n += DELETIONS - 3) {
        buf_clear(&cql, 0);
        buf_put_str(&cql, "UPDATE t SET ");
        for (int i = 0; i < n; i++) buf_printf(&cql, "%sl[0] = null", i ? ", " : "");
        buf_put_str(&cql, " WHERE pk = 1 AND ck = 1 AND ck2 = 'a'");
        buf_u8(&cql, 0);
        if (n == 3) run_ok(h, (const char *)cql.p);
        else
            assert_error(h, (const char *)cql.p,
                         "The list operations of one statement may not move more than 16777216 elements");
    }
    buf_fini(&cql);
}

static void test_insert_static_only_makes_no_row(void **state) {
    struct harness *h = *state;
    run_ok(h, "INSERT INTO so (pk, s) VALUES (1, 6)");
    assert_rows(h, "SELECT * FROM so", "1,null,6,null");
    run_ok(h, "INSERT INTO so (pk, ck) VALUES (1, 2)");
    assert_rows(h, "SELECT * FROM so", "1,2,6,null");
}

static void test_update_makes_no_row_marker(void **state) {
    struct harness *h = *state;
    run_ok(h, "UPDATE so SET v = 1 WHERE pk = 1 AND ck = 1");
    assert_rows(h, "SELECT * FROM so", "1,1,null,1");
    run_ok(h, "UPDATE so SET v = null WHERE pk = 1 AND ck = 1");
    assert_rows(h, "SELECT * FROM so", "");
}

static void test_update_refuses_what_cassandra_refuses(void **state) {
    struct harness *h = *state;
    assert_error(h, "UPDATE t SET s = 1 WHERE pk = 1 AND ck = 1",
                 "Invalid restrictions on clustering columns since the UPDATE statement modifies only static columns");
    assert_error(h, "UPDATE t SET pk = 1 WHERE pk = 1", "PRIMARY KEY part pk found in SET part");
    assert_error(h, "UPDATE t SET v = 1, v = 2 WHERE pk = 1 AND ck = 1 AND ck2 = 'a'",
                 "Multiple incompatible setting of column v");
    assert_error(h, "UPDATE t SET v = v + 1 WHERE pk = 1 AND ck = 1 AND ck2 = 'a'",
                 "Invalid operation (v = v + 1) for non counter column v");
    assert_error(h, "UPDATE t SET v[0] = 1 WHERE pk = 1 AND ck = 1 AND ck2 = 'a'",
                 "Invalid operation (v[0] = 1) for non collection column v");
    assert_error(h, "UPDATE t SET st['a'] = 'b' WHERE pk = 1 AND ck = 1 AND ck2 = 'b'",
                 "Invalid operation (st['a'] = 'b') for set column st");
    assert_error(h, "UPDATE t SET fl = fl + [1] WHERE pk = 1 AND ck = 1 AND ck2 = 'b'",
                 "Invalid operation (fl = fl + [1]) for frozen collection column fl");
    assert_error(h, "UPDATE cn SET c = 1 WHERE pk = 1 AND ck = 1",
                 "Cannot set the value of counter column c (counters can only be incremented/decremented, not set)");
}

static void test_delete_refuses_what_cassandra_refuses(void **state) {
    struct harness *h = *state;
    assert_error(h, "DELETE pk FROM t WHERE pk = 1",
                 "Invalid identifier pk for deletion (should not be a PRIMARY KEY part)");
    assert_error(h, "DELETE v FROM t WHERE pk = 1", "Range deletions are not supported for specific columns");
    assert_error(h, "DELETE v['a'] FROM t WHERE pk = 1 AND ck = 1 AND ck2 = 'b'",
                 "Invalid deletion operation for non collection column v");
    assert_error(h, "DELETE FROM t WHERE pk = 1 IF EXISTS",
                 "DELETE statements must restrict all PRIMARY KEY columns with equality relations in order to delete "
                 "non static columns");
}

static void test_delete_rows_ranges_and_partitions(void **state) {
    struct harness *h = *state;
    for (int ck = 1; ck <= 5; ck++) {
        char cql[100];
        snprintf(cql, sizeof cql, "INSERT INTO so (pk, ck, v, s) VALUES (1, %d, %d, 9)", ck, ck);
        run_ok(h, cql);
    }
    run_ok(h, "DELETE FROM so WHERE pk = 1 AND ck = 2");
    run_ok(h, "DELETE FROM so WHERE pk = 1 AND ck > 4");
    assert_rows(h, "SELECT ck, v FROM so", "1,1;3,3;4,4");
    run_ok(h, "DELETE v FROM so WHERE pk = 1 AND ck IN (1, 3)");
    assert_rows(h, "SELECT ck, v FROM so", "1,null;3,null;4,4");
    run_ok(h, "DELETE s FROM so WHERE pk = 1");
    assert_rows(h, "SELECT ck, s FROM so", "1,null;3,null;4,null");
    run_ok(h, "DELETE FROM so WHERE pk = 1");
    assert_rows(h, "SELECT * FROM so", "");
}

static void test_timestamps_decide(void **state) {
    struct harness *h = *state;
    run_ok(h, "INSERT INTO so (pk, ck, v) VALUES (1, 1, 5) USING TIMESTAMP 100");
    run_ok(h, "INSERT INTO so (pk, ck, v) VALUES (1, 1, 4) USING TIMESTAMP 99");
    assert_rows(h, "SELECT v, writetime(v) FROM so", "5,100");
    run_ok(h, "DELETE FROM so USING TIMESTAMP 100 WHERE pk = 1 AND ck = 1");
    assert_rows(h, "SELECT v FROM so", "");
    assert_error(h, "INSERT INTO so (pk, ck) VALUES (1, 1) USING TIMESTAMP -9223372036854775808",
                 "Out of bound timestamp, must be in [-9223372036854775807, 9223372036854775807]");
}

/* The clock of the harness stands still: the server's timestamps must grow all the same. */
static void test_writes_of_one_instant_keep_their_order(void **state) {
    struct harness *h = *state;
    run_ok(h, "INSERT INTO so (pk, ck, v) VALUES (1, 1, 9)");
    run_ok(h, "INSERT INTO so (pk, ck, v) VALUES (1, 1, 2)");
    assert_rows(h, "SELECT v FROM so", "2");
    run_ok(h, "DELETE FROM so WHERE pk = 1 AND ck = 1");
    run_ok(h, "INSERT INTO so (pk, ck, v) VALUES (1, 1, 1)");
    assert_rows(h, "SELECT v FROM so", "1");
}

static void test_ttl_of_statement_and_table(void **state) {
    struct harness *h = *state;
    run_ok(h, "INSERT INTO tt (pk, v) VALUES ('a', 1)");
    run_ok(h, "INSERT INTO tt (pk, v) VALUES ('b', 1) USING TTL 0");
    run_ok(h, "UPDATE tt USING TTL 7 SET v = 1 WHERE pk = 'c'");
    assert_rows(h, "SELECT ttl(v) FROM tt WHERE pk = 'a'", "100");
    assert_rows(h, "SELECT ttl(v) FROM tt WHERE pk = 'b'", "null");
    assert_rows(h, "SELECT ttl(v) FROM tt WHERE pk = 'c'", "7");
    h->clock.now_us += INT64_C(101) * 1000000;
    assert_rows(h, "SELECT pk FROM tt", "b");
    assert_error(h, "INSERT INTO tt (pk, v) VALUES ('a', 1) USING TTL -1",
                 "A TTL must be greater or equal to 0, but was -1");
    assert_error(h, "INSERT INTO tt (pk, v) VALUES ('a', 1) USING TTL 630720001",
                 "ttl is too large. requested (630720001) maximum (630720000)");
}

#define ROW_B " WHERE pk = 1 AND ck = 1 AND ck2 = 'b'"

static void test_list_operations(void **state) {
    struct harness *h = *state;
    run_ok(h, "UPDATE t SET l = [1, 2, 3]" ROW_B);
    run_ok(h, "UPDATE t SET l[0] = null" ROW_B);
    run_ok(h, "UPDATE t SET l = l - [2]" ROW_B);
    run_ok(h, "UPDATE t SET l = l + [5]" ROW_B);
    run_ok(h, "UPDATE t SET l = [8, 9] + l" ROW_B);
    run_ok(h, "UPDATE t SET l = [7] + l" ROW_B);
    assert_rows(h, "SELECT l FROM t" ROW_B, "[7, 8, 9, 3, 5]");
    run_ok(h, "UPDATE t SET l[3] = 33" ROW_B);
    run_ok(h, "DELETE l[0] FROM t" ROW_B);
    assert_rows(h, "SELECT l FROM t" ROW_B, "[8, 9, 33, 5]");
    assert_error(h, "UPDATE t SET l[7] = 1" ROW_B, "List index 7 out of bound, list has size 4");
    assert_error(h, "DELETE l[9] FROM t" ROW_B, "List index 9 out of bound, list has size 4");
    assert_error(h, "UPDATE t SET l[0] = 1 WHERE pk = 1 AND ck = 1 AND ck2 = 'none'",
                 "Attempted to set an element on a list which is null");
    run_ok(h, "UPDATE t SET l = [4]" ROW_B);
    assert_rows(h, "SELECT l FROM t" ROW_B, "[4]");
    run_ok(h, "UPDATE t SET l = []" ROW_B);
    assert_rows(h, "SELECT l FROM t" ROW_B, "");
}

static void test_set_and_map_operations(void **state) {
    struct harness *h = *state;
    run_ok(h, "UPDATE t SET st = {'b', 'a'}, m = {'y': 2, 'x': 1}" ROW_B);
    run_ok(h, "UPDATE t SET st = st + {'c'}, m['z'] = 3, m['x'] = null" ROW_B);
    assert_rows(h, "SELECT st, m FROM t" ROW_B, "{'a', 'b', 'c'},{'y': 2, 'z': 3}");
    run_ok(h, "UPDATE t SET st = st - {'a', 'c'}, m = m - {'y'}" ROW_B);
    run_ok(h, "UPDATE t SET m = m + {'q': 5}" ROW_B);
    assert_rows(h, "SELECT st, m FROM t" ROW_B, "{'b'},{'q': 5, 'z': 3}");
    run_ok(h, "DELETE st['b'], m['q'] FROM t" ROW_B);
    assert_rows(h, "SELECT st, m FROM t" ROW_B, "null,{'z': 3}");
    assert_error(h, "UPDATE t SET m[null] = 1" ROW_B, "Invalid null map key");
    assert_error(h, "UPDATE t SET m = m + {'c'}" ROW_B, "Value for a map addition has to be a map, but was: '{'c'}'");
}

static void test_set_keeps_the_first_of_equal_elements(void **state) {
    struct harness *h = *state;
    run_ok(h, "CREATE TABLE d (k int PRIMARY KEY, s set<decimal>)");
    run_ok(h, "INSERT INTO d (k, s) VALUES (1, {1.5, -2, 1.50})");
    run_ok(h, "INSERT INTO d (k, s) VALUES (2, {1.50, 1.5})");
    assert_rows(h, "SELECT s FROM d WHERE k = 1", "{-2, 1.5}");
    assert_rows(h, "SELECT s FROM d WHERE k = 2", "{1.50}");
}

static void test_counter_counts(void **state) {
    struct harness *h = *state;
    run_ok(h, "UPDATE cn SET c = c + 10 WHERE pk = 1 AND ck = 1");
    run_ok(h, "UPDATE cn SET c = c - 3 WHERE pk = 1 AND ck = 1");
    run_ok(h, "UPDATE cn SET c += 1 WHERE pk = 1 AND ck = 1");
    assert_rows(h, "SELECT c FROM cn", "8");
    run_ok(h, "BEGIN COUNTER BATCH UPDATE cn SET c = c + 1 WHERE pk = 1 AND ck = 1; UPDATE cn SET c = c + 1 WHERE pk = "
              "1 AND ck = 1 APPLY BATCH");
    assert_rows(h, "SELECT c FROM cn", "10");
    assert_error(h, "UPDATE cn USING TTL 5 SET c = c + 1 WHERE pk = 1 AND ck = 1",
                 "Cannot provide custom TTL for counter updates");
}

static void test_json_inserts(void **state) {
    struct harness *h = *state;
    run_ok(h, "INSERT INTO so JSON '{\"pk\": 1, \"ck\": 2, \"v\": 3, \"s\": 4}'");
    assert_rows(h, "SELECT * FROM so", "1,2,4,3");
    run_ok(h, "INSERT INTO so JSON '{\"pk\": 1, \"CK\": 2, \"s\": 5}' DEFAULT UNSET");
    assert_rows(h, "SELECT * FROM so", "1,2,5,3");
    run_ok(h, "INSERT INTO so JSON '{\"pk\": 1, \"ck\": 2}'");
    assert_rows(h, "SELECT * FROM so", "1,2,null,null");
    assert_error(h, "INSERT INTO so JSON '{\"pk\": 1, \"zz\": 2}'", "JSON values map contains unrecognized column: zz");
    assert_error(h, "INSERT INTO so JSON '{\"ck\": 2}'", "Invalid null value in condition for column pk");
    assert_error(h, "INSERT INTO so JSON '{\"pk\": 1, \"ck\": \"abc\"}'",
                 "Error decoding JSON value for ck: Unable to make int from 'abc'");
}

static void test_unset_leaves_columns_alone(void **state) {
    struct harness *h = *state;
    static const uint8_t one[4] = {0, 0, 0, 1};
    const struct value all[] = {value_of(one, 4), value_of(one, 4), value_of(one, 4)};
    const struct value some[] = {value_of(one, 4), value_of(one, 4), {.n = VALUE_UNSET}};
    assert_int_equal(harness_run(h, "INSERT INTO so (pk, ck, v) VALUES (?, ?, ?)", 3, all), CQL_COMMIT);
    assert_int_equal(harness_run(h, "INSERT INTO so (pk, ck, v) VALUES (?, ?, ?)", 3, some), CQL_COMMIT);
    assert_rows(h, "SELECT * FROM so", "1,1,null,1");
}

static void test_write_cost_of_founding_examples(void **state) {
    struct harness *h = *state;
    run_ok(h, "CREATE TABLE f (a int, b int, c int, d int, e int, s int static, PRIMARY KEY ((a, b), c, d))");
    run_ok(h, "INSERT INTO f (a, b, s) VALUES (1, 2, 6)");
    const struct op_write *w = h->cost.writes;
    assert_non_null(w);
    assert_true(w->has_static && !w->has_row);
    assert_int_equal(w->statics.bytes, 104 + 2 * (3 + 4) + 4);
    run_ok(h, "INSERT INTO f (a, b, c, d, e, s) VALUES (2, 3, 4, 5, 6, 7)");
    w = h->cost.writes;
    assert_true(w->has_static && w->has_row && !w->next);
    assert_int_equal(w->row.bytes, 100 + 2 * (3 + 4) + 2 * (4 + 4) + 4);
}

#define CASE(f) cmocka_unit_test_setup_teardown(f, setup, harness_teardown)

int main(void) {
    const struct CMUnitTest tests[] = {
        CASE(test_insert_refuses_bad_keys),
        CASE(test_a_clustering_key_that_is_too_long_is_refused_or_not_there),
        CASE(test_list_operations_of_one_statement_have_a_bound),
        CASE(test_insert_static_only_makes_no_row),
        CASE(test_update_makes_no_row_marker),
        CASE(test_update_refuses_what_cassandra_refuses),
        CASE(test_delete_refuses_what_cassandra_refuses),
        CASE(test_delete_rows_ranges_and_partitions),
        CASE(test_timestamps_decide),
        CASE(test_writes_of_one_instant_keep_their_order),
        CASE(test_ttl_of_statement_and_table),
        CASE(test_list_operations),
        CASE(test_set_and_map_operations),
        CASE(test_set_keeps_the_first_of_equal_elements),
        CASE(test_counter_counts),
        CASE(test_json_inserts),
        CASE(test_unset_leaves_columns_alone),
        CASE(test_write_cost_of_founding_examples),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
