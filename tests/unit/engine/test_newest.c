/* Whole rows are put instead of merged: whatever the order and the threads, the rows are those that merging gives. */
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/murmur3.h"
#include "engine/stats.h"
#include "engine/table.h"
#include "tests/unit/folder.h"

enum { TABLE = 20, NOW = 1000, COLUMNS = 3, ROWS = 400, THREADS = 4, WRITES = 1200 };

/* A write that can be made anew from its fields. */
struct step {
    int row;
    enum { WHOLE, ONE, DELETE, ADDED /* a column that writers of whole rows do not know */, KINDS } kind;
    uint32_t column;
    int64_t ts;
    uint32_t value;
};

static struct eng *open_engine(const char *dir) {
    struct err e = {0};
    struct eng_options o = {.data_dir = dir,
                            .durability = ENG_PERIODIC,
                            .clock = &clock_real,
                            .memtable_bytes = 1 << 20,
                            .row_cache_bytes = 64 << 10};
    struct eng *eng = eng_open(&o, &e);
    if (!eng) fail_msg("%s", e.text);
    return eng;
}

static struct eng_part part(void) {
    return (struct eng_part){.table = TABLE, .token = murmur3_token(slice_str("p")), .key = slice_str("p")};
}

struct row_name { char text[8]; };

static struct row_name row_name(int row) {
    struct row_name name;
    snprintf(name.text, sizeof(name.text), "%03d", row);
    return name;
}

/* merged: never as a whole row. */
static void apply(struct eng_batch *b, const struct step *s, bool merged) {
    struct eng_part p = part();
    struct eng_cell cells[COLUMNS];
    struct eng_row row;
    struct err e = {0};
    struct row_name name = row_name(s->row);
    char value[16];
    snprintf(value, sizeof(value), "%u", s->value);
    eng_row_init(&row, ENG_ROW, slice_str(name.text));
    row.cells = cells;
    row.n_cells = s->kind == WHOLE ? COLUMNS : s->kind == DELETE ? 0 : 1;
    for (uint32_t i = 0; i < row.n_cells; i++)
        cells[i] = (struct eng_cell){.column = i, .ts = s->ts, .expiry = ENG_NO_EXPIRY, .value = slice_str(value)};
    if (s->kind == ONE) cells[0].column = s->column;
    if (s->kind == ADDED) cells[0].column = COLUMNS;
    if (s->kind == WHOLE) row.live_ts = s->ts;
    if (s->kind == WHOLE && !merged) row.covers_below = COLUMNS;
    if (s->kind == DELETE) {
        row.del_ts = s->ts;
        row.del_at = NOW;
    }
    assert_int_equal(eng_batch_row(b, &p, &row, NULL, &e), 0);
}

static void commit(struct eng_batch *b) {
    uint64_t seq;
    struct err e = {0};
    assert_int_equal(eng_batch_commit(b, &seq, &e), 0);
}

static void print_row(struct eng *eng, int row, struct buf *out) {
    struct arena a;
    struct eng_row r;
    struct err e = {0};
    struct eng_part p = part();
    struct row_name name = row_name(row);
    arena_init(&a, 4096, 0);
    int got = eng_row_get(eng, ENG_TIER_ANY, &p, ENG_ROW, slice_str(name.text), NOW, &a, &r, NULL, &e);
    assert_true(got >= 0);
    buf_printf(out, "%s %lld", name.text, got ? (long long)r.live_ts : -1LL);
    for (uint32_t i = 0; got && i < r.n_cells; i++)
        buf_printf(out, " %u@%lld=%.*s", r.cells[i].column, (long long)r.cells[i].ts, SLICE_FMT(r.cells[i].value));
    buf_u8(out, '\n');
    arena_fini(&a);
}

static void assert_same_rows(struct eng *a, struct eng *b) {
    struct buf x, y;
    buf_init(&x, 0);
    buf_init(&y, 0);
    for (int i = 0; i < ROWS; i++) print_row(a, i, &x), print_row(b, i, &y);
    buf_u8(&x, 0);
    buf_u8(&y, 0);
    assert_string_equal((char *)x.p, (char *)y.p);
    buf_fini(&x);
    buf_fini(&y);
}

struct writer {
    struct eng *eng;
    pthread_t thread;
    uint64_t random;
    bool deletes; /* else a whole row may be put at any time */
    _Atomic int64_t *clock;
    struct step steps[WRITES];
};

static uint64_t next_random(struct writer *w) {
    w->random ^= w->random << 13, w->random ^= w->random >> 7, w->random ^= w->random << 17;
    return w->random;
}

/* Timestamps that rise over all threads, and some from the past or the future. */
static void make_step(struct writer *w, struct step *s) {
    int64_t now = 1000 + 2 * atomic_fetch_add(w->clock, 1);
    uint64_t r = next_random(w);
    *s = (struct step){.row = (int)(r % ROWS),
                       .column = (uint32_t)(r >> 8) % COLUMNS,
                       .value = (uint32_t)(r >> 16) % 50};
    s->kind = (r >> 24) % 8 < 5 ? WHOLE : (r >> 24) % 8 == 5 && w->deletes ? DELETE : ONE;
    s->ts = r >> 32 & 3 ? now : now + (int64_t)((r >> 40) % 4000) - 2000;
}

static void *write_steps(void *arg) {
    struct writer *w = arg;
    struct eng_batch *b = eng_batch_new(w->eng);
    for (int i = 0; i < WRITES; i++) {
        make_step(w, &w->steps[i]);
        apply(b, &w->steps[i], false);
        if (next_random(w) % 3 == 0) commit(b);
    }
    commit(b);
    eng_batch_free(b);
    return NULL;
}

struct reclaimer { struct eng *eng; _Atomic bool stop; };

static void *reclaim_always(void *arg) {
    struct reclaimer *r = arg;
    struct err e = {0};
    while (!r->stop)
        if (eng_reclaim(r->eng, &e)) return "failed";
    return NULL;
}

/* And beside the writers the reclaimer, which finds nothing old enough and rewrites what deletions cover. */
static void check_threads(const char *dir, bool deletes) {
    struct writer *writers = calloc(THREADS, sizeof(*writers));
    _Atomic int64_t clock = 0;
    struct eng *eng = open_engine(dir), *model = open_engine(NULL);
    struct eng_batch *b = eng_batch_new(model);
    struct reclaimer reclaimer = {.eng = eng};
    pthread_t thread;
    void *failed;
    eng_table_set(eng, TABLE, 1000000000000);
    assert_int_equal(pthread_create(&thread, NULL, reclaim_always, &reclaimer), 0);
    for (int i = 0; i < THREADS; i++) {
        writers[i].eng = eng;
        writers[i].clock = &clock;
        writers[i].deletes = deletes;
        writers[i].random = 88172645463325252ull + (uint64_t)i;
        assert_int_equal(pthread_create(&writers[i].thread, NULL, write_steps, &writers[i]), 0);
    }
    for (int i = 0; i < THREADS; i++) {
        pthread_join(writers[i].thread, NULL);
        for (int k = 0; k < WRITES; k++) apply(b, &writers[i].steps[k], true);
    }
    commit(b);
    reclaimer.stop = true;
    pthread_join(thread, &failed);
    assert_null(failed);
    assert_same_rows(eng, model);
    eng_batch_free(b);
    eng_close(model);
    eng_close(eng);
    free(writers);
}

static void check_stores(bool deletes) {
    char dir[FOLDER_PATH];
    folder_make(dir);
    check_threads(NULL, deletes);
    check_threads(dir, deletes);
    folder_remove(dir);
}

static void test_whole_rows_of_many_threads_lose_no_write(void **state) {
    (void)state;
    check_stores(false);
}

static void test_whole_rows_and_deletions_of_many_threads_lose_no_write(void **state) {
    (void)state;
    check_stores(true);
}

static void write_both(struct eng *eng, struct eng *model, const struct step *s) {
    struct eng_batch *a = eng_batch_new(eng), *b = eng_batch_new(model);
    apply(a, s, false);
    apply(b, s, true);
    commit(a);
    commit(b);
    eng_batch_free(a);
    eng_batch_free(b);
}

static void test_a_whole_row_keeps_a_column_added_later(void **state) {
    (void)state;
    struct eng *eng = open_engine(NULL), *model = open_engine(NULL);
    const struct step steps[] = {{.kind = WHOLE, .ts = 10, .value = 1},
                                 {.kind = ADDED, .ts = 20, .value = 2},
                                 {.kind = WHOLE, .ts = 30, .value = 3}};
    for (size_t i = 0; i < ARRAY_LEN(steps); i++) write_both(eng, model, &steps[i]);
    assert_same_rows(eng, model);
    eng_close(eng);
    eng_close(model);
}

/* The first write of a row puts it, and so does every newer one that covers it. */
static void test_whole_rows_are_put(void **state) {
    (void)state;
    struct eng *eng = open_engine(NULL);
    struct eng_batch *b = eng_batch_new(eng);
    for (int i = 0; i < 20; i++) {
        apply(b, &(struct step){.row = i % 10, .kind = WHOLE, .ts = 100 + i}, false);
        commit(b);
    }
    assert_int_equal(eng_stat(eng, ENG_STAT_PUTS), 20);
    apply(b, &(struct step){.row = 1, .kind = WHOLE, .ts = 50}, false); /* not the newest */
    apply(b, &(struct step){.row = 2, .kind = ONE, .ts = 500}, false);
    apply(b, &(struct step){.row = 3, .kind = WHOLE, .ts = 500}, false);
    apply(b, &(struct step){.row = 3, .kind = WHOLE, .ts = 501}, false); /* twice in a batch */
    commit(b);
    assert_int_equal(eng_stat(eng, ENG_STAT_PUTS), 20);
    assert_int_equal(eng_stat(eng, ENG_STAT_MERGES), 4);
    eng_batch_free(b);
    eng_close(eng);
}

/* A deletion covers a column that the table gets later; the whole row between the two must not have dropped it. */
static void test_whole_row_keeps_the_deletion_before_it(void **state) {
    (void)state;
    char dir[FOLDER_PATH];
    folder_make(dir);
    struct eng *model = open_engine(NULL);
    const struct step steps[] = {{.kind = DELETE, .ts = 10},
                                 {.kind = WHOLE, .ts = 100000000, .value = 1},
                                 {.kind = ADDED, .ts = 5, .value = 2}};
    for (size_t i = 0; i < ARRAY_LEN(steps); i++) {
        struct eng *eng = open_engine(dir);
        write_both(eng, model, &steps[i]);
        assert_same_rows(eng, model);
        eng_close(eng);
    }
    eng_close(model);
    folder_remove(dir);
}

static void test_whole_row_does_not_hide_what_an_earlier_run_wrote(void **state) {
    (void)state;
    char dir[FOLDER_PATH];
    folder_make(dir);
    struct eng *model = open_engine(NULL);
    const struct step steps[] = {{.kind = ONE, .column = 1, .ts = 5000000000, .value = 1},
                                 {.kind = WHOLE, .ts = 10, .value = 2},
                                 {.kind = ONE, .column = 2, .ts = INT64_MAX, .value = 3},
                                 {.kind = WHOLE, .ts = INT64_MAX, .value = 2}};
    for (size_t i = 0; i < ARRAY_LEN(steps); i++) {
        struct eng *eng = open_engine(dir);
        write_both(eng, model, &steps[i]);
        assert_same_rows(eng, model);
        eng_close(eng);
    }
    eng_close(model);
    folder_remove(dir);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_whole_rows_of_many_threads_lose_no_write),
        cmocka_unit_test(test_whole_rows_and_deletions_of_many_threads_lose_no_write),
        cmocka_unit_test(test_a_whole_row_keeps_a_column_added_later),
        cmocka_unit_test(test_whole_rows_are_put),
        cmocka_unit_test(test_whole_row_keeps_the_deletion_before_it),
        cmocka_unit_test(test_whole_row_does_not_hide_what_an_earlier_run_wrote),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
