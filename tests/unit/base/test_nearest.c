#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include "base/nearest.h"

static void test_a_word_has_the_name_that_is_nearest(void **state) {
    static const char *const names[] = {"port", "tls-port", "admin-port", "memory", "read-timeout", "range-timeout"};
    static const struct {
        const char *word, *name;
    } cases[] = {{"prot", "port"},
                 {"por", "port"},
                 {"ports", "port"},
                 {"memroy", "memory"},
                 {"read-timout", "read-timeout"},
                 {"admim-prot", "admin-port"},
                 {"xyzzy", NULL},
                 {"", NULL},
                 {"read_tmieuot", "read-timeout"},
                 {"a-name-of-more-than-sixty-three-letters-is-none-of-them-and-not-read-at-all", NULL}};
    (void)state;
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        const char *got = nearest_name(slice_str(cases[i].word), names, sizeof(names) / sizeof(names[0]));
        if (!cases[i].name) assert_null(got);
        else assert_string_equal(got ? got : "", cases[i].name);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_a_word_has_the_name_that_is_nearest)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
