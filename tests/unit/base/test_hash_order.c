#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "base/hash_order.h"

/* Recorded from a java.util.HashMap of ByteBuffers that these were put into in this order: what it gives back first. */
static void test_names_come_in_the_order_of_the_map(void **state) {
    static const struct {
        const char *names[16];
        uint32_t n, order[16];
    } cases[] = {{{"k", "c", "v"}, 3, {1, 2, 0}},
                 {{"r0", "s1"}, 2, {0, 1}},
                 {{"s1", "r0"}, 2, {0, 1}},
                 {{""}, 1, {0}},
                 {{NULL}, 0, {0}},
                 {{"q", "a"}, 2, {0, 1}}, /* above twelve names there are 32 places, where the two do not share one */
                 {{"z0", "z1", "z2", "z3", "z4", "z5", "z6", "z7", "z8", "z9", "q", "a", "b"},
                  13,
                  {11, 12, 9, 8, 7, 6, 5, 4, 3, 2, 1, 0, 10}}};
    (void)state;
    struct arena a;
    arena_init(&a, 4096, 1 << 16);
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        const uint32_t *order = hash_order(&a, cases[i].names, cases[i].n);
        assert_non_null(order);
        for (uint32_t k = 0; k < cases[i].n; k++) assert_int_equal(order[k], cases[i].order[k]);
    }
    arena_fini(&a);
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_names_come_in_the_order_of_the_map)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
