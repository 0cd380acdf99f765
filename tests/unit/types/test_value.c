/* Texts, validation errors and tokens of values as Cassandra 5.0.8 gave them. */
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <setjmp.h>
#include <cmocka.h>

#include "base/murmur3.h"
#include "metering/size/size.h"


struct literal_case {
    enum cql_type_id type;
    enum cql_literal kind;
    const char *literal, *json, *error;
};

static const struct literal_case literals[] = {
    {CQL_INT, LIT_INTEGER, "-129", "-129", NULL},
    {CQL_INT, LIT_INTEGER, "2147483648", NULL, "Unable to make int from '2147483648'"},
    {CQL_INT, LIT_STRING, "abc", NULL, "Invalid STRING constant (abc) for \"v\" of type int"},
    {CQL_BIGINT, LIT_INTEGER, "9223372036854775808", NULL, "Unable to make long from '9223372036854775808'"},
    {CQL_BIGINT, LIT_INTEGER, "-9223372036854775808", "-9223372036854775808", NULL},
    {CQL_TINYINT, LIT_INTEGER, "-129", NULL, "Unable to make byte from '-129'"},
    {CQL_SMALLINT, LIT_INTEGER, "32768", NULL, "Unable to make short from '32768'"},
    {CQL_BOOLEAN, LIT_BOOLEAN, "True", "true", NULL},
    {CQL_TIMESTAMP, LIT_STRING, "2011-02-03", "\"2011-02-03 00:00:00.000Z\"", NULL},
    {CQL_TIMESTAMP, LIT_STRING, "2011-02-03 04:05+01:00", "\"2011-02-03 03:05:00.000Z\"", NULL},
    {CQL_TIMESTAMP, LIT_STRING, "2011-02-03T04:05:06.789+0130", "\"2011-02-03 02:35:06.789Z\"", NULL},
    {CQL_TIMESTAMP, LIT_STRING, "2011-02-03 04:05 PST", "\"2011-02-03 12:05:00.000Z\"", NULL},
    {CQL_TIMESTAMP, LIT_STRING, "2011-02-30", "\"2011-02-28 00:00:00.000Z\"", NULL},
    {CQL_TIMESTAMP, LIT_STRING, "2011-02-03 24:00", "\"2011-02-04 00:00:00.000Z\"", NULL},
    {CQL_TIMESTAMP, LIT_STRING, "-2011-02-03", "\"2012-02-03 00:00:00.000Z\"", NULL},
    {CQL_TIMESTAMP, LIT_STRING, "9223372036854775807", "\"+292278994-08-17 07:12:55.807Z\"", NULL},
    {CQL_TIMESTAMP, LIT_INTEGER, "-9223372036854775808", "\"+292275056-05-16 16:47:04.192Z\"", NULL},
    {CQL_TIMESTAMP, LIT_STRING, "2011-2-3", NULL, "Unable to parse a date/time from '2011-2-3'"},
    {CQL_TIMESTAMP, LIT_STRING, "+5", NULL, "Unable to parse a date/time from '+5'"},
    {CQL_DATE, LIT_STRING, "-5877641-06-23", "\"-5877641-06-23\"", NULL},
    {CQL_DATE, LIT_INTEGER, "4294967295", "\"+5881580-07-11\"", NULL},
    {CQL_DATE, LIT_INTEGER, "-1", NULL, "Unable to make unsigned int (for date) from: '-1'"},
    {CQL_DATE, LIT_STRING, "2011-02-30", NULL, "Unable to coerce '2011-02-30' to a formatted date (long)"},
    {CQL_TIME, LIT_STRING, "1:2:3", "\"01:02:03.000000000\"", NULL},
    {CQL_TIME, LIT_INTEGER, "86400000000000", NULL, "Unable to make long (for time) from: '86400000000000'"},
    {CQL_TIME, LIT_STRING, "01:02", NULL, "(TimeType) Unable to coerce '01:02' to a formatted time (long)"},
    {CQL_DURATION, LIT_DURATION, "1y2mo3w4d5h6m7s8ms9us10ns", "\"1y2mo25d5h6m7s8ms9us10ns\"", NULL},
    {CQL_DURATION, LIT_DURATION, "P0001-02-03T04:05:06", "\"1y2mo3d4h5m6s\"", NULL},
    {CQL_DURATION, LIT_DURATION, "-P1D", "\"-1d\"", NULL},
    {CQL_DURATION, LIT_DURATION, "1h2h", NULL, "Invalid duration. The hours are specified multiple times"},
    {CQL_DURATION, LIT_DURATION, "2m1h", NULL, "Invalid duration. The minutes should be after hours"},
    {CQL_DURATION, LIT_INTEGER, "-129", NULL, "Unable to convert '129' to a duration"},
    {CQL_DURATION, LIT_DURATION, "9999999999999y", NULL,
     "Invalid duration. The total number of months must be less or equal to 2147483647"},
    {CQL_DURATION, LIT_DURATION, "18446744073709551616ns", NULL,
     "Invalid duration. The total number of nanoseconds must be less or equal to 9223372036854775807"},
    {CQL_DURATION, LIT_DURATION, "184467440737095516160000001h", NULL,
     "Invalid duration. The total number of nanoseconds must be less or equal to 9223372036854775807"},
    {CQL_INET, LIT_STRING, "2001:db8::1", "\"2001:db8:0:0:0:0:0:1\"", NULL},
    {CQL_INET, LIT_STRING, "::ffff:1.2.3.4", "\"1.2.3.4\"", NULL},
    {CQL_INET, LIT_STRING, "1.2.3", "\"1.2.0.3\"", NULL},
    {CQL_INET, LIT_STRING, "256.0.0.1", NULL, "Unable to make inet address from '256.0.0.1'"},
    {CQL_TIMEUUID, LIT_UUID, "123e4567-e89b-42d3-a456-426655440000", NULL, "TimeUUID supports only version 1 UUIDs"},
    {CQL_DECIMAL, LIT_FLOAT, "1e10", "1E+10", NULL},
    {CQL_DECIMAL, LIT_FLOAT, "0.0000001", "1E-7", NULL},
    {CQL_DECIMAL, LIT_FLOAT, "12e7", "1.2E+8", NULL},
    {CQL_DECIMAL, LIT_FLOAT, "1e-2147483647", "1E-2147483647", NULL},
    {CQL_DECIMAL, LIT_FLOAT, "NaN", NULL, "unable to make BigDecimal from 'NaN'"},
    {CQL_FLOAT, LIT_FLOAT, "123456.789", "123456.79", NULL},
    {CQL_FLOAT, LIT_FLOAT, "1.4e-45", "1.4E-45", NULL},
    {CQL_FLOAT, LIT_INTEGER, "9999999", "9999999.0", NULL},
    {CQL_FLOAT, LIT_FLOAT, "1e7", "1.0E7", NULL},
    {CQL_DOUBLE, LIT_FLOAT, "0.00099", "9.9E-4", NULL},
    {CQL_DOUBLE, LIT_FLOAT, "5e-324", "4.9E-324", NULL},
    {CQL_DOUBLE, LIT_FLOAT, "NaN", "null", NULL},
    {CQL_VARINT, LIT_INTEGER, "-123456789012345678901234567890", "-123456789012345678901234567890", NULL},
    {CQL_BLOB, LIT_HEX, "0xfF", "\"0xff\"", NULL},
    {CQL_BLOB, LIT_HEX, "0xf", NULL, "cannot parse 'f' as hex bytes"},
    {CQL_ASCII, LIT_STRING, "\xC3\xA9", NULL,
     "Invalid ASCII character in string literal: java.nio.charset.UnmappableCharacterException: Input length = 1"},
};

static void test_literal_reads_and_prints_as_cassandra(void **state) {
    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(literals); i++) {
        const struct literal_case *k = &literals[i];
        const struct cql_type *t = cql_type_scalar(k->type);
        struct buf wire, json;
        struct err e = {0};
        buf_init(&wire, 0);
        buf_init(&json, 0);
        int rc = cql_literal_parse(t, k->kind, slice_str(k->literal), "v", (struct cql_reading){0}, &wire, &e);
        if (k->error) {
            assert_int_equal(-1, rc);
            assert_string_equal(k->error, e.text);
        } else {
            assert_int_equal(0, rc);
            assert_int_equal(0, cql_value_validate(t, buf_slice(&wire), &e));
            cql_value_json(t, value_of_slice(buf_slice(&wire)), &json);
            buf_u8(&json, 0);
            assert_string_equal(k->json, (char *)json.p);
        }
        buf_fini(&wire);
        buf_fini(&json);
    }
}

struct bad_wire {
    const char *type;
    const char *bytes;
    size_t n;
    const char *error;
};

static const struct bad_wire bad_wires[] = {
    {"int", "\1\2\3", 3, "Expected 4 or 0 byte int (3)"},
    {"smallint", "", 0, "Expected 2 bytes for a smallint (0)"},
    {"ascii", "a\xFF", 2, "Invalid byte for ascii: -1"},
    {"text", "\xC3\x28", 2, "String didn't validate."},
    {"duration", "\1\2\3\4", 4, "The duration months, days and nanoseconds must be all of the same sign (-1, 1, -2)"},
    {"inet", "\0\1", 2, "Expected 4 or 16 byte inetaddress; got 0001"},
    {"timeuuid", "1234567890123456", 16, "Invalid version for TimeUUID type: 0x3"},
    {"list<int>", "\0\0\0\2\0\0\0\4\0\0\0\1", 12, "Not enough bytes to read a list"},
    {"list<int>", "\xFF\xFF\xFF\xFF", 4, "The data cannot be deserialized as a list"},
    {"set<int>", "\0\0\0\0\0", 5, "Unexpected extraneous bytes after set value"},
    {"map<int, text>", "\x7F\xFF\xFF\xFF\xFF\xFF\xFF\xFF", 8, "Null value read when not allowed"},
    {"tuple<int, text>", "\0\0\0\1", 4, "Not enough bytes to read 0th component"},
    {"vector<float, 3>", "\0\0\0\0", 4, "Not enough bytes to read a vector<float, 3>"},
    {"vector<smallint, 2>", "\0\1\0\1", 4, "Expected 2 bytes for a smallint (0)"},
    {"vector<smallint, 2>", "\2\0\1", 3, "Not enough bytes to read a vector<smallint, 2>"},
    {"vector<tinyint, 2>", "\1\1", 2, "Not enough bytes to read a vector<tinyint, 2>"},
    {"vector<date, 2>", "\4\x80\0\0\1\4\x80\0\0\1\0", 11, "Unexpected 1 extraneous bytes after vector<date, 2> value"},
    {"vector<time, 2>", "\0\0", 2, "Expected 8 byte long for time (0)"},
    {"vector<float, 3>", "0123456789abcd", 14, "Unexpected 2 extraneous bytes after vector<float, 3> value"},
};

static void test_validate_refuses_in_the_words_of_cassandra(void **state) {
    (void)state;
    struct arena a;
    arena_init(&a, 4096, 1 << 20);
    for (size_t i = 0; i < ARRAY_LEN(bad_wires); i++) {
        struct err e = {0};
        const struct cql_type *t = cql_type_parse(&a, slice_str(bad_wires[i].type), NULL, NULL, NULL, &e);
        assert_non_null(t);
        assert_int_equal(-1, cql_value_validate(t, slice_of(bad_wires[i].bytes, bad_wires[i].n), &e));
        assert_string_equal(bad_wires[i].error, e.text);
    }
    arena_fini(&a);
}

/* Text is looked at several bytes at a time: each sequence at each place of texts of each length. */
static void test_a_utf8_sequence_is_checked_at_every_position_of_a_text(void **state) {
    (void)state;
    static const struct {
        const char *bytes;
        bool is_valid;
    } sequences[] = {{"\xC3\xA9", true},      {"\xE2\x82\xAC", true},  {"\xF0\x9F\x98\x80", true}, {"\x80", false},
                     {"\xC0\x80", false},     {"\xED\xA0\x80", false}, {"\xE2\x82", false},         {"\xFF", false},
                     {"\xC3\xA9\xA9", false}, {"\xC3\xA9\xE2\x82\xAC", true}};
    enum { LONGEST = 40 };
    for (size_t k = 0; k < ARRAY_LEN(sequences); k++) {
        size_t size = strlen(sequences[k].bytes);
        for (size_t n = size; n <= LONGEST; n++)
            for (size_t at = 0; at + size <= n; at++) {
                char text[LONGEST]; /* AddressSanitizer sees what is read beside it */
                struct err e = {0};
                memset(text, 'a', sizeof(text));
                memcpy(text + sizeof(text) - n + at, sequences[k].bytes, size);
                int rc = cql_value_validate(cql_type_scalar(CQL_TEXT), slice_of(text + sizeof(text) - n, n), &e);
                assert_int_equal(rc, sequences[k].is_valid ? 0 : -1);
            }
    }
}

/* Recorded from Cassandra: only elements whose width it promises stand without a length. */
static const struct {
    const char *type, *json, *hex;
} vectors[] = {
    {"vector<bigint, 2>", "[1, 2]", "00000000000000010000000000000002"},
    {"vector<boolean, 2>", "[true, false]", "0100"},
    {"vector<double, 1>", "[1]", "3ff0000000000000"},
    {"vector<float, 2>", "[1, 1]", "3f8000003f800000"},
    {"vector<int, 2>", "[1, 2]", "0000000100000002"},
    {"vector<timestamp, 1>", "[\"1970-01-01 00:00:00.001Z\"]", "0000000000000001"},
    {"vector<uuid, 1>", "[\"123e4567-e89b-12d3-a456-426614174000\"]", "123e4567e89b12d3a456426614174000"},
    {"vector<timeuuid, 1>", "[\"123e4567-e89b-12d3-a456-426614174000\"]", "123e4567e89b12d3a456426614174000"},
    {"vector<tinyint, 2>", "[1, 2]", "01010102"},
    {"vector<smallint, 2>", "[1, 1]", "020001020001"},
    {"vector<date, 2>", "[\"2020-01-01\", \"2020-01-02\"]", "04800047560480004757"},
    {"vector<time, 1>", "[\"00:00:01\"]", "08000000003b9aca00"},
    {"vector<counter, 1>", "[1]", "080000000000000001"},
    {"vector<varint, 2>", "[1, 256]", "0101020100"},
    {"vector<decimal, 1>", "[1.5]", "05000000010f"},
    {"vector<text, 2>", "[\"a\", \"\"]", "016100"},
    {"vector<blob, 1>", "[\"0x01\"]", "0101"},
    {"vector<inet, 1>", "[\"127.0.0.1\"]", "047f000001"},
    {"vector<duration, 1>", "[\"1d\"]", "03000200"},
    {"vector<frozen<list<int>>, 1>", "[[1]]", "0c000000010000000400000001"},
    {"vector<tuple<int, int>, 1>", "[[1, 2]]", "1000000004000000010000000400000002"},
    {"vector<vector<int, 2>, 2>", "[[1, 2], [3, 4]]", "00000001000000020000000300000004"},
    {"vector<vector<smallint, 2>, 2>", "[[1, 2], [3, 4]]", "0602000102000206020003020004"},
    {"vector<vector<vector<tinyint, 2>, 2>, 1>", "[[[1, 2], [3, 4]]]", "0a04010101020401030104"},
};

static void test_a_vector_writes_lengths_before_elements_of_no_promised_width(void **state) {
    (void)state;
    struct arena a;
    arena_init(&a, 4096, 1 << 20);
    for (size_t i = 0; i < ARRAY_LEN(vectors); i++) {
        struct err e = {0};
        struct buf wire, hex;
        buf_init(&wire, 0);
        buf_init(&hex, 0);
        const struct cql_type *t = cql_type_parse(&a, slice_str(vectors[i].type), NULL, NULL, NULL, &e);
        assert_non_null(t);
        if (cql_value_from_json(t, slice_str(vectors[i].json), (struct cql_reading){0}, &wire, &e) != 0)
            fail_msg("%s: %s", vectors[i].type, e.text);
        cql_value_text(cql_type_scalar(CQL_BLOB), buf_slice(&wire), &hex);
        assert_true(slice_is(buf_slice(&hex), vectors[i].hex));
        assert_int_equal(0, cql_value_validate(t, buf_slice(&wire), &e));
        buf_fini(&wire);
        buf_fini(&hex);
    }
    arena_fini(&a);
}

/* A NUL byte is part of the text, and no type but text and ascii has texts with one. */
static void test_a_nul_byte_does_not_end_a_text(void **state) {
    (void)state;
    static const struct {
        enum cql_type_id type;
        const char *text;
    } rows[] = {{CQL_BIGINT, "5"},          {CQL_INT, "5"},
                {CQL_SMALLINT, "5"},        {CQL_TINYINT, "5"},
                {CQL_VARINT, "5"},          {CQL_DECIMAL, "5"},
                {CQL_DOUBLE, "5"},          {CQL_FLOAT, "5"},
                {CQL_BOOLEAN, "true"},      {CQL_UUID, "00000000-0000-0000-0000-000000000000"},
                {CQL_INET, "1.2.3.4"},      {CQL_TIMEUUID, "00000000-0000-1000-8000-000000000000"},
                {CQL_INET, "::1"},          {CQL_TIMESTAMP, "2024-01-01"},
                {CQL_DATE, "2024-01-01"},   {CQL_TIMESTAMP, "2024-01-01 10:00:00 UTC"},
                {CQL_TIME, "10:00:00"},     {CQL_TIMESTAMP, "now"},
                {CQL_DURATION, "1mo2d"},    {CQL_BLOB, "0x00"},
                {CQL_TEXT, "ab"}};
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        const struct cql_type *t = cql_type_scalar(rows[i].type);
        const char *text = rows[i].text;
        for (int nul = 0; nul < 2; nul++) {
            bool taken = !nul || rows[i].type == CQL_TEXT;
            char json[80], literal[80];
            size_t n = (size_t)snprintf(literal, sizeof literal, "%s%cz", text, 0) - 2 + (nul ? 2 : 0);
            snprintf(json, sizeof json, nul ? "\"%s\\u0000z\"" : "\"%s\"", text);
            struct err e = {0};
            struct buf wire;
            buf_init(&wire, 0);
            assert_int_equal(cql_value_from_json(t, slice_str(json),
                                                 (struct cql_reading){0}, &wire, &e), taken ? 0 : -1);
            buf_clear(&wire, 0);
            err_clear(&e);
            /* Only a quoted literal may hold a NUL byte. */
            bool quoted = cql_literal_fits(t, LIT_STRING);
            int rc = quoted ? cql_literal_parse(t, LIT_STRING, slice_of(literal, n), "v",
                                                (struct cql_reading){0}, &wire, &e) : 0;
            assert_int_equal(rc, taken || !quoted ? 0 : -1);
            if (nul && taken) assert_true(slice_eq(buf_slice(&wire), slice_of("ab\0z", 4)));
            buf_fini(&wire);
        }
    }
}

static void test_keys_of_a_map_in_json_differ_after_a_nul_byte(void **state) {
    (void)state;
    struct arena a;
    struct err e = {0};
    struct buf wire;
    struct cql_elems it;
    arena_init(&a, 4096, 1 << 20);
    buf_init(&wire, 0);
    const struct cql_type *t = cql_type_parse(&a, slice_str("map<text, int>"), NULL, NULL, NULL, &e);
    assert_non_null(t);
    assert_int_equal(cql_value_from_json(t, slice_str("{\"x\\u0000a\": 1, \"x\\u0000b\": 2}"),
                                         (struct cql_reading){0}, &wire, &e), 0);
    assert_int_equal(cql_elems_open(t, buf_slice(&wire), &it), 0);
    assert_int_equal(it.left, 4);
    buf_fini(&wire);
    arena_fini(&a);
}

/* Half of a surrogate pair has no form in UTF-8; Java writes a question mark. */
static void test_escape_sequences_of_json(void **state) {
    (void)state;
    static const char *const rows[][2] = {
        {"\\u00e9\\u20AC\\ud83d\\ude00", "\xC3\xA9\xE2\x82\xAC\xF0\x9F\x98\x80"},
        {"\\\"\\\\\\/\\b\\f\\n\\r\\t\\u007F", "\"\\/\b\f\n\r\t\x7F"},
        {"\\ude00x", "?x"},
        {"\\ud83dx", "?x"},
        {"\\ud83d", "?"},
        {"\\ud83d\\n\\ude00", "?\n?"},
        {"\\ud83d\\u0041", "?A"},
        {"\\ud83d\\ud83d\\ude00", "?\xF0\x9F\x98\x80"},
        {"\\uFFFF\\udbff\\udfff", "\xEF\xBF\xBF\xF4\x8F\xBF\xBF"},
    };
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        struct err e = {0};
        struct buf json, wire;
        buf_init(&json, 0);
        buf_init(&wire, 0);
        buf_printf(&json, "\"%s\"", rows[i][0]);
        assert_int_equal(cql_value_from_json(cql_type_scalar(CQL_TEXT), buf_slice(&json),
                                             (struct cql_reading){0}, &wire, &e), 0);
        assert_true(slice_is(buf_slice(&wire), rows[i][1]));
        buf_fini(&json);
        buf_fini(&wire);
    }
}

static void test_type_names_round_trip(void **state) {
    (void)state;
    static const char *const names[] = {
        "int",
        "frozen<list<frozen<set<text>>>>",
        "map<text, frozen<list<int>>>",
        "frozen<tuple<int, text>>",
        "vector<float, 3>",
        "'org.apache.cassandra.db.marshal.LexicalUUIDType'",
        "list<'org.apache.cassandra.db.marshal.CompositeType(org.apache.cassandra.db.marshal.Int32Type)'>",
        "'org.apache.cassandra.db.marshal.DynamicCompositeType(a=>org.apache.cassandra.db.marshal.UTF8Type,"
        "b=>org.apache.cassandra.db.marshal.LongType,p=>org.apache.cassandra.db.marshal.Int32Type)'",
        "'org.apache.cassandra.db.marshal.PartitionerDefinedOrder(org.apache.cassandra.dht.Murmur3Partitioner)'",
        "'org.apache.cassandra.db.marshal.EmptyType'",
        "frozen<tuple<'org.apache.cassandra.db.marshal.LegacyTimeUUIDType'>>"};
    static const char marshal[] = "org.apache.cassandra.db.marshal.";
    struct arena a;
    struct err e = {0};
    arena_init(&a, 4096, 1 << 20);
    for (size_t i = 0; i < ARRAY_LEN(names); i++) {
        struct buf out;
        buf_init(&out, 0);
        cql_type_print_stored(cql_type_parse(&a, slice_str(names[i]), NULL, NULL, NULL, &e), &out);
        assert_true(slice_is(buf_slice(&out), names[i]));
        buf_fini(&out);
    }
    assert_null(cql_type_parse(&a, slice_str("list<list<int>>"), NULL, NULL, NULL, &e));
    assert_string_equal("Non-frozen collections are not allowed inside collections: list<list<int>>", e.text);
    struct buf option;
    buf_init(&option, 0);
    cql_type_write_option(cql_type_scalar(CQL_DURATION), 4, &option);
    assert_int_equal(0, load_u16(option.p));
    assert_int_equal(option.n - 4, load_u16(option.p + 2));
    assert_memory_equal(marshal, option.p + 4, sizeof marshal - 1);
    buf_clear(&option, SIZE_MAX);
    cql_type_write_option(cql_type_scalar(CQL_DURATION), 5, &option);
    assert_int_equal(0x15, load_u16(option.p));
    buf_fini(&option);
    arena_fini(&a);
}

static void test_size_of_numbers_follows_the_model(void **state) {
    (void)state;
    static const struct {
        uint8_t low;
        uint64_t current;
    } cases[] = {{5, 2}, {12, 2}, {123, 3}, {120, 2}};
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        uint8_t wire[4] = {0, 0, 0, cases[i].low};
        assert_int_equal(4, cql_value_size(cql_type_scalar(CQL_INT), SIZE_DOCUMENTED_2022, value_of(wire, 4)));
        assert_int_equal(cases[i].current, cql_value_size(cql_type_scalar(CQL_INT), SIZE_CURRENT, value_of(wire, 4)));
    }
}

static void test_token_equals_the_partitioner(void **state) {
    (void)state;
    assert_int_equal(INT64_C(-4069959284402364209), murmur3_token(slice_of("\0\0\0\1", 4)));
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_literal_reads_and_prints_as_cassandra),
                                       cmocka_unit_test(test_validate_refuses_in_the_words_of_cassandra),
                                       cmocka_unit_test(test_a_utf8_sequence_is_checked_at_every_position_of_a_text),
                                       cmocka_unit_test(
                                           test_a_vector_writes_lengths_before_elements_of_no_promised_width),
                                       cmocka_unit_test(test_a_nul_byte_does_not_end_a_text),
        cmocka_unit_test(test_keys_of_a_map_in_json_differ_after_a_nul_byte),
        cmocka_unit_test(test_escape_sequences_of_json), cmocka_unit_test(test_type_names_round_trip),
                                       cmocka_unit_test(test_size_of_numbers_follows_the_model),
                                       cmocka_unit_test(test_token_equals_the_partitioner)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
