/* Files of CQL: where statements begin, and that the reader does not go back. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "tools/tally/script.h"

static void test_statements_have_the_line_where_they_begin(void **state) {
    (void)state;
    struct script s;
    struct script_statement at;
    script_of(&s, "f",
              slice_str("-- one\nSELECT 1;\n\n  SELECT 'a\nb' ; BEGIN BATCH\nINSERT x;\nAPPLY BATCH;\n;SELECT 4"));
    static const uint32_t lines[] = {2, 4, 5, 8};
    for (size_t i = 0; i < ARRAY_LEN(lines); i++) {
        assert_true(script_next(&s, &at));
        assert_int_equal(at.line, lines[i]);
    }
    assert_false(script_next(&s, &at));
}

/* Pages behind the reader cannot be read: counting lines from the beginning of the file for each
 * statement, which takes four times as long a file sixteen
 * times the time, ends this test with a fault. */
static void test_a_statement_is_found_without_reading_those_before_it(void **state) {
    (void)state;
    enum { PAGES = 8 };
    static const char statement[] = "INSERT INTO t (a) VALUES (1);\n";
    size_t page = (size_t)sysconf(_SC_PAGESIZE), n = PAGES * page, length = sizeof(statement) - 1;
    char *text = mmap(NULL, n, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    assert_ptr_not_equal(text, MAP_FAILED);
    for (size_t i = 0; i < n; i++) text[i] = statement[i % length];
    struct script s;
    struct script_statement at;
    uint32_t found = 0;
    script_of(&s, "f", slice_of(text, n));
    while (script_next(&s, &at)) {
        size_t behind = (size_t)((const char *)at.text.p - text) / page * page;
        assert_int_equal(at.line, ++found);
        if (behind) assert_int_equal(mprotect(text, behind, PROT_NONE), 0);
    }
    assert_int_equal(found, n / length + (n % length > 0));
    munmap(text, n);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_statements_have_the_line_where_they_begin),
        cmocka_unit_test(test_a_statement_is_found_without_reading_those_before_it),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
