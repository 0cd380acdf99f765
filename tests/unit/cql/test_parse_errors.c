/* A syntax error names line, column and offending text, what was expected if only one token can
 * stand there, and the text before it. */
#include "tests/unit/cql/parse_support.h"

static char *statement;

static void check_pair(char *line) {
    if (!statement) {
        statement = strdup(line);
        return;
    }
    struct parsed *r = parse_text(slice_str(statement));
    if (r->stmt) fail_msg("parsed: %s", statement);
    assert_int_equal(r->err.code, ERR_SYNTAX);
    if (strcmp(r->err.text, line)) fail_msg("%s\n  want %s\n  got  %s", statement, line, r->err.text);
    parsed_free(r);
    free(statement);
    statement = NULL;
}

static void test_parse_error_texts(void **state) {
    (void)state;
    assert_true(each_line("syntax_errors.txt", check_pair) > 120);
    assert_null(statement);
}

static void refused(const char *text, enum err_code code, const char *want) {
    struct parsed *r = parse_text(slice_str(text));
    if (r->stmt) fail_msg("parsed: %s", text);
    assert_int_equal(r->err.code, code);
    assert_string_equal(r->err.text, want);
    parsed_free(r);
}

/* It is told behind what is wrong with the table. */
static void test_parse_notes_that_columns_and_values_do_not_match(void **state) {
    (void)state;
    static const char *const texts[] = {"INSERT INTO t (a, b) VALUES (1)", "INSERT INTO t (a) VALUES (1, 2)"};
    for (size_t i = 0; i < ARRAY_LEN(texts); i++) {
        struct parsed *r = parse_text(slice_str(texts[i]));
        assert_non_null(r->stmt);
        assert_true(r->stmt->insert.unmatched);
        assert_int_equal(r->stmt->insert.n_columns, 1);
        parsed_free(r);
    }
}

static void test_parse_error_of_nested_property_maps(void **state) {
    (void)state;
    refused("CREATE TABLE t (a int PRIMARY KEY) WITH compaction = {'a': {'b': 'c'}}", ERR_SYNTAX,
            "Invalid property value: {'b': 'c'} for property: 'a'");
}

/* Any term can stand in a property's map; all but literals are refused, and an error quotes them as terms. */
static void test_parse_error_of_terms_in_property_maps(void **state) {
    (void)state;
    refused("CREATE KEYSPACE k WITH replication = {'class': null}", ERR_SYNTAX,
            "Invalid property value: NULL for property: 'class'");
    refused("ALTER TABLE t WITH compression = {'a''b': [1, 'x''y']}", ERR_SYNTAX,
            "Invalid property value: [1, 'x'y'] for property: 'a'b'");
    refused("ALTER TABLE t WITH compression = {'a': {'x''y': 1 + 1}}", ERR_SYNTAX,
            "Invalid property value: {'x'y': system.\"_add\"(1, 1)} for property: 'a'");
    refused("ALTER TABLE t WITH compression = {:m: 1}", ERR_SYNTAX,
            "Invalid property name: ? (bind variables are not supported in DDL queries)");
    refused("ALTER TABLE t WITH custom_properties = {'a': {'b': now()}}", ERR_SYNTAX,
            "Invalid property value: now() for property: 'b'");
    refused("CREATE ROLE r WITH OPTIONS = {'a': ?}", ERR_SYNTAX,
            "Invalid property value: ? for property: 'a' (bind variables are not supported in DDL queries)");
    refused("ALTER TABLE t ADD TAGS {'a': ?}", ERR_SYNTAX,
            "Invalid property value: ? for property: 'a' (bind variables are not supported in DDL queries)");
    refused("ALTER KEYSPACE k DROP TAGS {'a': 1, 'a': 1}", ERR_SYNTAX, "Multiple definition for property a");
}

/* n times what opens a level, in a statement that would be right otherwise. */
static void nested(const char *before, const char *open, size_t n) {
    size_t len = strlen(before), each = strlen(open);
    char *text = malloc(len + n * each);
    assert_non_null(text);
    memcpy(text, before, len);
    for (size_t i = 0; i < n; i++) memcpy(text + len + i * each, open, each);
    struct parsed *r = parse_text(slice_of(text, len + n * each));
    assert_null(r->stmt);
    assert_int_equal(r->err.code, ERR_SYNTAX);
    assert_non_null(strstr(r->err.text, "nested too deeply"));
    parsed_free(r);
    free(text);
}

static void test_parse_error_of_hostile_nesting(void **state) {
    (void)state;
    nested("INSERT INTO t (a) VALUES (", "[", 5000);
    nested("INSERT INTO t (a) VALUES (", "(", 5000);
    nested("INSERT INTO t (a) VALUES (", "f(", 5000);
    nested("INSERT INTO t (a) VALUES (1", "+1", 5000);
    nested("SELECT a", ".b", 5000);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_parse_error_texts),
        cmocka_unit_test(test_parse_notes_that_columns_and_values_do_not_match),
        cmocka_unit_test(test_parse_error_of_nested_property_maps),
        cmocka_unit_test(test_parse_error_of_terms_in_property_maps),
        cmocka_unit_test(test_parse_error_of_hostile_nesting),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
