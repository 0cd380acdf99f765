/* The store on a cluster of one OSD in memory: records, conditions, and each trap of librados. */
#include <errno.h>
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>

#include <cmocka.h>

#include "world.h"

/* ---- records ---- */

static void test_a_record_is_the_union_of_its_operands_at_every_client(void **state) {
    struct world *w = *state;
    struct slice prefix = world_prefix(w, 1), key = world_row(w, 1, 7);
    assert_null(world_read(w, w->s, prefix, key).value.p);
    world_append(w, w->s, prefix, key, 3);
    world_append(w, w->other, prefix, key, 1);
    world_append(w, w->s, prefix, key, 2);
    for (int i = 0; i < 2; i++) {
        struct record r = world_read(w, i ? w->other : w->s, prefix, key);
        assert_int_equal(r.n_operands, 3);
        assert_int_equal(harness_count(r.value), 3);
    }
    assert_null(world_read(w, w->s, prefix, world_row(w, 1, 8)).value.p);
}

static void test_a_fold_keeps_operands_appended_meanwhile(void **state) {
    struct world *w = *state;
    struct slice prefix = world_prefix(w, 1), key = world_row(w, 1, 7);
    for (uint32_t i = 0; i < 5; i++) world_append(w, w->s, prefix, key, i);
    struct record seen = world_read(w, w->s, prefix, key);
    struct slice removals = w->removals;
    world_append(w, w->other, prefix, key, 100);
    struct write_change c = {
        .kind = WRITE_REPLACE, .key = key, .value = seen.value, .seen = seen.operands, .n_seen = seen.n_operands};
    struct write_group g = {.prefix = prefix, .changes = &c, .n = 1, .removals = &removals};
    assert_int_equal(write_groups(w->s, &g, 1, &w->e), 0);
    struct record r = world_read(w, w->other, prefix, key);
    assert_int_equal(r.n_operands, 2);
    assert_int_equal(harness_count(r.value), 6);
    /* a second fold of the same operands, by another client, is refused */
    assert_int_equal(write_groups(w->other, &g, 1, &w->e), 0);
    assert_int_equal(g.result, WRITE_CHANGED);
    assert_int_equal(harness_count(world_read(w, w->s, prefix, key).value), 6);
    assert_int_equal(read_fold(w->s, key, &w->e), 0);
    r = world_read(w, w->s, prefix, key);
    assert_int_equal(r.n_operands, 1);
    assert_int_equal(harness_count(r.value), 6);
}

static void test_a_removal_removes_only_the_operands_that_were_read(void **state) {
    struct world *w = *state;
    struct slice prefix = world_prefix(w, 1), key = world_row(w, 1, 7);
    world_append(w, w->s, prefix, key, 1);
    struct record seen = world_read(w, w->s, prefix, key);
    struct slice removals = w->removals;
    world_append(w, w->other, prefix, key, 2);
    struct write_change c = {.kind = WRITE_REMOVE, .key = key, .seen = seen.operands, .n_seen = seen.n_operands};
    struct write_group g = {.prefix = prefix, .changes = &c, .n = 1, .removals = &removals};
    assert_int_equal(write_groups(w->s, &g, 1, &w->e), 0);
    struct record r = world_read(w, w->s, prefix, key);
    assert_int_equal(harness_count(r.value), 1);
    assert_true(harness_has(r.value, 2));
}

/* ---- traps of librados ---- */

static void test_keys_may_hold_any_byte(void **state) {
    struct world *w = *state;
    static const uint8_t rests[][3] = {{0, 0, 0},   {0, 0, 1}, {0, 1, 0}, {0, 5, 1}, {1, 0, 0},
                                       {1, 1, 255}, {2, 0, 2}, {2, 2, 2}, {3, 0, 0}, {255, 0, 255}};
    struct slice prefix = world_prefix(w, 1);
    for (size_t i = ARRAY_LEN(rests); i-- > 0;)
        world_append(w, w->s, prefix, world_key(w, 1, slice_of(rests[i], 3)), (uint32_t)i);
    for (size_t from = 0; from < ARRAY_LEN(rests); from++) {
        struct cursor c;
        const struct record *r;
        cursor_init(&c, w->s, w->table, prefix, world_key(w, 1, slice_of(rests[from], 3)), (struct slice){0});
        for (size_t i = from; i < ARRAY_LEN(rests); i++) {
            assert_int_equal(cursor_next(&c, &r, &w->e), 1);
            assert_true(slice_eq(r->key, world_key(w, 1, slice_of(rests[i], 3))));
            assert_true(harness_has(r->value, (uint32_t)i));
        }
        assert_int_equal(cursor_next(&c, &r, &w->e), 0);
        cursor_fini(&c);
    }
}

static void test_an_operation_may_run_again(void **state) {
    struct world *w = *state;
    struct omap_write set = {.creates = true}, remove = {0};
    struct omap_read r = {.pool = &w->s->pool};
    struct omap_pairs pairs = {0};
    omap_write_set(&set, slice_str("key"), slice_str("value"));
    omap_write_remove(&remove, slice_str("key"));
    assert_int_equal(omap_write_run(&set, &w->s->pool, "again"), 0);
    assert_int_equal(omap_write_run(&remove, &w->s->pool, "again"), 0);
    assert_int_equal(omap_write_run(&set, &w->s->pool, "again"), 0);
    omap_read_add(&r, "", "", 10);
    assert_int_equal(omap_read_run(&r, "again"), 0);
    assert_int_equal(omap_read_take(&r, 0, &w->a, &pairs), 0);
    assert_int_equal(pairs.n, 1);
    omap_read_fini(&r);
    omap_pairs_fini(&pairs);
    omap_write_fini(&set);
    omap_write_fini(&remove);
}

static void test_iterators_of_a_failed_read_are_not_read(void **state) {
    struct world *w = *state;
    struct omap_read r = {.pool = &w->s->pool};
    omap_read_add(&r, "", "", 10);
    omap_read_add(&r, "", "x", 10);
    assert_int_equal(omap_read_run(&r, "there is no such object"), -ENOENT);
    omap_read_fini(&r);
}

static void test_a_failed_comparison_after_a_set_undoes_it(void **state) {
    struct world *w = *state;
    struct omap_write set = {.creates = true};
    struct omap_read r = {.pool = &w->s->pool};
    omap_write_set(&set, slice_str("key"), slice_str("value"));
    omap_write_compare(&set, slice_str("other"), slice_str("there"));
    assert_int_equal(omap_write_run(&set, &w->s->pool, "refused"), -ECANCELED);
    omap_read_add(&r, "", "", 10);
    assert_int_equal(omap_read_run(&r, "refused"), -ENOENT);
    omap_read_fini(&r);
    omap_write_fini(&set);
}

static void test_an_operation_on_a_hanging_osd_times_out(void **state) {
    struct world *w = *state;
    struct rados *hasty = harness_open(0, 1);
    struct slice prefix = world_prefix(w, 1), key = world_row(w, 1, 1);
    struct write_change c = {.kind = WRITE_APPEND, .key = key, .value = world_set(w, 1)};
    struct write_group g = {.prefix = prefix, .changes = &c, .n = 1};
    struct read_result r;
    struct err read_error = {0}, write_error = {0};
    assert_int_equal(write_groups(hasty, &g, 1, &w->e), 0);
    harness_pause(0);
    int write_rc = write_groups(hasty, &g, 1, &write_error);
    int read_rc = read_partition(hasty, prefix, &key, 1, &w->a, &r, &read_error);
    harness_resume(0);
    assert_int_equal(write_rc, -1);
    assert_int_equal(write_error.code, ERR_WRITE_TIMEOUT);
    assert_int_equal(read_rc, -1);
    assert_int_equal(read_error.code, ERR_READ_TIMEOUT);
    assert_int_equal(write_groups(hasty, &g, 1, &w->e), 0);
    assert_int_equal(harness_count(world_read(w, w->s, prefix, key).value), 1);
    rados_close(hasty);
}

/* ---- conditions ---- */

static void test_a_ballot_decides_a_write(void **state) {
    struct world *w = *state;
    struct slice prefix = world_prefix(w, 1), key = world_row(w, 1, 1);
    struct read_result r;
    assert_int_equal(world_write_if(w, w->s, prefix, key, 1, "", "one"), 0);
    assert_int_equal(world_write_if(w, w->other, prefix, key, 2, "", "two"), WRITE_CHANGED);
    assert_int_equal(world_write_if(w, w->other, prefix, key, 3, "one", "\x90"), 0);
    assert_int_equal(world_write_if(w, w->s, prefix, key, 4, "\x10", "three"), WRITE_CHANGED);
    assert_int_equal(world_write_if(w, w->s, prefix, key, 5, "\x90", "four"), 0);
    assert_int_equal(read_partition(w->s, prefix, &key, 1, &w->a, &r, &w->e), 0);
    assert_true(slice_is(r.ballot, "four"));
    assert_int_equal(harness_count(r.keys[0].value), 3);
}

struct adder {
    struct rados *s;
    uint32_t table, partition;
    int tries, added;
    pthread_t thread;
};

/* Reads a counter, which is the partition's ballot, and adds one if nobody else has. */
static void *add(void *arg) {
    struct adder *x = arg;
    struct buf prefix, key;
    struct arena a;
    struct err e = {0};
    uint8_t value[4] = {0};
    arena_init(&a, 1 << 12, 0);
    buf_init(&prefix, 0);
    buf_init(&key, 0);
    harness_prefix(&prefix, x->table, x->partition);
    harness_key(&key, x->table, x->partition, ENGI_ROW, slice_of("", 0));
    for (int i = 0; i < x->tries; i++) {
        struct read_result r;
        struct slice row = buf_slice(&key), seen = slice_of("", 0);
        arena_reset(&a);
        assert_int_equal(read_partition(x->s, buf_slice(&prefix), &row, 1, &a, &r, &e), 0);
        uint32_t now = r.ballot.n ? load_u32(r.ballot.p) : 0;
        assert_int_equal(now, harness_count(r.keys[0].value)); /* ballot and row are of one moment */
        if (r.ballot.n) seen = r.ballot;
        store_u32(value, now + 1);
        struct write_change c = {.kind = WRITE_APPEND, .key = row, .value = slice_of(value, 4)};
        struct write_group g = {
            .prefix = buf_slice(&prefix), .changes = &c, .n = 1, .expected = &seen, .ballot = slice_of(value, 4)};
        assert_int_equal(write_groups(x->s, &g, 1, &e), 0);
        x->added += g.result == 0;
    }
    buf_fini(&prefix);
    buf_fini(&key);
    arena_fini(&a);
    return NULL;
}

static void test_one_of_several_writers_with_one_ballot_wins(void **state) {
    struct world *w = *state;
    enum { ADDERS = 8, TRIES = 40, PARTITIONS = 2 };
    struct adder adders[ADDERS];
    int added[PARTITIONS] = {0};
    for (int i = 0; i < ADDERS; i++) {
        adders[i] = (struct adder){
            .s = i % 2 ? w->s : w->other, .table = w->table, .partition = (uint32_t)i / 4 % PARTITIONS, .tries = TRIES};
        assert_int_equal(pthread_create(&adders[i].thread, NULL, add, &adders[i]), 0);
    }
    for (int i = 0; i < ADDERS; i++) {
        pthread_join(adders[i].thread, NULL);
        added[adders[i].partition] += adders[i].added;
    }
    for (uint32_t p = 0; p < PARTITIONS; p++) {
        struct read_result r;
        struct slice none = {0};
        assert_int_equal(read_partition(w->s, world_prefix(w, p), &none, 0, &w->a, &r, &w->e), 0);
        assert_int_equal(load_u32(r.ballot.p), added[p]);
        assert_in_range(added[p], TRIES, ADDERS / PARTITIONS * TRIES);
    }
}

int main(void) {
#define TEST(name, setup) cmocka_unit_test_setup_teardown(name, setup, world_teardown)
    const struct CMUnitTest tests[] = {
        TEST(test_a_record_is_the_union_of_its_operands_at_every_client, world_setup),
        TEST(test_a_fold_keeps_operands_appended_meanwhile, world_setup),
        TEST(test_a_removal_removes_only_the_operands_that_were_read, world_setup),
        TEST(test_keys_may_hold_any_byte, world_setup),
        TEST(test_an_operation_may_run_again, world_setup),
        TEST(test_iterators_of_a_failed_read_are_not_read, world_setup),
        TEST(test_a_failed_comparison_after_a_set_undoes_it, world_setup),
        TEST(test_an_operation_on_a_hanging_osd_times_out, world_setup),
        TEST(test_a_ballot_decides_a_write, world_setup),
        TEST(test_one_of_several_writers_with_one_ballot_wins, world_setup),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
