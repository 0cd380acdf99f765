/* What reclaiming takes away, what it leaves, and what works again afterwards. On RocksDB, with a
 * clock that stands still until it is moved. */
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/fault.h"
#include "engine/stats.h"
#include "engine/table.h"
#include "tests/unit/engine/world.h"

enum { TABLE = 20, GC_GRACE = 100, START = 1000000 };

static void reopen(struct world *w) {
    world_reopen(w);
    eng_table_set(w->eng, TABLE, GC_GRACE);
}

static int setup(void **state) {
    struct world *w = world_new("local", START, &(struct eng_options){.durability = ENG_NONE,
                                                                      .memtable_bytes = 1 << 20,
                                                                      .row_cache_bytes = 64 << 10});
    eng_table_set(w->eng, TABLE, GC_GRACE);
    return *state = w, 0;
}

/* One column of one row, whole. 1: it was put, 0: merged. */
static int put(struct world *w, const char *pk, const char *ck, int64_t ts, int32_t ttl) {
    struct eng_part part = part_of(TABLE, pk);
    int64_t expiry = ttl ? w->seconds + ttl : ENG_NO_EXPIRY;
    struct eng_cell cell = {
        .ts = ts, .ttl = ttl, .expiry = expiry, .flags = ttl ? ENG_CELL_EXPIRING : 0, .value = slice_str("v")};
    struct eng_row row;
    uint64_t puts = eng_stat(w->eng, ENG_STAT_PUTS);
    eng_row_init(&row, ENG_ROW, slice_str(ck));
    row.live_ts = ts;
    row.live_ttl = ttl;
    row.live_expiry = expiry;
    row.cells = &cell;
    row.n_cells = 1;
    row.covers_below = 1;
    assert_int_equal(eng_batch_row(w->batch, &part, &row, NULL, &w->e), 0);
    commit(w);
    return eng_stat(w->eng, ENG_STAT_PUTS) > puts;
}

static int64_t now_us(const struct world *w) { return w->seconds * 1000000; }

static void delete_row(struct world *w, const char *pk, const char *ck) {
    add_row_deletion(w, TABLE, pk, ck, now_us(w));
    commit(w);
}

static void delete_range(struct world *w, const char *pk, const char *from, const char *to) {
    struct eng_slice range = {.from = {.key = slice_str(from)}, .to = {.key = slice_str(to), .after = true}};
    add_range_deletion(w, TABLE, pk, range, now_us(w));
    commit(w);
}

static void delete_partition(struct world *w, const char *pk) {
    struct eng_part part = part_of(TABLE, pk);
    assert_int_equal(eng_batch_delete_partition(w->batch, &part, now_us(w), w->seconds, NULL, &w->e), 0);
    commit(w);
}

static bool get(struct world *w, const char *pk, const char *ck) {
    struct eng_part part = part_of(TABLE, pk);
    struct eng_row row;
    int got = world_get(w, ENG_TIER_ANY, &part, ENG_ROW, ck, &row);
    assert_true(got >= 0);
    return got;
}

/* Moves over the store of one get: 1 when it is a plain one. */
static int64_t steps_of_get(struct world *w, const char *pk, const char *ck) {
    const int64_t far = 1 << 30;
    fault_arm(FAULT_KV_READ, far);
    get(w, pk, ck);
    int64_t steps = far - fault_left(FAULT_KV_READ);
    fault_arm(FAULT_KV_READ, 0);
    return steps;
}

/* Rows and tombstones that a full scan passes. */
static uint64_t stored(struct world *w) {
    struct op_cost cost = {0};
    struct eng_scan_spec spec = {.table = TABLE,
                                 .token_from = INT64_MIN,
                                 .token_to = INT64_MAX,
                                 .rows = true,
                                 .statics = true,
                                 .now = w->seconds};
    struct eng_item item;
    struct eng_scan *s = eng_scan_open(w->eng, ENG_TIER_ANY, &spec, &cost, &w->e);
    int got;
    while ((got = eng_scan_next(s, &item, &w->e)) > 0) {}
    assert_int_equal(got, 0);
    eng_scan_close(s);
    return cost.rows_read + cost.tombstones;
}

static void reclaim(struct world *w) {
    if (eng_reclaim(w->eng, &w->e)) fail_msg("%s", w->e.text);
}

static void write_and_delete(struct world *w) {
    for (char k = 'a'; k <= 'z'; k++) {
        char ck[2] = {k};
        put(w, "p", ck, now_us(w), 0);
        put(w, "q", ck, now_us(w), 0);
        put(w, "t", ck, now_us(w), 10);
    }
    put(w, "keep", "a", now_us(w), 0);
    w->seconds++;
    delete_range(w, "p", "a", "k");
    delete_range(w, "p", "d", "w");
    delete_partition(w, "q");
    delete_row(w, "p", "x");
}

static void test_dead_data_goes_after_gc_grace(void **state) {
    struct world *w = *state;
    write_and_delete(w);
    w->seconds += 20;
    uint64_t before = stored(w);
    assert_true(before > 60);
    reclaim(w); /* what a deletion covers goes at once, the deletion stays */
    uint64_t covered_gone = stored(w);
    assert_in_range(covered_gone, 30, 90);
    assert_true(steps_of_get(w, "p", "y") > 1);
    w->seconds += GC_GRACE;
    reclaim(w);
    assert_int_equal(stored(w), 3); /* p/y, p/z, keep/a */
    assert_true(get(w, "p", "y") && get(w, "p", "z") && get(w, "keep", "a"));
    assert_false(get(w, "p", "a") || get(w, "p", "x") || get(w, "q", "m") || get(w, "t", "m"));
    reopen(w);
    assert_int_equal(stored(w), 3);
}

/* Of the table's first row, by who may not wait. What was in files is in memory then. */
static int first_at_once(struct world *w) {
    stored(w);
    struct eng_scan_spec spec = {
        .table = TABLE, .token_from = INT64_MIN, .token_to = INT64_MAX, .rows = true, .now = w->seconds};
    struct eng_scan *s = eng_scan_open(w->eng, ENG_TIER_CACHE, &spec, NULL, &w->e);
    struct eng_item item;
    int got = s ? eng_scan_next(s, &item, &w->e) : -1;
    eng_scan_close(s);
    return got;
}

static void test_reads_soon_stop_skipping_reclaimed_rows(void **state) {
    struct world *w = *state;
    enum { ROWS = 5000 };
    for (int i = 0; i < ROWS; i++) {
        char ck[16];
        snprintf(ck, sizeof(ck), "%05d", i);
        put(w, "p", ck, now_us(w), 0);
    }
    put(w, "p", "x", now_us(w), 0);
    assert_int_equal(eng_compact(w->eng, &w->e), 0);
    w->seconds++;
    delete_range(w, "p", "0", "1");
    reclaim(w);
    assert_int_equal(stored(w), 1); /* x */
    for (int tries = 2000; first_at_once(w) != 1; reclaim(w), usleep(10000)) assert_int_not_equal(--tries, 0);
}

static void test_where_reads_pass_much_that_is_covered_it_goes_soon(void **state) {
    struct world *w = *state;
    enum { ROWS = 2000, FEW = 100 };
    for (int i = 0; i < ROWS; i++) {
        char ck[16];
        snprintf(ck, sizeof(ck), "%05d", i);
        put(w, "p", ck, now_us(w), 0);
        if (i < FEW) put(w, "few", ck, now_us(w), 0);
    }
    put(w, "p", "x", now_us(w), 0);
    w->seconds++;
    delete_range(w, "p", "0", "1");
    delete_range(w, "few", "0", "1");
    assert_int_equal(eng_reclaim_passed(w->eng, &w->e), 0);
    assert_in_range(stored(w), ROWS + FEW, 2 * ROWS); /* nobody had read */
    assert_int_equal(eng_reclaim_passed(w->eng, &w->e), 0);
    assert_in_range(stored(w), FEW, FEW + 10); /* those went, and the few do not hold anybody up */
    assert_true(get(w, "p", "x") && !get(w, "p", "00007"));
    put(w, "p", "00007", START * 1000000LL, 0); /* older than the deletion, which stays */
    assert_false(get(w, "p", "00007"));
}

static void test_young_data_is_not_reclaimed(void **state) {
    struct world *w = *state;
    write_and_delete(w);
    w->seconds += GC_GRACE - 1;
    reclaim(w);
    put(w, "p", "b", START * 1000000LL, 0); /* older than the range's deletion */
    put(w, "q", "b", START * 1000000LL, 0);
    put(w, "p", "x", START * 1000000LL, 0);
    assert_false(get(w, "p", "b") || get(w, "q", "b") || get(w, "p", "x"));
    reclaim(w);
    assert_false(get(w, "p", "b") || get(w, "q", "b") || get(w, "p", "x"));
}

static void test_puts_and_plain_gets_heal(void **state) {
    struct world *w = *state;
    assert_int_equal(put(w, "p", "y", now_us(w), 0), 1);
    assert_int_equal(steps_of_get(w, "p", "y"), 1);
    write_and_delete(w);
    assert_int_equal(put(w, "p", "y", now_us(w), 0), 0); /* a row of its bucket was deleted */
    assert_int_equal(put(w, "keep", "a", now_us(w), 0), 1); /* not of this one */
    assert_true(steps_of_get(w, "p", "y") > 1);
    assert_int_equal(steps_of_get(w, "keep", "a"), 1);
    w->seconds += GC_GRACE + 20;
    reclaim(w);
    assert_int_equal(put(w, "p", "y", now_us(w), 0), 1);
    assert_int_equal(steps_of_get(w, "p", "y"), 1);
    w->seconds += GC_GRACE; /* above the horizon of the next run */
    reopen(w);
    assert_int_equal(put(w, "p", "y", now_us(w), 0), 1);
    assert_int_equal(steps_of_get(w, "p", "y"), 1);
    delete_range(w, "p", "y", "y");
    assert_false(get(w, "p", "y"));
    delete_row(w, "p", "z");
    w->seconds++;
    assert_int_equal(put(w, "p", "y", now_us(w), 0), 0);
}

static void test_one_far_timestamp_does_not_end_puts(void **state) {
    struct world *w = *state;
    const int64_t far = now_us(w) + 1000000000000;
    put(w, "p", "far", far, 0);
    w->seconds += GC_GRACE;
    reopen(w);
    w->seconds += GC_GRACE;
    assert_int_equal(put(w, "keep", "a", now_us(w), 0), 1);
    assert_int_equal(put(w, "p", "a", now_us(w), 0), 0); /* its bucket has one that nobody remembers */
    reclaim(w);
    assert_int_equal(put(w, "p", "b", now_us(w), 0), 1);
    assert_int_equal(put(w, "p", "far", now_us(w), 0), 0);
    reopen(w);
    w->seconds += GC_GRACE;
    assert_int_equal(put(w, "p", "b", now_us(w), 0), 0);
    put(w, "p", "far", now_us(w), 0);
    struct eng_part part = part_of(TABLE, "p");
    struct eng_row row;
    assert_int_equal(eng_row_get(w->eng, ENG_TIER_ANY, &part, ENG_ROW, slice_str("far"), w->seconds, &w->arena, &row,
                                 NULL, &w->e),
                     1);
    assert_true(row.live_ts == far);
}

static void test_a_failing_store_leaves_all_as_it_was(void **state) {
    struct world *w = *state;
    write_and_delete(w);
    w->seconds += GC_GRACE + 20;
    for (int point = FAULT_KV_READ; point <= FAULT_KV_WRITE; point++) {
        for (int n = 1; n < 60; n += 7) {
            fault_arm(point, n);
            (void)!eng_reclaim(w->eng, &w->e);
            fault_arm(point, 0);
            err_clear(&w->e);
            assert_true(get(w, "p", "y") && get(w, "p", "z") && get(w, "keep", "a"));
            assert_false(get(w, "p", "a") || get(w, "p", "x") || get(w, "q", "m"));
        }
    }
    reclaim(w);
    assert_int_equal(stored(w), 3);
}

/* Deletions come and go while it runs: nobody ever sees a row that is deleted, or misses one that is not. */
static void *reclaim_always(void *arg) {
    struct world *w = arg;
    struct err e = {0};
    while (w->seconds >= 0)
        if (eng_reclaim(w->eng, &e)) return "failed";
    return NULL;
}

static void test_reclaiming_while_others_write_and_read(void **state) {
    struct world *w = *state;
    pthread_t thread;
    void *failed;
    eng_table_set(w->eng, TABLE, 0);
    assert_int_equal(pthread_create(&thread, NULL, reclaim_always, w), 0);
    for (int i = 0; i < 300; i++) {
        char ck[8];
        snprintf(ck, sizeof(ck), "%d", i % 7);
        w->seconds++;
        put(w, "p", ck, now_us(w), 0);
        put(w, "p", "z", now_us(w), 0);
        assert_true(get(w, "p", ck) && get(w, "p", "z"));
        w->seconds++;
        if (i % 3 == 0) delete_range(w, "p", ck, ck);
        else if (i % 3 == 1) delete_row(w, "p", ck);
        else delete_partition(w, "p");
        assert_false(get(w, "p", ck));
        assert_int_equal(get(w, "p", "z"), i % 3 != 2);
    }
    w->seconds = -1;
    pthread_join(thread, &failed);
    assert_null(failed);
    w->seconds = START;
}

/* ---- who is told ---- */

struct told { uint32_t rows, cells, live; };

static void take_expiry(void *arg, const struct eng_expiry *x) {
    struct told *t = arg;
    t->rows++;
    t->cells += x->row.n_cells;
    t->live += x->row.live_ts != ENG_NO_TS;
    assert_int_equal(x->part.table, TABLE);
}

static uint32_t take_changed(struct world *w) {
    uint32_t n = 0;
    for (uint16_t i = 0; i < ENG_BUCKETS; i++) n += eng_changed_take(w->eng, TABLE, i);
    return n;
}

static void test_expiry_is_reported_once_with_the_row_before(void **state) {
    struct world *w = *state;
    struct told told = {0};
    eng_on_expiry(w->eng, take_expiry, &told);
    put(w, "a", "1", 100, 10);
    put(w, "a", "2", 100, 0);
    w->seconds += 11;
    assert_int_equal(eng_reclaim(w->eng, &w->e), 0);
    assert_int_equal(told.rows, 0); /* gc_grace is not over */
    w->seconds += GC_GRACE + 1;
    assert_int_equal(eng_reclaim(w->eng, &w->e), 0);
    assert_int_equal(told.rows, 1);
    assert_int_equal(told.cells, 1);
    assert_int_equal(eng_reclaim(w->eng, &w->e), 0);
    assert_int_equal(told.rows, 1);
    eng_on_expiry(w->eng, NULL, NULL);
}

static void test_a_bucket_has_changed_when_it_was_written_or_reclaimed(void **state) {
    struct world *w = *state;
    assert_int_equal(take_changed(w), ENG_BUCKETS); /* nothing is known of what was there before */
    assert_int_equal(take_changed(w), 0);
    put(w, "a", "1", 100, 10);
    assert_int_equal(take_changed(w), 1);
    w->seconds += GC_GRACE + 12;
    assert_int_equal(take_changed(w), 0);
    assert_int_equal(eng_reclaim(w->eng, &w->e), 0);
    assert_int_equal(take_changed(w), 1);
    assert_int_equal(eng_compact(w->eng, &w->e), 0);
    assert_int_equal(take_changed(w), 0);
    eng_changed_put(w->eng, TABLE, 7);
    assert_int_equal(take_changed(w), 1);
    assert_int_equal(eng_table_drop(w->eng, TABLE, &w->e), 0);
    assert_int_equal(take_changed(w), ENG_BUCKETS);
}

/* Expiring rows in partitions of their own, many at a time. */
static void put_expiring(struct world *w, uint32_t table, uint32_t n) {
    enum { AT_A_TIME = 4096 };
    for (uint32_t i = 0; i < n; i++) {
        char pk[16];
        snprintf(pk, sizeof(pk), "%u", i);
        struct eng_part part = part_of(TABLE, pk);
        struct eng_row row;
        part.table = table;
        eng_row_init(&row, ENG_ROW, slice_str("c"));
        row.live_ts = now_us(w);
        row.live_ttl = 1;
        row.live_expiry = w->seconds + 1;
        assert_int_equal(eng_batch_row(w->batch, &part, &row, NULL, &w->e), 0);
        if (i % AT_A_TIME == AT_A_TIME - 1) commit(w);
    }
    commit(w);
}

static int count_other(void *arg, uint32_t id, struct err *e) {
    (void)e;
    *(uint32_t *)arg += id > TABLE;
    return 0;
}

/* The small table has lost all of its records after the first round. */
static void test_large_table_keeps_no_other_from_its_turn(void **state) {
    enum { OTHER = TABLE + 1, LARGE = 150000, SMALL = 3, TURN = 65536, BUCKET = LARGE / 100 /* more than in any */ };
    struct world *w = *state;
    eng_table_set(w->eng, OTHER, GC_GRACE);
    put_expiring(w, TABLE, LARGE);
    put_expiring(w, OTHER, SMALL);
    w->seconds += GC_GRACE + 100;
    uint64_t reclaimed = 0;
    uint32_t rounds = 0;
    for (int rc = 1; rc == 1; rounds++) {
        rc = eng_reclaim_due(w->eng, &w->e);
        if (rc < 0) fail_msg("%s", w->e.text);
        uint64_t now = eng_stat(w->eng, ENG_STAT_RECLAIMED), before = reclaimed;
        /* reclaimed counts the removed marks, too: at most five a bucket */
        assert_in_range(now - before, 1, TURN + BUCKET + SMALL + 5 * 256);
        uint32_t left = 0;
        assert_int_equal(eng_each_stored(w->eng, count_other, &left, &w->e), 0);
        assert_int_equal(left, 0);
        reclaimed = now;
    }
    assert_true(rounds >= LARGE / (TURN + BUCKET) + 1);
    assert_true(reclaimed >= LARGE + SMALL);
    assert_int_equal(eng_reclaim_due(w->eng, &w->e), 0); /* nothing is due */
    assert_int_equal(eng_stat(w->eng, ENG_STAT_RECLAIMED), reclaimed);
}

int main(void) {
#define TEST(f) cmocka_unit_test_setup_teardown(f, setup, world_teardown)
    const struct CMUnitTest tests[] = {
        TEST(test_dead_data_goes_after_gc_grace),
        TEST(test_reads_soon_stop_skipping_reclaimed_rows),
        TEST(test_where_reads_pass_much_that_is_covered_it_goes_soon),
        TEST(test_young_data_is_not_reclaimed),
        TEST(test_puts_and_plain_gets_heal),
        TEST(test_one_far_timestamp_does_not_end_puts),
        TEST(test_a_failing_store_leaves_all_as_it_was),
        TEST(test_reclaiming_while_others_write_and_read),
        TEST(test_expiry_is_reported_once_with_the_row_before),
        TEST(test_a_bucket_has_changed_when_it_was_written_or_reclaimed),
        cmocka_unit_test_setup_teardown(test_large_table_keeps_no_other_from_its_turn, setup, world_teardown),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
