/* Every allocation of a request fails once: the answer is right, or a clean ERR_SERVER, and the
 * next request works. Linked with --wrap, so that all of malloc, calloc and realloc in the
 * project's own code count. */
#include "harness.h"

#include <stdio.h>
#include <stdlib.h>

enum { TRIES_MAX = 3000 };

static _Thread_local int64_t countdown; /* this thread's allocations only: others run beside the test */
static _Thread_local bool hit;

static bool must_fail(void) {
    if (countdown <= 0 || --countdown) return false;
    return hit = true;
}

void *__real_malloc(size_t n);
void *__real_calloc(size_t n, size_t size);
void *__real_realloc(void *p, size_t n);
void *__wrap_malloc(size_t n);
void *__wrap_calloc(size_t n, size_t size);
void *__wrap_realloc(void *p, size_t n);
static bool sure_commit; /* what the store does with its memory is not asked */
int __real_eng_batch_commit(struct eng_batch *b, uint64_t *seq, struct err *e);
int __wrap_eng_batch_commit(struct eng_batch *b, uint64_t *seq, struct err *e);
int __wrap_eng_batch_commit(struct eng_batch *b, uint64_t *seq, struct err *e) {
    if (sure_commit && !hit) countdown = 0;
    return __real_eng_batch_commit(b, seq, e);
}

void *__wrap_malloc(size_t n) { return must_fail() ? NULL : __real_malloc(n); }
void *__wrap_calloc(size_t n, size_t size) { return must_fail() ? NULL : __real_calloc(n, size); }
void *__wrap_realloc(void *p, size_t n) { return must_fail() ? NULL : __real_realloc(p, n); }

static void run_clean(struct harness *h, const char *cql) {
    if (harness_run(h, cql, 0, NULL) == CQL_FAILED) fail_msg("%s: %s", cql, h->err.text);
}

static int setup(void **state) {
    static const char *const tables[] = {
        "CREATE TABLE t (pk int, ck int, v text, s int static, l list<int>, m map<text, int>, fs frozen<set<int>>, d "
        "decimal, PRIMARY KEY (pk, ck))",
        "CREATE TABLE n (pk int PRIMARY KEY, c counter)",
        "INSERT INTO t (pk, ck, v, s, l, m, fs, d) VALUES (1, 1, 'one', 7, [1, 2], {'a': 1}, {3, 4}, 1.50)",
        "INSERT INTO t (pk, ck, v) VALUES (1, 2, 'two')",
        "INSERT INTO t (pk, ck, v) VALUES (2, 1, 'three')",
        "DELETE FROM t WHERE pk = 2 AND ck > 5",
        NULL,
    };
    *state = harness_new(MODE_CASSANDRA, tables);
    return 0;
}

/* Until a try meets no failure; undo (or NULL) comes after each. */
static void fail_each(struct harness *h, const char *cql, const struct cql_request *form, const char *undo) {
    for (int n = 1; n <= TRIES_MAX; n++) {
        /* A warm arena would ask for nothing. */
        arena_fini(&h->arena);
        arena_init(&h->arena, 64, 0);
        hit = false;
        countdown = n;
        enum cql_outcome outcome = harness_request(h, form);
        countdown = 0;
        bool failed = outcome == CQL_FAILED, was_hit = hit;
        if (failed && !was_hit) fail_msg("%s: %s", cql, h->err.text);
        if (failed && (!h->err.set || h->err.code != ERR_SERVER))
            fail_msg("%s: allocation %d: %04x %s", cql, n, h->err.code, h->err.text);
        if (!failed && h->result.kind == RESULT_PREPARED) cql_prepared_unref(h->result.prepared);
        if (undo) run_clean(h, undo);
        if (!was_hit) return;
    }
    fail_msg("%s: no end", cql);
}

static void fail_query(struct harness *h, const char *cql, const char *undo) {
    struct cql_request r = {.kind = REQUEST_QUERY, .query = slice_str(cql)};
    fail_each(h, cql, &r, undo);
}

static void test_reads_survive_each_failed_allocation(void **state) {
    static const char *const reads[] = {
        "SELECT * FROM t WHERE pk = 1 AND ck = 1",
        "SELECT * FROM t WHERE pk = 1 ORDER BY ck DESC LIMIT 1",
        "SELECT * FROM t",
        "SELECT DISTINCT pk, s FROM t",
        "SELECT count(*), max(v), sum(ck) FROM t GROUP BY pk",
        "SELECT JSON * FROM t",
        "SELECT v AS x, writetime(v), ttl(v), cast(ck AS text), token(pk), toJson(m), ck + 1 FROM t WHERE pk IN (1, 2)",
        "SELECT (blob)v, (varint)max(ck), min([1]), sum((double)1.5), toJson((1, 'a')) FROM t WHERE pk = 1",
        "SELECT * FROM t WHERE pk IN (1, 2) ORDER BY ck",
        "SELECT * FROM t WHERE v = 'one' AND ck > 0 ALLOW FILTERING",
        "SELECT * FROM t WHERE l CONTAINS 1 AND m['a'] = 1 ALLOW FILTERING",
        "SELECT * FROM t WHERE token(pk) > -5 AND token(pk) < 5",
        "SELECT m['a'], l FROM t WHERE pk = 1 AND (ck) >= (1) PER PARTITION LIMIT 1",
        "SELECT * FROM system.local",
        "SELECT * FROM system_schema.columns WHERE keyspace_name = 'k'",
        "DESCRIBE TABLE k.t",
        "DESCRIBE KEYSPACE k",
    };
    struct harness *h = *state;
    for (size_t i = 0; i < ARRAY_LEN(reads); i++) {
        char *before = test_malloc(1 << 16);
        snprintf(before, 1 << 16, "%s", harness_query(h, reads[i]));
        fail_query(h, reads[i], NULL);
        assert_string_equal(harness_query(h, reads[i]), before);
        test_free(before);
    }
}

static void test_writes_survive_each_failed_allocation(void **state) {
    static const char *const writes[] = {
        "INSERT INTO t (pk, ck, v, s, l, m, fs, d) VALUES (3, 1, 'x', 1, [1, 2], {'k': 5}, {9, 8}, 3.14) USING TTL 100 "
        "AND TIMESTAMP 5",
        "INSERT INTO t JSON '{\"pk\": 3, \"ck\": 2, \"l\": [1, 2], \"m\": {\"z\": 1}, \"d\": \"1.0\"}'",
        "UPDATE t SET v = 'y', l = l + [3], m['q'] = 4 WHERE pk = 3 AND ck IN (1, 2)",
        "UPDATE t SET l[0] = 9 WHERE pk = 1 AND ck = 1",
        "UPDATE t SET l = l - [77] WHERE pk = 1 AND ck = 1",
        "UPDATE t SET v = 'z' WHERE pk = 3 AND ck = 1 IF v = 'nothing' AND m['q'] = 1",
        "INSERT INTO t (pk, ck) VALUES (1, 1) IF NOT EXISTS",
        "DELETE FROM t WHERE pk = 3 AND ck > 5 AND ck <= 9",
        "DELETE l[0], m['q'] FROM t WHERE pk = 3 AND ck = 1",
        "DELETE FROM t WHERE pk = 3",
        "UPDATE n SET c = c + 1 WHERE pk = 1",
        "BEGIN BATCH INSERT INTO t (pk, ck, v) VALUES (3, 1, 'a'); UPDATE t SET s = 5 WHERE pk = 3; DELETE FROM t "
        "WHERE pk = 4; APPLY BATCH",
        "BEGIN BATCH INSERT INTO t (pk, ck, v) VALUES (5, 1, 'a') IF NOT EXISTS; UPDATE t SET s = 5 WHERE pk = 5; "
        "APPLY BATCH",
    };
    struct harness *h = *state;
    for (size_t i = 0; i < ARRAY_LEN(writes); i++) fail_query(h, writes[i], NULL);
    assert_rows(h, "SELECT ck, v FROM t WHERE pk = 1", "1,one;2,two");
}

/* A batch is whole or not there. */
static void test_failed_allocation_leaves_no_half_of_a_batch(void **state) {
    static const char batch[] = "BEGIN BATCH INSERT INTO t (pk, ck, v) VALUES (8, 1, 'a'); INSERT INTO t (pk, ck, v) "
                                "VALUES (8, 2, 'b'); APPLY BATCH";
    struct harness *h = *state;
    bool done = false;
    sure_commit = true;
    for (int n = 1; n <= TRIES_MAX && !done; n++) {
        run_ok(h, "DELETE FROM t WHERE pk = 8");
        h->clock.now_us += 1000000;
        hit = false;
        countdown = n;
        bool failed = harness_run(h, batch, 0, NULL) == CQL_FAILED;
        countdown = 0;
        done = !hit;
        assert_rows(h, "SELECT ck FROM t WHERE pk = 8", failed ? "" : "1;2");
        h->clock.now_us += 1000000;
    }
    sure_commit = false;
    assert_true(done);
}

static void test_schema_changes_survive_each_failed_allocation(void **state) {
    struct harness *h = *state;
    fail_query(
        h, "CREATE TABLE u (pk int PRIMARY KEY, v frozen<map<int, text>>) WITH comment = 'c' AND gc_grace_seconds = 5",
        "DROP TABLE IF EXISTS u");
    fail_query(h, "ALTER TABLE t ADD IF NOT EXISTS (x1 int, x2 list<text>)", NULL);
    fail_query(h, "CREATE KEYSPACE k2 WITH replication = {'class': 'SimpleStrategy', 'replication_factor': 1}",
               "DROP KEYSPACE IF EXISTS k2");
    fail_query(h, "DROP TABLE IF EXISTS u", "CREATE TABLE IF NOT EXISTS u (pk int PRIMARY KEY)");
    fail_query(h, "USE k", NULL);
    assert_rows(h, "SELECT ck, v FROM t WHERE pk = 1", "1,one;2,two");
}

static void test_prepared_statements_survive_each_failed_allocation(void **state) {
    static const char *const statements[] = {
        "SELECT * FROM t WHERE pk = ? AND ck = 1",
        "INSERT INTO t (pk, ck, v) VALUES (?, 1, 'p')",
        "UPDATE t SET v = 'q' WHERE pk = ? AND ck = 1 IF EXISTS",
    };
    static const uint8_t one[] = {0, 0, 0, 1};
    struct harness *h = *state;
    const struct value values[] = {value_of(one, sizeof(one))};
    for (size_t i = 0; i < ARRAY_LEN(statements); i++) {
        uint8_t id[16];
        struct cql_request prepare = {.kind = REQUEST_PREPARE, .query = slice_str(statements[i])};
        fail_each(h, statements[i], &prepare, NULL);
        harness_prepare(h, statements[i], id);
        struct cql_request execute = {.kind = REQUEST_EXECUTE,
                                      .prepared_id = slice_of(id, 16),
                                      .params = {.n_values = 1, .values = values}};
        fail_each(h, statements[i], &execute, NULL);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_reads_survive_each_failed_allocation, setup, harness_teardown),
        cmocka_unit_test_setup_teardown(test_writes_survive_each_failed_allocation, setup, harness_teardown),
        cmocka_unit_test_setup_teardown(test_failed_allocation_leaves_no_half_of_a_batch, setup, harness_teardown),
        cmocka_unit_test_setup_teardown(test_schema_changes_survive_each_failed_allocation, setup, harness_teardown),
        cmocka_unit_test_setup_teardown(test_prepared_statements_survive_each_failed_allocation, setup,
                                        harness_teardown),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
