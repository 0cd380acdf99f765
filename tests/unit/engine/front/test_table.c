/* Tables that are dropped while others write to them and read them: nothing of them stays, on
 * disk or in memory. */
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/clock.h"
#include "engine/stats.h"
#include "engine/table.h"
#include "engine/verify.h"
#include "tests/unit/engine/world.h"

enum { TABLE = 20, OTHER = 21, NOW = 1000 };

static int setup(void **state) {
    const struct eng_options o = {
        .durability = ENG_NONE, .clock = &clock_real, .memtable_bytes = 1 << 20, .row_cache_bytes = 64 << 10};
    return *state = world_new("local", NOW, &o), 0;
}

static int add_row(struct eng_batch *b, uint32_t table, const char *key, int64_t ts, struct err *e) {
    struct eng_part part = part_of(table, key);
    struct eng_cell cell = {.value = slice_str("value"), .ts = ts, .expiry = ENG_NO_EXPIRY};
    struct eng_row row;
    eng_row_init(&row, ENG_ROW, slice_str("c"));
    row.live_ts = ts;
    row.cells = &cell;
    row.n_cells = 1;
    row.covers_below = 1;
    eng_batch_savepoint(b);
    int rc = eng_batch_row(b, &part, &row, NULL, e);
    if (rc) eng_batch_rollback(b);
    else eng_batch_release(b);
    return rc;
}

static void put(struct world *w, uint32_t table, const char *key) {
    if (add_row(w->batch, table, key, eng_write_us(w->eng, 1), &w->e)) fail_msg("%s", w->e.text);
    commit(w);
}

static bool has(struct world *w, uint32_t table, const char *key) {
    struct eng_part part = part_of(table, key);
    struct eng_row row;
    int got = world_get(w, ENG_TIER_ANY, &part, ENG_ROW, "c", &row);
    if (got < 0) fail_msg("%s", w->e.text);
    return got;
}

struct stored { uint32_t asked, n; };

static int count_id(void *arg, uint32_t id, struct err *e) {
    struct stored *s = arg;
    (void)e;
    if (!s->asked || id == s->asked) s->n++;
    return 0;
}

/* How often the store names the id, or any (0): rows and marks. */
static uint32_t stored(struct world *w, uint32_t id) {
    struct stored s = {.asked = id};
    if (eng_each_stored(w->eng, count_id, &s, &w->e)) fail_msg("%s", w->e.text);
    return s.n;
}

/* ---- writes ---- */

static void test_a_write_under_way_stores_nothing_in_a_dropped_table(void **state) {
    struct world *w = *state;
    struct eng_batch *late = eng_batch_new(w->eng);
    put(w, TABLE, "a");
    assert_int_equal(add_row(late, TABLE, "b", 5, &w->e), 0);
    assert_int_equal(eng_table_drop(w->eng, TABLE, &w->e), ENG_BUSY);
    assert_false(w->e.set);
    uint64_t seq;
    assert_int_equal(eng_batch_commit(late, &seq, &w->e), 0);
    assert_int_equal(eng_table_drop(w->eng, TABLE, &w->e), 0);
    assert_int_equal(stored(w, TABLE), 0);
    eng_batch_free(late);
    world_reopen(w);
    assert_int_equal(stored(w, TABLE), 0);
}

static void test_a_table_that_is_being_dropped_takes_no_write(void **state) {
    struct world *w = *state;
    struct eng_batch *late = eng_batch_new(w->eng);
    struct err e = {0};
    assert_int_equal(add_row(late, TABLE, "a", 5, &w->e), 0);
    assert_int_equal(eng_table_drop(w->eng, TABLE, &w->e), ENG_BUSY);
    assert_int_equal(add_row(w->batch, OTHER, "innocent", 5, &w->e), 0);
    assert_int_equal(add_row(w->batch, TABLE, "b", 5, &e), -1);
    assert_int_equal(e.code, ERR_SERVER);
    commit(w); /* the other write of the batch is made */
    assert_true(has(w, OTHER, "innocent"));
    eng_batch_drop(late);
    assert_int_equal(eng_table_drop(w->eng, TABLE, &w->e), 0);
    err_clear(&e);
    assert_int_equal(add_row(w->batch, TABLE, "b", 5, &e), -1);
    assert_int_equal(stored(w, TABLE), 0);
    eng_batch_free(late);
}

static void test_a_rolled_back_write_does_not_delay_a_drop(void **state) {
    struct world *w = *state;
    eng_batch_savepoint(w->batch);
    assert_int_equal(add_row(w->batch, TABLE, "a", 5, &w->e), 0);
    eng_batch_rollback(w->batch);
    assert_int_equal(eng_table_drop(w->eng, TABLE, &w->e), 0);
}

/* ---- reads ---- */

static void test_a_reader_finds_no_rows_in_a_dropped_table(void **state) {
    struct world *w = *state;
    struct eng_scan_spec spec = {
        .table = TABLE, .token_from = INT64_MIN, .token_to = INT64_MAX, .rows = true, .now = NOW};
    struct eng_item item;
    struct eng_dropped gone = {.column = 7, .ts = 1, .gone = true};
    put(w, TABLE, "a");
    assert_int_equal(eng_table_set_dropped(w->eng, TABLE, 1, &gone, &w->e), 0);
    struct eng_scan *before = eng_scan_open(w->eng, ENG_TIER_ANY, &spec, NULL, &w->e);
    assert_int_equal(eng_table_drop(w->eng, TABLE, &w->e), 0);
    assert_int_equal(eng_scan_next(before, &item, &w->e),
                     1); /* of its own moment, and with what it knows of the table */
    eng_scan_close(before);
    assert_false(has(w, TABLE, "a"));
    struct eng_scan *after = eng_scan_open(w->eng, ENG_TIER_ANY, &spec, NULL, &w->e);
    assert_int_equal(eng_scan_next(after, &item, &w->e), 0);
    eng_scan_close(after);
}

/* ---- memory ---- */

static void test_memory_about_a_table_is_freed_with_it(void **state) {
    struct world *w = *state;
    put(w, TABLE, "a");
    uint64_t before = eng_stat(w->eng, ENG_STAT_TABLES);
    for (uint32_t id = 100; id < 1100; id++) {
        eng_table_set(w->eng, id, 10);
        put(w, id, "a");
        assert_int_equal(eng_table_drop(w->eng, id, &w->e), 0);
        assert_false(has(w, id, "a"));
        (void)eng_changed_take(w->eng, id, 0);
    }
    assert_int_equal(eng_stat(w->eng, ENG_STAT_TABLES), before);
}

static void test_proofs_hold_for_tables_with_great_ids(void **state) {
    struct world *w = *state;
    const uint32_t ids[] = {4194303, 4194304, 5000000, UINT32_MAX - 1};
    for (size_t i = 0; i < ARRAY_LEN(ids); i++) {
        uint64_t puts = eng_stat(w->eng, ENG_STAT_PUTS);
        put(w, ids[i], "a");
        if (eng_stat(w->eng, ENG_STAT_PUTS) != puts + 1) fail_msg("a row of table %u is merged", ids[i]);
        assert_true(has(w, ids[i], "a"));
        assert_int_equal(eng_table_drop(w->eng, ids[i], &w->e), 0);
        assert_false(has(w, ids[i], "a"));
    }
}

/* ---- looked through ---- */

struct looked { uint32_t known, found; };

static void find(void *arg, const char *words) {
    struct looked *l = arg;
    if (strstr(words, "rows of id 21, which no object of the catalogue has")) l->found++;
    else fail_msg("%s", words);
}

static int take_named(void *arg, struct slice name, struct slice value, struct err *e) {
    (void)arg, (void)name, (void)value, (void)e;
    return 0;
}

static void begin_store(void *arg) { ((struct looked *)arg)->known = TABLE; }
static bool is_known(void *arg, uint32_t id) { return id == ((struct looked *)arg)->known; }

static void test_verify_tells_of_rows_that_no_object_has(void **state) {
    struct world *w = *state;
    struct looked l = {.found = 0};
    struct eng_verify v = {
        .data_dir = w->folder,
        .found = find,
        .named = take_named,
        .next_store = begin_store,
        .has = is_known,
        .arg = &l};
    put(w, TABLE, "a");
    put(w, OTHER, "a");
    put(w, 22, "a");
    assert_int_equal(eng_table_drop(w->eng, 22, &w->e), 0); /* what a range deletion covers is no row */
    world_close(w);
    assert_int_equal(eng_verify(&v, &w->e), 0);
    assert_int_equal(l.found, 1);
    world_open(w);
}

/* ---- all at once ---- */

enum { WRITERS = 3, TABLES = 60 };

struct race {
    struct world *w;
    _Atomic uint32_t table; /* 0: it is over */
    _Atomic uint32_t written, refused;
};

/* Batches of one to eight writes, some to a table that stays, some dropped, some read again. */
static void *write_all(void *arg) {
    struct race *r = arg;
    struct eng_batch *b = eng_batch_new(r->w->eng);
    struct arena arena;
    arena_init(&arena, 4096, 0);
    for (uint32_t i = 0, table; (table = atomic_load(&r->table)); i++) {
        struct err e = {0};
        char key[16];
        uint64_t seq;
        snprintf(key, sizeof(key), "%u", i % 50);
        struct eng_part part = part_of(table, key);
        struct eng_row row;
        if (add_row(b, i % 5 ? table : OTHER, key, (int64_t)i, &e)) atomic_fetch_add(&r->refused, 1);
        err_clear(&e);
        if (i % 7 == 0 && eng_batch_delete_partition(b, &part, (int64_t)i, NOW, NULL, &e))
            atomic_fetch_add(&r->refused, 1);
        if (i % 8 == 0 && i % 3 && eng_batch_commit(b, &seq, &e)) return "a commit failed";
        if (i % 8 == 0 && !(i % 3)) eng_batch_drop(b);
        err_clear(&e);
        if (eng_row_get(r->w->eng, ENG_TIER_ANY, &part, ENG_ROW, slice_str("c"), NOW, &arena, &row, NULL, &e) < 0)
            return "a read failed";
        arena_reset(&arena);
        atomic_fetch_add(&r->written, 1);
    }
    eng_batch_free(b);
    arena_fini(&arena);
    return NULL;
}

static void free_table(struct world *w, uint32_t table) {
    int rc;
    while ((rc = eng_table_drop(w->eng, table, &w->e)) == ENG_BUSY) usleep(1000);
    if (rc) fail_msg("%s", w->e.text);
}

static void test_tables_dropped_while_others_write_store_nothing(void **state) {
    struct world *w = *state;
    struct race r = {.w = w, .table = 100};
    pthread_t threads[WRITERS];
    for (int i = 0; i < WRITERS; i++) pthread_create(&threads[i], NULL, write_all, &r);
    for (uint32_t table = 100; table < 100 + TABLES; table++) {
        uint32_t before = atomic_load(&r.written);
        while (atomic_load(&r.written) < before + 100) usleep(1000);
        if (table % 4 == 0) assert_int_equal(eng_reclaim(w->eng, &w->e), 0);
        if (table % 3) atomic_store(&r.table, table + 1); /* else it is still written to while it goes */
        free_table(w, table);
        atomic_store(&r.table, table + 1);
    }
    atomic_store(&r.table, 0);
    for (int i = 0; i < WRITERS; i++) {
        void *failed;
        pthread_join(threads[i], &failed);
        if (failed) fail_msg("%s", (const char *)failed);
    }
    free_table(w, 100 + TABLES);
    assert_true(stored(w, OTHER) > 0);
    assert_int_equal(stored(w, 0), stored(w, OTHER));
    assert_true(eng_stat(w->eng, ENG_STAT_TABLES) <= 2);
    world_reopen(w);
    assert_int_equal(stored(w, 0), stored(w, OTHER));
}

int main(void) {
#define TEST(f) cmocka_unit_test_setup_teardown(f, setup, world_teardown)
    const struct CMUnitTest tests[] = {
        TEST(test_a_write_under_way_stores_nothing_in_a_dropped_table),
        TEST(test_a_table_that_is_being_dropped_takes_no_write),
        TEST(test_a_rolled_back_write_does_not_delay_a_drop),
        TEST(test_a_reader_finds_no_rows_in_a_dropped_table),
        TEST(test_memory_about_a_table_is_freed_with_it),
        TEST(test_proofs_hold_for_tables_with_great_ids),
        TEST(test_verify_tells_of_rows_that_no_object_has),
        TEST(test_tables_dropped_while_others_write_store_nothing),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
