#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>
#include <stdio.h>
#include <string.h>

#include "keyspaces/compat.h"
#include "keyspaces/report.h"

static int64_t now_us;
static int64_t wall(struct clock *c) { return (void)c, now_us; }
static struct clock hands = {.wall_us = wall, .mono_us = wall};

static void test_off_allows_and_strict_refuses_with_words_and_what_to_do_instead(void **state) {
    (void)state;
    struct err e = {0};
    struct compat off = {0}, strict = {.mode = COMPAT_STRICT};
    assert_int_equal(compat_refuse(NULL, REFUSE_TTL, &e), 0);
    assert_int_equal(compat_refuse(&off, REFUSE_TTL, &e), 0);
    assert_false(e.set);
    assert_int_equal(compat_refuse(&strict, REFUSE_COLUMNS, &e, 226, 225), -1);
    assert_int_equal(e.code, ERR_INVALID);
    assert_string_equal(e.text,
                        "The statement writes 226 columns; at most 225 are allowed. Split it into several statements.");
}

static void test_nothing_is_refused_of_a_keyspace_that_keyspaces_does_not_have(void **state) {
    (void)state;
    struct err e = {0};
    struct compat k = {.mode = COMPAT_STRICT};
    compat_is_of(&k, "system_metering", "rules");
    assert_int_equal(compat_refuse(&k, REFUSE_DISTINCT, &e), 0);
    compat_is_of(&k, "system", "local");
    assert_int_equal(compat_refuse(&k, REFUSE_DISTINCT, &e), -1);
}

static void test_every_rule_has_words_a_page_and_a_confidence(void **state) {
    (void)state;
    static const char *const confidences[] = {"documented", "seen", "ours", "inferred"};
    for (int id = 0; id < REFUSALS; id++) {
        const struct refusal r = refusal_of((enum refusal_id)id);
        bool known = false;
        for (size_t i = 0; i < ARRAY_LEN(confidences); i++) known = known || strcmp(r.confidence, confidences[i]) == 0;
        assert_true(known);
        assert_true(*r.name && *r.checks && *r.words && *r.since && strncmp(r.address, "https://", 8) == 0);
        assert_true(*r.instead || strcmp(r.confidence, "seen") == 0 || r.page == refusal_of(REFUSE_WRITE_LEVEL).page);
    }
}

/* ---- the report ---- */

struct seen {
    unsigned n;
    struct compat_use last;
    char statement[REPORT_TEXT + 1], words[REPORT_TEXT + 1];
    uint64_t uses;
};

static int look(void *arg, const struct compat_use *u) {
    struct seen *s = arg;
    s->n++;
    s->last = *u;
    s->uses += u->uses;
    snprintf(s->statement, sizeof s->statement, "%s", u->statement);
    snprintf(s->words, sizeof s->words, "%s", u->words);
    return 0;
}

static struct compat_report *report_new(void) {
    struct err e = {0};
    struct compat_report *r = compat_report_new(&hands, &e);
    assert_non_null(r);
    return r;
}

static void shown_as(const char *statement, const char *expected) {
    struct compat_report *r = report_new();
    struct seen s = {0};
    compat_report_note(r, REFUSE_AGGREGATE, "ks", "t", slice_str(statement), NULL);
    assert_int_equal(compat_report_each(r, look, &s), 0);
    assert_string_equal(s.statement, expected);
    compat_report_free(r);
}

static void test_values_are_left_out_of_a_statement(void **state) {
    (void)state;
    shown_as("SELECT a1, c FROM t2 WHERE k = 12 AND v='it''s 5'", "SELECT a1, c FROM t2 WHERE k = ? AND v=?");
    shown_as("x = 0xCAFE AND y = -1.5e-3 AND z = 8e14e760-7fa8-11eb-bc66-000000000001", "x = ? AND y = -? AND z = ?");
    shown_as("id = f47ac10b-58cc-4372-a567-0e02b2c3d479 AND f47ac10b = 1", "id = ? AND f47ac10b = ?");
    shown_as("INSERT\n  INTO t (\"a 1\") VALUES (?)", "INSERT INTO t (\"a 1\") VALUES (?)");
    shown_as("an open 'quote", "an open ?");
    shown_as("", "");
}

static void test_a_long_statement_is_cut_between_characters(void **state) {
    (void)state;
    char text[2 * REPORT_TEXT + 1];
    struct compat_report *r = report_new();
    struct seen s = {0};
    for (size_t i = 0; i < sizeof text - 1; i += 2) memcpy(text + i, "\xC3\xA9", 2);
    text[0] = 'a';
    text[1] = 'b';
    text[2] = 'c'; /* so that the cut falls inside a character */
    text[3] = 'd';
    text[sizeof text - 1] = 0;
    memmove(text + 4, text + 5, sizeof text - 5);
    compat_report_note(r, REFUSE_AGGREGATE, NULL, NULL, slice_str(text), NULL);
    assert_int_equal(compat_report_each(r, look, &s), 0);
    size_t n = strlen(s.statement);
    assert_true(n <= REPORT_TEXT && n >= REPORT_TEXT - 2);
    assert_true(((uint8_t)s.statement[n - 1] & 0xC0) == 0x80);
    compat_report_free(r);
}

static void test_uses_are_counted_with_their_first_and_last_moment(void **state) {
    (void)state;
    struct compat_report *r = report_new();
    struct seen s = {0};
    for (now_us = 1000; now_us <= 3000; now_us += 1000)
        compat_report_note(r, REFUSE_DISTINCT, "ks", "t", slice_str("SELECT DISTINCT p FROM t"), NULL);
    assert_int_equal(compat_report_each(r, look, &s), 0);
    assert_int_equal(s.n, 1);
    assert_int_equal(s.last.uses, 3);
    assert_int_equal(s.last.first_us, 1000);
    assert_int_equal(s.last.last_us, 3000);
    compat_report_free(r);
}

static void test_a_use_has_the_words_of_its_refusal(void **state) {
    (void)state;
    struct compat_report *r = report_new();
    struct seen s = {0};
    struct err e = {0};
    struct compat k = {.mode = COMPAT_REPORT, .report = r, .statement = slice_str("CREATE INDEX ON t (v)")};
    assert_int_equal(compat_refuse(&k, REFUSE_INDEX, &e, "CREATE INDEX"), 0);
    compat_again(&k); /* which has no words of its own */
    assert_int_equal(compat_report_each(r, look, &s), 0);
    assert_int_equal(s.n, 1);
    assert_string_equal(s.words, "CREATE INDEX is not yet supported.");
    compat_report_free(r);
}

static void test_a_rule_keeps_so_many_statements_and_counts_the_rest_together(void **state) {
    (void)state;
    struct compat_report *r = report_new();
    struct seen s = {0};
    char text[64];
    for (int i = 0; i < 3 * REPORT_STATEMENTS; i++) {
        snprintf(text, sizeof text, "SELECT count(c%d) FROM t", i);
        compat_report_note(r, REFUSE_AGGREGATE, "ks", "t", slice_str(text), NULL);
    }
    compat_report_note(r, REFUSE_DISTINCT, "ks", "t", slice_str("SELECT DISTINCT p FROM t"), NULL);
    assert_int_equal(compat_report_each(r, look, &s), 0);
    assert_int_equal(s.n, REPORT_STATEMENTS + 1 + 1);
    assert_int_equal(s.uses, 3 * REPORT_STATEMENTS + 1);
    compat_report_free(r);
}

static void test_notes_of_a_request_that_begins_anew_are_not_counted(void **state) {
    (void)state;
    struct compat_report *r = report_new();
    struct arena a;
    struct seen s = {0};
    struct err e = {0};
    arena_init(&a, 4096, 0);
    struct compat_notes dropped = {.arena = &a}, given = {.arena = &a};
    struct compat k = {.mode = COMPAT_REPORT, .report = r, .notes = &dropped};
    assert_int_equal(compat_refuse(&k, REFUSE_DISTINCT, &e), 0);
    k.notes = &given;
    assert_int_equal(compat_refuse(&k, REFUSE_DISTINCT, &e), 0);
    compat_again(&k);
    compat_notes_give(&given, r);
    compat_notes_give(&given, r);
    assert_int_equal(compat_report_each(r, look, &s), 0);
    assert_int_equal(s.uses, 2);
    arena_fini(&a);
    compat_report_free(r);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_off_allows_and_strict_refuses_with_words_and_what_to_do_instead),
        cmocka_unit_test(test_nothing_is_refused_of_a_keyspace_that_keyspaces_does_not_have),
        cmocka_unit_test(test_every_rule_has_words_a_page_and_a_confidence),
        cmocka_unit_test(test_values_are_left_out_of_a_statement),
        cmocka_unit_test(test_a_long_statement_is_cut_between_characters),
        cmocka_unit_test(test_uses_are_counted_with_their_first_and_last_moment),
        cmocka_unit_test(test_a_use_has_the_words_of_its_refusal),
        cmocka_unit_test(test_a_rule_keeps_so_many_statements_and_counts_the_rest_together),
        cmocka_unit_test(test_notes_of_a_request_that_begins_anew_are_not_counted),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
