/* A list by object against an array that is looked through. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include "base/object_list.h"

struct thing {
    uint32_t object;
    bool in;
};

static void test_list_keeps_what_was_added_in_the_order_of_objects(void **state) {
    (void)state;
    enum { THINGS = 200, STEPS = 5000 };
    struct thing things[THINGS];
    struct object_list l = {0};
    uint32_t random = 1, n = 0;
    for (uint32_t i = 0; i < THINGS; i++) things[i] = (struct thing){.object = 7 * i};
    for (int step = 0; step < STEPS; step++) {
        random = random * 1664525 + 1013904223;
        struct thing *t = &things[(random >> 16) % THINGS];
        if (t->in) assert_ptr_equal(object_list_remove(&l, t->object), t);
        else assert_int_equal(object_list_add(&l, t), 0);
        t->in = !t->in;
        n = t->in ? n + 1 : n - 1;
        assert_int_equal(l.n, n);
        assert_ptr_equal(object_list_find(&l, t->object), t->in ? t : NULL);
        assert_null(object_list_find(&l, t->object + 1));
        assert_null(object_list_remove(&l, t->object + 1));
    }
    for (uint32_t i = 1; i < l.n; i++)
        assert_true(((struct thing *)l.items[i - 1])->object < ((struct thing *)l.items[i])->object);
    object_list_fini(&l);
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_list_keeps_what_was_added_in_the_order_of_objects)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
