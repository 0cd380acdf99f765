/* Printing is canonical: what is printed parses to a tree that prints alike. */
#include "tests/unit/cql/parse_support.h"

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

static void test_print_parses_back_to_an_equal_tree(void **state) {
    (void)state;
    assert_true(each_line("statements.cql", round_trip) > 500);
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
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_print_parses_back_to_an_equal_tree), cmocka_unit_test(test_print_is_canonical)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
