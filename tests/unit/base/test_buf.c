#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "base/buf.h"
#include "base/err.h"
#include "base/fault.h"

static void test_buf_writes_big_endian_and_reads_back(void **state) {
    (void)state;
    struct buf b;
    buf_init(&b, 0);
    buf_u8(&b, 1);
    buf_u16(&b, 0x0203);
    buf_u32(&b, 0x04050607);
    buf_u64(&b, 0x08090a0b0c0d0e0f);
    for (uint8_t i = 0; i < 15; i++) assert_int_equal(b.p[i], i + 1);
    struct rd r = rd_of(buf_slice(&b));
    assert_int_equal(rd_u8(&r), 1);
    assert_int_equal(rd_u16(&r), 0x0203);
    assert_int_equal(rd_u32(&r), 0x04050607);
    assert_true(rd_u64(&r) == 0x08090a0b0c0d0e0f);
    assert_false(r.bad);
    buf_fini(&b);
}

static void test_buf_fails_at_its_limit_and_keeps_what_it_had(void **state) {
    (void)state;
    struct buf b;
    buf_init(&b, 8);
    buf_u64(&b, 1);
    assert_false(buf_failed(&b));
    buf_u8(&b, 1);
    assert_true(buf_failed(&b));
    assert_int_equal(b.n, 8);
    buf_fini(&b);
}

static void test_buf_failure_is_sticky(void **state) {
    (void)state;
    struct buf b;
    buf_init(&b, 0);
    fault_arm(FAULT_ALLOC, 1);
    buf_u8(&b, 1);
    assert_true(buf_failed(&b));
    buf_u8(&b, 1);
    assert_true(buf_failed(&b));
    assert_int_equal(b.n, 0);
    buf_fini(&b);
}

static void test_rd_past_the_end_is_bad_and_yields_zero(void **state) {
    (void)state;
    const uint8_t three[3] = {1, 2, 3};
    struct rd r = rd_of(slice_of(three, 3));
    assert_int_equal(rd_u32(&r), 0);
    assert_true(r.bad);
    assert_int_equal(rd_u8(&r), 0);
    assert_null(rd_bytes(&r, 1).p);
}

static void test_uvarint_round_trips_at_every_width(void **state) {
    (void)state;
    for (unsigned bits = 0; bits <= 64; bits++) {
        uint64_t v = bits == 64 ? UINT64_MAX : (1ull << bits) - 1;
        struct buf b;
        buf_init(&b, 0);
        buf_uvarint(&b, v);
        struct rd r = rd_of(buf_slice(&b));
        assert_true(rd_uvarint(&r) == v);
        assert_false(r.bad);
        assert_int_equal(rd_left(&r), 0);
        buf_fini(&b);
    }
}

static void test_uvarint_refuses_more_than_64_bits(void **state) {
    (void)state;
    const uint8_t bytes[11] = {0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0x7f, 0};
    struct rd r = rd_of(slice_of(bytes, sizeof(bytes)));
    rd_uvarint(&r);
    assert_true(r.bad);
}

static void test_json_strings_are_escaped(void **state) {
    (void)state;
    struct buf b;
    buf_init(&b, 0);
    buf_json_str(&b, slice_str("a\"b\\c\n\x01"));
    assert_true(slice_is(buf_slice(&b), "\"a\\\"b\\\\c\\n\\u0001\""));
    buf_fini(&b);
}

static void test_err_keeps_the_first_error_and_cuts_long_texts(void **state) {
    (void)state;
    static struct err e;
    err_clear(&e);
    char zeros[4001] = {0};
    memset(zeros, '0', 4000);
    assert_int_equal(err_invalid(&e, "%s", zeros), -1);
    assert_int_equal(e.code, ERR_INVALID);
    assert_true(strlen(e.text) < ERR_TEXT_MAX);
    assert_string_equal(e.text + strlen(e.text) - 3, "...");
    err_set(&e, ERR_SERVER, "second");
    assert_int_equal(e.code, ERR_INVALID);
}

static void test_an_error_takes_what_was_printed_and_says_where_it_was_cut(void **state) {
    (void)state;
    static struct err e, cut, first;
    struct buf text;
    buf_init(&text, 4096);
    buf_printf(&text, "Invalid %s: ", "value");
    buf_put_str(&text, "100%");
    assert_int_equal(err_set_buf(&e, ERR_CONFIG, &text), -1);
    assert_string_equal(e.text, "Invalid value: 100%");
    assert_int_equal(e.code, ERR_CONFIG);
    assert_null(text.p);

    buf_init(&text, 4);
    buf_put_str(&text, "abcd");
    buf_put_str(&text, "e");
    assert_int_equal(err_set_buf(&cut, ERR_INVALID, &text), -1);
    assert_string_equal(cut.text, "abcd...");

    err_set(&first, ERR_INVALID, "first");
    buf_init(&text, 0);
    buf_put_str(&text, "second");
    assert_int_equal(err_set_buf(&first, ERR_INVALID, &text), -1);
    assert_string_equal(first.text, "first");
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_buf_writes_big_endian_and_reads_back),
        cmocka_unit_test(test_buf_fails_at_its_limit_and_keeps_what_it_had),
        cmocka_unit_test(test_buf_failure_is_sticky),
        cmocka_unit_test(test_rd_past_the_end_is_bad_and_yields_zero),
        cmocka_unit_test(test_uvarint_round_trips_at_every_width),
        cmocka_unit_test(test_uvarint_refuses_more_than_64_bits),
        cmocka_unit_test(test_json_strings_are_escaped),
        cmocka_unit_test(test_err_keeps_the_first_error_and_cuts_long_texts),
        cmocka_unit_test(test_an_error_takes_what_was_printed_and_says_where_it_was_cut),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
