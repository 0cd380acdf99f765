/* Keys that only grow or shrink: found, and how rarely keys in random order are taken for them. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include "base/buf.h"
#include "ledger/order.h"

static uint64_t random_next(uint64_t *state) {
    *state ^= *state << 13;
    *state ^= *state >> 7;
    *state ^= *state << 17;
    return *state;
}

static void add(struct order *o, uint64_t key) {
    uint8_t bytes[8];
    store_u64(bytes, key);
    order_add(o, slice_of(bytes, sizeof(bytes)));
}

static void test_growing_keys_are_append_only(void **state) {
    (void)state;
    struct order o = {0};
    for (uint64_t key = 1; key < ORDER_WINDOW * ORDER_IN_A_ROW; key++) {
        for (int again = 0; again < 3; again++) add(&o, key * 1000); /* writes to the same partition say nothing */
        assert_int_equal(order_pattern(&o), ORDER_NONE);
    }
    add(&o, 1000000);
    assert_int_equal(order_pattern(&o), ORDER_APPEND_ONLY);
    assert_string_equal(order_pattern_name(order_pattern(&o)), "append-only");
}

static void test_shrinking_keys_are_prepend_only(void **state) {
    (void)state;
    struct order o = {0};
    for (uint64_t key = 100; key > 100 - ORDER_WINDOW * ORDER_IN_A_ROW; key--) add(&o, key);
    assert_int_equal(order_pattern(&o), ORDER_PREPEND_ONLY);
}

static void test_one_write_in_ten_out_of_order_is_still_a_pattern(void **state) {
    (void)state;
    struct order o = {0};
    for (uint64_t i = 1; i <= 200; i++) add(&o, i % ORDER_WINDOW == 5 ? 1000 + i - 3 : 1000 + i * 2);
    assert_int_equal(order_pattern(&o), ORDER_APPEND_ONLY);
}

static void test_a_pattern_ends_when_keys_do_not_grow_any_more(void **state) {
    (void)state;
    struct order o = {0};
    uint64_t seed = 3;
    for (uint64_t key = 1; key <= 100; key++) add(&o, key);
    assert_int_equal(order_pattern(&o), ORDER_APPEND_ONLY);
    for (int i = 0; i < 2 * ORDER_WINDOW; i++) add(&o, random_next(&seed));
    assert_int_equal(order_pattern(&o), ORDER_NONE);
}

/* The stated rate: in one direction 46 / 10!, so in both 92 / 10! of all windows. */
static void test_the_rate_of_false_positives_is_the_stated_one(void **state) {
    (void)state;
    enum { WINDOWS = 2000000 };
    struct order o = {0};
    uint64_t seed = 20240607;
    int told = 0;
    for (int i = 0; i < WINDOWS * ORDER_WINDOW; i++) {
        add(&o, random_next(&seed));
        told += order_pattern(&o) != ORDER_NONE;
    }
    double expected = WINDOWS * 92.0 / 3628800.0; /* 50.7, with a standard deviation of 7.1 */
    assert_in_range(o.windows, WINDOWS - 1, WINDOWS);
    assert_true((double)o.one_way > expected - 36 && (double)o.one_way < expected + 36); /* five of them */
    assert_int_equal(told, 0); /* two in a row: 1.6e-10 a window */
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_growing_keys_are_append_only),
        cmocka_unit_test(test_shrinking_keys_are_prepend_only),
        cmocka_unit_test(test_one_write_in_ten_out_of_order_is_still_a_pattern),
        cmocka_unit_test(test_a_pattern_ends_when_keys_do_not_grow_any_more),
        cmocka_unit_test(test_the_rate_of_false_positives_is_the_stated_one),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
