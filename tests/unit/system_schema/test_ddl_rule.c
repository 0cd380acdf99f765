/* Which delay a statement gets, and the distributions that delays come from. */
#include "system_schema/ddl/ddl_rule.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

#include <cmocka.h>

static int set(struct ddl_rules *r, const char *statement, const char *keyspace, const char *name, const char *delay,
               const char *failure) {
    struct err e = {0};
    const struct ddl_subject of = {statement, keyspace, name};
    struct ddl_rule rule;
    return ddl_rules_prepare(r, &of, delay, failure, &rule, &e) || ddl_rules_put(r, &rule, &e) ? -1 : 0;
}

static int64_t draw(struct ddl_rules *r, const char *statement, const char *keyspace, const char *name) {
    return ddl_rules_draw(r, &(struct ddl_subject){statement, keyspace, name});
}

static void test_the_closest_rule_counts(void **state) {
    (void)state;
    struct ddl_rules r;
    struct err e = {0};
    assert_int_equal(ddl_rules_init(&r, "1", " DROP TABLE * = 2;* ks = 3 ; CREATE TABLE ks.t = 4 fail no luck;", 0, &e),
                     0);
    assert_int_equal(draw(&r, "CREATE TABLE", "other", "t"), 1000);
    assert_int_equal(draw(&r, "DROP TABLE", "other", "t"), 2000);
    assert_int_equal(draw(&r, "DROP TABLE", "ks", "t"), 3000); /* a keyspace is closer than a statement */
    assert_int_equal(draw(&r, "CREATE TABLE", "ks", "t"), 4000);
    assert_string_equal(ddl_rules_failure(&r, &(struct ddl_subject){"CREATE TABLE", "ks", "t"}), "no luck");
    assert_null(ddl_rules_failure(&r, &(struct ddl_subject){"ALTER TABLE", "ks", "t"}));
    assert_int_equal(set(&r, "*", "ks", "t", NULL, "never"), 0); /* a failure only: the delay is another rule's */
    assert_int_equal(draw(&r, "ALTER TABLE", "ks", "t"), 3000);
    assert_string_equal(ddl_rules_failure(&r, &(struct ddl_subject){"ALTER TABLE", "ks", "t"}), "never");
    assert_int_equal(set(&r, "*", "ks", "t", NULL, ""), 0); /* which says nothing any more, and so is gone */
    assert_int_equal(r.n, 4);
    ddl_rules_fini(&r);
}

static void test_bad_rules_are_refused(void **state) {
    (void)state;
    static const char *const bad[] = {"CREATE TABLE ks.t",
                                      "CREATE TABLE ks.t =",
                                      "held",
                                      "TRUNCATE ks.t = held",
                                      "CREATE TABLE *.t = held",
                                      "CREATE TABLE ks. = held",
                                      "CREATE TABLE ks.t = soon",
                                      "= held",
                                      "CREATE TABLE=held"};
    for (size_t i = 0; i < ARRAY_LEN(bad); i++) {
        struct ddl_rules r;
        struct err e = {0};
        int rc = ddl_rules_init(&r, "none", bad[i], 0, &e);
        if (rc == 0) fail_msg("taken: %s", bad[i]);
        assert_int_equal(e.code, ERR_INVALID);
    }
}

static int by_size(const void *a, const void *b) {
    int64_t x = *(const int64_t *)a, y = *(const int64_t *)b;
    return (x > y) - (x < y);
}

static void test_distributions_are_what_they_say(void **state) {
    (void)state;
    enum { N = 20001 };
    static int64_t drawn[N];
    struct ddl_delay d;
    struct err e = {0};
    uint64_t random = 1;
    assert_int_equal(ddl_delay_parse("uniform(100, 300)", &d, &e), 0);
    for (int i = 0; i < N; i++) drawn[i] = ddl_delay_draw(&d, "CREATE TABLE", &random);
    qsort(drawn, N, sizeof *drawn, by_size);
    assert_true(drawn[0] >= 100000 && drawn[N - 1] <= 300000);
    assert_in_range(drawn[N / 2], 195000, 205000);
    assert_int_equal(ddl_delay_parse("lognormal(100, 0.5)", &d, &e), 0);
    for (int i = 0; i < N; i++) drawn[i] = ddl_delay_draw(&d, "CREATE TABLE", &random);
    qsort(drawn, N, sizeof *drawn, by_size);
    assert_in_range(drawn[N / 2], 97000, 103000);
    assert_in_range(drawn[N * 841 / 1000], 158000, 172000); /* one deviation above: 100 ms times e to the 0.5 */
    assert_int_equal(ddl_delay_parse("lognormal(86400000, 10)", &d, &e), 0);
    for (int i = 0; i < N; i++)
        assert_true(ddl_delay_draw(&d, "CREATE TABLE", &random) <= (int64_t)DDL_DELAY_MAX_MS * 1000);
}

static void test_a_seed_makes_the_same_sequence(void **state) {
    (void)state;
    struct ddl_rules a, b;
    struct err e = {0};
    assert_int_equal(ddl_rules_init(&a, "uniform(0, 1000000, 5)", "", 1, &e), 0);
    assert_int_equal(ddl_rules_init(&b, "uniform(0, 1000000, 5)", "", 2, &e), 0);
    for (int i = 0; i < 100; i++)
        assert_int_equal(draw(&a, "CREATE TABLE", "k", "t"), draw(&b, "DROP TABLE", "k", "u"));
    assert_int_equal(set(&a, "*", "*", "*", "uniform(0, 1000000)", NULL), 0);
    assert_int_equal(set(&b, "*", "*", "*", "uniform(0, 1000000)", NULL), 0);
    int same = 0;
    for (int i = 0; i < 100; i++) same += draw(&a, "*", "k", "t") == draw(&b, "*", "k", "t");
    assert_true(same < 3);
    ddl_rules_fini(&a);
    ddl_rules_fini(&b);
}

static void test_rules_that_are_read_again_go_on_with_their_sequences(void **state) {
    (void)state;
    static const char rules[] = "DROP TABLE * = uniform(0, 1000000, 7); CREATE TABLE * = uniform(0, 1000000, 8)";
    struct ddl_rules before, again, whole;
    struct err e = {0};
    assert_int_equal(ddl_rules_init(&before, "uniform(0, 1000000, 5)", rules, 1, &e), 0);
    assert_int_equal(ddl_rules_init(&again, "uniform(0, 1000000, 5)", rules, 1, &e), 0);
    assert_int_equal(ddl_rules_init(&whole, "uniform(0, 1000000, 5)", rules, 1, &e), 0);
    assert_int_equal(set(&again, "CREATE TABLE", "*", "*", "uniform(0, 1000000, 9)", NULL), 0);
    for (int i = 0; i < 3; i++) {
        assert_int_equal(draw(&before, "DROP TABLE", "k", "t"), draw(&whole, "DROP TABLE", "k", "t"));
        (void)draw(&before, "CREATE TABLE", "k", "t");
    }
    ddl_rules_continue(&again, &before);
    ddl_rules_fini(&before);
    assert_int_equal(set(&whole, "CREATE TABLE", "*", "*", "uniform(0, 1000000, 9)", NULL), 0);
    for (int i = 0; i < 10; i++) {
        assert_int_equal(draw(&again, "DROP TABLE", "k", "t"), draw(&whole, "DROP TABLE", "k", "t"));
        assert_int_equal(draw(&again, "CREATE TABLE", "k", "t"), draw(&whole, "CREATE TABLE", "k", "t"));
        assert_int_equal(draw(&again, "DROP TYPE", "k", "t"), draw(&whole, "DROP TYPE", "k", "t"));
    }
    ddl_rules_fini(&again);
    ddl_rules_fini(&whole);
}

static void test_realistic_is_what_the_statement_takes(void **state) {
    (void)state;
    struct ddl_delay d;
    struct err e = {0};
    uint64_t random = 1;
    assert_int_equal(ddl_delay_parse("realistic", &d, &e), 0);
    for (int i = 0; i < 1000; i++) assert_in_range(ddl_delay_draw(&d, "CREATE TABLE", &random), 10000000, 20000000);
    assert_int_equal(ddl_delay_draw(&d, "UPDATE PARTITIONER", &random), 600000000);
}

static void test_a_rule_comes_back_from_its_record(void **state) {
    (void)state;
    static const char *const rules[][5] = {{"CREATE TABLE", "ks", "t", "held", "no luck"},
                                           {"*", "*", "*", "uniform(1, 2, 3)", NULL},
                                           {"DROP TYPE", "ks", "*", NULL, "x"}};
    for (size_t i = 0; i < ARRAY_LEN(rules); i++) {
        struct ddl_rules none = {0};
        struct ddl_rule rule, back;
        struct buf b;
        struct err e = {0};
        buf_init(&b, 0);
        assert_int_equal(ddl_rules_prepare(&none, &(struct ddl_subject){rules[i][0], rules[i][1], rules[i][2]},
                                           rules[i][3], rules[i][4], &rule, &e),
                         0);
        ddl_rule_encode(&rule, &b);
        assert_int_equal(ddl_rule_decode(buf_slice(&b), &back, &e), 0);
        assert_true(back.has_delay == rule.has_delay && back.has_failure == rule.has_failure &&
                    back.begins == rule.begins);
        assert_int_equal(back.delay.kind, rule.delay.kind);
        assert_int_equal(back.delay.seed, rule.delay.seed);
        const char *const was[] = {rule.statement, rule.keyspace, rule.name, rule.delay_text, rule.failure};
        const char *const is[] = {back.statement, back.keyspace, back.name, back.delay_text, back.failure};
        for (size_t t = 0; t < ARRAY_LEN(was); t++) assert_string_equal(was[t], is[t]);
        for (size_t n = 0; n < b.n; n++) { /* cut short */
            assert_int_equal(ddl_rule_decode(slice_of(b.p, n), &back, &e), -1);
            err_clear(&e);
        }
        buf_fini(&b);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_the_closest_rule_counts),
        cmocka_unit_test(test_bad_rules_are_refused),
        cmocka_unit_test(test_distributions_are_what_they_say),
        cmocka_unit_test(test_a_seed_makes_the_same_sequence),
        cmocka_unit_test(test_rules_that_are_read_again_go_on_with_their_sequences),
        cmocka_unit_test(test_realistic_is_what_the_statement_takes),
        cmocka_unit_test(test_a_rule_comes_back_from_its_record),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
