/* The ledger on a clock of the test's own: shards together, seconds and minutes, the file, tables that are dropped. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/steps.h"
#include "metering/ledger/ledger.h"

enum { S = 1000000 };

static _Atomic int64_t now_us;
static int64_t test_wall(struct clock *c) {
    (void)c;
    return now_us;
}
static struct clock test_clock = {.wall_us = test_wall, .mono_us = test_wall};

static struct ledger *open_ledger(unsigned n_shards, const char *path) {
    struct err e = {0};
    struct ledger_options o = {.clock = &test_clock, .n_shards = n_shards, .path = path};
    struct ledger *l = ledger_open(&o, &e);
    if (!l) fail_msg("%s", e.text);
    return l;
}

/* A write of so many units to a partition of a table. */
static void post_by(struct ledger *l, unsigned shard, uint64_t statement_id, uint32_t object, int64_t token,
                    uint32_t units) {
    struct op_write w = {.item = {.object = object,
                                  .one_partition = true,
                                  .keyspace = "k",
                                  .table = object == 1 ? "one" : "two",
                                  .token = token,
                                  .write_units = units,
                                  .entities = 1},
                         .key = slice_str("key"),
                         .has_row = true};
    struct op_cost cost = {.writes = &w, .keyspace = w.item.keyspace, .table = w.item.table, .object = object};
    struct ledger_request q = {.cost = &cost, .operation = OPERATION_INSERT, .statements = 1, .now_us = now_us,
                               .took_us = 100, .statement_id = statement_id, .text = slice_str("INSERT")};
    ledger_post(l, shard, &q);
}

static void post(struct ledger *l, unsigned shard, uint32_t object, int64_t token, uint32_t units) {
    post_by(l, shard, 0, object, token, units);
}

struct wanted {
    uint32_t object, n_tables;
    struct figures total;
    uint32_t last_second, last_minute;
};

static int look(void *arg, const struct table_stats *t, uint32_t second) {
    struct wanted *w = arg;
    w->n_tables++;
    if (t->object != w->object) return 0;
    w->total = t->total;
    const struct stats_second *s = stats_second(t, second - 1);
    const struct stats_minute *m = stats_minute(t, second / 60 - 1);
    w->last_second = s ? s->write_units : 0;
    w->last_minute = m ? (uint32_t)m->cell.f.n[FIGURE_WRITE_UNITS] : 0;
    return 0;
}

static struct wanted of(struct ledger *l, uint32_t object) {
    struct wanted w = {.object = object};
    assert_int_equal(ledger_tables(l, look, &w), 0);
    return w;
}

static void test_shards_come_together_by_second_and_minute(void **state) {
    (void)state;
    now_us = (int64_t)6000000 * S;
    struct ledger *l = open_ledger(3, NULL);
    for (unsigned shard = 0; shard < 3; shard++) post(l, shard, 1, 5, 10);
    assert_int_equal(of(l, 1).total.n[FIGURE_WRITE_UNITS], 30);
    assert_int_equal(of(l, 1).last_second, 0);
    now_us += S;
    post(l, 1, 1, 5, 1);
    assert_int_equal(of(l, 1).last_second, 30);
    now_us += 60 * S;
    assert_int_equal(of(l, 1).last_second, 0);
    assert_int_equal(of(l, 1).last_minute, 31);
    now_us += 60 * S;
    assert_int_equal(of(l, 1).last_minute, 0);
    assert_int_equal(of(l, 1).total.of[OPERATION_INSERT][OF_REQUESTS], 4);
    ledger_close(l);
}

/* Two writes of a batch on two tables, and an innocent one beside them. */
enum { ONE = 1, TWO = 2 };
static void post_batch(struct ledger *l, struct op_cost *cost, struct ledger_connection *c, uint64_t statement_id) {
    struct ledger_request q = {.cost = cost,
                               .operation = OPERATION_BATCH,
                               .statements = 1,
                               .now_us = now_us,
                               .took_us = 100,
                               .connection = c,
                               .statement_id = statement_id,
                               .text = slice_str("BATCH")};
    ledger_post(l, 0, &q);
}

static struct ledger_partition partition_of(struct ledger *l, uint32_t object) {
    size_t n;
    struct ledger_partition *p = ledger_partitions(l, &n), found = {.share = 0};
    for (size_t i = 0; i < n; i++)
        if (p[i].p.object == object) found = p[i];
    free(p);
    return found;
}

static uint64_t units_of_statement(struct ledger *l) {
    size_t n;
    struct ledger_statement *s = ledger_statements(l, &n);
    uint64_t units = n ? usage_all(&s[0].s.usage, USAGE_WRITE_UNITS) : 0;
    free(s);
    return units;
}

static uint64_t units_of_role(struct ledger *l, const char *name) {
    struct roles *r = ledger_roles(l);
    uint64_t units = 0;
    for (uint32_t i = 0; i < r->n; i++)
        if (!strcmp(r->list[i].name, name)) units = usage_all(&r->list[i].usage, USAGE_WRITE_UNITS);
    free(r);
    return units;
}

static void check_units(struct ledger *l, uint32_t object, uint64_t all, uint64_t statics) {
    const struct figures f = of(l, object).total;
    assert_int_equal(f.n[FIGURE_WRITE_UNITS], all);
    assert_int_equal(f.n[FIGURE_STATIC_WRITE_UNITS], statics);
    const struct ledger_partition p = partition_of(l, object);
    assert_int_equal(usage_all(&p.p.usage, USAGE_WRITE_UNITS), all);
    assert_in_range(usage_load(0, all), p.kept.load - p.kept.error, p.kept.load);
}

static void test_a_batch_that_fails_on_the_disk_is_taken_back_from_all_that_it_was_posted_to(void **state) {
    (void)state;
    now_us = (int64_t)6500000 * S;
    struct ledger *l = open_ledger(1, NULL);
    struct ledger_connection c = {.role = "writer"};
    ledger_connect(l, 0, &c);
    struct op_write second = {.item = {.object = TWO,
                                       .one_partition = true,
                                       .keyspace = "k",
                                       .table = "two",
                                       .token = 8,
                                       .write_units = 10,
                                       .static_units = 3,
                                       .entities = 1},
                              .key = slice_str("b"),
                              .has_row = true};
    struct op_write first = {.next = &second,
                             .item = {.object = ONE,
                                      .one_partition = true,
                                      .keyspace = "k",
                                      .table = "one",
                                      .token = 5,
                                      .write_units = 4,
                                      .entities = 1},
                             .key = slice_str("a"),
                             .has_row = true};
    struct op_cost cost = {.writes = &first, .keyspace = "k", .table = "one", .object = ONE};
    post(l, 0, 3, 9, 11); /* the innocent one */
    post_batch(l, &cost, &c, 77);
    struct ledger_posting posting = ledger_posting_of(&cost, OPERATION_BATCH, 77);
    post_batch(l, &cost, &c, 77);
    now_us += S;
    ledger_reverse(l, 0, now_us, &posting, &c);
    ledger_posting_fini(&posting);
    check_units(l, ONE, 4, 0);
    check_units(l, TWO, 10, 3);
    check_units(l, 3, 11, 0);
    assert_int_equal(units_of_statement(l), 14);
    assert_int_equal(units_of_role(l, "writer"), 14);
    const struct figures none = of(l, 0).total;
    assert_int_equal(none.of[OPERATION_BATCH][OF_REQUESTS], 1);
    assert_int_equal(none.of[OPERATION_BATCH][OF_SYSTEM_ERRORS], 1);
    ledger_disconnect(l, 0, &c);
    assert_int_equal(units_of_role(l, "writer"), 14);
    ledger_close(l);
}

static void test_time_that_goes_back_loses_nothing(void **state) {
    (void)state;
    now_us = (int64_t)7000000 * S;
    struct ledger *l = open_ledger(1, NULL);
    post(l, 0, 1, 5, 10);
    now_us -= (int64_t)5000 * S;
    post(l, 0, 1, 5, 10);
    assert_int_equal(of(l, 1).total.n[FIGURE_WRITE_UNITS], 20);
    ledger_close(l);
}

static void temporary(char path[64]) {
    snprintf(path, 64, "/tmp/ledger-XXXXXX");
    assert_non_null(mkdtemp(path));
    strcat(path, "/ledger.tally");
}

static void remove_all(char *path) {
    unlink(path);
    *strrchr(path, '/') = 0;
    rmdir(path);
}

static void test_the_file_brings_back_sums_and_minutes(void **state) {
    (void)state;
    char path[64];
    temporary(path);
    now_us = (int64_t)8000000 * S;
    for (int run = 1; run <= 5; run++) {
        struct ledger *l = open_ledger(2, path);
        assert_int_equal(of(l, 1).total.n[FIGURE_WRITE_UNITS], (run - 1) * 12);
        for (int minute = 0; minute < 3; minute++, now_us += 60 * S) {
            post(l, 0, 1, 5, 3);
            post(l, 1, 1, 5, 1);
        }
        ledger_close(l);
        now_us -= 60 * S;
        l = open_ledger(2, path);
        assert_int_equal(of(l, 1).total.n[FIGURE_WRITE_UNITS], run * 12);
        now_us += 60 * S;
        assert_int_equal(of(l, 1).last_minute, 4);
        ledger_close(l);
    }
    remove_all(path);
}

static void test_minutes_older_than_an_hour_stay_in_the_sum(void **state) {
    (void)state;
    char path[64];
    temporary(path);
    now_us = (int64_t)9000000 * S;
    struct ledger *l = open_ledger(1, path);
    for (int minute = 0; minute < 200; minute++, now_us += 60 * S) post(l, 0, 1, 5, 2);
    ledger_close(l);
    for (int i = 0; i < 3; i++) {
        l = open_ledger(1, path);
        assert_int_equal(of(l, 1).total.n[FIGURE_WRITE_UNITS], 400);
        ledger_close(l);
    }
    remove_all(path);
}

static void test_a_torn_end_is_cut_off_and_the_rest_counts(void **state) {
    (void)state;
    char path[64];
    temporary(path);
    now_us = (int64_t)10000000 * S;
    struct ledger *l = open_ledger(1, path);
    post(l, 0, 1, 5, 7);
    ledger_close(l);
    int fd = open(path, O_WRONLY | O_APPEND);
    assert_int_equal(write(fd, "\0\0\0\x40torn", 8), 8);
    close(fd);
    l = open_ledger(1, path);
    assert_int_equal(of(l, 1).total.n[FIGURE_WRITE_UNITS], 7);
    post(l, 0, 1, 5, 7);
    ledger_close(l);
    l = open_ledger(1, path);
    assert_int_equal(of(l, 1).total.n[FIGURE_WRITE_UNITS], 14);
    ledger_close(l);
    remove_all(path);
}

static int count_one(void *arg, const struct table_stats *t, uint32_t second) {
    (void)t, (void)second;
    ++*(int *)arg;
    return 0;
}

static int gone_tables(struct ledger *l) {
    int n = 0;
    ledger_gone(l, count_one, &n);
    return n;
}

/* The first minute that is kept of a table that is gone. */
static int take_gone(void *arg, const struct table_stats *t, uint32_t second) {
    struct cell *out = arg;
    for (uint32_t m = second / 60 - STATS_MINUTES + 1; m <= second / 60; m++)
        if (stats_minute(t, m)) *out = stats_minute(t, m)->cell;
    return 0;
}

static void test_minutes_of_a_dropped_table_are_kept_with_their_spans(void **state) {
    (void)state;
    char path[64];
    temporary(path);
    now_us = (int64_t)13000000 * S;
    struct ledger *l = open_ledger(1, path);
    post(l, 0, 1, 5, 7);
    post(l, 0, 1, 5, 2);
    ledger_drop(l, 1);
    for (int i = 0; i < 3; i++) {
        struct cell cell = {0};
        assert_int_equal(ledger_gone(l, take_gone, &cell), 0);
        assert_int_equal(cell.f.n[FIGURE_WRITE_UNITS], 9);
        assert_int_equal(cell.spans[SPAN_WRITE_UNITS].min, 2);
        assert_int_equal(cell.spans[SPAN_WRITE_UNITS].max, 7);
        assert_int_equal(cell.spans[SPAN_WRITE_UNITS].n, 2);
        assert_int_equal(ledger_dropped(l).n[FIGURE_WRITE_UNITS], 9);
        ledger_close(l);
        l = open_ledger(1, path);
    }
    for (unsigned object = 2; object < 2 + 3 * STATS_GONE; object++) {
        post(l, 0, object, 5, 1);
        ledger_drop(l, object);
    }
    assert_int_equal(gone_tables(l), STATS_GONE);
    ledger_close(l);
    remove_all(path);
}

static void test_a_dropped_table_leaves_the_book_and_stays_in_the_sum(void **state) {
    (void)state;
    char path[64];
    temporary(path);
    now_us = (int64_t)11000000 * S;
    struct ledger *l = open_ledger(2, path);
    post(l, 0, 1, 5, 7);
    post(l, 1, 1, 5, 7);
    post(l, 1, 2, 5, 3);
    ledger_drop(l, 1);
    for (int i = 0; i < 2; i++) {
        assert_int_equal(of(l, 1).total.n[FIGURE_WRITE_UNITS], 0);
        assert_int_equal(of(l, 1).n_tables, 1);
        assert_int_equal(ledger_dropped(l).n[FIGURE_WRITE_UNITS], 14);
        assert_int_equal(of(l, 2).total.n[FIGURE_WRITE_UNITS], 3);
        ledger_close(l);
        l = open_ledger(2, path);
    }
    ledger_close(l);
    remove_all(path);
}

static void test_heavy_partitions_of_shards_are_one(void **state) {
    (void)state;
    size_t n;
    now_us = (int64_t)12000000 * S;
    struct ledger *l = open_ledger(2, NULL);
    for (int i = 0; i < 3000; i++) {
        post(l, i % 2, 1, 77, 1);
        post(l, i % 2, 1, 1000 + i, 1);
    }
    struct ledger_partition *all = ledger_partitions(l, &n);
    assert_true(n > 500);
    assert_int_equal(all[0].p.token, 77);
    assert_int_equal(usage_all(&all[0].p.usage, USAGE_WRITE_UNITS), 3000);
    assert_in_range(3000 * 6, all[0].kept.load - all[0].kept.error, all[0].kept.load);
    assert_true(all[0].share > 0.49 && all[0].share < 0.6);
    assert_string_equal(all[0].table, "one");
    free(all);
    ledger_close(l);
}

/* One statement that every shard has, and EACH of its own in each. Returns how much work it was to merge them. */
static uint64_t merge_statements_of(unsigned shards) {
    enum { EACH = 100, SHARED = 7 };
    size_t n;
    uint64_t steps = 0;
    struct ledger *l = open_ledger(shards, NULL);
    for (unsigned shard = 0; shard < shards; shard++) {
        post_by(l, shard, SHARED, 1, 5, 1000);
        for (uint64_t i = 1; i <= EACH; i++)
            post_by(l, shard, (shard * EACH + i) * UINT64_C(0x9e3779b97f4a7c15), 1, 5, 1);
    }
    free(ledger_statements(l, &n)); /* what waits is counted by now */
#ifdef TALLY_STEPS
    steps -= steps_of_thread();
#endif
    struct ledger_statement *all = ledger_statements(l, &n);
#ifdef TALLY_STEPS
    steps += steps_of_thread();
#endif
    assert_in_range(n, shards * EACH * 3 / 4, shards * EACH + 1);
    assert_int_equal(all[0].kept.key, SHARED);
    assert_int_equal(usage_all(&all[0].s.usage, USAGE_WRITE_UNITS), 1000 * shards);
    assert_in_range(1000 * shards * 6, all[0].kept.load - all[0].kept.error, all[0].kept.load);
    for (size_t i = 1; i < n; i++) {
        assert_true(all[i].kept.load <= all[i - 1].kept.load);
        assert_int_equal(usage_all(&all[i].s.usage, USAGE_WRITE_UNITS), 1);
    }
    free(all);
    ledger_close(l);
    return steps;
}

/* All pairs would be 28 times as many comparisons. */
static void test_merging_statements_costs_each_of_them_the_same(void **state) {
    (void)state;
    now_us = (int64_t)12500000 * S;
    uint64_t of_two = merge_statements_of(2), of_eight = merge_statements_of(8);
    assert_in_range(of_eight, 0, 6 * of_two);
}

/* As a sum over all that is kept, and of partition 77. */
static void check_partitions(struct ledger *l, uint64_t units, uint64_t hot) {
    size_t n;
    uint64_t sum = 0, found = 0;
    struct ledger_partition *all = ledger_partitions(l, &n);
    for (size_t i = 0; i < n; i++) {
        sum += usage_all(&all[i].p.usage, USAGE_WRITE_UNITS);
        if (all[i].p.token == 77) found = usage_all(&all[i].p.usage, USAGE_WRITE_UNITS);
        assert_true(all[i].kept.load >= 6 * usage_all(&all[i].p.usage, USAGE_WRITE_UNITS));
    }
    if (n) assert_memory_equal(all[0].p.key, "key", 3);
    free(all);
    assert_int_equal(sum, units);
    assert_int_equal(found, hot);
}

static void test_partitions_and_statements_outlive_a_restart_with_fewer_threads_too(void **state) {
    (void)state;
    static const unsigned shards[] = {3, 3, 1, 2, 1};
    char path[64];
    uint64_t runs = 0;
    temporary(path);
    now_us = (int64_t)14000000 * S;
    for (size_t run = 0; run < ARRAY_LEN(shards); run++) {
        struct ledger *l = open_ledger(shards[run], path);
        check_partitions(l, runs * 110, runs * 100);
        for (int i = 0; i < 10; i++) {
            post(l, (unsigned)i % shards[run], 1, 77, 10);
            post(l, (unsigned)i % shards[run], 1, i, 1);
        }
        runs++;
        check_partitions(l, runs * 110, runs * 100);
        ledger_close(l);
    }
    for (int i = 0; i < 2; i++) { /* a merge is no matter of how often one looks */
        struct ledger *l = open_ledger(1, path);
        check_partitions(l, runs * 110, runs * 100);
        ledger_close(l);
    }
    remove_all(path);
}

static void connect_and_post(struct ledger *l, const char *role, int requests) {
    struct ledger_connection c = {0};
    snprintf(c.role, sizeof(c.role), "%s", role);
    ledger_connect(l, 0, &c);
    struct op_read r = {.item = {.object = 1, .keyspace = "k", .table = "one", .read_halves = 3}};
    struct op_cost cost = {.reads = &r, .keyspace = "k", .table = "one", .object = 1};
    struct ledger_request q = {
        .cost = &cost, .operation = OPERATION_SELECT, .statements = 2, .now_us = now_us, .connection = &c};
    for (int i = 0; i < requests; i++) ledger_post(l, 0, &q);
    ledger_disconnect(l, 0, &c);
}

static void test_roles_outlive_a_restart(void **state) {
    (void)state;
    char path[64];
    temporary(path);
    now_us = (int64_t)15000000 * S;
    for (uint64_t run = 1; run <= 3; run++) {
        struct ledger *l = open_ledger(2, path);
        connect_and_post(l, "alice", 10);
        connect_and_post(l, "bob", 1);
        struct roles *roles = ledger_roles(l);
        assert_int_equal(roles->n, 2);
        assert_string_equal(roles->list[0].name, "alice");
        assert_int_equal(usage_all(&roles->list[0].usage, USAGE_REQUESTS), 20 * run);
        assert_int_equal(usage_all(&roles->list[0].usage, USAGE_READ_HALVES), 30 * run);
        assert_int_equal(usage_all(&roles->list[1].usage, USAGE_READ_HALVES), 3 * run);
        assert_int_equal(roles->list[0].usage.in_second.n[USAGE_REQUESTS], 20);
        free(roles);
        ledger_close(l);
    }
    remove_all(path);
}

static void note_of_limits(void *arg) { ledger_note_limits(arg, 1, "k", "one", slice_str("noted")); }

static int see_note(void *arg, const struct table_stats *t, struct slice state) {
    assert_int_equal(t->object, 1);
    assert_true(slice_eq(state, slice_str("noted")));
    ++*(int *)arg;
    return 0;
}

static void test_what_the_limiter_notes_is_kept_until_its_table_is_dropped(void **state) {
    (void)state;
    char path[64];
    temporary(path);
    now_us = (int64_t)16000000 * S;
    for (int run = 0; run < 4; run++) {
        int seen = 0;
        struct ledger *l = open_ledger(1, path);
        assert_int_equal(ledger_limits(l, see_note, &seen), 0);
        assert_int_equal(seen, run == 1 || run == 2);
        ledger_each_second(l, note_of_limits, l);
        if (run == 0) note_of_limits(l);
        ledger_each_second(l, NULL, NULL);
        if (run == 2) ledger_drop(l, 1);
        ledger_close(l);
    }
    remove_all(path);
}

/* ---- the queue of reads ---- */

enum how { ONE_BY_ONE, QUEUED, TOGETHER /* some that follow one another are timed when they all have ended */ };

/* The load of each partition, exactly. */
enum { TRACE = 20000, TOKENS = 50000, WRITTEN_TOKENS = 40 /* which have other keys */ };
static uint64_t loads[3][TOKENS];

/* Of so many reads that follow one another. */
static int64_t took_of(int n) {
    int some = n / 7;
    return some % 100 == 99 ? (int64_t)UINT32_MAX + some : 50 + some % 7;
}

/* Of a partition; it may be longer than what one is known by. */
static struct slice key_of(int64_t token) {
    static const char key[] = "a key that is longer than what a partition is known by, and whose end is said nowhere";
    return slice_of(key, (size_t)token % sizeof(key));
}

/* A read as a prepared statement's, of which all figures follow from n: those that are alike in a
 * run stay for some reads, the others are of each. */
static void post_read(struct ledger *l, struct ledger_connection *c, uint64_t statement, uint32_t object, int n,
                      enum how how) {
    int token = n % 2 ? n % WRITTEN_TOKENS : n;
    int rows = 1 + n / 17 % 2;
    struct op_read r = {.item = {.object = object,
                                 .one_partition = n / 31 % 5 != 4,
                                 .keyspace = "k",
                                 .table = object == 1 ? "one" : "two",
                                 .token = token,
                                 .read_halves = 1 + n / 12 % 3,
                                 .entities = rows},
                        .key = key_of(token),
                        .rows.rows = (uint64_t)rows};
    struct op_cost cost = {.reads = &r,
                           .keyspace = r.item.keyspace,
                           .table = r.item.table,
                           .object = object,
                           .bytes_read = 100 + (uint64_t)n,
                           .rows_read = r.rows.rows,
                           .rows_returned = n / 23 % 4 > 0,
                           .query_class = statement % 2 ? QUERY_POINT : QUERY_ROW_RANGE};
    int64_t took_us = took_of(n);
    loads[object][token] += r.item.one_partition ? (uint64_t)r.item.read_halves : 0;
    struct ledger_request q = {.cost = &cost,
                               .operation = OPERATION_SELECT,
                               .statements = 1,
                               .now_us = now_us,
                               .took_us = took_us,
                               .connection = c,
                               .statement_id = statement,
                               .text = slice_str("SELECT")};
    bool queued = how != ONE_BY_ONE && ledger_queue_read(l, 0, c, statement, &cost, now_us);
    if (how == QUEUED || !queued) ledger_time_reads(l, 0, now_us + took_us);
    if (!queued) ledger_post(l, 0, &q);
}

static void post_write(struct ledger *l, uint32_t object, int token, uint32_t units) {
    loads[object][token] += usage_load(0, units);
    post(l, 0, object, token, units);
}

/* Reads of two statements on two tables and two connections in runs of all lengths, time that goes
 * on, and between them what is no such read. */
static void post_trace(struct ledger *l, struct ledger_connection c[2], enum how how) {
    uint64_t seed = 11, of = 0;
    memset(loads, 0, sizeof(loads));
    for (int n = 0; n < TRACE; n++) {
        seed = seed * UINT64_C(6364136223846793005) + 1442695040888963407U;
        unsigned dice = (unsigned)(seed >> 40) % 64;
        if (n % 7 == 0 && n) ledger_time_reads(l, 0, now_us + took_of(n - 1));
        else if (dice <= 2 && n) ledger_time_reads(l, 0, now_us + took_of(n));
        if (dice % 8 == 3) of = seed >> 50;
        uint64_t statement = 1 + of % 2;
        if (dice == 0) now_us += S / 3;
        else if (dice == 1) now_us -= S / 5;
        else if (dice == 2) post_write(l, 1, n % WRITTEN_TOKENS, 2);
        else post_read(l, &c[of / 2 % 2], statement, (uint32_t)statement, n, how);
    }
    ledger_time_reads(l, 0, now_us + took_of(TRACE - 1));
}

static int take_cells(void *arg, const struct table_stats *t, uint32_t second) {
    struct cell *cells = arg;
    assert_in_range(t->object, 1, 2);
    cells[t->object].f = t->total;
    for (uint32_t m = second / 60 - STATS_MINUTES + 1; m <= second / 60; m++)
        if (stats_minute(t, m)) cell_add(&cells[t->object], &stats_minute(t, m)->cell);
    return 0;
}

struct seen {
    struct cell cells[3];
    struct ledger_partition *partitions;
    struct ledger_statement *statements;
    struct ledger_connection *connections;
    size_t n_partitions, n_statements, n_connections;
};

static struct seen see(struct ledger *l) {
    struct seen s = {.n_partitions = 0};
    assert_int_equal(ledger_tables(l, take_cells, s.cells), 0);
    s.partitions = ledger_partitions(l, &s.n_partitions);
    s.statements = ledger_statements(l, &s.n_statements);
    s.connections = ledger_connections(l, &s.n_connections);
    return s;
}

static void seen_free(struct seen *s) {
    free(s->partitions);
    free(s->statements);
    ledger_connections_free(s->connections, s->n_connections);
}

static struct seen run_trace(enum how how) {
    struct ledger_connection c[2] = {{.role = "alice"}, {.role = "bob"}};
    now_us = (int64_t)17000000 * S;
    struct ledger *l = open_ledger(1, NULL);
    ledger_connect(l, 0, &c[0]);
    ledger_connect(l, 0, &c[1]);
    post_trace(l, c, how);
    now_us += 5 * S; /* where it has been before it went back */
    struct seen s = see(l);
    ledger_disconnect(l, 0, &c[0]);
    ledger_disconnect(l, 0, &c[1]);
    ledger_close(l);
    return s;
}

/* A read that waits in the queue may be overtaken by those of light partitions, so that which of
 * the light ones are kept, and how wrong they are said to be, is not the same. */
static void check_loads(const struct seen *queued, const struct seen *one_by_one) {
    size_t alike = 0, read_only = 0;
    assert_true(queued->n_partitions > 100);
    for (size_t i = 0; i < queued->n_partitions; i++) {
        const struct ledger_partition *a = &queued->partitions[i];
        assert_in_range(loads[a->p.object][a->p.token], a->kept.load - a->kept.error, a->kept.load);
        if (a->p.token >= WRITTEN_TOKENS) {
            struct slice key = key_of(a->p.token);
            assert_int_equal(a->p.key_n, key.n);
            assert_memory_equal(a->p.key, key.p, key.n < SHARD_KEY ? key.n : SHARD_KEY);
            read_only++;
        }
        for (size_t k = 0; k < one_by_one->n_partitions; k++) {
            const struct ledger_partition *b = &one_by_one->partitions[k];
            if (a->p.object != b->p.object || a->p.token != b->p.token || a->kept.error || b->kept.error) continue;
            assert_true(a->kept.load == b->kept.load && a->share == b->share); /* share: of the same total */
            assert_memory_equal(&a->p.usage, &b->p.usage, sizeof(struct usage));
            assert_int_equal(a->p.key_n, b->p.key_n);
            assert_memory_equal(a->p.key, b->p.key, sizeof(a->p.key));
            alike++;
        }
    }
    assert_true(alike > 30); /* those that are heavy from the start */
    assert_true(read_only > 100);
}

/* Reads that settle together are counted as the least, the greatest and the mean latency: as many of
 * them, with the same extremes. The latencies are then zeroed, so that all else can be compared. */
static void check_latencies(struct cell *a, struct cell *b) {
    uint64_t n_a = 0, n_b = 0;
    int top_a = 0, top_b = 0;
    for (int i = 0; i < LATENCY_SLOTS; i++) {
        n_a += a->latencies.n[i];
        n_b += b->latencies.n[i];
        if (a->latencies.n[i]) top_a = i;
        if (b->latencies.n[i]) top_b = i;
    }
    assert_int_equal(n_a, n_b);
    assert_int_equal(top_a, top_b);
    a->latencies = b->latencies = (struct latencies){0};
}

static void check_trace(enum how how) {
    struct seen one_by_one = run_trace(ONE_BY_ONE), queued = run_trace(how);
    for (size_t i = 0; i < sizeof(queued.cells) / sizeof(queued.cells[0]); i++)
        check_latencies(&queued.cells[i], &one_by_one.cells[i]);
    assert_memory_equal(queued.cells, one_by_one.cells, sizeof(queued.cells));
    assert_true(queued.cells[1].spans[SPAN_READ_UNITS].n > 5000);
    check_loads(&queued, &one_by_one);
    assert_int_equal(queued.n_statements, 2);
    for (size_t i = 0; i < 2; i++) {
        const struct ledger_statement *a = &queued.statements[i], *b = &one_by_one.statements[i];
        assert_true(a->kept.key == b->kept.key && a->kept.load == b->kept.load && a->s.rows_read == b->s.rows_read &&
                    a->s.rows_returned == b->s.rows_returned && a->s.class == b->s.class);
        assert_memory_equal(&a->s.usage, &b->s.usage, sizeof(struct usage));
    }
    assert_int_equal(queued.n_connections, 2);
    for (int i = 0; i < 2; i++)
        assert_memory_equal(&queued.connections[i].usage, &one_by_one.connections[i].usage, sizeof(struct usage));
    seen_free(&one_by_one);
    seen_free(&queued);
}

static void test_reads_in_the_queue_come_to_what_they_come_to_one_by_one(void **state) {
    (void)state;
    check_trace(QUEUED);
    check_trace(TOGETHER);
}

static uint64_t reads_of(struct ledger *l) { return of(l, 1).total.of[OPERATION_SELECT][OF_REQUESTS]; }

/* Each of those who look, after a read that stands in the queue. */
static void test_who_has_posted_sees_it_at_once(void **state) {
    (void)state;
    size_t n;
    struct ledger_connection c = {.role = "alice"};
    now_us = (int64_t)18000000 * S;
    struct ledger *l = open_ledger(2, NULL);
    ledger_connect(l, 0, &c);
    for (int i = 0; i < 100; i++) {
        post_read(l, &c, 7, 1, 0, QUEUED);
        assert_int_equal(reads_of(l), 5 * i + 1);
        post_read(l, &c, 7, 1, 0, QUEUED);
        struct ledger_connection *all = ledger_connections(l, &n);
        assert_int_equal(usage_all(&all[0].usage, USAGE_REQUESTS), 5 * i + 2);
        ledger_connections_free(all, n);
        post_read(l, &c, 7, 1, 0, QUEUED);
        struct ledger_statement *statements = ledger_statements(l, &n);
        assert_int_equal(usage_all(&statements[0].s.usage, USAGE_REQUESTS), 5 * i + 3);
        free(statements);
        post_read(l, &c, 7, 1, 0, QUEUED);
        struct roles *roles = ledger_roles(l);
        assert_int_equal(usage_all(&roles->list[0].usage, USAGE_REQUESTS), 5 * i + 4);
        free(roles);
        post_read(l, &c, 7, 1, 0, QUEUED);
        struct ledger_partition *partitions = ledger_partitions(l, &n);
        assert_int_equal(usage_all(&partitions[0].p.usage, USAGE_REQUESTS), 5 * i + 5);
        free(partitions);
    }
    ledger_disconnect(l, 0, &c);
    ledger_close(l);
}

/* Reads may be queued when their table is dropped, their connection closed, the ledger closed: they are in the sums. */
static void test_a_read_without_an_end_ends_when_the_queue_is_posted(void **state) {
    (void)state;
    struct ledger_connection c = {.role = "alice"};
    now_us = (int64_t)18500000 * S;
    struct ledger *l = open_ledger(1, NULL);
    ledger_connect(l, 0, &c);
    post_read(l, &c, 7, 1, 0, ONE_BY_ONE);
    uint64_t before = of(l, 1).total.of[OPERATION_SELECT][OF_LATENCY];
    for (int i = 0; i < 3; i++) post_read(l, &c, 7, 1, 0, TOGETHER);
    ledger_time_reads(l, 0, now_us + 10);
    for (int i = 0; i < 2; i++) post_read(l, &c, 7, 1, 0, TOGETHER);
    now_us += 500;
    assert_int_equal(of(l, 1).total.of[OPERATION_SELECT][OF_LATENCY] - before, 3 * 10 + 2 * 500);
    for (int i = 0; i < 2; i++) post_read(l, &c, 7, 1, 0, TOGETHER);
    now_us -= S; /* a clock that goes back */
    assert_int_equal(of(l, 1).total.of[OPERATION_SELECT][OF_LATENCY] - before, 3 * 10 + 2 * 500);
    ledger_disconnect(l, 0, &c);
    ledger_close(l);
}

static void test_nothing_in_the_queue_is_lost(void **state) {
    (void)state;
    char path[64];
    struct ledger_connection c = {.role = "alice"};
    temporary(path);
    now_us = (int64_t)19000000 * S;
    struct ledger *l = open_ledger(1, path);
    ledger_connect(l, 0, &c);
    for (int i = 0; i < 10; i++) post_read(l, &c, 8, 2, 0, QUEUED);
    ledger_drop(l, 2);
    assert_int_equal(ledger_dropped(l).of[OPERATION_SELECT][OF_REQUESTS], 10);
    for (int i = 0; i < 10; i++) post_read(l, &c, 8, 2, 0, QUEUED); /* of a table that nobody knows any more */
    ledger_settle(l, 0);
    assert_int_equal(ledger_dropped(l).of[OPERATION_SELECT][OF_REQUESTS], 20);
    for (int i = 0; i < 10; i++) post_read(l, &c, 7, 1, 0, QUEUED);
    ledger_disconnect(l, 0, &c);
    assert_int_equal(c.usage.in_second.n[USAGE_REQUESTS], 30);
    ledger_connect(l, 0, &c);
    for (int i = 0; i < 10; i++) post_read(l, &c, 7, 1, 0, QUEUED);
    ledger_close(l);
    l = open_ledger(1, path);
    assert_int_equal(reads_of(l), 20);
    ledger_close(l);
    remove_all(path);
}

/* More reads than the queue has room for, of more statements than the shard keeps: all are counted,
 * whether anybody settles or not. */
static void test_the_queue_is_bounded_and_all_is_counted(void **state) {
    (void)state;
    struct ledger_connection c = {.role = "alice"};
    now_us = (int64_t)20000000 * S;
    struct ledger *l = open_ledger(1, NULL);
    ledger_connect(l, 0, &c);
    for (int i = 0; i < 50000; i++)
        post_read(l, &c, 1 + (uint64_t)i % (i < 25000 ? 20 : 3 * SHARD_STATEMENT_SETS * HEAVY_WAYS), 1, i, QUEUED);
    assert_int_equal(reads_of(l), 50000);
    ledger_disconnect(l, 0, &c);
    assert_int_equal(usage_all(&c.usage, USAGE_REQUESTS), 50000);
    ledger_close(l);
}

/* Reads that are alike, of no one partition, of more connections than the queue can tell apart: in
 * each round every one asks once more than the one before it. */
static void test_each_of_very_many_who_ask_is_counted(void **state) {
    (void)state;
    enum { CONNECTIONS = 5 * SHARD_SEGMENTS + 3, ROUNDS = 3, MOST = 7, READ = 124 /* of two half units */ };
    static struct ledger_connection c[CONNECTIONS];
    now_us = (int64_t)22000000 * S;
    for (enum how how = QUEUED; how <= TOGETHER; how++) {
        struct ledger *l = open_ledger(1, NULL);
        uint64_t all = 0;
        for (int i = 0; i < CONNECTIONS; i++) {
            c[i] = (struct ledger_connection){.role = "alice"};
            ledger_connect(l, 0, &c[i]);
        }
        for (int round = 0; round < ROUNDS; round++)
            for (int i = 0; i < CONNECTIONS; i++)
                for (int k = 0; k <= (i + round) % MOST; k++, all++) post_read(l, &c[i], 7, 1, READ, how);
        ledger_time_reads(l, 0, now_us + took_of(READ));
        assert_int_equal(reads_of(l), all);
        for (int i = 0; i < CONNECTIONS; i++) {
            uint64_t asked = 0;
            for (int round = 0; round < ROUNDS; round++) asked += 1 + (uint64_t)(i + round) % MOST;
            ledger_disconnect(l, 0, &c[i]);
            assert_int_equal(usage_all(&c[i].usage, USAGE_REQUESTS), asked);
            assert_int_equal(usage_all(&c[i].usage, USAGE_READ_HALVES), 2 * asked);
        }
        ledger_close(l);
    }
}

struct poster {
    struct ledger *l;
    unsigned shard;
};

static void *post_many(void *arg) {
    struct poster *p = arg;
    for (int i = 0; i < 20000; i++) post(p->l, p->shard, 1 + i % 2, i % 50, 1);
    return NULL;
}

/* Each a reader of its own shard, which sees its own at once, and settles now and then. */
static void *read_many(void *arg) {
    struct poster *p = arg;
    struct ledger_connection c = {.role = "reader"};
    ledger_connect(p->l, p->shard, &c);
    for (int i = 0; i < 20000; i++) {
        struct op_read r = {.item = {.object = 1,
                                     .one_partition = true,
                                     .keyspace = "k",
                                     .table = "one",
                                     .token = i % 5000,
                                     .read_halves = 1,
                                     .entities = 1},
                            .key = slice_str("key"),
                            .rows.rows = 1};
        struct op_cost cost = {.reads = &r, .keyspace = "k", .table = "one", .object = 1, .rows_read = 1};
        struct ledger_request q = {.cost = &cost,
                                   .operation = OPERATION_SELECT,
                                   .statements = 1,
                                   .now_us = now_us,
                                   .connection = &c,
                                   .statement_id = 5,
                                   .text = slice_str("SELECT")};
        if (!ledger_queue_read(p->l, p->shard, &c, 5, &cost, q.now_us)) ledger_post(p->l, p->shard, &q);
        ledger_time_reads(p->l, p->shard, q.now_us + 1);
        if (i % 50 == 0) ledger_settle(p->l, p->shard);
        if (i % 5000 == 7) assert_true(of(p->l, 1).total.of[OPERATION_SELECT][OF_REQUESTS] > (uint64_t)i);
    }
    ledger_disconnect(p->l, p->shard, &c);
    return NULL;
}

static void test_threads_read_while_others_look(void **state) {
    (void)state;
    enum { THREADS = 3 };
    now_us = (int64_t)21000000 * S;
    struct ledger *l = open_ledger(THREADS, NULL);
    struct poster posters[THREADS];
    pthread_t threads[THREADS];
    for (unsigned i = 0; i < THREADS; i++) {
        posters[i] = (struct poster){l, i};
        assert_int_equal(pthread_create(&threads[i], NULL, read_many, &posters[i]), 0);
    }
    for (int i = 0; i < 50; i++) {
        size_t n;
        now_us += S / 4;
        free(ledger_partitions(l, &n));
        struct ledger_connection *all = ledger_connections(l, &n);
        ledger_connections_free(all, n);
        (void)reads_of(l);
    }
    for (unsigned i = 0; i < THREADS; i++) pthread_join(threads[i], NULL);
    assert_int_equal(reads_of(l), THREADS * 20000);
    ledger_close(l);
}

static void test_threads_post_while_others_look(void **state) {
    (void)state;
    enum { THREADS = 3 };
    char path[64];
    temporary(path);
    now_us = (int64_t)13000000 * S;
    struct ledger *l = open_ledger(THREADS, path);
    struct poster posters[THREADS];
    pthread_t threads[THREADS];
    for (unsigned i = 0; i < THREADS; i++) {
        posters[i] = (struct poster){l, i};
        assert_int_equal(pthread_create(&threads[i], NULL, post_many, &posters[i]), 0);
    }
    for (int i = 0; i < 50; i++) {
        size_t n;
        now_us += S / 4;
        free(ledger_partitions(l, &n));
        (void)of(l, 1);
    }
    for (unsigned i = 0; i < THREADS; i++) pthread_join(threads[i], NULL);
    assert_int_equal(of(l, 1).total.n[FIGURE_WRITE_UNITS], THREADS * 10000);
    assert_int_equal(of(l, 2).total.n[FIGURE_WRITE_UNITS], THREADS * 10000);
    ledger_close(l);
    remove_all(path);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_shards_come_together_by_second_and_minute),
        cmocka_unit_test(test_a_batch_that_fails_on_the_disk_is_taken_back_from_all_that_it_was_posted_to),
        cmocka_unit_test(test_time_that_goes_back_loses_nothing),
        cmocka_unit_test(test_the_file_brings_back_sums_and_minutes),
        cmocka_unit_test(test_minutes_older_than_an_hour_stay_in_the_sum),
        cmocka_unit_test(test_a_torn_end_is_cut_off_and_the_rest_counts),
        cmocka_unit_test(test_a_dropped_table_leaves_the_book_and_stays_in_the_sum),
        cmocka_unit_test(test_minutes_of_a_dropped_table_are_kept_with_their_spans),
        cmocka_unit_test(test_heavy_partitions_of_shards_are_one),
        cmocka_unit_test(test_merging_statements_costs_each_of_them_the_same),
        cmocka_unit_test(test_partitions_and_statements_outlive_a_restart_with_fewer_threads_too),
        cmocka_unit_test(test_roles_outlive_a_restart),
        cmocka_unit_test(test_what_the_limiter_notes_is_kept_until_its_table_is_dropped),
        cmocka_unit_test(test_reads_in_the_queue_come_to_what_they_come_to_one_by_one),
        cmocka_unit_test(test_who_has_posted_sees_it_at_once),
        cmocka_unit_test(test_a_read_without_an_end_ends_when_the_queue_is_posted),
        cmocka_unit_test(test_nothing_in_the_queue_is_lost),
        cmocka_unit_test(test_the_queue_is_bounded_and_all_is_counted),
        cmocka_unit_test(test_each_of_very_many_who_ask_is_counted),
        cmocka_unit_test(test_threads_post_while_others_look),
        cmocka_unit_test(test_threads_read_while_others_look),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
