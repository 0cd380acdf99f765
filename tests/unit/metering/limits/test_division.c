/* Limits that several servers share: the fractions, and limiters that tell each other their demand in rounds. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>
#include <stdlib.h>

#include "metering/limits/limiter.h"

enum { SERVERS = 4, S = 1000000, CAPACITY = 200 };

static uint64_t draw(uint64_t *random, uint64_t below) {
    *random ^= *random << 13, *random ^= *random >> 7, *random ^= *random << 17;
    return (*random >> 20) % below;
}

/* ---- fractions ---- */

/* V2: of servers that know each other's demand. */
static void test_fractions_add_up_to_the_whole(void **state) {
    uint64_t random = 88172645463325252u;
    (void)state;
    for (int i = 0; i < 20000; i++) {
        uint64_t demands[8], all = 0, sum = 0;
        uint32_t n = 1 + (uint32_t)draw(&random, 8);
        for (uint32_t k = 0; k < n; k++) all += demands[k] = 1 + draw(&random, UINT64_C(1) << (1 + draw(&random, 40)));
        for (uint32_t k = 0; k < n; k++) {
            uint32_t fraction = division_fraction(demands[k], all - demands[k], n - 1);
            assert_true(fraction >= DIVISION_EQUAL / n && fraction > 0);
            sum += fraction;
        }
        assert_in_range(sum, DIVISION_WHOLE - 2 * n, DIVISION_WHOLE);
        assert_true(division_fraction(0, all, n) <= DIVISION_WHOLE / 20);
        assert_true(division_fraction(0, all, n) > 0);
    }
}

/* V2: while demand changes, each uses the lower of its last two, and the others know one of these. */
static void test_fractions_of_changing_demand_never_exceed_the_whole(void **state) {
    uint64_t random = 362436069;
    (void)state;
    for (int i = 0; i < 20000; i++) {
        uint64_t told[2][SERVERS], sum = 0;
        for (int k = 0; k < SERVERS; k++)
            told[0][k] = 1 + draw(&random, 1000), told[1][k] = 1 + draw(&random, 1000);
        for (int k = 0; k < SERVERS; k++) {
            uint64_t others = 0;
            for (int o = 0; o < SERVERS; o++) others += o == k ? 0 : told[draw(&random, 2)][o];
            sum += division_fraction(told[0][k] < told[1][k] ? told[0][k] : told[1][k], others, SERVERS - 1);
        }
        assert_true(sum <= DIVISION_WHOLE);
    }
}

static void test_more_demand_is_never_less_of_the_limit(void **state) {
    (void)state;
    for (uint64_t others = 1; others < 1000; others += 37)
        for (uint64_t mine = 0; mine < 1000; mine++)
            assert_true(division_fraction(mine, others, 3) <= division_fraction(mine + 1, others, 3));
    assert_int_equal(division_fraction(5, 0, 0), DIVISION_WHOLE);
    assert_int_equal(division_rate(1, 1), 1); /* a rate is never nothing */
    assert_int_equal(division_rate(1000, DIVISION_WHOLE / 4), 250);
}

static void test_demands_are_read_as_they_were_put(void **state) {
    struct limit_demands d = {0}, got = {0};
    struct buf b;
    (void)state;
    buf_init(&b, 0);
    for (uint32_t i = 0; i < 100; i++) {
        struct limit_demand one = {.object = i / 2, .of_partition = i % 2, .token = i % 2 ? -(int64_t)i : 0,
                                   .read = i, .write = i * 1000, .read_used = i * i, .write_used = ~0u};
        assert_int_equal(limit_demands_add(&d, &one), 0);
    }
    limit_demands_put(&d, &b);
    struct rd in = rd_of(buf_slice(&b));
    assert_int_equal(limit_demands_take(&got, &in), 0);
    assert_int_equal(got.n, d.n);
    for (size_t i = 0; i < d.n; i++) {
        assert_int_equal(limit_demand_order(&d.items[i], &got.items[i]), 0);
        assert_int_equal(got.items[i].write, d.items[i].write);
        assert_int_equal(got.items[i].read_used, d.items[i].read_used);
    }
    for (size_t n = 0; n < b.n; n++) { /* every beginning is damaged */
        struct rd part = rd_of(slice_of(b.p, n));
        assert_int_equal(limit_demands_take(&got, &part), -1);
    }
    free(d.items);
    free(got.items);
    buf_fini(&b);
}

/* ---- limiters ---- */

struct world {
    struct limiter *limiters[SERVERS];
    struct limit_connection connections[SERVERS];
    struct limit_demands told[SERVERS]; /* as the others know them */
    int64_t now_us;
    uint64_t admitted[SERVERS];
};

static int setup(void **state) {
    struct world *w = calloc(1, sizeof(*w));
    struct limiter_options o = {.mode = LIMITS_ENFORCE};
    struct err e = {0};
    const struct capacity c = {.provisioned = true, .units = CAPACITY};
    if (limit_values_parse("burst=1,connection=1000000", &o.values, &e)) fail_msg("%s", e.text);
    w->now_us = INT64_C(6000000) * S;
    for (int i = 0; i < SERVERS; i++) {
        w->limiters[i] = limiter_new(&o);
        assert_int_equal(limiter_define(w->limiters[i], 1, "k", "t", &c, &c), 0);
        assert_int_equal(limiter_define(w->limiters[i], 2, "k", "on_demand", &(struct capacity){0},
                                        &(struct capacity){0}), 0);
    }
    *state = w;
    return 0;
}

static int teardown(void **state) {
    struct world *w = *state;
    for (int i = 0; i < SERVERS; i++) {
        limiter_free(w->limiters[i]);
        free(w->told[i].items);
    }
    free(w);
    return 0;
}

/* One round of a server: it tells its demand, and takes that of the first n others. */
static void turn(struct world *w, int i, int n) {
    struct limit_demands others = {0};
    limiter_set_time(w->limiters[i], (struct limit_time){.now_us = w->now_us, .wall_us = w->now_us});
    w->told[i].n = 0;
    assert_int_equal(limiter_demands(w->limiters[i], &w->told[i]), 0);
    for (int o = 0; o < n; o++)
        for (size_t k = 0; o != i && k < w->told[o].n; k++)
            assert_int_equal(limit_demands_add(&others, &w->told[o].items[k]), 0);
    limiter_divide(w->limiters[i], others.items, others.n);
    free(others.items);
}

/* Asks for so many writes of one unit. */
static void ask(struct world *w, int i, uint32_t object, uint64_t n) {
    const struct charge_item p = {.object = object, .keyspace = "k", .table = object == 1 ? "t" : "on_demand",
                                 .one_partition = true, .token = 7, .write_units = 1};
    limiter_set_time(w->limiters[i], (struct limit_time){.now_us = w->now_us, .wall_us = w->now_us});
    for (uint64_t k = 0; k < n; k++) {
        struct limit_verdict v;
        limiter_admit(w->limiters[i],
                    &(struct limit_request){
                          .connection = &w->connections[i], .statements = 1, .n_items = 1, .items = &p},
                    &v);
        w->admitted[i] += !limit_refuses(&v);
    }
}

/* Seconds in which each server gets so many requests in twenty portions, and has its round at a moment of its own.
 * Returns what was admitted in all. */
static uint64_t go(struct world *w, uint32_t object, const uint64_t per_second[SERVERS], int seconds) {
    uint64_t sum = 0;
    memset(w->admitted, 0, sizeof(w->admitted));
    for (int step = 0; step < 20 * seconds; step++) {
        for (int i = 0; i < SERVERS; i++) {
            ask(w, i, object, per_second[i] / 20);
            if (step % 20 == 5 * i) turn(w, i, SERVERS);
        }
        w->now_us += S / 20;
    }
    for (int i = 0; i < SERVERS; i++) sum += w->admitted[i];
    return sum;
}

enum { SETTLE = 10, TEST = 30 };
static const uint64_t nothing[SERVERS];

static void test_servers_hold_a_tables_limit_together(void **state) {
    static const uint64_t loads[][SERVERS] = {
        {400, 400, 400, 400}, {2000, 200, 0, 0}, {4000, 40, 40, 40}, {400, 0, 0, 0}, {20, 20, 20, 2000}};
    struct world *w = *state;
    for (size_t k = 0; k < sizeof(loads) / sizeof(loads[0]); k++) {
        go(w, 1, loads[k], SETTLE);
        uint64_t sum = go(w, 1, loads[k], TEST);
        if (sum < TEST * CAPACITY * 9 / 10 || sum > TEST * CAPACITY * 11 / 10)
            fail_msg("load %zu: %llu of %d", k, (unsigned long long)sum, TEST * CAPACITY);
        for (int i = 0; i < SERVERS; i++) assert_true(!loads[k][i] == !w->admitted[i]);
    }
}

/* What is within the limit together is admitted wherever it comes from. */
static void test_demand_within_the_limit_is_not_refused(void **state) {
    struct world *w = *state;
    const uint64_t loads[SERVERS] = {100, 40, 20, 20};
    go(w, 1, loads, SETTLE);
    assert_int_equal(go(w, 1, loads, TEST), TEST * 180);
}

/* Traffic that moves from server to server every few seconds gets the limit, and never more than a tenth above. */
static void test_fractions_follow_the_traffic(void **state) {
    struct world *w = *state;
    uint64_t sum = 0;
    for (int k = 0; k < 8; k++) {
        uint64_t loads[SERVERS] = {0};
        loads[k % SERVERS] = 1000;
        uint64_t once = go(w, 1, loads, 20);
        assert_in_range(once, 20 * CAPACITY * 6 / 10, 20 * CAPACITY * 11 / 10);
        sum += once;
    }
    assert_true(sum <= 8 * 20 * CAPACITY * 11 / 10);
    uint64_t both[SERVERS] = {1000, 1000, 0, 0};
    go(w, 1, both, SETTLE);
    go(w, 1, both, TEST);
    assert_in_range(w->admitted[0], TEST * CAPACITY * 4 / 10, TEST * CAPACITY * 6 / 10);
}

static void test_a_server_alone_has_the_whole_limit_again(void **state) {
    struct world *w = *state;
    const uint64_t all[SERVERS] = {400, 400, 400, 400};
    go(w, 1, all, SETTLE);
    memset(w->admitted, 0, sizeof(w->admitted));
    for (int step = 0; step < 20 * TEST; step++) { /* the others are dead: their demand does not count */
        ask(w, 0, 1, 20);
        if (step % 20 == 0) turn(w, 0, 0);
        w->now_us += S / 20;
    }
    assert_in_range(w->admitted[0], TEST * CAPACITY * 9 / 10, TEST * CAPACITY * 11 / 10);
}

/* The partition's limit is 1,000 write units; its on-demand table may have 4,000. */
static void test_servers_hold_a_partitions_limit_together(void **state) {
    struct world *w = *state;
    const uint64_t loads[SERVERS] = {1600, 1600, 800, 0};
    go(w, 2, loads, SETTLE);
    uint64_t sum = go(w, 2, loads, TEST);
    assert_in_range(sum, TEST * 1000 * 9 / 10, TEST * 1000 * 11 / 10);
    go(w, 2, nothing, SETTLE + 10);
    const uint64_t one[SERVERS] = {0, 0, 0, 1600};
    go(w, 2, one, 3);
    assert_in_range(go(w, 2, one, TEST), TEST * 1000 * 9 / 10, TEST * 1000 * 11 / 10);
}

/* A fraction counts from the round that sets it: a server that is alone again gets the whole limits, and a
 * second later the buckets of table and partition hold a whole second's worth. */
static void test_a_fraction_counts_from_its_round_on(void **state) {
    struct world *w = *state;
    const uint64_t loads[SERVERS] = {1600, 1600, 1600, 1600};
    go(w, 2, loads, SETTLE);
    turn(w, 0, 0);
    w->now_us += S;
    w->admitted[0] = 0;
    ask(w, 0, 2, 1500);
    assert_int_equal(w->admitted[0], 1000);
}

/* What the others use counts for the peak of an on-demand table. */
static void test_peaks_are_those_of_all_servers(void **state) {
    struct world *w = *state;
    struct limit_demand others = {.object = 2, .write = 100, .write_new = 60 * 9000};
    limiter_set_time(w->limiters[0], (struct limit_time){.now_us = w->now_us, .wall_us = w->now_us});
    limiter_divide(w->limiters[0], &others, 1);
    w->now_us += INT64_C(1800) * S;
    limiter_set_time(w->limiters[0], (struct limit_time){.now_us = w->now_us, .wall_us = w->now_us});
    assert_int_equal(limiter_table_of(w->limiters[0], 2)->write.peak, 9000);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_fractions_add_up_to_the_whole),
        cmocka_unit_test(test_fractions_of_changing_demand_never_exceed_the_whole),
        cmocka_unit_test(test_more_demand_is_never_less_of_the_limit),
        cmocka_unit_test(test_demands_are_read_as_they_were_put),
        cmocka_unit_test_setup_teardown(test_servers_hold_a_tables_limit_together, setup, teardown),
        cmocka_unit_test_setup_teardown(test_demand_within_the_limit_is_not_refused, setup, teardown),
        cmocka_unit_test_setup_teardown(test_fractions_follow_the_traffic, setup, teardown),
        cmocka_unit_test_setup_teardown(test_a_server_alone_has_the_whole_limit_again, setup, teardown),
        cmocka_unit_test_setup_teardown(test_servers_hold_a_partitions_limit_together, setup, teardown),
        cmocka_unit_test_setup_teardown(test_a_fraction_counts_from_its_round_on, setup, teardown),
        cmocka_unit_test_setup_teardown(test_peaks_are_those_of_all_servers, setup, teardown),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
