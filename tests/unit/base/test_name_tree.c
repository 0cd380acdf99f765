/* Names are found whatever they are and in whatever order they came; the cost of a name is its own length. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

#include <cmocka.h>

#include "base/buf.h"
#include "base/name_tree.h"

static void test_name_tree_keeps_the_first_of_equal_names(void **state) {
    (void)state;
    static const char *const names[] = {"", "a", "b", "ab", "aa", "aaa", "\xFF", "\xFF\xFF", "a\x80", "z"};
    struct arena a;
    arena_init(&a, 4096, 0);
    struct name_tree t = {.arena = &a};
    assert_null(name_tree_find(&t, slice_str("a")));
    for (uint32_t i = 0; i < ARRAY_LEN(names); i++) assert_int_equal(0, name_tree_put(&t, slice_str(names[i]), i));
    assert_int_equal(0, name_tree_put(&t, slice_of("\0", 1), 100));
    assert_int_equal(0, name_tree_put(&t, slice_of("a\0", 2), 101));
    for (uint32_t i = 0; i < ARRAY_LEN(names); i++) {
        assert_int_equal(1, name_tree_put(&t, slice_str(names[i]), 77));
        assert_int_equal(i, *name_tree_find(&t, slice_str(names[i])));
    }
    assert_int_equal(100, *name_tree_find(&t, slice_of("\0", 1)));
    assert_int_equal(101, *name_tree_find(&t, slice_of("a\0", 2)));
    assert_null(name_tree_find(&t, slice_str("aaaa")));
    arena_fini(&a);
}

static void test_name_tree_agrees_with_a_list(void **state) {
    (void)state;
    enum { NAMES = 2000 };
    static uint8_t bytes[NAMES][6];
    static struct slice kept[NAMES];
    struct arena a;
    unsigned seed = 5;
    uint32_t n = 0;
    arena_init(&a, 4096, 0);
    struct name_tree t = {.arena = &a};
    for (int i = 0; i < NAMES; i++) {
        struct slice name = slice_of(bytes[i], (size_t)rand_r(&seed) % 6);
        for (size_t k = 0; k < name.n; k++) bytes[i][k] = (uint8_t)("\0a\x80\xFF"[rand_r(&seed) % 4]);
        uint32_t at = 0;
        while (at < n && !slice_eq(kept[at], name)) at++;
        assert_int_equal(at < n, name_tree_put(&t, name, at));
        if (at == n) kept[n++] = name;
        assert_int_equal(at, *name_tree_find(&t, name));
    }
    for (uint32_t i = 0; i < n; i++) assert_int_equal(i, *name_tree_find(&t, kept[i]));
    arena_fini(&a);
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_name_tree_keeps_the_first_of_equal_names),
                                       cmocka_unit_test(test_name_tree_agrees_with_a_list)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
