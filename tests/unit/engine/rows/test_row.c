/* Reconciliation is a join: associative, commutative, idempotent; and agrees with Cassandra's rules. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>

#include <cmocka.h>

#include "engine/rows/row_codec.h"

struct random { uint64_t s; };

static uint32_t pick(struct random *r, uint32_t n) {
    r->s ^= r->s << 13, r->s ^= r->s >> 7, r->s ^= r->s << 17;
    return (uint32_t)(r->s >> 20) % n;
}

static const char *const words[] = {"", "a", "b", "ab", "c"};

static struct eng_cell random_cell(struct random *r) {
    struct eng_cell c = {.column = pick(r, 4), .ts = 100 + pick(r, 6), .expiry = ENG_NO_EXPIRY};
    if (c.column >= 2) { /* a collection */
        if (pick(r, 4) == 0) {
            c.flags = ENG_CELL_COMPLEX_DELETION;
            c.expiry = 10 + pick(r, 2);
            return c;
        }
        c.flags = ENG_CELL_HAS_PATH;
        c.path = slice_str(words[pick(r, 5)]);
    }
    uint32_t kind = pick(r, 3);
    if (kind == 1) c.flags |= ENG_CELL_TOMBSTONE;
    else c.value = slice_str(words[pick(r, 5)]);
    if (kind == 2) {
        c.flags |= ENG_CELL_EXPIRING;
        c.ttl = 1 + (int32_t)pick(r, 2);
    }
    if (kind) c.expiry = 10 + pick(r, 3);
    return c;
}

static struct buf random_row(struct random *r, struct eng_cell *cells) {
    struct eng_row row;
    struct buf out;
    eng_row_init(&row, ENG_ROW, slice_str(""));
    if (pick(r, 2)) row.live_ts = 100 + pick(r, 6);
    if (row.live_ts != ENG_NO_TS && pick(r, 2)) {
        row.live_ttl = 1 + (int32_t)pick(r, 2);
        row.live_expiry = 10 + pick(r, 3);
    }
    if (pick(r, 4) == 0) {
        row.del_ts = 100 + pick(r, 6);
        row.del_at = 10 + pick(r, 2);
    }
    if (pick(r, 8) == 0) row.key_image = slice_str(words[pick(r, 5)]);
    row.cells = cells;
    row.n_cells = pick(r, 9);
    for (uint32_t i = 0; i < row.n_cells; i++) cells[i] = random_cell(r);
    eng_row_sort(&row);
    buf_init(&out, 0);
    eng_row_encode(&row, &out);
    return out;
}

static struct buf merge(const struct buf *a, const struct buf *b) {
    struct buf out;
    buf_init(&out, 0);
    assert_int_equal(eng_row_merge(buf_slice(a), buf_slice(b), &out), 0);
    return out;
}

/* Rows that mean the same may differ in the padding of a number: compared as decoded and encoded again. */
static void assert_same(const struct buf *a, const struct buf *b) {
    struct arena arena;
    struct err e = {0};
    struct buf out[2];
    arena_init(&arena, 4096, 0);
    for (int i = 0; i < 2; i++) {
        struct eng_row row;
        eng_row_init(&row, ENG_ROW, slice_str(""));
        assert_int_equal(eng_row_decode(buf_slice(i ? b : a), &arena, &row, &e), 0);
        buf_init(&out[i], 0);
        eng_row_encode(&row, &out[i]);
    }
    assert_int_equal(out[0].n, out[1].n);
    assert_memory_equal(out[0].p, out[1].p, out[0].n);
    buf_fini(&out[0]);
    buf_fini(&out[1]);
    arena_fini(&arena);
}

static bool same_image(const struct buf *a, const struct buf *b) {
    struct rowi_reader x, y;
    assert_int_equal(rowi_open(&x, buf_slice(a)), 0);
    assert_int_equal(rowi_open(&y, buf_slice(b)), 0);
    return !x.head.key_image.p == !y.head.key_image.p && slice_eq(x.head.key_image, y.head.key_image);
}

/* But for the image of the key, which is that of whoever came first. */
static void test_merge_is_a_join(void **state) {
    (void)state;
    struct random r = {.s = 88172645463325252};
    for (int round = 0; round < 20000; round++) {
        struct eng_cell cells[9];
        struct buf a = random_row(&r, cells), b = random_row(&r, cells), c = random_row(&r, cells);
        struct buf ab = merge(&a, &b), ba = merge(&b, &a), bc = merge(&b, &c);
        struct buf left = merge(&ab, &c), right = merge(&a, &bc), again = merge(&left, &b), self = merge(&ab, &ab);
        if (same_image(&a, &b)) assert_same(&ab, &ba);
        assert_true(same_image(&a, &ab) && same_image(&b, &ba) && same_image(&a, &left) && same_image(&a, &right));
        assert_same(&left, &right);
        assert_same(&left, &again);
        assert_same(&ab, &self);
        struct buf *all[] = {&a, &b, &c, &ab, &ba, &bc, &left, &right, &again, &self};
        for (size_t i = 0; i < ARRAY_LEN(all); i++) buf_fini(all[i]);
    }
}

static struct eng_row decoded(const struct buf *b, struct arena *arena) {
    struct err e = {0};
    struct eng_row row;
    eng_row_init(&row, ENG_ROW, slice_str(""));
    assert_int_equal(eng_row_decode(buf_slice(b), arena, &row, &e), 0);
    return row;
}

/* And twice, so that it is laid on what was laid. */
static void test_laying_is_merging(void **state) {
    (void)state;
    struct random r = {.s = 362436069362436069};
    for (int round = 0; round < 20000; round++) {
        struct eng_cell cells[9];
        struct buf a = random_row(&r, cells), b = random_row(&r, cells), c = random_row(&r, cells), ab = merge(&a, &b),
                   abc = merge(&ab, &c), laid[2];
        struct arena arena;
        arena_init(&arena, 4096, 0);
        struct eng_row ra = decoded(&a, &arena), rb = decoded(&b, &arena), rc = decoded(&c, &arena), row;
        for (int i = 0; i < 2; i++) {
            assert_int_equal(eng_row_lay(i ? &row : &ra, i ? &rc : &rb, &arena, &row), 0);
            buf_init(&laid[i], 0);
            eng_row_encode(&row, &laid[i]);
            assert_same(&laid[i], i ? &abc : &ab);
            assert_true(same_image(&laid[i], i ? &abc : &ab));
        }
        struct buf *all[] = {&a, &b, &c, &ab, &abc, &laid[0], &laid[1]};
        for (size_t i = 0; i < ARRAY_LEN(all); i++) buf_fini(all[i]);
        arena_fini(&arena);
    }
}

/* What resolving sees must not depend on whether operands were merged: one row with all cells, or merged pairs. */
static void test_resolve_after_merge_hides_the_deleted(void **state) {
    (void)state;
    struct eng_cell cells[] = {
        {.column = 1, .flags = ENG_CELL_COMPLEX_DELETION, .ts = 99, .expiry = 5},
        {.column = 1,
         .flags = ENG_CELL_HAS_PATH,
         .ts = 99,
         .expiry = ENG_NO_EXPIRY,
         .path = slice_str("a"),
         .value = slice_str("old")},
        {.column = 1,
         .flags = ENG_CELL_HAS_PATH,
         .ts = 100,
         .expiry = ENG_NO_EXPIRY,
         .path = slice_str("b"),
         .value = slice_str("new")},
        {.column = 2, .flags = ENG_CELL_EXPIRING, .ts = 100, .ttl = 5, .expiry = 50, .value = slice_str("x")},
    };
    uint64_t tombstones = 0;
    struct eng_row row;
    eng_row_init(&row, ENG_ROW, slice_str(""));
    row.cells = cells;
    row.n_cells = 4;
    assert_true(eng_row_resolve(&row, ENG_NO_TS, 49, &tombstones));
    assert_int_equal(row.n_cells, 2);
    assert_int_equal(tombstones, 1);
    assert_true(slice_is(row.cells[0].path, "b"));
    assert_true(eng_row_resolve(&row, ENG_NO_TS, 50, &tombstones));
    assert_int_equal(row.n_cells, 1);
    assert_false(eng_row_resolve(&row, 100, 49, &tombstones));
}

static void check_winner(struct eng_cell a, struct eng_cell b, const char *winner) {
    struct buf one[2], out;
    struct eng_cell cells[2] = {a, b};
    struct arena arena;
    struct err e = {0};
    struct eng_row row;
    arena_init(&arena, 4096, 0);
    for (int i = 0; i < 2; i++) {
        eng_row_init(&row, ENG_ROW, slice_str(""));
        cells[i].column = 7;
        row.cells = &cells[i];
        row.n_cells = 1;
        buf_init(&one[i], 0);
        eng_row_encode(&row, &one[i]);
    }
    out = merge(&one[0], &one[1]);
    assert_int_equal(eng_row_decode(buf_slice(&out), &arena, &row, &e), 0);
    assert_int_equal(row.n_cells, 1);
    assert_int_equal(row.cells[0].column, 7);
    assert_true(winner ? slice_is(row.cells[0].value, winner) : !!(row.cells[0].flags & ENG_CELL_TOMBSTONE));
    buf_fini(&one[0]);
    buf_fini(&one[1]);
    buf_fini(&out);
    arena_fini(&arena);
}

static void test_merge_breaks_ties_as_cassandra(void **state) {
    (void)state;
    struct eng_cell live = {.ts = 5, .expiry = ENG_NO_EXPIRY, .value = slice_str("m")}, greater = live, newer = live;
    struct eng_cell expiring = {.ts = 5, .flags = ENG_CELL_EXPIRING, .ttl = 3, .expiry = 30, .value = slice_str("e")},
                    later = expiring;
    struct eng_cell tombstone = {.ts = 5, .flags = ENG_CELL_TOMBSTONE, .expiry = 2};
    greater.value = slice_str("ma");
    newer.ts = 6;
    newer.value = slice_str("a");
    later.expiry = 31;
    later.value = slice_str("d");
    check_winner(live, greater, "ma");
    check_winner(newer, greater, "a");
    check_winner(live, expiring, "e");
    check_winner(expiring, tombstone, NULL);
    check_winner(live, tombstone, NULL);
    check_winner(newer, tombstone, "a");
    check_winner(expiring, later, "d");
}

static void test_decode_survives_damage(void **state) {
    (void)state;
    struct random r = {.s = 42};
    struct arena arena;
    arena_init(&arena, 4096, 1 << 20);
    for (int round = 0; round < 20000; round++) {
        struct eng_cell cells[9];
        struct err e = {0};
        struct eng_row row;
        struct buf a = random_row(&r, cells), b = random_row(&r, cells), out;
        buf_init(&out, 0);
        a.p[pick(&r, (uint32_t)a.n)] = (uint8_t)pick(&r, 256);
        uint8_t *exact = malloc(a.n); /* no room behind, for the sanitizer */
        size_t n = a.n - pick(&r, 3);
        memcpy(exact, a.p, n);
        (void)!eng_row_decode(slice_of(exact, n), &arena, &row, &e);
        (void)!eng_row_merge(slice_of(exact, n), buf_slice(&b), &out);
        free(exact);
        buf_fini(&a);
        buf_fini(&b);
        buf_fini(&out);
        arena_reset(&arena);
    }
    arena_fini(&arena);
}

/* Rows as INSERTs leave them, now and then with something else in one place. */
static struct buf nearly_plain_row(struct random *r, struct eng_cell *cells, uint32_t n) {
    static const char longer[] = "a value whose length does not fit into one byte is none of those that are read in a "
                                 "hurry, so that it needs a few more words to be so long";
    struct eng_row row;
    struct buf out;
    eng_row_init(&row, ENG_ROW, slice_str(""));
    if (pick(r, 2)) row.live_ts = 100;
    row.cells = cells;
    row.n_cells = n;
    for (uint32_t i = 0; i < n; i++)
        cells[i] = (struct eng_cell){.column = (i + 1) * (pick(r, 8) ? 1 : 100),
                                     .ts = 100,
                                     .expiry = ENG_NO_EXPIRY,
                                     .value = slice_str(words[pick(r, 5)])};
    if (n && pick(r, 2)) cells[pick(r, n)] = random_cell(r);
    if (n && pick(r, 8) == 0) cells[pick(r, n)].value = slice_str(longer);
    if (n && pick(r, 8) == 0) cells[pick(r, n)].ts = 101;
    for (uint32_t i = 0; i < n; i++)
        if (cells[i].flags & (ENG_CELL_TOMBSTONE | ENG_CELL_COMPLEX_DELETION)) cells[i].value = (struct slice){0};
    eng_row_sort(&row);
    buf_init(&out, 0);
    eng_row_encode(&row, &out);
    return out;
}

static bool is_plain(const struct eng_row *row) {
    for (uint32_t i = 0; i < row->n_cells; i++) {
        const struct eng_cell *c = &row->cells[i];
        if (c->flags || c->path.n || c->ttl || c->expiry != ENG_NO_EXPIRY || c->ts != row->cells[0].ts) return false;
        if (i && c->column <= row->cells[i - 1].column) return false;
    }
    return true;
}

static void assert_same_resolved(const struct eng_row *a, const struct eng_row *b) {
    assert_int_equal(a->n_cells, b->n_cells);
    assert_int_equal(a->live_ts, b->live_ts);
    for (uint32_t i = 0; i < a->n_cells; i++) {
        assert_int_equal(a->cells[i].column, b->cells[i].column);
        assert_int_equal(a->cells[i].ts, b->cells[i].ts);
        assert_true(slice_eq(a->cells[i].value, b->cells[i].value));
    }
}

static void test_plain_rows_resolve_as_all_others(void **state) {
    (void)state;
    struct random r = {.s = 7};
    struct arena arena;
    uint32_t plain = 0, rounds = 20000;
    arena_init(&arena, 4096, 0);
    for (uint32_t round = 0; round < rounds; round++) {
        struct eng_cell cells[9];
        struct err e = {0};
        struct eng_row row, slow;
        uint64_t dead = 0, slow_dead = 0;
        struct buf stored = nearly_plain_row(&r, cells, pick(&r, 9));
        eng_row_init(&row, ENG_ROW, slice_str(""));
        slow = row;
        assert_int_equal(eng_row_decode(buf_slice(&stored), &arena, &row, &e), 0);
        assert_int_equal(eng_row_decode(buf_slice(&stored), &arena, &slow, &e), 0);
        assert_true(!row.plain || is_plain(&row));
        plain += row.plain;
        slow.plain = false;
        int64_t del_ts = pick(&r, 2) ? ENG_NO_TS : 98 + pick(&r, 4), now = 9 + pick(&r, 5);
        assert_int_equal(eng_row_resolve(&row, del_ts, now, &dead), eng_row_resolve(&slow, del_ts, now, &slow_dead));
        assert_int_equal(dead, slow_dead);
        assert_same_resolved(&row, &slow);
        buf_fini(&stored);
        arena_reset(&arena);
    }
    assert_in_range(plain, rounds / 8, rounds - rounds / 8);
    arena_fini(&arena);
}

/* Column ids to values: 1 is of no column any more for a while, then 0; 2 and 3 change places, ids
 * from 5 on are unknown. Rows follow one another as in scans of some length, each in a place of its own. */
static void test_rows_are_laid_out_as_they_are_decoded(void **state) {
    (void)state;
    enum { ROUNDS = 20000, SCAN = 50, FROM = 1, TO = 5 };
    static const uint16_t all_places[3][5] = {{1, UINT16_MAX, 3, 2, 4},
                                              {UINT16_MAX, 1, 3, 2, 4},
                                              {UINT16_MAX, 4, 1, 3, 2}};
    struct random r = {.s = 11};
    struct eng_cell cells[16];
    struct value places_of_rows[2][TO + 1];
    struct err e = {0};
    struct arena arena;
    uint32_t laid = 0, alike = 0;
    arena_init(&arena, 1024, 0);
    for (uint32_t i = 0; i <= TO; i++) places_of_rows[0][i] = places_of_rows[1][i] = value_of("kept", 4);
    struct eng_row row, other;
    struct rowi_shape shape;
    for (int round = 0; round < ROUNDS; round++) {
        const uint16_t *places = all_places[round / SCAN % 3];
        struct value *values = places_of_rows[round % 2];
        if (round % SCAN == 0) {
            shape = (struct rowi_shape){0};
            eng_row_init(&other, ENG_ROW, slice_str(""));
        }
        uint32_t before = other.laid_out ? shape.n : 0;
        uint32_t usual = 1 + (uint32_t)(round / SCAN) % 4;
        struct buf stored = nearly_plain_row(&r, cells, pick(&r, 4) ? usual : pick(&r, 8));
        if (pick(&r, 16) == 0) stored.p[pick(&r, (uint32_t)stored.n)] ^= (uint8_t)(1 << pick(&r, 8)); /* damaged */
        struct eng_layout to = {.places = places, .n_ids = 5, .values = values, .from = FROM, .to = TO};
        eng_row_init(&row, ENG_ROW, slice_str(""));
        if (rowi_lay_out(buf_slice(&stored), &to, &shape, &other)) {
            struct value wanted[TO];
            uint32_t n = 0;
            uint64_t bytes = 0;
            assert_int_equal(eng_row_decode(buf_slice(&stored), &arena, &row, &e), 0);
            assert_true(row.plain && other.plain && other.laid_out && !row.laid_out && other.n_cells == 0 &&
                        !row.key_image.p);
            assert_true(row.live_ts == other.live_ts && !row.live_ttl && row.del_ts == ENG_NO_TS);
            assert_true(eng_row_resolve(&row, ENG_NO_TS, 0, NULL));
            for (uint32_t i = FROM; i < TO; i++) wanted[i] = value_null();
            for (uint32_t i = 0; i < row.n_cells; i++) {
                uint16_t place = row.cells[i].column < 5 ? places[row.cells[i].column] : UINT16_MAX;
                if (place == UINT16_MAX) continue;
                wanted[place] = value_of_slice(row.cells[i].value);
                n++;
                bytes += row.cells[i].value.n;
            }
            for (uint32_t i = FROM; i < TO; i++)
                assert_true(wanted[i].n == values[i].n && (wanted[i].n < 0 || wanted[i].p == values[i].p));
            assert_true(to.n == n && to.bytes == bytes);
            assert_true(values[0].n == 4 && values[TO].n == 4);
            laid++;
            alike += n && n == before && row.n_cells == n;
        } else if (pick(&r, 2)) { /* as when it was decoded meanwhile */
            eng_row_init(&other, ENG_ROW, slice_str(""));
            for (uint32_t i = FROM; i < TO; i++) values[i] = value_of("else", 4);
        }
        err_clear(&e);
        buf_fini(&stored);
        arena_reset(&arena);
    }
    assert_in_range(laid, ROUNDS / 10, ROUNDS - ROUNDS / 10);
    assert_in_range(alike, ROUNDS / 200, ROUNDS);
    arena_fini(&arena);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_merge_is_a_join),
        cmocka_unit_test(test_laying_is_merging),
        cmocka_unit_test(test_resolve_after_merge_hides_the_deleted),
        cmocka_unit_test(test_merge_breaks_ties_as_cassandra),
        cmocka_unit_test(test_decode_survives_damage),
        cmocka_unit_test(test_plain_rows_resolve_as_all_others),
        cmocka_unit_test(test_rows_are_laid_out_as_they_are_decoded),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
