/* Quantiles of the histogram against those of the sorted values. */
#include "tools/client/hist.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include <cmocka.h>

enum { N = 20000 };

static uint64_t next(uint64_t *seed) {
    *seed = *seed * 6364136223846793005u + 1442695040888963407u;
    return *seed >> 11;
}

static int by_value(const void *a, const void *b) {
    uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;
    return (x > y) - (x < y);
}

/* At least the exact one, and at most a bucket's width above it. */
static void check(const struct hist *h, uint64_t *values, size_t n) {
    static const double shares[] = {0, 0.5, 0.9, 0.99, 0.999};
    qsort(values, n, sizeof(*values), by_value);
    for (size_t i = 0; i < sizeof(shares) / sizeof(*shares); i++) {
        uint64_t exact = values[(size_t)(shares[i] * (double)n)], found = hist_quantile(h, shares[i]);
        assert_true(found >= exact);
        assert_true((double)found <= (double)exact * (1 + 1.0 / (1 << HIST_SUB_BITS)) + 1);
    }
    assert_int_equal(hist_quantile(h, 1), values[n - 1]);
}

static void fill(struct hist *h, uint64_t *values, size_t n, uint64_t seed, unsigned bits) {
    for (size_t i = 0; i < n; i++) {
        values[i] = next(&seed) & ((1ull << bits) - 1);
        hist_add(h, values[i]);
    }
}

static void test_quantiles_are_those_of_the_values(void **state) {
    (void)state;
    static const unsigned widths[] = {4, 6, 7, 12, 20, 33, 52};
    uint64_t *values = calloc(N, sizeof(*values));
    for (size_t w = 0; w < sizeof(widths) / sizeof(*widths); w++) {
        struct hist *h = calloc(1, sizeof(*h));
        fill(h, values, N, w + 1, widths[w]);
        check(h, values, N);
        free(h);
    }
    free(values);
}

static void test_merged_is_as_if_added_to_one(void **state) {
    (void)state;
    uint64_t *values = calloc(2 * N, sizeof(*values));
    struct hist *a = calloc(1, sizeof(*a)), *b = calloc(1, sizeof(*b));
    fill(a, values, N, 7, 20);
    fill(b, values + N, N, 8, 30);
    hist_merge(a, b);
    assert_int_equal(a->count, 2 * N);
    check(a, values, 2 * N);
    free(values);
    free(a);
    free(b);
}

static void test_mean_is_within_a_buckets_width(void **state) {
    (void)state;
    uint64_t *values = calloc(N, sizeof(*values));
    struct hist *h = calloc(1, sizeof(*h));
    fill(h, values, N, 9, 24);
    double sum = 0;
    for (size_t i = 0; i < N; i++) sum += (double)values[i];
    assert_true(hist_mean(h) >= sum / N && hist_mean(h) <= sum / N * (1 + 1.0 / (1 << HIST_SUB_BITS)) + 1);
    free(values);
    free(h);
}

static void test_empty_is_zero(void **state) {
    (void)state;
    static struct hist h;
    assert_int_equal(hist_quantile(&h, 0.99), 0);
    assert_true(hist_mean(&h) == 0);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_quantiles_are_those_of_the_values),
        cmocka_unit_test(test_merged_is_as_if_added_to_one),
        cmocka_unit_test(test_mean_is_within_a_buckets_width),
        cmocka_unit_test(test_empty_is_zero),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
