#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "base/random.h"

/* More than one call of the system gives: none of its parts is left as it was. */
static void test_all_of_many_bytes_are_random(void **state) {
    (void)state;
    enum { N = 1 << 16, PART = 64 };
    static uint8_t bytes[N];
    static const uint8_t none[PART];
    struct err e = {0};
    assert_int_equal(random_bytes(bytes, N, &e), 0);
    for (int at = 0; at < N; at += PART) assert_memory_not_equal(bytes + at, none, PART);
}

static void test_a_random_uuid_says_that_it_is_one(void **state) {
    (void)state;
    uint8_t a[16], b[16];
    struct err e = {0};
    assert_int_equal(random_uuid(a, &e), 0);
    assert_int_equal(random_uuid(b, &e), 0);
    assert_memory_not_equal(a, b, 16);
    assert_int_equal(a[6] >> 4, 4);
    assert_int_equal(a[8] >> 6, 2);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_all_of_many_bytes_are_random),
        cmocka_unit_test(test_a_random_uuid_says_that_it_is_one),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
