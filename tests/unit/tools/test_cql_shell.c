/* tally cql without a server: where statements and commands end, how rows are laid out, what TAB
 * offers. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include <locale.h>
#include <string.h>

#include "tools/tally/cql/cell.h"
#include "tools/tally/cql/complete.h"
#include "tools/tally/cql/grid.h"
#include "tools/tally/cql/split.h"
#include "tools/tally/cql/terminal.h"

static void assert_text(struct slice got, const char *wanted) {
    if (!slice_is(got, wanted)) fail_msg("got \"%.*s\", wanted \"%s\"", SLICE_FMT(got), wanted);
}

/* The items of a text, one line each: S for statements, C for commands, U for what is not finished. */
static void split_all(const char *text, bool at_end, struct buf *out) {
    struct slice rest = slice_str(text);
    for (;;) {
        struct split_item item = split_next(rest, at_end);
        if (item.kind == SPLIT_NOTHING) return;
        buf_printf(out, "%c:%.*s|", " USC"[item.kind], SLICE_FMT(item.text));
        if (item.kind == SPLIT_UNFINISHED) return;
        rest = slice_of(rest.p + item.used, rest.n - item.used);
    }
}

static void test_items_end_where_cqlsh_ends_them(void **state) {
    (void)state;
    static const struct {
        const char *text, *typed, *in_file;
    } cases[] = {
        {"SELECT 1; SELECT 'a;b'\n;", "S:SELECT 1|S:SELECT 'a;b'|", "S:SELECT 1|S:SELECT 'a;b'|"},
        {"SELECT 1\nFROM t", "U:SELECT 1\nFROM t|", "S:SELECT 1\nFROM t|"},
        {"EXPAND ON\nSELECT 1;", "C:EXPAND ON|S:SELECT 1|", "C:EXPAND ON|S:SELECT 1|"},
        {"expand on; EXIT", "C:expand on|U:EXIT|", "C:expand on|C:EXIT|"},
        {"SOURCE 'a;b' ;", "C:SOURCE 'a;b'|", "C:SOURCE 'a;b'|"},
        {"-- x;\n/* y; */ // z\n;;", "", ""},
        {"-- x\nBEGIN BATCH INSERT a; INSERT b; APPLY BATCH; HELP\n",
         "S:BEGIN BATCH INSERT a; INSERT b; APPLY BATCH|C:HELP|",
         "S:BEGIN BATCH INSERT a; INSERT b; APPLY BATCH|C:HELP|"},
        {"INSERT -- it's\n'not closed; ", "U:INSERT -- it's\n'not closed|", NULL},
        {"INSERT 'not closed; \n but here';", "S:INSERT 'not closed; \n but here'|",
         "S:INSERT 'not closed; \n but here'|"},
        {"?\n", "C:?|", "C:?|"},
        {"DESCRIBED;", "S:DESCRIBED|", "S:DESCRIBED|"},
    };
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        struct buf out;
        buf_init(&out, 0);
        split_all(cases[i].text, false, &out);
        assert_text(buf_slice(&out), cases[i].typed);
        buf_clear(&out, SIZE_MAX);
        split_all(cases[i].text, true, &out);
        if (cases[i].in_file) assert_text(buf_slice(&out), cases[i].in_file);
        buf_fini(&out);
    }
}

static void test_words_lose_their_quotes(void **state) {
    (void)state;
    struct slice words[SPLIT_WORDS];
    struct arena a;
    arena_init(&a, 256, 0);
    assert_int_equal(split_words(slice_str("LOGIN  me 'it''s a' \"B\" ''"), &a, words), 5);
    assert_text(words[1], "me");
    assert_text(words[2], "it's a");
    assert_text(words[3], "B");
    assert_text(words[4], "");
    assert_int_equal(split_words(slice_str("LOGIN me 'open"), &a, words), -1);
    assert_int_equal(split_words(slice_str("1 2 3 4 5 6 7 8"), &a, words), SPLIT_WORDS);
    assert_int_equal(split_words(slice_str("1 2 3 4 5 6 7 8 9"), &a, words), -1);
    arena_fini(&a);
}

static void fill(struct grid *g, uint32_t columns, const char *const *cells, size_t n) {
    grid_begin(g, columns);
    for (size_t i = 0; i < n; i++) {
        buf_put_str(&g->text, cells[i]);
        grid_cell(g);
    }
}

static void test_rows_are_aligned(void **state) {
    (void)state;
    static const char *const cells[] = {"id", "name", "1", "漢字", "1000", "a"};
    struct grid g;
    struct buf out;
    setlocale(LC_CTYPE, "C.UTF-8");
    grid_init(&g);
    buf_init(&out, 0);
    fill(&g, 2, cells, ARRAY_LEN(cells));
    grid_put(&g, true, &out);
    assert_text(buf_slice(&out), " id   | name\n------+------\n    1 | 漢字\n 1000 |    a\n");
    buf_clear(&out, SIZE_MAX);
    grid_put(&g, false, &out);
    assert_text(buf_slice(&out), "    1 | 漢字\n 1000 |    a\n");
    buf_clear(&out, SIZE_MAX);
    grid_put_expanded(&g, 10, &out);
    assert_text(
        buf_slice(&out),
        "@ Row 11\n------+------\n id   | 1\n name | 漢字\n\n@ Row 12\n------+------\n id   | 1000\n name | a\n\n");
    buf_clear(&out, SIZE_MAX);
    fill(&g, 2, cells, 2);
    grid_put(&g, true, &out);
    assert_text(buf_slice(&out), " id | name\n----+------\n\n");
    buf_fini(&out);
    grid_fini(&g);
}

static void test_names_stand_in_columns(void **state) {
    (void)state;
    static const char *names[40];
    struct buf out;
    buf_init(&out, 0);
    for (size_t i = 0; i < ARRAY_LEN(names); i++) names[i] = i % 2 ? "longer_name" : "name";
    grid_put_names(names, 3, &out);
    assert_text(buf_slice(&out), "name  longer_name  name\n");
    buf_clear(&out, SIZE_MAX);
    grid_put_names(names, ARRAY_LEN(names), &out);
    size_t width = 0;
    for (size_t i = 0; i < out.n; i++) {
        width = out.p[i] == '\n' ? 0 : width + 1;
        assert_true(width < 80);
    }
    buf_fini(&out);
}

static void test_control_characters_are_shown(void **state) {
    (void)state;
    struct buf out;
    buf_init(&out, 0);
    cell_put_text(slice_str("a\n\t\x01\x7f\xc2\x85\\'"), false, &out);
    assert_text(buf_slice(&out), "a\\n\\t\\x01\\x7f\\x85\\\\'");
    buf_fini(&out);
}

static void assert_completed(const char *before, size_t typed, uint32_t n, const char *first) {
    static const struct schema_name list[] = {
        {"ks", "t", "p"}, {"ks", "t", "Value"}, {"ks", "users", "name"}, {"other", "t", "q"}, {"empty", NULL, NULL}};
    const struct schema_names names = {.n = ARRAY_LEN(list), .list = (struct schema_name *)list};
    static struct completions c;
    struct arena a;
    arena_init(&a, 1024, 0);
    completions_find(slice_str(before), "ks", &names, &a, &c);
    assert_int_equal(c.typed, typed);
    assert_int_equal(c.n, n);
    if (n) assert_text(slice_str(c.list[0]), first);
    arena_fini(&a);
}

static void test_words_complete_by_what_stands_in_front(void **state) {
    (void)state;
    assert_completed("SEL", 3, 1, "SELECT");
    assert_completed("SELECT 1; sel", 3, 1, "select");
    assert_completed("SELECT * FROM us", 2, 1, "users");
    assert_completed("SELECT * FROM o", 1, 1, "other.");
    assert_completed("SELECT * FROM other.", 6, 1, "other.t");
    assert_completed("SELECT * FROM ", 0, 5, "t"); /* two tables, three keyspaces */
    assert_completed("USE e", 1, 1, "empty");
    assert_completed("UPDATE t SET \"V", 2, 1, "\"Value\"");
    assert_completed("SELECT * FROM other.t WHERE ", 0, 1, "q");
    assert_completed("CONSISTENCY LOCAL_S", 7, 1, "LOCAL_SERIAL");
    assert_completed("EXPAND ", 0, 2, "ON");
    assert_completed("SELECT 'FROM ", 0, 0, NULL);
}

static void test_statements_with_passwords_are_secret(void **state) {
    (void)state;
    assert_true(terminal_is_secret(slice_str("CREATE ROLE r WITH password = 'x'")));
    assert_true(terminal_is_secret(slice_str("ALTER USER u\nWITH PASSWORD 'x'")));
    assert_true(terminal_is_secret(slice_str("login u 'x'")));
    assert_true(terminal_is_secret(slice_str("CREATE ROLE r WITH HASHED PASSWORD = 'x'")));
    assert_true(terminal_is_secret(slice_str("CREATE ROLE r WITH PassWord = 'not closed")));
    assert_false(terminal_is_secret(slice_str("SELECT * FROM t WHERE v = 'password'")));
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_items_end_where_cqlsh_ends_them),
                                       cmocka_unit_test(test_words_lose_their_quotes),
                                       cmocka_unit_test(test_rows_are_aligned),
                                       cmocka_unit_test(test_names_stand_in_columns),
                                       cmocka_unit_test(test_control_characters_are_shown),
                                       cmocka_unit_test(test_words_complete_by_what_stands_in_front),
                                       cmocka_unit_test(test_statements_with_passwords_are_secret)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
