#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "base/arena.h"
#include "base/fault.h"

static void test_arena_hands_out_aligned_zeroed_memory(void **state) {
    (void)state;
    struct arena a;
    arena_init(&a, 64, 0);
    for (int i = 1; i < 50; i++) {
        uint8_t *p = arena_zalloc(&a, (size_t)i);
        assert_non_null(p);
        assert_int_equal((uintptr_t)p % _Alignof(max_align_t), 0);
        for (int k = 0; k < i; k++) assert_int_equal(p[k], 0);
        memset(p, 0xAA, (size_t)i);
    }
    arena_fini(&a);
}

static void test_arena_refuses_past_its_limit_and_keeps_working(void **state) {
    (void)state;
    struct arena a;
    arena_init(&a, 64, 256);
    assert_null(arena_alloc(&a, 257));
    assert_non_null(arena_alloc(&a, 240));
    assert_null(arena_alloc(&a, 32));
    assert_non_null(arena_alloc(&a, 16));
    assert_null(arena_alloc(&a, SIZE_MAX));
    assert_null(arena_array(&a, SIZE_MAX / 2, 3));
    arena_fini(&a);
}

static void test_arena_reset_reuses_the_first_chunk(void **state) {
    (void)state;
    struct arena a;
    arena_init(&a, 1024, 0);
    void *first = arena_alloc(&a, 100);
    assert_non_null(arena_alloc(&a, 5000));
    arena_reset(&a);
    assert_int_equal(a.used, 0);
    assert_ptr_equal(arena_alloc(&a, 100), first);
    arena_fini(&a);
}

static void test_arena_copies_are_terminated(void **state) {
    (void)state;
    struct arena a;
    arena_init(&a, 64, 0);
    struct slice s = arena_dup(&a, slice_str("abc"));
    assert_int_equal(s.n, 3);
    assert_string_equal((const char *)s.p, "abc");
    assert_string_equal(arena_printf(&a, "%d-%s", 7, "x"), "7-x");
    arena_fini(&a);
}

static void count_up(void *p) { ++*(int *)p; }

static void test_arena_lets_go_of_what_it_owns_with_what_it_handed_out(void **state) {
    (void)state;
    struct arena a;
    int gone[4] = {0};
    arena_init(&a, 1024, 0);
    assert_int_equal(arena_own(&a, count_up, &gone[0]), 0);
    struct arena_mark m = arena_mark(&a);
    assert_int_equal(arena_own(&a, count_up, &gone[1]), 0);
    assert_non_null(arena_alloc(&a, 5000)); /* in another chunk */
    assert_int_equal(arena_own(&a, count_up, &gone[2]), 0);
    arena_rewind(&a, m);
    assert_true(!gone[0] && gone[1] == 1 && gone[2] == 1);
    void *kept = arena_alloc(&a, 8);
    assert_int_equal(arena_own(&a, count_up, &gone[3]), 0);
    arena_release(&a, m);
    assert_true(!gone[0] && gone[3] == 1);
    assert_ptr_not_equal(arena_alloc(&a, 8), kept);
    arena_reset(&a);
    assert_int_equal(gone[0], 1);
    assert_int_equal(arena_own(&a, count_up, &gone[0]), 0);
    arena_fini(&a);
    assert_int_equal(gone[0], 2);
}

static void fill(struct arena *a, size_t n) {
    while (n--) assert_non_null(arena_alloc(a, 1024));
}

/* Two requests in a pool of 64 KB: what the one takes beyond its own is not there for the other,
 * which keeps what is its own. */
static void test_arenas_of_a_pool_hold_no_more_than_it_together(void **state) {
    (void)state;
    struct arena_pool pool = {.limit = 64 << 10};
    struct arena_share guilty = {.pool = &pool}, innocent = {.pool = &pool};
    struct arena a, beside, other;
    arena_init_in(&a, &guilty, 4096, 0);
    arena_init_in(&beside, &guilty, 4096, 0);
    arena_init_in(&other, &innocent, 4096, 0);
    fill(&a, 150);
    assert_int_equal(pool.held, 0);
    struct arena_mark m = arena_mark(&a);
    fill(&beside, 150); /* with the first 300 KB */
    assert_true(pool.held > 40 << 10 && pool.held <= 64 << 10);
    assert_null(arena_alloc(&a, 32 << 10));
    assert_true(guilty.crowded && !innocent.crowded);
    fill(&other, 200);
    assert_null(arena_alloc(&other, 100 << 10));
    assert_true(innocent.crowded);
    fill(&a, 3); /* a little more still fits */
    arena_fini(&beside);
    assert_int_equal(pool.held, 0);
    innocent.crowded = false;
    assert_non_null(arena_alloc(&other, 100 << 10));
    assert_false(innocent.crowded);
    arena_reset(&other);
    assert_non_null(arena_alloc(&a, 120 << 10));
    assert_true(pool.held > 0);
    arena_rewind(&a, m);
    assert_int_equal(pool.held, 0);
    arena_fini(&a);
    arena_fini(&other);
    assert_true(!guilty.held && !innocent.held && !pool.held);
}

static void test_a_failed_allocation_leaves_no_mark_in_the_pool(void **state) {
    (void)state;
    struct arena_pool pool = {.limit = 1 << 20};
    struct arena_share share = {.pool = &pool};
    struct arena a;
    arena_init_in(&a, &share, 64, 0);
    fault_arm(FAULT_ALLOC, 1);
    assert_null(arena_alloc(&a, 512 << 10));
    assert_true(!share.held && !pool.held && !share.crowded);
    arena_fini(&a);
}

static void test_arena_reports_a_failed_allocation(void **state) {
    (void)state;
    struct arena a;
    arena_init(&a, 64, 0);
    fault_arm(FAULT_ALLOC, 1);
    assert_null(arena_alloc(&a, 10));
    assert_non_null(arena_alloc(&a, 10));
    arena_fini(&a);
}

/* X1, where the address sanitizer tells. */
static void test_memory_that_is_not_handed_out_is_poisoned(void **state) {
    (void)state;
#if POISONS
    struct arena a;
    arena_init(&a, 256, 0);
    uint8_t *kept = arena_alloc(&a, 16);
    struct arena_mark m = arena_mark(&a);
    uint8_t *rewound = arena_alloc(&a, 40), *large = arena_alloc(&a, 1000);
    assert_true(!__asan_address_is_poisoned(rewound + 39) && !__asan_address_is_poisoned(large));
    assert_true(__asan_address_is_poisoned(rewound + 40));
    arena_rewind(&a, m);
    assert_true(__asan_address_is_poisoned(rewound) && !__asan_address_is_poisoned(kept + 15));
    rewound = arena_alloc(&a, 8);
    arena_rewind(&a, m);
    assert_true(__asan_address_is_poisoned(rewound));
    arena_reset(&a);
    assert_true(__asan_address_is_poisoned(kept));
    arena_fini(&a);
#else
    skip();
#endif
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_arena_hands_out_aligned_zeroed_memory),
        cmocka_unit_test(test_arena_refuses_past_its_limit_and_keeps_working),
        cmocka_unit_test(test_arena_reset_reuses_the_first_chunk),
        cmocka_unit_test(test_arena_copies_are_terminated),
        cmocka_unit_test(test_arenas_of_a_pool_hold_no_more_than_it_together),
        cmocka_unit_test(test_a_failed_allocation_leaves_no_mark_in_the_pool),
        cmocka_unit_test(test_memory_that_is_not_handed_out_is_poisoned),
        cmocka_unit_test(test_arena_reports_a_failed_allocation),
        cmocka_unit_test(test_arena_lets_go_of_what_it_owns_with_what_it_handed_out),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
