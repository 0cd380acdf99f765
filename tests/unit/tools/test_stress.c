/* Distributions against their exact shares, retries against the published formula, plans that are wrong. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>

#include <cmocka.h>

#include <math.h>
#include <stdio.h>

#include "tools/tally/stress/run.h"

enum { SAMPLES = 200000 };

static struct dist dist_of(const char *text) {
    struct dist d;
    struct err e = {0};
    assert_int_equal(dist_parse(slice_str(text), &d, &e), 0);
    return d;
}

/* Each of 1..n as often as k^-s says, within five standard deviations. */
static void test_zipf_has_its_shares(void **state) {
    (void)state;
    enum { N = 50 };
    struct dist d = dist_of("zipf(1..50, 1.3)");
    struct chance r = {.state = 42};
    uint64_t counts[N] = {0};
    double sum = 0;
    for (int k = 1; k <= N; k++) sum += pow(k, -1.3);
    for (int i = 0; i < SAMPLES; i++) {
        int64_t x = dist_sample(&d, &r, &(struct dist_moment){0});
        assert_true(x >= 1 && x <= N);
        counts[x - 1]++;
    }
    for (int k = 1; k <= N; k++) {
        double p = pow(k, -1.3) / sum, mean = p * SAMPLES;
        assert_true(fabs((double)counts[k - 1] - mean) < 5 * sqrt(mean * (1 - p)) + 1);
    }
    dist_fini(&d);
}

static void test_uniform_and_normal_have_their_moments(void **state) {
    (void)state;
    struct dist u = dist_of("uniform(-10..9)"), n = dist_of("normal(-1000..1000, 20, 10)");
    struct chance r = {.state = 7};
    double sum_u = 0, sum = 0, squares = 0;
    for (int i = 0; i < SAMPLES; i++) {
        double x = (double)dist_sample(&n, &r, &(struct dist_moment){0});
        sum_u += (double)dist_sample(&u, &r, &(struct dist_moment){0});
        sum += x, squares += x * x;
    }
    assert_true(fabs(sum_u / SAMPLES + 0.5) < 0.1);
    assert_true(fabs(sum / SAMPLES - 20) < 0.2);
    assert_true(fabs(sqrt(squares / SAMPLES - pow(sum / SAMPLES, 2)) - 10) < 0.2);
}

static void test_sequences_go_round_and_the_seed_decides(void **state) {
    (void)state;
    struct dist s = dist_of("sequence(5..7)"), on = dist_of("sequence(100..)"), text = dist_of("text(3..9)");
    struct chance a = {.state = 1}, b = {.state = 1};
    struct buf x, y;
    struct err e = {0};
    buf_init(&x, 0);
    buf_init(&y, 0);
    for (uint64_t i = 0; i < 9; i++) {
        const struct dist_moment m = {.sequence = i};
        assert_int_equal(dist_sample(&s, &a, &m), 5 + i % 3);
        assert_int_equal(dist_sample(&on, &b, &m), 100 + i);
        assert_int_equal(dist_put(&text, cql_type_scalar(CQL_TEXT), &a, &m, &x, &e), 0);
        assert_int_equal(dist_put(&text, cql_type_scalar(CQL_TEXT), &b, &m, &y, &e), 0);
    }
    assert_true(slice_eq(buf_slice(&x), buf_slice(&y)));
    buf_fini(&x);
    buf_fini(&y);
}

/* What is made of a number is a value of the type, whichever takes one. */
static void test_values_are_of_their_types(void **state) {
    (void)state;
    static const enum cql_type_id ids[] = {CQL_ASCII,    CQL_BIGINT, CQL_BLOB,     CQL_BOOLEAN,   CQL_COUNTER,
                                           CQL_DOUBLE,   CQL_FLOAT,  CQL_INT,      CQL_TIMESTAMP, CQL_UUID,
                                           CQL_TEXT,     CQL_VARINT, CQL_TIMEUUID, CQL_DATE,      CQL_TIME,
                                           CQL_SMALLINT, CQL_TINYINT};
    struct dist now = dist_of("now"), u = dist_of("uniform(0..100)");
    struct chance r = {.state = 3};
    const struct dist_moment m = {.wall_ms = 1800000000000};
    struct err e = {0};
    for (size_t i = 0; i < ARRAY_LEN(ids); i++) {
        const struct cql_type *t = cql_type_scalar(ids[i]);
        struct buf b;
        buf_init(&b, 0);
        for (int k = 0; k < 2; k++) {
            buf_clear(&b, SIZE_MAX);
            assert_int_equal(dist_put(k ? &now : &u, t, &r, &m, &b, &e), 0);
            assert_int_equal(load_u32(b.p), b.n - 4);
            assert_int_equal(cql_value_validate(t, slice_of(b.p + 4, b.n - 4), &e), 0);
        }
        buf_fini(&b);
    }
    struct buf b;
    buf_init(&b, 0);
    assert_int_equal(dist_put(&u, cql_type_scalar(CQL_DURATION), &r, &m, &b, &e), -1);
    assert_int_equal(e.code, ERR_CONFIG);
    buf_fini(&b);
}

static void test_wrong_distributions_are_told(void **state) {
    (void)state;
    static const char *const wrong[] = {"",
                                        "uniform",
                                        "uniform(1..",
                                        "uniform(2..1)",
                                        "uniform(1..2) x",
                                        "zipf(1..5)",
                                        "zipf(1..5, 0)",
                                        "zipf(0..99999999, 1)",
                                        "text(-1..3)",
                                        "text(99999999999)",
                                        "normal(1..2, 3)",
                                        "sequence()",
                                        "5x",
                                        "gauss(1..2)"};
    for (size_t i = 0; i < ARRAY_LEN(wrong); i++) {
        struct dist d;
        struct err e = {0};
        assert_int_equal(dist_parse(slice_str(wrong[i]), &d, &e), -1);
        assert_int_equal(e.code, ERR_CONFIG);
    }
}

/* y = min(zmin + rand(0.8 z, 1.2 z) x (2^x - 1), zmax). */
static void test_exponential_retries_follow_the_published_formula(void **state) {
    (void)state;
    struct retry r;
    struct err e = {0};
    struct backoff_random jitter = {.state = 5};
    assert_int_equal(retry_parse("exponential:100,1000,30000,9", &r, &e), 0);
    for (uint32_t x = 1; x <= 9; x++) {
        double low = 100 + 800 * (pow(2, x) - 1), high = 100 + 1200 * (pow(2, x) - 1), least = 1e18, most = 0;
        for (int i = 0; i < 20000; i++) {
            double y = (double)retry_wait(&r, &jitter, x);
            assert_true(y >= fmin(low, 30000) && y <= fmin(high, 30000));
            least = fmin(least, y), most = fmax(most, y);
        }
        if (high > 30000) continue;
        assert_true(least < low + (high - low) * 0.02 && most > high - (high - low) * 0.02); /* all of the range */
    }
    assert_true(retry_wait(&r, &jitter, 10) < 0);
    assert_int_equal(retry_parse("exponential", &r, &e), 0);
    assert_true(r.minimum == 3000 && r.delta == 30000 && r.maximum == 90000 && r.tries == 5);
}

static void test_fixed_retries_and_none(void **state) {
    (void)state;
    static const char *const wrong[] = {
        "fixed", "fixed:", "fixed:x", "fixed:1,2,3", "exponential:1", "exponential:1,2", "exponential:1,2,3,4,5",
        "never", ""};
    struct retry r;
    struct err e = {0};
    struct backoff_random jitter = {.state = 5};
    assert_int_equal(retry_parse("fixed:250,3", &r, &e), 0);
    for (uint32_t x = 1; x <= 4; x++) assert_int_equal(retry_wait(&r, &jitter, x), x <= 3 ? 250 : -1);
    assert_int_equal(retry_parse("none", &r, &e), 0);
    assert_true(retry_wait(&r, &jitter, 1) < 0);
    for (size_t i = 0; i < ARRAY_LEN(wrong); i++) {
        struct err why = {0};
        assert_int_equal(retry_parse(wrong[i], &r, &why), -1);
    }
}

static void test_wrong_plans_name_file_line_and_reason(void **state) {
    (void)state;
    static const struct {
        const char *text, *words;
    } wrong[] = {
        {"", "p.yaml:1: the file is empty"},
        {"statements: [", "p.yaml:2: this is no YAML"},
        {"statements:\n  - cql: SELECT 1\n    wait: 3\n",
         "p.yaml:3: unknown key 'wait' of a statement: there are cql, consistency, page_size, values, weight"},
        {"statements:\n  - weight: 1\n", "p.yaml:2: a statement needs cql"},
        {"statements:\n  - cql: x\n    cql: y\n", "p.yaml:3: 'cql' is there twice"},
        {"statements:\n  - cql: x\n    weight: 0.5\n", "p.yaml:3: '0.5' is no whole number from 0 to 1000000"},
        {"statements:\n  cql: x\n", "p.yaml:2: statements is a list"},
        {"statements:\n  - cql: x\n    values: [foo]\n", "p.yaml:3: 'foo' is no distribution"},
        {"statements:\n  - cql: x\n    weight: -1\n", "p.yaml:3: '-1' is no whole number from 0 to 1000000"},
        {"statements:\n  - cql: x\n    consistency: SOME\n", "p.yaml:3: there is no such consistency"},
        {"rate: 5\n", "p.yaml:1: statements are needed"},
        {"statements: [{cql: x}]\nload: {cql: y}\n", "p.yaml:2: load needs rows"},
        {"statements: [{cql: x}]\nburst: {every: 5}\n", "p.yaml:2: burst needs every, for and times"},
    };
    for (size_t i = 0; i < ARRAY_LEN(wrong); i++) {
        struct plan p;
        struct err e = {0};
        assert_int_equal(plan_parse(&p, "p.yaml", slice_str(wrong[i].text), &e), -1);
        if (!strstr(e.text, wrong[i].words)) fail_msg("'%s' instead of '%s'", e.text, wrong[i].words);
    }
}

static void test_bursts_come_and_go(void **state) {
    (void)state;
    struct plan p;
    struct err e = {0};
    assert_int_equal(plan_parse(&p, "p",
                                slice_str("statements: [{cql: x}]\nrate: 100\nburst: {every: 10, for: 2, times: 5}\n"),
                                &e),
                     0);
    static const struct {
        double at, rate;
    } moments[] = {{0, 500}, {1.9, 500}, {2.1, 100}, {9.9, 100}, {10.1, 500}, {32.5, 100}, {31.5, 500}};
    for (size_t i = 0; i < ARRAY_LEN(moments); i++) assert_true(plan_rate_at(&p, moments[i].at) == moments[i].rate);
    plan_fini(&p);
}

static void test_built_in_profiles_are_sound(void **state) {
    (void)state;
    static const char *const names[] = {"uniform",     "zipf", "single",       "append",
                                        "time_series", "wide", "mixed_static", "burst"};
    for (size_t i = 0; i < ARRAY_LEN(names); i++) {
        struct plan p;
        struct err e = {0};
        assert_non_null(plan_profile(names[i]));
        if (plan_parse(&p, names[i], slice_str(plan_profile(names[i])), &e)) fail_msg("%s", e.text);
        plan_fini(&p);
    }
    assert_null(plan_profile("none"));
}

/* A partition's peak is of one second, not of two halves; what is throttled is no entity. */
static void test_peaks_are_of_one_second(void **state) {
    (void)state;
    struct score s;
    const struct score_partition *hot[SCORE_HOTTEST];
    assert_int_equal(score_init(&s, 1), 0);
    for (uint32_t i = 0; i < 300; i++) {
        struct score_event v = {.second = i / 100,
                                .partition = 1 + i % 3 * 2,
                                .charge = 2,
                                .entities = i < 100 ? 3 : -1,
                                .result = i % 10 ? SCORE_OK : SCORE_THROTTLED};
        if (v.result != SCORE_OK) v.charge = 0;
        score_add(&s, &v);
    }
    score_end(&s);
    assert_int_equal(s.n_seconds, 3);
    assert_int_equal(s.sums.requests, 300);
    assert_int_equal(s.sums.throttled, 30);
    assert_int_equal(score_hottest(&s, hot), 3);
    for (int i = 0; i < 3; i++) {
        assert_true(hot[i]->entities_peak >= 3 * 29 && hot[i]->entities_peak <= 3 * 31);
        assert_true(hot[i]->write_peak >= 2 * 29 && hot[i]->write_peak <= 2 * 31);
        assert_true(hot[i]->sums.requests == 100);
    }
    score_fini(&s);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_zipf_has_its_shares),
        cmocka_unit_test(test_uniform_and_normal_have_their_moments),
        cmocka_unit_test(test_sequences_go_round_and_the_seed_decides),
        cmocka_unit_test(test_values_are_of_their_types),
        cmocka_unit_test(test_wrong_distributions_are_told),
        cmocka_unit_test(test_exponential_retries_follow_the_published_formula),
        cmocka_unit_test(test_fixed_retries_and_none),
        cmocka_unit_test(test_wrong_plans_name_file_line_and_reason),
        cmocka_unit_test(test_bursts_come_and_go),
        cmocka_unit_test(test_built_in_profiles_are_sound),
        cmocka_unit_test(test_peaks_are_of_one_second),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
