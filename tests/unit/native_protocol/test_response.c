#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include "native_protocol/response.h"
#include "native_protocol/rows.h"

static struct slice body_of(const struct buf *b, size_t start) {
    assert_int_equal(load_u32(b->p + start + 5), b->n - start - NP_HEADER);
    return slice_of(b->p + start + NP_HEADER, b->n - start - NP_HEADER);
}

static void test_reply_void_carries_the_charge(void **state) {
    (void)state;
    struct buf b;
    struct np_reply r;
    buf_init(&b, 0);
    buf_put_str(&b, "before");
    np_reply_begin(&r, &b, 4, 9, NP_RESULT, true);
    np_put_void(&b);
    assert_int_equal(np_reply_end(&r, 2.5, NULL), 0);
    assert_int_equal(b.p[6 + 1], NP_FLAG_PAYLOAD);
    struct rd rd = rd_of(body_of(&b, 6));
    assert_int_equal(rd_u16(&rd), 1);
    assert_true(slice_is(rd_bytes(&rd, rd_u16(&rd)), "RequestCharge"));
    assert_int_equal(rd_u32(&rd), 8);
    assert_int_equal(rd_u64(&rd), 0x4004000000000000); /* 2.5 */
    assert_int_equal(rd_u32(&rd), RESULT_VOID);
    assert_int_equal(rd_left(&rd), 0);
    buf_fini(&b);
}

static void test_reply_extras_in_the_order_of_the_specification(void **state) {
    (void)state;
    struct buf b;
    struct np_reply r;
    buf_init(&b, 0);
    np_reply_begin(&r, &b, 5, 9, NP_RESULT, true);
    np_put_void(&b);
    const char *warnings[] = {"careful"};
    struct np_reply_extras x = {.tracing_id = (const uint8_t *)"0123456789abcdef",
                                .n_warnings = 1,
                                .warnings = warnings,
                                .requested = true,
                                .capacity = slice_str("{}")};
    assert_int_equal(np_reply_end(&r, 1, &x), 0);
    assert_int_equal(b.p[1], NP_FLAG_PAYLOAD | NP_FLAG_TRACING | NP_FLAG_WARNING);
    struct rd rd = rd_of(body_of(&b, 0));
    assert_true(slice_is(rd_bytes(&rd, 16), "0123456789abcdef"));
    assert_int_equal(rd_u16(&rd), 1);
    assert_true(slice_is(rd_bytes(&rd, rd_u16(&rd)), "careful"));
    assert_int_equal(rd_u16(&rd), 2);
    rd_bytes(&rd, rd_u16(&rd)), rd_bytes(&rd, rd_u32(&rd));
    assert_true(slice_is(rd_bytes(&rd, rd_u16(&rd)), "capacity"));
    assert_true(slice_is(rd_bytes(&rd, rd_u32(&rd)), "{}"));
    assert_int_equal(rd_u32(&rd), RESULT_VOID);
    buf_fini(&b);
}

static void test_reply_with_warnings_has_no_payload_that_nobody_asked_for(void **state) {
    (void)state;
    static const struct slice capacities[] = {{0},
                                              {.p = (const uint8_t *)"{}",
                                               .n = 2}}; /* the second: the server is set to "full" */
    for (uint8_t version = 4; version <= 5; version++) {
        for (size_t i = 0; i < ARRAY_LEN(capacities); i++) {
            struct buf b;
            struct np_reply r;
            const char *warnings[] = {"careful"};
            struct np_reply_extras x = {.tracing_id = (const uint8_t *)"0123456789abcdef",
                                        .n_warnings = 1,
                                        .warnings = warnings,
                                        .capacity = capacities[i]};
            buf_init(&b, 0);
            np_reply_begin(&r, &b, version, 9, NP_RESULT, true);
            np_put_set_keyspace(&b, "ks");
            assert_int_equal(np_reply_end(&r, 1, &x), 0);
            assert_int_equal(b.p[1], NP_FLAG_TRACING | NP_FLAG_WARNING);
            struct rd rd = rd_of(body_of(&b, 0));
            rd_bytes(&rd, 16);
            assert_int_equal(rd_u16(&rd), 1);
            assert_true(slice_is(rd_bytes(&rd, rd_u16(&rd)), "careful"));
            assert_int_equal(rd_u32(&rd), RESULT_SET_KEYSPACE);
            assert_true(slice_is(rd_bytes(&rd, rd_u16(&rd)), "ks"));
            assert_int_equal(rd_left(&rd), 0);
            buf_fini(&b);
        }
    }
}

static void test_reply_v3_has_neither_payload_nor_warnings(void **state) {
    (void)state;
    struct buf b;
    struct np_reply r;
    const char *warnings[] = {"careful"};
    buf_init(&b, 0);
    np_reply_begin(&r, &b, 3, 1, NP_RESULT, true);
    np_put_void(&b);
    assert_int_equal(np_reply_end(&r, 1, &(struct np_reply_extras){.n_warnings = 1, .warnings = warnings}), 0);
    assert_int_equal(b.n, NP_HEADER + 4);
    assert_int_equal(b.p[1], 0);
    buf_fini(&b);
}

static void test_reply_failure_is_cancelled_cleanly(void **state) {
    (void)state;
    struct buf b;
    struct np_reply r;
    buf_init(&b, 64);
    buf_put_str(&b, "kept");
    np_reply_begin(&r, &b, 4, 1, NP_RESULT, true);
    for (int i = 0; i < 100; i++) np_put_void(&b);
    assert_int_equal(np_reply_end(&r, 0, NULL), -1);
    np_reply_cancel(&r);
    assert_int_equal(b.n, 4);
    assert_false(buf_failed(&b));
    buf_fini(&b);
}

static void test_reply_compressed_body_keeps_its_header(void **state) {
    (void)state;
    struct buf b, scratch, back;
    struct np_reply r;
    struct err e = {0};
    buf_init(&b, 0), buf_init(&scratch, 0), buf_init(&back, 0);
    np_reply_begin(&r, &b, 4, 1, NP_RESULT, false);
    for (int i = 0; i < 100; i++) np_put_void(&b);
    struct np_reply_extras x = {.compression = NP_COMPRESS_LZ4, .scratch = &scratch};
    assert_int_equal(np_reply_end(&r, 0, &x), 0);
    assert_int_equal(b.p[1], NP_FLAG_COMPRESSED);
    assert_int_equal(np_body_decompress(NP_COMPRESS_LZ4, body_of(&b, 0), 4096, &back, &e), 0);
    assert_int_equal(back.n, 400);
    buf_fini(&b), buf_fini(&scratch), buf_fini(&back);
}

static size_t error_size(uint8_t version, const struct err *e, uint32_t *code) {
    struct buf b;
    buf_init(&b, 0);
    np_put_error(&b, version, e);
    *code = load_u32(b.p);
    size_t n = b.n - 4 - 2 - strlen(e->text);
    buf_fini(&b);
    return n;
}

static void test_error_payload_of_every_code(void **state) {
    (void)state;
    static const struct {
        enum err_code code;
        uint8_t version;
        uint32_t sent;
        size_t extra;
    } cases[] = {
        {ERR_SERVER, 4, 0x0000, 0},
        {ERR_PROTOCOL, 4, 0x000A, 0},
        {ERR_BAD_CREDENTIALS, 4, 0x0100, 0},
        {ERR_UNAVAILABLE, 4, 0x1000, 10},
        {ERR_OVERLOADED, 4, 0x1001, 0},
        {ERR_TRUNCATE, 4, 0x1003, 0},
        {ERR_WRITE_TIMEOUT, 4, 0x1100, 15},
        {ERR_WRITE_TIMEOUT, 5, 0x1100, 17},
        {ERR_READ_TIMEOUT, 4, 0x1200, 11},
        {ERR_READ_FAILURE, 3, 0x1200, 11},
        {ERR_READ_FAILURE, 4, 0x1300, 15},
        {ERR_READ_FAILURE, 5, 0x1300, 22},
        {ERR_WRITE_FAILURE, 3, 0x1100, 15},
        {ERR_WRITE_FAILURE, 4, 0x1500, 19},
        {ERR_WRITE_FAILURE, 5, 0x1500, 26},
        {ERR_FUNCTION_FAILURE, 4, 0x1400, 8},
        {ERR_FUNCTION_FAILURE, 3, 0x2200, 0},
        {ERR_CAS_WRITE_UNKNOWN, 4, 0x1100, 15},
        {ERR_CAS_WRITE_UNKNOWN, 5, 0x1700, 10},
        {ERR_CDC_WRITE_FAILURE, 5, 0x1600, 0},
        {ERR_ALREADY_EXISTS, 4, 0x2400, 6},
        {ERR_UNPREPARED, 4, 0x2500, 18},
        {ERR_SYNTAX, 3, 0x2000, 0},
        {ERR_CONFIG, 5, 0x2300, 0},
    };
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        struct err e = {.set = true, .code = cases[i].code, .text = "t",
                        .detail = {.failures = 1, .write_type = "CAS", .keyspace = "k", .name = "n"}};
        uint32_t code;
        size_t n = error_size(cases[i].version, &e, &code);
        if (cases[i].code == ERR_ALREADY_EXISTS || cases[i].code == ERR_FUNCTION_FAILURE)
            assert_true(n == 6 || n == cases[i].extra);
        else assert_int_equal(n, cases[i].extra);
        assert_int_equal(code, cases[i].sent);
    }
}

static void test_event_goes_on_stream_minus_one(void **state) {
    (void)state;
    struct buf b;
    buf_init(&b, 0);
    struct schema_change c = {.kind = CHANGE_CREATED, .target = TARGET_TABLE, .keyspace = "ks", .name = "t"};
    np_event_schema(&b, 4, &c);
    assert_int_equal((int16_t)load_u16(b.p + 2), -1);
    struct rd rd = rd_of(body_of(&b, 0));
    static const char *const want[] = {"SCHEMA_CHANGE", "CREATED", "TABLE", "ks", "t"};
    for (size_t i = 0; i < ARRAY_LEN(want); i++) assert_true(slice_is(rd_bytes(&rd, rd_u16(&rd)), want[i]));
    assert_int_equal(rd_left(&rd), 0);
    buf_fini(&b);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_reply_void_carries_the_charge),
        cmocka_unit_test(test_reply_extras_in_the_order_of_the_specification),
        cmocka_unit_test(test_reply_with_warnings_has_no_payload_that_nobody_asked_for),
        cmocka_unit_test(test_reply_v3_has_neither_payload_nor_warnings),
        cmocka_unit_test(test_reply_failure_is_cancelled_cleanly),
        cmocka_unit_test(test_reply_compressed_body_keeps_its_header),
        cmocka_unit_test(test_error_payload_of_every_code),
        cmocka_unit_test(test_event_goes_on_stream_minus_one),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
