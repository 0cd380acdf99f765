#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include "native_protocol/budget.h"

static int told[4];

static void tell(void *owner) { (*(int *)owner)++; }

static void setup(struct np_budget *b, struct np_share s[4], size_t limit) {
    npi_budget_init(b, limit, tell);
    for (int i = 0; i < 4; i++) {
        told[i] = 0;
        npi_share_init(&s[i], b, &told[i]);
    }
}

static void end(struct np_budget *b, struct np_share s[4]) {
    for (int i = 0; i < 4; i++) npi_share_fini(&s[i]);
    npi_budget_fini(b);
}

static void test_budget_evicts_who_holds_the_most_not_who_comes_next(void **state) {
    (void)state;
    struct np_budget b;
    struct np_share s[4];
    setup(&b, s, 100);
    npi_share_add(&s[0], 30, 1);
    npi_share_add(&s[1], 50, 2);
    npi_share_add(&s[2], 20, 3);
    assert_int_equal(told[0] + told[1] + told[2], 0);
    npi_share_add(&s[3], 1, 4);
    assert_int_equal(told[1], 1);
    assert_true(atomic_load(&s[1].evicted));
    assert_int_equal(told[0] + told[2] + told[3], 0);
    end(&b, s);
}

static void test_budget_counts_what_is_leaving_as_gone(void **state) {
    (void)state;
    struct np_budget b;
    struct np_share s[4];
    setup(&b, s, 100);
    npi_share_add(&s[1], 60, 1);
    npi_share_add(&s[2], 40, 1);
    npi_share_add(&s[3], 30, 1);
    assert_int_equal(told[1], 1);
    npi_share_add(&s[3], 30, 1); /* 160 with what is leaving, 100 without */
    assert_int_equal(told[2] + told[3], 0);
    npi_share_add(&s[1], 50, 1); /* which only grows what is leaving */
    assert_int_equal(told[1] + told[2] + told[3], 1);
    npi_share_fini(&s[1]);
    assert_int_equal(npi_budget_total(&b), 100);
    npi_share_add(&s[2], 1, 1);
    assert_int_equal(told[3], 1);
    end(&b, s);
}

static void test_budget_of_equals_takes_the_eldest(void **state) {
    (void)state;
    struct np_budget b;
    struct np_share s[4];
    setup(&b, s, 100);
    npi_share_add(&s[0], 40, 7);
    npi_share_add(&s[1], 40, 5);
    npi_share_add(&s[2], 40, 6);
    assert_int_equal(told[1], 1);
    assert_int_equal(told[0] + told[2], 0);
    end(&b, s);
}

static void test_budget_gives_back_piece_by_piece(void **state) {
    (void)state;
    struct np_budget b;
    struct np_share s[4];
    setup(&b, s, 100);
    for (size_t round = 0; round < 3; round++) {
        npi_share_add(&s[0], 60, 1);
        npi_share_add(&s[1], 40, 1);
        assert_int_equal(npi_budget_total(&b), 100);
        npi_share_sub(&s[1], 40);
        npi_share_sub(&s[0], 59);
        assert_ptr_equal(b.shares, &s[0]);
        npi_share_sub(&s[0], 1);
        assert_null(b.shares);
    }
    npi_share_add(&s[0], 130, 1); /* alone over the limit */
    assert_int_equal(told[0], 1);
    npi_share_sub(&s[0], 100);
    assert_int_equal(b.leaving, 30);
    end(&b, s);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_budget_evicts_who_holds_the_most_not_who_comes_next),
        cmocka_unit_test(test_budget_counts_what_is_leaving_as_gone),
        cmocka_unit_test(test_budget_of_equals_takes_the_eldest),
        cmocka_unit_test(test_budget_gives_back_piece_by_piece),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
