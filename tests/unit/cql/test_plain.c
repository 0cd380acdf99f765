/* P1: the trees of plain.c equal those of the grammar, and all other statements are left to the grammar. */
#include "tests/unit/cql/parse_support.h"

#include "cql/syntax/build.h"
#include "tests/unit/cql/same_tree.h"

static bool is_read_by_hand(const char *text) {
    struct parsed *r = calloc(1, sizeof(*r));
    struct parse *p = calloc(1, sizeof(*p));
    assert_true(r && p);
    arena_init(&r->arena, 4096, 1 << 20);
    *p = (struct parse){.arena = &r->arena, .err = &r->err, .text = slice_str(text)};
    token_reader_init(&p->reader, p->text, p->err);
    p->binds = SEQ(p, const char *);
    bool read = cqli_plain(p) != NULL;
    free(p);
    parsed_free(r);
    return read;
}

/* The same tree, or an error of the same words. */
static void check_same(const char *text) {
    struct parsed *r = parse_text(slice_str(text)), *g = calloc(1, sizeof(*g));
    assert_non_null(g);
    arena_init(&g->arena, 4096, 1 << 20);
    g->stmt = cqli_parse_by_grammar(&g->arena, slice_str(text), true, &g->err);
    bool same = r->stmt && g->stmt
                    ? same_tree(r->stmt, g->stmt)
                    : !r->stmt && !g->stmt && r->err.code == g->err.code && !strcmp(r->err.text, g->err.text);
    if (!same)
        fail_msg("%s: %s, by the grammar: %s", text, r->stmt ? "read" : r->err.text, g->stmt ? "read" : g->err.text);
    parsed_free(r);
    parsed_free(g);
}

/* ---- statements ---- */

static const char *const by_hand[] = {
    "SELECT a FROM t",
    "select A , \"B\" from Ks.\"T\" where A=1;",
    "SELECT * FROM ks.t ; ;",
    "SELECT a FROM t WHERE a = -1 AND b >= 0x00 AND c < 'it''s' LIMIT 5",
    "SELECT a, a FROM t WHERE a = ? AND b <= ? AND c > 1.5e3 LIMIT ?",
    "SELECT a FROM t WHERE a = null -- b\n ;",
    "SELECT a FROM t WHERE a = 123e4567-e89b-12d3-a456-426614174000",
    "INSERT INTO t (a) VALUES (1)",
    "insert into ks.t(a,\"B\",c)values('it''s',true,?);",
    "INSERT INTO t (a, b) VALUES ($$x$$, NULL)",
    "INSERT INTO t (a, b) VALUES (1)",
    "INSERT INTO t (a) VALUES (1, ?)",
};

static const char *const by_grammar[] = {
    "",
    "SELECT",
    "SELECT a",
    "SELECT a FROM",
    "SELECT a FROM t WHERE",
    "SELECT a FROM t t",
    "SELECT a FROM t;a",
    "SELECT JSON a FROM t",
    "SELECT json FROM t",
    "SELECT DISTINCT a FROM t",
    "SELECT count(*) FROM t",
    "SELECT a AS b FROM t",
    "SELECT *, a FROM t",
    "SELECT a, FROM t",
    "SELECT a.b FROM t",
    "SELECT a[1] FROM t",
    "SELECT 1 FROM t",
    "SELECT key FROM t",
    "SELECT a FROM key",
    "SELECT \"\" FROM t",
    "SELECT a FROM ?",
    "SELECT a FROM t.?",
    "SELECT a FROM t WHERE a = 5 -3",
    "SELECT a FROM t WHERE a = 5 + 3",
    "SELECT a FROM t WHERE a = :b",
    "SELECT a FROM t WHERE a = b",
    "SELECT a FROM t WHERE a = 1h",
    "SELECT a FROM t WHERE a != 1",
    "SELECT a FROM t WHERE a IN (1)",
    "SELECT a FROM t WHERE a[1] = 1",
    "SELECT a FROM t WHERE (a) = (1)",
    "SELECT a FROM t WHERE token(a) > 1",
    "SELECT a FROM t WHERE \"\" = 1",
    "SELECT a FROM t LIMIT 'a'",
    "SELECT a FROM t LIMIT 1.0",
    "SELECT a FROM t LIMIT 1 ALLOW FILTERING",
    "SELECT a FROM t ALLOW FILTERING",
    "SELECT a FROM t ORDER BY a",
    "SELECT a FROM t WHERE a = 'b",
    "SELECT a FROM t WHERE a = NaN",
    "INSERT INTO t (a) VALUES (1) IF NOT EXISTS",
    "INSERT INTO t (a) VALUES (1) USING TTL 5",
    "INSERT INTO t JSON '{}'",
    "INSERT INTO t () VALUES ()",
    "INSERT INTO t (a) VALUES ([1])",
    "INSERT INTO t (a) VALUES (f(1))",
    "INSERT INTO t (a) VALUES (1",
    "UPDATE t SET a = 1 WHERE b = 1",
    "DELETE FROM t WHERE a = 1",
    "USE a",
};

static void test_plain_reads_frequent_statements(void **state) {
    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(by_hand); i++)
        if (!is_read_by_hand(by_hand[i])) fail_msg("%s", by_hand[i]);
    for (size_t i = 0; i < ARRAY_LEN(by_grammar); i++)
        if (is_read_by_hand(by_grammar[i])) fail_msg("%s", by_grammar[i]);
}

/* Without the token, and with other ones in its place. */
static void change_token(const char *line, struct slice t) {
    static const char *const others[] = {"",      "a",     "\"\"", "1",   "-1",   "?",    "*",   ",",
                                         ".",     "(",     ")",    ";",   "=",    "null", "AND", "FROM",
                                         "WHERE", "LIMIT", "json", "key", "x, y", "'",    "@"};
    char changed[8192];
    size_t before = (size_t)((const char *)t.p - line);
    if (strlen(line) + 16 > sizeof(changed)) return;
    for (size_t i = 0; i < ARRAY_LEN(others); i++) {
        snprintf(changed, sizeof(changed), "%.*s%s%s", (int)before, line, others[i], line + before + t.n);
        check_same(changed);
    }
}

static void check_changed(const char *line) {
    struct token_reader r;
    struct err *e = calloc(1, sizeof(*e));
    assert_non_null(e);
    check_same(line);
    token_reader_init(&r, slice_str(line), e);
    for (struct token t = token_next(&r); t.code && !e->set; t = token_next(&r)) change_token(line, t.text);
    free(e);
}

static void test_plain_and_grammar_make_equal_trees(void **state) {
    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(by_hand); i++) check_changed(by_hand[i]);
    for (size_t i = 0; i < ARRAY_LEN(by_grammar); i++) check_changed(by_grammar[i]);
}

static void check_line(char *line) { check_same(line); }

static void test_plain_leaves_other_statements_to_the_grammar(void **state) {
    (void)state;
    assert_true(each_line("statements.cql", check_line) > 500);
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_plain_reads_frequent_statements),
                                       cmocka_unit_test(test_plain_and_grammar_make_equal_trees),
                                       cmocka_unit_test(test_plain_leaves_other_statements_to_the_grammar)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
