/* Two engines on a shared store that answers late, loses answers and reports conflicts: no
 * acknowledged write is lost, no condition is violated, and a write may be repeated. */
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "tests/unit/engine/world.h"

enum { TABLE = 20, NOW = 1000, ENGINES = 2, THREADS = 4, PARTS = 3, ROWS = 6, COLUMNS = 2, NAME = 32 };

struct engines {
    struct eng *eng[ENGINES];
    struct err e;
};

static void open_engines(struct engines *w, const struct eng_test_faults *faults) {
    struct eng_options o = {.durability = ENG_FSYNC, .clock = &clock_real, .shared = true, .faults = faults};
    struct eng_test_faults of[ENGINES] = {*faults, *faults};
    for (int i = 0; i < ENGINES; i++) {
        of[i].seed += (uint64_t)i;
        o.faults = &of[i];
        o.beside = i ? w->eng[0] : NULL;
        w->eng[i] = eng_open(&o, &w->e);
        assert_non_null(w->eng[i]);
    }
}

static void close_engines(struct engines *w) {
    for (int i = 0; i < ENGINES; i++) eng_close(w->eng[i]);
}

static const char *const parts[PARTS] = {"p0", "p1", "p2"};

static struct eng_cell cell(uint32_t column, int64_t ts, int64_t *value) {
    struct slice bytes = slice_of((uint8_t *)value, 8);
    return (struct eng_cell){.column = column, .ts = ts, .expiry = ENG_NO_EXPIRY, .value = bytes};
}

/* The value of a cell of a row; -1: there is none. */
static int64_t number_in(const struct eng_row *row, uint32_t column) {
    int64_t value = -1;
    for (uint32_t i = 0; i < row->n_cells; i++)
        if (row->cells[i].column == column) memcpy(&value, row->cells[i].value.p, 8);
    return value;
}

static int get(struct eng *eng, int p, const char *ck, struct arena *a, struct eng_row *row) {
    struct err e = {0};
    struct eng_part part = part_of(TABLE, parts[p]);
    return eng_row_get(eng, ENG_TIER_ANY, &part, ENG_ROW, slice_str(ck), NOW, a, row, NULL, &e);
}

/* ---- conditions ---- */

enum { TIMES = 120 };

struct counter {
    struct eng *eng;
    int number;
    bool acknowledged[TIMES];
    int lost, refused;
    const char *failure;
};

static void marker_name(int thread, int i, char out[NAME]) { snprintf(out, NAME, "m%d.%03d", thread, i); }

/* Each try adds one to a number, and in the same batch a row that names the try. */
static void *add_ones(void *arg) {
    struct counter *c = arg;
    struct eng_part part = part_of(TABLE, parts[0]);
    struct eng_batch *b = eng_batch_new(c->eng);
    struct arena a;
    arena_init(&a, 4096, 0);
    for (int i = 0; i < TIMES && !c->failure; i++) {
        struct err e = {0};
        struct eng_row row;
        char name[NAME];
        uint64_t seq;
        arena_reset(&a);
        marker_name(c->number, i, name);
        eng_lock(c->eng, &part);
        int64_t value = get(c->eng, 0, "n", &a, &row) == 1 ? number_in(&row, 0) : 0, more = value + 1;
        struct eng_cell cells[] = {cell(0, row.newest_ts == ENG_NO_TS ? 1 : row.newest_ts + 1, &more)};
        struct eng_row n, marker;
        eng_row_init(&n, ENG_ROW, slice_str("n"));
        n.cells = cells;
        n.n_cells = 1;
        eng_row_init(&marker, ENG_ROW, slice_str(name));
        marker.live_ts = 1;
        if (eng_batch_row(b, &part, &n, NULL, &e) || eng_batch_row(b, &part, &marker, NULL, &e))
            c->failure = "no memory";
        int rc = eng_batch_commit(b, &seq, &e);
        eng_unlock(c->eng, &part);
        c->acknowledged[i] = !rc;
        if (rc && e.code != ERR_WRITE_TIMEOUT) c->failure = "a commit failed otherwise";
        if (rc) ++*(!strcmp(e.detail.write_type, "CAS") ? &c->refused : &c->lost);
    }
    arena_fini(&a);
    eng_batch_free(b);
    return NULL;
}

static void test_each_conditional_write_is_decided_on_the_one_before(void **state) {
    (void)state;
    struct engines w = {0};
    open_engines(&w, &(struct eng_test_faults){.seed = 7, .conflict_in = 11, .applied_in = 13, .not_applied_in = 17,
                                               .late_in = 5, .late_us = 50});
    struct counter c[THREADS] = {0};
    pthread_t t[THREADS];
    for (int i = 0; i < THREADS; i++) {
        c[i].eng = w.eng[i % ENGINES];
        c[i].number = i;
        assert_int_equal(pthread_create(&t[i], NULL, add_ones, &c[i]), 0);
    }
    int acknowledged = 0, present = 0, lost = 0, refused = 0;
    struct eng_row row;
    struct arena a;
    arena_init(&a, 4096, 0);
    for (int i = 0; i < THREADS; i++) pthread_join(t[i], NULL);
    for (int i = 0; i < THREADS; i++) {
        if (c[i].failure) fail_msg("%s", c[i].failure);
        lost += c[i].lost;
        refused += c[i].refused;
        for (int k = 0; k < TIMES; k++) {
            char name[NAME];
            marker_name(i, k, name);
            int there = get(w.eng[0], 0, name, &a, &row);
            assert_true(there >= c[i].acknowledged[k]); /* no acknowledged write is lost */
            acknowledged += c[i].acknowledged[k];
            present += there;
        }
    }
    assert_int_equal(get(w.eng[1], 0, "n", &a, &row), 1);
    assert_int_equal(number_in(&row, 0), present); /* none was decided on a number that another try has replaced */
    assert_true(acknowledged && lost && refused);
    assert_true(present > acknowledged && present < acknowledged + lost); /* of the lost answers, some were of writes */
    arena_fini(&a);
    close_engines(&w);
}

/* ---- writes without a condition ---- */

enum { OPS = 300 };
enum op_kind { SET, DELETE_ROW, DELETE_RANGE, DELETE_PARTITION, OP_KINDS };

struct op {
    enum op_kind kind;
    int p, from, to; /* rows [from, to] */
    uint32_t column;
    int64_t ts, value;
};

static void row_name(int r, char out[NAME]) { snprintf(out, NAME, "r%d", r); }

struct writer {
    struct eng *eng;
    unsigned seed;
    struct op ops[OPS];
    int lost;
    const char *failure;
};

static int add_op(struct eng_batch *b, struct op *o, struct err *e) {
    struct eng_part part = part_of(TABLE, parts[o->p]);
    char from[NAME], to[NAME];
    struct eng_cell c = cell(o->column, o->ts, &o->value);
    struct eng_row row;
    row_name(o->from, from);
    row_name(o->to, to);
    eng_row_init(&row, ENG_ROW, slice_str(from));
    struct eng_slice range = {.from = {.key = slice_str(from)}, .to = {.key = slice_str(to), .after = true}};
    switch (o->kind) {
    case SET: row.cells = &c; row.n_cells = 1; break;
    case DELETE_ROW: row.del_ts = o->ts; row.del_at = NOW; break;
    case DELETE_RANGE: return eng_batch_delete_range(b, &part, &range, o->ts, NOW, NULL, e);
    default: return eng_batch_delete_partition(b, &part, o->ts, NOW, NULL, e);
    }
    return eng_batch_row(b, &part, &row, NULL, e);
}

/* A write whose answer was lost is repeated until it is acknowledged, as a driver repeats what is
 * idempotent. */
static void *write_all(void *arg) {
    struct writer *w = arg;
    struct eng_batch *b = eng_batch_new(w->eng);
    for (int i = 0; i < OPS && !w->failure; i++) {
        for (int rc = -1; rc && !w->failure;) {
            struct err e = {0};
            uint64_t seq;
            if (add_op(b, &w->ops[i], &e)) w->failure = "a write is not taken";
            rc = eng_batch_commit(b, &seq, &e);
            if (rc && e.code != ERR_WRITE_TIMEOUT) w->failure = "a commit failed otherwise";
            w->lost += rc != 0;
        }
    }
    eng_batch_free(b);
    return NULL;
}

static void draw_ops(struct writer *w, int number) {
    for (int i = 0; i < OPS; i++) {
        int draw = rand_r(&w->seed) % 20;
        int a = rand_r(&w->seed) % ROWS, b = rand_r(&w->seed) % ROWS;
        /* timestamps of all threads differ, and now and then one is old */
        int64_t at = rand_r(&w->seed) % 8 ? i : rand_r(&w->seed) % (i + 1);
        w->ops[i] = (struct op){.kind = draw < 13 ? SET : draw < 16 ? DELETE_ROW : draw < 19 ? DELETE_RANGE
                                                                                             : DELETE_PARTITION,
                                .p = rand_r(&w->seed) % PARTS, .from = a < b ? a : b, .to = a < b ? b : a,
                                .column = (uint32_t)rand_r(&w->seed) % COLUMNS,
                                .ts = at * THREADS + number + 1, .value = rand_r(&w->seed)};
    }
}

/* The value that a cell has after all operations, in any order; -1: none. Of one thread's writes
 * with the same timestamp the one with the greater bytes counts, and a deletion before both. */
static int64_t model_value(const struct writer *w, int p, int r, uint32_t column) {
    int64_t deleted = ENG_NO_TS, ts = ENG_NO_TS, value = -1;
    for (int i = 0; i < THREADS; i++)
        for (int k = 0; k < OPS; k++) {
            const struct op *o = &w[i].ops[k];
            bool covers = o->kind == DELETE_PARTITION || (o->kind == DELETE_ROW && o->from == r) ||
                          (o->kind == DELETE_RANGE && o->from <= r && r <= o->to);
            if (o->p != p) continue;
            if (o->kind != SET && covers && o->ts > deleted) deleted = o->ts;
            bool newer = o->kind == SET && o->from == r && o->column == column && o->ts >= ts;
            if (!newer || (o->ts == ts && memcmp(&o->value, &value, 8) < 0)) continue;
            ts = o->ts;
            value = o->value;
        }
    return ts > deleted ? value : -1;
}

static void check_row(const struct writer *w, int p, int r, const struct eng_row *row) {
    for (uint32_t c = 0; c < COLUMNS; c++) assert_int_equal(row ? number_in(row, c) : -1, model_value(w, p, r, c));
}

/* Every row is as the model says, read alone and by a scan of all partitions. */
static void check(struct eng *eng, const struct writer *w) {
    struct arena a;
    struct err e = {0};
    struct eng_item item;
    bool seen[PARTS][ROWS] = {0};
    arena_init(&a, 4096, 0);
    for (int p = 0; p < PARTS; p++)
        for (int r = 0; r < ROWS; r++) {
            char name[NAME];
            struct eng_row row;
            row_name(r, name);
            int got = get(eng, p, name, &a, &row);
            assert_true(got >= 0);
            check_row(w, p, r, got ? &row : NULL);
        }
    struct eng_scan_spec spec = {.table = TABLE, .token_from = INT64_MIN, .token_to = INT64_MAX, .rows = true,
                                 .now = NOW};
    struct eng_scan *s = eng_scan_open(eng, ENG_TIER_ANY, &spec, NULL, &e);
    assert_non_null(s);
    int got;
    while ((got = eng_scan_next(s, &item, &e)) > 0) {
        if (item.kind != ENG_ITEM_ROW) continue;
        int p = item.part.key.p[1] - '0', r = item.row->ck.p[1] - '0';
        check_row(w, p, r, item.row);
        seen[p][r] = true;
    }
    assert_int_equal(got, 0);
    eng_scan_close(s);
    for (int p = 0; p < PARTS; p++)
        for (int r = 0; r < ROWS; r++)
            if (!seen[p][r]) check_row(w, p, r, NULL);
    arena_fini(&a);
}

static void test_writes_of_several_engines_reconcile_in_any_order(void **state) {
    (void)state;
    enum { ROUNDS = 4 };
    for (unsigned round = 0; round < ROUNDS; round++) {
        struct engines w = {0};
        open_engines(&w, &(struct eng_test_faults){.seed = round, .applied_in = 9, .not_applied_in = 9, .late_in = 40,
                                                   .late_us = 50});
        struct writer *writers = calloc(THREADS, sizeof(*writers));
        pthread_t t[THREADS];
        int lost = 0;
        for (int i = 0; i < THREADS; i++) {
            writers[i].eng = w.eng[i % ENGINES];
            writers[i].seed = round * THREADS + (unsigned)i;
            draw_ops(&writers[i], i);
            assert_int_equal(pthread_create(&t[i], NULL, write_all, &writers[i]), 0);
        }
        for (int i = 0; i < THREADS; i++) {
            pthread_join(t[i], NULL);
            if (writers[i].failure) fail_msg("%s", writers[i].failure);
            lost += writers[i].lost;
        }
        assert_true(lost > 0);
        for (int i = 0; i < ENGINES; i++) check(w.eng[i], writers);
        free(writers);
        close_engines(&w);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_each_conditional_write_is_decided_on_the_one_before),
        cmocka_unit_test(test_writes_of_several_engines_reconcile_in_any_order),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
