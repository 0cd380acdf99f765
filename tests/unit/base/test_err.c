#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "base/buf.h"
#include "base/err.h"

static const char nul[] = "5\0z";

static void test_err_text_contains_every_byte_of_a_value(void **state) {
    (void)state;
    struct err e = {0}, outer = {0};
    err_invalid(&e, "'%.*s' of %s, %u%%", SLICE_FMT(slice_of(nul, 3)), "t", 7u);
    assert_string_equal(e.text, "'5\xC0\x80z' of t, 7%");
    err_invalid(&outer, "%lld %zu %06x %c %.2s: %s", -5LL, (size_t)6, 0xAu, 'x', "abc", e.text);
    assert_string_equal(outer.text, "-5 6 00000a x ab: '5\xC0\x80z' of t, 7%");
    outer.set = false;
    err_invalid(&outer, "%g %-3s| %*d", 0.5, "a", 3, 7);
    assert_string_equal(outer.text, "0.5 a  |   7");
    struct buf b;
    buf_init(&b, 0);
    buf_json_str(&b, slice_str(e.text));
    buf_u8(&b, 0);
    assert_string_equal((char *)b.p, "\"'5\\u0000z' of t, 7%\"");
    buf_fini(&b);
}

static void test_err_text_is_cut_at_the_end_of_a_character(void **state) {
    (void)state;
    struct err e = {0};
    err_invalid(&e, "%.*s|%.3s|%.*s", 3, "a\xE2\x82\xAC", "\xC3\xA9\xC3\xA9", 4, "a\xE2\x82\xAC");
    assert_string_equal(e.text, "a|\xC3\xA9|a\xE2\x82\xAC");
    for (int pad = 0; pad < 4; pad++) {
        char long_text[3000];
        for (size_t i = 0; i < sizeof long_text; i++) long_text[i] = "\xF0\x9F\x98\x80"[i % 4];
        e.set = false;
        err_invalid(&e, "%.*s%.*s", pad, "xyz", (int)sizeof long_text, long_text);
        size_t n = strlen(e.text);
        assert_true(n > ERR_TEXT_MAX - 8 && n < ERR_TEXT_MAX);
        assert_int_equal((n - 3 - (size_t)pad) % 4, 0);
        assert_string_equal(e.text + n - 3, "...");
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_err_text_contains_every_byte_of_a_value),
        cmocka_unit_test(test_err_text_is_cut_at_the_end_of_a_character),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
