#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include "native_protocol/request.h"

struct fixture {
    struct arena arena;
    struct buf body;
    struct cql_request r;
    struct np_query_options o;
    struct err e;
};

static int setup(void **state) {
    static struct fixture f;
    f = (struct fixture){0};
    arena_init(&f.arena, 4096, 1 << 20);
    buf_init(&f.body, 0);
    *state = &f;
    return 0;
}

static int teardown(void **state) {
    struct fixture *f = *state;
    arena_fini(&f->arena);
    buf_fini(&f->body);
    return 0;
}

static void put_string(struct buf *b, const char *s) {
    buf_u16(b, (uint16_t)strlen(s));
    buf_put_str(b, s);
}

static void put_long_string(struct buf *b, const char *s) {
    buf_u32(b, (uint32_t)strlen(s));
    buf_put_str(b, s);
}

static int decode_n(struct fixture *f, uint8_t version, uint8_t opcode, uint8_t flags, size_t n) {
    struct np_envelope env = {.version = version, .opcode = opcode, .flags = flags};
    f->r = (struct cql_request){0};
    err_clear(&f->e);
    return np_query_decode(&env, slice_of(buf_slice(&f->body).p, n), &f->arena, &f->r, &f->o, &f->e);
}

static int decode(struct fixture *f, uint8_t version, uint8_t opcode, uint8_t flags) {
    return decode_n(f, version, opcode, flags, f->body.n);
}

/* Every proper prefix of a body is refused with a protocol error. */
static void refuse_cuts(struct fixture *f, uint8_t version, uint8_t opcode, uint8_t flags) {
    for (size_t n = 0; n < f->body.n; n++) {
        assert_int_equal(decode_n(f, version, opcode, flags, n), -1);
        assert_int_equal(f->e.code, ERR_PROTOCOL);
    }
}

static void test_query_v5_takes_every_parameter(void **state) {
    struct fixture *f = *state;
    put_long_string(&f->body, "SELECT 1");
    buf_u16(&f->body, CL_LOCAL_QUORUM);
    buf_u32(&f->body, 0x1ff);
    buf_u16(&f->body, 2);
    put_string(&f->body, "a"), buf_u32(&f->body, 1), buf_u8(&f->body, 'x');
    put_string(&f->body, "b"), buf_u32(&f->body, UINT32_MAX - 1); /* -2: unset */
    buf_u32(&f->body, 100);
    buf_u32(&f->body, 2), buf_put_str(&f->body, "ps");
    buf_u16(&f->body, CL_LOCAL_SERIAL);
    buf_u64(&f->body, 42);
    put_string(&f->body, "ks");
    buf_u32(&f->body, 77);
    assert_int_equal(decode(f, 5, NP_QUERY, 0), 0);
    const struct cql_params *p = &f->r.params;
    assert_true(slice_is(f->r.query, "SELECT 1"));
    assert_int_equal(p->consistency, CL_LOCAL_QUORUM);
    assert_int_equal(p->serial_consistency, CL_LOCAL_SERIAL);
    assert_int_equal(p->n_values, 2);
    assert_true(slice_is(p->names[1], "b"));
    assert_true(value_is_unset(p->values[1]));
    assert_true(slice_is(value_slice(p->values[0]), "x"));
    assert_int_equal(p->page_size, 100);
    assert_true(slice_is(p->paging_state, "ps"));
    assert_true(p->has_timestamp && p->timestamp == 42);
    assert_true(slice_is(p->keyspace, "ks"));
    assert_true(p->has_now && p->now_seconds == 77);
    assert_true(f->o.skip_metadata);
    refuse_cuts(f, 5, NP_QUERY, 0);
}

static void test_query_v4_flags_are_one_byte(void **state) {
    struct fixture *f = *state;
    put_long_string(&f->body, "SELECT 1");
    buf_u16(&f->body, CL_ONE);
    buf_u8(&f->body, 0x04);
    buf_u32(&f->body, 5);
    assert_int_equal(decode(f, 4, NP_QUERY, 0), 0);
    assert_int_equal(f->r.params.page_size, 5);
    assert_int_equal(f->r.params.serial_consistency, CL_SERIAL);
    buf_u32(&f->body, 0xdeadbeef); /* more than the message is ignored */
    assert_int_equal(decode(f, 4, NP_QUERY, 0), 0);
}

static void put_one_value(struct fixture *f, int32_t n) {
    put_long_string(&f->body, "q");
    buf_u16(&f->body, CL_ONE);
    buf_u8(&f->body, 0x01);
    buf_u16(&f->body, 1);
    buf_u32(&f->body, (uint32_t)n);
}

static void test_value_unset_is_null_in_v3(void **state) {
    struct fixture *f = *state;
    put_one_value(f, -2);
    assert_int_equal(decode(f, 3, NP_QUERY, 0), 0);
    assert_int_equal(f->r.params.values[0].n, VALUE_NULL);
    assert_int_equal(decode(f, 4, NP_QUERY, 0), 0);
    assert_int_equal(f->r.params.values[0].n, VALUE_UNSET);
}

static void test_value_below_unset_is_refused(void **state) {
    struct fixture *f = *state;
    put_one_value(f, -3);
    assert_int_equal(decode(f, 4, NP_QUERY, 0), -1);
    assert_string_equal(f->e.text, "Invalid ByteBuf length -3");
}

static void test_value_lying_length_is_refused(void **state) {
    struct fixture *f = *state;
    put_one_value(f, INT32_MAX);
    assert_int_equal(decode(f, 4, NP_QUERY, 0), -1);
    assert_int_equal(f->e.code, ERR_PROTOCOL);
}

static int decode_text(struct fixture *f, size_t ascii, const char *middle, const char *end) {
    char text[64] = "";
    memset(text, 'a', ascii);
    strcpy(text + ascii, middle);
    strcat(text, end);
    buf_clear(&f->body, SIZE_MAX);
    put_long_string(&f->body, text);
    buf_u16(&f->body, CL_ONE), buf_u8(&f->body, 0);
    return decode(f, 4, NP_QUERY, 0);
}

/* Wherever it stands: what is ASCII is looked at eight bytes at a time. */
static void test_query_text_must_be_utf8(void **state) {
    struct fixture *f = *state;
    static const char *const bad[] = {"\xff", "\xc0\x80", "\xed\xa0\x80", "\xf4\x90\x80\x80", "\xe2\x82", "\x80"};
    for (size_t ascii = 0; ascii < 20; ascii++) {
        for (size_t i = 0; i < ARRAY_LEN(bad); i++) {
            assert_int_equal(decode_text(f, ascii, bad[i], ""), -1);
            assert_int_equal(decode_text(f, ascii, bad[i], "behind, in ASCII"), -1);
            assert_int_equal(decode_text(f, ascii, "\xc3\xa9", bad[i]), -1);
        }
        assert_int_equal(decode_text(f, ascii, "\xc3\xa9 \xe2\x82\xac \xf0\x9f\x98\x80", "behind, in ASCII"), 0);
    }
}

static void test_consistency_and_page_size_are_checked(void **state) {
    struct fixture *f = *state;
    put_long_string(&f->body, "q");
    buf_u16(&f->body, 99), buf_u8(&f->body, 0);
    assert_int_equal(decode(f, 4, NP_QUERY, 0), -1);
    assert_string_equal(f->e.text, "Unknown code 99 for a consistency level");
    buf_clear(&f->body, SIZE_MAX);
    put_long_string(&f->body, "q");
    buf_u16(&f->body, CL_ONE), buf_u8(&f->body, 4), buf_u32(&f->body, 0);
    assert_int_equal(decode(f, 4, NP_QUERY, 0), -1);
    assert_string_equal(f->e.text, "The page size cannot be 0");
}

static void test_execute_has_metadata_id_in_v5(void **state) {
    struct fixture *f = *state;
    put_string(&f->body, "0123456789abcdef");
    put_string(&f->body, "fedcba9876543210");
    buf_u16(&f->body, CL_ONE), buf_u32(&f->body, 0);
    assert_int_equal(decode(f, 5, NP_EXECUTE, 0), 0);
    assert_true(slice_is(f->r.prepared_id, "0123456789abcdef"));
    assert_true(slice_is(f->r.params.result_metadata_id, "fedcba9876543210"));
    refuse_cuts(f, 5, NP_EXECUTE, 0);
}

static void test_batch_takes_texts_and_ids(void **state) {
    struct fixture *f = *state;
    buf_u8(&f->body, 1);
    buf_u16(&f->body, 2);
    buf_u8(&f->body, 0), put_long_string(&f->body, "INSERT"), buf_u16(&f->body, 0);
    buf_u8(&f->body, 1), put_string(&f->body, "id"), buf_u16(&f->body, 1), buf_u32(&f->body, 1), buf_u8(&f->body, 'v');
    buf_u16(&f->body, CL_QUORUM);
    buf_u8(&f->body, 0x20), buf_u64(&f->body, 9);
    assert_int_equal(decode(f, 4, NP_BATCH, 0), 0);
    assert_int_equal(f->r.n_items, 2);
    assert_int_equal(f->r.batch_kind, BATCH_UNLOGGED);
    assert_true(slice_is(f->r.items[0].query, "INSERT") && slice_is(f->r.items[1].prepared_id, "id"));
    assert_int_equal(f->r.params.timestamp, 9);
    refuse_cuts(f, 4, NP_BATCH, 0);
}

static void test_batch_lying_count_allocates_nothing(void **state) {
    struct fixture *f = *state;
    buf_u8(&f->body, 0), buf_u16(&f->body, 65535), buf_u32(&f->body, 0);
    assert_int_equal(decode(f, 4, NP_BATCH, 0), -1);
    assert_int_equal(f->arena.used, 0);
}

static void test_payload_asks_for_capacity(void **state) {
    struct fixture *f = *state;
    buf_u16(&f->body, 2);
    put_string(&f->body, "other"), buf_u32(&f->body, UINT32_MAX);
    put_string(&f->body, "capacity"), buf_u32(&f->body, 1), buf_u8(&f->body, 1);
    put_long_string(&f->body, "q");
    buf_u16(&f->body, CL_ONE), buf_u8(&f->body, 0);
    assert_int_equal(decode(f, 4, NP_QUERY, NP_FLAG_PAYLOAD), 0);
    assert_true(f->o.wants_capacity);
    refuse_cuts(f, 4, NP_QUERY, NP_FLAG_PAYLOAD);
}

static void trace_context_is(struct fixture *f, const char *value, const char *taken) {
    buf_clear(&f->body, SIZE_MAX);
    buf_u16(&f->body, 1);
    put_string(&f->body, "traceparent"), put_long_string(&f->body, value);
    put_long_string(&f->body, "q");
    buf_u16(&f->body, CL_ONE), buf_u8(&f->body, 0);
    assert_int_equal(decode(f, 4, NP_QUERY, NP_FLAG_PAYLOAD), 0);
    assert_true(slice_is(f->o.traceparent, taken));
}

#define TRACE "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"
static void test_payload_has_a_trace_context(void **state) {
    struct fixture *f = *state;
    trace_context_is(f, TRACE, TRACE);
    trace_context_is(f, TRACE "-more", TRACE);
    trace_context_is(f, TRACE "x", "");
    trace_context_is(f, "00-0AF7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01", "");
    trace_context_is(f, "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-0", "");
    trace_context_is(f, "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331\n01", "");
    trace_context_is(f, "", "");
}

static int startup(struct fixture *f, uint8_t version, const char *key, const char *value, struct np_startup *s) {
    buf_clear(&f->body, SIZE_MAX);
    buf_u16(&f->body, key ? 2 : 1);
    put_string(&f->body, "CQL_VERSION"), put_string(&f->body, "3.0.0");
    if (key) put_string(&f->body, key), put_string(&f->body, value);
    err_clear(&f->e);
    return np_startup_decode(version, buf_slice(&f->body), s, &f->e);
}

static void test_startup_options(void **state) {
    struct fixture *f = *state;
    struct np_startup s;
    assert_int_equal(startup(f, 4, "COMPRESSION", "snappy", &s), 0);
    assert_int_equal(s.compression, NP_COMPRESS_SNAPPY);
    assert_int_equal(startup(f, 5, "COMPRESSION", "LZ4", &s), 0);
    assert_int_equal(s.compression, NP_COMPRESS_LZ4);
    assert_int_equal(startup(f, 5, "COMPRESSION", "snappy", &s), -1);
    assert_int_equal(startup(f, 4, "COMPRESSION", "foo", &s), -1);
    assert_string_equal(f->e.text, "Unknown compression algorithm: foo");
    assert_int_equal(startup(f, 4, "CAPACITY", "full", &s), 0);
    assert_true(s.capacity_full);
    assert_int_equal(startup(f, 4, "THROW_ON_OVERLOAD", "1", &s), 0);
    assert_true(s.throw_on_overload);
    assert_int_equal(startup(f, 4, "Compression", "Snappy", &s), 0); /* the keys in any case, as well */
    assert_int_equal(s.compression, NP_COMPRESS_SNAPPY);
    assert_int_equal(startup(f, 4, "NO_COMPACT", "true", &s), 0);
    err_clear(&f->e);
    assert_int_equal(np_startup_decode(4, slice_of("\0\0", 2), &s, &f->e), -1);
    assert_string_equal(f->e.text, "Missing value CQL_VERSION in STARTUP message");
}

static void test_register_events(void **state) {
    struct fixture *f = *state;
    unsigned events;
    buf_u16(&f->body, 2);
    put_string(&f->body, "STATUS_CHANGE"), put_string(&f->body, "schema_Change");
    assert_int_equal(np_register_decode(buf_slice(&f->body), &events, &f->e), 0);
    assert_int_equal(events, NP_EVENT_STATUS | NP_EVENT_SCHEMA);
    buf_clear(&f->body, SIZE_MAX);
    buf_u16(&f->body, 1), put_string(&f->body, "FOO");
    assert_int_equal(np_register_decode(buf_slice(&f->body), &events, &f->e), -1);
    assert_string_equal(f->e.text, "Invalid value 'FOO' for Type");
}

#define TEST(f) cmocka_unit_test_setup_teardown(f, setup, teardown)

int main(void) {
    const struct CMUnitTest tests[] = {
        TEST(test_query_v5_takes_every_parameter),
        TEST(test_query_v4_flags_are_one_byte),
        TEST(test_value_unset_is_null_in_v3),
        TEST(test_value_below_unset_is_refused),
        TEST(test_value_lying_length_is_refused),
        TEST(test_query_text_must_be_utf8),
        TEST(test_consistency_and_page_size_are_checked),
        TEST(test_execute_has_metadata_id_in_v5),
        TEST(test_batch_takes_texts_and_ids),
        TEST(test_batch_lying_count_allocates_nothing),
        TEST(test_payload_asks_for_capacity),
        TEST(test_payload_has_a_trace_context),
        TEST(test_startup_options),
        TEST(test_register_events),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
