/* Reads downwards: they find what reads upwards do, and look at few rows to give few. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

#include <cmocka.h>
#include <sched.h>

#include "base/random.h"
#include "engine/rados/bisect.h"
#include "engine/rados/iter.h"
#include "engine/rados/move.h"
#include "harness.h"

enum { ROWS = 1200, MORE_ROWS = 200, ROWS_MAX = 4000, AT_ONCE = 50, KEY_MAX = 24, PARTITION = 1 };

struct key {
    uint8_t n, bytes[KEY_MAX];
};

struct world {
    struct rados *s, *other; /* two clients */
    uint32_t table;
    uint64_t random;
    struct key keys[ROWS_MAX + MORE_ROWS]; /* of the rows, in ascending order */
    size_t n;
    struct buf prefix, past; /* of the partition; the key of its end */
    struct err e;
};

static int setup_with(void **state, uint64_t split_keys) {
    struct world *w = calloc(1, sizeof(*w));
    w->s = harness_open(split_keys, 10);
    w->other = harness_open(split_keys, 10);
    w->random = 88172645463325252u;
    *state = w;
    return 0;
}
static int setup(void **state) { return setup_with(state, 0); }
/* Pieces have some 200 rows. */
static int setup_small(void **state) { return setup_with(state, 300); }

static int teardown(void **state) {
    struct world *w = *state;
    rados_close(w->s);
    rados_close(w->other);
    buf_fini(&w->prefix);
    buf_fini(&w->past);
    free(w);
    return 0;
}

static uint32_t draw(struct world *w, uint32_t below) {
    w->random ^= w->random << 13, w->random ^= w->random >> 7, w->random ^= w->random << 17;
    return (uint32_t)(w->random >> 20) % below;
}

/* ---- clustering keys ---- */

static struct key int_key(struct world *w, uint32_t i) {
    struct key k = {.n = 4};
    (void)w;
    return store_u32(k.bytes, 1u << 31 | i), k;
}
static struct key timestamp_key(struct world *w, uint32_t i) {
    struct key k = {.n = 8};
    store_u64(k.bytes, (1ull << 63) + 1700000000000 + i * 1000ull + draw(w, 1000));
    return k;
}
static struct key timeuuid_key(struct world *w, uint32_t i) {
    struct key k = {.n = 16};
    store_u64(k.bytes, 0x01ee000000000000 + i * 10000000ull + draw(w, 10000000));
    store_u64(k.bytes + 8, 0x8123456789abcdef ^ draw(w, 1 << 30));
    return k;
}
static struct key text_key(struct world *w, uint32_t i) {
    struct key k = {0};
    (void)w;
    k.n = (uint8_t)snprintf((char *)k.bytes, sizeof(k.bytes), "sensor-%08u", i);
    return k;
}
static struct key random_key(struct world *w, uint32_t i) {
    struct key k = {.n = 8};
    store_u64(k.bytes, (uint64_t)draw(w, UINT32_MAX) << 32 | i);
    return k;
}
/* Some are in front of others as their first bytes, and most bytes are escaped. */
static struct key short_key(struct world *w, uint32_t i) {
    static const uint8_t bytes[] = {0, 1, 2, 3, 0xfe, 0xff};
    struct key k = {.n = (uint8_t)draw(w, 9)};
    (void)i;
    for (int at = 0; at < k.n; at++) k.bytes[at] = bytes[draw(w, sizeof(bytes))];
    return k;
}
/* Most are near the lowest one, and one is far away. */
static struct key skewed_key(struct world *w, uint32_t i) {
    struct key k = {.n = 8};
    (void)w;
    store_u64(k.bytes, i ? i : UINT64_MAX / 3);
    return k;
}

static struct key (*const kinds[])(struct world *, uint32_t) = {int_key,    timestamp_key, timeuuid_key, text_key,
                                                                random_key, short_key,     skewed_key};
enum { KINDS = sizeof(kinds) / sizeof(kinds[0]) };

static struct slice bytes_of(const struct key *k) { return slice_of(k->bytes, k->n); }
static int by_bytes(const void *a, const void *b) { return slice_cmp(bytes_of(a), bytes_of(b)); }

/* ---- rows ---- */

static void record_key(struct world *w, struct slice ck, struct buf *out) {
    buf_init(out, 0);
    harness_key(out, w->table, PARTITION, ENGI_ROW, ck);
}

static void append(struct world *w, struct rados *s, const struct key *keys, size_t n) {
    struct write_change changes[AT_ONCE];
    struct buf records[AT_ONCE];
    for (size_t i = 0; i < n; i++) {
        record_key(w, bytes_of(&keys[i]), &records[i]);
        changes[i] = (struct write_change){
            .kind = WRITE_APPEND, .key = buf_slice(&records[i]), .value = slice_of("\0\0\0\1", 4)};
    }
    struct write_group g = {.prefix = buf_slice(&w->prefix), .changes = changes, .n = n};
    assert_int_equal(write_groups(s, &g, 1, &w->e), 0);
    for (size_t i = 0; i < n; i++) buf_fini(&records[i]);
}

/* Writes rows [from, to) of a kind, at random. */
static void write_rows(struct world *w, int kind, uint32_t from, uint32_t to) {
    struct key *added = &w->keys[w->n];
    for (uint32_t i = from; i < to; i++) w->keys[w->n++] = kinds[kind](w, i);
    for (size_t i = 0; i < to - from; i++) {
        size_t other = draw(w, to - from);
        struct key swap = added[i];
        added[i] = added[other];
        added[other] = swap;
    }
    for (size_t i = 0; i < to - from; i += AT_ONCE) append(w, w->s, added + i, AT_ONCE);
    qsort(w->keys, w->n, sizeof(w->keys[0]), by_bytes);
    size_t n = 0;
    for (size_t i = 0; i < w->n; i++)
        if (!n || by_bytes(&w->keys[n - 1], &w->keys[i]) != 0) w->keys[n++] = w->keys[i];
    w->n = n;
}

static struct shard *root_of(struct world *w, struct rados *s) {
    return shard_map_get(&s->shards, &(struct shard_id){.table = w->table});
}

static void begin_table(struct world *w, bool moves) {
    w->table = harness_table();
    w->n = 0;
    buf_fini(&w->prefix);
    buf_fini(&w->past);
    buf_init(&w->prefix, 0);
    buf_init(&w->past, 0);
    harness_prefix(&w->prefix, w->table, PARTITION);
    harness_key(&w->past, w->table, PARTITION, ENGI_PAST, slice_of("", 0));
    for (int i = 0; i < 2 && !moves; i++) {
        struct shard *root = root_of(w, i ? w->s : w->other);
        root->split_keys = root->split_bytes = UINT64_MAX;
    }
}

static void move_all(struct world *w, struct rados *s) {
    while (atomic_load(&root_of(w, w->s)->will_split) || atomic_load(&root_of(w, w->other)->will_split)) sched_yield();
    assert_int_equal(move_rows(s, root_of(w, s), buf_slice(&w->prefix)), 0);
}

/* ---- walks ---- */

/* The iterator stands on the row with that index, or on none when there is no such row. */
static void assert_on(struct world *w, const struct kv_iter *it, int got, size_t at) {
    if (got < 0) fail_msg("%s", w->e.text);
    assert_int_equal(got, at < w->n);
    if (!got) return;
    assert_int_equal(it->key.p[w->prefix.n], ENGI_ROW);
    assert_true(slice_eq(slice_of(it->key.p + w->prefix.n + 1, it->key.n - w->prefix.n - 1), bytes_of(&w->keys[at])));
    assert_true(harness_has(it->value, 1));
}

/* The index of the last row in front of the key or at it; SIZE_MAX: there is none. */
static size_t last_of(const struct world *w, struct slice ck) {
    size_t i = w->n;
    while (i > 0 && slice_cmp(bytes_of(&w->keys[i - 1]), ck) > 0) i--;
    return i - 1;
}

/* Walks from a random key, or the end, downwards; perhaps some rows upwards again, and on. meanwhile: rows are written
 * again and moved between the steps. */
static void walk(struct world *w, uint64_t wanted, bool meanwhile) {
    struct slice prefix = buf_slice(&w->prefix), past = buf_slice(&w->past);
    struct kv_iter *it = iter_of_range(w->s, w->table, prefix, prefix, past, true, wanted, &w->e);
    assert_non_null(it);
    if (draw(w, 2)) assert_on(w, it, it->ops->iter_move(it, KV_SEEK, prefix, &w->e), 0);
    for (int turn = 0; turn < 2; turn++) {
        struct key k = draw(w, 2) ? w->keys[draw(w, (uint32_t)w->n)] : random_key(w, 0);
        struct buf from;
        if (draw(w, 2)) k.bytes[k.n++] = (uint8_t)draw(w, 4);
        record_key(w, bytes_of(&k), &from);
        bool ends = draw(w, 3) == 0;
        size_t at = ends ? w->n - 1 : last_of(w, bytes_of(&k));
        assert_on(w, it, it->ops->iter_move(it, KV_SEEK_BACK, ends ? past : buf_slice(&from), &w->e), at);
        uint32_t steps = draw(w, wanted ? 3 * (uint32_t)wanted + 1 : 2 * ROWS), turns = draw(w, 5) ? steps : 3;
        for (uint32_t i = 0; i < steps && at < w->n; i++) {
            if (meanwhile && !draw(w, 8)) append(w, w->other, &w->keys[draw(w, (uint32_t)w->n - AT_ONCE)], AT_ONCE);
            if (meanwhile && !draw(w, 40)) move_all(w, draw(w, 2) ? w->s : w->other);
            if (i == turns && at + 1 < w->n) at++, assert_on(w, it, it->ops->iter_move(it, KV_NEXT, past, &w->e), at);
            else assert_on(w, it, it->ops->iter_move(it, KV_PREV, past, &w->e), --at);
        }
        buf_fini(&from);
    }
    it->ops->iter_free(it);
}

static void walk_often(struct world *w, bool meanwhile) {
    static const uint64_t wanted[] = {0, 1, 1, 2, 5, 40, 200, 1000};
    for (size_t i = 0; i < 24; i++) walk(w, wanted[i % (sizeof(wanted) / sizeof(wanted[0]))], meanwhile);
}

static void test_a_read_downwards_returns_the_rows_upwards_in_reverse(void **state) {
    struct world *w = *state;
    for (int kind = 0; kind < KINDS; kind++) {
        for (int wide = 0; wide < 2; wide++) {
            begin_table(w, wide);
            write_rows(w, kind, 0, ROWS);
            if (wide) move_all(w, w->s);
            walk_often(w, false);
            write_rows(w, kind, ROWS, ROWS + MORE_ROWS);
            walk_often(w, false);
        }
    }
}

static void test_rows_that_move_are_read_downwards_once(void **state) {
    struct world *w = *state;
    for (int kind = 0; kind < KINDS; kind++) {
        begin_table(w, true);
        write_rows(w, kind, 0, ROWS);
        uint64_t before = atomic_load(&w->s->n_moves) + atomic_load(&w->other->n_moves);
        walk_often(w, true);
        assert_true(atomic_load(&w->s->n_moves) + atomic_load(&w->other->n_moves) > before + 2);
    }
}

/* ---- what it takes ---- */

static struct {
    const struct librados *real;
    const char *object;
    uint64_t n;
} reads;

/* Counts those of the object: the store's own thread reads others meanwhile. */
static int count_read(void *op, void *io, const char *object, int flags) {
    reads.n += strcmp(object, reads.object) == 0;
    return reads.real->read_op_operate(op, io, object, flags);
}

/* Rows of an object that are found in front of a key, of so many. */
static size_t rows_found(struct world *w, struct slice below, uint64_t wanted) {
    struct buf begin, rows;
    record_key(w, slice_of("", 0), &rows);
    struct bisect_range range = {.from = buf_slice(&rows), .to = below, .wanted = wanted};
    uint64_t keys;
    static struct librados counting; /* the store's own thread may still be in it afterwards */
    counting = *w->s->pool.lib;
    counting.read_op_operate = count_read;
    reads.real = w->s->pool.lib;
    reads.object = root_of(w, w->s)->name;
    reads.n = 0;
    buf_init(&begin, 0);
    w->s->pool.lib = &counting;
    int rc = bisect_object(w->s, reads.object, &range, &begin, &keys);
    w->s->pool.lib = reads.real;
    assert_int_equal(rc, 0);
    struct slice from = buf_slice(&begin);
    size_t first = 0, end = 0;
    for (size_t i = 0; i < w->n; i++) {
        struct buf key;
        record_key(w, bytes_of(&w->keys[i]), &key);
        first += slice_cmp(buf_slice(&key), from) < 0;
        end += slice_cmp(buf_slice(&key), below) < 0;
        buf_fini(&key);
    }
    if (keys != BISECT_UNKNOWN) assert_true(keys >= end - first);
    buf_fini(&rows);
    buf_fini(&begin);
    return end - first;
}

/* Of 4,000 rows a few operations find the last ones, whatever their keys are. */
static void test_few_operations_find_few_rows(void **state) {
    enum { READS = 8, FEW = 300 };
    struct world *w = *state;
    for (int kind = 0; kind < KINDS; kind++) {
        begin_table(w, false);
        write_rows(w, kind, 0, kinds[kind] == short_key ? ROWS : ROWS_MAX);
        size_t found = rows_found(w, buf_slice(&w->past), 1);
        assert_true(found >= 1 && found <= FEW && reads.n <= READS);
        for (int i = 0; i < 20; i++) {
            struct buf below;
            record_key(w, bytes_of(&w->keys[w->n / 2 + draw(w, (uint32_t)w->n / 2)]), &below);
            found = rows_found(w, buf_slice(&below), 1);
            assert_true(found >= 1 && found <= FEW && reads.n <= READS);
            buf_fini(&below);
        }
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_a_read_downwards_returns_the_rows_upwards_in_reverse,
                                        setup_small, teardown),
        cmocka_unit_test_setup_teardown(test_rows_that_move_are_read_downwards_once, setup_small, teardown),
        cmocka_unit_test_setup_teardown(test_few_operations_find_few_rows, setup, teardown),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
