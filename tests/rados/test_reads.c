/* Reads of many rows, of large ones, and of rows that change meanwhile. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>

#include <cmocka.h>

#include "world.h"

enum { PAGE_ROWS = 12 /* rows of one operand that a cursor's first page has at most: the size of rows is unknown */ };

/* Rows [0, n) of partition 1, ten at a time. */
static void append_rows(struct world *w, uint32_t n) {
    for (uint32_t row = 0; row < n; row += 10) {
        uint32_t rows[10];
        for (uint32_t i = 0; i < 10; i++) rows[i] = row + i;
        assert_int_equal(harness_append(w->s, w->table, 1, rows, 10, 9, &w->e), 0);
    }
}

static void test_more_rows_than_an_osd_returns_at_once_are_read(void **state) {
    struct world *w = *state;
    enum { ROWS = 2500 };
    struct cursor c;
    const struct record *r;
    struct slice prefix = world_prefix(w, 1);
    append_rows(w, ROWS);
    cursor_init(&c, w->other, w->table, prefix, prefix, (struct slice){0});
    for (uint32_t row = 0; row < ROWS; row++) {
        assert_int_equal(cursor_next(&c, &r, &w->e), 1);
        assert_true(slice_eq(r->key, world_row(w, 1, row)));
    }
    assert_int_equal(cursor_next(&c, &r, &w->e), 0);
    cursor_fini(&c);
}

/* A row of n bytes. */
static void write_large(struct world *w, uint32_t partition, uint32_t row, size_t n) {
    uint8_t *value = arena_alloc(&w->a, n);
    for (uint32_t i = 0; i < n / 4; i++) store_u32(value + 4 * (size_t)i, i);
    struct write_change c = {.kind = WRITE_APPEND, .key = world_row(w, partition, row), .value = slice_of(value, n)};
    struct write_group g = {.prefix = world_prefix(w, partition), .changes = &c, .n = 1};
    assert_int_equal(write_groups(w->s, &g, 1, &w->e), 0);
}

static void test_a_reader_holds_few_large_rows_at_once(void **state) {
    struct world *w = *state;
    enum { ROWS = 60, SIZE = 200 << 10, HELD_MAX = 4 << 20 };
    for (uint32_t p = 1; p <= 2; p++)
        for (uint32_t row = 0; row < ROWS; row++) write_large(w, p, row, SIZE);
    world_make_wide(w, 2);
    for (uint32_t p = 1; p <= 2; p++) {
        struct slice prefix = world_prefix(w, p), behind = world_key(w, p, slice_of("\xff\xff\xff\xff", 4));
        struct cursor c;
        const struct record *r;
        cursor_init(&c, w->other, w->table, prefix, prefix, behind);
        for (uint32_t row = 0; row < ROWS; row++) {
            assert_int_equal(cursor_next(&c, &r, &w->e), 1);
            assert_true(slice_eq(r->key, world_row(w, p, row)) && r->value.n == SIZE);
            assert_in_range(c.page.used, SIZE, HELD_MAX);
        }
        assert_int_equal(cursor_next(&c, &r, &w->e), 0);
        cursor_fini(&c);
    }
}

/* The reader knows the size of neither before. */
static void test_large_rows_of_a_shard_and_its_pieces_make_no_large_page(void **state) {
    struct world *w = *state;
    enum { MOVED = 40, NEW = 20, SIZE = 200 << 10, HELD_MAX = 4 << 20 };
    for (uint32_t i = 0; i < MOVED; i++) write_large(w, 1, 2 * i, SIZE);
    world_make_wide(w, 1);
    for (uint32_t i = 0; i < NEW; i++) write_large(w, 1, 2 * i + 1, SIZE);
    struct slice prefix = world_prefix(w, 1), behind = world_key(w, 1, slice_of("\xff\xff\xff\xff", 4));
    struct cursor c;
    const struct record *r;
    cursor_init(&c, w->other, w->table, prefix, prefix, behind);
    for (uint32_t row = 0; row < 2 * NEW; row++) {
        assert_int_equal(cursor_next(&c, &r, &w->e), 1);
        assert_true(slice_eq(r->key, world_row(w, 1, row)));
        assert_true(c.page.used < HELD_MAX);
    }
    cursor_fini(&c);
}

/* The large rows are known from an earlier read. */
static void test_small_rows_before_large_ones_make_no_large_page(void **state) {
    struct world *w = *state;
    enum { SMALL = 5, ROWS = 45, SIZE = 200 << 10, HELD_MAX = 4 << 20 };
    for (uint32_t row = 0; row < ROWS; row++) write_large(w, 1, row, row < SMALL ? 8 : SIZE);
    struct slice prefix = world_prefix(w, 1), behind = world_key(w, 1, slice_of("\xff\xff\xff\xff", 4));
    for (uint32_t round = 0, from = SMALL; round < 2; round++, from = 0) {
        struct slice lower = world_row(w, 1, from);
        struct cursor c;
        const struct record *r;
        cursor_init(&c, w->other, w->table, prefix, lower, behind);
        for (uint32_t row = from; row < ROWS; row++) {
            assert_int_equal(cursor_next(&c, &r, &w->e), 1);
            assert_true(slice_eq(r->key, world_row(w, 1, row)));
            assert_true(c.page.used < HELD_MAX);
        }
        cursor_fini(&c);
    }
}

/* More of them than a read returns at once lie side by side. */
static void test_operands_appended_after_the_moment_do_not_delay_a_reader(void **state) {
    struct world *w = *state;
    enum { ROWS = 1500, HOT = 1300, AT_ONCE = 10, NEW = 2 * OMAP_READ_MAX + 2 };
    uint32_t rows[AT_ONCE];
    struct cursor c;
    const struct record *r;
    struct slice prefix = world_prefix(w, 1);
    for (uint32_t row = 0; row < ROWS; row += AT_ONCE) {
        for (uint32_t i = 0; i < AT_ONCE; i++) rows[i] = row + i;
        assert_int_equal(harness_append(w->s, w->table, 1, rows, AT_ONCE, 9, &w->e), 0);
    }
    cursor_init(&c, w->other, w->table, prefix, prefix, (struct slice){0});
    assert_int_equal(cursor_next(&c, &r, &w->e), 1);
    for (uint32_t i = 0; i < AT_ONCE; i++) rows[i] = HOT;
    for (uint32_t n = 0; n < NEW; n += AT_ONCE)
        assert_int_equal(harness_append(w->s, w->table, 1, rows, AT_ONCE, 10, &w->e), 0);
    world_expect_rest(w, &c, 1, ROWS);
    cursor_fini(&c);
}

/* Appends operands to row 1 of partition 1. */
static void append_often(struct world *w, size_t n) {
    uint32_t rows[10];
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) rows[i] = 1;
    for (size_t i = 0; i < n; i += ARRAY_LEN(rows))
        assert_int_equal(harness_append(w->s, w->table, 1, rows, ARRAY_LEN(rows), 9, &w->e), 0);
}

static struct {
    struct world *w;
    const struct librados *real;
    int n;
} reads;

static int read_after_writes(void *op, void *io, const char *object, int flags) {
    if (++reads.n == 2) append_often(reads.w, 2 * OMAP_READ_MAX + 100);
    return reads.real->read_op_operate(op, io, object, flags);
}

/* More operands than a read returns at once are appended between the first two operations. */
static void test_a_row_that_is_written_often_while_it_is_read(void **state) {
    struct world *w = *state;
    enum { BEFORE = OMAP_READ_MAX + 196, HELD_MAX = 64 << 20 };
    struct slice key = world_row(w, 1, 1);
    struct read_result got;
    struct arena a;
    append_often(w, BEFORE);
    struct pool *pool = &w->other->pool;
    reads.w = w;
    reads.real = pool->lib;
    reads.n = 0;
    struct librados slow = *pool->lib;
    slow.read_op_operate = read_after_writes;
    pool->lib = &slow;
    arena_init(&a, 1 << 12, HELD_MAX);
    int rc = read_partition(w->other, world_prefix(w, 1), &key, 1, &a, &got, &w->e);
    pool->lib = reads.real;
    assert_int_equal(rc, 0);
    assert_int_equal(got.keys[0].n_operands, BEFORE);
    arena_fini(&a);
}

/* The moment of the first page is past when operands of the partition are combined. */
static void test_rows_combined_during_a_read_do_not_end_it(void **state) {
    struct world *w = *state;
    enum { ROWS = 2500, COMBINED = 2000 };
    struct cursor c;
    const struct record *r;
    struct slice prefix = world_prefix(w, 1);
    append_rows(w, ROWS);
    cursor_init(&c, w->other, w->table, prefix, prefix, (struct slice){0});
    for (uint32_t row = 0; row < ROWS; row++) {
        if (row == 10) {
            uint32_t combined = COMBINED;
            assert_int_equal(harness_append(w->s, w->table, 1, &combined, 1, 10, &w->e), 0);
            assert_int_equal(read_fold(w->s, world_row(w, 1, COMBINED), &w->e), 0);
        }
        assert_int_equal(cursor_next(&c, &r, &w->e), 1);
        assert_true(slice_eq(r->key, world_row(w, 1, row)));
        if (row == COMBINED) assert_true(harness_has(r->value, 10));
    }
    assert_int_equal(cursor_next(&c, &r, &w->e), 0);
    cursor_fini(&c);
}

/* A cursor goes on with a partition as of an earlier moment. That is not the moment of those behind it: operands
 * of them may have been combined since. */
static void test_rows_of_the_next_partition_are_combined_while_one_is_read(void **state) {
    struct world *w = *state;
    enum { ROWS = 2 * PAGE_ROWS };
    uint32_t first = slice_cmp(world_prefix(w, 1), world_prefix(w, 2)) < 0 ? 1 : 2, second = 3 - first;
    struct slice behind = world_row(w, second, 0);
    struct cursor c;
    const struct record *r;
    uint8_t table[4];
    store_u32(table, w->table);
    for (uint32_t row = 0; row < ROWS; row++)
        assert_int_equal(harness_append(w->s, w->table, first, &row, 1, 9, &w->e), 0);
    for (uint32_t number = 1; number <= 3; number++) world_append(w, w->s, world_prefix(w, second), behind, number);
    cursor_init(&c, w->other, w->table, (struct slice){0}, slice_of(table, 4), (struct slice){0});
    assert_int_equal(cursor_next(&c, &r, &w->e), 1);
    assert_int_equal(read_fold(w->s, behind, &w->e), 0);
    for (uint32_t row = 1; row < ROWS; row++) {
        assert_int_equal(cursor_next(&c, &r, &w->e), 1);
        assert_true(slice_eq(r->key, world_row(w, first, row)));
    }
    assert_int_equal(cursor_next(&c, &r, &w->e), 1);
    assert_true(slice_eq(r->key, behind));
    assert_int_equal(harness_count(r->value), 3);
    assert_int_equal(cursor_next(&c, &r, &w->e), 0);
    cursor_fini(&c);
}

int main(void) {
#define TEST(name, setup) cmocka_unit_test_setup_teardown(name, setup, world_teardown)
    const struct CMUnitTest tests[] = {
        TEST(test_more_rows_than_an_osd_returns_at_once_are_read, world_setup),
        TEST(test_a_reader_holds_few_large_rows_at_once, world_setup),
        TEST(test_large_rows_of_a_shard_and_its_pieces_make_no_large_page, world_setup),
        TEST(test_small_rows_before_large_ones_make_no_large_page, world_setup),
        TEST(test_operands_appended_after_the_moment_do_not_delay_a_reader, world_setup),
        TEST(test_a_row_that_is_written_often_while_it_is_read, world_setup),
        TEST(test_rows_combined_during_a_read_do_not_end_it, world_setup),
        TEST(test_rows_of_the_next_partition_are_combined_while_one_is_read, world_setup),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
