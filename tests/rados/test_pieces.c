/* Wide partitions: moves of rows to pieces, and reads and writes of both. */
#include <errno.h>
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

#include <cmocka.h>

#include "engine/rados/move.h"
#include "engine/rados/rados.h"
#include "world.h"

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
    struct slice prefix = world_prefix(w, partition), behind = world_key(w, partition, slice_of("\xff\xff\xff\xff", 4));
    for (uint32_t from = 0; from < n; from += 1 + n / 4) {
        struct cursor c;
        const struct record *r;
        cursor_init(&c, s, w->table, prefix, from ? world_row(w, partition, from) : prefix, behind);
        for (uint32_t row = from; row < n; row++) {
            assert_int_equal(cursor_next(&c, &r, &w->e), 1);
            assert_true(slice_eq(r->key, world_row(w, partition, row)));
            assert_int_equal(harness_count(r->value), count);
        }
        assert_int_equal(cursor_next(&c, &r, &w->e), 0);
        cursor_fini(&c);
    }
    for (uint32_t row = 0; row < n; row += 7)
        assert_int_equal(harness_count(world_read(w, s, prefix, world_row(w, partition, row)).value), count);
    assert_null(world_read(w, s, prefix, world_row(w, partition, n)).value.p);
}

/* Q17: where each piece begins the shard has a fence. Returns the number of pieces. */
static size_t assert_fences(struct world *w, uint32_t partition) {
    static const char first[] = {ENGI_ROW, OMAP_KEY_END, 0};
    struct slice prefix = world_prefix(w, partition);
    struct pieces p = world_pieces(w, partition, NULL);
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

static void test_a_wide_partition_is_the_same_for_every_client(void **state) {
    struct world *w = *state;
    enum { ROWS = 700 };
    uint64_t keys, bytes;
    world_write_rows(w, w->s, 10, 40);
    for (uint32_t p = 1; p <= 2; p++) {
        write_wide(w, p, 0, ROWS, 2, 1); /* every other row, and those between when there are pieces */
        world_make_wide(w, p);
        write_wide(w, p, 1, ROWS, 2, 1);
    }
    world_write_rows(w, w->s, 40, 60);
    for (int i = 0; i < 2; i++) {
        for (uint32_t p = 1; p <= 2; p++) assert_rows(w, i ? w->other : w->s, p, ROWS, 1);
        assert_int_equal(world_count_rows(w, i ? w->other : w->s, w->table), 2 * ROWS + 100);
    }
    write_wide(w, 1, 0, ROWS, 1, 2);
    assert_rows(w, w->other, 1, ROWS, 2);
    assert_rows(w, w->s, 2, ROWS, 1);
    assert_true(assert_fences(w, 1) > 3);
    assert_int_equal(world_write_if(w, w->s, world_prefix(w, 1), world_row(w, 1, 3), 9, "", "one"), 0);
    assert_int_equal(world_write_if(w, w->other, world_prefix(w, 1), world_row(w, 1, 3), 9, "", "two"), WRITE_CHANGED);
    assert_int_equal(harness_count(world_read(w, w->other, world_prefix(w, 1), world_row(w, 1, 3)).value), 3);
    assert_int_equal(table_size(w->s, w->table, &keys, &bytes, &w->e), 0);
    assert_true(keys >= 2 * ROWS + 100);
    assert_int_equal(table_drop(w->s, w->table, &w->e), 0);
    assert_int_equal(count_objects(w, "piece"), 0);
    assert_int_equal(world_times_stored(w, w->table), 0);
}

/* The limit of an object no longer limits a partition. */
static void test_a_wide_partition_outgrows_one_object(void **state) {
    struct world *w = *state;
    w->s->o.max_keys = w->other->o.max_keys = 400;
    for (uint32_t row = 0; row < 1200; row += 100) {
        write_wide(w, 1, row, row + 100, 1, 1);
        world_make_wide(w, 1);
        for (int i = 0; i < 2; i++) assert_int_equal(move_relieve(w->s, world_shard(w->s, w, 1)), 0);
    }
    assert_rows(w, w->other, 1, 1200, 1);
}

/* A front end dies behind each step of a move. The rows stay, the next move leaves the dead one alone at first, as it
 * may be slow, then takes all rows, and removes the pieces that the dead one has made. */
static void test_an_abandoned_move_changes_no_rows(void **state) {
    struct world *w = *state;
    enum { ROWS = 300, STEPS = 3 };
    for (uint32_t partition = 0; partition < 2 * STEPS; partition++) {
        struct move m;
        bool has_pieces = partition >= STEPS;
        if (has_pieces) {
            write_wide(w, partition, 0, ROWS, 3, 1);
            world_make_wide(w, partition);
            write_wide(w, partition, 1, ROWS, 3, 1);
            write_wide(w, partition, 2, ROWS, 3, 1);
        } else {
            write_wide(w, partition, 0, ROWS, 1, 1);
        }
        struct slice prefix = world_prefix(w, partition);
        move_init(&m, w->other, prefix);
        assert_int_equal(move_read(&m), 0);
        if (partition % STEPS > 0) assert_int_equal(move_begin(&m), 0);
        if (partition % STEPS > 1) assert_int_equal(move_copy(&m), 0);
        for (int i = 0; i < 2; i++) assert_rows(w, i ? w->other : w->s, partition, ROWS, 1);
        struct pieces before = world_pieces(w, partition, NULL);
        assert_int_equal(before.begun, partition % STEPS > 0);
        assert_int_equal(move_rows(w->s, world_shard(w->s, w, partition), prefix), 0);
        if (before.begun) {
            assert_int_equal(world_pieces(w, partition, NULL).move, before.move);
            assert_int_equal(move_rows(w->s, world_shard(w->s, w, partition), prefix), 0);
        }
        assert_true(world_pieces(w, partition, NULL).move > before.move);
        assert_false(world_pieces(w, partition, NULL).begun);
        for (int i = 0; i < 2; i++) assert_rows(w, i ? w->other : w->s, partition, ROWS, 1);
        if (partition % STEPS > 1) assert_int_equal(move_complete(&m), -EAGAIN); /* it was only slow */
        move_fini(&m);
        for (int i = 0; i < 2; i++) assert_rows(w, i ? w->other : w->s, partition, ROWS, 1);
    }
    size_t pieces = 0;
    for (uint32_t partition = 0; partition < 2 * STEPS; partition++) pieces += world_pieces(w, partition, NULL).n;
    assert_int_equal(count_objects(w, "piece"), pieces);
}

/* Q11: an operand that has left the shard is not copied again. */
static void test_a_delayed_mover_is_refused(void **state) {
    struct world *w = *state;
    struct move late;
    struct slice prefix = world_prefix(w, 1);
    write_wide(w, 1, 0, 100, 1, 1);
    assert_int_equal(move_rows(w->s, world_shard(w->s, w, 1), prefix), 0);
    assert_int_equal(world_pieces(w, 1, NULL).n, 1);
    write_wide(w, 1, 100, 110, 1, 1);
    move_init(&late, w->other, prefix);
    assert_int_equal(move_read(&late), 0);
    assert_int_equal(move_begin(&late), 0);
    for (int i = 0; i < 2; i++) assert_int_equal(move_rows(w->s, world_shard(w->s, w, 1), prefix), 0);
    assert_false(world_pieces(w, 1, NULL).begun);
    assert_int_equal(move_copy(&late), -EAGAIN);
    move_fini(&late);
    assert_rows(w, w->s, 1, 110, 1);
}

/* Q10: a reader that has read the head before a move does not read the pieces behind it. */
static void test_a_piece_that_is_newer_than_the_head_is_not_read(void **state) {
    struct world *w = *state;
    struct slice value, prefix = world_prefix(w, 1);
    struct omap_pairs pairs = {0};
    struct buf start;
    struct slice last = slice_of("", 0);
    bool more = false;
    write_wide(w, 1, 0, 100, 1, 1);
    assert_int_equal(move_rows(w->s, world_shard(w->s, w, 1), prefix), 0);
    world_pieces(w, 1, &value);
    buf_init(&start, 0);
    omap_key_escape(&start, slice_of(prefix.p + ENGI_KEY_TOKEN, prefix.n - ENGI_KEY_TOKEN));
    buf_u8(&start, 0);
    struct fetch_part part = {(const char *)start.p, (const char *)start.p, OMAP_READ_MAX};
    assert_int_equal(pieces_add(w->s, prefix, value, &part, &w->a, &pairs, &last, &more), 0);
    assert_int_equal(pairs.n, 100);
    omap_pairs_fini(&pairs);
    pairs = (struct omap_pairs){0};
    write_wide(w, 1, 100, 110, 1, 1);
    assert_int_equal(move_rows(w->other, world_shard(w->other, w, 1), prefix), 0);
    assert_int_equal(pieces_add(w->s, prefix, value, &part, &w->a, &pairs, &last, &more), -EAGAIN);
    omap_pairs_fini(&pairs);
    buf_fini(&start);
}

/* The key of an object behind all operands of a row. */
static struct slice behind_row(struct world *w, uint32_t row) {
    struct slice key = world_row(w, 1, row);
    struct buf b;
    buf_init(&b, 0);
    omap_key_escape(&b, slice_of(key.p + ENGI_KEY_TOKEN, key.n - ENGI_KEY_TOKEN));
    buf_put_str(&b, "\x01\xff");
    return arena_take(&w->a, &b);
}

/* The shard has given keys up to the row `last`, of which those of the row `kept` stay, and has more. The piece is
 * asked for max keys. Expects the sum to have all rows up to the row `end`, and to be complete up to there. */
static void assert_sum(struct world *w, struct slice value, uint32_t kept, uint32_t last, uint64_t max, uint32_t end) {
    struct slice prefix = world_prefix(w, 1), read = behind_row(w, last);
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
    assert_int_equal(move_rows(w->s, world_shard(w->s, w, 1), world_prefix(w, 1)), 0);
    world_pieces(w, 1, &value);
    assert_sum(w, value, 10, 10, OMAP_READ_MAX, 10);
    assert_sum(w, value, 10, 60, OMAP_READ_MAX, 60);
    assert_sum(w, value, 10, 60, 20, 19);
    assert_sum(w, value, 30, 60, 20, 19);
}

/* All keys that an operation on the shard returns are such, while rows of pieces lie on both sides. */
static void test_new_operands_in_a_shard_hide_no_rows_of_its_pieces(void **state) {
    struct world *w = *state;
    enum { ROWS = 300, HOT = 100, TIMES = 40, AT_ONCE = 10 };
    struct slice prefix = world_prefix(w, 1);
    struct cursor c;
    const struct record *r;
    uint32_t rows[AT_ONCE];
    write_wide(w, 1, 0, ROWS, 1, 1);
    assert_int_equal(move_rows(w->s, world_shard(w->s, w, 1), prefix), 0);
    cursor_init(&c, w->other, w->table, prefix, prefix, (struct slice){0});
    cursor_expect(&c, 1);
    assert_int_equal(cursor_next(&c, &r, &w->e), 1);
    for (uint32_t hot = HOT; hot < ROWS; hot += HOT / 2) {
        for (uint32_t i = 0; i < AT_ONCE; i++) rows[i] = hot;
        for (uint32_t n = 0; n < TIMES; n++)
            assert_int_equal(harness_append(w->s, w->table, 1, rows, AT_ONCE, 2, &w->e), 0);
    }
    world_expect_rest(w, &c, 1, ROWS);
    cursor_fini(&c);
}

/* Pieces that a mover makes after the table was dropped are removed again. */
static void test_a_move_during_a_drop_leaves_no_piece(void **state) {
    struct world *w = *state;
    struct move m;
    write_wide(w, 1, 0, 100, 1, 1);
    move_init(&m, w->other, world_prefix(w, 1));
    assert_int_equal(move_read(&m), 0);
    assert_int_equal(move_begin(&m), 0);
    assert_int_equal(table_drop(w->s, w->table, &w->e), 0);
    assert_int_equal(move_copy(&m), -ESTALE);
    move_fini(&m);
    assert_int_equal(world_times_stored(w, w->table), 0);
}

/* A shard with the head of a wide partition splits. */
static void test_heads_of_wide_partitions_are_copied_by_a_split(void **state) {
    struct world *w = *state;
    for (uint32_t p = 1; p <= 2; p++) {
        write_wide(w, p, 0, 100, 1, 1);
        assert_int_equal(move_rows(w->s, world_shard(w->s, w, p), world_prefix(w, p)), 0);
        write_wide(w, p, 100, 110, 1, 1);
    }
    struct shard *root = shard_map_get(&w->s->shards, &(struct shard_id){.table = w->table});
    assert_int_equal(world_count_rows(w, w->other, w->table), 220);
    world_freeze(w, root);
    assert_int_equal(move_relieve(w->s, root), 0);
    assert_true(atomic_load(&root->split));
    for (uint32_t p = 1; p <= 2; p++) {
        assert_rows(w, w->other, p, 110, 1);
        assert_true(assert_fences(w, p) > 0);
        assert_int_equal(move_rows(w->other, world_shard(w->other, w, p), world_prefix(w, p)), 0);
        assert_rows(w, w->s, p, 110, 1);
    }
    assert_int_equal(world_count_rows(w, w->other, w->table), 220);
    assert_int_equal(table_drop(w->other, w->table, &w->e), 0);
    assert_int_equal(world_times_stored(w, w->table), 0);
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

static void test_a_write_to_several_pieces_is_visible_as_a_whole(void **state) {
    struct world *w = *state;
    enum { WRITERS = 4, ROUNDS = 250 };
    struct wide_writer writers[WRITERS];
    struct slice prefix = world_prefix(w, 1);
    write_wide(w, 1, 0, ROUNDS, 1, 99);
    write_wide(w, 1, FAR, FAR + ROUNDS, 1, 99);
    world_make_wide(w, 1);
    for (uint32_t i = 0; i < WRITERS; i++) {
        writers[i] = (struct wide_writer){
            .s = i % 2 ? w->s : w->other, .table = w->table, .number = i, .rounds = ROUNDS};
        assert_int_equal(pthread_create(&writers[i].thread, NULL, write_pairs, &writers[i]), 0);
    }
    uint64_t moves = atomic_load(&w->s->n_moves) + atomic_load(&w->other->n_moves);
    for (uint32_t done = 0, look = 0; done < WRITERS; look++) {
        struct read_result r;
        uint32_t row = look * 7 % ROUNDS;
        struct slice keys[2] = {world_row(w, 1, row), world_row(w, 1, row + FAR)};
        done = 0;
        for (int i = 0; i < WRITERS; i++) done += atomic_load(&writers[i].done) == ROUNDS;
        if (read_partition(look % 2 ? w->s : w->other, prefix, keys, 2, &w->a, &r, &w->e) < 0)
            fail_msg("%s", w->e.text);
        assert_true(slice_eq(r.keys[0].value, r.keys[1].value));
        arena_reset(&w->a);
        prefix = world_prefix(w, 1);
        if (look % 16) continue;
        assert_int_equal(world_count_rows(w, w->s, w->table), 2 * ROUNDS);
    }
    for (uint32_t i = 0; i < WRITERS; i++) pthread_join(writers[i].thread, NULL);
    assert_true(atomic_load(&w->s->n_moves) + atomic_load(&w->other->n_moves) > moves);
    assert_int_equal(world_count_rows(w, w->other, w->table), 2 * ROUNDS);
    for (uint32_t row = 0; row < ROUNDS; row++) {
        assert_int_equal(harness_count(world_read(w, w->s, prefix, world_row(w, 1, row)).value), WRITERS + 1);
        assert_int_equal(harness_count(world_read(w, w->other, prefix, world_row(w, 1, row + FAR)).value), WRITERS + 1);
    }
}

int main(void) {
#define TEST(name, setup) cmocka_unit_test_setup_teardown(name, setup, world_teardown)
    const struct CMUnitTest tests[] = {
        TEST(test_a_wide_partition_is_the_same_for_every_client, world_setup_small),
        TEST(test_a_wide_partition_outgrows_one_object, world_setup_small),
        TEST(test_an_abandoned_move_changes_no_rows, world_setup_calm),
        TEST(test_a_delayed_mover_is_refused, world_setup),
        TEST(test_a_piece_that_is_newer_than_the_head_is_not_read, world_setup),
        TEST(test_the_sum_of_a_shard_and_its_pieces_ends_where_one_has_more, world_setup),
        TEST(test_new_operands_in_a_shard_hide_no_rows_of_its_pieces, world_setup),
        TEST(test_a_move_during_a_drop_leaves_no_piece, world_setup),
        TEST(test_heads_of_wide_partitions_are_copied_by_a_split, world_setup),
        TEST(test_a_write_to_several_pieces_is_visible_as_a_whole, world_setup_small),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
