#include "cql/fingerprint.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

static void expect(const char *text, const char *want) {
    struct arena a;
    arena_init(&a, 4096, 0);
    struct slice got = cql_fingerprint(&a, slice_str(text));
    assert_int_equal(got.n, strlen(want));
    assert_memory_equal(got.p, want, got.n);
    arena_fini(&a);
}

static void test_fingerprint_has_no_values(void **state) {
    (void)state;
    expect("INSERT INTO k.t (p, v) VALUES (1,'secret')", "INSERT INTO k.t(p, v) VALUES(?)");
    expect("SELECT v FROM t WHERE p IN (1, 2, 3) AND c = 0x00", "SELECT v FROM t WHERE p IN(?) AND c = ?");
    expect("SELECT v FROM t WHERE p = 'open", "SELECT v FROM t WHERE p =");
}

/* It is made for every statement on the event loop. */
static void test_fingerprint_of_a_long_statement_is_of_its_beginning(void **state) {
    (void)state;
    enum { COLUMNS = 50000 };
    struct arena a;
    char *text = malloc(COLUMNS * 2 + 64), *at = text + sprintf(text, "UPDATE t SET ");
    assert_non_null(text);
    for (int i = 0; i < COLUMNS; i++) at = stpcpy(at, "a,");
    arena_init(&a, 4096, 0);
    struct slice one = cql_fingerprint(&a, slice_of(text, (size_t)(at - text)));
    strcpy(at, " b = 1 WHERE p = 2");
    struct slice other = cql_fingerprint(&a, slice_str(text));
    assert_true(one.n < 10000 && slice_eq(one, other));
    assert_memory_equal(one.p + one.n - 3, "...", 3);
    arena_fini(&a);
    free(text);
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_fingerprint_has_no_values),
                                       cmocka_unit_test(test_fingerprint_of_a_long_statement_is_of_its_beginning)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
