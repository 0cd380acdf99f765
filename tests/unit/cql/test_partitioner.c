/* Tokens under the partitioner of a session: bounds of the ring of MD5, and what ranges of it cost. */
#include "tests/unit/cql/harness.h"

#include <stdio.h>
#include <string.h>

#include "cql/row/ring.h"
#include "metering/charge.h"

static const char *const tables[] = {"CREATE TABLE t (k int PRIMARY KEY, v int)",
                                     "CREATE TABLE s (k int, c int, v int, st int static, PRIMARY KEY (k, c))", NULL};

static int open_keyspaces(void **state) {
    *state = harness_new(MODE_KEYSPACES, tables);
    return 0;
}

static double charged(struct harness *h, const char *cql) {
    struct charge c;
    if (harness_run(h, cql, 0, NULL) != CQL_DONE) fail_msg("%s: %s", cql, h->err.text);
    charge_compute(&h->cost, CHARGE_STRONG, &c);
    return c.read_units;
}

static ring_position position(const char *digits, size_t n) {
    ring_position at = 77;
    assert_true(ring_read(PARTITIONER_RANDOM, value_of_slice(slice_of(digits, n)), &at));
    return at;
}
#define PLACE(bytes) position("" bytes, sizeof(bytes) - 1)

static void test_places_are_in_the_order_of_numbers(void **state) {
    (void)state;
    ring_position greatest = ring_greatest(PARTITIONER_RANDOM), at;
    assert_true(PLACE("\xff") == 1 && PLACE("\xff\xff\xff") == 1 && PLACE("\xfe") == 0 && PLACE("\xff\0") == 0);
    assert_true(PLACE("\x80\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0") == 0 && PLACE("\0") == 2);
    assert_true(PLACE("\0\0\0\xff") == 257);
    assert_true(PLACE("\x7f\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff") == greatest - 1);
    assert_true(PLACE("\0\x80\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0") == greatest);
    assert_true(PLACE("\0\x80\0\0\0\0\0\0\0\0\0\0\0\0\0\0\1") == greatest + 1);
    assert_true(PLACE("\0\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff") == greatest + 1);
    assert_true(PLACE("\1\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0") == greatest + 1); /* 2^128 */
    assert_true(PLACE("\1\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0") == greatest + 1);
    assert_false(ring_read(PARTITIONER_RANDOM, value_of_slice(slice_of("", 0)), &at));
    assert_false(ring_read(PARTITIONER_MURMUR3, value_of_slice(slice_of("\0", 1)), &at));
    for (int p = PARTITIONER_MURMUR3; p <= PARTITIONER_RANDOM; p++) {
        const ring_position all[] = {
            ring_least(p), 2, 3, 128, 129, 256, 257, ring_quarter_end(p, 0), ring_quarter_end(p, 2), ring_greatest(p)};
        assert_true(ring_quarter_end(p, 3) == ring_greatest(p));
        for (size_t i = 0; i < ARRAY_LEN(all); i++) {
            struct buf b;
            buf_init(&b, 0);
            ring_write(p, all[i], &b);
            assert_true(ring_read(p, value_of_slice(buf_slice(&b)), &at) && at == all[i]);
            buf_fini(&b);
        }
    }
}

static void test_ranges_of_md5_pay_for_what_is_in_them(void **state) {
    struct harness *h = *state;
    char cql[200];
    enum { ROWS = 64, RANGES = 8 };
    for (int i = 0; i < ROWS; i++) {
        snprintf(cql, sizeof cql, "INSERT INTO s (k, c, v, st) VALUES (%d, 1, 1, 1)", i);
        run_ok(h, cql);
    }
    h->session.partitioner = PARTITIONER_RANDOM;
    assert_true(charged(h, "SELECT v FROM s") >= 2);
    uint64_t rows = 0, bytes = 0, all_rows = h->cost.rows_read, all_bytes = h->cost.bytes_read;
    static const char *const ends[RANGES + 1] = {
        "-1", "21267647932558653966460912964485513216", "42535295865117307932921825928971026432",
        "63802943797675961899382738893456539648", "85070591730234615865843651857942052864",
        "106338239662793269832304564822427566080", "127605887595351923798765477786913079296",
        "148873535527910577765226390751398592512", "170141183460469231731687303715884105728"};
    for (int i = 0; i < RANGES; i++) {
        snprintf(cql, sizeof cql, "SELECT v FROM s WHERE token(k) > %s AND token(k) <= %s", ends[i], ends[i + 1]);
        assert_true(charged(h, cql) == 1); /* 4 KiB would hold all of them */
        assert_int_equal(h->cost.rows_read, h->n_rows);
        rows += h->cost.rows_read;
        bytes += h->cost.bytes_read;
    }
    assert_int_equal(rows, ROWS);
    assert_true(rows == all_rows && bytes == all_bytes);
}

static void test_ranges_of_md5_pay_once_for_empty_storage_partitions(void **state) {
    struct harness *h = *state;
    h->session.partitioner = PARTITIONER_DEFAULT;
    assert_true(charged(h, "SELECT v FROM t") == 4);
    assert_true(charged(h, "SELECT v FROM t WHERE token(k) > -1") == 4);
    assert_true(charged(h, "SELECT v FROM t WHERE token(k) > 5 AND token(k) <= 6") == 1);
    assert_true(charged(h, "SELECT v FROM t WHERE token(k) > 5") == 4);
    /* the ends of two quarters, and of the other two */
    assert_true(charged(h, "SELECT v FROM t WHERE token(k) <= 85070591730234615865843651857942052864") == 2);
    assert_true(charged(h, "SELECT v FROM t WHERE token(k) > 85070591730234615865843651857942052864") == 2);
    run_ok(h, "INSERT INTO t (k, v) VALUES (1, 1)");
    double whole = charged(h, "SELECT v FROM t");
    assert_true(charged(h, "SELECT v FROM t WHERE token(k) >= -1") == whole);
}

static void test_a_long_scan_for_few_rows_leaves_its_turn_to_others(void **state) {
    struct harness *h = *state;
    char cql[200];
    for (int i = 0; i < 9000; i++) {
        snprintf(cql, sizeof cql, "INSERT INTO t (k, v) VALUES (%d, 1)", i);
        run_ok(h, cql);
    }
    h->session.partitioner = PARTITIONER_RANDOM;
    run_ok(h, "SELECT v FROM t WHERE token(k) > 5 AND token(k) <= 6");
    assert_int_equal(h->n_rows, 0);
    assert_true(h->n_parts >= 3);
    assert_true(h->cost.rows_read == 0 && h->cost.bytes_read == 0);
}

static void test_a_statement_keeps_the_partitioner_it_was_prepared_with(void **state) {
    struct harness *h = *state;
    static const char select[] = "SELECT k FROM t WHERE token(k) > ?";
    uint8_t murmur[16], md5[16];
    const struct value low = value_of_slice(slice_of("\x80\0\0\0\0\0\0\0", 8)),
                       minus_one = value_of_slice(slice_of("\xff", 1));
    run_ok(h, "INSERT INTO t (k, v) VALUES (1, 1)");
    harness_prepare(h, select, murmur);
    h->session.partitioner = PARTITIONER_RANDOM;
    harness_prepare(h, select, md5);
    assert_memory_not_equal(murmur, md5, 16);
    for (int i = 0; i < 2; i++) {
        assert_int_equal(harness_execute(h, murmur, 1, &low), CQL_DONE);
        assert_int_equal(h->n_rows, 1);
        assert_int_equal(harness_execute(h, md5, 1, &minus_one), CQL_DONE);
        assert_int_equal(h->n_rows, 1);
        assert_int_equal(harness_execute(h, murmur, 1, &minus_one), CQL_FAILED);
        h->session.partitioner = PARTITIONER_MURMUR3;
        run_ok(h, "ALTER TABLE t WITH comment = 'compiled anew'");
    }
}

int main(void) {
#define EACH(test) cmocka_unit_test_setup_teardown(test, open_keyspaces, harness_teardown)
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_places_are_in_the_order_of_numbers),
                                       EACH(test_ranges_of_md5_pay_for_what_is_in_them),
                                       EACH(test_ranges_of_md5_pay_once_for_empty_storage_partitions),
                                       EACH(test_a_long_scan_for_few_rows_leaves_its_turn_to_others),
                                       EACH(test_a_statement_keeps_the_partitioner_it_was_prepared_with)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
