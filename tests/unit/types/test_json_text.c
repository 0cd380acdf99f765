/* Which texts are JSON, and what the errors say. */
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <setjmp.h>
#include <cmocka.h>

#include "types/json_text.h"

/* The text lies at the end of a block of its own, so that a read behind it is seen. */
static int check(const char *text, size_t n, struct slice *value, struct err *e) {
    uint8_t *copy = malloc(n + 1);
    assert_non_null(copy);
    memcpy(copy + 1, text, n);
    int rc = cql_json_check(slice_of(copy + 1, n), value, e);
    if (rc == 0) value->p = (const uint8_t *)text + (value->p - copy - 1);
    free(copy);
    return rc;
}

static void test_text_after_the_value_is_ignored(void **state) {
    (void)state;
    static const char *const rows[][2] = {{" {\"a\": [1, -2.5e+3, null]} x", "{\"a\": [1, -2.5e+3, null]}"},
                                          {"\"\\u00e9\\n\" ]", "\"\\u00e9\\n\""},
                                          {"0 1", "0"},
                                          {"true", "true"},
                                          {"[]]", "[]"}};
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        struct err e = {0};
        struct slice value;
        assert_int_equal(check(rows[i][0], strlen(rows[i][0]), &value, &e), 0);
        assert_true(slice_eq(value, slice_str(rows[i][1])));
    }
}

static void test_refusals_name_the_place(void **state) {
    (void)state;
    static const char *const rows[][2] = {
        {"[1,\n  x]", "expected a value at line 2, column 3"},
        {"", "the text ends too early at line 1, column 1"},
        {"01", "a number must not begin with further zeroes at line 1, column 2"},
        {"1x", "expected a space after the number at line 1, column 2"},
        {"{\"\xC3\xA9\" 1}", "expected a colon at line 1, column 6"},
        {"{\"a\": tru}", "expected a value at line 1, column 7"},
        {"[\"\\x\"]", "unknown escape sequence at line 1, column 4"},
        {"[1 2]", "expected a comma or ] at line 1, column 4"},
        {"[1,]", "expected a value at line 1, column 4"},
    };
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        struct err e = {0};
        struct slice value;
        assert_int_equal(check(rows[i][0], strlen(rows[i][0]), &value, &e), -1);
        assert_string_equal(e.text, rows[i][1]);
    }
}

static void test_every_cut_of_a_text_is_refused(void **state) {
    (void)state;
    static const char text[] = "{\"a\": [1.5e-3, \"\\u12aB\\\\\", {\"b\": true}, -7], \"c\": \"\xE2\x82\xAC\"}";
    for (size_t n = 0; n < sizeof text - 1; n++) {
        struct err e = {0};
        struct slice value;
        assert_int_equal(check(text, n, &value, &e), -1);
    }
}

static void test_nesting_is_bounded(void **state) {
    (void)state;
    char text[2 * JSON_DEPTH_MAX + 2];
    struct slice value;
    struct err e = {0};
    memset(text, '[', JSON_DEPTH_MAX + 1);
    memset(text + JSON_DEPTH_MAX + 1, ']', JSON_DEPTH_MAX + 1);
    assert_int_equal(check(text, sizeof text, &value, &e), -1);
    err_clear(&e);
    assert_int_equal(check(text + 1, sizeof text - 2, &value, &e), 0);
}

/* "[m,m,...]" of n members; the caller frees it. */
static char *array_of(const char *member, size_t n) {
    size_t m = strlen(member);
    char *text = malloc(n * (m + 1) + 2), *at = text;
    assert_non_null(text);
    *at++ = '[';
    for (size_t i = 0; i < n; i++) {
        at = mempcpy(at, member, m);
        *at++ = i + 1 < n ? ',' : ']';
    }
    *at = 0;
    return text;
}

/* What a client may make the reader hold is bounded by the number of values, as well as by the text. */
static void test_values_are_counted_wherever_they_stand(void **state) {
    (void)state;
    static const struct {
        const char *member;
        size_t values; /* in a member */
    } shapes[] = {{"1", 1}, {"\"\"", 1}, {"[]", 1}, {"[null]", 2}, {"{\"a\":0}", 3}, {"[[],{}]", 3}};
    for (size_t i = 0; i < ARRAY_LEN(shapes); i++) {
        size_t most = (JSON_VALUES_MAX - 1) / shapes[i].values;
        for (int over = 0; over < 2; over++) {
            char *text = array_of(shapes[i].member, most + (size_t)over);
            struct slice value;
            struct err e = {0};
            assert_int_equal(check(text, strlen(text), &value, &e), over ? -1 : 0);
            if (over) assert_non_null(strstr(e.text, "JSON may not hold more than 524288 values"));
            free(text);
        }
    }
}

/* The members of an object, whatever its strings and values contain. */
static void test_members_of_an_object_are_read_one_by_one(void **state) {
    (void)state;
    static const char text[] = " {\"a\": 1 , \"b,}\":[{\"c\":\"]\\\"}\"}, 2],\n\"\" : {} ,\"n\":null}, 7";
    static const struct { const char *name, *value;
    } wanted[] = {{"\"a\"", "1"}, {"\"b,}\"", "[{\"c\":\"]\\\"}\"}, 2]"}, {"\"\"", "{}"}, {"\"n\"", "null"}};
    struct slice object, name, value;
    struct err e = {0};
    assert_int_equal(cql_json_check(slice_str(text), &object, &e), 0);
    struct rd rest = rd_of(object);
    for (size_t i = 0; i < ARRAY_LEN(wanted); i++) {
        assert_true(cql_json_member(&rest, &name, &value));
        assert_true(slice_is(name, wanted[i].name) && slice_is(value, wanted[i].value));
    }
    assert_false(cql_json_member(&rest, &name, &value));
    rest = rd_of(slice_str("{ }"));
    assert_false(cql_json_member(&rest, &name, &value));
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_text_after_the_value_is_ignored), cmocka_unit_test(test_refusals_name_the_place),
        cmocka_unit_test(test_every_cut_of_a_text_is_refused), cmocka_unit_test(test_nesting_is_bounded),
        cmocka_unit_test(test_values_are_counted_wherever_they_stand),
        cmocka_unit_test(test_members_of_an_object_are_read_one_by_one)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
