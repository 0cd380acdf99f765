#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "cql/read/paging.h"

static void assert_same(const struct paging_state *a, const struct paging_state *b) {
    assert_int_equal(a->has_limit, b->has_limit);
    assert_true(a->limit_left == b->limit_left && a->given == b->given && a->partition == b->partition);
    assert_true(slice_eq(a->key, b->key) && !a->ck.p == !b->ck.p && slice_eq(a->ck, b->ck));
    assert_int_equal(a->before, b->before);
}

/* Each differs from the first in one field, so that a field that is lost shows. */
static void test_paging_state_survives_encoding_and_decoding(void **state) {
    (void)state;
    static const uint8_t key[] = {0, 1, 0xff}, ck[] = {0x80, 0};
    const struct paging_state states[] = {
        {.key = {key, 3}},
        {.key = {key, 3}, .has_limit = true},
        {.key = {key, 3}, .has_limit = true, .limit_left = UINT64_MAX - 1},
        {.key = {key, 3}, .given = UINT64_MAX},
        {.key = {key, 3}, .partition = UINT32_MAX},
        {.key = {key, 2}},
        {.key = {key, 0}},
        {.key = {key, 3}, .ck = {ck, 2}},
        {.key = {key, 3}, .ck = {ck, 0}},
        {.key = {key, 3}, .before = true},
    };
    struct slice bytes[ARRAY_LEN(states)];
    struct arena a;
    struct err e = {0};
    arena_init(&a, 1024, 0);
    for (size_t i = 0; i < ARRAY_LEN(states); i++) {
        struct paging_state out;
        assert_int_equal(paging_encode(&states[i], 42, &a, &bytes[i], &e), 0);
        assert_int_equal(paging_decode(bytes[i], 42, &out, &e), 0);
        assert_same(&out, &states[i]);
        for (size_t k = 0; k < i; k++) assert_false(slice_eq(bytes[i], bytes[k]));
    }
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
        cmocka_unit_test(test_paging_state_survives_encoding_and_decoding),
        cmocka_unit_test(test_paging_state_is_refused_when_changed_cut_or_of_another_statement),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
