#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>
#include <stdlib.h>

#include "native_protocol/budget.h"

static int told[4];
static struct clock fake;
static int64_t now_us;

static void tell(void *owner) { (*(int *)owner)++; }
static int64_t fake_us(struct clock *c) { return (void)c, now_us; }

static void setup_sparing(struct np_budget *b, struct np_share s[4], size_t limit, int64_t still_us, int64_t long_us) {
    fake = (struct clock){.wall_us = fake_us, .mono_us = fake_us};
    now_us = 1000;
    struct np_budget_options o = {
        .clock = &fake, .limit = limit, .still_us = still_us, .long_us = long_us, .notify = tell};
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
        npi_share_sub(&s[0], 1);
        assert_null(heap_top(&b.held));
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
        for (size_t so_far = 0; so_far < mb; so_far += mb / 4)
            assert_int_equal(make(&s[i], so_far, mb / 4), NP_MAY_GO_ON);
    for (int i = 0; i < GUILTY; i++) {
        if (!guilty[i].revoked) continue;
        revoked++;
        assert_int_equal(make(&guilty[i], 2 * mb, mb), NP_MAY_GIVE_UP);
        assert_int_equal(may_make(&guilty[i], 2 * mb), NP_MAY_GIVE_UP);
        /* another request of the same connection, which has not begun */
        assert_int_equal(npi_share_may_make(&guilty[i], &guilty_told, 0), NP_MAY_GO_ON);
        npi_share_made(&guilty[i], 2 * mb);
        npi_share_sub(&guilty[i], 2 * mb);
        assert_false(guilty[i].revoked);
    }
    assert_int_equal(revoked, 1); /* no more than the two need */
    assert_int_equal(b.leaving, 0);
    assert_int_equal(guilty_told, 0); /* and no connection is closed: none had its chance to read */
    for (int i = 0; i < GUILTY; i++)
        npi_share_made(&guilty[i], guilty[i].making), npi_share_sub(&guilty[i], guilty[i].bytes);
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
    assert_int_equal(npi_share_make(&s[0], &makers[0], 0, 40 * mb) | npi_share_make(&s[0], &makers[1], 0, 20 * mb),
                     NP_MAY_GO_ON);
    assert_false(npi_share_has_unread(&s[0]));
    npi_share_made(&s[0], 40 * mb); /* and unread */
    assert_true(npi_share_has_unread(&s[0]));
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
    /* small answers use what is left for them: who waits gives up what it holds, but whose turn it is */
    npi_share_add(&s[2], 16 * mb);
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

/* Ten large answers of one connection begin together: none is refused because the connection reads slowly. */
static void test_budget_makers_of_a_connection_that_is_behind_wait(void **state) {
    (void)state;
    struct np_budget b;
    struct np_share s[4];
    int makers[2];
    size_t mb = 1 << 20;
    setup_sparing(&b, s, 100 * mb, 50, 500);
    assert_int_equal(npi_share_make(&s[0], &makers[0], 0, 40 * mb), NP_MAY_GO_ON);
    assert_int_equal(npi_share_make(&s[0], &makers[1], 0, 25 * mb), NP_MAY_GO_ON);
    assert_int_equal(npi_share_may_make(&s[0], &makers[0], 40 * mb), NP_MAY_GO_ON); /* has the turn */
    assert_int_equal(npi_share_may_make(&s[0], &makers[1], 25 * mb), NP_MAY_WAIT);
    assert_int_equal(npi_share_make(&s[0], &makers[0], 40 * mb, 15 * mb), NP_MAY_GO_ON);
    npi_budget_end_turn(&b, &makers[0]);
    npi_share_made(&s[0], 55 * mb); /* above three quarters of the limit, of which this is the most */
    assert_int_equal(npi_share_may_make(&s[0], &makers[1], 25 * mb), NP_MAY_WAIT);
    assert_int_equal(npi_share_make(&s[0], &makers[1], 25 * mb, mb), NP_MAY_GO_ON); /* the rest of its part */
    assert_int_equal(make(&s[1], 2 * mb, mb), NP_MAY_GIVE_UP); /* the last quarter is not for others' large answers, */
    assert_int_equal(make(&s[1], 0, 2 * mb), NP_MAY_GO_ON);    /* but for small ones */
    assert_int_equal(npi_share_make(&s[0], &makers[1], 26 * mb, 20 * mb), NP_MAY_GIVE_UP);
    npi_share_sub(&s[0], 55 * mb);
    assert_int_equal(npi_share_may_make(&s[0], &makers[1], 26 * mb), NP_MAY_GO_ON);
    npi_share_made(&s[0], 26 * mb), npi_share_made(&s[1], 2 * mb);
    end(&b, s);
}

/* ---- many connections ---- */

/* Steps of 1,000 additions above the limit, beside so many connections that read and so are spared. */
static uint64_t steps_beside(size_t n) {
    enum { ADDITIONS = 1000 };
    struct np_budget b;
    struct np_share s[4], *others = calloc(n, sizeof(*others));
    int other_told = 0;
    assert_non_null(others);
    setup_sparing(&b, s, n * 100, 50, 500);
    for (size_t i = 0; i < n; i++) {
        npi_share_init(&others[i], &b, &other_told);
        npi_share_add(&others[i], 100);
    }
    uint64_t before = b.held.compared + b.still.compared + b.in_grace.compared + b.making.compared + b.looked;
    for (int i = 0; i < ADDITIONS; i++) {
        npi_share_add(&s[i % 2], 1);
        if (i % 3 == 0) assert_int_equal(npi_share_make(&s[2], &s[2], 0, 1), NP_MAY_WAIT);
        if (i % 5 == 0) npi_share_sub(&s[i % 2], 1);
    }
    uint64_t steps = b.held.compared + b.still.compared + b.in_grace.compared + b.making.compared + b.looked - before;
    assert_int_equal(other_told + told[0] + told[1] + told[2], 0);
    for (size_t i = 0; i < n; i++) npi_share_sub(&others[i], 100);
    end(&b, s);
    free(others);
    return steps;
}

static void test_budget_work_does_not_grow_with_the_number_of_connections(void **state) {
    (void)state;
    uint64_t few = steps_beside(128), many = steps_beside(128 * 128);
    assert_true(few > 0);
    assert_true(many < 3 * few); /* twice the logarithm */
}

/* ---- against a model that walks ---- */

enum { SHARES = 12, LIMIT = 1000, STILL = 50, LONG = 400 };

static uint32_t next_random(uint32_t *r) { return (*r = *r * 1664525 + 1013904223) >> 8; }

static size_t model_pays(const struct np_share *s) {
    if (s->revoked || atomic_load(&s->evicted)) return 0;
    bool spared = now_us - atomic_load(&s->moved_us) < STILL && now_us - s->since_us < LONG;
    return s->bytes > s->making && !spared ? s->bytes : s->making;
}

/* While all together are over the limit, no share that may go is left; and those that went were the greatest. */
static void assert_went(const struct np_budget *b, const struct np_share *s, const size_t *before,
                        const bool *had_gone) {
    size_t least_gone = SIZE_MAX, most_left = 0;
    for (int i = 0; i < SHARES; i++) {
        bool gone = s[i].revoked || atomic_load(&s[i].evicted);
        if (gone && !had_gone[i] && before[i] < least_gone) least_gone = before[i];
        if (!gone && before[i] > most_left) most_left = before[i];
    }
    if (b->total - b->leaving > LIMIT) assert_int_equal(most_left, 0);
    assert_true(least_gone >= most_left);
}

static void test_budget_sends_those_that_a_walk_would_find(void **state) {
    (void)state;
    int went = 0;
    for (uint32_t seed = 1; seed <= 200; seed++) {
        struct np_budget b;
        struct np_share four[4], s[SHARES];
        int ignored = 0;
        uint32_t r = seed;
        setup_sparing(&b, four, LIMIT, STILL, LONG);
        for (int i = 0; i < SHARES; i++) npi_share_init(&s[i], &b, &ignored);
        for (int step = 0; step < 300; step++) {
            struct np_share *one = &s[next_random(&r) % SHARES];
            size_t n = 1 + next_random(&r) % 120, before[SHARES];
            bool had_gone[SHARES];
            now_us += next_random(&r) % 8;
            switch (next_random(&r) % 6) {
            case 0: npi_share_moved(one, now_us); continue;
            case 1: npi_share_sub(one, (one->bytes - one->making) / 2); continue;
            case 2: npi_share_made(one, one->making); continue;
            case 3:
                if (b.total + n <= LIMIT)
                    assert_int_equal(npi_share_make(one, one, 0, n), one->revoked ? NP_MAY_WAIT : NP_MAY_GO_ON);
                continue;
            default: break;
            }
            if (b.total - b.leaving + n > LIMIT + LIMIT / 8) continue; /* where nobody is spared */
            if (!one->bytes && !atomic_load(&one->evicted)) one->since_us = now_us, npi_share_moved(one, now_us);
            one->bytes += n;
            for (int i = 0; i < SHARES; i++) {
                before[i] = model_pays(&s[i]);
                had_gone[i] = s[i].revoked || atomic_load(&s[i].evicted);
            }
            one->bytes -= n;
            int was = ignored;
            npi_share_add(one, n);
            assert_went(&b, s, before, had_gone);
            went += ignored > was;
        }
        for (int i = 0; i < SHARES; i++) npi_share_made(&s[i], s[i].making), npi_share_sub(&s[i], s[i].bytes);
        npi_budget_fini(&b);
    }
    assert_true(went > 200);
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
        cmocka_unit_test(test_budget_work_does_not_grow_with_the_number_of_connections),
        cmocka_unit_test(test_budget_sends_those_that_a_walk_would_find),
        cmocka_unit_test(test_budget_lets_one_maker_at_a_time_go_on_above_the_soft_limit),
        cmocka_unit_test(test_budget_makers_of_a_connection_that_is_behind_wait),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
