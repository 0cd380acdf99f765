/* The history of the live page: rings, a restart, a damaged file, the bound of tables, cookies. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>
#include <fcntl.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "server/page/history.h"
#include "server/page/session.h"
#include "server/page/statement.h"

enum { S = 1000000, BEGIN = 14400 * 125000 /* where a slot of each ring begins */ };

static _Atomic int64_t now_us;
static int64_t test_wall(struct clock *c) {
    (void)c;
    return now_us;
}
static struct clock test_clock = {.wall_us = test_wall, .mono_us = test_wall};

static void assert_near(double is, double due, double relative) {
    if (fabs(is - due) > relative * fabs(due)) fail_msg("%g is not %g", is, due);
}

/* ---- rings ---- */

static void test_codes_are_as_exact_as_they_say(void **state) {
    (void)state;
    for (double v = 0.0625; v < 500000; v *= 1.013) assert_near(ring_value(ring_code(v, 1), 1), v, 0.032);
    for (double v = 0.001; v < 500000000; v *= 1.013) assert_near(ring_value(ring_code(v, 2), 2), v, 0.0003);
    assert_int_equal(ring_code(0, 1), 0);
    assert_int_equal(ring_code(NAN, 2), 0);
    assert_true(ring_value(0, 2) == 0);
    assert_int_equal(ring_code(1e30, 1), UINT8_MAX); /* more than the most is the most */
}

/* Two figures: a rate and a gauge. */
static struct rings open_rings(uint8_t *image) {
    struct rings r;
    struct err e = {0};
    assert_int_equal(rings_init(&r, 2, 2, 1 << 1, image, &e), 0);
    return r;
}

static void test_each_ring_keeps_mean_and_maximum(void **state) {
    uint8_t *image = calloc(1, rings_bytes(2, 2));
    struct rings r = open_rings(image);
    float mean[2], most[2];
    (void)state;
    for (uint32_t s = 0; s < 60; s += 2) { /* 30 of 60 seconds have requests */
        const float values[2] = {s == 20 ? 310 : 10, 4};
        rings_add(&r, BEGIN + s, values);
    }
    assert_true(rings_read(&r, 0, BEGIN + 20, BEGIN + 60, mean, most));
    assert_near(mean[0], 310, 0.001);
    assert_false(rings_read(&r, 0, BEGIN + 21, BEGIN + 60, mean, most));
    for (int closed = 0; closed < 2; closed++) { /* the minute is open, then closed by a later second */
        assert_true(rings_read(&r, 1, BEGIN / 60, BEGIN + 60, mean, most));
        assert_near(mean[0], (310 + 29 * 10) / 60.0, 0.001);
        assert_near(most[0], 310, 0.001);
        assert_near(mean[1], 4, 0.001); /* a gauge: of the seconds that have it */
        rings_add(&r, BEGIN + 60, (float[2]){1, 1});
    }
    assert_true(rings_read(&r, 5, BEGIN / 14400, BEGIN + 14400, mean, most));
    assert_near(mean[0], (310 + 29 * 10 + 2) / 14400.0, 0.001);
    assert_true(rings_read(&r, 1, BEGIN / 60 + 1, BEGIN + 61, mean, most)); /* of the two seconds so far */
    assert_near(mean[0], 1, 0.001);
    rings_fini(&r);
    free(image);
}

static void test_a_ring_forgets_what_is_older_than_it(void **state) {
    uint8_t *image = calloc(1, rings_bytes(2, 2));
    struct rings r = open_rings(image);
    float mean[2], most[2];
    (void)state;
    for (uint32_t minute = 0; minute < 200; minute++) rings_add(&r, BEGIN + minute * 60, (float[2]){1, 1});
    assert_false(rings_read(&r, 1, BEGIN / 60 + 139, BEGIN + 200 * 60, mean, most));
    assert_true(rings_read(&r, 1, BEGIN / 60 + 140, BEGIN + 200 * 60, mean, most));
    assert_true(rings_read(&r, 2, BEGIN / 120, BEGIN + 200 * 60, mean, most));
    rings_add(&r, BEGIN, (float[2]){1000, 1}); /* a clock that was set back changes nothing */
    assert_true(rings_read(&r, 2, BEGIN / 120 + 99, BEGIN + 200 * 60, mean, most));
    assert_true(most[0] < 2);
    rings_fini(&r);
    free(image);
}

static void test_the_heaviest_partitions_are_kept(void **state) {
    enum { MANY = 1000 };
    struct parts *p = calloc(1, sizeof(*p));
    struct hot_partition rows[PARTS_OPEN];
    (void)state;
    p->image = calloc(RING_SLOTS, PARTS_SLOT_BYTES);
    p->keys = calloc(PART_KEYS, sizeof(*p->keys));
    for (int64_t i = 0; i < MANY; i++) /* light ones, and an innocent heavy one beside them */
        parts_add(p, BEGIN, i, slice_str("light"), (float[RANGE_FIGURES]){2, 0, 0, 1});
    parts_add(p, BEGIN, -7, slice_str("heavy"), (float[RANGE_FIGURES]){0, 900, 5, 900});
    parts_add(p, BEGIN + 3600 * 24, 1, slice_str("later"), (float[RANGE_FIGURES]){2, 0, 0, 1}); /* closes the slots */
    assert_int_equal(parts_read(p, 1, BEGIN / 60, BEGIN + 3600, rows), PARTS_KEPT);
    assert_int_equal(rows[0].token, -7);
    assert_near(rows[0].most[RANGE_WRITE_UNITS], 900, 0.001);
    assert_near(rows[0].mean[RANGE_WRITE_UNITS], 900 / 60.0, 0.001);
    const struct part_limits guided = {3000, 1000, 2000}, unguided = {3000, 1000, 0};
    assert_near(part_share(rows[0].most, &guided), 0.9, 0.001);
    /* entities count for the guidance alone */
    assert_near(part_share((float[RANGE_FIGURES]){0, 10, 0, 5000}, &guided), 2.5, 0.001);
    assert_near(part_share((float[RANGE_FIGURES]){0, 10, 0, 5000}, &unguided), 0.01, 0.001);
    assert_memory_equal(parts_key(p, -7)->key, "heavy", 5);
    assert_null(parts_key(p, 1 - MANY));
    free(p->image);
    free(p->keys);
    free(p);
}

/* ---- history ---- */

static void post(struct ledger *l, uint32_t object, int64_t token, uint32_t units) {
    char name[16];
    snprintf(name, sizeof(name), "t%u", object);
    struct op_write w = {.item = {.object = object, .one_partition = true, .keyspace = "k", .table = name,
                                  .token = token, .write_units = units, .entities = 1},
                         .key = slice_str("key"), .has_row = true};
    struct op_cost cost = {.writes = &w, .keyspace = "k", .table = name, .object = object};
    struct ledger_request q = {.cost = &cost, .operation = OPERATION_INSERT, .statements = 1, .now_us = now_us,
                               .took_us = 2000, .statement_id = 1, .text = slice_str("INSERT")};
    ledger_post(l, 0, &q);
}

struct world {
    struct ledger *ledger;
    struct page_history *history;
    char folder[32], path[64];
};

static struct page_history *open_history(struct world *w) {
    struct err e = {0};
    const struct history_options o = {.ledger = w->ledger, .clock = &test_clock, .path = w->path};
    struct page_history *h = history_open_still(&o, &e);
    assert_non_null(h);
    return h;
}

static struct world open_world(void) {
    struct world w;
    struct err e = {0};
    now_us = (int64_t)BEGIN * S + S / 2;
    snprintf(w.folder, sizeof(w.folder), "/tmp/history-XXXXXX");
    assert_non_null(mkdtemp(w.folder));
    snprintf(w.path, sizeof(w.path), "%s/history.tally", w.folder);
    w.ledger = ledger_open(&(struct ledger_options){.clock = &test_clock, .n_shards = 2}, &e);
    assert_non_null(w.ledger);
    w.history = open_history(&w);
    return w;
}

static void close_world(struct world *w) {
    if (w->history) history_close(w->history);
    ledger_close(w->ledger);
    unlink(w->path);
    rmdir(w->folder);
}

/* The next second, in which the history is sampled. */
static void tick(struct world *w) {
    now_us += S;
    history_sample(w->history);
}

/* A second of 600 write units on a partition of the table. */
static void busy_second(struct world *w, uint32_t object) {
    for (int i = 0; i < 6; i++) post(w->ledger, object, INT64_MAX, 100);
    tick(w);
}

static void check_minute(struct world *w) {
    float mean[SERIES_N], most[SERIES_N], ranges[2][SHARD_RANGES * RANGE_FIGURES];
    struct hot_partition rows[PARTS_OPEN];
    const struct history_table *t = history_find(w->history, 1);
    uint32_t last = 255 * RANGE_FIGURES + RANGE_WRITE_UNITS;
    assert_non_null(t);
    assert_true(rings_read(&t->series, 1, BEGIN / 60, BEGIN + 600, mean, most));
    assert_near(most[SERIES_WRITE_UNITS], 600, 0.001);
    assert_near(mean[SERIES_WRITE_UNITS], 600 * 30 / 60.0, 0.001);
    assert_near(most[SERIES_P99], 2, 0.13);
    assert_true(rings_read(&t->ranges, 1, BEGIN / 60, BEGIN + 600, ranges[0], ranges[1]));
    assert_near(ranges[1][last], 600, 0.033);
    assert_true(ranges[1][last - RANGE_FIGURES] == 0);
    assert_int_equal(parts_read(&t->parts, 1, BEGIN / 60, BEGIN + 600, rows), 1);
    assert_near(rows[0].most[RANGE_WRITE_UNITS], 600, 0.001);
    assert_memory_equal(parts_key(&t->parts, INT64_MAX)->key, "key", 3);
}

/* 30 seconds of one minute; the first request only makes the history watch the table. */
static void busy_minute(struct world *w) {
    post(w->ledger, 1, INT64_MAX, 1);
    tick(w);
    for (int i = 0; i < 30; i++) busy_second(w, 1);
    for (int i = 0; i < 60; i++) tick(w);
}

static void test_history_outlives_a_restart(void **state) {
    struct world w = open_world();
    struct stat st;
    (void)state;
    busy_minute(&w);
    check_minute(&w);
    history_close(w.history);
    assert_int_equal(stat(w.path, &st), 0);
    assert_int_equal(st.st_mode & 0777, 0600);
    w.history = open_history(&w);
    check_minute(&w);
    busy_second(&w, 1); /* goes on */
    busy_second(&w, 1);
    check_minute(&w);
    close_world(&w);
}

static void test_history_that_was_saved_outlives_a_kill(void **state) {
    struct world w = open_world();
    (void)state;
    busy_minute(&w);
    struct page_history *killed = w.history; /* closed without its file */
    close(killed->fd);
    killed->fd = -1;
    w.history = open_history(&w);
    check_minute(&w);
    history_close(killed);
    close_world(&w);
}

static void change_byte(const char *path, off_t at) {
    uint8_t byte;
    int fd = open(path, O_RDWR);
    assert_int_equal(pread(fd, &byte, 1, at), 1);
    byte ^= 0x55;
    assert_int_equal(pwrite(fd, &byte, 1, at), 1);
    close(fd);
}

static void test_damaged_parts_are_left_out(void **state) {
    struct world w = open_world();
    float mean[SERIES_N], most[SERIES_N];
    (void)state;
    busy_minute(&w);
    const struct history_table *t = history_find(w.history, 1);
    size_t slot = (size_t)(t->series.image - t->image) +
                  ring_at(1, BEGIN / 60) * rings_slot_bytes(SERIES_N, t->series.width);
    history_close(w.history);
    change_byte(w.path, (off_t)(4096 + slot + 40));
    w.history = open_history(&w);
    t = history_find(w.history, 1);
    assert_non_null(t);
    assert_false(rings_read(&t->series, 1, BEGIN / 60, BEGIN + 600, mean, most));
    assert_true(rings_read(&t->series, 2, BEGIN / 120, BEGIN + 600, mean, most)); /* the others stay */
    history_close(w.history);
    change_byte(w.path, 3); /* the head: the history begins anew */
    w.history = open_history(&w);
    assert_null(history_find(w.history, 1));
    busy_minute(&w);
    assert_non_null(history_find(w.history, 1));
    close_world(&w);
}

static void test_a_busy_table_takes_the_place_of_the_least_busy_one(void **state) {
    struct world w = open_world();
    (void)state;
    for (uint32_t t = 1; t <= HISTORY_TABLES; t++) { /* each watched, with more load than the one before */
        post(w.ledger, t, 5, 100 * t);
        tick(&w);
    }
    for (uint32_t t = 1; t <= HISTORY_TABLES; t++) assert_non_null(history_find(w.history, t));
    const uint32_t light = 100, heavy = 101;
    for (int i = 0; i < 130; i++) {
        for (uint32_t t = 1; t <= HISTORY_TABLES; t++) post(w.ledger, t, 5, 100 * t);
        post(w.ledger, light, 5, 1);
        if (i > 60) post(w.ledger, heavy, 5, 10000);
        tick(&w);
    }
    assert_null(history_find(w.history, light));
    assert_non_null(history_find(w.history, heavy));
    assert_null(history_find(w.history, 1)); /* had the least load */
    for (uint32_t t = 2; t <= HISTORY_TABLES; t++) assert_non_null(history_find(w.history, t));
    close_world(&w);
}

/* ---- requests ---- */

static void test_cookies_and_paging_states_are_read_strictly(void **state) {
    char token[SESSION_TOKEN + 1], cookie[256];
    const char *digits = "0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef";
    struct buf out;
    (void)state;
    snprintf(cookie, sizeof(cookie), "a=b; tally_session=%s; c=d", digits);
    assert_true(session_token(cookie, token));
    assert_string_equal(token, digits);
    assert_false(session_token(NULL, token));
    assert_false(session_token("", token));
    assert_false(session_token("tally_session=", token));
    assert_false(session_token("x_tally_session=0; ;;", token));
    snprintf(cookie, sizeof(cookie), "tally_session=%sf", digits); /* too long */
    assert_false(session_token(cookie, token));
    buf_init(&out, 0);
    assert_int_equal(page_statement_state("00ff", 2, &out), 0);
    assert_memory_equal(out.p, "\x00\xff", 2);
    assert_int_equal(page_statement_state("00ff0", 9, &out), -1);
    assert_int_equal(page_statement_state("00FF", 9, &out), -1);
    assert_int_equal(page_statement_state("00ff00", 2, &out), -1);
    buf_fini(&out);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_codes_are_as_exact_as_they_say),
        cmocka_unit_test(test_each_ring_keeps_mean_and_maximum),
        cmocka_unit_test(test_a_ring_forgets_what_is_older_than_it),
        cmocka_unit_test(test_the_heaviest_partitions_are_kept),
        cmocka_unit_test(test_history_outlives_a_restart),
        cmocka_unit_test(test_history_that_was_saved_outlives_a_kill),
        cmocka_unit_test(test_damaged_parts_are_left_out),
        cmocka_unit_test(test_a_busy_table_takes_the_place_of_the_least_busy_one),
        cmocka_unit_test(test_cookies_and_paging_states_are_read_strictly),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
