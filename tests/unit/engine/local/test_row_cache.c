/* The row cache: it answers what the store would, whatever is written, and takes no more than it was given. */
#include <pthread.h>
#include <sched.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

#include <cmocka.h>

#include "base/fault.h"
#include "engine/local/local.h"
#include "engine/local/row_cache.h"
#include "engine/rows/key.h"
#include "engine/state.h"
#include "engine/stats.h"
#include "engine/table.h"
#include "tests/unit/engine/local/harness.h"

static struct local *own(const struct world *w) { return local_of(&w->eng->store); }

static void put_at(struct world *w, uint32_t table, enum eng_row_kind kind, const char *ck, struct slice value,
                   int64_t ts) {
    struct eng_part part = part_of(table, "p");
    add_cell(w->batch, &part, kind, ck,
             (struct eng_cell){.column = 1, .ts = ts, .expiry = ENG_NO_EXPIRY, .value = value});
    commit(w);
}

static void put(struct world *w, const char *ck, const char *value, int64_t ts) {
    put_at(w, TABLE, ENG_ROW, ck, slice_str(value), ts);
}

/* Its first cell; "-": there is none. */
static const char *get_at(struct world *w, uint32_t table, const char *ck) {
    struct eng_part part = part_of(table, "p");
    struct eng_row row;
    arena_reset(&w->arena);
    w->cost = (struct op_cost){0};
    int got = world_get(w, ENG_TIER_ANY, &part, ENG_ROW, ck, &row);
    if (got < 0) fail_msg("%s", w->e.text);
    return got && row.n_cells ? arena_printf(&w->arena, "%.*s", SLICE_FMT(row.cells[0].value)) : "-";
}

static const char *get(struct world *w, const char *ck) { return get_at(w, TABLE, ck); }

static uint64_t hits(const struct world *w) { return eng_stat(w->eng, ENG_STAT_ROW_CACHE_HITS); }
static uint64_t misses(const struct world *w) { return eng_stat(w->eng, ENG_STAT_ROW_CACHE_MISSES); }

/* Read until the cache has it. */
static void warm_at(struct world *w, uint32_t table, const char *ck) {
    uint64_t before = hits(w);
    for (int i = 0; i < 3; i++) (void)get_at(w, table, ck);
    assert_true(hits(w) > before);
}

static void warm(struct world *w, const char *ck) { warm_at(w, TABLE, ck); }

static void test_a_row_that_was_missed_twice_is_there(void **state) {
    struct world *w = *state;
    put(w, "a", "one", 10);
    for (int i = 0; i < 5; i++) assert_string_equal(get(w, "a"), "one");
    assert_int_equal(misses(w), 2);
    assert_int_equal(hits(w), 3);
    for (int i = 0; i < 5; i++) assert_string_equal(get(w, "none"), "-");
    assert_int_equal(misses(w), 4);
    assert_int_equal(hits(w), 6);
    assert_int_equal(eng_stat(w->eng, ENG_STAT_ROW_CACHE_ROWS), 2);
    put(w, "none", "now there is", 10);
    assert_string_equal(get(w, "none"), "now there is");
}

static void test_every_write_is_seen(void **state) {
    struct world *w = *state;
    struct eng_part part = part_of(TABLE, "p");
    put(w, "a", "one", 10);
    warm(w, "a");
    put(w, "a", "two", 11);
    assert_string_equal(get(w, "a"), "two");
    warm(w, "a");
    put(w, "a", "older", 5);
    assert_string_equal(get(w, "a"), "two");
    warm(w, "a");
    delete_row_at(w, "a", 12);
    assert_string_equal(get(w, "a"), "-");
    warm(w, "a");
    put(w, "a", "three", 13);
    assert_string_equal(get(w, "a"), "three");
    warm(w, "a");
    struct eng_slice range = {.from = {.key = slice_str("a")}, .to = {.key = slice_str("b"), .after = true}};
    assert_int_equal(eng_batch_delete_range(w->batch, &part, &range, 14, w->seconds, NULL, &w->e), 0);
    commit(w);
    assert_string_equal(get(w, "a"), "-");
    assert_int_equal(eng_batch_delete_partition(w->batch, &part, 20, w->seconds, NULL, &w->e), 0);
    commit(w);
    put(w, "a", "four", 21);
    assert_string_equal(get(w, "a"), "four");
}

/* The deletion goes, with what it covers; rows that were in the cache since before it have no other
 * value than the store then. */
static void test_a_row_under_a_deletion_stays_gone_when_that_is_purged(void **state) {
    struct world *w = *state;
    struct eng_part part = part_of(TABLE, "p");
    put(w, "a", "one", 10);
    put(w, "z", "other", 10);
    warm(w, "a");
    warm(w, "z");
    struct eng_slice range = {.from = {.key = slice_str("a")}, .to = {.key = slice_str("b"), .after = true}};
    assert_int_equal(eng_batch_delete_range(w->batch, &part, &range, 14, w->seconds, NULL, &w->e), 0);
    commit(w);
    w->seconds += GC_GRACE + 10;
    assert_int_equal(eng_reclaim(w->eng, &w->e), 0);
    assert_false(engi_deleted(local_table(own(w), TABLE), part.token)); /* plain gets again */
    assert_string_equal(get(w, "a"), "-");
    uint64_t before = hits(w);
    assert_string_equal(get(w, "z"), "other");
    assert_int_equal(hits(w), before + 1);
}

/* What is expired is in the cache as it is stored, until the reclaimer removes it. */
static void test_reclaimed_rows_are_not_in_the_cache(void **state) {
    struct world *w = *state;
    struct eng_part part = part_of(TABLE, "p");
    put(w, "a", "kept", 10);
    add_cell(w->batch, &part, ENG_ROW, "a",
             (struct eng_cell){.column = 2,
                               .ts = 10,
                               .ttl = 5,
                               .flags = ENG_CELL_EXPIRING,
                               .expiry = 1005,
                               .value = slice_str("goes")});
    commit(w);
    warm(w, "a");
    uint64_t bytes = w->cost.bytes_read, before = hits(w);
    w->seconds = 1005;
    assert_string_equal(get(w, "a"), "kept");
    assert_int_equal(w->cost.bytes_read, bytes);
    assert_int_equal(hits(w), before + 1); /* it has expired, and is as it was stored */
    w->seconds = 1006 + GC_GRACE;
    put(w, "else", "so that the table was written to since", w->seconds * 1000000);
    assert_int_equal(eng_reclaim(w->eng, &w->e), 0);
    assert_string_equal(get(w, "a"), "kept");
    assert_true(w->cost.bytes_read < bytes);
}

static void test_a_write_that_failed_is_not_seen(void **state) {
    struct world *w = *state;
    uint64_t seq;
    put(w, "a", "one", 10);
    warm(w, "a");
    struct eng_part part = part_of(TABLE, "p");
    add_cell(w->batch, &part, ENG_ROW, "a",
             (struct eng_cell){.column = 1, .ts = 11, .expiry = ENG_NO_EXPIRY, .value = slice_str("lost")});
    fault_arm(FAULT_KV_WRITE, 1);
    assert_int_equal(eng_batch_commit(w->batch, &seq, &w->e), -1);
    assert_string_equal(get(w, "a"), "one");
    warm(w, "a");
    assert_string_equal(get(w, "a"), "one");
}

static void test_injected_faults_fail_cached_reads_too(void **state) {
    struct world *w = *state;
    struct eng_part part = part_of(TABLE, "p");
    struct eng_row row;
    put(w, "a", "one", 10);
    warm(w, "a");
    fault_arm(FAULT_KV_COLD, 1);
    assert_int_equal(eng_row_get(w->eng, ENG_TIER_CACHE, &part, ENG_ROW, slice_str("a"), 1000, &w->arena, &row, NULL,
                                 &w->e),
                     ENG_INCOMPLETE);
    fault_arm(FAULT_KV_READ, 1);
    assert_int_equal(eng_row_get(w->eng, ENG_TIER_ANY, &part, ENG_ROW, slice_str("a"), 1000, &w->arena, &row, NULL,
                                 &w->e),
                     -1);
    uint64_t before = hits(w);
    assert_string_equal(get(w, "a"), "one");
    assert_int_equal(hits(w), before + 1);
}

static void test_a_dropped_or_replaced_table_has_nothing_in_the_cache(void **state) {
    struct world *w = *state;
    put(w, "a", "one", 10);
    warm(w, "a");
    warm_at(w, OTHER, "a"); /* that there is none */
    assert_int_equal(eng_ingest(w->eng, OTHER, w->eng, TABLE, &w->e), 0);
    assert_string_equal(get_at(w, OTHER, "a"), "one");
    assert_int_equal(eng_table_drop(w->eng, TABLE, &w->e), 0);
    assert_string_equal(get(w, "a"), "-");
    assert_string_equal(get_at(w, OTHER, "a"), "one");
}

static void test_a_restored_state_replaces_the_cached_rows(void **state) {
    struct world *w = *state;
    put(w, "a", "one", 10);
    assert_int_equal(eng_state_save(w->eng, "then", "", &w->e), 0);
    put(w, "a", "two", 11);
    warm(w, "a");
    warm(w, "none");
    assert_int_equal(eng_state_put_back(w->eng, "then", &w->e), 0);
    assert_string_equal(get(w, "a"), "one");
}

static void test_large_rows_are_not_kept(void **state) {
    struct world *w = *state;
    static const uint8_t large[ENGI_ROW_CACHE_VALUE_MAX + 1];
    put_at(w, TABLE, ENG_ROW, "a", slice_of(large, sizeof(large)), 10);
    for (int i = 0; i < 4; i++) (void)get(w, "a");
    assert_int_equal(hits(w), 0);
    assert_int_equal(eng_stat(w->eng, ENG_STAT_ROW_CACHE_ROWS), 0);
}

static void test_a_pair_is_found_together(void **state) {
    struct world *w = *state;
    struct eng_part part = part_of(TABLE, "p");
    struct eng_pair pair;
    struct op_cost costs[4] = {0};
    put_at(w, TABLE, ENG_STATIC, "", slice_str("s"), 10);
    put(w, "a", "one", 10);
    for (int i = 0; i < 4; i++) {
        arena_reset(&w->arena);
        assert_int_equal(eng_pair_get(w->eng, ENG_TIER_ANY, &part, slice_str("a"), 1000, &w->arena, &pair, &costs[i],
                                      &w->e),
                         0);
        assert_true(pair.has_row && pair.has_statics && slice_is(pair.statics.cells[0].value, "s") &&
                    slice_is(pair.row.cells[0].value, "one"));
        assert_memory_equal(&costs[i], &costs[0], sizeof(costs[0]));
    }
    assert_int_equal(hits(w), 4);
    put_at(w, TABLE, ENG_STATIC, "", slice_str("t"), 11);
    arena_reset(&w->arena);
    assert_int_equal(eng_pair_get(w->eng, ENG_TIER_ANY, &part, slice_str("a"), 1000, &w->arena, &pair, NULL, &w->e), 0);
    assert_true(slice_is(pair.statics.cells[0].value, "t"));
}

static void test_memory_is_bounded_and_entries_read_again_stay(void **state) {
    struct world *w = *state;
    enum { ROWS = 400, HOT = 10 };
    static const uint8_t value[600];
    char ck[16];
    for (int i = 0; i < ROWS; i++) {
        snprintf(ck, sizeof(ck), "%03d", i);
        put_at(w, TABLE, ENG_ROW, ck, slice_of(value, sizeof(value)), 10);
    }
    uint64_t hot_hits = 0;
    for (int i = 0; i < 3 * ROWS; i++) {
        snprintf(ck, sizeof(ck), "%03d", i % ROWS);
        for (int k = 0; k < 2; k++) (void)get(w, ck);
        uint64_t before = hits(w);
        snprintf(ck, sizeof(ck), "%03d", i % HOT);
        (void)get(w, ck);
        hot_hits += hits(w) - before;
        assert_true(eng_stat(w->eng, ENG_STAT_ROW_CACHE_BYTES) <= SMALL);
        assert_true(eng_stat(w->eng, ENG_STAT_ROW_CACHE_ROWS) * sizeof(value) <= SMALL);
    }
    assert_true(eng_stat(w->eng, ENG_STAT_ROW_CACHE_ROWS) > 20);
    assert_true(hot_hits > 3 * ROWS * 8 / 10);
}

/* ---- what a writer brings back ---- */

/* Found, and the same when the store is asked: rows, deletions, bytes. */
static void is_as_stored(struct world *w, const char *ck) {
    struct eng_part part = part_of(TABLE, "p");
    struct eng_row row, stored;
    struct op_cost cost = {0}, of_store = {0};
    uint64_t before = hits(w);
    arena_reset(&w->arena);
    int got = eng_row_get(w->eng, ENG_TIER_ANY, &part, ENG_ROW, slice_str(ck), ENG_AS_STORED, &w->arena, &row, &cost,
                          &w->e);
    assert_int_equal(hits(w), before + 1);
    engi_cache_clear(own(w)->cache);
    assert_int_equal(eng_row_get(w->eng, ENG_TIER_ANY, &part, ENG_ROW, slice_str(ck), ENG_AS_STORED, &w->arena, &stored,
                                 &of_store, &w->e),
                     got);
    assert_int_equal(hits(w), before + 1);
    assert_memory_equal(&cost, &of_store, sizeof(cost));
    if (got <= 0) return;
    struct buf a, b;
    buf_init(&a, 0);
    buf_init(&b, 0);
    eng_row_encode(&row, &a);
    eng_row_encode(&stored, &b);
    assert_true(slice_eq(buf_slice(&a), buf_slice(&b)));
    buf_fini(&a);
    buf_fini(&b);
}

/* A delta of up to three columns, some of them deleted or to expire, or a deletion, newer or older
 * than what is there; or a whole row. */
static void add_any(struct world *w, uint64_t random, const char *ck) {
    struct eng_part part = part_of(TABLE, "p");
    int64_t ts = (int64_t)(1000 + random % 40);
    struct eng_cell cells[3];
    struct eng_row row;
    eng_row_init(&row, ENG_ROW, slice_str(ck));
    row.cells = cells;
    static const char *const texts[] = {"a", "bb", "ccc", "dddd"};
    for (uint32_t c = 0; c < 3; c++) {
        uint64_t r = random >> (8 + 6 * c);
        struct eng_cell cell = {.column = c, .ts = ts, .expiry = ENG_NO_EXPIRY, .value = slice_str(texts[r >> 1 & 3])};
        if (r >> 3 & 1) cell.flags = ENG_CELL_EXPIRING, cell.ttl = 100000, cell.expiry = 101000;
        else if ((r >> 4 & 3) == 3) cell.flags = ENG_CELL_TOMBSTONE, cell.expiry = 1000, cell.value = slice_str("");
        if (r & 1) cells[row.n_cells++] = cell;
    }
    if (random >> 32 & 1) row.live_ts = ts;
    if (random >> 33 & 1 && row.n_cells == 3)
        row.live_ts = ts + 100 + (int64_t)(random >> 40 & 1023), row.covers_below = 3;
    for (uint32_t c = 0; c < row.n_cells && row.covers_below; c++) cells[c].ts = row.live_ts;
    if (row.n_cells == 0 && row.live_ts == ENG_NO_TS) row.del_ts = ts, row.del_at = w->seconds;
    assert_int_equal(eng_batch_row(w->batch, &part, &row, NULL, &w->e), 0);
    commit(w);
}

/* One thread, so the thread sanitizer needs few rounds. */
#ifdef __SANITIZE_THREAD__
enum { STEPS = 400 };
#else
enum { STEPS = 4000 };
#endif

static void test_cached_rows_equal_the_stored_rows_after_writes(void **state) {
    struct world *w = *state;
    uint64_t random = 7;
    for (int i = 0; i < STEPS; i++) {
        random = random * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
        char ck[16];
        snprintf(ck, sizeof(ck), "%d", i / 40); /* of each one that is not there yet, and then one that grows old */
        warm(w, ck);
        add_any(w, random >> 12, ck);
        is_as_stored(w, ck);
    }
}

static void test_a_row_read_and_written_alternately_is_read_from_the_store_twice(void **state) {
    struct world *w = *state;
    char value[16];
    for (int i = 0; i < 50; i++) {
        snprintf(value, sizeof(value), "%d", i);
        put(w, "a", value, 10 + i);
        assert_string_equal(get(w, "a"), value);
    }
    assert_int_equal(misses(w), 2);
    assert_int_equal(hits(w), 48);
}

static void test_two_writes_of_a_row_in_one_batch_do_not_fill_the_cache(void **state) {
    struct world *w = *state;
    struct eng_part part = part_of(TABLE, "p");
    put(w, "a", "one", 10);
    warm(w, "a");
    for (uint32_t c = 1; c <= 2; c++)
        add_cell(w->batch, &part, ENG_ROW, "a",
                 (struct eng_cell){
                     .column = c, .ts = 20, .expiry = ENG_NO_EXPIRY, .value = slice_str(c == 1 ? "two" : "three")});
    commit(w);
    uint64_t before = hits(w);
    assert_string_equal(get(w, "a"), "two");
    assert_int_equal(hits(w), before);
}

static void test_a_row_that_grew_too_large_is_not_cached_again(void **state) {
    struct world *w = *state;
    static const uint8_t large[ENGI_ROW_CACHE_VALUE_MAX + 1];
    put(w, "a", "one", 10);
    warm(w, "a");
    put_at(w, TABLE, ENG_ROW, "a", slice_of(large, sizeof(large)), 11);
    uint64_t before = hits(w);
    (void)get(w, "a");
    assert_int_equal(hits(w), before);
}

enum meanwhile { NOTHING, ANOTHER_BEFORE, ANOTHER_AFTER, TABLE_CHANGED, MEANWHILES };

/* As a commit does it, step by step. */
static void test_reader_does_not_fill_cache_when_a_write_was_in_progress(void **state) {
    struct world *w = *state;
    struct eng_part part = part_of(TABLE, "p");
    struct engi_guards *slots = &own(w)->guards;
    struct local_table *t = local_table(own(w), TABLE);
    struct engi_cache_look look;
    struct buf key, out;
    buf_init(&key, 0);
    buf_init(&out, 0);
    engi_key_row(&key, &part, ENG_ROW, slice_str("a"));
    uint64_t hash = murmur3_hash(buf_slice(&key));
    put(w, "a", "one", 10);
    for (enum meanwhile m = NOTHING; m < MEANWHILES; m++) {
        bool absent, alone = m != ANOTHER_BEFORE;
        warm(w, "a");
        out.n = 0;
        assert_true(engi_guard_try_share(slots, hash));
        if (m == ANOTHER_BEFORE) assert_true(engi_guard_try_share(slots, hash));
        assert_int_equal(engi_row_cache_evict_copy(own(w), t, hash, buf_slice(&key), &out, &absent, &look), alone);
        if (m == ANOTHER_BEFORE) engi_guard_leave(slots, hash);
        if (m == ANOTHER_AFTER) assert_true(engi_guard_try_share(slots, hash));
        engi_guard_leave(slots, hash);
        if (m == ANOTHER_AFTER) engi_guard_leave(slots, hash);
        if (m == TABLE_CHANGED) {
            engi_table_change_begin(t);
            engi_table_change_end(t);
        }
        if (alone) engi_row_cache_put_back(own(w), &look, buf_slice(&key), buf_slice(&out));
        uint64_t before = hits(w);
        assert_string_equal(get(w, "a"), "one");
        assert_int_equal(hits(w), before + (m == NOTHING));
    }
    buf_fini(&key);
    buf_fini(&out);
}

/* ---- many threads ---- */

enum { KEYS = 48, WRITERS = 2, READERS = 3, WRITES = 1000, VALUE_MAX = 3000 };

struct race {
    struct world *w;
    _Atomic uint64_t acknowledged[KEYS]; /* versions: each key is one writer's */
    _Atomic int writing;
    _Atomic uint64_t reads;
};

struct runner {
    struct race *race;
    uint64_t seed;
    uint32_t writer; /* which one */
    uint32_t wrong;  /* what a reader has seen that it should not */
};

static uint32_t draw(struct runner *r, uint32_t below) {
    r->seed ^= r->seed << 13;
    r->seed ^= r->seed >> 7;
    r->seed ^= r->seed << 17;
    return (uint32_t)(r->seed >> 20) % below;
}

static void key_text(uint32_t key, char ck[16]) { snprintf(ck, 16, "k%02u", key); }

/* [u64 version] and more that says so, too, of another length each time. */
static void *write_versions(void *arg) {
    struct runner *r = arg;
    struct race *race = r->race;
    struct eng_batch *b = eng_batch_new(race->w->eng);
    struct eng_part part = part_of(TABLE, "p");
    struct err e = {0};
    uint8_t value[VALUE_MAX];
    for (uint64_t i = 1; i <= WRITES; i++) {
        uint64_t seq;
        while (atomic_load(&race->reads) < i) sched_yield(); /* not before anybody reads */
        uint32_t key = draw(r, KEYS / WRITERS) * WRITERS + r->writer;
        uint64_t version = atomic_load(&race->acknowledged[key]) + 1;
        char ck[16];
        memset(value, (int)version, sizeof(value));
        memcpy(value, &version, sizeof(version));
        key_text(key, ck);
        struct eng_cell cell = {.column = 0,
                                .ts = (int64_t)version,
                                .expiry = ENG_NO_EXPIRY,
                                .value = slice_of(value, 8 + draw(r, sizeof(value) - 8))};
        struct eng_row row;
        eng_row_init(&row, ENG_ROW, slice_str(ck));
        row.cells = &cell;
        row.n_cells = 1;
        if (draw(r, 2)) row.live_ts = (int64_t)version, row.covers_below = 1;
        if (eng_batch_row(b, &part, &row, NULL, &e) || eng_batch_commit(b, &seq, &e)) abort();
        atomic_store(&race->acknowledged[key], version);
    }
    eng_batch_free(b);
    atomic_fetch_sub(&race->writing, 1);
    return NULL;
}

static bool is_whole(struct slice value, uint64_t version) {
    for (size_t i = sizeof(version); i < value.n; i++)
        if (value.p[i] != (uint8_t)version) return false;
    return true;
}

static void *read_versions(void *arg) {
    struct runner *r = arg;
    struct race *race = r->race;
    struct eng_part part = part_of(TABLE, "p");
    struct arena a;
    uint64_t seen[KEYS] = {0};
    struct err e = {0};
    arena_init(&a, 4096, 0);
    while (atomic_load(&race->writing)) {
        uint32_t key = draw(r, 4) ? draw(r, 6) : draw(r, KEYS);
        struct eng_row row;
        char ck[16];
        uint64_t version = 0, least = atomic_load(&race->acknowledged[key]);
        key_text(key, ck);
        arena_reset(&a);
        int got = eng_row_get(race->w->eng, ENG_TIER_ANY, &part, ENG_ROW, slice_str(ck), 1000, &a, &row, NULL, &e);
        if (got < 0) abort();
        if (got) memcpy(&version, row.cells[0].value.p, sizeof(version));
        if (got && !is_whole(row.cells[0].value, version)) r->wrong++;
        if (version < least || version < seen[key]) r->wrong++;
        if (got && version > atomic_load(&race->acknowledged[key]) + 1) r->wrong++;
        seen[key] = version;
        atomic_fetch_add(&race->reads, 1);
    }
    arena_fini(&a);
    return NULL;
}

/* Nothing older than what was acknowledged when the read began, and nothing older than what the
 * same reader saw before. */
static void run_race(struct world *w) {
    struct race race = {.w = w, .writing = WRITERS};
    pthread_t threads[WRITERS + READERS];
    struct runner runners[WRITERS + READERS];
    for (uint32_t i = 0; i < WRITERS + READERS; i++) {
        runners[i] = (struct runner){.race = &race, .seed = (i + 1) * UINT64_C(0x9e3779b97f4a7c15), .writer = i};
        assert_int_equal(pthread_create(&threads[i], NULL, i < WRITERS ? write_versions : read_versions, &runners[i]),
                         0);
    }
    for (int i = 0; i < WRITERS + READERS; i++) pthread_join(threads[i], NULL);
    for (int i = WRITERS; i < WRITERS + READERS; i++) assert_int_equal(runners[i].wrong, 0);
    assert_true(hits(w) > atomic_load(&race.reads) / 100);
}

static void test_readers_never_see_less_than_was_acknowledged(void **state) { run_race(*state); }

/* Row and static row always change together, and so rarely that both are mostly found. */
static void *write_pairs(void *arg) {
    struct runner *r = arg;
    struct race *race = r->race;
    struct eng_batch *b = eng_batch_new(race->w->eng);
    struct eng_part part = part_of(TABLE, "p");
    struct err e = {0};
    for (uint64_t i = 1, seq; i <= WRITES; i++) {
        struct eng_cell cell = {.column = 1,
                                .ts = (int64_t)i,
                                .expiry = ENG_NO_EXPIRY,
                                .value = slice_of(&i, sizeof(i))};
        add_cell(b, &part, ENG_ROW, "a", cell);
        add_cell(b, &part, ENG_STATIC, "", cell);
        if (eng_batch_commit(b, &seq, &e)) abort();
        for (uint64_t until = atomic_load(&race->reads) + 20; atomic_load(&race->reads) < until;) sched_yield();
    }
    eng_batch_free(b);
    atomic_fetch_sub(&race->writing, 1);
    return NULL;
}

static void *read_pairs(void *arg) {
    struct runner *r = arg;
    struct race *race = r->race;
    struct eng_part part = part_of(TABLE, "p");
    struct arena a;
    struct err e = {0};
    arena_init(&a, 4096, 0);
    while (atomic_load(&race->writing)) {
        struct eng_pair pair;
        arena_reset(&a);
        if (eng_pair_get(race->w->eng, ENG_TIER_ANY, &part, slice_str("a"), 1000, &a, &pair, NULL, &e)) abort();
        r->wrong += pair.has_row != pair.has_statics ||
                    (pair.has_row && !slice_eq(pair.row.cells[0].value, pair.statics.cells[0].value));
        atomic_fetch_add(&race->reads, 1);
    }
    arena_fini(&a);
    return NULL;
}

static void test_pairs_are_of_one_moment(void **state) {
    struct race race = {.w = *state, .writing = 1};
    pthread_t threads[1 + READERS];
    struct runner runners[1 + READERS];
    for (uint32_t i = 0; i < 1 + READERS; i++) {
        runners[i] = (struct runner){.race = &race};
        assert_int_equal(pthread_create(&threads[i], NULL, i ? read_pairs : write_pairs, &runners[i]), 0);
    }
    for (int i = 0; i < 1 + READERS; i++) pthread_join(threads[i], NULL);
    for (int i = 1; i < 1 + READERS; i++) assert_int_equal(runners[i].wrong, 0);
    assert_true(hits(*state) > atomic_load(&race.reads) / 4);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_a_row_that_was_missed_twice_is_there, setup_memory, world_teardown),
        cmocka_unit_test_setup_teardown(test_a_row_that_was_missed_twice_is_there, setup_rocksdb, world_teardown),
        cmocka_unit_test_setup_teardown(test_every_write_is_seen, setup_memory, world_teardown),
        cmocka_unit_test_setup_teardown(test_every_write_is_seen, setup_rocksdb, world_teardown),
        cmocka_unit_test_setup_teardown(test_a_row_under_a_deletion_stays_gone_when_that_is_purged, setup_rocksdb,
                                        world_teardown),
        cmocka_unit_test_setup_teardown(test_reclaimed_rows_are_not_in_the_cache, setup_rocksdb, world_teardown),
        cmocka_unit_test_setup_teardown(test_a_write_that_failed_is_not_seen, setup_rocksdb, world_teardown),
        cmocka_unit_test_setup_teardown(test_injected_faults_fail_cached_reads_too, setup_rocksdb, world_teardown),
        cmocka_unit_test_setup_teardown(test_a_dropped_or_replaced_table_has_nothing_in_the_cache, setup_memory,
                                        world_teardown),
        cmocka_unit_test_setup_teardown(test_a_dropped_or_replaced_table_has_nothing_in_the_cache, setup_rocksdb,
                                        world_teardown),
        cmocka_unit_test_setup_teardown(test_a_restored_state_replaces_the_cached_rows, setup_rocksdb, world_teardown),
        cmocka_unit_test_setup_teardown(test_large_rows_are_not_kept, setup_rocksdb, world_teardown),
        cmocka_unit_test_setup_teardown(test_a_pair_is_found_together, setup_memory, world_teardown),
        cmocka_unit_test_setup_teardown(test_a_pair_is_found_together, setup_rocksdb, world_teardown),
        cmocka_unit_test_setup_teardown(test_cached_rows_equal_the_stored_rows_after_writes,
                                        setup_memory, world_teardown),
        cmocka_unit_test_setup_teardown(test_cached_rows_equal_the_stored_rows_after_writes,
                                        setup_rocksdb, world_teardown),
        cmocka_unit_test_setup_teardown(test_a_row_read_and_written_alternately_is_read_from_the_store_twice,
                                        setup_rocksdb, world_teardown),
        cmocka_unit_test_setup_teardown(test_two_writes_of_a_row_in_one_batch_do_not_fill_the_cache, setup_memory,
                                        world_teardown),
        cmocka_unit_test_setup_teardown(test_a_row_that_grew_too_large_is_not_cached_again, setup_memory,
                                        world_teardown),
        cmocka_unit_test_setup_teardown(test_reader_does_not_fill_cache_when_a_write_was_in_progress,
                                        setup_memory, world_teardown),
        cmocka_unit_test_setup_teardown(test_memory_is_bounded_and_entries_read_again_stay, setup_small,
                                        world_teardown),
        cmocka_unit_test_setup_teardown(test_readers_never_see_less_than_was_acknowledged, setup_small, world_teardown),
        cmocka_unit_test_setup_teardown(test_readers_never_see_less_than_was_acknowledged, setup_memory,
                                        world_teardown),
        cmocka_unit_test_setup_teardown(test_pairs_are_of_one_moment, setup_memory, world_teardown),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
