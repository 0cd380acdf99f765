/* Printing is canonical: what is printed parses to a tree that prints alike. */
#include "tests/unit/cql/parse_support.h"

#include <strings.h>

#include "cql/syntax/token.h"

static char *print_again(const char *text, enum stmt_kind *kind, uint32_t *binds) {
    struct parsed *r = parse_text(slice_str(text));
    if (!r->stmt) fail_msg("%s: %s", text, r->err.text);
    struct buf b;
    buf_init(&b, 0);
    ast_print(r->stmt, &b);
    *kind = r->stmt->kind;
    *binds = r->stmt->binds.n;
    char *s = strndup((const char *)b.p, b.n);
    buf_fini(&b);
    parsed_free(r);
    return s;
}

static void round_trip(char *line) {
    enum stmt_kind k1, k2;
    uint32_t b1, b2;
    char *once = print_again(line, &k1, &b1), *twice = print_again(once, &k2, &b2);
    assert_string_equal(once, twice);
    assert_int_equal(k1, k2);
    assert_int_equal(b1, b2);
    free(once);
    free(twice);
}

static void test_print_parses_back_and_prints_alike(void **state) {
    (void)state;
    assert_true(each_line("statements.cql", round_trip) > 500);
}

/* ---- nothing of a statement is lost in print ---- */

/* NULL: it does not parse. */
static char *print_if_parsed(const char *text) {
    struct parsed *r = parse_text(slice_str(text));
    struct buf b;
    buf_init(&b, 0);
    if (r->stmt) ast_print(r->stmt, &b);
    char *s = r->stmt ? strndup((const char *)b.p, b.n) : NULL;
    buf_fini(&b);
    parsed_free(r);
    return s;
}

/* Another token of the same kind, or NULL. */
static const char *other_token(struct slice t, char *room, size_t size) {
    static const struct {
        const char *word, *other;
    } pairs[] = {{"ASC", "DESC"},
                 {"DESC", "ASC"},
                 {"<", ">="},
                 {">", "<="},
                 {"<=", ">"},
                 {">=", "<"},
                 {"+=", "-="},
                 {"-=", "+="},
                 {"true", "false"},
                 {"false", "true"},
                 {"LOGGED", "UNLOGGED"},
                 {"UNLOGGED", "COUNTER"},
                 {"TTL", "TIMESTAMP"}};
    for (size_t i = 0; i < ARRAY_LEN(pairs); i++)
        if (t.n == strlen(pairs[i].word) && strncasecmp((const char *)t.p, pairs[i].word, t.n) == 0)
            return pairs[i].other;
    uint8_t c = t.p[0];
    bool word = (c | 0x20) >= 'a' && (c | 0x20) <= 'z', number = c >= '0' && c <= '9';
    if (t.n + 2 > size) return NULL;
    if (c == '\'' || c == '"') snprintf(room, size, "%cq%.*s", c, (int)t.n - 1, (const char *)t.p + 1);
    else if (word && !token_keyword(t)) snprintf(room, size, "%.*sq", SLICE_FMT(t));
    else if (number) snprintf(room, size, "%.*s7", SLICE_FMT(t));
    else return NULL;
    return room;
}

static unsigned n_replaced;

static void replace_token(const char *line, const char *printed, struct slice t) {
    char room[256], changed[8192];
    const char *other = other_token(t, room, sizeof room);
    size_t before = (size_t)((const char *)t.p - line);
    if (!other || strlen(line) + 256 > sizeof changed) return;
    snprintf(changed, sizeof changed, "%.*s%s%s", (int)before, line, other, line + before + t.n);
    char *again = print_if_parsed(changed);
    if (again && strcmp(again, printed) == 0) fail_msg("%s and %s print alike: %s", line, changed, printed);
    n_replaced += again != NULL;
    free(again);
}

static void check_tokens(char *line) {
    struct token_reader r;
    struct err e = {0};
    char *printed = print_if_parsed(line);
    assert_non_null(printed);
    token_reader_init(&r, slice_str(line), &e);
    for (struct token t = token_next(&r); t.code && !e.set; t = token_next(&r)) replace_token(line, printed, t.text);
    free(printed);
}

static void test_print_shows_every_name_literal_and_order(void **state) {
    (void)state;
    assert_true(each_line("statements.cql", check_tokens) > 500);
    assert_true(n_replaced > 2000);
}

static void expect(const char *text, const char *canonical) {
    enum stmt_kind kind;
    uint32_t binds;
    char *s = print_again(text, &kind, &binds);
    assert_string_equal(s, canonical);
    free(s);
}

static void test_print_is_canonical(void **state) {
    (void)state;
    expect("select A , \"B\" from Ks.T where A=1;", "SELECT a, \"B\" FROM ks.t WHERE a = 1");
    expect("insert into t(a)values('it''s')using ttl 5", "INSERT INTO t (a) VALUES ('it''s') USING TTL 5");
    expect("update t set c=c-1 where k=:Key", "UPDATE t SET c = c + -1 WHERE k = :key");
    expect("SELECT - - a FROM t", "SELECT - - a FROM t");
    expect("SELECT a, -(a) FROM t", "SELECT a, - (a) FROM t");
    expect("CREATE TABLE t (a int, primary key((a)))", "CREATE TABLE t (a int, PRIMARY KEY (a))");
    expect("DESC ks.\"Select\"", "DESCRIBE ks.\"Select\"");
    expect("SELECT \"select\" FROM t", "SELECT \"select\" FROM t");
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_print_parses_back_and_prints_alike),
                                       cmocka_unit_test(test_print_shows_every_name_literal_and_order),
                                       cmocka_unit_test(test_print_is_canonical)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
