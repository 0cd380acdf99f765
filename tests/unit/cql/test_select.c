#include "metering/size/size.h"
#include "harness.h"

#include <stdio.h>
#include <stdlib.h>

static int setup(void **state) {
    static const char *const tables[] = {
        "CREATE TABLE t (k int, c int, d int, s int static, v int, m map<text, int>, l list<int>, PRIMARY KEY (k, c, "
        "d))",
        "CREATE TABLE r (k int, a int, b int, v int, PRIMARY KEY (k, a, b)) WITH CLUSTERING ORDER BY (a ASC, b DESC)",
        "CREATE TABLE p (a int, b text, v int, PRIMARY KEY ((a, b)))",
        NULL,
    };
    *state = harness_new(MODE_CASSANDRA, tables);
    return 0;
}

static void fill(struct harness *h) {
    run_ok(h, "INSERT INTO t (k, c, d, s, v) VALUES (1, 1, 1, 9, 10)");
    run_ok(h, "INSERT INTO t (k, c, d, v, m, l) VALUES (1, 2, 1, 20, {'b': 2, 'a': 1}, [3, 1, 2])");
    run_ok(h, "INSERT INTO t (k, c, d, v) VALUES (1, 2, 2, 30)");
    run_ok(h, "INSERT INTO t (k, c, d, v) VALUES (1, 3, 1, 40)");
    run_ok(h, "INSERT INTO t (k, c, d, v) VALUES (2, 1, 1, 50)");
    run_ok(h, "INSERT INTO t (k, s) VALUES (5, 55)");
}

static void test_select_finds_a_row_by_its_key(void **state) {
    struct harness *h = *state;
    fill(h);
    assert_rows(h, "SELECT k, c, d, s, v FROM t WHERE k = 1 AND c = 2 AND d = 1", "1,2,1,9,20");
    assert_rows(h, "SELECT v FROM t WHERE k = 1 AND c = 2 AND d = 3", "");
    run_ok(h, "INSERT INTO p (a, b, v) VALUES (1, 'x', 7)");
    assert_rows(h, "SELECT * FROM p WHERE b = 'x' AND a = 1", "1,x,7");
    assert_int_equal(h->cost.query_class, QUERY_POINT);
    assert_int_equal(h->cost.rows_returned, 1);
}

static void test_select_slices_in_both_orders(void **state) {
    struct harness *h = *state;
    fill(h);
    assert_rows(h, "SELECT c, d FROM t WHERE k = 1", "1,1;2,1;2,2;3,1");
    assert_rows(h, "SELECT c, d FROM t WHERE k = 1 ORDER BY c DESC", "3,1;2,2;2,1;1,1");
    assert_rows(h, "SELECT c, d FROM t WHERE k = 1 AND c >= 2", "2,1;2,2;3,1");
    assert_rows(h, "SELECT c, d FROM t WHERE k = 1 AND c > 1 AND c < 3", "2,1;2,2");
    assert_rows(h, "SELECT c, d FROM t WHERE k = 1 AND c = 2 AND d > 1", "2,2");
    assert_rows(h, "SELECT c, d FROM t WHERE k = 1 AND (c, d) > (1, 1) AND (c, d) <= (2, 2)", "2,1;2,2");
    assert_rows(h, "SELECT c, d FROM t WHERE k = 1 AND c IN (3, 1)", "1,1;3,1");
    assert_rows(h, "SELECT c, d FROM t WHERE k = 1 AND (c, d) IN ((2, 2), (1, 1))", "1,1;2,2");
    assert_rows(h, "SELECT c, d FROM t WHERE k = 1 AND c IN ()", "");
}

static void test_select_tuples_over_columns_of_mixed_order(void **state) {
    struct harness *h = *state;
    for (int a = 1; a <= 3; a++) {
        for (int b = 1; b <= 3; b++) {
            char cql[96];
            snprintf(cql, sizeof(cql), "INSERT INTO r (k, a, b, v) VALUES (1, %d, %d, 0)", a, b);
            run_ok(h, cql);
        }
    }
    assert_rows(h, "SELECT a, b FROM r WHERE k = 1", "1,3;1,2;1,1;2,3;2,2;2,1;3,3;3,2;3,1");
    assert_rows(h, "SELECT a, b FROM r WHERE k = 1 AND (a, b) > (2, 2)", "2,3;3,3;3,2;3,1");
    assert_rows(h, "SELECT a, b FROM r WHERE k = 1 AND (a, b) <= (2, 2)", "1,3;1,2;1,1;2,2;2,1");
    assert_rows(h, "SELECT a, b FROM r WHERE k = 1 AND (a, b) >= (1, 2) AND (a, b) < (2, 2)", "1,3;1,2;2,1");
    assert_rows(h, "SELECT a, b FROM r WHERE k = 1 AND a = 2 AND b < 3", "2,2;2,1");
}

static void test_select_in_gives_partitions_in_order_of_their_values(void **state) {
    struct harness *h = *state;
    fill(h);
    assert_rows(h, "SELECT k, c FROM t WHERE k IN (5, 2, 2)", "2,1;5,null");
    assert_rows(h, "SELECT k FROM t WHERE k IN ()", "");
}

static void test_select_scans_in_token_order(void **state) {
    struct harness *h = *state;
    fill(h);
    assert_rows(h, "SELECT k, c, d, s FROM t", "5,null,null,55;1,1,1,9;1,2,1,9;1,2,2,9;1,3,1,9;2,1,1,null");
    assert_int_equal(h->cost.query_class, QUERY_TABLE_SCAN);
    assert_rows(h, "SELECT DISTINCT k, s FROM t", "5,55;1,9;2,null");
    assert_rows(h, "SELECT k, c FROM t PER PARTITION LIMIT 1", "5,null;1,1;2,1");
    assert_rows(h, "SELECT k, c FROM t WHERE token(k) > token(5) LIMIT 2", "1,1;1,2");
    assert_rows(h, "SELECT count(*) FROM t WHERE token(k) >= -4069959284402364209 AND token(k) <= -4069959284402364209",
                "4");
}

static void test_select_pages_resume_exactly(void **state) {
    struct harness *h = *state;
    fill(h);
    h->page_size = 2;
    assert_rows(h, "SELECT k, c, d FROM t", "5,null,null;1,1,1");
    assert_true(h->paging.n > 0);
    h->resume = true;
    assert_rows(h, "SELECT k, c, d FROM t", "1,2,1;1,2,2");
    assert_rows(h, "SELECT k, c, d FROM t", "1,3,1;2,1,1");
    assert_rows(h, "SELECT k, c, d FROM t", "");
    assert_int_equal(h->paging.n, 0);
}

static void test_select_limit_counts_over_pages(void **state) {
    struct harness *h = *state;
    fill(h);
    h->page_size = 2;
    assert_rows(h, "SELECT c, d FROM t WHERE k = 1 ORDER BY c DESC, d DESC LIMIT 3", "3,1;2,2");
    h->resume = true;
    assert_rows(h, "SELECT c, d FROM t WHERE k = 1 ORDER BY c DESC, d DESC LIMIT 3", "2,1");
    assert_int_equal(h->paging.n, 0);
}

static void test_select_refuses_a_foreign_paging_state(void **state) {
    struct harness *h = *state;
    fill(h);
    h->page_size = 1;
    run_ok(h, "SELECT k FROM t WHERE k = 1");
    h->paging.p[3] ^= 1;
    h->resume = true;
    assert_error(h, "SELECT k FROM t WHERE k = 1", "Invalid value for the paging state");
    assert_int_equal(h->err.code, ERR_PROTOCOL);
}

/* A page of one row of the first statement, then the second one from there. */
static const char *page_on(struct harness *h, const char *first, const char *then) {
    h->page_size = 1;
    h->resume = false;
    run_ok(h, first);
    assert_true(h->paging.n > 0);
    h->resume = true;
    return harness_run(h, then, 0, NULL) == CQL_DONE ? (const char *)h->rows.p : h->err.text;
}

static void test_a_paging_state_goes_on_however_its_statement_is_written(void **state) {
    struct harness *h = *state;
    fill(h);
    const char *first = "SELECT c, d FROM t WHERE k = 1";
    assert_string_equal(page_on(h, first, "select   c, d\nfrom k.t where K = 1"), "2,1");
    assert_string_equal(page_on(h, first, "SELECT v AS w, l FROM t WHERE k = (int) 1"), "20,[3, 1, 2]");
    uint8_t id[16];
    harness_prepare(h, "SELECT c, d FROM t WHERE k = ?", id);
    h->resume = false;
    run_ok(h, first);
    h->resume = true;
    assert_int_equal(harness_execute(h, id, 1, &(struct value){.p = (const uint8_t *)"\0\0\0\1", .n = 4}), CQL_DONE);
    assert_string_equal((const char *)h->rows.p, "2,1");
}

static void test_a_paging_state_of_other_rows_is_refused(void **state) {
    struct harness *h = *state;
    static const char *const others[] = {
        "SELECT c, d FROM t WHERE k = 2",                          /* partition */
        "SELECT c, d FROM t WHERE k = 1 ORDER BY c DESC",          /* direction */
        "SELECT c, d FROM t WHERE k IN (1, 2)",                    /* restrictions */
        "SELECT c, d FROM t WHERE k = 1 AND c > 0",
        "SELECT c, d FROM t WHERE k = 1 AND v > 0 ALLOW FILTERING",
        "SELECT c, d FROM t",
        "SELECT c, count(*) FROM t WHERE k = 1 GROUP BY c",        /* groups */
        "SELECT a, b FROM r WHERE k = 1",                          /* table */
    };
    fill(h);
    for (size_t i = 0; i < ARRAY_LEN(others); i++) {
        assert_string_equal(page_on(h, "SELECT c, d FROM t WHERE k = 1", others[i]),
                            "Invalid value for the paging state");
        assert_int_equal(h->err.code, ERR_PROTOCOL);
    }
    run_ok(h, "CREATE TABLE again (k int, c int, PRIMARY KEY (k, c))");
    run_ok(h, "INSERT INTO again (k, c) VALUES (1, 1)");
    h->resume = false;
    run_ok(h, "SELECT c FROM again WHERE k = 1");
    struct buf kept;
    buf_init(&kept, 0);
    buf_put_slice(&kept, buf_slice(&h->paging));
    run_ok(h, "DROP TABLE again");
    run_ok(h, "CREATE TABLE again (k int, c int, PRIMARY KEY (k, c))");
    buf_clear(&h->paging, 0);
    buf_put_slice(&h->paging, buf_slice(&kept));
    buf_fini(&kept);
    h->resume = true;
    assert_error(h, "SELECT c FROM again WHERE k = 1", "Invalid value for the paging state");
}

static void test_pages_go_on_after_a_truncate(void **state) {
    struct harness *h = *state;
    struct buf kept;
    fill(h);
    h->page_size = 1;
    h->resume = false;
    run_ok(h, "SELECT c, d FROM t WHERE k = 1");
    assert_true(h->paging.n > 0);
    buf_init(&kept, 0);
    buf_put_slice(&kept, buf_slice(&h->paging));
    run_ok(h, "TRUNCATE t");
    buf_clear(&h->paging, 0);
    buf_put_slice(&h->paging, buf_slice(&kept));
    buf_fini(&kept);
    h->resume = true;
    run_ok(h, "SELECT c, d FROM t WHERE k = 1");
    assert_int_equal(h->n_rows, 0);
    assert_int_equal(h->paging.n, 0);
}

static void fill_partition(struct harness *h, int rows) {
    uint8_t id[16];
    harness_prepare(h, "INSERT INTO t (k, c, d, v) VALUES (9, ?, 1, 1)", id);
    for (int i = 0; i < rows; i++) {
        uint8_t c[4];
        store_u32(c, (uint32_t)i);
        assert_int_equal(harness_execute(h, id, 1, &(struct value){.p = c, .n = 4}), CQL_COMMIT);
    }
}

static void test_a_long_read_runs_in_parts_and_gives_the_same_rows(void **state) {
    struct harness *h = *state;
    fill_partition(h, 9000);
    assert_rows(h, "SELECT count(*), sum(v), max(c) FROM t", "9000,9000,8999");
    assert_int_equal(h->n_parts, 3);
    assert_rows(h, "SELECT c FROM t WHERE k = 9 AND v = 2 ALLOW FILTERING", "");
    assert_int_equal(h->n_parts, 3);
    assert_rows(h, "SELECT c FROM t WHERE k = 9 AND c > 8997", "8998;8999");
    assert_int_equal(h->n_parts, 1);
    run_ok(h, "SELECT c, d FROM t");
    assert_int_equal(h->n_rows, 9000);
    assert_int_equal(h->n_parts, 3);
}

static void test_a_long_read_that_nobody_waits_for_ends_between_two_parts(void **state) {
    struct harness *h = *state;
    fill_partition(h, 9000);
    h->cancel_after = 1;
    assert_error(h, "SELECT count(*) FROM t", "The client is gone");
    assert_int_equal(h->n_parts, 2);
    assert_int_equal(h->cost.rows_read, 4096);
}

static void test_a_large_collection_costs_nothing_where_it_is_not_selected(void **state) {
    struct harness *h = *state;
    char cql[160];
    fill(h);
    for (int i = 0; i < 4000; i++) {
        snprintf(cql, sizeof(cql),
                 "UPDATE t SET m = m + {'key number %08d of a map that is large': %d} WHERE k = 1 AND c = 2 AND d = 1",
                 i, i);
        run_ok(h, cql);
    }
    h->arena_limit = 64 << 10;
    assert_rows(h, "SELECT c, d, v FROM t WHERE k = 1", "1,1,10;2,1,20;2,2,30;3,1,40");
    assert_rows(h, "SELECT count(*), max(v) FROM t", "6,50");
    assert_rows(h, "SELECT c, d, v FROM t WHERE k = 1 AND c = 2 AND d = 1", "2,1,20");
    assert_rows(h, "SELECT d, v FROM t WHERE k = 1 AND c = 2 AND d IN (1, 2)", "1,20;2,30");
    assert_rows(h, "UPDATE t SET v = 21 WHERE k = 1 AND c = 2 AND d = 1 IF v = 21", "false,20");
    run_ok(h, "UPDATE t SET v = 20 WHERE k = 1 AND c = 2 AND d = 1 IF v = 20");
    run_ok(h, "DELETE FROM t WHERE k = 1 AND c > 5"); /* from now on a walk leads to the row */
    assert_rows(h, "SELECT c, d, v FROM t WHERE k = 1 AND c = 2 AND d = 1", "2,1,20");
    assert_error(h, "SELECT m FROM t WHERE k = 1 AND c = 2 AND d = 1",
                 "The value of column m is larger than what one request may take of memory");
    assert_error(h, "SELECT m FROM t WHERE k = 1",
                 "The value of column m is larger than what one request may take of memory");
    h->arena_limit = 0;
    uint64_t bytes[2];
    for (int all = 0; all < 2; all++) {
        run_ok(h, all ? "SELECT * FROM t WHERE k = 1 AND c = 2" : "SELECT v FROM t WHERE k = 1 AND c = 2");
        bytes[all] = h->cost.reads->rows.bytes;
    }
    assert_true(bytes[0] == bytes[1] && bytes[0] > 4000 * 40);
}

static void test_a_point_read_with_statics_looks_at_its_partition_once(void **state) {
    struct harness *h = *state;
    fill(h);
    assert_rows(h, "SELECT s, v FROM t WHERE k = 1 AND c = 2 AND d = 1", "9,20");
    assert_int_equal(h->cost.partitions, 1);
    assert_rows(h, "SELECT s, v FROM t WHERE k = 1 AND c = 9 AND d = 1", "");
    run_ok(h, "INSERT INTO t (k, c, d, v) VALUES (1, 9, 1, 90) USING TTL 1");
    h->clock.now_us += 5000000;
    assert_rows(h, "SELECT s, v FROM t WHERE k = 1 AND c = 9 AND d = 1", "");
    assert_int_equal(h->cost.reads->expired, 1);
}

static void test_a_read_says_whose_it_is(void **state) {
    struct harness *h = *state;
    fill(h);
    run_ok(h, "SELECT v FROM t WHERE k IN (1, 2) AND c = 1 AND d = 1");
    const struct op_read *first = h->cost.reads, *second = first->next;
    assert_string_equal(first->item.keyspace, "k");
    assert_string_equal(first->item.table, "t");
    assert_true(first->item.one_partition && second->item.one_partition && !second->next);
    assert_true(slice_eq(first->key, slice_of("\0\0\0\1", 4)) && slice_eq(second->key, slice_of("\0\0\0\2", 4)));
    assert_true(first->item.token == -4069959284402364209 && second->item.token == -3248873570005575792);
    run_ok(h, "SELECT v FROM t");
    assert_false(h->cost.reads->item.one_partition);
}

/* ---- batches of rows ---- */

/* Rows that are alike and, between them, one without a value, a long one, one that expires, one that is deleted. */
static void load_batches(struct harness *h, const char *table) {
    static const char *const others[] = {
        "INSERT INTO %s (p, c, a) VALUES (1, 21, 5)",
        "INSERT INTO %s (p, c, a, z) VALUES (1, 22, 5, '%0200d')",
        "INSERT INTO %s (p, c, a, z) VALUES (1, 33, 6, 'z') USING TTL 5",
        "DELETE FROM %s WHERE p = 1 AND c = 44",
        "DELETE z FROM %s WHERE p = 1 AND c = 50",
    };
    char cql[320];
    for (int c = 0; c < 60; c++) {
        snprintf(cql, sizeof(cql), "INSERT INTO %s (p, c, z, a) VALUES (%d, %d, 'row %d', %d)", table, c % 8 ? 1 : c, c,
                 c, -c);
        run_ok(h, cql);
    }
    for (int p = 0; p < 60 && strcmp(table, "rich") == 0; p++) {
        snprintf(cql, sizeof(cql), "UPDATE rich SET s = %d WHERE p = %d", 1000 + p, p);
        run_ok(h, cql);
    }
    for (size_t i = 0; i < ARRAY_LEN(others); i++) {
        snprintf(cql, sizeof(cql), others[i], table, 7);
        run_ok(h, cql);
    }
}

/* A read of all its pages. */
struct whole_read {
    struct buf rows;
    struct size_sum sizes;
    uint64_t returned, rows_read, bytes_read;
    uint32_t most_rows; /* in one batch */
};

static void read_pages(struct harness *h, const char *cql, struct whole_read *out) {
    *out = (struct whole_read){0};
    buf_init(&out->rows, 0);
    buf_clear(&h->paging, 1 << 20);
    do {
        h->resume = h->paging.n > 0;
        const char *rows = harness_query(h, cql);
        if (*rows) buf_printf(&out->rows, "%s;", rows);
        for (const struct op_read *r = h->cost.reads; r; r = r->next) size_sum_add(&out->sizes, &r->rows);
        out->returned += h->cost.rows_returned;
        out->rows_read += h->cost.rows_read;
        out->bytes_read += h->cost.bytes_read;
        if (h->most_rows > out->most_rows) out->most_rows = h->most_rows;
    } while (h->paging.n);
    h->resume = false;
    buf_u8(&out->rows, 0);
}

/* Behind LIMIT, a page of Keyspaces reads on, every page reads the static row of its partition, and rows behind PER
 * PARTITION LIMIT are read if they come before the scan goes on: then what is read depends on the size of pages. */
static void compare_batches(struct harness *h, const char *cql) {
    bool reads_on = (h->mode == MODE_KEYSPACES && strstr(cql, "LIMIT")) || strstr(cql, "PER PARTITION");
    bool has_statics = strstr(cql, "rich");
    struct whole_read one, many;
    h->page_size = 1;
    read_pages(h, cql, &one);
    assert_int_equal(one.most_rows, 1);
    for (h->page_size = 0; h->page_size < 60; h->page_size = h->page_size * 3 + 2) {
        read_pages(h, cql, &many);
        if (strcmp((const char *)one.rows.p, (const char *)many.rows.p))
            fail_msg("%s: instead of\n%s it is\n%s", cql, (const char *)one.rows.p, (const char *)many.rows.p);
        assert_int_equal(many.returned, one.returned);
        if (!reads_on) {
            assert_int_equal(many.sizes.rows, one.sizes.rows);
            assert_int_equal(many.sizes.bytes, one.sizes.bytes);
        }
        if (!reads_on && !has_statics) {
            assert_int_equal(many.rows_read, one.rows_read);
            assert_int_equal(many.bytes_read, one.bytes_read);
        }
        if (h->page_size > 8 && !strstr(cql, "LIMIT 2")) assert_in_range(many.most_rows, 3, h->page_size);
        buf_fini(&many.rows);
    }
    h->page_size = 0;
    buf_fini(&one.rows);
}

static void test_rows_read_in_batches_equal_rows_read_one_by_one(void **state) {
    (void)state;
    static const char *const tables[] = {
        "CREATE TABLE up (p int, c int, z text, a int, PRIMARY KEY (p, c))",
        "CREATE TABLE down (p int, c int, z text, a int, PRIMARY KEY (p, c)) WITH CLUSTERING ORDER BY (c DESC)",
        "CREATE TABLE rich (p int, c int, z text, a int, s int STATIC, l list<int>, PRIMARY KEY (p, c)) "
        "WITH default_time_to_live = 5000",
        NULL};
    static const char *const reads[] = {"SELECT * FROM %s WHERE p = 1",
                                        "SELECT c, a, z FROM %s WHERE p = 1",
                                        "SELECT z FROM %s WHERE p = 1 AND c > 3 AND c < 52",
                                        "SELECT a FROM %s WHERE p = 1 ORDER BY c ASC",
                                        "SELECT c, a FROM %s WHERE p = 1 LIMIT 29",
                                        "SELECT c, a FROM %s WHERE p = 1 AND a < -20 ALLOW FILTERING",
                                        "SELECT c + 1, a FROM %s WHERE p = 1",
                                        "SELECT * FROM %s WHERE p IN (0, 1, 8)",
                                        "SELECT p, c FROM %s PER PARTITION LIMIT 5",
                                        "SELECT * FROM %s"};
    for (enum tally_mode mode = MODE_KEYSPACES; mode <= MODE_CASSANDRA; mode++) {
        struct harness *h = harness_new(mode, tables);
        for (const char *const *t = (const char *const[]){"up", "down", "rich", NULL}; *t; t++) {
            load_batches(h, *t);
            for (size_t i = 0; i < ARRAY_LEN(reads); i++) {
                char cql[128];
                snprintf(cql, sizeof(cql), reads[i], *t);
                compare_batches(h, cql);
            }
        }
        void *opened = h;
        assert_int_equal(harness_teardown(&opened), 0);
    }
}

static void test_a_serial_read_waits_until_what_it_saw_is_durable(void **state) {
    struct harness *h = *state;
    static const uint16_t levels[] = {CL_SERIAL, CL_LOCAL_SERIAL, CL_QUORUM};
    fill(h);
    for (size_t i = 0; i < ARRAY_LEN(levels); i++) {
        h->consistency = levels[i];
        bool serial = levels[i] != CL_QUORUM;
        assert_int_equal(harness_run(h, "SELECT v FROM t WHERE k = 1 AND c = 2 AND d = 1", 0, NULL),
                         serial ? CQL_COMMIT : CQL_DONE);
        assert_string_equal((const char *)h->rows.p, "20");
        assert_int_equal(h->commit_seq != 0, serial);
        assert_int_equal(harness_run(h, "SELECT cluster_name FROM system.local", 0, NULL), CQL_DONE);
    }
}

static void test_select_filters(void **state) {
    struct harness *h = *state;
    fill(h);
    assert_rows(h, "SELECT c, d FROM t WHERE k = 1 AND v > 10 AND v < 40 ALLOW FILTERING", "2,1;2,2");
    assert_rows(h, "SELECT c FROM t WHERE m CONTAINS KEY 'a' ALLOW FILTERING", "2");
    assert_rows(h, "SELECT c FROM t WHERE m['b'] = 2 ALLOW FILTERING", "2");
    assert_rows(h, "SELECT c FROM t WHERE l CONTAINS 1 ALLOW FILTERING", "2");
    assert_rows(h, "SELECT k, c, d FROM t WHERE d = 1 AND c > 1 ALLOW FILTERING", "1,2,1;1,3,1");
    assert_rows(h, "SELECT k, s FROM t WHERE s = 55 ALLOW FILTERING", "5,55");
}

static void test_select_projects(void **state) {
    struct harness *h = *state;
    fill(h);
    assert_rows(h, "SELECT v + 1, -v, m['a'], token(k), cast(v AS text) FROM t WHERE k = 1 AND c = 2 AND d = 1",
                "21,-20,1,-4069959284402364209,20");
    assert_rows(h, "SELECT JSON k, v AS \"V\" FROM t WHERE k = 2", "{\"k\": 2, \"\\\"V\\\"\": 50}");
    assert_rows(h, "SELECT m, l FROM t WHERE k = 1 AND c = 2 AND d = 1", "{'a': 1, 'b': 2},[3, 1, 2]");
    run_ok(h, "INSERT INTO t (k, c, d, v) VALUES (7, 1, 1, 1) USING TIMESTAMP 123 AND TTL 100");
    assert_rows(h, "SELECT writetime(v), ttl(v), writetime(s) FROM t WHERE k = 7", "123,100,null");
}

static void test_select_aggregates(void **state) {
    struct harness *h = *state;
    fill(h);
    assert_rows(h, "SELECT count(*), count(v), min(v), max(v), sum(v), avg(v) FROM t", "6,5,10,50,150,30");
    assert_rows(h, "SELECT k, count(*) FROM t GROUP BY k", "5,1;1,4;2,1");
    assert_rows(h, "SELECT c, sum(v) FROM t WHERE k = 1 GROUP BY c", "1,10;2,50;3,40");
    assert_rows(h, "SELECT sum(v), max(v), count(*) FROM t WHERE k = 99", "0,null,0");
}

static void test_select_shows_the_write_time_of_a_groups_first_row(void **state) {
    struct harness *h = *state;
    run_ok(h, "INSERT INTO t (k, c, d, v) VALUES (1, 1, 1, 10) USING TIMESTAMP 101");
    run_ok(h, "INSERT INTO t (k, c, d, v) VALUES (1, 1, 2, 20) USING TIMESTAMP 102");
    run_ok(h, "INSERT INTO t (k, c, d, v) VALUES (1, 2, 1, 30) USING TIMESTAMP 103");
    assert_rows(h, "SELECT count(*), writetime(v), ttl(v) FROM t", "3,101,null");
    assert_rows(h, "SELECT v, writetime(v), ttl(v) FROM t GROUP BY k, c", "10,101,null;30,103,null");
    assert_rows(h, "SELECT writetime(v) + 1, max(writetime(v)), max(v) FROM t WHERE k = 1 GROUP BY k, c",
                "102,102,20;104,103,30");
    assert_rows(h, "SELECT count(*), writetime(v), ttl(s) FROM t WHERE k = 99", "0,null,null");
}

static void test_select_words_errors_as_cassandra_does(void **state) {
    struct harness *h = *state;
    static const char *const cases[][2] = {
#define FILTERING \
    "Cannot execute this query as it might involve data filtering and thus may have unpredictable performance. If " \
    "you " \
    "want to execute this query despite the performance unpredictability, use ALLOW FILTERING"
        {"SELECT x FROM t", "Undefined column name x in table k.t"},
        {"SELECT * FROM t WHERE k > 5", FILTERING},
        {"SELECT * FROM t WHERE c = 1", FILTERING},
        {"SELECT * FROM t WHERE k = 1 AND v = 1", FILTERING},
        {"SELECT * FROM t WHERE d = 1 AND k = 1",
         "PRIMARY KEY column \"d\" cannot be restricted as preceding column \"c\" is not restricted"},
        {"SELECT * FROM t WHERE k = 1 AND c > 1 AND d = 1",
         "Clustering column \"d\" cannot be restricted (preceding column \"c\" is restricted by a non-EQ relation)"},
        {"SELECT * FROM t WHERE k = 1 AND k = 2",
         "k cannot be restricted by more than one relation if it includes an Equal"},
        {"SELECT * FROM t WHERE k = 1 AND c > 1 AND c > 2",
         "More than one restriction was found for the start bound on c"},
        {"SELECT * FROM t WHERE k = 1 AND (d, c) > (1, 1)",
         "Clustering columns must appear in the PRIMARY KEY order in multi-column relations: (d, c) > (1, 1)"},
        {"SELECT * FROM t WHERE k = 1 AND v CONTAINS 1 ALLOW FILTERING",
         "Cannot use CONTAINS on non-collection column v"},
        {"SELECT * FROM p WHERE token(b, a) > 1",
         "The token function arguments must be in the partition key order: a, b"},
        {"SELECT * FROM t ORDER BY c",
         "ORDER BY is only supported when the partition key is restricted by an EQ or an IN."},
        {"SELECT * FROM t WHERE k = 1 ORDER BY v",
         "Order by is currently only supported on the clustered columns of the PRIMARY KEY, got v"},
        {"SELECT * FROM t WHERE k = 1 ORDER BY c DESC, d ASC", "Unsupported order by relation"},
        {"SELECT * FROM t LIMIT 0", "LIMIT must be strictly positive"},
        {"SELECT DISTINCT k, v FROM t",
         "SELECT DISTINCT queries must only request partition key columns and/or static columns (not v)"},
        {"SELECT writetime(k) FROM t", "Cannot use selection function writetime on PRIMARY KEY part k"},
        {"SELECT * FROM t WHERE k = null", "Invalid null value in condition for column k"},
        {"SELECT l[0] FROM t", "Element selection is only allowed on sets and maps, but l is a list"},
        {"CREATE INDEX ON t (v)", "CREATE INDEX is not yet supported."},
    };
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) assert_error(h, cases[i][0], cases[i][1]);
}

static void test_prepared_select_runs_by_id_until_its_columns_change(void **state) {
    struct harness *h = *state;
    fill(h);
    uint8_t id[16];
    harness_prepare(h, "SELECT v FROM t WHERE k = ? AND c = ? AND d = ?", id);
    uint8_t one[4] = {0, 0, 0, 1}, two[4] = {0, 0, 0, 2};
    struct value values[3] = {value_of(one, 4), value_of(two, 4), value_of(two, 4)};
    assert_int_equal(harness_execute(h, id, 3, values), CQL_DONE);
    assert_string_equal((const char *)h->rows.p, "30");
    run_ok(h, "ALTER TABLE t ADD w int");
    assert_int_equal(harness_execute(h, id, 3, values), CQL_FAILED);
    assert_int_equal(h->err.code, ERR_UNPREPARED);
    harness_prepare(h, "SELECT v FROM t WHERE k = ? AND c = ? AND d = ?", id);
    assert_int_equal(harness_execute(h, id, 3, values), CQL_DONE);
    assert_string_equal((const char *)h->rows.p, "30");
    assert_int_equal(harness_execute(h, id, 2, values), CQL_FAILED);
    assert_string_equal(h->err.text, "there were 3 markers(?) in CQL but 2 bound variables");
    run_ok(h, "DROP TABLE t");
    assert_int_equal(harness_execute(h, id, 3, values), CQL_FAILED);
    assert_int_equal(h->err.code, ERR_UNPREPARED);
}

static void test_select_counts_the_empty_quarters_of_a_full_scan(void **state) {
    struct harness *h = *state;
    run_ok(h, "SELECT * FROM t");
    assert_int_equal(h->cost.empty_partitions, 4);
    run_ok(h, "INSERT INTO t (k, c, d) VALUES (1, 1, 1)");
    run_ok(h, "SELECT * FROM t");
    assert_int_equal(h->cost.empty_partitions, 3);
    assert_int_equal(h->cost.reads->rows.rows, 1);
    run_ok(h, "SELECT * FROM t WHERE k = 1");
    assert_int_equal(h->cost.empty_partitions, 0);
}

static void test_select_charges_each_partition_of_an_in_apart(void **state) {
    struct harness *h = *state;
    fill(h);
    run_ok(h, "SELECT v FROM t WHERE k IN (1, 2, 3)");
    uint32_t n = 0;
    for (const struct op_read *r = h->cost.reads; r; r = r->next) n++;
    assert_int_equal(n, 3);
    assert_int_equal(h->cost.reads->rows.rows, 4);
    assert_int_equal(h->cost.reads->statics.rows, 0); /* static data is read where it is asked for */
    run_ok(h, "SELECT v, s FROM t WHERE k IN (1, 2, 3)");
    assert_int_equal(h->cost.reads->statics.rows, 1);
}

static void test_select_takes_long_clustering_keys(void **state) {
    struct harness *h = *state;
    run_ok(h, "CREATE TABLE long_keys (k int, c text, d decimal, PRIMARY KEY (k, c, d))");
    char cql[2048], expected[2048], text[1001];
    memset(text, 'x', 1000);
    text[1000] = 0;
    snprintf(cql, sizeof(cql), "INSERT INTO long_keys (k, c, d) VALUES (1, '%s', 1.500)", text);
    run_ok(h, cql);
    snprintf(expected, sizeof(expected), "1,%s,1.500", text);
    assert_rows(h, "SELECT * FROM long_keys WHERE k = 1", expected);
    snprintf(cql, sizeof(cql), "SELECT k FROM long_keys WHERE k = 1 AND c = '%s' AND d = 1.5", text);
    assert_rows(h, cql, "1");
}

static void test_select_reads_system_tables(void **state) {
    struct harness *h = *state;
    assert_rows(h, "SELECT key, release_version FROM system.local WHERE key = 'local'", "local,5.0.8");
    assert_rows(
        h, "SELECT keyspace_name, table_name FROM system_schema.tables WHERE keyspace_name = 'k' AND table_name = 't'",
        "k,t");
}

/* By id: a page goes on behind the last one. */
static void test_prepared_statements_are_listed(void **state) {
    struct harness *h = *state;
    uint8_t local[16], rows[16];
    const char *one = "SELECT cluster_name FROM system.local";
    const char *other = "SELECT v FROM t WHERE k = ? AND c = 1 AND d = 1";
    char both[200];
    harness_prepare(h, one, local);
    harness_prepare(h, other, rows);
    bool first = memcmp(local, rows, 16) < 0;
    snprintf(both, sizeof(both), "%s;%s", first ? one : other, first ? other : one);
    assert_rows(h, "SELECT query_string FROM system.prepared_statements", both);
    assert_rows(h, "SELECT logged_keyspace FROM system.prepared_statements LIMIT 1", "k");
    h->page_size = 1;
    assert_rows(h, "SELECT query_string FROM system.prepared_statements", first ? one : other);
    h->resume = true;
    assert_rows(h, "SELECT query_string FROM system.prepared_statements", first ? other : one);
}

/* Static values differ in length and bytes: plain ones, and collections that are put together. */
static void test_expired_rows_leave_each_partition_its_own_static_values(void **state) {
    struct harness *h = *state;
    char cql[400];
    run_ok(h, "CREATE TABLE statics (p int, c int, s text STATIC, l set<int> STATIC, v text, PRIMARY KEY (p, c))");
    for (int p = 0; p < 8; p++) {
        snprintf(cql, sizeof(cql), "UPDATE statics SET s = '%.*s', l = {%d} WHERE p = %d", 5 * p + 1,
                 "abcdefghijklmnopqrstuvwxyzabcdefghijklmn" + p % 3, p, p);
        run_ok(h, cql);
        snprintf(cql, sizeof(cql), "INSERT INTO statics (p, c, v) VALUES (%d, 1, 'a value of a row') USING TTL 1", p);
        run_ok(h, cql);
    }
    h->clock.now_us += 3000000;
    for (int p = 0; p < 8; p++) {
        snprintf(cql, sizeof(cql), "SELECT p, s, l FROM statics WHERE p = %d", p);
        char *own = strdup(harness_query(h, cql));
        assert_non_null(strstr(harness_query(h, "SELECT p, s, l FROM statics"), own));
        assert_non_null(strstr(harness_query(h, "SELECT DISTINCT p, s, l FROM statics"), own));
        assert_non_null(strstr(harness_query(h, "SELECT p, s, l FROM statics WHERE p < 100 ALLOW FILTERING"), own));
        free(own);
    }
}

/* A page that ends among expired rows, or before a group, says that the static row is not given yet. */
static void test_a_group_of_a_static_row_comes_behind_a_page_that_ends_before_it(void **state) {
    struct harness *h = *state;
    run_ok(h, "CREATE TABLE statics (p int, c int, s int STATIC, PRIMARY KEY (p, c))");
    run_ok(h, "UPDATE statics SET s = 10 WHERE p = 1");
    run_ok(h, "UPDATE statics SET s = 20 WHERE p = 2");
    run_ok(h, "INSERT INTO statics (p, c) VALUES (1, 1) USING TTL 1");
    run_ok(h, "INSERT INTO statics (p, c) VALUES (2, 1) USING TTL 1");
    h->clock.now_us += 3000000;
    assert_rows(h, "SELECT p, max(s) FROM statics GROUP BY p", "1,10;2,20");
    h->page_size = 1;
    assert_rows(h, "SELECT p, max(s) FROM statics GROUP BY p", "1,10");
    h->resume = true;
    assert_rows(h, "SELECT p, max(s) FROM statics GROUP BY p", "2,20");
}

static void test_select_shows_nothing_of_the_row_before(void **state) {
    struct harness *h = *state;
    run_ok(h, "CREATE TABLE sparse (k int, c int, a int, b int, PRIMARY KEY (k, c))");
    run_ok(h, "INSERT INTO sparse (k, c, a, b) VALUES (1, 1, 10, 20)");
    run_ok(h, "INSERT INTO sparse (k, c, a) VALUES (1, 2, 11)");
    run_ok(h, "INSERT INTO sparse (k, c) VALUES (1, 3)");
    run_ok(h, "INSERT INTO sparse (k, c, a, b) VALUES (1, 4, 12, 21)");
    assert_rows(h, "SELECT c, a, b FROM sparse WHERE k = 1", "1,10,20;2,11,null;3,null,null;4,12,21");
    run_ok(h, "ALTER TABLE sparse ADD d int");
    run_ok(h, "INSERT INTO sparse (k, c, a, d) VALUES (1, 0, 9, 30)");
    assert_rows(h, "SELECT * FROM sparse WHERE k = 1",
                "1,0,9,null,30;1,1,10,20,null;1,2,11,null,null;1,3,null,null,null;1,4,12,21,null");
    assert_int_equal(h->cost.reads->rows.bytes, 5 * (100 + (4 + 3) + (4 + 4)) + 7 * 4);
}

/* Casts within casts around a long text are not compiled once for each of them. */
static void test_select_refuses_a_name_that_is_too_long(void **state) {
    struct harness *h = *state;
    struct buf s;
    buf_init(&s, 0);
    for (int casts = 0; casts <= 64; casts += 64) {
        for (int alias = 0; alias < 2; alias++) {
            buf_clear(&s, 0);
            buf_put_str(&s, "SELECT ");
            for (int i = 0; i < casts; i++) buf_put_str(&s, "CAST(");
            buf_put_str(&s, "textAsBlob('");
            for (int i = 0; i < 70000; i++) buf_u8(&s, 'x');
            buf_put_str(&s, "')");
            for (int i = 0; i < casts; i++) buf_put_str(&s, " AS blob)");
            buf_put_str(&s, alias ? " AS x FROM t WHERE k = 1 AND c = 1 AND d = 1"
                                  : " FROM t WHERE k = 1 AND c = 1 AND d = 1");
            buf_u8(&s, 0);
            if (alias) run_ok(h, (char *)s.p);
            else
                assert_error(h, (char *)s.p,
                             "The name of what is selected would be longer than 65535 bytes: name it with AS");
        }
    }
    buf_fini(&s);
}

int main(void) {
#define T(name) cmocka_unit_test_setup_teardown(name, setup, harness_teardown)
    const struct CMUnitTest tests[] = {
        T(test_select_finds_a_row_by_its_key),
        T(test_select_slices_in_both_orders),
        T(test_select_tuples_over_columns_of_mixed_order),
        T(test_select_in_gives_partitions_in_order_of_their_values),
        T(test_select_scans_in_token_order),
        T(test_select_pages_resume_exactly),
        T(test_select_limit_counts_over_pages),
        T(test_select_refuses_a_foreign_paging_state),
        T(test_a_paging_state_goes_on_however_its_statement_is_written),
        T(test_a_paging_state_of_other_rows_is_refused),
        T(test_pages_go_on_after_a_truncate),
        T(test_a_long_read_runs_in_parts_and_gives_the_same_rows),
        T(test_a_long_read_that_nobody_waits_for_ends_between_two_parts),
        T(test_a_large_collection_costs_nothing_where_it_is_not_selected),
        T(test_a_point_read_with_statics_looks_at_its_partition_once),
        T(test_expired_rows_leave_each_partition_its_own_static_values),
        T(test_a_group_of_a_static_row_comes_behind_a_page_that_ends_before_it),
        T(test_a_read_says_whose_it_is),
        cmocka_unit_test(test_rows_read_in_batches_equal_rows_read_one_by_one),
        T(test_a_serial_read_waits_until_what_it_saw_is_durable),
        T(test_select_shows_nothing_of_the_row_before),
        T(test_select_refuses_a_name_that_is_too_long),
        T(test_select_filters),
        T(test_select_projects),
        T(test_select_aggregates),
        T(test_select_shows_the_write_time_of_a_groups_first_row),
        T(test_select_words_errors_as_cassandra_does),
        T(test_prepared_select_runs_by_id_until_its_columns_change),
        T(test_prepared_statements_are_listed),
        T(test_select_counts_the_empty_quarters_of_a_full_scan),
        T(test_select_charges_each_partition_of_an_in_apart),
        T(test_select_takes_long_clustering_keys),
        T(test_select_reads_system_tables),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
