/* Splits of shards, and tables that are dropped, also while a shard splits. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>

#include <cmocka.h>

#include "engine/rados/fetch.h"
#include "engine/rados/move.h"
#include "engine/rados/split.h"
#include "engine/rados/rados.h"
#include "world.h"

/* ---- splits ---- */

static enum shard_state state_of(struct world *w, const struct shard *sh, struct shard_head *head) {
    struct omap_read r = {.pool = &w->s->pool};
    struct omap_pairs pairs = {0};
    omap_read_add(&r, "", SHARD_HEAD_PREFIX, 100);
    assert_int_equal(omap_read_run(&r, sh->name), 0);
    assert_int_equal(omap_read_take(&r, 0, &w->a, &pairs), 0);
    assert_int_equal(shard_head_read(&pairs, &w->a, head), 0);
    omap_read_fini(&r);
    omap_pairs_fini(&pairs);
    return head->state;
}

static void test_a_split_shard_has_the_same_rows_for_every_client(void **state) {
    struct world *w = *state;
    struct shard_head head;
    struct shard *root = shard_map_get(&w->s->shards, &(struct shard_id){.table = w->table});
    world_write_rows(w, w->s, 0, 100);
    /* The other client learns the way before the split. */
    assert_int_equal(world_count_rows(w, w->other, w->table), 200);
    assert_int_equal(world_write_if(w, w->s, world_prefix(w, 5), world_row(w, 5, 9), 1, "", "ballot"), 0);
    for (int i = 0; !atomic_load(&root->split); i++) assert_int_equal(move_relieve(w->s, root), 0);
    assert_int_equal(state_of(w, root, &head), SHARD_SPLIT);
    assert_int_equal(world_count_rows(w, w->s, w->table), 201);
    assert_int_equal(world_count_rows(w, w->other, w->table), 201);
    world_write_rows(w, w->other, 100, 110);
    assert_int_equal(world_count_rows(w, w->s, w->table), 221);
    assert_int_equal(world_write_if(w, w->other, world_prefix(w, 5), world_row(w, 5, 9), 2, "", "later"),
                     WRITE_CHANGED);
    assert_int_equal(world_write_if(w, w->other, world_prefix(w, 5), world_row(w, 5, 9), 2, "ballot", "later"), 0);
}

static void test_counters_match_the_stored_operands(void **state) {
    struct world *w = *state;
    struct shard_head head;
    struct shard *root = shard_map_get(&w->s->shards, &(struct shard_id){.table = w->table});
    struct slice prefix = world_prefix(w, 1), key = world_row(w, 1, 1);
    world_write_rows(w, w->s, 2, 12);
    for (uint32_t i = 0; i < 6; i++) world_append(w, i % 2 ? w->s : w->other, prefix, key, i);
    state_of(w, root, &head);
    assert_int_equal(head.n_counters, 2);
    assert_int_equal(shard_sum(&head).keys, 26);
    uint64_t bytes = shard_sum(&head).bytes;
    assert_int_equal(read_fold(w->s, key, &w->e), 0);
    state_of(w, root, &head);
    assert_int_equal(shard_sum(&head).keys, 21);
    assert_int_equal(shard_sum(&head).removals, 1);
    assert_true(shard_sum(&head).bytes < bytes);
}

static const struct librados *real;
static int n_reads;

/* Another client removes the object after its second read, in which the split finds it frozen. */
static int read_and_lose(void *op, void *io, const char *object, int flags) {
    int rc = real->read_op_operate(op, io, object, flags);
    if (++n_reads == 2) assert_int_equal(real->remove(io, object), 0);
    return rc;
}

static void test_a_split_of_a_table_dropped_meanwhile_reports_it(void **state) {
    struct world *w = *state;
    struct shard *root = shard_map_get(&w->s->shards, &(struct shard_id){.table = w->table});
    world_write_rows(w, w->s, 2, 12);
    world_freeze(w, root);
    real = w->s->pool.lib;
    struct librados losing = *real;
    losing.read_op_operate = read_and_lose;
    w->s->pool.lib = &losing;
    int rc = split_shard(w->s, root, NULL);
    w->s->pool.lib = real;
    assert_int_equal(rc, -ESTALE);
}

static void test_a_fold_that_read_before_a_split_is_refused_after_it(void **state) {
    struct world *w = *state;
    struct shard_head head;
    struct shard *root = shard_map_get(&w->s->shards, &(struct shard_id){.table = w->table});
    struct slice prefix = world_prefix(w, 1), key = world_row(w, 1, 1);
    world_write_rows(w, w->s, 2, 12);
    for (uint32_t i = 0; i < 6; i++) world_append(w, w->s, prefix, key, i);
    struct record seen = world_read(w, w->other, prefix, key);
    struct slice removals = w->removals;
    assert_int_equal(seen.n_operands, 6);
    world_freeze(w, root);
    assert_int_equal(move_relieve(w->s, root), 0);
    struct write_change c = {
        .kind = WRITE_REPLACE, .key = key, .value = seen.value, .seen = seen.operands, .n_seen = seen.n_operands};
    struct write_group g = {.prefix = prefix, .changes = &c, .n = 1, .removals = &removals};
    assert_int_equal(write_groups(w->other, &g, 1, &w->e), 0); /* it finds the split when it writes */
    assert_int_equal(g.result, WRITE_CHANGED);
    for (uint32_t i = 6; i < 8; i++) world_append(w, w->s, prefix, key, i);
    assert_int_equal(read_fold(w->other, key, &w->e), 0); /* one that reads in the half is not */
    assert_int_equal(harness_count(world_read(w, w->s, prefix, key).value), 8);
    uint64_t keys = 0;
    for (unsigned i = 0; i < 2; i++) {
        struct shard_id id = shard_half(&root->id, i);
        state_of(w, shard_map_get(&w->s->shards, &id), &head);
        keys += shard_sum(&head).keys;
    }
    assert_int_equal(keys, 21);
}

static void test_an_abandoned_split_is_completed_by_the_next_writer(void **state) {
    struct world *w = *state;
    struct shard_head head;
    struct shard *root = shard_map_get(&w->s->shards, &(struct shard_id){.table = w->table});
    world_write_rows(w, w->s, 0, 10);
    world_freeze(w, root);
    assert_int_equal(world_count_rows(w, w->other, w->table), 20); /* a frozen shard is read */
    world_write_rows(w, w->other, 10, 11);
    assert_int_equal(state_of(w, root, &head), SHARD_SPLIT);
    assert_int_equal(world_count_rows(w, w->s, w->table), 22);
}

static void test_a_late_copy_changes_no_rows(void **state) {
    struct world *w = *state;
    struct shard_head head;
    struct shard *root = shard_map_get(&w->s->shards, &(struct shard_id){.table = w->table});
    world_write_rows(w, w->s, 0, 10);
    world_freeze(w, root);
    assert_int_equal(move_relieve(w->s, root), 0);
    /* The copying client writes to a half that another has opened since. */
    struct shard_id id = shard_half(&root->id, 0);
    struct shard *half = shard_map_get(&w->s->shards, &id);
    struct omap_write late = {0};
    omap_write_compare(&late, shard_state_key, shard_state_value(SHARD_COPIED));
    omap_write_set(&late, slice_str("late"), slice_str("late"));
    assert_int_equal(omap_write_run(&late, &w->s->pool, half->name), -ECANCELED);
    omap_write_fini(&late);
    assert_int_equal(state_of(w, half, &head), SHARD_OPEN);
    assert_int_equal(move_relieve(w->other, shard_map_get(&w->other->shards, &root->id)), 0);
    assert_int_equal(world_count_rows(w, w->other, w->table), 20);
}

static void test_one_partition_is_not_split_and_is_refused_when_too_large(void **state) {
    struct world *w = *state;
    struct shard *root = shard_map_get(&w->s->shards, &(struct shard_id){.table = w->table});
    w->s->o.max_keys = 150;
    atomic_store(&root->will_split, true); /* the work in the background is late */
    int rc = 0;
    uint32_t row = 0;
    for (; rc == 0 && row < 200; row++) rc = harness_append(w->s, w->table, 1, &row, 1, 1, &w->e);
    assert_int_equal(rc, -1);
    assert_int_equal(w->e.code, ERR_OVERLOADED);
    assert_int_equal(row - 1, 150);
    assert_int_equal(move_relieve(w->s, root), 0);
    assert_false(atomic_load(&root->split));
    atomic_store(&root->will_split, false);
    err_clear(&w->e);
    assert_int_equal(harness_append(w->s, w->table, 1, &row, 1, 1, &w->e), -1);
    assert_int_equal(w->e.code, ERR_INVALID);
    assert_non_null(strstr(w->e.text, "too large"));
    assert_int_equal(world_count_rows(w, w->other, w->table), 150);
}

/* A full shard takes no operand, but operands are combined there, and then it takes some again. Another table is not
 * concerned. */
static void test_a_full_shard_is_relieved_by_folding(void **state) {
    struct world *w = *state;
    w->s->o.max_keys = 50;
    int rc = 0;
    for (uint32_t i = 0; rc == 0 && i < 100; i++)
        rc = harness_append(w->s, w->table, 1, &(uint32_t){i % 10}, 1, i, &w->e);
    assert_int_equal(rc, -1);
    assert_int_equal(harness_append(w->s, harness_table(), 1, &(uint32_t){1}, 1, 1, &w->e), 0);
    for (uint32_t row = 0; row < 10; row++) assert_int_equal(read_fold(w->s, world_row(w, 1, row), &w->e), 0);
    assert_int_equal(harness_append(w->s, w->table, 1, &(uint32_t){3}, 1, 1000, &w->e), 0);
    assert_int_equal(world_count_rows(w, w->other, w->table), 10);
}

static void test_writes_with_many_groups_reach_every_shard(void **state) {
    struct world *w = *state;
    enum { GROUPS = 300 };
    static struct write_group groups[GROUPS];
    static struct write_change changes[GROUPS];
    for (int round = 0; round < 3; round++) {
        for (uint32_t i = 0; i < GROUPS; i++) {
            changes[i] = (struct write_change){
                .kind = WRITE_APPEND, .key = world_row(w, i, (uint32_t)round), .value = world_set(w, i)};
            groups[i] = (struct write_group){.prefix = world_prefix(w, i), .changes = &changes[i], .n = 1};
        }
        assert_int_equal(write_groups(round % 2 ? w->other : w->s, groups, GROUPS, &w->e), 0);
    }
    assert_int_equal(world_count_rows(w, w->s, w->table), 3 * GROUPS);
    assert_true(atomic_load(&w->s->n_operations) < GROUPS); /* they travelled together */
}

/* ---- tables ---- */

static void test_a_dropped_table_leaves_no_object(void **state) {
    struct world *w = *state;
    uint64_t keys, bytes;
    struct shard *root = shard_map_get(&w->s->shards, &(struct shard_id){.table = w->table});
    assert_int_equal(world_times_stored(w, w->table), 0);
    world_write_rows(w, w->s, 0, 200);
    while (!atomic_load(&root->split)) assert_int_equal(move_relieve(w->s, root), 0);
    assert_int_equal(world_times_stored(w, w->table), 1);
    assert_int_equal(table_size(w->s, w->table, &keys, &bytes, &w->e), 0);
    assert_int_equal(keys, 400);
    assert_true(bytes > 400 * 30);
    assert_int_equal(world_count_rows(w, w->other, w->table), 400);
    assert_int_equal(table_drop(w->s, w->table, &w->e), 0);
    assert_int_equal(world_times_stored(w, w->table), 0);
    /* the other client knows the shards, and is refused */
    assert_int_equal(harness_append(w->other, w->table, 1, (uint32_t[]){1}, 1, 1, &w->e), -1);
    assert_int_equal(w->e.code, ERR_INVALID);
    assert_int_equal(world_count_rows(w, w->other, w->table), 0);
    assert_int_equal(world_count_rows(w, w->s, w->table), 0);
}

/* Neither does a client that has not met the table make its first object again. Another table's is made. */
static void test_a_write_after_a_drop_fails_and_makes_no_object(void **state) {
    struct world *w = *state;
    world_write_rows(w, w->s, 0, 10);
    assert_int_equal(table_drop(w->s, w->table, &w->e), 0);
    for (int i = 0; i < 2; i++) { /* also the client that dropped it */
        assert_int_equal(harness_append(i ? w->s : w->other, w->table, 1, (uint32_t[]){1}, 1, 1, &w->e), -1);
        assert_int_equal(w->e.code, ERR_INVALID);
        assert_non_null(strstr(w->e.text, "dropped"));
        err_clear(&w->e);
    }
    assert_int_equal(world_times_stored(w, w->table), 0);
    assert_int_equal(harness_append(w->other, harness_table(), 1, (uint32_t[]){1}, 1, 1, &w->e), 0);
}

static void test_halves_without_a_root_are_dropped(void **state) {
    struct world *w = *state;
    struct shard_id id = shard_half(&(struct shard_id){.table = w->table}, 1);
    struct omap_write half = {.creates = true};
    char name[SHARD_NAME];
    shard_name(&id, name);
    omap_write_set(&half, shard_state_key, shard_state_value(SHARD_COPIED));
    assert_int_equal(omap_write_run(&half, &w->s->pool, name), 0);
    omap_write_fini(&half);
    assert_int_equal(world_times_stored(w, w->table), 1);
    assert_int_equal(table_drop(w->s, w->table, &w->e), 0);
    assert_int_equal(world_times_stored(w, w->table), 0);
}

struct seen {
    uint32_t table;
    int n;
};
static int see_half(void *arg, const char *name) {
    struct seen *x = arg;
    struct shard_id id;
    x->n += shard_name_read(name, &id) == 0 && id.table == x->table && id.depth;
    return 0;
}

/* The drop has removed what there was, and a split makes halves after that. */
static void test_a_split_of_a_table_that_is_dropped_leaves_no_half(void **state) {
    struct world *w = *state;
    struct seen x = {.table = w->table};
    struct shard *root = shard_map_get(&w->s->shards, &(struct shard_id){.table = w->table});
    struct omap_write freeze = {0};
    struct buf wide;
    world_write_rows(w, w->s, 0, 10);
    omap_write_set(&freeze, shard_state_key, shard_state_value(SHARD_FROZEN));
    assert_int_equal(omap_write_run(&freeze, &w->s->pool, root->name), 0);
    omap_write_fini(&freeze);
    assert_int_equal(head_note_drop(w->s, w->table), 0);
    buf_init(&wide, 0);
    assert_int_equal(split_shard(w->s, root, &wide), -ESTALE);
    buf_fini(&wide);
    assert_int_equal(move_relieve(w->s, root), 0); /* nothing is left to do */
    assert_int_equal(pool_each_object(&w->s->pool, see_half, &x), 0);
    assert_int_equal(x.n, 0);
    assert_int_equal(table_drop(w->s, w->table, &w->e), 0);
    assert_int_equal(world_times_stored(w, w->table), 0);
}

int main(void) {
#define TEST(name, setup) cmocka_unit_test_setup_teardown(name, setup, world_teardown)
    const struct CMUnitTest tests[] = {
        TEST(test_a_split_shard_has_the_same_rows_for_every_client, world_setup_small),
        TEST(test_counters_match_the_stored_operands, world_setup),
        TEST(test_a_split_of_a_table_dropped_meanwhile_reports_it, world_setup),
        TEST(test_a_fold_that_read_before_a_split_is_refused_after_it, world_setup),
        TEST(test_an_abandoned_split_is_completed_by_the_next_writer, world_setup),
        TEST(test_a_late_copy_changes_no_rows, world_setup),
        TEST(test_one_partition_is_not_split_and_is_refused_when_too_large, world_setup),
        TEST(test_a_full_shard_is_relieved_by_folding, world_setup),
        TEST(test_writes_with_many_groups_reach_every_shard, world_setup_small),
        TEST(test_a_dropped_table_leaves_no_object, world_setup_small),
        TEST(test_a_write_after_a_drop_fails_and_makes_no_object, world_setup),
        TEST(test_halves_without_a_root_are_dropped, world_setup),
        TEST(test_a_split_of_a_table_that_is_dropped_leaves_no_half, world_setup),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
