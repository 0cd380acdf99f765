#include "tests/unit/cql/parse_support.h"

#include "cql/syntax/build.h"
#include "cql/syntax/grammar.h"

static void expect(const char *text, size_t n, const uint16_t *codes) {
    struct token_reader r;
    struct err *e = calloc(1, sizeof(*e));
    assert_non_null(e);
    token_reader_init(&r, slice_str(text), e);
    for (size_t i = 0; i < n; i++) {
        struct token t = token_next(&r);
        if (t.code != codes[i])
            fail_msg("%s: token %zu is %s, not %s", text, i, token_name(t.code), token_name(codes[i]));
    }
    assert_int_equal(token_next(&r).code, 0);
    free(e);
}
#define EXPECT(text, ...) expect((text), ARRAY_LEN(((const uint16_t[]){__VA_ARGS__})), (const uint16_t[]){__VA_ARGS__})

static void test_token_of_a_number_includes_its_sign(void **state) {
    (void)state;
    EXPECT("a-1", T_IDENT, T_INTEGER);
    EXPECT("a - 1", T_IDENT, T_MINUS, T_INTEGER);
    EXPECT("-1.5 1e3 1.5E-3 1.", T_FLOAT, T_FLOAT, T_FLOAT, T_FLOAT);
    EXPECT("1..2", T_INTEGER, T_RANGE, T_INTEGER);
    EXPECT("NaN -nan Infinity -INFINITY", T_POSITIVE_NAN, T_NEGATIVE_NAN, T_POSITIVE_INFINITY, T_NEGATIVE_INFINITY);
    EXPECT("a += 1 -= 2", T_IDENT, T_PLUS_EQ, T_INTEGER, T_MINUS_EQ, T_INTEGER);
}

static void test_token_uuid_comes_before_numbers_and_names(void **state) {
    (void)state;
    EXPECT("123e4567-e89b-12d3-a456-426614174000", T_UUID);
    EXPECT("abcdef01-e89b-12d3-a456-426614174000", T_UUID);
    EXPECT("0xCAFE 0x", T_HEX, T_HEX);
    EXPECT("12345678,123456789-1", T_INTEGER, T_COMMA, T_INTEGER, T_INTEGER);
    EXPECT("-12345678-1", T_INTEGER, T_INTEGER);
}

static void test_token_durations(void **state) {
    (void)state;
    EXPECT("1y2mo3w4d5h6m7s8ms9us1ns", T_DURATION);
    EXPECT("-2d 3\xc2\xb5s", T_DURATION, T_DURATION);
    EXPECT("P1Y2M3DT4H5M6S PT1H P2W -P1D P0001-02-03T04:05:06", T_DURATION, T_DURATION, T_DURATION, T_DURATION,
           T_DURATION);
    EXPECT("P1Yx p1y P", T_IDENT, T_IDENT, T_IDENT);
}

static void test_token_strings_and_names(void **state) {
    (void)state;
    EXPECT("'it''s' $$a $ 'b'$$ \"Q\"\"\" \"\" expr(", T_STRING, T_STRING, T_QNAME, T_EMPTY_NAME, T_EXPR);
    EXPECT("a /* b */ -- c\n // d\n e", T_IDENT, T_IDENT);
    EXPECT("/* a */-- b\n- /- /**/ /", T_MINUS, T_SLASH, T_MINUS, T_SLASH);
    struct arena a;
    arena_init(&a, 256, 0);
    assert_true(slice_is(token_unquote(&a, slice_str("'it''s'")), "it's"));
    assert_true(slice_is(token_unquote(&a, slice_str("\"A\"\"\"")), "A\""));
    assert_true(slice_is(token_unquote(&a, slice_str("$$it's$$")), "it's"));
    arena_fini(&a);
}

/* keyword.def is sorted, and what it calls free is what the grammar takes as an identifier. */
static void test_token_keywords_fall_back_unless_reserved(void **state) {
    (void)state;
    static const struct {
        const char *word;
        uint16_t code;
        bool reserved;
    } rows[] = {
#define KEYWORD(word, token, reserved) {word, T_##token, reserved},
#include "cql/syntax/keyword.def"
#undef KEYWORD
    };
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        if (i) assert_true(strcmp(rows[i - 1].word, rows[i].word) < 0);
        assert_int_equal(token_keyword(slice_str(rows[i].word)), i + 1);
        assert_int_equal(token_word_is_free(slice_str(rows[i].word)), !rows[i].reserved);
        bool name = rows[i].code == T_IDENT || cqli_falls_back(rows[i].code);
        if (name == rows[i].reserved) fail_msg("%s", rows[i].word);
    }
}

/* A word is a keyword in any case, and nothing that begins one, goes on behind one, or differs in its last letters. */
static void test_token_keywords_are_whole_words(void **state) {
    (void)state;
    static const char *const words[] = {
#define KEYWORD(word, token, reserved) word,
#include "cql/syntax/keyword.def"
#undef KEYWORD
    };
    static const char *const others[] = {
        "", "a", "aa", "zz", "selec", "selects", "tablesample", "columnfamiliez", "materializes", "materialized_views"};
    for (size_t i = 0; i < ARRAY_LEN(words); i++) {
        char word[32];
        size_t n = strlen(words[i]);
        for (size_t k = 0; k <= n; k++)
            word[k] = (char)(words[i][k] >= 'a' && words[i][k] <= 'z' && k % 2 ? words[i][k] - 32 : words[i][k]);
        assert_int_equal(token_keyword(slice_of(word, n)), i + 1);
        word[n] = '_';
        assert_int_equal(token_keyword(slice_of(word, n + 1)), 0);
        word[n - 1] = (char)(word[n - 1] ^ 0x80);
        assert_int_equal(token_keyword(slice_of(word, n)), 0);
    }
    for (size_t i = 0; i < ARRAY_LEN(others); i++) assert_int_equal(token_keyword(slice_str(others[i])), 0);
}

static void test_token_place_counts_characters(void **state) {
    (void)state;
    struct slice text = slice_str("a\n\xc3\xa9\xc3\xa9 b");
    struct token_place pl = token_place(text, text.p + text.n - 1);
    assert_int_equal(pl.line, 2);
    assert_int_equal(pl.column, 3);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_token_of_a_number_includes_its_sign),
        cmocka_unit_test(test_token_uuid_comes_before_numbers_and_names),
        cmocka_unit_test(test_token_durations),
        cmocka_unit_test(test_token_strings_and_names),
        cmocka_unit_test(test_token_keywords_fall_back_unless_reserved),
        cmocka_unit_test(test_token_keywords_are_whole_words),
        cmocka_unit_test(test_token_place_counts_characters),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
