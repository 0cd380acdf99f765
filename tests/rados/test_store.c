/* The store on a cluster of one OSD in memory: what it promises, and each trap of librados. */
#include <errno.h>
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

#include <cmocka.h>

#include "engine/rados/head.h"
#include "engine/rados/move.h"
#include "engine/rados/named.h"
#include "engine/rados/split.h"
#include "engine/rados/table.h"
#include "harness.h"

enum { PAGE_ROWS = 12 /* rows of one operand that a cursor's first page has at most: the size of rows is unknown */ };

struct world {
    struct rados *s, *other; /* two clients */
    uint32_t table;
    struct slice removals; /* of the partition that was read last */
    struct arena a;
    struct err e;
};

static int setup_with(void **state, uint64_t split_keys) {
    struct world *w = calloc(1, sizeof(*w));
    w->s = harness_open(split_keys, 10);
    w->other = harness_open(split_keys, 10);
    w->table = harness_table();
    arena_init(&w->a, 1 << 16, 0);
    *state = w;
    return 0;
}
static int setup(void **state) { return setup_with(state, 0); }
static int setup_small(void **state) { return setup_with(state, 50); }
/* Objects are small, and none is split unless the test does it. */
static int setup_calm(void **state) {
    int rc = setup_with(state, 50);
    struct world *w = *state;
    for (int i = 0; i < 2; i++) {
        struct shard_map *map = i ? &w->s->shards : &w->other->shards;
        struct shard *root = shard_map_get(map, &(struct shard_id){.table = w->table});
        root->split_keys = root->split_bytes = UINT64_MAX;
    }
    return rc;
}

static int teardown(void **state) {
    struct world *w = *state;
    rados_close(w->s);
    rados_close(w->other);
    arena_fini(&w->a);
    free(w);
    return 0;
}

static struct slice key_of(struct world *w, uint32_t partition, struct slice rest) {
    struct buf b;
    buf_init(&b, 0);
    harness_key(&b, w->table, partition, ENGI_ROW, rest);
    return arena_take(&w->a, &b);
}
static struct slice key_of_row(struct world *w, uint32_t partition, uint32_t row) {
    uint8_t rest[4];
    store_u32(rest, row);
    return key_of(w, partition, slice_of(rest, 4));
}
static struct slice prefix_of(struct world *w, uint32_t partition) {
    struct buf b;
    buf_init(&b, 0);
    harness_prefix(&b, w->table, partition);
    return arena_take(&w->a, &b);
}
static struct slice set_of(struct world *w, uint32_t number) {
    uint8_t v[4];
    store_u32(v, number);
    return arena_dup(&w->a, slice_of(v, 4));
}

static void append(struct world *w, struct rados *s, struct slice prefix, struct slice key, uint32_t number) {
    struct write_change c = {.kind = WRITE_APPEND, .key = key, .value = set_of(w, number)};
    struct write_group g = {.prefix = prefix, .changes = &c, .n = 1};
    assert_int_equal(write_groups(s, &g, 1, &w->e), 0);
}

static struct record read_row(struct world *w, struct rados *s, struct slice prefix, struct slice key) {
    struct read_result r;
    assert_int_equal(read_partition(s, prefix, &key, 1, &w->a, &r, &w->e), 0);
    w->removals = r.removals;
    return r.keys[0];
}

/* ---- records ---- */

static void test_a_record_is_the_union_of_its_operands_at_every_client(void **state) {
    struct world *w = *state;
    struct slice prefix = prefix_of(w, 1), key = key_of_row(w, 1, 7);
    assert_null(read_row(w, w->s, prefix, key).value.p);
    append(w, w->s, prefix, key, 3);
    append(w, w->other, prefix, key, 1);
    append(w, w->s, prefix, key, 2);
    for (int i = 0; i < 2; i++) {
        struct record r = read_row(w, i ? w->other : w->s, prefix, key);
        assert_int_equal(r.n_operands, 3);
        assert_int_equal(harness_count(r.value), 3);
    }
    assert_null(read_row(w, w->s, prefix, key_of_row(w, 1, 8)).value.p);
}

static void test_a_fold_keeps_what_is_appended_meanwhile(void **state) {
    struct world *w = *state;
    struct slice prefix = prefix_of(w, 1), key = key_of_row(w, 1, 7);
    for (uint32_t i = 0; i < 5; i++) append(w, w->s, prefix, key, i);
    struct record seen = read_row(w, w->s, prefix, key);
    struct slice removals = w->removals;
    append(w, w->other, prefix, key, 100);
    struct write_change c = {
        .kind = WRITE_REPLACE, .key = key, .value = seen.value, .seen = seen.operands, .n_seen = seen.n_operands};
    struct write_group g = {.prefix = prefix, .changes = &c, .n = 1, .removals = &removals};
    assert_int_equal(write_groups(w->s, &g, 1, &w->e), 0);
    struct record r = read_row(w, w->other, prefix, key);
    assert_int_equal(r.n_operands, 2);
    assert_int_equal(harness_count(r.value), 6);
    /* a second fold of the same operands, by another client, is refused */
    assert_int_equal(write_groups(w->other, &g, 1, &w->e), 0);
    assert_int_equal(g.result, WRITE_CHANGED);
    assert_int_equal(harness_count(read_row(w, w->s, prefix, key).value), 6);
    assert_int_equal(read_fold(w->s, key, &w->e), 0);
    r = read_row(w, w->s, prefix, key);
    assert_int_equal(r.n_operands, 1);
    assert_int_equal(harness_count(r.value), 6);
}

static void test_removing_takes_only_what_was_seen(void **state) {
    struct world *w = *state;
    struct slice prefix = prefix_of(w, 1), key = key_of_row(w, 1, 7);
    append(w, w->s, prefix, key, 1);
    struct record seen = read_row(w, w->s, prefix, key);
    struct slice removals = w->removals;
    append(w, w->other, prefix, key, 2);
    struct write_change c = {.kind = WRITE_REMOVE, .key = key, .seen = seen.operands, .n_seen = seen.n_operands};
    struct write_group g = {.prefix = prefix, .changes = &c, .n = 1, .removals = &removals};
    assert_int_equal(write_groups(w->s, &g, 1, &w->e), 0);
    struct record r = read_row(w, w->s, prefix, key);
    assert_int_equal(harness_count(r.value), 1);
    assert_true(harness_has(r.value, 2));
}

/* ---- traps of librados ---- */

static void test_keys_may_hold_any_byte(void **state) {
    struct world *w = *state;
    static const uint8_t rests[][3] = {{0, 0, 0},   {0, 0, 1}, {0, 1, 0}, {0, 5, 1}, {1, 0, 0},
                                       {1, 1, 255}, {2, 0, 2}, {2, 2, 2}, {3, 0, 0}, {255, 0, 255}};
    struct slice prefix = prefix_of(w, 1);
    for (size_t i = ARRAY_LEN(rests); i-- > 0;)
        append(w, w->s, prefix, key_of(w, 1, slice_of(rests[i], 3)), (uint32_t)i);
    for (size_t from = 0; from < ARRAY_LEN(rests); from++) {
        struct cursor c;
        const struct record *r;
        cursor_init(&c, w->s, w->table, prefix, key_of(w, 1, slice_of(rests[from], 3)), (struct slice){0});
        for (size_t i = from; i < ARRAY_LEN(rests); i++) {
            assert_int_equal(cursor_next(&c, &r, &w->e), 1);
            assert_true(slice_eq(r->key, key_of(w, 1, slice_of(rests[i], 3))));
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

static void test_a_failed_read_leaves_its_iterators_alone(void **state) {
    struct world *w = *state;
    struct omap_read r = {.pool = &w->s->pool};
    omap_read_add(&r, "", "", 10);
    omap_read_add(&r, "", "x", 10);
    assert_int_equal(omap_read_run(&r, "there is no such object"), -ENOENT);
    omap_read_fini(&r);
}

static void test_a_comparison_behind_a_set_takes_it_back(void **state) {
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

static void test_more_rows_than_an_osd_returns_at_once_are_read(void **state) {
    struct world *w = *state;
    enum { ROWS = 2500 };
    struct cursor c;
    const struct record *r;
    struct slice prefix = prefix_of(w, 1);
    for (uint32_t row = 0; row < ROWS; row += 10) {
        uint32_t rows[10];
        for (uint32_t i = 0; i < 10; i++) rows[i] = row + i;
        assert_int_equal(harness_append(w->s, w->table, 1, rows, 10, 9, &w->e), 0);
    }
    cursor_init(&c, w->other, w->table, prefix, prefix, (struct slice){0});
    for (uint32_t row = 0; row < ROWS; row++) {
        assert_int_equal(cursor_next(&c, &r, &w->e), 1);
        assert_true(slice_eq(r->key, key_of_row(w, 1, row)));
    }
    assert_int_equal(cursor_next(&c, &r, &w->e), 0);
    cursor_fini(&c);
}

static void make_wide(struct world *w, uint32_t partition);

/* A row of n bytes. */
static void write_large(struct world *w, uint32_t partition, uint32_t row, size_t n) {
    uint8_t *value = arena_alloc(&w->a, n);
    for (uint32_t i = 0; i < n / 4; i++) store_u32(value + 4 * (size_t)i, i);
    struct write_change c = {.kind = WRITE_APPEND, .key = key_of_row(w, partition, row), .value = slice_of(value, n)};
    struct write_group g = {.prefix = prefix_of(w, partition), .changes = &c, .n = 1};
    assert_int_equal(write_groups(w->s, &g, 1, &w->e), 0);
}

static void test_a_reader_holds_few_large_rows_at_once(void **state) {
    struct world *w = *state;
    enum { ROWS = 60, SIZE = 200 << 10, HELD_MAX = 4 << 20 };
    for (uint32_t p = 1; p <= 2; p++)
        for (uint32_t row = 0; row < ROWS; row++) write_large(w, p, row, SIZE);
    make_wide(w, 2);
    for (uint32_t p = 1; p <= 2; p++) {
        struct slice prefix = prefix_of(w, p), behind = key_of(w, p, slice_of("\xff\xff\xff\xff", 4));
        struct cursor c;
        const struct record *r;
        cursor_init(&c, w->other, w->table, prefix, prefix, behind);
        for (uint32_t row = 0; row < ROWS; row++) {
            assert_int_equal(cursor_next(&c, &r, &w->e), 1);
            assert_true(slice_eq(r->key, key_of_row(w, p, row)) && r->value.n == SIZE);
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
    make_wide(w, 1);
    for (uint32_t i = 0; i < NEW; i++) write_large(w, 1, 2 * i + 1, SIZE);
    struct slice prefix = prefix_of(w, 1), behind = key_of(w, 1, slice_of("\xff\xff\xff\xff", 4));
    struct cursor c;
    const struct record *r;
    cursor_init(&c, w->other, w->table, prefix, prefix, behind);
    for (uint32_t row = 0; row < 2 * NEW; row++) {
        assert_int_equal(cursor_next(&c, &r, &w->e), 1);
        assert_true(slice_eq(r->key, key_of_row(w, 1, row)));
        assert_true(c.page.used < HELD_MAX);
    }
    cursor_fini(&c);
}

/* The large rows are known from an earlier read. */
static void test_small_rows_in_front_of_large_ones_make_no_large_page(void **state) {
    struct world *w = *state;
    enum { SMALL = 5, ROWS = 45, SIZE = 200 << 10, HELD_MAX = 4 << 20 };
    for (uint32_t row = 0; row < ROWS; row++) write_large(w, 1, row, row < SMALL ? 8 : SIZE);
    struct slice prefix = prefix_of(w, 1), behind = key_of(w, 1, slice_of("\xff\xff\xff\xff", 4));
    for (uint32_t round = 0, from = SMALL; round < 2; round++, from = 0) {
        struct slice lower = key_of_row(w, 1, from);
        struct cursor c;
        const struct record *r;
        cursor_init(&c, w->other, w->table, prefix, lower, behind);
        for (uint32_t row = from; row < ROWS; row++) {
            assert_int_equal(cursor_next(&c, &r, &w->e), 1);
            assert_true(slice_eq(r->key, key_of_row(w, 1, row)));
            assert_true(c.page.used < HELD_MAX);
        }
        cursor_fini(&c);
    }
}

/* More of them than a read returns at once lie side by side. */
static void test_operands_of_after_the_moment_hold_no_reader_up(void **state) {
    struct world *w = *state;
    enum { ROWS = 1500, HOT = 1300, AT_ONCE = 10, NEW = 2 * OMAP_READ_MAX + 2 };
    uint32_t rows[AT_ONCE];
    struct cursor c;
    const struct record *r;
    struct slice prefix = prefix_of(w, 1);
    for (uint32_t row = 0; row < ROWS; row += AT_ONCE) {
        for (uint32_t i = 0; i < AT_ONCE; i++) rows[i] = row + i;
        assert_int_equal(harness_append(w->s, w->table, 1, rows, AT_ONCE, 9, &w->e), 0);
    }
    cursor_init(&c, w->other, w->table, prefix, prefix, (struct slice){0});
    assert_int_equal(cursor_next(&c, &r, &w->e), 1);
    for (uint32_t i = 0; i < AT_ONCE; i++) rows[i] = HOT;
    for (uint32_t n = 0; n < NEW; n += AT_ONCE)
        assert_int_equal(harness_append(w->s, w->table, 1, rows, AT_ONCE, 10, &w->e), 0);
    for (uint32_t row = 1; row < ROWS; row++) {
        assert_int_equal(cursor_next(&c, &r, &w->e), 1);
        assert_true(slice_eq(r->key, key_of_row(w, 1, row)));
        assert_int_equal(r->n_operands, 1);
    }
    assert_int_equal(cursor_next(&c, &r, &w->e), 0);
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
    struct slice key = key_of_row(w, 1, 1);
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
    int rc = read_partition(w->other, prefix_of(w, 1), &key, 1, &a, &got, &w->e);
    pool->lib = reads.real;
    assert_int_equal(rc, 0);
    assert_int_equal(got.keys[0].n_operands, BEFORE);
    arena_fini(&a);
}

/* The moment of the first page is past when operands of the partition are combined. */
static void test_rows_that_are_combined_while_they_are_read_end_no_read(void **state) {
    struct world *w = *state;
    enum { ROWS = 2500, COMBINED = 2000 };
    struct cursor c;
    const struct record *r;
    struct slice prefix = prefix_of(w, 1);
    for (uint32_t row = 0; row < ROWS; row += 10) {
        uint32_t rows[10];
        for (uint32_t i = 0; i < 10; i++) rows[i] = row + i;
        assert_int_equal(harness_append(w->s, w->table, 1, rows, 10, 9, &w->e), 0);
    }
    cursor_init(&c, w->other, w->table, prefix, prefix, (struct slice){0});
    for (uint32_t row = 0; row < ROWS; row++) {
        if (row == 10) {
            uint32_t combined = COMBINED;
            assert_int_equal(harness_append(w->s, w->table, 1, &combined, 1, 10, &w->e), 0);
            assert_int_equal(read_fold(w->s, key_of_row(w, 1, COMBINED), &w->e), 0);
        }
        assert_int_equal(cursor_next(&c, &r, &w->e), 1);
        assert_true(slice_eq(r->key, key_of_row(w, 1, row)));
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
    uint32_t first = slice_cmp(prefix_of(w, 1), prefix_of(w, 2)) < 0 ? 1 : 2, second = 3 - first;
    struct slice behind = key_of_row(w, second, 0);
    struct cursor c;
    const struct record *r;
    uint8_t table[4];
    store_u32(table, w->table);
    for (uint32_t row = 0; row < ROWS; row++)
        assert_int_equal(harness_append(w->s, w->table, first, &row, 1, 9, &w->e), 0);
    for (uint32_t number = 1; number <= 3; number++) append(w, w->s, prefix_of(w, second), behind, number);
    cursor_init(&c, w->other, w->table, (struct slice){0}, slice_of(table, 4), (struct slice){0});
    assert_int_equal(cursor_next(&c, &r, &w->e), 1);
    assert_int_equal(read_fold(w->s, behind, &w->e), 0);
    for (uint32_t row = 1; row < ROWS; row++) {
        assert_int_equal(cursor_next(&c, &r, &w->e), 1);
        assert_true(slice_eq(r->key, key_of_row(w, first, row)));
    }
    assert_int_equal(cursor_next(&c, &r, &w->e), 1);
    assert_true(slice_eq(r->key, behind));
    assert_int_equal(harness_count(r->value), 3);
    assert_int_equal(cursor_next(&c, &r, &w->e), 0);
    cursor_fini(&c);
}

static void test_an_osd_that_hangs_ends_in_a_timeout_that_says_so(void **state) {
    struct world *w = *state;
    struct rados *hasty = harness_open(0, 1);
    struct slice prefix = prefix_of(w, 1), key = key_of_row(w, 1, 1);
    struct write_change c = {.kind = WRITE_APPEND, .key = key, .value = set_of(w, 1)};
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
    assert_int_equal(harness_count(read_row(w, w->s, prefix, key).value), 1);
    rados_close(hasty);
}

/* ---- conditions ---- */

static int write_if(struct world *w, struct rados *s, struct slice prefix, struct slice key, uint32_t number,
                    const char *expected, const char *ballot) {
    struct write_change c = {.kind = WRITE_APPEND, .key = key, .value = set_of(w, number)};
    struct slice e = slice_str(expected);
    struct write_group g = {.prefix = prefix, .changes = &c, .n = 1, .expected = &e, .ballot = slice_str(ballot)};
    if (write_groups(s, &g, 1, &w->e) < 0) return -1;
    return g.result;
}

static void test_a_ballot_decides_a_write(void **state) {
    struct world *w = *state;
    struct slice prefix = prefix_of(w, 1), key = key_of_row(w, 1, 1);
    struct read_result r;
    assert_int_equal(write_if(w, w->s, prefix, key, 1, "", "one"), 0);
    assert_int_equal(write_if(w, w->other, prefix, key, 2, "", "two"), WRITE_CHANGED);
    assert_int_equal(write_if(w, w->other, prefix, key, 3, "one", "\x90"), 0);
    assert_int_equal(write_if(w, w->s, prefix, key, 4, "\x10", "three"), WRITE_CHANGED);
    assert_int_equal(write_if(w, w->s, prefix, key, 5, "\x90", "four"), 0);
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
        uint32_t now = r.ballot.p ? load_u32(r.ballot.p) : 0;
        assert_int_equal(now, harness_count(r.keys[0].value)); /* ballot and row are of one moment */
        if (r.ballot.p) seen = r.ballot;
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

static void test_of_writers_with_one_ballot_one_wins(void **state) {
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
        assert_int_equal(read_partition(w->s, prefix_of(w, p), &none, 0, &w->a, &r, &w->e), 0);
        assert_int_equal(load_u32(r.ballot.p), added[p]);
        assert_in_range(added[p], TRIES, ADDERS / PARTITIONS * TRIES);
    }
}

/* ---- splits ---- */

static size_t count_rows(struct world *w, struct rados *s, uint32_t table) {
    struct cursor c;
    const struct record *r;
    uint8_t lower[4];
    struct buf before;
    size_t n = 0;
    int got;
    store_u32(lower, table);
    buf_init(&before, 0);
    cursor_init(&c, s, table, (struct slice){0}, slice_of(lower, 4), (struct slice){0});
    for (; (got = cursor_next(&c, &r, &w->e)) == 1; n++) {
        assert_true(slice_cmp(buf_slice(&before), r->key) < 0);
        buf_clear(&before, SIZE_MAX);
        buf_put_slice(&before, r->key);
    }
    assert_int_equal(got, 0);
    cursor_fini(&c);
    buf_fini(&before);
    return n;
}

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

static void write_rows(struct world *w, struct rados *s, uint32_t from, uint32_t to) {
    for (uint32_t p = from; p < to; p++)
        assert_int_equal(harness_append(s, w->table, p, (uint32_t[]){1, 2}, 2, p, &w->e), 0);
}

static void test_a_split_shard_has_the_same_rows_for_every_client(void **state) {
    struct world *w = *state;
    struct shard_head head;
    struct shard *root = shard_map_get(&w->s->shards, &(struct shard_id){.table = w->table});
    write_rows(w, w->s, 0, 100);
    assert_int_equal(count_rows(w, w->other, w->table), 200); /* the other client learns the way before the split */
    assert_int_equal(write_if(w, w->s, prefix_of(w, 5), key_of_row(w, 5, 9), 1, "", "ballot"), 0);
    for (int i = 0; !atomic_load(&root->split); i++) assert_int_equal(move_relieve(w->s, root), 0);
    assert_int_equal(state_of(w, root, &head), SHARD_SPLIT);
    assert_int_equal(count_rows(w, w->s, w->table), 201);
    assert_int_equal(count_rows(w, w->other, w->table), 201);
    write_rows(w, w->other, 100, 110);
    assert_int_equal(count_rows(w, w->s, w->table), 221);
    assert_int_equal(write_if(w, w->other, prefix_of(w, 5), key_of_row(w, 5, 9), 2, "", "later"), WRITE_CHANGED);
    assert_int_equal(write_if(w, w->other, prefix_of(w, 5), key_of_row(w, 5, 9), 2, "ballot", "later"), 0);
}

static void test_counters_follow_what_is_stored(void **state) {
    struct world *w = *state;
    struct shard_head head;
    struct shard *root = shard_map_get(&w->s->shards, &(struct shard_id){.table = w->table});
    struct slice prefix = prefix_of(w, 1), key = key_of_row(w, 1, 1);
    write_rows(w, w->s, 2, 12);
    for (uint32_t i = 0; i < 6; i++) append(w, i % 2 ? w->s : w->other, prefix, key, i);
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

/* Leaves the shard frozen, as a front end that dies in the middle of a split. */
static void freeze(struct world *w, const struct shard *sh) {
    struct omap_write f = {0};
    omap_write_compare(&f, shard_state_key, shard_state_value(SHARD_OPEN));
    omap_write_set(&f, shard_state_key, shard_state_value(SHARD_FROZEN));
    assert_int_equal(omap_write_run(&f, &w->s->pool, sh->name), 0);
    omap_write_fini(&f);
}

static const struct librados *real;
static int n_reads;

/* Another client removes the object after its second read, in which the split finds it frozen. */
static int read_and_lose(void *op, void *io, const char *object, int flags) {
    int rc = real->read_op_operate(op, io, object, flags);
    if (++n_reads == 2) assert_int_equal(real->remove(io, object), 0);
    return rc;
}

static void test_a_split_of_a_table_that_is_dropped_meanwhile_says_so(void **state) {
    struct world *w = *state;
    struct shard *root = shard_map_get(&w->s->shards, &(struct shard_id){.table = w->table});
    write_rows(w, w->s, 2, 12);
    freeze(w, root);
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
    struct slice prefix = prefix_of(w, 1), key = key_of_row(w, 1, 1);
    write_rows(w, w->s, 2, 12);
    for (uint32_t i = 0; i < 6; i++) append(w, w->s, prefix, key, i);
    struct record seen = read_row(w, w->other, prefix, key);
    struct slice removals = w->removals;
    assert_int_equal(seen.n_operands, 6);
    freeze(w, root);
    assert_int_equal(move_relieve(w->s, root), 0);
    struct write_change c = {
        .kind = WRITE_REPLACE, .key = key, .value = seen.value, .seen = seen.operands, .n_seen = seen.n_operands};
    struct write_group g = {.prefix = prefix, .changes = &c, .n = 1, .removals = &removals};
    assert_int_equal(write_groups(w->other, &g, 1, &w->e), 0); /* it finds the split when it writes */
    assert_int_equal(g.result, WRITE_CHANGED);
    for (uint32_t i = 6; i < 8; i++) append(w, w->s, prefix, key, i);
    assert_int_equal(read_fold(w->other, key, &w->e), 0); /* one that reads in the half is not */
    assert_int_equal(harness_count(read_row(w, w->s, prefix, key).value), 8);
    uint64_t keys = 0;
    for (unsigned i = 0; i < 2; i++) {
        struct shard_id id = shard_half(&root->id, i);
        state_of(w, shard_map_get(&w->s->shards, &id), &head);
        keys += shard_sum(&head).keys;
    }
    assert_int_equal(keys, 21);
}

static void test_a_split_that_was_left_is_completed_by_the_next_writer(void **state) {
    struct world *w = *state;
    struct shard_head head;
    struct shard *root = shard_map_get(&w->s->shards, &(struct shard_id){.table = w->table});
    write_rows(w, w->s, 0, 10);
    freeze(w, root);
    assert_int_equal(count_rows(w, w->other, w->table), 20); /* a frozen shard is read */
    write_rows(w, w->other, 10, 11);
    assert_int_equal(state_of(w, root, &head), SHARD_SPLIT);
    assert_int_equal(count_rows(w, w->s, w->table), 22);
}

static void test_a_late_copy_changes_nothing(void **state) {
    struct world *w = *state;
    struct shard_head head;
    struct shard *root = shard_map_get(&w->s->shards, &(struct shard_id){.table = w->table});
    write_rows(w, w->s, 0, 10);
    freeze(w, root);
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
    assert_int_equal(count_rows(w, w->other, w->table), 20);
}

static void test_one_partition_is_not_split_and_is_refused_when_too_large(void **state) {
    struct world *w = *state;
    struct shard *root = shard_map_get(&w->s->shards, &(struct shard_id){.table = w->table});
    w->s->o.max_keys = 150;
    int rc = 0;
    uint32_t row = 0;
    for (; rc == 0 && row < 200; row++) rc = harness_append(w->s, w->table, 1, &row, 1, 1, &w->e);
    assert_int_equal(rc, -1);
    assert_int_equal(w->e.code, ERR_INVALID);
    assert_non_null(strstr(w->e.text, "too large"));
    assert_int_equal(row - 1, 150);
    assert_int_equal(move_relieve(w->s, root), 0);
    assert_false(atomic_load(&root->split));
    assert_int_equal(count_rows(w, w->other, w->table), 150);
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
    for (uint32_t row = 0; row < 10; row++) assert_int_equal(read_fold(w->s, key_of_row(w, 1, row), &w->e), 0);
    assert_int_equal(harness_append(w->s, w->table, 1, &(uint32_t){3}, 1, 1000, &w->e), 0);
    assert_int_equal(count_rows(w, w->other, w->table), 10);
}

static void test_writes_with_many_groups_reach_every_shard(void **state) {
    struct world *w = *state;
    enum { GROUPS = 300 };
    static struct write_group groups[GROUPS];
    static struct write_change changes[GROUPS];
    for (int round = 0; round < 3; round++) {
        for (uint32_t i = 0; i < GROUPS; i++) {
            changes[i] = (struct write_change){
                .kind = WRITE_APPEND, .key = key_of_row(w, i, (uint32_t)round), .value = set_of(w, i)};
            groups[i] = (struct write_group){.prefix = prefix_of(w, i), .changes = &changes[i], .n = 1};
        }
        assert_int_equal(write_groups(round % 2 ? w->other : w->s, groups, GROUPS, &w->e), 0);
    }
    assert_int_equal(count_rows(w, w->s, w->table), 3 * GROUPS);
    assert_true(atomic_load(&w->s->n_operations) < GROUPS); /* they travelled together */
}

/* ---- tables ---- */

struct seen {
    uint32_t table;
    int n;
};
static int see(void *arg, uint32_t table, struct err *e) {
    struct seen *x = arg;
    (void)e;
    x->n += table == x->table;
    return 0;
}
static int times_stored(struct world *w, uint32_t table) {
    struct seen x = {.table = table};
    assert_int_equal(table_each(w->s, see, &x, &w->e), 0);
    return x.n;
}

static void test_a_dropped_table_leaves_no_object(void **state) {
    struct world *w = *state;
    uint64_t keys, bytes;
    struct shard *root = shard_map_get(&w->s->shards, &(struct shard_id){.table = w->table});
    assert_int_equal(times_stored(w, w->table), 0);
    write_rows(w, w->s, 0, 200);
    while (!atomic_load(&root->split)) assert_int_equal(move_relieve(w->s, root), 0);
    assert_int_equal(times_stored(w, w->table), 1);
    assert_int_equal(table_size(w->s, w->table, &keys, &bytes, &w->e), 0);
    assert_int_equal(keys, 400);
    assert_true(bytes > 400 * 30);
    assert_int_equal(count_rows(w, w->other, w->table), 400);
    assert_int_equal(table_drop(w->s, w->table, &w->e), 0);
    assert_int_equal(times_stored(w, w->table), 0);
    /* the other client knows the shards, and is refused */
    assert_int_equal(harness_append(w->other, w->table, 1, (uint32_t[]){1}, 1, 1, &w->e), -1);
    assert_int_equal(w->e.code, ERR_INVALID);
    assert_int_equal(count_rows(w, w->other, w->table), 0);
    assert_int_equal(count_rows(w, w->s, w->table), 0);
}

/* Neither does a client that has not met the table make its first object again. Another table's is made. */
static void test_a_write_after_a_drop_fails_and_makes_no_object(void **state) {
    struct world *w = *state;
    write_rows(w, w->s, 0, 10);
    assert_int_equal(table_drop(w->s, w->table, &w->e), 0);
    for (int i = 0; i < 2; i++) { /* also the client that dropped it */
        assert_int_equal(harness_append(i ? w->s : w->other, w->table, 1, (uint32_t[]){1}, 1, 1, &w->e), -1);
        assert_int_equal(w->e.code, ERR_INVALID);
        assert_non_null(strstr(w->e.text, "dropped"));
        err_clear(&w->e);
    }
    assert_int_equal(times_stored(w, w->table), 0);
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
    assert_int_equal(times_stored(w, w->table), 1);
    assert_int_equal(table_drop(w->s, w->table, &w->e), 0);
    assert_int_equal(times_stored(w, w->table), 0);
}

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
    write_rows(w, w->s, 0, 10);
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
    assert_int_equal(times_stored(w, w->table), 0);
}

/* ---- wide partitions ---- */

/* Counts what names the table's objects of a kind have. */
struct named_objects {
    const char *kind;
    char prefix[40];
    size_t n;
};
static int count_object(void *arg, const char *name) {
    struct named_objects *x = arg;
    x->n += strncmp(name, x->prefix, strlen(x->prefix)) == 0;
    return 0;
}
static size_t count_objects(struct world *w, const char *kind) {
    struct named_objects x = {.kind = kind};
    snprintf(x.prefix, sizeof(x.prefix), "%s.%08x.", kind, w->table);
    assert_int_equal(pool_each_object(&w->s->pool, count_object, &x), 0);
    return x.n;
}

static struct pieces pieces_of(struct world *w, uint32_t partition, struct slice *value) {
    struct fetched f = {0};
    struct pieces p;
    struct buf own;
    struct slice prefix = prefix_of(w, partition);
    buf_init(&own, 0);
    omap_key_escape(&own, slice_of(prefix.p + ENGI_KEY_TOKEN, prefix.n - ENGI_KEY_TOKEN));
    buf_put_str(&own, OMAP_PARTITION_KEYS);
    const char *key = (const char *)arena_take(&w->a, &own).p;
    assert_int_equal(fetch(w->s, w->table, shard_position(prefix), &(struct fetch_part){key, key, 3}, 1, &w->a, &f), 0);
    struct slice found = fetch_partition_value(&f.pairs[0], OMAP_PIECES);
    if (value) *value = found;
    assert_int_equal(pieces_read(found.p ? found : slice_of("", 0), &w->a, &p), 0);
    fetched_fini(&f);
    return p;
}

static void write_wide(struct world *w, uint32_t partition, uint32_t from, uint32_t to, uint32_t step,
                       uint32_t number) {
    uint32_t rows[10];
    size_t n = 0;
    for (uint32_t row = from; row < to; row += step) {
        rows[n++] = row;
        if (n < 10 && row + step < to) continue;
        assert_int_equal(harness_append(row % 3 ? w->s : w->other, w->table, partition, rows, n, number, &w->e), 0);
        n = 0;
    }
}

/* Reads rows [0, n) of a partition by key and in order, from several places on. Each has count numbers. */
static void assert_rows(struct world *w, struct rados *s, uint32_t partition, uint32_t n, size_t count) {
    struct slice prefix = prefix_of(w, partition), behind = key_of(w, partition, slice_of("\xff\xff\xff\xff", 4));
    for (uint32_t from = 0; from < n; from += 1 + n / 4) {
        struct cursor c;
        const struct record *r;
        cursor_init(&c, s, w->table, prefix, from ? key_of_row(w, partition, from) : prefix, behind);
        for (uint32_t row = from; row < n; row++) {
            assert_int_equal(cursor_next(&c, &r, &w->e), 1);
            assert_true(slice_eq(r->key, key_of_row(w, partition, row)));
            assert_int_equal(harness_count(r->value), count);
        }
        assert_int_equal(cursor_next(&c, &r, &w->e), 0);
        cursor_fini(&c);
    }
    for (uint32_t row = 0; row < n; row += 7)
        assert_int_equal(harness_count(read_row(w, s, prefix, key_of_row(w, partition, row)).value), count);
    assert_null(read_row(w, s, prefix, key_of_row(w, partition, n)).value.p);
}

static struct shard *shard_of(struct rados *s, struct world *w, uint32_t partition) {
    struct shard *sh = shard_map_find(&s->shards, w->table, shard_position(prefix_of(w, partition)));
    assert_non_null(sh);
    return sh;
}

/* Q17: where each piece begins the shard has a fence. Returns the number of pieces. */
static size_t assert_fences(struct world *w, uint32_t partition) {
    static const char first[] = {ENGI_ROW, OMAP_KEY_END, 0};
    struct slice prefix = prefix_of(w, partition);
    struct pieces p = pieces_of(w, partition, NULL);
    for (size_t i = 0; i < p.n; i++) {
        struct fetched f = {0};
        struct buf b;
        buf_init(&b, 0);
        omap_key_escape(&b, slice_of(prefix.p + ENGI_KEY_TOKEN, prefix.n - ENGI_KEY_TOKEN));
        buf_put_slice(&b, p.items[i].first.n ? p.items[i].first : slice_str(first));
        buf_u8(&b, OMAP_FENCE);
        const char *key = (const char *)arena_take(&w->a, &b).p;
        struct fetch_part part = {.start_after = "", .prefix = key, .max = 2};
        assert_int_equal(fetch(w->s, w->table, shard_position(prefix), &part, 1, &w->a, &f), 0);
        assert_int_equal(f.pairs[0].n, 1);
        assert_int_equal(omap_key_of_partition(f.pairs[0].items[0].key), OMAP_FENCE);
        fetched_fini(&f);
    }
    return p.n;
}

/* Moves rows of the partition until it has pieces. */
static void make_wide(struct world *w, uint32_t partition) {
    while (!pieces_of(w, partition, NULL).n)
        assert_int_equal(move_relieve(w->s, shard_of(w->s, w, partition)), 0);
}

static void test_a_wide_partition_is_the_same_for_every_client(void **state) {
    struct world *w = *state;
    enum { ROWS = 700 };
    uint64_t keys, bytes;
    write_rows(w, w->s, 10, 40);
    for (uint32_t p = 1; p <= 2; p++) {
        write_wide(w, p, 0, ROWS, 2, 1); /* every other row, and those between when there are pieces */
        make_wide(w, p);
        write_wide(w, p, 1, ROWS, 2, 1);
    }
    write_rows(w, w->s, 40, 60);
    for (int i = 0; i < 2; i++) {
        for (uint32_t p = 1; p <= 2; p++) assert_rows(w, i ? w->other : w->s, p, ROWS, 1);
        assert_int_equal(count_rows(w, i ? w->other : w->s, w->table), 2 * ROWS + 100);
    }
    write_wide(w, 1, 0, ROWS, 1, 2);
    assert_rows(w, w->other, 1, ROWS, 2);
    assert_rows(w, w->s, 2, ROWS, 1);
    assert_true(assert_fences(w, 1) > 3);
    assert_int_equal(write_if(w, w->s, prefix_of(w, 1), key_of_row(w, 1, 3), 9, "", "one"), 0);
    assert_int_equal(write_if(w, w->other, prefix_of(w, 1), key_of_row(w, 1, 3), 9, "", "two"), WRITE_CHANGED);
    assert_int_equal(harness_count(read_row(w, w->other, prefix_of(w, 1), key_of_row(w, 1, 3)).value), 3);
    assert_int_equal(table_size(w->s, w->table, &keys, &bytes, &w->e), 0);
    assert_true(keys >= 2 * ROWS + 100);
    assert_int_equal(table_drop(w->s, w->table, &w->e), 0);
    assert_int_equal(count_objects(w, "piece"), 0);
    assert_int_equal(times_stored(w, w->table), 0);
}

/* The limit of an object no longer limits a partition. */
static void test_a_wide_partition_outgrows_one_object(void **state) {
    struct world *w = *state;
    w->s->o.max_keys = w->other->o.max_keys = 400;
    for (uint32_t row = 0; row < 1200; row += 100) {
        write_wide(w, 1, row, row + 100, 1, 1);
        make_wide(w, 1);
        for (int i = 0; i < 2; i++) assert_int_equal(move_relieve(w->s, shard_of(w->s, w, 1)), 0);
    }
    assert_rows(w, w->other, 1, 1200, 1);
}

/* A front end dies behind each step of a move. The rows stay, the next move leaves the dead one alone at first, as it
 * may be slow, then takes all rows, and removes the pieces that the dead one has made. */
static void test_a_move_that_was_left_changes_nothing(void **state) {
    struct world *w = *state;
    enum { ROWS = 300, STEPS = 3 };
    for (uint32_t partition = 0; partition < 2 * STEPS; partition++) {
        struct move m;
        bool has_pieces = partition >= STEPS;
        if (has_pieces) {
            write_wide(w, partition, 0, ROWS, 3, 1);
            make_wide(w, partition);
            write_wide(w, partition, 1, ROWS, 3, 1);
            write_wide(w, partition, 2, ROWS, 3, 1);
        } else {
            write_wide(w, partition, 0, ROWS, 1, 1);
        }
        struct slice prefix = prefix_of(w, partition);
        move_init(&m, w->other, prefix);
        assert_int_equal(move_read(&m), 0);
        if (partition % STEPS > 0) assert_int_equal(move_begin(&m), 0);
        if (partition % STEPS > 1) assert_int_equal(move_copy(&m), 0);
        for (int i = 0; i < 2; i++) assert_rows(w, i ? w->other : w->s, partition, ROWS, 1);
        struct pieces before = pieces_of(w, partition, NULL);
        assert_int_equal(before.begun, partition % STEPS > 0);
        assert_int_equal(move_rows(w->s, shard_of(w->s, w, partition), prefix), 0);
        if (before.begun) {
            assert_int_equal(pieces_of(w, partition, NULL).move, before.move);
            assert_int_equal(move_rows(w->s, shard_of(w->s, w, partition), prefix), 0);
        }
        assert_true(pieces_of(w, partition, NULL).move > before.move);
        assert_false(pieces_of(w, partition, NULL).begun);
        for (int i = 0; i < 2; i++) assert_rows(w, i ? w->other : w->s, partition, ROWS, 1);
        if (partition % STEPS > 1) assert_int_equal(move_complete(&m), -EAGAIN); /* it was only slow */
        move_fini(&m);
        for (int i = 0; i < 2; i++) assert_rows(w, i ? w->other : w->s, partition, ROWS, 1);
    }
    size_t pieces = 0;
    for (uint32_t partition = 0; partition < 2 * STEPS; partition++) pieces += pieces_of(w, partition, NULL).n;
    assert_int_equal(count_objects(w, "piece"), pieces);
}

/* Q11: an operand that has left the shard is not copied again. */
static void test_a_delayed_mover_is_refused(void **state) {
    struct world *w = *state;
    struct move late;
    struct slice prefix = prefix_of(w, 1);
    write_wide(w, 1, 0, 100, 1, 1);
    assert_int_equal(move_rows(w->s, shard_of(w->s, w, 1), prefix), 0);
    assert_int_equal(pieces_of(w, 1, NULL).n, 1);
    write_wide(w, 1, 100, 110, 1, 1);
    move_init(&late, w->other, prefix);
    assert_int_equal(move_read(&late), 0);
    assert_int_equal(move_begin(&late), 0);
    for (int i = 0; i < 2; i++) assert_int_equal(move_rows(w->s, shard_of(w->s, w, 1), prefix), 0);
    assert_false(pieces_of(w, 1, NULL).begun);
    assert_int_equal(move_copy(&late), -EAGAIN);
    move_fini(&late);
    assert_rows(w, w->s, 1, 110, 1);
}

/* Q10: a reader that has read the head before a move does not read the pieces behind it. */
static void test_a_piece_that_is_newer_than_the_head_is_not_read(void **state) {
    struct world *w = *state;
    struct slice value, prefix = prefix_of(w, 1);
    struct omap_pairs pairs = {0};
    struct buf start;
    struct slice last = slice_of("", 0);
    bool more = false;
    write_wide(w, 1, 0, 100, 1, 1);
    assert_int_equal(move_rows(w->s, shard_of(w->s, w, 1), prefix), 0);
    pieces_of(w, 1, &value);
    buf_init(&start, 0);
    omap_key_escape(&start, slice_of(prefix.p + ENGI_KEY_TOKEN, prefix.n - ENGI_KEY_TOKEN));
    buf_u8(&start, 0);
    struct fetch_part part = {(const char *)start.p, (const char *)start.p, OMAP_READ_MAX};
    assert_int_equal(pieces_add(w->s, prefix, value, &part, &w->a, &pairs, &last, &more), 0);
    assert_int_equal(pairs.n, 100);
    omap_pairs_fini(&pairs);
    pairs = (struct omap_pairs){0};
    write_wide(w, 1, 100, 110, 1, 1);
    assert_int_equal(move_rows(w->other, shard_of(w->other, w, 1), prefix), 0);
    assert_int_equal(pieces_add(w->s, prefix, value, &part, &w->a, &pairs, &last, &more), -EAGAIN);
    omap_pairs_fini(&pairs);
    buf_fini(&start);
}

/* The key of an object behind all operands of a row. */
static struct slice behind_row(struct world *w, uint32_t row) {
    struct slice key = key_of_row(w, 1, row);
    struct buf b;
    buf_init(&b, 0);
    omap_key_escape(&b, slice_of(key.p + ENGI_KEY_TOKEN, key.n - ENGI_KEY_TOKEN));
    buf_put_str(&b, "\x01\xff");
    return arena_take(&w->a, &b);
}

/* The shard has given keys up to the row `last`, of which those of the row `kept` stay, and has more. The piece is
 * asked for max keys. Expects the sum to have all rows up to the row `end`, and to be complete up to there. */
static void assert_sum(struct world *w, struct slice value, uint32_t kept, uint32_t last, uint64_t max, uint32_t end) {
    struct slice prefix = prefix_of(w, 1), read = behind_row(w, last);
    struct omap_pair kept_pair = {.key = behind_row(w, kept), .value = slice_str("v")};
    struct omap_pairs sum = {0}, shard = {.items = &kept_pair, .n = 1};
    struct buf start;
    bool more = true;
    buf_init(&start, 0);
    omap_key_escape(&start, slice_of(prefix.p + ENGI_KEY_TOKEN, prefix.n - ENGI_KEY_TOKEN));
    buf_u8(&start, 0);
    struct fetch_part part = {.start_after = (const char *)start.p, .prefix = "", .max = max};
    assert_int_equal(fetch_append(&sum, &shard), 0);
    assert_int_equal(pieces_add(w->s, prefix, value, &part, &w->a, &sum, &read, &more), 0);
    assert_true(more);
    assert_int_equal(sum.n, end + 1 + (kept <= end));
    assert_true(slice_cmp(sum.items[sum.n - 1].key, behind_row(w, end)) <= 0);
    assert_true(slice_cmp(read, behind_row(w, end)) <= 0);
    assert_true(slice_cmp(read, sum.items[sum.n - 1].key) >= 0);
    omap_pairs_fini(&sum);
    buf_fini(&start);
}

/* Also where the last keys that a shard has given were left out, because they are of after the moment of the read. */
static void test_the_sum_of_a_shard_and_its_pieces_ends_where_one_has_more(void **state) {
    struct world *w = *state;
    struct slice value;
    write_wide(w, 1, 0, 100, 1, 1);
    assert_int_equal(move_rows(w->s, shard_of(w->s, w, 1), prefix_of(w, 1)), 0);
    pieces_of(w, 1, &value);
    assert_sum(w, value, 10, 10, OMAP_READ_MAX, 10);
    assert_sum(w, value, 10, 60, OMAP_READ_MAX, 60);
    assert_sum(w, value, 10, 60, 20, 19);
    assert_sum(w, value, 30, 60, 20, 19);
}

/* All keys that an operation on the shard returns are such, while rows of pieces lie on both sides. */
static void test_new_operands_in_a_shard_hide_no_rows_of_its_pieces(void **state) {
    struct world *w = *state;
    enum { ROWS = 300, HOT = 100, TIMES = 40, AT_ONCE = 10 };
    struct slice prefix = prefix_of(w, 1);
    struct cursor c;
    const struct record *r;
    uint32_t rows[AT_ONCE];
    write_wide(w, 1, 0, ROWS, 1, 1);
    assert_int_equal(move_rows(w->s, shard_of(w->s, w, 1), prefix), 0);
    cursor_init(&c, w->other, w->table, prefix, prefix, (struct slice){0});
    cursor_expect(&c, 1);
    assert_int_equal(cursor_next(&c, &r, &w->e), 1);
    for (uint32_t hot = HOT; hot < ROWS; hot += HOT / 2) {
        for (uint32_t i = 0; i < AT_ONCE; i++) rows[i] = hot;
        for (uint32_t n = 0; n < TIMES; n++)
            assert_int_equal(harness_append(w->s, w->table, 1, rows, AT_ONCE, 2, &w->e), 0);
    }
    for (uint32_t row = 1; row < ROWS; row++) {
        assert_int_equal(cursor_next(&c, &r, &w->e), 1);
        assert_true(slice_eq(r->key, key_of_row(w, 1, row)));
        assert_int_equal(r->n_operands, 1);
    }
    assert_int_equal(cursor_next(&c, &r, &w->e), 0);
    cursor_fini(&c);
}

/* Pieces that a mover makes after the table was dropped are removed again. */
static void test_a_move_beside_a_drop_leaves_no_piece(void **state) {
    struct world *w = *state;
    struct move m;
    write_wide(w, 1, 0, 100, 1, 1);
    move_init(&m, w->other, prefix_of(w, 1));
    assert_int_equal(move_read(&m), 0);
    assert_int_equal(move_begin(&m), 0);
    assert_int_equal(table_drop(w->s, w->table, &w->e), 0);
    assert_int_equal(move_copy(&m), -ESTALE);
    move_fini(&m);
    assert_int_equal(times_stored(w, w->table), 0);
}

/* A shard with the head of a wide partition splits. */
static void test_heads_of_wide_partitions_go_with_a_split(void **state) {
    struct world *w = *state;
    for (uint32_t p = 1; p <= 2; p++) {
        write_wide(w, p, 0, 100, 1, 1);
        assert_int_equal(move_rows(w->s, shard_of(w->s, w, p), prefix_of(w, p)), 0);
        write_wide(w, p, 100, 110, 1, 1);
    }
    struct shard *root = shard_map_get(&w->s->shards, &(struct shard_id){.table = w->table});
    assert_int_equal(count_rows(w, w->other, w->table), 220);
    freeze(w, root);
    assert_int_equal(move_relieve(w->s, root), 0);
    assert_true(atomic_load(&root->split));
    for (uint32_t p = 1; p <= 2; p++) {
        assert_rows(w, w->other, p, 110, 1);
        assert_true(assert_fences(w, p) > 0);
        assert_int_equal(move_rows(w->other, shard_of(w->other, w, p), prefix_of(w, p)), 0);
        assert_rows(w, w->s, p, 110, 1);
    }
    assert_int_equal(count_rows(w, w->other, w->table), 220);
    assert_int_equal(table_drop(w->other, w->table, &w->e), 0);
    assert_int_equal(times_stored(w, w->table), 0);
}

struct wide_writer {
    struct rados *s;
    uint32_t table, number, rounds;
    _Atomic uint32_t done;
    pthread_t thread;
};

enum { FAR = 1000 };

/* Writes pairs of rows that are in different pieces, each pair as one group. */
static void *write_pairs(void *arg) {
    struct wide_writer *x = arg;
    struct err e = {0};
    for (uint32_t i = 0; i < x->rounds; i++) {
        uint32_t row = i * 7 % x->rounds;
        assert_int_equal(harness_append(x->s, x->table, 1, (uint32_t[]){row, row + FAR}, 2, x->number, &e), 0);
        atomic_store(&x->done, i + 1);
    }
    return NULL;
}

static void test_a_write_to_several_pieces_is_seen_as_a_whole(void **state) {
    struct world *w = *state;
    enum { WRITERS = 4, ROUNDS = 250 };
    struct wide_writer writers[WRITERS];
    struct slice prefix = prefix_of(w, 1);
    write_wide(w, 1, 0, ROUNDS, 1, 99);
    write_wide(w, 1, FAR, FAR + ROUNDS, 1, 99);
    make_wide(w, 1);
    for (uint32_t i = 0; i < WRITERS; i++) {
        writers[i] = (struct wide_writer){
            .s = i % 2 ? w->s : w->other, .table = w->table, .number = i, .rounds = ROUNDS};
        assert_int_equal(pthread_create(&writers[i].thread, NULL, write_pairs, &writers[i]), 0);
    }
    uint64_t moves = atomic_load(&w->s->n_moves) + atomic_load(&w->other->n_moves);
    for (uint32_t done = 0, look = 0; done < WRITERS; look++) {
        struct read_result r;
        uint32_t row = look * 7 % ROUNDS;
        struct slice keys[2] = {key_of_row(w, 1, row), key_of_row(w, 1, row + FAR)};
        done = 0;
        for (int i = 0; i < WRITERS; i++) done += atomic_load(&writers[i].done) == ROUNDS;
        if (read_partition(look % 2 ? w->s : w->other, prefix, keys, 2, &w->a, &r, &w->e) < 0)
            fail_msg("%s", w->e.text);
        assert_true(slice_eq(r.keys[0].value, r.keys[1].value));
        arena_reset(&w->a);
        prefix = prefix_of(w, 1);
        if (look % 16) continue;
        assert_int_equal(count_rows(w, w->s, w->table), 2 * ROUNDS);
    }
    for (uint32_t i = 0; i < WRITERS; i++) pthread_join(writers[i].thread, NULL);
    assert_true(atomic_load(&w->s->n_moves) + atomic_load(&w->other->n_moves) > moves);
    assert_int_equal(count_rows(w, w->other, w->table), 2 * ROUNDS);
    for (uint32_t row = 0; row < ROUNDS; row++) {
        assert_int_equal(harness_count(read_row(w, w->s, prefix, key_of_row(w, 1, row)).value), WRITERS + 1);
        assert_int_equal(harness_count(read_row(w, w->other, prefix, key_of_row(w, 1, row + FAR)).value), WRITERS + 1);
    }
}

/* ---- named records ---- */

static int put_if(struct world *w, struct rados *s, const char *key, const char *value, const char *expected) {
    struct slice seen = slice_str(expected ? expected : "");
    struct eng_meta_change c = {
        .key = slice_str(key), .value = slice_str(value), .conditional = true, .expected = expected ? &seen : NULL};
    return named_write(s, 1, &c, &w->e);
}

static int print(void *arg, struct slice key, struct slice value, struct err *e) {
    (void)e;
    buf_printf(arg, "%.*s=%.*s ", SLICE_FMT(key), SLICE_FMT(value));
    return 0;
}
static void assert_named(struct world *w, const char *prefix, const char *expected) {
    struct buf b;
    buf_init(&b, 0);
    assert_int_equal(named_scan(w->other, slice_str(prefix), print, &b, &w->e), 0);
    assert_true(slice_is(buf_slice(&b), expected));
    buf_fini(&b);
}

static void test_named_records_change_on_conditions(void **state) {
    struct world *w = *state;
    struct eng_meta_change two[] = {{.key = slice_str("test/a2"), .deleted = true},
                                 {.key = slice_str("test/a3"), .value = slice_str("z"), .conditional = true}};
    assert_int_equal(put_if(w, w->s, "test/a1", "", NULL), 0);
    assert_int_equal(put_if(w, w->other, "test/a1", "y", NULL), ENG_CHANGED); /* an empty value is there */
    assert_int_equal(put_if(w, w->other, "test/a1", "y", "x"), ENG_CHANGED);
    assert_int_equal(put_if(w, w->other, "test/a1", "y", ""), 0);
    assert_int_equal(put_if(w, w->s, "test/a2", "2", NULL), 0);
    assert_int_equal(put_if(w, w->s, "test/b", "3", NULL), 0);
    assert_named(w, "test/a", "test/a1=y test/a2=2 ");
    assert_named(w, "test/a1", "test/a1=y ");
    assert_named(w, "test/", "test/a1=y test/a2=2 test/b=3 ");
    assert_int_equal(named_write(w->s, 2, two, &w->e), 0);
    assert_named(w, "test/a", "test/a1=y test/a3=z ");
    assert_int_equal(named_write(w->s, 2, two, &w->e), ENG_CHANGED);
    for (int i = 0; i < 4; i++) {
        struct eng_meta_change gone = {.key = slice_str((const char *[]){"test/a1", "test/a2", "test/a3", "test/b"}[i]),
                                    .deleted = true};
        assert_int_equal(named_write(w->s, 1, &gone, &w->e), 0);
    }
    assert_named(w, "test/", "");
}

struct bell {
    pthread_mutex_t lock;
    pthread_cond_t rings;
    int rung;
};
static void ring(void *arg) {
    struct bell *b = arg;
    pthread_mutex_lock(&b->lock);
    b->rung++;
    pthread_cond_signal(&b->rings);
    pthread_mutex_unlock(&b->lock);
}

static void test_a_watcher_is_told_of_changes(void **state) {
    struct world *w = *state;
    struct bell b = {.lock = PTHREAD_MUTEX_INITIALIZER, .rings = PTHREAD_COND_INITIALIZER};
    struct named_watch *watch = named_watch_start(w->other, ring, &b, &w->e);
    assert_non_null(watch);
    for (int i = 0; i < 5; i++) {
        struct eng_meta_change c = {.key = slice_str("watched"), .deleted = true};
        pthread_mutex_lock(&b.lock);
        b.rung = 0;
        pthread_mutex_unlock(&b.lock);
        assert_int_equal(named_write(w->s, 1, &c, &w->e), 0);
        pthread_mutex_lock(&b.lock);
        while (!b.rung) pthread_cond_wait(&b.rings, &b.lock); /* a hang is the failure */
        pthread_mutex_unlock(&b.lock);
    }
    named_watch_stop(watch);
}

/* The answers to a notification come while the store closes, or later. */
static void test_a_store_that_has_told_of_a_change_can_be_closed_at_once(void **state) {
    struct world *w = *state;
    struct bell b = {.lock = PTHREAD_MUTEX_INITIALIZER, .rings = PTHREAD_COND_INITIALIZER};
    struct named_watch *watch = named_watch_start(w->other, ring, &b, &w->e);
    assert_non_null(watch);
    for (int i = 0; i < 50; i++) {
        struct rados *s = harness_open(0, 10);
        struct eng_meta_change c = {.key = slice_str("closing"), .deleted = true};
        assert_int_equal(named_write(s, 1, &c, &w->e), 0);
        rados_close(s);
    }
    named_watch_stop(watch);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_a_record_is_the_union_of_its_operands_at_every_client, setup, teardown),
        cmocka_unit_test_setup_teardown(test_a_fold_keeps_what_is_appended_meanwhile, setup, teardown),
        cmocka_unit_test_setup_teardown(test_removing_takes_only_what_was_seen, setup, teardown),
        cmocka_unit_test_setup_teardown(test_keys_may_hold_any_byte, setup, teardown),
        cmocka_unit_test_setup_teardown(test_an_operation_may_run_again, setup, teardown),
        cmocka_unit_test_setup_teardown(test_a_failed_read_leaves_its_iterators_alone, setup, teardown),
        cmocka_unit_test_setup_teardown(test_a_comparison_behind_a_set_takes_it_back, setup, teardown),
        cmocka_unit_test_setup_teardown(test_more_rows_than_an_osd_returns_at_once_are_read, setup, teardown),
        cmocka_unit_test_setup_teardown(test_a_reader_holds_few_large_rows_at_once, setup, teardown),
        cmocka_unit_test_setup_teardown(test_large_rows_of_a_shard_and_its_pieces_make_no_large_page, setup, teardown),
        cmocka_unit_test_setup_teardown(test_small_rows_in_front_of_large_ones_make_no_large_page, setup, teardown),
        cmocka_unit_test_setup_teardown(test_operands_of_after_the_moment_hold_no_reader_up, setup, teardown),
        cmocka_unit_test_setup_teardown(test_a_row_that_is_written_often_while_it_is_read, setup, teardown),
        cmocka_unit_test_setup_teardown(test_rows_that_are_combined_while_they_are_read_end_no_read, setup, teardown),
        cmocka_unit_test_setup_teardown(test_rows_of_the_next_partition_are_combined_while_one_is_read, setup,
                                        teardown),
        cmocka_unit_test_setup_teardown(test_an_osd_that_hangs_ends_in_a_timeout_that_says_so, setup, teardown),
        cmocka_unit_test_setup_teardown(test_a_ballot_decides_a_write, setup, teardown),
        cmocka_unit_test_setup_teardown(test_of_writers_with_one_ballot_one_wins, setup, teardown),
        cmocka_unit_test_setup_teardown(test_a_split_shard_has_the_same_rows_for_every_client, setup_small, teardown),
        cmocka_unit_test_setup_teardown(test_counters_follow_what_is_stored, setup, teardown),
        cmocka_unit_test_setup_teardown(test_a_split_of_a_table_that_is_dropped_meanwhile_says_so, setup, teardown),
        cmocka_unit_test_setup_teardown(test_a_fold_that_read_before_a_split_is_refused_after_it, setup, teardown),
        cmocka_unit_test_setup_teardown(test_a_split_that_was_left_is_completed_by_the_next_writer, setup, teardown),
        cmocka_unit_test_setup_teardown(test_a_late_copy_changes_nothing, setup, teardown),
        cmocka_unit_test_setup_teardown(test_one_partition_is_not_split_and_is_refused_when_too_large, setup, teardown),
        cmocka_unit_test_setup_teardown(test_a_full_shard_is_relieved_by_folding, setup, teardown),
        cmocka_unit_test_setup_teardown(test_writes_with_many_groups_reach_every_shard, setup_small, teardown),
        cmocka_unit_test_setup_teardown(test_a_dropped_table_leaves_no_object, setup_small, teardown),
        cmocka_unit_test_setup_teardown(test_a_write_after_a_drop_fails_and_makes_no_object, setup, teardown),
        cmocka_unit_test_setup_teardown(test_halves_without_a_root_are_dropped, setup, teardown),
        cmocka_unit_test_setup_teardown(test_a_split_of_a_table_that_is_dropped_leaves_no_half, setup, teardown),
        cmocka_unit_test_setup_teardown(test_a_wide_partition_is_the_same_for_every_client, setup_small, teardown),
        cmocka_unit_test_setup_teardown(test_a_wide_partition_outgrows_one_object, setup_small, teardown),
        cmocka_unit_test_setup_teardown(test_a_move_that_was_left_changes_nothing, setup_calm, teardown),
        cmocka_unit_test_setup_teardown(test_a_delayed_mover_is_refused, setup, teardown),
        cmocka_unit_test_setup_teardown(test_the_sum_of_a_shard_and_its_pieces_ends_where_one_has_more, setup,
                                        teardown),
        cmocka_unit_test_setup_teardown(test_new_operands_in_a_shard_hide_no_rows_of_its_pieces, setup, teardown),
        cmocka_unit_test_setup_teardown(test_a_piece_that_is_newer_than_the_head_is_not_read, setup, teardown),
        cmocka_unit_test_setup_teardown(test_a_move_beside_a_drop_leaves_no_piece, setup, teardown),
        cmocka_unit_test_setup_teardown(test_heads_of_wide_partitions_go_with_a_split, setup, teardown),
        cmocka_unit_test_setup_teardown(test_a_write_to_several_pieces_is_seen_as_a_whole, setup_small, teardown),
        cmocka_unit_test_setup_teardown(test_named_records_change_on_conditions, setup, teardown),
        cmocka_unit_test_setup_teardown(test_a_watcher_is_told_of_changes, setup, teardown),
        cmocka_unit_test_setup_teardown(test_a_store_that_has_told_of_a_change_can_be_closed_at_once, setup, teardown),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
