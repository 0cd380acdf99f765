/* A table restored to a moment is what it was then: random writes, deletions, times to live,
 * histories rolled up, purges and restarts, against an engine of its own that is given, in their
 * order, the writes committed by then and nothing else. The clock is the test's. */
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

#include <cmocka.h>

#include "base/fault.h"
#include "base/murmur3.h"
#include "engine/history.h"
#include "engine/table.h"
#include "tests/unit/folder.h"

enum {
    TABLE = 20,
    HISTORY = 21,
    RESTORED = 22,
    MODEL = 30, /* and those after it: a table of the model's engine for each question */
    PARTS = 3,
    KEYS = 12,
    COLUMNS = 3,
    OPS_MAX = 4000,
#ifdef __SANITIZE_THREAD__
    ROUNDS = 60, /* what the model says of values is proven without it */
#else
    ROUNDS = 260,
#endif
    GC_GRACE = 60
};

enum kind { ROW, STATIC, ROW_DELETION, RANGE, PARTITION, KINDS };

struct op {
    enum kind kind;
    int64_t at_us; /* committed */
    uint32_t part, key, end;
    int64_t ts;
    int32_t ttl;
    bool live, whole;
    bool set[COLUMNS], dead[COLUMNS];
    uint8_t value[COLUMNS];
};

struct world {
    struct clock clock;
    _Atomic int64_t now_us;
    bool rocks, wild; /* wild: any timestamps, and nothing is ever purged */
    char dir[FOLDER_PATH];
    struct eng *eng, *model;
    struct eng_batch *batch;
    struct err e;
    uint64_t seed;
    uint32_t n, n_restored, n_asked;
    struct op ops[OPS_MAX];
};

static int64_t read_clock(struct clock *c) { return ((struct world *)c)->now_us; }

static uint32_t draw(struct world *w, uint32_t below) {
    w->seed ^= w->seed << 13;
    w->seed ^= w->seed >> 7;
    w->seed ^= w->seed << 17;
    return (uint32_t)(w->seed >> 20) % below;
}

static void must(struct world *w, int rc) {
    if (rc) fail_msg("%s", w->e.text);
}

/* ---- an operation, into whatever engine ---- */

static struct eng_part part_at(uint32_t table, uint32_t i) {
    static const char *const names[PARTS] = {"p", "q", "r"};
    return (struct eng_part){.table = table, .token = murmur3_token(slice_str(names[i])), .key = slice_str(names[i])};
}

static void apply_row(struct world *w, const struct op *o, struct eng_batch *b, const struct eng_part *part) {
    struct eng_cell cells[COLUMNS];
    struct eng_row row;
    char ck[8];
    int64_t now = o->at_us / 1000000;
    snprintf(ck, sizeof(ck), "%02u", o->key);
    eng_row_init(&row, o->kind == STATIC ? ENG_STATIC : ENG_ROW, slice_str(o->kind == STATIC ? "" : ck));
    row.cells = cells;
    if (o->live) {
        row.live_ts = o->ts;
        row.live_ttl = o->ttl;
        row.live_expiry = o->ttl ? now + o->ttl : ENG_NO_EXPIRY;
    }
    for (uint32_t c = 0; c < COLUMNS; c++) {
        if (!o->set[c]) continue;
        struct eng_cell *to = &cells[row.n_cells++];
        *to = (struct eng_cell){.column = c,
                                .ts = o->ts,
                                .ttl = o->ttl,
                                .expiry = o->ttl ? now + o->ttl : ENG_NO_EXPIRY,
                                .flags = o->ttl ? ENG_CELL_EXPIRING : 0,
                                .value = slice_of(&o->value[c], 1)};
        if (o->dead[c]) *to = (struct eng_cell){.column = c, .ts = o->ts, .expiry = now, .flags = ENG_CELL_TOMBSTONE};
    }
    if (o->whole) row.covers_below = COLUMNS;
    must(w, eng_batch_row(b, part, &row, NULL, &w->e));
}

static void apply(struct world *w, const struct op *o, struct eng_batch *b, uint32_t table) {
    struct eng_part part = part_at(table, o->part);
    int64_t now = o->at_us / 1000000;
    char from[8], to[8];
    snprintf(from, sizeof(from), "%02u", o->key);
    snprintf(to, sizeof(to), "%02u", o->end);
    struct eng_slice range = {.from = {.key = slice_str(from)}, .to = {.key = slice_str(to), .after = true}};
    struct eng_row row;
    switch (o->kind) {
    case RANGE: must(w, eng_batch_delete_range(b, &part, &range, o->ts, now, NULL, &w->e)); return;
    case PARTITION: must(w, eng_batch_delete_partition(b, &part, o->ts, now, NULL, &w->e)); return;
    case ROW_DELETION:
        eng_row_init(&row, ENG_ROW, slice_str(from));
        row.del_ts = o->ts;
        row.del_at = now;
        must(w, eng_batch_row(b, &part, &row, NULL, &w->e));
        return;
    default: apply_row(w, o, b, &part);
    }
}

/* ---- what a table holds, as text ---- */

static void put_cells(const struct eng_row *row, struct buf *out) {
    if (row->live_ts != ENG_NO_TS)
        buf_printf(out, "live %lld/%lld ", (long long)row->live_ts, (long long)row->live_expiry);
    for (uint32_t i = 0; i < row->n_cells; i++) {
        const struct eng_cell *c = &row->cells[i];
        buf_printf(out, "%u=%.*s@%lld/%lld ", c->column, SLICE_FMT(c->value), (long long)c->ts, (long long)c->expiry);
    }
}

static char *text_of(struct world *w, struct eng *eng, uint32_t table, int64_t now) {
    struct eng_scan_spec spec = {
        .table = table, .token_from = INT64_MIN, .token_to = INT64_MAX, .rows = true, .statics = true, .now = now};
    struct eng_scan *s = eng_scan_open(eng, ENG_TIER_ANY, &spec, NULL, &w->e);
    struct eng_item item;
    struct buf out;
    int got;
    buf_init(&out, 0);
    assert_non_null(s);
    while ((got = eng_scan_next(s, &item, &w->e)) > 0) {
        if (item.kind == ENG_ITEM_PARTITION && item.has_static) {
            buf_printf(&out, "%.*s: ", SLICE_FMT(item.part.key));
            put_cells(&item.statics, &out);
            buf_put_str(&out, "\n");
        }
        if (item.kind != ENG_ITEM_ROW) continue;
        buf_printf(&out, "%.*s %.*s ", SLICE_FMT(item.part.key), SLICE_FMT(item.row->ck));
        put_cells(item.row, &out);
        buf_put_str(&out, "\n");
    }
    must(w, got);
    eng_scan_close(s);
    buf_u8(&out, 0);
    assert_false(buf_failed(&out));
    return (char *)out.p;
}

static char *model_at(struct world *w, int64_t at_us) {
    uint32_t table = MODEL + w->n_asked++;
    struct eng_batch *b = eng_batch_new(w->model);
    for (uint32_t i = 0; i < w->n; i++)
        if (w->ops[i].at_us <= at_us) apply(w, &w->ops[i], b, table);
    uint64_t seq;
    must(w, eng_batch_commit(b, &seq, &w->e));
    char *text = text_of(w, w->model, table, at_us / 1000000);
    eng_batch_free(b);
    must(w, eng_table_drop(w->model, table, &w->e));
    return text;
}

static void check_restore(struct world *w, int64_t at_us) {
    uint32_t table = RESTORED + w->n_restored++ % 3; /* what an earlier one left is emptied */
    must(w, eng_history_restore(w->eng, HISTORY, at_us, table, &w->e));
    char *want = model_at(w, at_us), *have = text_of(w, w->eng, table, at_us / 1000000);
    assert_string_equal(have, want);
    free(want);
    free(have);
}

/* ---- events ---- */

static int64_t draw_ts(struct world *w) {
    int64_t second = 1000000;
    if (!w->wild) return w->now_us - (int64_t)draw(w, 8) * second;
    switch (draw(w, 4)) {
    case 0: return draw(w, 5); /* many ties, long ago */
    case 1: return w->now_us + (int64_t)draw(w, 100000) * second;
    default: return w->now_us - (int64_t)draw(w, 1000) * second;
    }
}

static void add_op(struct world *w) {
    static const enum kind kinds[] = {ROW,    ROW,    ROW,          ROW,   ROW,   ROW,
                                      STATIC, STATIC, ROW_DELETION, RANGE, RANGE, PARTITION};
    assert_true(w->n < OPS_MAX);
    struct op *o = &w->ops[w->n++];
    int64_t last_us = w->n > 1 ? o[-1].at_us : 0; /* a clock that steps back does not change the order of commits */
    *o = (struct op){.kind = kinds[draw(w, sizeof(kinds) / sizeof(*kinds))],
                     .at_us = w->now_us > last_us ? w->now_us : last_us,
                     .part = draw(w, PARTS),
                     .key = draw(w, KEYS),
                     .ts = draw_ts(w)};
    o->end = o->key + draw(w, 4);
    if (o->kind == PARTITION && draw(w, 4)) o->kind = ROW;
    o->ttl = draw(w, 3) ? 0 : 1 + (int32_t)draw(w, 40);
    o->live = o->kind == ROW && draw(w, 4);
    o->whole = o->live && draw(w, 2);
    for (uint32_t c = 0; c < COLUMNS; c++) {
        o->set[c] = o->whole || draw(w, 2);
        o->dead[c] = draw(w, 6) == 0;
        o->value[c] = (uint8_t)('a' + draw(w, 26));
    }
    apply(w, o, w->batch, TABLE);
}

static void commit(struct world *w) {
    uint64_t seq;
    must(w, eng_batch_commit(w->batch, &seq, &w->e));
}

static void open_engine(struct world *w) {
    struct eng_options o = {.data_dir = w->rocks ? w->dir : NULL,
                            .durability = ENG_PERIODIC,
                            .clock = &w->clock,
                            .memtable_bytes = 1 << 20,
                            .row_cache_bytes = 64 << 10,
                            .block_cache_bytes = 1 << 20};
    w->eng = eng_open(&o, &w->e);
    if (!w->eng) fail_msg("%s", w->e.text);
    int64_t grace = w->wild ? INT64_C(1) << 40 : GC_GRACE;
    eng_table_set(w->eng, TABLE, grace);
    eng_table_set(w->eng, HISTORY, grace);
    w->batch = eng_batch_new(w->eng);
}

static void close_engine(struct world *w) {
    eng_batch_free(w->batch);
    eng_close(w->eng);
}

static void reopen(struct world *w) {
    close_engine(w);
    open_engine(w);
    must(w, eng_history_follow(w->eng, TABLE, HISTORY, &w->e));
}

static struct world *begin(bool rocks, bool wild, uint64_t seed) {
    struct world *w = calloc(1, sizeof(*w));
    assert_non_null(w);
    w->clock = (struct clock){.wall_us = read_clock, .mono_us = read_clock};
    w->now_us = INT64_C(1000000000000);
    w->rocks = rocks;
    w->wild = wild;
    w->seed = seed * 0x9e3779b97f4a7c15u;
    if (rocks) folder_make(w->dir);
    open_engine(w);
    struct eng_options o = {.durability = ENG_NONE, .clock = &w->clock, .row_cache_bytes = 64 << 10};
    w->model = eng_open(&o, &w->e);
    assert_non_null(w->model);
    return w;
}

static void end(struct world *w) {
    close_engine(w);
    eng_close(w->model);
    if (w->rocks) folder_remove(w->dir);
    free(w);
}

static void some_ops(struct world *w) {
    for (uint32_t i = draw(w, 6); i > 0; i--) add_op(w);
    commit(w);
    w->now_us += draw(w, 3) * 700000; /* several commits in a moment, too */
}

/* Between the floor and now, both included. */
static void check_some_moments(struct world *w) {
    int64_t since = eng_history_since(w->eng, HISTORY), span = w->now_us - since;
    assert_true(span >= 0);
    check_restore(w, w->now_us);
    check_restore(w, since);
    check_restore(w, since + (int64_t)draw(w, 1000) * span / 1000);
    assert_int_equal(-1, eng_history_restore(w->eng, HISTORY, since - 1, RESTORED, &w->e));
    err_clear(&w->e);
}

static void run_model(bool rocks, bool wild, bool copy, uint64_t seed) {
    struct world *w = begin(rocks, wild, seed);
    for (int i = 0; copy && i < 60; i++) some_ops(w);
    must(w, eng_history_begin(w->eng, TABLE, HISTORY, copy, 0, &w->e));
    w->now_us++; /* what is written in the moment of the floor counts as later */
    for (int i = 0; i < ROUNDS; i++) {
        some_ops(w);
        uint32_t what = draw(w, 100);
        if (what < 12) check_some_moments(w);
        else if (what < 20)
            must(w, eng_history_roll(w->eng, HISTORY, w->now_us++ - (int64_t)draw(w, 60) * 1000000, &w->e));
        else if (what < 22) must(w, eng_compact(w->eng, &w->e));
        else if (what < 24) must(w, eng_reclaim(w->eng, &w->e));
        else if (what < 26 && rocks) reopen(w);
    }
    check_some_moments(w);
    end(w);
}

static void test_memory_restores_earlier_rows(void **state) {
    (void)state;
    run_model(false, false, false, 1);
    run_model(false, false, true, 2);
    run_model(false, true, true, 3);
}

static void test_rocksdb_restores_earlier_rows(void **state) {
    (void)state;
    run_model(true, false, true, 11);
    run_model(true, true, false, 12);
}

/* ---- single facts ---- */

/* Nothing is stored under the id. */
static int fail_on(void *arg, uint32_t id, struct err *e) {
    (void)e;
    if (id == *(const uint32_t *)arg) fail_msg("something of %u is stored", id);
    return 0;
}

static void test_history_outlives_its_table(void **state) {
    (void)state;
    struct world *w = begin(true, false, 21);
    must(w, eng_history_begin(w->eng, TABLE, HISTORY, false, 0, &w->e));
    for (int i = 0; i < 20; i++) some_ops(w);
    eng_history_end(w->eng, TABLE);
    must(w, eng_table_drop(w->eng, TABLE, &w->e));
    int64_t dropped_us = w->now_us;
    w->now_us += 5000000;
    check_restore(w, dropped_us);
    close_engine(w);
    open_engine(w);
    must(w, eng_history_follow(w->eng, 0, HISTORY, &w->e));
    check_restore(w, dropped_us);
    must(w, eng_history_drop(w->eng, HISTORY, &w->e));
    assert_true(eng_history_since(w->eng, HISTORY) == INT64_MAX);
    assert_int_equal(eng_history_restore(w->eng, HISTORY, w->now_us, RESTORED, &w->e), -1);
    assert_int_equal(eng_each_stored(w->eng, fail_on, &(uint32_t){HISTORY}, &w->e), 0);
    end(w);
}

/* A roll broken off at whatever write is made good by the next one, and restores are right in between. */
static void test_an_interrupted_roll_loses_no_history(void **state) {
    (void)state;
    for (unsigned nth = 1; nth <= 4; nth++) {
        struct world *w = begin(true, false, 30 + nth);
        must(w, eng_history_begin(w->eng, TABLE, HISTORY, false, 0, &w->e));
        for (int i = 0; i < 40; i++) some_ops(w);
        fault_arm(FAULT_KV_WRITE, nth);
        int rc = eng_history_roll(w->eng, HISTORY, w->now_us - 10000000, &w->e);
        fault_arm(FAULT_KV_WRITE, 0);
        if (nth <= 3) assert_int_equal(-1, rc);
        err_clear(&w->e);
        check_some_moments(w);
        reopen(w);
        check_some_moments(w);
        must(w, eng_history_roll(w->eng, HISTORY, w->now_us - 5000000, &w->e));
        check_some_moments(w);
        end(w);
    }
}

/* The clock goes back (somebody set it free): nothing that is written then gets below the floor and lost. */
static void test_writes_after_the_clock_went_back_are_kept(void **state) {
    (void)state;
    struct world *w = begin(false, true, 41);
    must(w, eng_history_begin(w->eng, TABLE, HISTORY, false, 0, &w->e));
    for (int i = 0; i < 20; i++) some_ops(w);
    int64_t ahead_us = w->now_us + 3600000000;
    w->now_us = ahead_us;
    must(w, eng_history_roll(w->eng, HISTORY, ahead_us, &w->e));
    w->now_us -= 7200000000;
    for (int i = 0; i < 20; i++) some_ops(w);
    must(w, eng_history_roll(w->eng, HISTORY, w->now_us, &w->e));
    must(w, eng_history_restore(w->eng, HISTORY, ahead_us + 1000, RESTORED, &w->e));
    char *want = model_at(w, ahead_us), *have = text_of(w, w->eng, RESTORED, ahead_us / 1000000);
    assert_string_equal(have, want);
    free(want);
    free(have);
    end(w);
}

/* Writes after a step back are later than those before it, also after a restart. */
static void test_clock_that_steps_back_keeps_the_order_of_commits(void **state) {
    (void)state;
    enum { STEP_US = 100000000 };
    struct world *w = begin(true, false, 42);
    must(w, eng_history_begin(w->eng, TABLE, HISTORY, false, 0, &w->e));
    int64_t since = eng_history_since(w->eng, HISTORY);
    w->now_us += STEP_US;
    int64_t top_us = w->now_us;
    for (int round = 0; round < 2; round++) {
        add_op(w);
        commit(w);
        w->now_us = top_us - STEP_US / 2;
        add_op(w);
        commit(w);
        check_restore(w, since);
        check_restore(w, w->now_us); /* nothing was committed by then */
        check_restore(w, top_us);
        assert_int_equal(eng_history_moment(w->eng, HISTORY, 0), top_us);
        reopen(w);
    }
    assert_int_equal(eng_history_moment(w->eng, HISTORY, top_us + 5), top_us + 5);
    w->now_us = top_us + 10;
    add_op(w);
    commit(w);
    check_restore(w, top_us);
    check_restore(w, w->now_us);
    end(w);
}

/* A history that follows another one begins after it. */
static void test_history_begins_no_earlier_than_requested(void **state) {
    (void)state;
    struct world *w = begin(false, false, 43);
    int64_t after_us = w->now_us + 1000000;
    must(w, eng_history_begin(w->eng, TABLE, HISTORY, false, after_us, &w->e));
    assert_int_equal(eng_history_since(w->eng, HISTORY), after_us);
    end(w);
}

/* ---- while writes go on ---- */

enum { WRITERS = 3, COUNTED = 400 };

struct writer {
    struct world *w;
    uint32_t part;
    _Atomic uint32_t acknowledged;
};

/* One row for each number, in order: a restore sees a beginning of them. */
static void *write_numbers(void *arg) {
    struct writer *x = arg;
    struct eng_batch *b = eng_batch_new(x->w->eng);
    struct eng_part part = part_at(TABLE, x->part);
    for (uint32_t i = 0; i < COUNTED; i++) {
        struct err e = {0};
        struct eng_row row;
        char ck[8];
        uint64_t seq;
        snprintf(ck, sizeof(ck), "%05u", i);
        eng_row_init(&row, ENG_ROW, slice_str(ck));
        row.live_ts = 1000 + i;
        if (eng_batch_row(b, &part, &row, NULL, &e) || eng_batch_commit(b, &seq, &e)) break;
        atomic_store(&x->acknowledged, i + 1);
        if (i % 8 == 0) atomic_fetch_add(&x->w->now_us, 1000);
    }
    eng_batch_free(b);
    return NULL;
}

static uint32_t count_rows(struct world *w, uint32_t table, uint32_t part) {
    struct eng_part p = part_at(table, part);
    struct eng_scan_spec spec = {.table = table, .part = &p, .rows = true, .now = w->now_us / 1000000};
    struct eng_scan *s = eng_scan_open(w->eng, ENG_TIER_ANY, &spec, NULL, &w->e);
    struct eng_item item;
    uint32_t n = 0;
    assert_non_null(s);
    while (eng_scan_next(s, &item, &w->e) > 0) {
        char want[8];
        if (item.kind != ENG_ITEM_ROW) continue;
        snprintf(want, sizeof(want), "%05u", n++);
        assert_true(slice_eq(item.row->ck, slice_str(want))); /* no number is left out before another */
    }
    eng_scan_close(s);
    return n;
}

static void test_restore_while_writes_go_on(void **state) {
    (void)state;
    struct world *w = begin(true, false, 51);
    struct writer writers[WRITERS];
    pthread_t threads[WRITERS];
    must(w, eng_history_begin(w->eng, TABLE, HISTORY, true, 0, &w->e));
    for (uint32_t i = 0; i < WRITERS; i++) {
        writers[i] = (struct writer){.w = w, .part = i};
        assert_int_equal(0, pthread_create(&threads[i], NULL, write_numbers, &writers[i]));
    }
    for (int round = 0; round < 12; round++) {
        uint32_t before[WRITERS];
        for (uint32_t i = 0; i < WRITERS; i++) before[i] = atomic_load(&writers[i].acknowledged);
        int64_t at_us = w->now_us;
        must(w, eng_history_restore(w->eng, HISTORY, at_us, RESTORED, &w->e));
        for (uint32_t i = 0; i < WRITERS; i++) assert_true(count_rows(w, RESTORED, i) >= before[i]);
        if (round % 4 == 3) must(w, eng_history_roll(w->eng, HISTORY, at_us, &w->e));
    }
    for (uint32_t i = 0; i < WRITERS; i++) pthread_join(threads[i], NULL);
    must(w, eng_history_restore(w->eng, HISTORY, w->now_us, RESTORED, &w->e));
    for (uint32_t i = 0; i < WRITERS; i++) assert_int_equal(COUNTED, count_rows(w, RESTORED, i));
    end(w);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_memory_restores_earlier_rows),
        cmocka_unit_test(test_rocksdb_restores_earlier_rows),
        cmocka_unit_test(test_history_outlives_its_table),
        cmocka_unit_test(test_an_interrupted_roll_loses_no_history),
        cmocka_unit_test(test_writes_after_the_clock_went_back_are_kept),
        cmocka_unit_test(test_clock_that_steps_back_keeps_the_order_of_commits),
        cmocka_unit_test(test_history_begins_no_earlier_than_requested),
        cmocka_unit_test(test_restore_while_writes_go_on),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
