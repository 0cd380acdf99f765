/* Pages and what is read for them in keyspaces mode: the reference on Amazon Keyspaces, sections 1.4 and 1.5. */
#include "harness.h"

#include <stdio.h>

static int setup(void **state) {
    static const char *const tables[] = {
        "CREATE TABLE t (k int, c int, d int, s int static, v blob, PRIMARY KEY (k, c, d))",
        NULL,
    };
    *state = harness_new(MODE_KEYSPACES, tables);
    return 0;
}

/* n bytes of v in every row: k 1..ks, c 0..cs - 1, d 0. */
static void fill(struct harness *h, int ks, int cs, uint32_t n) {
    uint8_t *bytes = test_calloc(n + 1, 1);
    for (int k = 1; k <= ks; k++) {
        for (int c = 0; c < cs; c++) {
            char cql[96];
            struct value v = value_of(bytes, n);
            snprintf(cql, sizeof(cql), "INSERT INTO t (k, c, d, v) VALUES (%d, %d, 0, ?)", k, c);
            assert_int_equal(harness_run(h, cql, 1, &v), CQL_COMMIT);
        }
    }
    test_free(bytes);
}

/* Every page but the last has rows or not, and a state; at most `most` of them. Returns how many rows came in all. */
static uint32_t all_pages(struct harness *h, const char *cql, uint32_t most, uint32_t *pages) {
    uint32_t rows = 0;
    h->resume = false;
    for (*pages = 1;; ++*pages) {
        assert_true(*pages <= most);
        (void)harness_query(h, cql);
        rows += h->n_rows;
        if (!h->paging.n) break;
        h->resume = true;
    }
    h->resume = false;
    return rows;
}

static void test_page_ends_after_rows_read(void **state) {
    struct harness *h = *state;
    uint32_t pages;
    fill(h, 1, 6, 10);
    h->page_size = 2;
    assert_int_equal(all_pages(h, "SELECT c FROM t WHERE k = 1", 3, &pages), 6);
    assert_int_equal(pages, 3);
    assert_int_equal(all_pages(h, "SELECT c FROM t WHERE k = 1 AND v = 0x01 ALLOW FILTERING", 3, &pages), 0);
    assert_int_equal(pages, 3);
    assert_int_equal(all_pages(h, "SELECT c FROM t", 3, &pages), 6);
}

static void test_page_ends_before_a_megabyte_wherever_the_row_stands(void **state) {
    struct harness *h = *state;
    uint32_t pages;
    fill(h, 5, 3, 300 << 10);
    h->page_size = 5000;
    assert_int_equal(all_pages(h, "SELECT k, c FROM t", 5, &pages), 15);
    assert_int_equal(pages, 5);
    assert_int_equal(all_pages(h, "SELECT k, c FROM t WHERE k IN (1, 2, 3, 4, 5)", 5, &pages), 15);
    assert_int_equal(all_pages(h, "SELECT k, c FROM t WHERE k IN (1, 2, 3, 4, 5) AND c IN (2, 0) AND d = 0", 4, &pages),
                     10);
    h->page_size = 0;
    assert_int_equal(all_pages(h, "SELECT k, c FROM t", 5, &pages), 15);
    assert_int_equal(all_pages(h, "SELECT k, c FROM t WHERE k = 2 ORDER BY c DESC", 1, &pages), 3);
}

static void test_statics_only_partitions_fit_pages(void **state) {
    struct harness *h = *state;
    uint32_t pages;
    fill(h, 2, 2, 10);
    for (int k = 3; k <= 7; k++) {
        char cql[64];
        snprintf(cql, sizeof(cql), "INSERT INTO t (k, s) VALUES (%d, 1)", k);
        run_ok(h, cql);
    }
    for (h->page_size = 1; h->page_size <= 4; h->page_size++) {
        assert_int_equal(all_pages(h, "SELECT k, s, c FROM t", 9, &pages), 9);
        assert_int_equal(pages, (9 + (uint32_t)h->page_size - 1) / (uint32_t)h->page_size);
    }
}

static void test_limit_reads_the_page(void **state) {
    struct harness *h = *state;
    fill(h, 1, 20, 10);
    h->page_size = 8;
    assert_rows(h, "SELECT c FROM t WHERE k = 1 LIMIT 2", "0;1");
    assert_int_equal(h->cost.rows_read, 8);
    assert_int_equal(h->cost.reads->past_limit, 6);
    assert_int_equal(h->paging.n, 0);
    h->page_size = 0;
    assert_rows(h, "SELECT c FROM t WHERE k = 1 LIMIT 2", "0;1");
    assert_int_equal(h->cost.rows_read, 20);
}

static void test_each_subquery_is_a_read(void **state) {
    struct harness *h = *state;
    uint32_t n = 0;
    fill(h, 2, 3, 10);
    assert_rows(h, "SELECT k, c FROM t WHERE k IN (2, 1) AND c IN (1, 9, 0)", "2,1;2,0;1,1;1,0");
    for (const struct op_read *r = h->cost.reads; r; r = r->next) n++;
    assert_int_equal(n, 6);
    assert_rows(h, "SELECT c FROM t WHERE k = 1 AND c > 0 AND c < 2", "1");
    assert_int_equal(h->cost.reads->at_bound, 1);
    assert_int_equal(h->cost.reads->rows.rows, 2);
    assert_rows(h, "SELECT c FROM t WHERE k = 1 AND (c, d) < (1, 0)", "0");
    assert_int_equal(h->cost.reads->at_bound, 1);
}

static void test_expired_rows_are_read_and_not_given(void **state) {
    struct harness *h = *state;
    run_ok(h, "INSERT INTO t (k, c, d, v) VALUES (1, 1, 0, 0x00) USING TTL 10");
    run_ok(h, "INSERT INTO t (k, c, d, v) VALUES (1, 2, 0, 0x00)");
    h->clock.now_us += 11000000;
    assert_rows(h, "SELECT c FROM t WHERE k = 1", "2");
    assert_int_equal(h->cost.reads->expired, 1);
    assert_int_equal(h->cost.reads->rows.rows, 2);
    assert_rows(h, "SELECT c FROM t WHERE k = 1 AND c = 1 AND d = 0", "");
    assert_int_equal(h->cost.reads->expired, 1);
    run_ok(h, "DELETE FROM t WHERE k = 1 AND c = 1 AND d = 0");
    assert_rows(h, "SELECT c FROM t WHERE k = 1", "2");
    assert_int_equal(h->cost.reads->expired, 0);
}

int main(void) {
#define T(name) cmocka_unit_test_setup_teardown(name, setup, harness_teardown)
    const struct CMUnitTest tests[] = {
        T(test_page_ends_after_rows_read),
        T(test_page_ends_before_a_megabyte_wherever_the_row_stands),
        T(test_statics_only_partitions_fit_pages),
        T(test_limit_reads_the_page),
        T(test_each_subquery_is_a_read),
        T(test_expired_rows_are_read_and_not_given),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
