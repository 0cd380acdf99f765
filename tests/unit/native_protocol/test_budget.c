#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include "native_protocol/budget.h"

static int told[4];
static struct clock fake;
static int64_t now_us;

static void tell(void *owner) { (*(int *)owner)++; }
static int64_t fake_us(struct clock *c) { return (void)c, now_us; }

static void setup_sparing(struct np_budget *b, struct np_share s[4], size_t limit, int64_t still_us, int64_t long_us) {
    fake = (struct clock){.wall_us = fake_us, .mono_us = fake_us};
    now_us = 1000;
    struct np_budget_options o = {.clock = &fake, .limit = limit, .still_us = still_us, .long_us = long_us, .tell = tell};
    npi_budget_init(b, &o);
    for (int i = 0; i < 4; i++) {
        told[i] = 0;
        npi_share_init(&s[i], b, &told[i]);
    }
}

static void setup(struct np_budget *b, struct np_share s[4], size_t limit) { setup_sparing(b, s, limit, 0, 0); }

static void end(struct np_budget *b, struct np_share s[4]) {
    for (int i = 0; i < 4; i++) npi_share_sub(&s[i], s[i].bytes);
    npi_budget_fini(b);
}

static void test_budget_evicts_who_holds_the_most_not_who_comes_next(void **state) {
    (void)state;
    struct np_budget b;
    struct np_share s[4];
    setup(&b, s, 100);
    npi_share_add(&s[0], 30);
    npi_share_add(&s[1], 50);
    npi_share_add(&s[2], 20);
    assert_int_equal(told[0] + told[1] + told[2], 0);
    npi_share_add(&s[3], 1);
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
    npi_share_add(&s[1], 60);
    npi_share_add(&s[2], 40);
    npi_share_add(&s[3], 30);
    assert_int_equal(told[1], 1);
    npi_share_add(&s[3], 30); /* 160 with what is leaving, 100 without */
    assert_int_equal(told[2] + told[3], 0);
    npi_share_add(&s[1], 50); /* which only grows what is leaving */
    assert_int_equal(told[1] + told[2] + told[3], 1);
    npi_share_sub(&s[1], 110);
    assert_int_equal(npi_budget_total(&b), 100);
    npi_share_add(&s[2], 1);
    assert_int_equal(told[3], 1);
    end(&b, s);
}

static void test_budget_of_equals_takes_the_eldest(void **state) {
    (void)state;
    struct np_budget b;
    struct np_share s[4];
    setup(&b, s, 100);
    now_us = 2000;
    npi_share_add(&s[0], 1);
    now_us = 1000;
    npi_share_add(&s[1], 40);
    now_us = 3000;
    npi_share_add(&s[0], 39);
    npi_share_add(&s[2], 40);
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
        npi_share_add(&s[0], 60);
        npi_share_add(&s[1], 40);
        assert_int_equal(npi_budget_total(&b), 100);
        npi_share_sub(&s[1], 40);
        npi_share_sub(&s[0], 59);
        assert_ptr_equal(b.shares, &s[0]);
        npi_share_sub(&s[0], 1);
        assert_null(b.shares);
    }
    npi_share_add(&s[0], 130); /* alone over the limit */
    assert_int_equal(told[0], 1);
    npi_share_sub(&s[0], 100);
    assert_int_equal(b.leaving, 30);
    end(&b, s);
}

static void test_budget_spares_whose_bytes_move(void **state) {
    (void)state;
    struct np_budget b;
    struct np_share s[4];
    setup_sparing(&b, s, 100, 50, 500);
    npi_share_add(&s[0], 60);
    npi_share_add(&s[1], 30);
    now_us += 60;
    npi_share_moved(&s[0], now_us - 10);
    npi_share_add(&s[2], 20); /* the largest reads; the next does not */
    assert_int_equal(told[1], 1);
    now_us += 45;
    npi_share_moved(&s[2], now_us);
    npi_share_add(&s[3], 21);
    assert_int_equal(told[0], 1);
    assert_int_equal(told[2] + told[3], 0);
    end(&b, s);
}

static void test_budget_spares_nobody_for_ever(void **state) {
    (void)state;
    struct np_budget b;
    struct np_share s[4];
    setup_sparing(&b, s, 100, 50, 500);
    npi_share_add(&s[0], 60);
    now_us += 500;
    npi_share_moved(&s[0], now_us);
    npi_share_add(&s[1], 41);
    assert_int_equal(told[0], 1);
    npi_share_add(&s[2], 71); /* 112 without what is leaving: more than the limit, and all of it moves */
    assert_int_equal(told[1] + told[2], 0);
    npi_share_add(&s[3], 1); /* more than nine eighths */
    assert_int_equal(told[2], 1);
    end(&b, s);
}

/* Makers are the shares themselves, one each. */
static enum np_may make(struct np_share *s, size_t so_far, size_t n) { return npi_share_make(s, s, so_far, n); }
static enum np_may may_make(struct np_share *s, size_t so_far) { return npi_share_may_make(s, s, so_far); }

static void test_budget_what_is_being_made_waits_rather_than_evicts_who_reads(void **state) {
    (void)state;
    struct np_budget b;
    struct np_share s[4];
    setup_sparing(&b, s, 100, 50, 500);
    assert_int_equal(make(&s[0], 0, 60), NP_MAY_GO_ON);
    now_us += 1000;
    assert_int_equal(make(&s[1], 0, 61), NP_MAY_WAIT); /* the other only makes, and less: that is no reason to go */
    assert_int_equal(make(&s[1], 0, 40), NP_MAY_GO_ON);
    npi_share_made(&s[0], 60);
    npi_share_moved(&s[0], now_us - 1000);
    assert_int_equal(make(&s[2], 0, 10), NP_MAY_GO_ON); /* now it is unread, and long so */
    assert_int_equal(told[0], 1);
    npi_share_made(&s[1], 40), npi_share_made(&s[2], 10);
    end(&b, s);
}

/* Large answers that begin fill everything; who comes with a small one while they do is not refused for that. */
static void test_budget_revokes_who_makes_the_most_for_a_small_answer(void **state) {
    (void)state;
    enum { GUILTY = 50 };
    struct np_budget b;
    struct np_share s[4], guilty[GUILTY];
    int guilty_told = 0, revoked = 0;
    size_t mb = 1 << 20;
    setup_sparing(&b, s, 100 * mb, 50, 500);
    for (int i = 0; i < GUILTY; i++) npi_share_init(&guilty[i], &b, &guilty_told);
    for (size_t so_far = 0; so_far < 2 * mb; so_far += mb)
        for (int i = 0; i < GUILTY; i++) assert_int_equal(make(&guilty[i], so_far, mb), NP_MAY_GO_ON);
    for (int i = 0; i < 2; i++)
        for (size_t so_far = 0; so_far < mb; so_far += mb / 4) assert_int_equal(make(&s[i], so_far, mb / 4), NP_MAY_GO_ON);
    for (int i = 0; i < GUILTY; i++) {
        if (!guilty[i].revoked) continue;
        revoked++;
        assert_int_equal(make(&guilty[i], 2 * mb, mb), NP_MAY_GIVE_UP);
        assert_int_equal(may_make(&guilty[i], 2 * mb), NP_MAY_GIVE_UP);
        assert_int_equal(npi_share_may_make(&guilty[i], &guilty_told, 0), NP_MAY_GO_ON); /* another request of the same connection, which has not begun */
        npi_share_made(&guilty[i], 2 * mb);
        npi_share_sub(&guilty[i], 2 * mb);
        assert_false(guilty[i].revoked);
    }
    assert_int_equal(revoked, 1); /* no more than the two need */
    assert_int_equal(b.leaving, 0);
    assert_int_equal(guilty_told, 0); /* and no connection is closed: none had its chance to read */
    for (int i = 0; i < GUILTY; i++) npi_share_made(&guilty[i], guilty[i].making), npi_share_sub(&guilty[i], guilty[i].bytes);
    npi_share_made(&s[0], mb), npi_share_made(&s[1], mb);
    end(&b, s);
}

static void test_budget_small_answer_waits_for_room_where_nobody_makes_more(void **state) {
    (void)state;
    struct np_budget b;
    struct np_share s[4];
    size_t mb = 1 << 20;
    setup_sparing(&b, s, 4 * mb, 50, 500);
    for (int i = 0; i < 4; i++) assert_int_equal(make(&s[i], 0, mb), NP_MAY_GO_ON);
    assert_int_equal(make(&s[3], mb, mb / 2), NP_MAY_WAIT);
    assert_int_equal(make(&s[2], mb, 3 * mb), NP_MAY_GIVE_UP); /* what would be large is refused */
    npi_share_made(&s[3], mb), npi_share_sub(&s[3], mb);      /* who waits holds nothing */
    assert_false(npi_share_has_room(&s[3]));
    npi_share_made(&s[0], mb), npi_share_sub(&s[0], mb);
    assert_true(npi_share_has_room(&s[3]));
    assert_int_equal(make(&s[3], 0, mb), NP_MAY_GO_ON);
    assert_int_equal(told[0] + told[1] + told[2] + told[3], 0);
    for (int i = 1; i < 4; i++) npi_share_made(&s[i], mb);
    end(&b, s);
}

static void test_budget_large_answer_that_waits_evicts_nobody_with_a_small_one(void **state) {
    (void)state;
    struct np_budget b;
    struct np_share s[4];
    size_t mb = 1 << 20;
    setup_sparing(&b, s, 8 * mb, 50, 500);
    npi_share_add(&s[0], mb);
    npi_share_add(&s[1], 3 * mb);
    now_us += 50; /* both are slow */
    assert_int_equal(make(&s[2], 0, 2 * mb), NP_MAY_GO_ON);
    assert_int_equal(make(&s[3], 0, 2 * mb), NP_MAY_GO_ON);
    assert_int_equal(may_make(&s[2], 3 * mb), NP_MAY_GO_ON); /* has the turn */
    assert_int_equal(told[1], 1);
    assert_int_equal(may_make(&s[3], 3 * mb), NP_MAY_WAIT);
    assert_int_equal(make(&s[3], 3 * mb, mb), NP_MAY_GO_ON);
    assert_int_equal(make(&s[3], 4 * mb, mb), NP_MAY_GIVE_UP);
    assert_int_equal(told[0], 0);
    npi_budget_end_turn(&b, &s[2]);
    npi_share_made(&s[2], 2 * mb), npi_share_made(&s[3], 3 * mb);
    end(&b, s);
}

static void test_budget_gives_no_turn_to_who_has_not_read(void **state) {
    (void)state;
    struct np_budget b;
    struct np_share s[4];
    int makers[2];
    size_t mb = 1 << 20;
    setup_sparing(&b, s, 100 * mb, 50, 500);
    assert_int_equal(npi_share_make(&s[0], &makers[0], 0, 40 * mb) | npi_share_make(&s[0], &makers[1], 0, 20 * mb), NP_MAY_GO_ON);
    assert_false(npi_share_is_behind(&s[0]));
    npi_share_made(&s[0], 40 * mb); /* and unread */
    assert_true(npi_share_is_behind(&s[0]));
    assert_int_equal(npi_share_may_make(&s[0], &makers[1], 20 * mb), NP_MAY_WAIT);
    now_us += 50; /* it has not moved since, but its own answer is no reason for it to go */
    assert_int_equal(npi_share_may_make(&s[0], &makers[1], 20 * mb), NP_MAY_WAIT);
    assert_int_equal(told[0], 0);
    npi_share_sub(&s[0], 40 * mb);
    npi_share_add(&s[1], 40 * mb);
    assert_int_equal(npi_share_may_make(&s[0], &makers[1], 20 * mb), NP_MAY_GO_ON);
    npi_budget_end_turn(&b, &makers[1]);
    npi_share_made(&s[0], 20 * mb);
    end(&b, s);
}

static void test_budget_lets_one_maker_at_a_time_go_on_above_the_soft_limit(void **state) {
    (void)state;
    struct np_budget b;
    struct np_share s[4];
    size_t mb = 1 << 20;
    setup_sparing(&b, s, 100 * mb, 50, 500);
    assert_int_equal(make(&s[0], 0, 30 * mb) | make(&s[1], 0, 30 * mb), NP_MAY_GO_ON);
    assert_int_equal(may_make(&s[2], mb), NP_MAY_GO_ON); /* little always may */
    assert_int_equal(make(&s[2], 2 * mb, 16 * mb), NP_MAY_GIVE_UP); /* the last quarter is for small answers */
    assert_int_equal(make(&s[2], mb, mb), NP_MAY_GO_ON);
    npi_share_made(&s[2], mb), npi_share_sub(&s[2], mb);
    assert_int_equal(may_make(&s[0], 30 * mb), NP_MAY_GO_ON);
    assert_int_equal(may_make(&s[1], 30 * mb), NP_MAY_WAIT);
    assert_int_equal(may_make(&s[0], 30 * mb), NP_MAY_GO_ON);
    assert_int_equal(make(&s[2], 0, 16 * mb), NP_MAY_GIVE_UP);
    npi_share_add(&s[2], 16 * mb); /* small answers use what is left for them: who waits gives up what it holds, but whose turn it is */
    assert_int_equal(may_make(&s[1], 30 * mb), NP_MAY_GIVE_UP);
    assert_int_equal(may_make(&s[0], 30 * mb), NP_MAY_GO_ON);
    npi_share_sub(&s[2], 16 * mb);
    npi_budget_end_turn(&b, &s[0]);
    assert_int_equal(may_make(&s[1], 30 * mb), NP_MAY_GO_ON);
    assert_int_equal(may_make(&s[0], 30 * mb), NP_MAY_WAIT);
    npi_budget_end_turn(&b, &s[1]);
    npi_share_made(&s[0], 30 * mb), npi_share_made(&s[1], 30 * mb);
    now_us += 50; /* both are unread by now */
    assert_int_equal(make(&s[3], 0, 2 * mb), NP_MAY_GO_ON);
    assert_int_equal(may_make(&s[3], 3 * mb), NP_MAY_GO_ON);
    assert_int_equal(told[0] + told[1], 1);
    npi_share_made(&s[3], 2 * mb);
    end(&b, s);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_budget_evicts_who_holds_the_most_not_who_comes_next),
        cmocka_unit_test(test_budget_counts_what_is_leaving_as_gone),
        cmocka_unit_test(test_budget_of_equals_takes_the_eldest),
        cmocka_unit_test(test_budget_gives_back_piece_by_piece),
        cmocka_unit_test(test_budget_spares_whose_bytes_move),
        cmocka_unit_test(test_budget_spares_nobody_for_ever),
        cmocka_unit_test(test_budget_what_is_being_made_waits_rather_than_evicts_who_reads),
        cmocka_unit_test(test_budget_revokes_who_makes_the_most_for_a_small_answer),
        cmocka_unit_test(test_budget_small_answer_waits_for_room_where_nobody_makes_more),
        cmocka_unit_test(test_budget_large_answer_that_waits_evicts_nobody_with_a_small_one),
        cmocka_unit_test(test_budget_gives_no_turn_to_who_has_not_read),
        cmocka_unit_test(test_budget_lets_one_maker_at_a_time_go_on_above_the_soft_limit),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
