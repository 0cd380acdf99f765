/* The heap gives its nodes in order, whatever is inserted and removed, and compares few of them. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include "base/heap.h"

enum { ITEMS = 500 };

struct item {
    uint32_t key;
    struct heap_node node;
};

static bool by_key(const struct heap_node *a, const struct heap_node *b) {
    return HEAP_OBJECT(a, struct item, node)->key < HEAP_OBJECT(b, struct item, node)->key;
}

static uint32_t next_random(uint32_t *r) { return (*r = *r * 1664525 + 1013904223) >> 8; }

static uint32_t least_in(const struct item *items) {
    uint32_t least = UINT32_MAX;
    for (int i = 0; i < ITEMS; i++)
        if (items[i].node.is_in && items[i].key < least) least = items[i].key;
    return least;
}

static void test_heap_top_is_the_first_of_all(void **state) {
    (void)state;
    struct heap h = {.before = by_key};
    struct item items[ITEMS] = {0};
    uint32_t r = 7;
    for (int step = 0; step < 20000; step++) {
        struct item *one = &items[next_random(&r) % ITEMS];
        if (next_random(&r) % 3 == 0 && heap_top(&h)) one = HEAP_OBJECT(heap_top(&h), struct item, node);
        bool was_in = one->node.is_in;
        heap_remove(&h, &one->node);
        assert_false(one->node.is_in);
        one->key = next_random(&r) % 1000;
        if (!was_in) heap_insert(&h, &one->node);
        uint32_t least = least_in(items);
        if (!heap_top(&h)) assert_int_equal(least, UINT32_MAX);
        else assert_int_equal(HEAP_OBJECT(heap_top(&h), struct item, node)->key, least);
    }
}

static void test_heap_empties_in_order(void **state) {
    (void)state;
    struct heap h = {.before = by_key};
    struct item items[ITEMS] = {0};
    uint32_t r = 3, last = 0;
    for (int i = 0; i < ITEMS; i++) {
        items[i].key = next_random(&r);
        heap_insert(&h, &items[i].node);
    }
    for (int i = 0; i < ITEMS; i++) {
        struct item *first = HEAP_OBJECT(heap_top(&h), struct item, node);
        assert_true(first->key >= last);
        last = first->key;
        heap_remove(&h, &first->node);
        heap_remove(&h, &first->node); /* which is in no heap any more */
    }
    assert_null(heap_top(&h));
    assert_true(h.compared < 20 * ITEMS); /* twice the logarithm for each */
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_heap_top_is_the_first_of_all),
        cmocka_unit_test(test_heap_empties_in_order),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
