/* The heaviest of very many: its three promises (metering/ledger/heavy.h), against exact counts of random streams. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>
#include <stdlib.h>
#include <string.h>

#include "metering/ledger/heavy.h"

static uint64_t random_next(uint64_t *state) {
    *state ^= *state << 13;
    *state ^= *state >> 7;
    *state ^= *state << 17;
    return *state;
}

static uint64_t hash_of(uint64_t key) { return key * UINT64_C(0xD6E8FEB86659FD93) ^ key >> 7; }

enum { SETS = 16, KEYS = 20000 };

struct stream {
    struct heavy h;
    uint64_t *exact;
};

static void feed(struct stream *s, uint64_t seed, int n, int skew) {
    for (int i = 0; i < n; i++) {
        uint64_t key = random_next(&seed) % KEYS, load = 1 + random_next(&seed) % 5;
        for (int k = 0; k < skew; k++) key = key * (random_next(&seed) % KEYS) / KEYS; /* towards the small keys */
        bool fresh;
        (void)heavy_add(&s->h, hash_of(key), load, &fresh);
        s->exact[key] += load;
        if (random_next(&seed) % 4) continue;
        (void)heavy_reverse(&s->h, hash_of(key), load); /* a part of it did not happen after all */
        s->exact[key] -= load;
    }
}

static void check(const struct stream *s) {
    uint64_t given[SETS] = {0};
    for (uint64_t key = 0; key < KEYS; key++) {
        bool kept = false;
        for (uint32_t i = 0; i < SETS * HEAVY_WAYS && s->exact[key]; i++) {
            struct heavy_item item = heavy_at(&s->h, i);
            if (!item.load || item.key != hash_of(key)) continue;
            assert_in_range(s->exact[key], item.load - item.error, item.load); /* K1 */
            given[i / HEAVY_WAYS] += 1;
            kept = true;
        }
        if (!kept) assert_true(s->exact[key] <= heavy_bound(&s->h, hash_of(key))); /* K2 */
    }
    for (int i = 0; i < SETS; i++) assert_in_range(given[i], 1, HEAVY_WAYS);
}

static void test_bounds_hold_on_random_streams(void **state) {
    (void)state;
    for (int skew = 0; skew < 4; skew++) {
        struct stream s = {.exact = calloc(KEYS, sizeof(uint64_t))};
        assert_int_equal(heavy_init(&s.h, SETS), 0);
        feed(&s, 99 + (uint64_t)skew, 100000, skew);
        check(&s);
        heavy_fini(&s.h);
        free(s.exact);
    }
}

/* Those that are kept are written down and brought back; what the others had is as unknown as before. */
static void test_bounds_hold_when_it_was_brought_back(void **state) {
    (void)state;
    for (int skew = 0; skew < 4; skew++) {
        struct stream s = {.exact = calloc(KEYS, sizeof(uint64_t))};
        struct heavy before;
        bool fresh;
        assert_int_equal(heavy_init(&s.h, SETS), 0);
        feed(&s, 7 + (uint64_t)skew, 50000, skew);
        before = s.h;
        assert_int_equal(heavy_init(&s.h, SETS), 0);
        for (uint32_t i = 0; i < SETS * HEAVY_WAYS; i++) {
            struct heavy_item item = heavy_at(&before, i);
            if (item.load) (void)heavy_put(&s.h, item.key, item.load, item.error, &fresh);
        }
        heavy_fini(&before);
        check(&s);
        feed(&s, 1000 + (uint64_t)skew, 50000, 3 - skew);
        check(&s);
        heavy_fini(&s.h);
        free(s.exact);
    }
}

/* Two of one stream, the one of which lets pass what may: they come to the same. */
static void test_what_passes_comes_to_what_was_added(void **state) {
    (void)state;
    struct heavy added, passed;
    uint64_t seed = 17, light = 0;
    bool fresh, fresh_too;
    assert_int_equal(heavy_init(&added, SETS), 0);
    assert_int_equal(heavy_init(&passed, SETS), 0);
    for (int i = 0; i < 100000; i++) {
        uint64_t key = random_next(&seed) % (random_next(&seed) % KEYS + 1), load = 1 + random_next(&seed) % 5;
        uint32_t place = heavy_add(&added, hash_of(key), load, &fresh);
        bool passes = heavy_pass(&passed, hash_of(key), load);
        assert_int_equal(passes, place == HEAVY_NONE);
        assert_int_equal(heavy_keeps(&passed, hash_of(key)), place != HEAVY_NONE && !fresh);
        light += passes;
        if (passes) heavy_passed(&passed, load);
        else assert_int_equal(heavy_add(&passed, hash_of(key), load, &fresh_too), place);
    }
    assert_true(light > 50000);
    assert_int_equal(passed.total, added.total);
    assert_memory_equal(passed.sets, added.sets, SETS * sizeof(*added.sets));
    heavy_fini(&added);
    heavy_fini(&passed);
}

/* Those that do not pass are added some time later, when light ones of their set have passed. */
static void test_bounds_hold_where_some_wait_to_be_added(void **state) {
    (void)state;
    enum { BATCH = 400 };
    for (int skew = 0; skew < 4; skew++) {
        struct stream s = {.exact = calloc(KEYS, sizeof(uint64_t))};
        uint64_t seed = 23 + (uint64_t)skew, overtaken = 0, all = 0;
        bool fresh;
        assert_int_equal(heavy_init(&s.h, SETS), 0);
        for (int i = 0; i < 500; i++) {
            uint64_t waits[BATCH], n = 0, passed = 0;
            for (uint64_t k = random_next(&seed) % BATCH; k; k--, all++) {
                uint64_t key = random_next(&seed) % KEYS;
                for (int j = 0; j < skew; j++) key = key * (random_next(&seed) % KEYS) / KEYS;
                s.exact[key]++;
                bool passes = heavy_pass(&s.h, hash_of(key), 1);
                if (!passes) waits[n++] = hash_of(key);
                else overtaken += n;
                passed += passes;
            }
            heavy_passed(&s.h, passed);
            for (uint64_t k = 0; k < n; k++) (void)heavy_add(&s.h, waits[k], 1, &fresh);
        }
        assert_true(overtaken > 1000);
        assert_int_equal(s.h.total, all);
        check(&s);
        heavy_fini(&s.h);
        free(s.exact);
    }
}

static void test_who_has_a_seventh_of_its_set_is_kept(void **state) {
    (void)state;
    struct heavy h;
    assert_int_equal(heavy_init(&h, 1), 0); /* one set: all of the stream */
    uint64_t seed = 5, mine = 0, all = 0;
    bool fresh;
    for (int i = 0; i < 50000; i++) {
        bool hot = random_next(&seed) % 6 == 0;
        mine += hot;
        all++;
        (void)heavy_add(&h, hot ? 42 : 1000 + random_next(&seed) % 100000, 1, &fresh);
    }
    assert_true(mine * 64 > all * 9);
    bool kept = false;
    for (uint32_t i = 0; i < HEAVY_WAYS; i++) kept = kept || heavy_at(&h, i).key == 42;
    assert_true(kept); /* K3 */
    assert_int_equal(h.total, all);
    heavy_fini(&h);
}

static void test_a_place_is_told_to_be_fresh_when_it_was_anothers(void **state) {
    (void)state;
    struct heavy h;
    bool fresh;
    assert_int_equal(heavy_init(&h, 1), 0);
    for (uint64_t key = 1; key <= HEAVY_WAYS; key++) {
        (void)heavy_add(&h, key, key, &fresh);
        assert_true(fresh);
    }
    uint32_t place = heavy_add(&h, 5, 1, &fresh);
    assert_false(fresh);
    assert_int_equal(heavy_at(&h, place).load, 6);
    assert_int_equal(heavy_again(&h, 4, 1), HEAVY_NONE); /* which is not the last one */
    assert_int_equal(heavy_again(&h, 5, 1), place);
    assert_int_equal(heavy_at(&h, place).load, 7);
    assert_int_equal(heavy_add(&h, 100, 1, &fresh), HEAVY_NONE); /* no more than the lightest has */
    assert_int_equal(heavy_bound(&h, 100), 1);
    place = heavy_add(&h, 100, 1, &fresh);
    assert_true(fresh);
    assert_int_equal(heavy_at(&h, place).load, 2); /* what its cell has, and its own */
    assert_int_equal(heavy_at(&h, place).error, 1);
    heavy_fini(&h);
}

/* Keys that are alike take no place from one another, but for the few times that all have come to the bound. */
static void test_those_that_are_alike_pass(void **state) {
    (void)state;
    struct heavy h;
    uint64_t seed = 11, kept = 0;
    bool fresh;
    assert_int_equal(heavy_init(&h, SETS), 0);
    for (int i = 0; i < 1000000; i++) (void)heavy_add(&h, hash_of(random_next(&seed) % KEYS), 1, &fresh);
    for (int i = 0; i < 1000000; i++)
        kept += heavy_add(&h, hash_of(random_next(&seed) % KEYS), 1, &fresh) != HEAVY_NONE;
    assert_in_range(kept, 1, 1000000 / 50);
    heavy_fini(&h);
}

/* Another one that has the cell of the key. */
static uint64_t beside(struct heavy *h, uint64_t key) {
    bool fresh;
    uint64_t other = key + 1;
    (void)heavy_add(h, key, 1, &fresh);
    while (heavy_bound(h, other) != 1) other++;
    return other;
}

/* A key that loses its place leaves its load in its cell, where another one may have had more. */
static void test_who_loses_its_place_takes_nothing_from_its_cell(void **state) {
    (void)state;
    enum { MINE = 1000 };
    struct heavy h;
    bool fresh;
    assert_int_equal(heavy_init(&h, 1), 0);
    for (uint64_t key = 1; key <= HEAVY_WAYS; key++) (void)heavy_add(&h, key, 80, &fresh);
    uint64_t other = beside(&h, MINE);
    assert_int_not_equal(heavy_add(&h, MINE, 91, &fresh), HEAVY_NONE); /* one of those with 80 goes */
    for (uint64_t key = 1; key <= HEAVY_WAYS; key++)
        if (heavy_keeps(&h, key)) (void)heavy_add(&h, key, 100, &fresh);
    assert_int_equal(heavy_add(&h, other, 100, &fresh), HEAVY_NONE); /* within an eighth above MINE's 92 */
    assert_int_not_equal(heavy_add(&h, 2000, 300, &fresh), HEAVY_NONE);
    assert_false(heavy_keeps(&h, MINE));
    assert_in_range(heavy_bound(&h, other), 100, 103); /* K2 */
    heavy_fini(&h);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_bounds_hold_on_random_streams),
        cmocka_unit_test(test_bounds_hold_when_it_was_brought_back),
        cmocka_unit_test(test_what_passes_comes_to_what_was_added),
        cmocka_unit_test(test_bounds_hold_where_some_wait_to_be_added),
        cmocka_unit_test(test_who_has_a_seventh_of_its_set_is_kept),
        cmocka_unit_test(test_those_that_are_alike_pass),
        cmocka_unit_test(test_who_loses_its_place_takes_nothing_from_its_cell),
        cmocka_unit_test(test_a_place_is_told_to_be_fresh_when_it_was_anothers),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
