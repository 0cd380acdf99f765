/* Many range deletions in one partition: what reading costs does not grow with them, counted in
 * moves over the store. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/fault.h"
#include "engine/local/local.h"
#include "engine/local/fragment.h"
#include "engine/rows/key.h"
#include "engine/rows/tombstone.h"
#include "engine/table.h"
#include "tests/unit/engine/world.h"

enum { TABLE = 20, NOW = 1000, FEW = 1500, MANY = 12000 };

static struct local *own(const struct world *w) { return local_of(&w->eng->store); }

static int setup(void **state) {
    const struct eng_options o = {.durability = ENG_NONE, .row_cache_bytes = 64 << 10};
    return *state = world_new("memory", NOW, &o), 0;
}

static void put_row(struct world *w, const char *pk, const char *ck, int64_t ts) {
    struct eng_part part = part_of(TABLE, pk);
    struct eng_row row;
    eng_row_init(&row, ENG_ROW, slice_str(ck));
    row.live_ts = ts;
    assert_int_equal(eng_batch_row(w->batch, &part, &row, NULL, &w->e), 0);
    commit(w);
}

/* n small ranges, each of its own; key_size pads their bounds. */
static void delete_ranges(struct world *w, const char *pk, int n, size_t key_size, int64_t ts) {
    struct eng_part part = part_of(TABLE, pk);
    char *key = malloc(key_size + 16);
    for (int i = 0; i < n; i++) {
        snprintf(key, 16, "r%08d", i);
        memset(key + 9, 'x', key_size);
        struct slice ck = slice_of(key, 9 + key_size);
        struct eng_slice range = {.from = {.key = ck}, .to = {.key = ck, .after = true}};
        assert_int_equal(eng_batch_delete_range(w->batch, &part, &range, ts + i, NOW, NULL, &w->e), 0);
        commit(w);
    }
    free(key);
}

static int get(struct world *w, enum eng_tier tier, const char *pk, const char *ck) {
    struct eng_part part = part_of(TABLE, pk);
    struct eng_row row;
    return world_get(w, tier, &part, ENG_ROW, ck, &row);
}

/* Rows, or what ended it. */
static int scan(struct world *w, enum eng_tier tier, const char *pk, struct eng_slice *slice, bool reverse) {
    struct eng_part part = part_of(TABLE, pk);
    struct eng_scan_spec spec = {.table = TABLE,
                                 .part = &part,
                                 .rows = true,
                                 .slices = slice,
                                 .n_slices = slice != NULL,
                                 .reverse = reverse,
                                 .now = NOW};
    struct eng_item item;
    struct eng_scan *s = eng_scan_open(w->eng, tier, &spec, NULL, &w->e);
    int got, rows = 0;
    while ((got = eng_scan_next(s, &item, &w->e)) > 0) rows += item.kind == ENG_ITEM_ROW;
    eng_scan_close(s);
    return got < 0 ? got : rows;
}

static int64_t steps_of_reading(struct world *w, const char *pk) {
    struct eng_slice slice = {.from = {.key = slice_str("r000007")}, .to = {.key = slice_str("r00000720")}};
    const int64_t far = 1 << 30;
    fault_arm(FAULT_KV_READ, far);
    assert_int_equal(get(w, ENG_TIER_ANY, pk, "r00000700"), 0);
    assert_int_equal(get(w, ENG_TIER_ANY, pk, "r0000070"), 1);
    for (int reverse = 0; reverse < 2; reverse++) {
        assert_int_equal(scan(w, ENG_TIER_ANY, pk, &slice, reverse), 1);
        assert_int_equal(scan(w, ENG_TIER_ANY, pk, NULL, reverse), 2);
    }
    int64_t steps = far - fault_left(FAULT_KV_READ);
    fault_arm(FAULT_KV_READ, 0);
    return steps;
}

static void test_reading_does_not_grow_with_range_deletions(void **state) {
    struct world *w = *state;
    const char *pks[] = {"few", "many"};
    int64_t steps[2];
    for (int i = 0; i < 2; i++) {
        put_row(w, pks[i], "r00000700", 10);
        put_row(w, pks[i], "r0000070", 10);
        put_row(w, pks[i], "z", 10);
        delete_ranges(w, pks[i], i ? MANY : FEW, 0, 100);
        (void)steps_of_reading(w, pks[i]); /* the first reader fragments what the commits have left */
        steps[i] = steps_of_reading(w, pks[i]);
    }
    assert_in_range(steps[1], 1, steps[0] * 3 / 2);
    assert_in_range(steps[0], 1, 400);
}

static void test_long_keys_of_range_deletions_stay_readable(void **state) {
    struct world *w = *state;
    put_row(w, "p", "z", 10);
    delete_ranges(w, "p", 1200, 30000, 100);
    assert_int_equal(get(w, ENG_TIER_ANY, "p", "z"), 1);
    assert_int_equal(scan(w, ENG_TIER_ANY, "p", NULL, false), 1);
    assert_int_equal(scan(w, ENG_TIER_ANY, "p", NULL, true), 1);
}

/* A commit that finds the partition being fragmented goes on. A loop leaves what then piles up, and
 * a thread that may block fragments it. */
static void test_a_reader_that_may_block_merges_loose_range_deletions(void **state) {
    enum { TRIES = 60000 }; /* a minute or more: a hang */
    struct world *w = *state;
    struct eng_part part = part_of(TABLE, "p");
    put_row(w, "p", "r5", 10);
    put_row(w, "p", "z", 10);
    for (int i = 0; i < 3000; i++) {
        char a[16];
        snprintf(a, sizeof(a), "r%d", i);
        struct eng_slice range = {.from = {.key = slice_str(a)}, .to = {.key = slice_str(a), .after = true}};
        assert_int_equal(eng_batch_delete_range(w->batch, &part, &range, 100 + i, NOW, NULL, &w->e), 0);
    }
    struct buf prefix;
    buf_init(&prefix, 0);
    engi_key_prefix(&prefix, &part);
    (void)engi_partition_fragment(&own(w)->guards, buf_slice(&prefix), true);
    commit(w);
    engi_partition_end_fragment(&own(w)->guards, buf_slice(&prefix));
    buf_fini(&prefix);
    assert_int_equal(get(w, ENG_TIER_CACHE, "p", "z"), ENG_INCOMPLETE);
    assert_int_equal(scan(w, ENG_TIER_CACHE, "p", NULL, false), ENG_INCOMPLETE);
    assert_int_equal(scan(w, ENG_TIER_ANY, "p", NULL, false), 1);
    /* The deleted loose records lie in the loop's way until the store has compacted them. A compaction of its
     * own may still rewrite the file after that, so that the loop does not have it in memory. */
    assert_int_equal(eng_compact(w->eng, &w->e), 0);
    int got = ENG_INCOMPLETE;
    for (int i = 0; got == ENG_INCOMPLETE && i < TRIES; i++) {
        assert_int_equal(scan(w, ENG_TIER_ANY, "p", NULL, false), 1);
        got = scan(w, ENG_TIER_CACHE, "p", NULL, false);
        if (got == ENG_INCOMPLETE) usleep(1000); /* the compaction has the processor meanwhile */
    }
    assert_int_equal(got, 1);
    assert_int_equal(get(w, ENG_TIER_ANY, "p", "r5"), 0);
    assert_int_equal(get(w, ENG_TIER_ANY, "p", "z"), 1);
}

static void test_deleting_the_partition_frees_its_reads_of_range_deletions(void **state) {
    struct world *w = *state;
    struct eng_part part = part_of(TABLE, "p");
    delete_ranges(w, "p", FEW, 0, 100);
    assert_int_equal(eng_batch_delete_partition(w->batch, &part, 1000000, NOW, NULL, &w->e), 0);
    commit(w);
    put_row(w, "p", "r00000700", 2000000);
    const int64_t far = 1 << 30;
    fault_arm(FAULT_KV_READ, far);
    assert_int_equal(get(w, ENG_TIER_ANY, "p", "r00000700"), 1);
    assert_int_equal(scan(w, ENG_TIER_ANY, "p", NULL, false), 1);
    assert_in_range(far - fault_left(FAULT_KV_READ), 1, 40);
    fault_arm(FAULT_KV_READ, 0);
}

/* As an older version stored them, without the timestamp in the key. */
static void put_old_range(struct world *w, const char *pk, const char *from, const char *to, int64_t ts) {
    struct eng_part part = part_of(TABLE, pk);
    struct engi_tomb tomb = {.ts = ts, .at = NOW};
    struct buf key, value;
    buf_init(&key, 0);
    buf_init(&value, 0);
    engi_key_kind(&key, &part, ENGI_RANGE_TOMBSTONE);
    buf_u32(&key, (uint32_t)strlen(from));
    buf_put_str(&key, from);
    buf_u8(&key, false);
    buf_put_str(&key, to);
    engi_tomb_value(&value, &tomb, false);
    struct kv_batch *b = kv_batch_new(own(w)->kv);
    kv_batch_merge(b, buf_slice(&key), buf_slice(&value));
    assert_int_equal(kv_write(own(w)->kv, b, false, &w->e), 0);
    kv_batch_free(b);
    buf_fini(&key);
    buf_fini(&value);
}

static void test_range_deletions_of_an_older_version_are_read_and_merged(void **state) {
    struct world *w = *state;
    struct eng_part part = part_of(TABLE, "p");
    const char *rows[] = {"b", "m", "s", "z"};
    for (int i = 0; i < 4; i++) put_row(w, "p", rows[i], 100);
    delete_ranges(w, "p", 3, 0, 10);
    assert_int_equal(eng_batch_delete_partition(w->batch, &part, 50, NOW, NULL, &w->e), 0);
    commit(w);
    put_old_range(w, "p", "a", "c", 200);
    put_old_range(w, "p", "l", "n", 90);
    put_old_range(w, "p", "y", "zz", 30);
    for (int settled = 0; settled < 2; settled++) {
        assert_int_equal(get(w, ENG_TIER_ANY, "p", "b"), 0);
        for (int i = 1; i < 4; i++) assert_int_equal(get(w, ENG_TIER_ANY, "p", rows[i]), 1);
        assert_int_equal(scan(w, ENG_TIER_ANY, "p", NULL, false), 3);
        assert_int_equal(scan(w, ENG_TIER_ANY, "p", NULL, true), 3);
        struct buf prefix;
        buf_init(&prefix, 0);
        engi_key_prefix(&prefix, &part);
        assert_int_equal(engi_fragment_all(own(w), buf_slice(&prefix), &w->e), 0);
        buf_fini(&prefix);
    }
}

/* Places between clustering keys a to z: n is that before the n-th letter, which is that behind the one before. */
enum { LETTERS = 26, PLACES = LETTERS + 1, ROUNDS = 60 };

struct painted {
    int64_t partition_ts, ts[PLACES]; /* of what lies from this place to the next one */
};

static uint32_t runs_between(const struct painted *p, int from, int to) {
    uint32_t n = 0;
    for (int i = from; i < to; i++) n += p->ts[i] > p->partition_ts && (i == from || p->ts[i - 1] != p->ts[i]);
    return n;
}

static struct eng_bound bound_at(int place, char *letter) {
    bool after = place == LETTERS || (place && rand() % 2);
    *letter = (char)('a' + place - after);
    return (struct eng_bound){.key = slice_of((const uint8_t *)letter, 1), .after = after};
}

static void delete_at_random(struct world *w, const char *pk, struct painted *p, int64_t ts) {
    struct eng_part part = part_of(TABLE, pk);
    char letters[2];
    int from = rand() % LETTERS, to = from + 1 + rand() % (LETTERS - from);
    struct eng_slice range = {.from = bound_at(from, &letters[0]), .to = bound_at(to, &letters[1])};
    assert_int_equal(eng_batch_delete_range(w->batch, &part, &range, ts, NOW, NULL, &w->e), 0);
    commit(w);
    for (int i = from; i < to; i++)
        if (p->ts[i] < ts) p->ts[i] = ts;
}

/* Markers that a scan of the slice tells of, and of the row at its first letter. */
static void check_markers(struct world *w, const char *pk, const struct painted *p, int from, int to, bool reverse) {
    struct eng_part part = part_of(TABLE, pk);
    char letters[2];
    struct eng_slice slice = {.from = bound_at(from, &letters[0]), .to = bound_at(to, &letters[1])};
    struct eng_scan_spec spec = {.table = TABLE,
                                 .part = &part,
                                 .rows = true,
                                 .deletions = true,
                                 .slices = &slice,
                                 .n_slices = 1,
                                 .reverse = reverse,
                                 .now = NOW};
    struct eng_item item;
    struct eng_scan *s = eng_scan_open(w->eng, ENG_TIER_ANY, &spec, NULL, &w->e);
    uint32_t told = 0;
    while (eng_scan_next(s, &item, &w->e) > 0) told += item.kind == ENG_ITEM_PARTITION ? item.n_markers : 0;
    eng_scan_close(s);
    uint32_t of_partition = p->partition_ts != ENG_NO_TS;
    assert_int_equal(told, of_partition + runs_between(p, from, to));
    struct eng_row row;
    char letter = (char)('a' + from);
    assert_true(eng_row_get(w->eng, ENG_TIER_ANY, &part, ENG_ROW, slice_of((const uint8_t *)&letter, 1), NOW, &w->arena,
                            &row, NULL, &w->e) >= 0);
    assert_int_equal(row.n_markers, of_partition + (p->ts[from] > p->partition_ts));
}

static void test_loose_and_merged_range_deletions_count_the_same_markers(void **state) {
    struct world *w = *state;
    struct painted p = {.partition_ts = ENG_NO_TS};
    struct buf prefix;
    struct eng_part part = part_of(TABLE, "markers");
    srand(7);
    for (int i = 0; i < PLACES; i++) p.ts[i] = ENG_NO_TS;
    put_row(w, "markers", "k", 5);
    buf_init(&prefix, 0);
    engi_key_prefix(&prefix, &part);
    for (int round = 0; round < ROUNDS; round++) {
        delete_at_random(w, "markers", &p, 10 + rand() % 30);
        if (round == ROUNDS / 2) {
            p.partition_ts = 20;
            assert_int_equal(eng_batch_delete_partition(w->batch, &part, p.partition_ts, NOW, NULL, &w->e), 0);
            commit(w);
        }
        int from = rand() % LETTERS, to = from + 1 + rand() % (LETTERS - from);
        for (int settled = 0; settled < 2; settled++) {
            for (int reverse = 0; reverse < 2; reverse++) {
                check_markers(w, "markers", &p, from, to, reverse);
                check_markers(w, "markers", &p, 0, LETTERS, reverse);
            }
            if (round % 5 == 0) assert_int_equal(engi_fragment_all(own(w), buf_slice(&prefix), &w->e), 0);
        }
    }
    buf_fini(&prefix);
}

static void test_so_many_markers_are_counted_and_no_more(void **state) {
    struct world *w = *state;
    struct eng_part part = part_of(TABLE, "crowd");
    struct eng_scan_spec spec = {.table = TABLE, .part = &part, .rows = true, .deletions = true, .now = NOW};
    struct eng_item item;
    delete_ranges(w, "crowd", FEW, 0, 100);
    struct eng_scan *s = eng_scan_open(w->eng, ENG_TIER_ANY, &spec, NULL, &w->e);
    assert_int_equal(eng_scan_next(s, &item, &w->e), 1);
    assert_int_equal(item.n_markers, ENG_MARKERS_MAX);
    assert_true(item.static_only);
    eng_scan_close(s);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_reading_does_not_grow_with_range_deletions, setup, world_teardown),
        cmocka_unit_test_setup_teardown(test_long_keys_of_range_deletions_stay_readable, setup, world_teardown),
        cmocka_unit_test_setup_teardown(test_a_reader_that_may_block_merges_loose_range_deletions,
                                        setup, world_teardown),
        cmocka_unit_test_setup_teardown(test_range_deletions_of_an_older_version_are_read_and_merged, setup,
                                        world_teardown),
        cmocka_unit_test_setup_teardown(test_loose_and_merged_range_deletions_count_the_same_markers,
                                        setup, world_teardown),
        cmocka_unit_test_setup_teardown(test_so_many_markers_are_counted_and_no_more, setup, world_teardown),
        cmocka_unit_test_setup_teardown(test_deleting_the_partition_frees_its_reads_of_range_deletions, setup,
                                        world_teardown),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
