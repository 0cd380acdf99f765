#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "cql/read/paging.h"

static void test_paging_state_comes_back_as_it_was(void **state) {
    (void)state;
    struct arena a;
    struct err e = {0};
    arena_init(&a, 1024, 0);
    struct paging_state in = {.has_limit = true, .limit_left = 7, .given = 3, .partition = 2, .key = slice_str("key"), .ck = slice_str("")}, out;
    struct slice bytes;
    assert_int_equal(paging_encode(&in, 42, &a, &bytes, &e), 0);
    assert_int_equal(paging_decode(bytes, 42, &out, &e), 0);
    assert_true(out.has_limit && out.limit_left == 7 && out.given == 3 && out.partition == 2);
    assert_true(slice_is(out.key, "key") && out.ck.p && out.ck.n == 0);
    arena_fini(&a);
}

static void test_paging_state_is_refused_when_changed_cut_or_of_another_statement(void **state) {
    (void)state;
    struct arena a;
    struct err e = {0};
    arena_init(&a, 1024, 0);
    struct paging_state in = {.key = slice_str("key"), .ck = slice_str("clustering")}, out;
    struct slice bytes;
    assert_int_equal(paging_encode(&in, 1, &a, &bytes, &e), 0);
    assert_int_equal(paging_decode(bytes, 2, &out, &e), -1);
    for (size_t i = 0; i < bytes.n; i++) {
        struct slice copy = arena_dup(&a, bytes);
        ((uint8_t *)(uintptr_t)copy.p)[i] ^= 0x41;
        assert_int_equal(paging_decode(copy, 1, &out, &e), -1);
        assert_int_equal(paging_decode(slice_of(bytes.p, i), 1, &out, &e), -1);
    }
    assert_string_equal(e.text, "Invalid value for the paging state");
    arena_fini(&a);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_paging_state_comes_back_as_it_was),
        cmocka_unit_test(test_paging_state_is_refused_when_changed_cut_or_of_another_statement),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
