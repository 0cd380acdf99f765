/* Cached ranges: slices that are read from them are what the store's iterator gives, rows and costs,
 * whatever is written; and they take no more than they were given. */
#include <pthread.h>
#include <sched.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

#include <cmocka.h>

#include "base/fault.h"
#include "engine/local/local.h"
#include "engine/local/range_cache.h"
#include "engine/rows/key.h"
#include "engine/state.h"
#include "engine/stats.h"
#include "engine/table.h"
#include "tests/unit/engine/local/harness.h"

static struct local *own(const struct world *w) { return local_of(&w->eng->store); }

enum { ROWS = 20 };

/* ---- writing ---- */

static void put_at(struct world *w, uint32_t table, const char *key, enum eng_row_kind kind, const char *ck,
                   const char *value) {
    struct eng_part part = part_of(table, key);
    add_cell(w->batch, &part, kind, ck,
             (struct eng_cell){.column = 1, .ts = ++w->ts, .expiry = ENG_NO_EXPIRY, .value = slice_str(value)});
    commit(w);
}

static void put(struct world *w, const char *ck, const char *value) { put_at(w, TABLE, "p", ENG_ROW, ck, value); }

static void put_rows(struct world *w, const char *key, int n) {
    char ck[16];
    for (int i = 0; i < n; i++) {
        snprintf(ck, sizeof(ck), "%02d", i);
        put_at(w, TABLE, key, ENG_ROW, ck, "value");
    }
}

static void delete_row(struct world *w, const char *ck) { delete_row_at(w, ck, ++w->ts); }

static void delete_range(struct world *w, const char *from, const char *to) {
    struct eng_part part = part_of(TABLE, "p");
    struct eng_slice range = {.from = {.key = slice_str(from)}, .to = {.key = slice_str(to)}};
    assert_int_equal(eng_batch_delete_range(w->batch, &part, &range, ++w->ts, w->seconds, NULL, &w->e), 0);
    commit(w);
}

/* ---- reading ---- */

struct ask {
    uint32_t table;
    const char *key, *from, *to; /* rows of [from, to); to "": the rest */
    const char *resume;
    int most; /* rows, and then the scan is closed; 0: all */
    bool back, statics, worker;
};

static const struct ask all_of_p = {.table = TABLE, .key = "p", .from = "", .to = ""};

static struct eng_scan *open_scan(struct world *w, const struct ask *a) {
    w->part = part_of(a->table, a->key);
    w->slice = (struct eng_slice){.from = {.key = slice_str(a->from)},
                                  .to = {.key = slice_str(a->to), .after = !*a->to}};
    struct eng_scan_spec spec = {.table = a->table,
                                 .part = &w->part,
                                 .slices = &w->slice,
                                 .n_slices = *a->from || *a->to,
                                 .rows = true,
                                 .expired = true,
                                 .statics = a->statics,
                                 .reverse = a->back,
                                 .now = w->seconds};
    if (a->resume) spec.resume_key = w->part.key, spec.resume_ck = slice_str(a->resume);
    buf_clear(&w->text, SIZE_MAX);
    w->cost = (struct op_cost){0};
    struct eng_scan *s = eng_scan_open(w->eng, a->worker ? ENG_TIER_ANY : ENG_TIER_CACHE, &spec, &w->cost, &w->e);
    if (!s) fail_msg("%s", w->e.text);
    return s;
}

/* Up to so many rows more; what the last step said. */
static int take(struct world *w, struct eng_scan *s, int most) {
    struct eng_item item;
    int got = 1;
    while (most > 0 && (got = eng_scan_next(s, &item, &w->e)) > 0) {
        if (item.kind == ENG_ITEM_PARTITION && item.has_static)
            buf_printf(&w->text, "static=%.*s ", SLICE_FMT(item.statics.cells[0].value));
        if (item.kind == ENG_ITEM_PARTITION) continue;
        buf_printf(&w->text, "%s%.*s=%.*s ", item.kind == ENG_ITEM_EXPIRED ? "expired " : "", SLICE_FMT(item.row->ck),
                   SLICE_FMT(item.row->n_cells ? item.row->cells[0].value : slice_str("")));
        most--;
    }
    return got;
}

static const char *text_of(struct world *w) {
    buf_u8(&w->text, 0);
    assert_false(buf_failed(&w->text));
    return (char *)w->text.p;
}

static const char *read_slice(struct world *w, const struct ask *a) {
    struct eng_scan *s = open_scan(w, a);
    int got = take(w, s, a->most ? a->most : INT32_MAX);
    eng_scan_close(s);
    if (got == -1) fail_msg("%s", w->e.text);
    if (got == ENG_INCOMPLETE && !a->worker) {
        struct ask again = *a;
        again.worker = true;
        return read_slice(w, &again);
    }
    return text_of(w);
}

/* The same from the store alone; the cost stays that of the read before. */
static void assert_is_the_stores(struct world *w, const struct ask *a) {
    struct engi_cache *cache = own(w)->cache;
    char *seen = strdup(read_slice(w, a));
    struct op_cost cost = w->cost;
    own(w)->cache = NULL;
    const char *stored = read_slice(w, a);
    own(w)->cache = cache;
    assert_string_equal(seen, stored);
    assert_memory_equal(&cost, &w->cost, sizeof(cost));
    free(seen);
}

static const char *all(struct world *w) {
    assert_is_the_stores(w, &all_of_p);
    return read_slice(w, &all_of_p);
}

static uint64_t hits(const struct world *w) { return eng_stat(w->eng, ENG_STAT_RANGE_HITS); }
static uint64_t misses(const struct world *w) { return eng_stat(w->eng, ENG_STAT_RANGE_MISSES); }
static uint64_t runs(const struct world *w) { return eng_stat(w->eng, ENG_STAT_RANGES); }

static bool is_hit(struct world *w, const struct ask *a) {
    uint64_t before = hits(w);
    assert_is_the_stores(w, a);
    return hits(w) > before;
}

/* Read until a run has it. */
static void warm_at(struct world *w, const struct ask *a) {
    for (int i = 0; i < 100; i++)
        if (is_hit(w, a)) return;
    fail_msg("a slice that is read again and again is not kept");
}

static void warm(struct world *w) { warm_at(w, &all_of_p); }

/* ---- what is kept, and for what ---- */

static void test_a_slice_that_was_missed_twice_is_there(void **state) {
    struct world *w = *state;
    put_rows(w, "p", 3);
    for (int i = 0; i < 5; i++) assert_string_equal(read_slice(w, &all_of_p), "00=value 01=value 02=value ");
    assert_int_equal(misses(w), 2);
    assert_int_equal(hits(w), 3);
    assert_int_equal(runs(w), 1);
    struct ask none = {.table = TABLE, .key = "nobody", .from = "", .to = ""};
    for (int i = 0; i < 5; i++) assert_string_equal(read_slice(w, &none), "");
    assert_int_equal(hits(w), 6);
    put_at(w, TABLE, "nobody", ENG_ROW, "a", "now there is");
    assert_string_equal(read_slice(w, &none), "a=now there is ");
}

/* Up and down, from a run that was noted up or down. */
static void test_a_cached_range_answers_slices_within_it(void **state) {
    struct world *w = *state;
    put_at(w, TABLE, "p", ENG_STATIC, "", "s");
    put_rows(w, "p", ROWS);
    struct ask asks[] = {
        {.from = "03", .to = "09"},
        {.from = "03", .to = "09", .back = true},
        {.from = "035", .to = "095"},
        {.from = "", .to = "05", .back = true},
        {.from = "15", .to = ""},
        {.from = "15", .to = "", .back = true},
        {.from = "", .to = "", .most = 4},
        {.from = "", .to = "", .most = 4, .back = true},
        {.from = "", .to = "", .resume = "11"},
        {.from = "", .to = "", .resume = "11", .back = true},
        {.from = "03", .to = "09", .resume = "05"},
        {.from = "03", .to = "09", .resume = "05", .back = true, .worker = true},
        {.from = "50", .to = ""},
        {.from = "50", .to = "60", .back = true},
    };
    for (int back = 0; back < 2; back++) {
        struct ask whole = all_of_p;
        whole.back = back;
        warm_at(w, &whole);
        for (size_t i = 0; i < ARRAY_LEN(asks); i++) {
            asks[i].table = TABLE;
            asks[i].key = "p";
            if (!is_hit(w, &asks[i]))
                fail_msg("slice %zu of a run that was noted %s is not answered from it", i, back ? "down" : "up");
        }
        put(w, "00", "void");
    }
    struct ask statics = {.table = TABLE, .key = "p", .from = "", .to = "", .statics = true};
    warm_at(w, &statics);
    assert_int_equal(strncmp(read_slice(w, &statics), "static=s 00=void ", 17), 0);
    statics.back = true;
    assert_true(is_hit(w, &statics));
}

static void test_a_read_that_continues_after_a_cached_range_extends_it(void **state) {
    struct world *w = *state;
    struct ask few = {.table = TABLE, .key = "p", .from = "", .to = "", .most = 4}, more = few, whole = all_of_p;
    more.most = 9;
    put_rows(w, "p", ROWS);
    warm_at(w, &few);
    assert_false(is_hit(w, &more));
    warm_at(w, &more);
    assert_int_equal(runs(w), 1);
    warm_at(w, &whole);
    assert_int_equal(runs(w), 1);
    assert_true(is_hit(w, &few));
    few.back = true; /* the other end: of the whole, too */
    assert_true(is_hit(w, &few));
}

/* Who must not stop in the middle takes a run only when that has all of it. */
static void test_a_worker_uses_a_cached_range_only_if_it_covers_the_slice(void **state) {
    struct world *w = *state;
    struct ask few = {.table = TABLE, .key = "p", .from = "", .to = "", .most = 4}, worker = all_of_p,
               part = {.table = TABLE, .key = "p", .from = "00", .to = "02", .worker = true};
    worker.worker = true;
    put_rows(w, "p", ROWS);
    warm_at(w, &few);
    assert_false(is_hit(w, &worker));
    assert_true(is_hit(w, &part));
    warm(w);
    assert_true(is_hit(w, &worker));
}

/* ---- writes ---- */

static void test_every_write_is_seen(void **state) {
    struct world *w = *state;
    struct eng_part part = part_of(TABLE, "p"), other = part_of(TABLE, "q");
    put(w, "a", "one");
    warm(w);
    put(w, "a", "two");
    assert_string_equal(all(w), "a=two ");
    warm(w);
    put(w, "b", "beside");
    assert_string_equal(all(w), "a=two b=beside ");
    warm(w);
    put_at(w, TABLE, "p", ENG_STATIC, "", "s");
    assert_string_equal(read_slice(w, &(struct ask){.table = TABLE, .key = "p", .from = "", .to = "", .statics = true}),
                        "static=s a=two b=beside ");
    warm(w);
    delete_row(w, "a");
    assert_string_equal(all(w), "b=beside ");
    warm(w);
    add_cell(w->batch, &other, ENG_ROW, "x",
             (struct eng_cell){.column = 1, .ts = ++w->ts, .expiry = ENG_NO_EXPIRY, .value = slice_str("q")});
    add_cell(w->batch, &part, ENG_ROW, "c",
             (struct eng_cell){.column = 1, .ts = ++w->ts, .expiry = ENG_NO_EXPIRY, .value = slice_str("of a batch")});
    commit(w);
    assert_string_equal(all(w), "b=beside c=of a batch ");
    warm(w);
    delete_range(w, "b", "c");
    assert_string_equal(all(w), "c=of a batch ");
    assert_int_equal(eng_batch_delete_partition(w->batch, &part, ++w->ts, w->seconds, NULL, &w->e), 0);
    commit(w);
    assert_string_equal(all(w), "");
    put(w, "a", "four");
    assert_string_equal(all(w), "a=four ");
}

static void test_a_write_elsewhere_leaves_it(void **state) {
    struct world *w = *state;
    char key[32];
    put(w, "a", "one");
    warm(w);
    for (int i = 0; i < 50; i++) {
        snprintf(key, sizeof(key), "else %d", i % 100);
        put_at(w, TABLE, key, ENG_ROW, "a", "one");
    }
    assert_true(is_hit(w, &all_of_p));
}

static void test_a_row_under_a_deletion_stays_gone_when_that_is_purged(void **state) {
    struct world *w = *state;
    struct eng_part part = part_of(TABLE, "p");
    put(w, "a", "one");
    put(w, "z", "other");
    warm(w);
    delete_range(w, "a", "b");
    assert_false(is_hit(w, &all_of_p));
    w->seconds += GC_GRACE + 10;
    assert_int_equal(eng_reclaim(w->eng, &w->e), 0);
    assert_false(engi_deleted(local_table(own(w), TABLE), part.token));
    assert_string_equal(all(w), "z=other ");
    warm(w);
    assert_string_equal(all(w), "z=other ");
}

static void expire_beside(struct world *w) {
    struct eng_part part = part_of(TABLE, "p");
    put(w, "a", "kept");
    add_cell(w->batch, &part, ENG_ROW, "a",
             (struct eng_cell){.column = 2,
                               .ts = ++w->ts,
                               .ttl = 5,
                               .flags = ENG_CELL_EXPIRING,
                               .expiry = 1005,
                               .value = slice_str("goes")});
    commit(w);
}

/* What has expired stays, as it is stored, in a range and in the store. */
static void test_a_compaction_makes_no_range_void(void **state) {
    struct world *w = *state;
    expire_beside(w);
    eng_batch_free(w->batch);
    eng_close(w->eng);
    open_engine(w, LARGE);
    assert_int_equal(eng_compact(w->eng, &w->e), 0); /* makes one value of both writes */
    warm(w);
    uint64_t bytes = w->cost.bytes_read;
    w->seconds = 1005;
    assert_true(is_hit(w, &all_of_p)); /* it has expired, and is as it was stored */
    assert_int_equal(w->cost.bytes_read, bytes);
    w->seconds = 1006 + GC_GRACE;
    assert_int_equal(eng_compact(w->eng, &w->e), 0);
    assert_true(is_hit(w, &all_of_p));
    assert_int_equal(w->cost.bytes_read, bytes);
}

static void test_reclaimed_rows_are_not_in_cached_ranges(void **state) {
    struct world *w = *state;
    expire_beside(w);
    warm(w);
    uint64_t bytes = w->cost.bytes_read;
    w->seconds = 1005 + GC_GRACE; /* not yet */
    assert_true(is_hit(w, &all_of_p));
    w->seconds = 1006 + GC_GRACE;
    assert_int_equal(eng_reclaim(w->eng, &w->e), 0);
    w->seconds = 1005 + GC_GRACE; /* the run would hold by the clock */
    assert_string_equal(all(w), "a=kept ");
    assert_true(w->cost.bytes_read < bytes);
}

static void test_a_write_that_failed_is_not_seen(void **state) {
    struct world *w = *state;
    uint64_t seq;
    put(w, "a", "one");
    warm(w);
    struct eng_part part = part_of(TABLE, "p");
    add_cell(w->batch, &part, ENG_ROW, "a",
             (struct eng_cell){.column = 1, .ts = ++w->ts, .expiry = ENG_NO_EXPIRY, .value = slice_str("lost")});
    fault_arm(FAULT_KV_WRITE, 1);
    assert_int_equal(eng_batch_commit(w->batch, &seq, &w->e), -1);
    assert_string_equal(all(w), "a=one ");
    warm(w); /* its ward is free again */
}

static void test_injected_faults_fail_cached_reads_too(void **state) {
    struct world *w = *state;
    put(w, "a", "one");
    warm(w);
    fault_arm(FAULT_KV_COLD, 1);
    struct eng_scan *s = open_scan(w, &all_of_p);
    assert_int_equal(take(w, s, 1), ENG_INCOMPLETE);
    eng_scan_close(s);
    fault_arm(FAULT_KV_READ, 1);
    s = open_scan(w, &all_of_p);
    assert_int_equal(take(w, s, 1), -1);
    eng_scan_close(s);
    assert_true(is_hit(w, &all_of_p));
}

static void test_a_dropped_or_replaced_table_has_nothing_in_the_cache(void **state) {
    struct world *w = *state;
    struct ask other = all_of_p;
    other.table = OTHER;
    put(w, "a", "one");
    warm(w);
    warm_at(w, &other); /* that there is none */
    assert_int_equal(eng_ingest(w->eng, OTHER, w->eng, TABLE, &w->e), 0);
    assert_string_equal(read_slice(w, &other), "a=one ");
    assert_int_equal(eng_table_drop(w->eng, TABLE, &w->e), 0);
    assert_false(is_hit(w, &all_of_p));
    /* RocksDB's slices look past what was dropped: its id is not used again */
    if (!*w->folder) assert_string_equal(all(w), "");
    assert_string_equal(read_slice(w, &other), "a=one ");
}

/* ---- while something is read ---- */

/* The scan that is to become a run has begun before the write, and ends behind it. */
static void test_writes_during_the_insertion_of_a_range_are_visible(void **state) {
    struct world *w = *state;
    put_rows(w, "p", 4);
    for (int at = 0; at < 4; at++) {
        (void)read_slice(w, &all_of_p);
        struct eng_scan *s = open_scan(w, &all_of_p);
        assert_int_equal(take(w, s, at), 1);
        put(w, "00", at % 2 ? "odd" : "even");
        assert_int_equal(take(w, s, 10), 0);
        eng_scan_close(s);
        (void)read_slice(w, &all_of_p);
        assert_int_equal(strncmp(all(w), at % 2 ? "00=odd " : "00=even ", 7), 0);
        put(w, "void", "again");
    }
}

/* Whoever it is may have the write in the store by now, or not. */
static void test_no_range_is_cached_while_a_write_is_in_progress(void **state) {
    struct world *w = *state;
    struct eng_part part = part_of(TABLE, "p");
    struct buf key;
    buf_init(&key, 0);
    engi_key_prefix(&key, &part);
    put_rows(w, "p", 4);
    engi_partition_share(&own(w)->guards, buf_slice(&key));
    for (int i = 0; i < 5; i++) assert_false(is_hit(w, &all_of_p));
    assert_int_equal(runs(w), 0);
    engi_partition_leave(&own(w)->guards, buf_slice(&key));
    warm(w);
    engi_partition_share(&own(w)->guards, buf_slice(&key));
    assert_false(is_hit(w, &all_of_p));
    engi_partition_leave(&own(w)->guards, buf_slice(&key));
    buf_fini(&key);
}

/* Who comes when as many scans as may be have begun and wait is answered all the same, and is kept
 * when they have ended. */
static void test_so_many_are_noted_at_a_time(void **state) {
    struct world *w = *state;
    struct ask other = {.table = TABLE, .key = "q", .from = "", .to = ""};
    struct eng_scan *waiting[ENGI_RANGE_DRAFTS + 4];
    put_rows(w, "p", 4);
    put_rows(w, "q", 4);
    (void)read_slice(w, &all_of_p);
    for (size_t i = 0; i < ARRAY_LEN(waiting); i++) {
        waiting[i] = open_scan(w, &all_of_p);
        assert_int_equal(take(w, waiting[i], 1), 1);
    }
    assert_int_equal(atomic_load(&own(w)->cache->drafts), ENGI_RANGE_DRAFTS);
    for (int i = 0; i < 5; i++) assert_false(is_hit(w, &other));
    assert_int_equal(atomic_load(&own(w)->cache->drafts), ENGI_RANGE_DRAFTS);
    for (size_t i = 0; i < ARRAY_LEN(waiting); i++) eng_scan_close(waiting[i]);
    assert_int_equal(atomic_load(&own(w)->cache->drafts), 0);
    warm_at(w, &other);
}

static void test_a_scan_sees_one_moment(void **state) {
    struct world *w = *state;
    struct ask few = {.table = TABLE, .key = "p", .from = "", .to = "", .most = 4};
    put_rows(w, "p", 8);
    warm(w);
    struct eng_scan *s = open_scan(w, &all_of_p); /* a whole run */
    assert_int_equal(take(w, s, 2), 1);
    put(w, "05", "later");
    assert_int_equal(take(w, s, 100), 0);
    eng_scan_close(s);
    assert_null(strstr(text_of(w), "later"));
    warm_at(w, &few);
    s = open_scan(w, &all_of_p); /* one that ends before */
    assert_int_equal(take(w, s, 4), 1);
    assert_int_equal(take(w, s, 100), 0);
    eng_scan_close(s);
    assert_non_null(strstr(text_of(w), "04=value 05=later 06=value 07=value "));
    s = open_scan(w, &all_of_p);
    assert_int_equal(take(w, s, 4), 1);
    put(w, "06", "later still");
    assert_int_equal(take(w, s, 100), ENG_INCOMPLETE); /* and begins anew on a worker */
    eng_scan_close(s);
    few.back = true;
    warm_at(w, &few);
    struct ask down = all_of_p;
    down.back = true;
    s = open_scan(w, &down);
    assert_int_equal(take(w, s, 5), 1);
    eng_scan_close(s);
    assert_string_equal(text_of(w), "07=value 06=later still 05=later 04=value 03=value ");
    s = open_scan(w, &down);
    assert_int_equal(take(w, s, 4), 1);
    put(w, "00", "last");
    assert_int_equal(take(w, s, 100), ENG_INCOMPLETE);
    eng_scan_close(s);
}

/* Runs, and what is being noted of the store before. */
static void test_a_restored_state_replaces_the_cached_rows(void **state) {
    struct world *w = *state;
    put(w, "a", "one");
    put(w, "b", "one");
    assert_int_equal(eng_state_save(w->eng, "then", "", &w->e), 0);
    put(w, "a", "two");
    warm(w);
    struct ask other = {.table = TABLE, .key = "p", .from = "a", .to = "", .worker = true};
    put(w, "void", "again");
    (void)read_slice(w, &other);
    struct eng_scan *s = open_scan(w, &other);
    assert_int_equal(take(w, s, 1), 1);
    assert_int_equal(eng_state_put_back(w->eng, "then", &w->e), 0);
    eng_scan_close(s);
    assert_string_equal(all(w), "a=one b=one ");
    assert_string_equal(read_slice(w, &other), "a=one b=one ");
}

/* ---- what is not kept ---- */

static void test_alternating_writes_and_reads_insert_no_ranges(void **state) {
    struct world *w = *state;
    int kept = 0;
    put_rows(w, "p", ROWS);
    for (int i = 0; i < 300; i++) {
        put(w, "00", "written");
        for (int k = 0; k < 3 + i % 2; k++) {
            uint64_t before = runs(w);
            if (k < 2) (void)read_slice(w, &all_of_p);
            kept += runs(w) > before;
        }
    }
    assert_in_range(kept, 1, 8); /* of 300: it takes 2, 4, ... misses without a write */
    for (int i = 0; i < 100; i++) (void)read_slice(w, &all_of_p);
    assert_true(is_hit(w, &all_of_p));
    put(w, "00", "written"); /* the run was of use */
    for (int i = 0; i < 3; i++) (void)read_slice(w, &all_of_p);
    assert_true(is_hit(w, &all_of_p));
}

static void test_scans_of_tables_neither_fill_nor_use_runs(void **state) {
    struct world *w = *state;
    struct eng_scan_spec spec = {
        .table = TABLE, .token_from = INT64_MIN, .token_to = INT64_MAX, .rows = true, .now = 1000};
    put_rows(w, "p", 3);
    warm(w);
    uint64_t before = hits(w) + misses(w);
    for (int i = 0; i < 5; i++) {
        struct eng_scan *s = eng_scan_open(w->eng, ENG_TIER_CACHE, &spec, NULL, &w->e);
        assert_int_equal(take(w, s, 100), 0);
        eng_scan_close(s);
    }
    assert_int_equal(hits(w) + misses(w), before);
    assert_int_equal(runs(w), 1);
}

/* A partition that is too large for a run, page by page: the pages are runs, one pass makes none,
 * and there are not too many of them. */
static void test_a_large_partition_has_runs_of_its_pages(void **state) {
    struct world *w = *state;
    char ck[16], value[2000], resume[16];
    enum { PAGES = 30, PAGE = 10 };
    memset(value, 'v', sizeof(value));
    value[sizeof(value) - 1] = 0;
    for (int i = 0; i < PAGES * PAGE; i++) {
        snprintf(ck, sizeof(ck), "%03d", i);
        put(w, ck, value);
    }
    for (int pass = 0; pass < 3; pass++) {
        for (int page = 0; page < PAGES; page++) {
            snprintf(resume, sizeof(resume), "%03d", page * PAGE - 1);
            struct ask a = {
                .table = TABLE, .key = "p", .from = "", .to = "", .resume = page ? resume : NULL, .most = PAGE};
            assert_is_the_stores(w, &a);
        }
        if (pass == 0) assert_int_equal(runs(w), 0);
        assert_in_range(runs(w), 0, ENGI_RANGES_OF_PARTITION);
    }
    assert_true(runs(w) > 0);
    for (int i = 0; i < 20; i++) assert_is_the_stores(w, &all_of_p); /* 600 KB */
    assert_true(eng_stat(w->eng, ENG_STAT_RANGE_BYTES) <= LARGE);
}

static void test_memory_is_bounded_and_entries_read_again_stay(void **state) {
    struct world *w = *state;
    enum { PARTS = 240, HOT = 4 }; /* four times what the cache holds */
    char keys[PARTS][16];
    uint64_t hot_hits = 0, most = 0;
    for (int i = 0; i < PARTS; i++) {
        snprintf(keys[i], sizeof(keys[i]), "p%03d", i);
        put_rows(w, keys[i], 10);
    }
    for (int i = 0; i < 3 * PARTS; i++) {
        struct ask cold = {.table = TABLE, .key = keys[i % PARTS], .from = "", .to = ""}, hot = cold;
        hot.key = keys[i % HOT];
        for (int k = 0; k < 2; k++) (void)read_slice(w, &cold);
        hot_hits += is_hit(w, &hot);
        uint64_t bytes = eng_stat(w->eng, ENG_STAT_RANGE_BYTES);
        assert_true(bytes <= SMALL);
        if (bytes > most) most = bytes;
    }
    assert_true(most > SMALL / 2);
    assert_true(hot_hits > 3 * PARTS * 8 / 10);
}

/* ---- at random ---- */

static uint32_t draw(struct world *w, uint32_t below) {
    w->seed ^= w->seed << 13;
    w->seed ^= w->seed >> 7;
    w->seed ^= w->seed << 17;
    return (uint32_t)(w->seed >> 20) % below;
}

static void write_at_random(struct world *w) {
    struct eng_part part = part_of(TABLE, "p");
    char ck[16];
    snprintf(ck, sizeof(ck), "%02u", draw(w, ROWS));
    uint32_t what = draw(w, 10);
    struct eng_cell mortal = {.column = 1,
                              .ts = ++w->ts,
                              .ttl = 20,
                              .flags = ENG_CELL_EXPIRING,
                              .expiry = w->seconds + 20,
                              .value = slice_str("mortal")};
    if (what < 5) put(w, ck, "written");
    else if (what < 7) delete_row(w, ck);
    else if (what == 7) put_at(w, TABLE, "p", ENG_STATIC, "", ck);
    else if (what == 8) add_cell(w->batch, &part, ENG_ROW, ck, mortal), commit(w);
    else w->seconds += draw(w, 30);
    if (draw(w, 40) == 0) assert_int_equal(eng_compact(w->eng, &w->e), 0);
    if (draw(w, 20) == 0) assert_int_equal(eng_reclaim(w->eng, &w->e), 0);
}

static void test_random_slices_are_the_stores(void **state) {
    struct world *w = *state;
    put_rows(w, "p", ROWS / 2);
    for (int i = 0; i < 1500; i++) {
        char keys[3][16];
        uint32_t from = draw(w, ROWS), to = from + 1 + draw(w, ROWS - from), wide = draw(w, 3);
        snprintf(keys[0], sizeof(keys[0]), "%02u", from);
        snprintf(keys[1], sizeof(keys[1]), "%02u", to);
        snprintf(keys[2], sizeof(keys[2]), "%02u", from + draw(w, to - from));
        struct ask a = {.table = TABLE,
                        .key = "p",
                        .from = wide ? "" : keys[0],
                        .to = wide == 1 ? keys[1]
                              : wide    ? ""
                                        : keys[1],
                        .resume = draw(w, 4) ? NULL : keys[2],
                        .most = draw(w, 2) ? (int)draw(w, 6) + 1 : 0,
                        .back = draw(w, 3) == 0,
                        .statics = draw(w, 3) == 0,
                        .worker = draw(w, 3) == 0};
        if (draw(w, 6) == 0) write_at_random(w);
        for (uint32_t k = draw(w, 3); k < 4; k++) assert_is_the_stores(w, &a);
    }
    assert_true(hits(w) > 500);
}

/* ---- many threads ---- */

enum { PARTS = 6, WRITERS = 2, READERS = 3, WRITES = 150, SLICED = 12 };

struct race {
    struct world *w;
    /* versions: each partition is one writer's, and every row of it has the same */
    _Atomic uint64_t acknowledged[PARTS];
    _Atomic int writing;
    _Atomic uint64_t reads;
};

struct runner {
    struct race *race;
    uint64_t seed;
    uint32_t writer; /* which one */
    uint32_t wrong;  /* what a reader has seen that it should not */
};

static uint32_t draw_of(struct runner *r, uint32_t below) {
    struct world w = {.seed = r->seed};
    uint32_t drawn = draw(&w, below);
    r->seed = w.seed;
    return drawn;
}

static const char *const part_names[PARTS] = {"p0", "p1", "p2", "p3", "p4", "p5"};

static void *write_versions(void *arg) {
    struct runner *r = arg;
    struct race *race = r->race;
    struct eng_batch *b = eng_batch_new(race->w->eng);
    struct err e = {0};
    char ck[16];
    for (uint64_t i = 1, seq; i <= WRITES; i++) {
        uint32_t p = draw_of(r, PARTS / WRITERS) * WRITERS + r->writer;
        struct eng_part part = part_of(TABLE, part_names[p]);
        uint64_t version = atomic_load(&race->acknowledged[p]) + 1;
        eng_batch_savepoint(b);
        for (int k = 0; k < SLICED; k++) {
            snprintf(ck, sizeof(ck), "%02d", k);
            add_cell(b, &part, ENG_ROW, ck,
                     (struct eng_cell){.column = 1,
                                       .ts = (int64_t)version,
                                       .expiry = ENG_NO_EXPIRY,
                                       .value = slice_of(&version, sizeof(version))});
        }
        eng_batch_release(b);
        if (eng_batch_commit(b, &seq, &e)) abort();
        atomic_store(&race->acknowledged[p], version);
        for (uint64_t until = atomic_load(&race->reads) + draw_of(r, 40); atomic_load(&race->reads) < until;)
            sched_yield();
    }
    eng_batch_free(b);
    atomic_fetch_sub(&race->writing, 1);
    return NULL;
}

/* 1: read, 0: it has to begin anew elsewhere. */
static int read_version(struct runner *r, const struct eng_part *part, bool back, uint32_t most, uint64_t *version) {
    struct eng_scan_spec spec = {.table = TABLE, .part = part, .rows = true, .reverse = back, .now = 1000};
    struct err e = {0};
    struct eng_item item;
    uint32_t n = 0;
    struct eng_scan *s = eng_scan_open(r->race->w->eng, ENG_TIER_CACHE, &spec, NULL, &e);
    int got = s ? 1 : -1;
    while (n < most && got > 0 && (got = eng_scan_next(s, &item, &e)) > 0) {
        uint64_t has = 0;
        if (item.kind != ENG_ITEM_ROW) continue;
        memcpy(&has, item.row->cells[0].value.p, sizeof(has));
        if (n++ && has != *version) r->wrong++;
        *version = has;
    }
    eng_scan_close(s);
    if (got == -1) abort();
    if (got >= 0 && n && n != (most < SLICED ? most : SLICED)) r->wrong++;
    return got >= 0;
}

static void *read_versions(void *arg) {
    struct runner *r = arg;
    struct race *race = r->race;
    uint64_t seen[PARTS] = {0};
    while (atomic_load(&race->writing)) {
        uint32_t p = draw_of(r, PARTS);
        struct eng_part part = part_of(TABLE, part_names[p]);
        uint64_t version = 0, least = atomic_load(&race->acknowledged[p]);
        if (read_version(r, &part, draw_of(r, 4) == 0, draw_of(r, 3) ? SLICED * 2 : 1 + draw_of(r, SLICED), &version)) {
            if (version < least || version < seen[p]) r->wrong++;
            if (version > atomic_load(&race->acknowledged[p]) + 1) r->wrong++;
            seen[p] = version;
        }
        atomic_fetch_add(&race->reads, 1);
    }
    return NULL;
}

/* Rows of one version, none older than what was acknowledged when the read began or than what the
 * same reader saw before. */
static void test_readers_never_see_less_than_was_acknowledged(void **state) {
    struct world *w = *state;
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

#define ON_BOTH(test) \
    cmocka_unit_test_setup_teardown(test, setup_memory, world_teardown), \
        cmocka_unit_test_setup_teardown(test, setup_rocksdb, world_teardown)

int main(void) {
    const struct CMUnitTest tests[] = {
        ON_BOTH(test_a_slice_that_was_missed_twice_is_there),
        ON_BOTH(test_a_cached_range_answers_slices_within_it),
        ON_BOTH(test_a_read_that_continues_after_a_cached_range_extends_it),
        ON_BOTH(test_a_worker_uses_a_cached_range_only_if_it_covers_the_slice),
        ON_BOTH(test_every_write_is_seen),
        ON_BOTH(test_a_write_elsewhere_leaves_it),
        ON_BOTH(test_a_row_under_a_deletion_stays_gone_when_that_is_purged),
        cmocka_unit_test_setup_teardown(test_a_compaction_makes_no_range_void, setup_rocksdb, world_teardown),
        ON_BOTH(test_reclaimed_rows_are_not_in_cached_ranges),
        ON_BOTH(test_a_write_that_failed_is_not_seen),
        ON_BOTH(test_injected_faults_fail_cached_reads_too),
        ON_BOTH(test_a_dropped_or_replaced_table_has_nothing_in_the_cache),
        ON_BOTH(test_writes_during_the_insertion_of_a_range_are_visible),
        ON_BOTH(test_no_range_is_cached_while_a_write_is_in_progress),
        ON_BOTH(test_so_many_are_noted_at_a_time),
        ON_BOTH(test_a_scan_sees_one_moment),
        cmocka_unit_test_setup_teardown(test_a_restored_state_replaces_the_cached_rows, setup_rocksdb, world_teardown),
        ON_BOTH(test_alternating_writes_and_reads_insert_no_ranges),
        ON_BOTH(test_scans_of_tables_neither_fill_nor_use_runs),
        ON_BOTH(test_a_large_partition_has_runs_of_its_pages),
        cmocka_unit_test_setup_teardown(test_memory_is_bounded_and_entries_read_again_stay, setup_small,
                                        world_teardown),
        cmocka_unit_test_setup_teardown(test_random_slices_are_the_stores, setup_small, world_teardown),
        cmocka_unit_test_setup_teardown(test_random_slices_are_the_stores, setup_memory, world_teardown),
        ON_BOTH(test_readers_never_see_less_than_was_acknowledged),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
