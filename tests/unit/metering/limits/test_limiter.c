/* The limiter on times of the test's own: rates, bursts, debts, peaks; and against a model in
 * another arithmetic, on random traces. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/buf.h"
#include "metering/limits/limiter.h"

enum { S = 1000000, NOON = 43200 };

struct world {
    struct limiter *l;
    uint32_t late;    /* of readings that come late: a random state */
    int64_t began_us; /* where its monotonic clock begins */
    struct limit_connection c;
    int64_t now_us;
    struct limit_verdict v;
};

static struct limiter_options options(const char *values) {
    struct err e = {0};
    struct limiter_options o = {.mode = LIMITS_ENFORCE, .seed = 1};
    assert_int_equal(limit_values_parse(values, &o.values, &e), 0);
    return o;
}

static void open_world(struct world *w, const struct limiter_options *o) {
    *w = (struct world){.l = limiter_new(o), .now_us = (int64_t)NOON * S};
    assert_non_null(w->l);
    assert_int_equal(limiter_define(w->l, 1, "k", "t", &(struct capacity){0}, &(struct capacity){0}), 0);
}

/* As of a clock that nobody sets. */
static void set_time(struct limiter *l, int64_t now_us) {
    limiter_set_time(l, (struct limit_time){.now_us = now_us, .wall_us = now_us});
}

/* After the newest reading of the clock comes an older one, up to 16 seconds late, as from another thread. */
static void ask_now(struct world *w, const struct limit_ask *a) {
    struct limit_time newest = {.now_us = w->now_us - w->began_us, .wall_us = w->now_us}, late = newest;
    limiter_set_time(w->l, newest);
    w->late = w->late * 1664525 + 1013904223;
    late.now_us -= w->late >> 7;
    late.wall_us -= w->late >> 7;
    if (w->late >> 31) limiter_set_time(w->l, late);
    limiter_ask(w->l, a, &w->v);
}

static bool ask(struct world *w, struct limit_part p) {
    p.object = p.object ? p.object : 1;
    p.keyspace = "k";
    p.table = "t";
    struct limit_ask a = {.connection = &w->c, .statements = 1, .n_parts = 1, .parts = &p};
    ask_now(w, &a);
    return !limit_refuses(&w->v);
}

static bool writes(struct world *w, int64_t token, int64_t units) {
    return ask(w, (struct limit_part){.one_partition = true, .token = token, .write_units = units, .entities = 1});
}
static bool reads(struct world *w, int64_t token, int64_t halves) {
    return ask(w, (struct limit_part){.one_partition = true, .token = token, .read_halves = halves, .entities = 1});
}

static void test_a_second_holds_exactly_its_rate(void **state) {
    (void)state;
    struct limiter_options o = options("on-demand-write=10");
    struct world w;
    open_world(&w, &o);
    for (int second = 0; second < 3; second++, w.now_us += S) {
        for (int i = 0; i < 10; i++) assert_true(writes(&w, i, 1));
        assert_false(writes(&w, 99, 1));
        assert_int_equal(w.v.over.limit, LIMIT_ON_DEMAND_WRITE);
        assert_int_equal(w.v.over.rate, 10);
        assert_int_equal(w.v.over.retry_us, S / 10);
    }
    w.now_us -= S; /* the second that the loop went past */
    w.now_us += S / 10 - 1;
    assert_false(writes(&w, 99, 1));
    assert_int_equal(w.v.over.retry_us, 1);
    w.now_us++;
    assert_true(writes(&w, 99, 1)); /* when it was told, not a microsecond before */
    limiter_free(w.l);
}

/* T2: what comes in by an older reading came in before. */
static void test_an_older_reading_fills_no_bucket(void **state) {
    (void)state;
    struct limiter_options o = options("on-demand-write=100,partition-write=100000");
    struct world w;
    int granted = 0;
    open_world(&w, &o);
    for (int i = 0; i < 30000; i++, w.now_us += 1000) granted += writes(&w, i, 1);
    assert_int_equal(granted, 100 + 30 * 100 - 1); /* the last millisecond is not over */
    limiter_free(w.l);
}

/* The wall clock goes back by an hour: buckets fill as before, and each minute is counted for itself. */
static void test_a_wall_clock_that_is_set_back_stops_nothing(void **state) {
    (void)state;
    struct limiter_options o = options("on-demand-write=100,partition-write=100000,on-demand-window=120");
    struct world w;
    open_world(&w, &o);
    for (int second = 0; second < 2 * 3600; second++, w.now_us += S) {
        int64_t back_us = second < 90 ? 0 : (int64_t)3600 * S;
        limiter_set_time(w.l, (struct limit_time){.now_us = w.now_us, .wall_us = w.now_us - back_us});
        for (int i = 0; i < 3; i++) {
            struct limit_part p = {1, "k", "t", true, i, 0, 30, 1};
            limiter_ask(w.l, &(struct limit_ask){.connection = &w.c, .statements = 1, .n_parts = 1, .parts = &p}, &w.v);
            assert_false(limit_refuses(&w.v));
        }
    }
    assert_int_equal(limiter_table(w.l, 1)->write.peak, 90);
    limiter_free(w.l);
}

static void give_back(struct world *w, int64_t token, int64_t units) {
    struct limit_part p = {.object = 1, .one_partition = true, .token = token, .write_units = units, .entities = 1};
    set_time(w->l, w->now_us);
    limiter_give_back(w->l, &p, limit_took(&w->v, w->now_us));
}

/* Table, partition and entities have it again, and no more than they had. */
static void test_what_a_write_took_that_failed_comes_back(void **state) {
    (void)state;
    static const char *const values[] = {"on-demand-write=10", "partition-write=10", "table-write=10"};
    for (size_t i = 0; i < ARRAY_LEN(values); i++) {
        struct limiter_options o = options(values[i]);
        struct world w;
        open_world(&w, &o);
        assert_true(writes(&w, 1, 1));
        assert_true(writes(&w, 1, 9));
        give_back(&w, 1, 9);
        assert_false(writes(&w, 1, 10));
        assert_true(writes(&w, 1, 9));
        assert_false(writes(&w, 1, 1));
        give_back(&w, 1, 9); /* of the one that was refused: it took nothing */
        assert_false(writes(&w, 1, 1));
        w.now_us += S / 2;
        assert_true(writes(&w, 1, 5));
        w.now_us += 10 * S;
        give_back(&w, 1, 5); /* which has filled since */
        assert_true(writes(&w, 1, 10));
        assert_false(writes(&w, 1, 1));
        limiter_free(w.l);
    }
}

static void test_entities_of_a_write_that_failed_come_back(void **state) {
    (void)state;
    struct limiter_options o = options("entities-partition=1");
    struct world w;
    o.mode = LIMITS_OFF;
    o.guidance = GUIDANCE_ENFORCE;
    open_world(&w, &o);
    assert_true(writes(&w, 1, 1));
    give_back(&w, 1, 1);
    assert_true(writes(&w, 1, 1));
    assert_false(writes(&w, 1, 1));
    limiter_free(w.l);
}

static void test_a_write_larger_than_the_bucket_waits_until_it_is_full(void **state) {
    (void)state;
    struct limiter_options o = options("on-demand-write=10");
    struct world w;
    open_world(&w, &o);
    assert_true(writes(&w, 1, 1));
    assert_false(writes(&w, 1, 25));
    w.now_us += S / 10;
    assert_true(writes(&w, 1, 25));
    assert_false(writes(&w, 1, 1));
    assert_int_equal(w.v.over.retry_us, 16 * S / 10); /* from 15 in debt to 1 */
    limiter_free(w.l);
}

static void test_reads_run_into_debt_and_those_after_pay(void **state) {
    (void)state;
    struct limiter_options o = options("on-demand-read=10");
    struct world w;
    open_world(&w, &o);
    assert_true(reads(&w, 1, 19));
    assert_true(reads(&w, 1, 200)); /* half a unit was left */
    assert_false(reads(&w, 1, 1));
    assert_int_equal(w.v.over.limit, LIMIT_ON_DEMAND_READ);
    w.now_us += w.v.over.retry_us - 1;
    assert_false(reads(&w, 1, 1));
    w.now_us++;
    assert_true(reads(&w, 1, 1));
    limiter_free(w.l);
}

static void test_a_read_may_begin_unless_its_table_is_in_debt(void **state) {
    (void)state;
    struct limiter_options o = options("on-demand-read=10");
    struct world w;
    open_world(&w, &o);
    assert_true(limiter_may_read(w.l, 1, &w.c, &w.v));
    assert_true(reads(&w, 1, 40));
    assert_false(limiter_may_read(w.l, 1, &w.c, &w.v));
    struct limit_over said = w.v.over;
    assert_false(reads(&w, 1, 1)); /* which says the same */
    assert_int_equal(said.limit, w.v.over.limit);
    assert_int_equal(said.retry_us, w.v.over.retry_us);
    w.now_us += said.retry_us;
    set_time(w.l, w.now_us);
    assert_true(limiter_may_read(w.l, 1, &w.c, &w.v));
    assert_true(reads(&w, 1, 1));
    assert_int_equal(limiter_table(w.l, 1)->counts[LIMIT_ON_DEMAND_READ].refused, 2);
    limiter_free(w.l);
}

/* Beside a guilty connection, which sends what its partition refuses, an innocent one has its own rate. */
static void test_a_refused_request_counts_for_its_connection(void **state) {
    (void)state;
    enum { RATE = 50 };
    struct limiter_options o = options("partition-write=10,on-demand-read=10,connection=50");
    struct limit_connection innocent = {0};
    struct world w;
    open_world(&w, &o);
    assert_true(writes(&w, 1, 10));
    for (int i = 1; i < RATE; i++) {
        assert_false(writes(&w, 1, 1));
        assert_int_equal(w.v.over.limit, LIMIT_PARTITION_WRITE);
    }
    assert_false(writes(&w, 1, 1));
    assert_int_equal(w.v.over.limit, LIMIT_CONNECTION);
    struct limit_connection guilty = w.c;
    w.c = innocent;
    assert_true(writes(&w, 2, 1));
    assert_true(reads(&w, 2, 40)); /* the table is in debt, and reads are refused before they run */
    for (int i = 2; i < RATE; i++) {
        assert_false(limiter_may_read(w.l, 1, &w.c, &w.v));
        assert_int_equal(w.v.over.limit, LIMIT_ON_DEMAND_READ);
    }
    assert_false(limiter_may_read(w.l, 1, &w.c, &w.v));
    assert_int_equal(w.v.over.limit, LIMIT_CONNECTION);
    w.now_us += S / 10; /* a tenth of the rate: nothing of what was refused by the connection itself was taken */
    w.c = guilty;
    for (int i = 0; i < RATE / 10; i++) assert_true(writes(&w, 3, 1));
    assert_false(writes(&w, 3, 1));
    limiter_free(w.l);
}

static void test_a_refused_request_takes_nothing(void **state) {
    (void)state;
    struct limiter_options o = options("on-demand-write=100,partition-write=10,connection=1000");
    struct world w;
    open_world(&w, &o);
    struct limit_part batch[] = {{1, "k", "t", true, 1, 0, 50, 1},
                                 {1, "k", "t", true, 2, 0, 5, 1},
                                 {1, "k", "t", true, 3, 0, 5, 1}};
    assert_true(writes(&w, 2, 10));
    struct limit_ask a = {.connection = &w.c, .statements = 1, .n_parts = 3, .parts = batch};
    batch[0].write_units = 5;
    for (int i = 0; i < 500; i++) {
        ask_now(&w, &a);
        assert_true(limit_refuses(&w.v));
        assert_int_equal(w.v.over.limit, LIMIT_PARTITION_WRITE);
    }
    assert_true(writes(&w, 1, 10)); /* which the batch did not touch */
    assert_true(writes(&w, 3, 10));
    for (int i = 4; i < 11; i++) assert_true(writes(&w, i, 10));
    assert_false(writes(&w, 50, 1)); /* 100 in all */
    limiter_free(w.l);
}

static bool asks_two(struct world *w, struct limit_part of) {
    struct limit_part parts[] = {of, of};
    parts[1].token++;
    struct limit_ask a = {.connection = &w->c, .statements = 1, .n_parts = 2, .parts = parts};
    ask_now(w, &a);
    return !limit_refuses(&w->v);
}

static void test_several_partitions_ask_their_table_once(void **state) {
    (void)state;
    struct limiter_options o = options("on-demand-write=10,on-demand-read=10");
    struct world w;
    struct limit_part write = {.object = 1, .keyspace = "k", .table = "t", .one_partition = true, .write_units = 8},
                      read = write;
    read.write_units = 0;
    read.read_halves = 30;
    open_world(&w, &o);
    assert_true(asks_two(&w, write)); /* 16 of a bucket that is full, and holds 10 */
    w.now_us += S;
    write.write_units = 3;
    assert_false(asks_two(&w, write));
    assert_true(w.v.over.asked == 6);
    assert_int_equal(w.v.over.retry_us, 2 * S / 10); /* from 4 to 6 */
    w.now_us += w.v.over.retry_us;
    assert_true(asks_two(&w, write));
    /* 30 of 10: the second partition's read is not refused for what the first one's took */
    assert_true(asks_two(&w, read));
    assert_false(asks_two(&w, read));
    assert_int_equal(w.v.over.limit, LIMIT_ON_DEMAND_READ);
    limiter_free(w.l);
}

static void test_a_burst_is_what_was_not_used_up_to_300_seconds(void **state) {
    (void)state;
    struct limiter_options o = options(
        "partition-write=1000000,table-write=1000000,account-write=1000000,connection=1000000");
    struct world w;
    open_world(&w, &o);
    struct capacity ten = {.provisioned = true, .units = 10};
    assert_int_equal(limiter_define(w.l, 1, "k", "t", &ten, &ten), 0);
    assert_true(writes(&w, 1, 10));
    assert_false(writes(&w, 1, 1)); /* a new table has not saved anything */
    w.now_us += (int64_t)1000 * S;
    for (int i = 0; i < 3000; i++) assert_true(writes(&w, 1, 1));
    assert_false(writes(&w, 1, 1));
    assert_int_equal(w.v.over.limit, LIMIT_PROVISIONED_WRITE);
    limiter_free(w.l);
}

static const struct limit_table *table_now(struct world *w, uint32_t i) {
    set_time(w->l, w->now_us);
    return limiter_table(w->l, i);
}

static int64_t write_capacity(struct world *w) { return capacity_rate(&table_now(w, 1)->write, INT64_MAX); }

/* A minute at so many write units a second. */
static void minute_of(struct world *w, int64_t rate) {
    for (int i = 0; i < 60; i++, w->now_us += S)
        for (int64_t n = 0; n < rate; n += 500) (void)writes(w, n, rate - n < 500 ? rate - n : 500);
}

static void test_on_demand_doubles_the_previous_peak_every_window(void **state) {
    (void)state;
    struct limiter_options o = options("account-write=1000000,connection=1000000");
    struct world w;
    open_world(&w, &o);
    assert_int_equal(write_capacity(&w), 4000);
    minute_of(&w, 1000);
    w.now_us += (int64_t)1800 * S;
    assert_int_equal(write_capacity(&w), 4000); /* less than a new table's */
    minute_of(&w, 3500);
    assert_int_equal(write_capacity(&w), 4000); /* not within the window */
    w.now_us += (int64_t)1800 * S;
    assert_int_equal(write_capacity(&w), 7000);
    minute_of(&w, 7000);
    w.now_us += (int64_t)1800 * S;
    assert_int_equal(write_capacity(&w), 14000);
    limiter_free(w.l);
}

/* 6,000 units that fail, told after so long, when somebody else has written one unit or nobody has. */
static int64_t peak_after_a_failure(int64_t told_after_us, bool others) {
    struct limiter_options o = options("on-demand-write=10000,partition-write=10000");
    struct world w;
    open_world(&w, &o);
    assert_true(writes(&w, 1, 6000));
    struct limit_took took = limit_took(&w.v, w.now_us);
    w.now_us += told_after_us;
    if (others) assert_true(writes(&w, 2, 1));
    set_time(w.l, w.now_us);
    limiter_give_back(
        w.l, &(struct limit_part){.object = 1, .one_partition = true, .token = 1, .write_units = 6000, .entities = 1},
        took);
    w.now_us += (int64_t)1800 * S;
    int64_t peak = table_now(&w, 1)->write.peak;
    limiter_free(w.l);
    return peak;
}

static void test_peaks_go_by_what_was_written(void **state) {
    (void)state;
    assert_int_equal(peak_after_a_failure(0, true), 0);
    assert_int_equal(peak_after_a_failure((int64_t)59 * S, true), 0);
    assert_int_equal(peak_after_a_failure((int64_t)60 * S, false), 0);
    assert_int_equal(peak_after_a_failure((int64_t)60 * S, true), 100); /* the minute was over, and judged */
}

/* A table is asked for ten minutes under these values, first on demand, then provisioned with so many units. */
static void ask_under(const struct limiter_options *o, int64_t units, bool refuses_nothing) {
    struct world w;
    struct capacity c = {.provisioned = true, .units = units,
                         .scaling = {.enabled = true, .minimum = 1, .maximum = units, .target_percent = 20}};
    open_world(&w, o);
    for (int provisioned = 0; provisioned < 2; provisioned++) {
        for (int i = 0; i < 300; i++, w.now_us += S) {
            bool wrote = writes(&w, i % 3, 2000), read = reads(&w, i % 3, 20000);
            bool begins = limiter_may_read(w.l, 1, &w.c, &w.v);
            assert_true(begins == (w.v.over.limit == LIMITS));
            if (refuses_nothing) assert_true(wrote && read && begins);
        }
        assert_int_equal(limiter_define(w.l, 1, "k", "t", &c, &c), 0);
    }
    w.now_us += (int64_t)3000000 * S; /* five weeks come in at once */
    if (refuses_nothing) assert_true(writes(&w, 1, 1) && reads(&w, 1, 1));
    limiter_free(w.l);
}

static void test_every_number_from_1_is_a_limit(void **state) {
    (void)state;
    for (int id = 0; id < LIMITS; id++) {
        struct limiter_options o = options("");
        o.guidance = GUIDANCE_ENFORCE;
        o.scales = true;
        o.values.of[id] = 1;
        ask_under(&o, 1, false);
    }
}

/* One setting at a time, and all together: then nothing is refused. */
static void test_every_number_up_to_the_bound_is_a_limit(void **state) {
    (void)state;
    for (int id = 0; id < LIMITS; id++) {
        struct limiter_options o = options("");
        o.guidance = GUIDANCE_ENFORCE;
        o.scales = true;
        o.values.of[id] = LIMIT_VALUE_MAX;
        ask_under(&o, LIMIT_VALUE_MAX, false);
    }
    struct limiter_options o = options("");
    for (int id = 0; id < LIMITS; id++) o.values.of[id] = LIMIT_VALUE_MAX;
    o.guidance = GUIDANCE_ENFORCE;
    ask_under(&o, LIMIT_VALUE_MAX, true);
}

static void test_numbers_beyond_the_bound_are_refused(void **state) {
    (void)state;
    struct limit_values v;
    struct err e = {0};
    assert_int_equal(limit_values_parse("table-write=999999999999", &v, &e), 0);
    assert_int_equal(v.of[LIMIT_TABLE_WRITE], LIMIT_VALUE_MAX);
    assert_int_equal(limit_values_parse("table-write=1000000000000", &v, &e), -1);
    assert_string_equal(e.text,
                        "--limit-values: table-write must be a number from 1 to 999999999999, not '1000000000000'");
}

static void test_on_demand_after_provisioned_begins_with_half_of_it(void **state) {
    (void)state;
    struct limiter_options o = options("");
    struct world w;
    open_world(&w, &o);
    struct capacity p = {.provisioned = true, .units = 9000}, none = {0};
    assert_int_equal(limiter_define(w.l, 1, "k", "t", &p, &p), 0);
    assert_int_equal(write_capacity(&w), 9000);
    assert_int_equal(limiter_define(w.l, 1, "k", "t", &none, &none), 0);
    assert_int_equal(write_capacity(&w), 9000); /* twice the half */
    limiter_free(w.l);
}

static void test_auto_scaling_follows_its_target(void **state) {
    (void)state;
    struct limiter_options o = options("partition-write=1000000");
    o.scales = true;
    struct world w;
    open_world(&w, &o);
    struct capacity p = {
        .provisioned = true,
        .units = 100,
        .scaling = {.enabled = true, .minimum = 50, .maximum = 150, .target_percent = 70, .out_cooldown_s = 60}};
    assert_int_equal(limiter_define(w.l, 1, "k", "t", &p, &p), 0);
    minute_of(&w, 90);
    assert_int_equal(write_capacity(&w), 100); /* one minute above the target */
    minute_of(&w, 90);
    assert_int_equal(write_capacity(&w), 129); /* 90 is 70 % of it */
    minute_of(&w, 125);
    minute_of(&w, 125);
    assert_int_equal(write_capacity(&w), 150); /* the maximum */
    for (int i = 0; i < 14; i++) minute_of(&w, 1);
    assert_int_equal(write_capacity(&w), 150);
    minute_of(&w, 1);
    assert_int_equal(write_capacity(&w), 50); /* the minimum */
    limiter_free(w.l);
}

static void test_the_innocent_table_and_partition_do_not_pay(void **state) {
    (void)state;
    struct limiter_options o = options("on-demand-write=100,partition-write=10");
    struct world w;
    open_world(&w, &o);
    assert_int_equal(limiter_define(w.l, 2, "k", "u", &(struct capacity){0}, &(struct capacity){0}), 0);
    for (int i = 0; i < 1000; i++) (void)writes(&w, 7, 1);
    assert_false(writes(&w, 7, 1));
    for (int i = 0; i < 9; i++) assert_true(writes(&w, 100 + i, 10)); /* the rest of the table's capacity */
    assert_false(writes(&w, 200, 1));
    assert_true(ask(&w, (struct limit_part){.object = 2, .one_partition = true, .token = 7, .write_units = 10}));
    limiter_free(w.l);
}

static void test_a_hot_partition_is_not_forgotten_among_many(void **state) {
    (void)state;
    struct limiter_options o = options(
        "on-demand-write=40000,partition-write=10,connection=10000000,account-write=10000000,table-write=10000000");
    o.values.of[LIMIT_ON_DEMAND_WRITE] = 10000000;
    struct world w;
    open_world(&w, &o);
    int64_t let_through = 0, n = 0;
    for (int64_t i = 0; i < 20 * PARTITION_BUCKETS; i++) {
        assert_true(writes(&w, 1000 + i, 1));
        if (i % 64) continue;
        let_through += writes(&w, 5, 1);
        n++;
    }
    assert_true(n > 1000);
    assert_int_equal(let_through, 10); /* all at one moment */
    limiter_free(w.l);
}

/* ---- the partition guidance ---- */

static void test_entities_are_counted_apart_from_units(void **state) {
    (void)state;
    struct limiter_options o = options(
        "entities-partition=100,backoff-minimum=10,backoff-delta=100,backoff-maximum=1000");
    o.mode = LIMITS_OFF;
    o.guidance = GUIDANCE_ENFORCE;
    struct world w;
    open_world(&w, &o);
    struct limit_part scan = {.one_partition = true, .token = 3, .read_halves = 2, .entities = 1000}, point = scan;
    point.entities = 1;
    assert_true(ask(&w, scan)); /* behind: it has run */
    const int64_t least[] = {90, 250, 570, 1000}, most[] = {130, 370, 850, 1000};
    for (int i = 0; i < 4; i++) { /* 10 + [80, 120] * (2^x - 1), at most 1000 */
        assert_false(ask(&w, point));
        assert_int_equal(w.v.guidance.limit, LIMIT_ENTITIES_PARTITION);
        assert_in_range(w.v.guidance.retry_us, least[i] * 1000, most[i] * 1000);
    }
    w.now_us += 10 * S;
    assert_true(ask(&w, point));
    assert_int_equal(w.c.refused_in_row, 0);
    limiter_free(w.l);
}

static void test_a_refusal_by_the_guidance_takes_nothing_of_the_limits(void **state) {
    (void)state;
    struct limiter_options o = options("entities-partition=10,on-demand-write=20");
    o.guidance = GUIDANCE_ENFORCE;
    struct world w;
    open_world(&w, &o);
    for (int i = 0; i < 10; i++) assert_true(writes(&w, 1, 1));
    for (int i = 0; i < 50; i++) assert_false(writes(&w, 1, 1));
    for (int i = 0; i < 10; i++) assert_true(writes(&w, 2, 1));
    assert_false(writes(&w, 3, 1));
    assert_int_equal(w.v.over.limit, LIMIT_ON_DEMAND_WRITE);
    limiter_free(w.l);
}

static void test_the_group_rules(void **state) {
    (void)state;
    struct limiter_options o = options("");
    o.mode = LIMITS_OFF;
    o.guidance = GUIDANCE_WARN;
    struct world w;
    open_world(&w, &o);
    struct limit_part p = {1, "k", "t", true, 1, 0, 1, 1};
    const struct {
        int64_t operations, bytes, same_row;
        enum limit_id limit;
    } cases[] = {{100, 4 << 20, 1, LIMITS},
                 {101, 1, 1, LIMIT_GROUP_OPERATIONS},
                 {100, (4 << 20) + 1, 1, LIMIT_GROUP_BYTES},
                 {2, 1, 2, LIMIT_GROUP_SAME_ROW}};
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        struct limit_ask a = {.connection = &w.c,
                              .statements = 1,
                              .n_parts = 1,
                              .parts = &p,
                              .group_operations = cases[i].operations,
                              .group_bytes = cases[i].bytes,
                              .group_same_row = cases[i].same_row};
        ask_now(&w, &a);
        assert_int_equal(w.v.guidance.limit, cases[i].limit);
        assert_false(limit_refuses(&w.v));
    }
    limiter_free(w.l);
}

/* ---- random traces ---- */

static uint64_t random_next(uint64_t *state) {
    *state ^= *state << 13;
    *state ^= *state >> 7;
    *state ^= *state << 17;
    return *state;
}

static struct limit_part random_part(uint64_t *r) {
    bool write = random_next(r) % 2;
    int64_t n = 1 + (int64_t)(random_next(r) % 8 ? random_next(r) % 4 : random_next(r) % 60);
    return (struct limit_part){1 + random_next(r) % 3,        "k",           "t",           random_next(r) % 8 != 0,
                               (int64_t)(random_next(r) % 6), write ? 0 : n, write ? n : 0, n};
}

/* All that a trace is answered with, as text. */
static void replay(uint64_t seed, struct buf *out) {
    struct limiter_options o = options("on-demand-write=40,on-demand-read=30,partition-write=15,partition-read=12,"
                                       "connection=60,entities-partition=50");
    o.guidance = GUIDANCE_ENFORCE;
    struct world w;
    open_world(&w, &o);
    for (uint32_t t = 2; t < 4; t++)
        assert_int_equal(limiter_define(w.l, t, "k", "t", &(struct capacity){0}, &(struct capacity){0}), 0);
    uint64_t r = seed;
    for (int i = 0; i < 4000; i++) {
        struct limit_part parts[4];
        uint32_t n = 1 + (uint32_t)(random_next(&r) % 4);
        for (uint32_t k = 0; k < n; k++) parts[k] = random_part(&r);
        w.now_us += (int64_t)(random_next(&r) % 40000);
        struct limit_ask a = {.connection = &w.c, .statements = n, .n_parts = n, .parts = parts};
        ask_now(&w, &a);
        buf_printf(out, "%d ", i);
        if (w.v.over.limit != LIMITS) limit_over_json(&w.v.over, out);
        if (w.v.guidance.limit != LIMITS) limit_over_json(&w.v.guidance, out);
    }
    limiter_free(w.l);
}

static void test_the_same_trace_gives_the_same_refusals_byte_for_byte(void **state) {
    (void)state;
    for (uint64_t seed = 1; seed <= 20; seed++) {
        struct buf a, b;
        buf_init(&a, 0);
        buf_init(&b, 0);
        replay(seed * 77, &a);
        replay(seed * 77, &b);
        assert_true(a.n > 100000); /* many were refused */
        assert_true(slice_eq(buf_slice(&a), buf_slice(&b)));
        buf_fini(&a);
        buf_fini(&b);
    }
}

/* The model keeps every bucket as a number of units and fills it all the time, in floating point. */
struct model_bucket {
    double level, rate, at;
};

static void model_fill(struct model_bucket *b, double now) {
    b->level += (now - b->at) * b->rate;
    if (b->level > b->rate) b->level = b->rate;
    b->at = now;
}

static bool model_may(const struct model_bucket *b, double n, bool behind) {
    if (n == 0) return true;
    return behind ? b->level > 0 : b->level >= (n < b->rate ? n : b->rate);
}

enum { TOKENS = 6, MODEL_PARTS = 4 };

/* A bucket that a request asks, and for how much in all. */
struct model_draw {
    struct model_bucket *bucket;
    double n;
};

/* One table, some of its partitions. */
struct model {
    struct model_bucket write, read, partition_write[TOKENS], partition_read[TOKENS];
};

static struct model model_at(double start) {
    struct model m = {.write = {40, 40, start}, .read = {30, 30, start}};
    for (int i = 0; i < TOKENS; i++) {
        m.partition_write[i] = (struct model_bucket){16, 16, start};
        m.partition_read[i] = (struct model_bucket){12, 12, start};
    }
    return m;
}

/* Whether all of them let it through; *near: where floating point may say either. */
static bool model_asks(struct model_draw *draws, uint32_t n, bool behind, double now, bool *near) {
    bool may = true;
    *near = false;
    for (uint32_t i = 0; i < n; i++) {
        struct model_bucket *b = draws[i].bucket;
        model_fill(b, now);
        double needs = behind ? 0 : draws[i].n < b->rate ? draws[i].n : b->rate;
        *near = *near || (b->level - needs < 1e-4 && b->level - needs > -1e-4);
        may = may && model_may(b, draws[i].n, behind);
    }
    return may;
}

/* Writes of one to four partitions, as a batch, or reads of them, as an IN. */
static uint32_t random_parts(uint64_t *r, struct limit_part parts[MODEL_PARTS]) {
    uint32_t n = 1 + (uint32_t)(random_next(r) % (2 * MODEL_PARTS)), first = (uint32_t)(random_next(r) % TOKENS);
    if (n > MODEL_PARTS) n = 1;
    parts[0] = random_part(r);
    for (uint32_t k = 0; k < n; k++) {
        struct limit_part like = random_part(r);
        if (k) parts[k] = parts[0];
        if (k && parts[0].write_units) parts[k].write_units = like.read_halves + like.write_units;
        if (k && parts[0].read_halves) parts[k].read_halves = like.read_halves + like.write_units;
        parts[k].object = 1;
        parts[k].one_partition = true;
        parts[k].token = (first + k) % TOKENS;
    }
    return n;
}

static uint32_t draws_of(struct model *m, const struct limit_part *parts, uint32_t n, bool behind,
                         struct model_draw *draws) {
    draws[0] = (struct model_draw){behind ? &m->read : &m->write, 0};
    for (uint32_t k = 0; k < n; k++) {
        double units = behind ? (double)parts[k].read_halves / 2 : (double)parts[k].write_units;
        draws[1 + k] = (struct model_draw){behind ? &m->partition_read[parts[k].token]
                                                  : &m->partition_write[parts[k].token],
                                           units};
        draws[0].n += units;
    }
    return 1 + n;
}

static void test_random_traces_agree_with_a_model(void **state) {
    (void)state;
    for (uint64_t seed = 1; seed <= 30; seed++) {
        struct limiter_options o = options(
            "on-demand-write=40,on-demand-read=30,partition-write=16,partition-read=12,connection=1000000");
        struct world w;
        open_world(&w, &o);
        struct model m = model_at((double)w.now_us / S);
        uint64_t r = seed * 1234567;
        int refused = 0, close = 0, several = 0;
        for (int i = 0; i < 5000; i++) {
            struct limit_part parts[MODEL_PARTS];
            struct model_draw draws[1 + MODEL_PARTS];
            uint32_t n = random_parts(&r, parts);
            bool behind = parts[0].read_halves > 0, near;
            w.now_us += (int64_t)(random_next(&r) % 60) * 1000;
            uint32_t n_draws = draws_of(&m, parts, n, behind, draws);
            bool may = model_asks(draws, n_draws, behind, (double)w.now_us / S, &near);
            ask_now(&w, &(struct limit_ask){.connection = &w.c, .statements = 1, .n_parts = n, .parts = parts});
            bool did = !limit_refuses(&w.v);
            if (near) {
                may = did;
                close++;
            }
            assert_int_equal(did, may);
            for (uint32_t k = 0; k < n_draws && may; k++) draws[k].bucket->level -= draws[k].n;
            refused += !may;
            several += n > 1 && may;
        }
        assert_in_range(refused, 200, 4800);
        assert_true(close < 500 && several > 100);
        limiter_free(w.l);
    }
}

/* ---- faults of the disk, at random ---- */

/* Tables 1 to 4: on demand, provisioned, in shadow, on demand. Capacities move with peaks and auto
 * scaling, or stand still. */
enum { FAULTY_TABLES = 4, FAULTY_STEPS = 6000, FAULTY_PARTS = 3 };

static void open_faulty(struct world *w, bool moves) {
    struct limiter_options o = options("on-demand-write=40,on-demand-read=30,partition-write=25,partition-read=22,"
                                       "connection=1000000,entities-partition=60,on-demand-window=60,burst=3,"
                                       "account-write=30,account-read=20,table-write=300");
    struct err e = {0};
    o.guidance = GUIDANCE_ENFORCE;
    o.scales = moves;
    if (!moves) o.values.of[LIMIT_ON_DEMAND_WINDOW] = NOON;
    assert_int_equal(limit_rules_parse("k.t3=shadow", &o.rules, &e), 0);
    open_world(w, &o);
    struct capacity p = {.provisioned = true,
                         .units = 20,
                         .scaling = {.enabled = true, .minimum = 5, .maximum = 40, .target_percent = 70}};
    for (uint32_t t = 1; t <= FAULTY_TABLES; t++) {
        struct capacity c = t == 2 ? p : (struct capacity){0};
        assert_int_equal(limiter_define(w->l, t, "k", t == 3 ? "t3" : "t", &c, &c), 0);
        /* from where on a bucket fills */
        struct limit_part once = {.object = t, .one_partition = true, .token = 99, .write_units = 1, .read_halves = 1};
        assert_true(ask(w, once));
    }
}

/* A statement or a batch, and whether the disk takes it. */
struct attempt {
    int64_t at_us;
    struct limit_part parts[FAULTY_PARTS];
    uint32_t n;
    bool fails;
    int64_t told_us; /* when, told late */
    struct limit_took took;
};

/* A second of much, then a while of little, and now and then nothing for minutes. */
static struct attempt random_attempt(uint64_t *r, int64_t now_us) {
    struct attempt a = {.n = random_next(r) % 4 ? 1 : FAULTY_PARTS, .fails = random_next(r) % 3 == 0};
    for (uint32_t i = 0; i < a.n; i++) {
        a.parts[i] = random_part(r);
        a.parts[i].object = 1 + (uint32_t)(random_next(r) % FAULTY_TABLES);
        a.parts[i].one_partition = true;
        /* a condition reads and writes */
        if (random_next(r) % 4 == 0) a.parts[i].read_halves = a.parts[i].write_units = 1;
    }
    int64_t steps[] = {0, 1, 3000, 60000, random_next(r) % 400 ? 20000 : (int64_t)200 * S};
    a.at_us = now_us + steps[random_next(r) % ARRAY_LEN(steps)];
    return a;
}

static bool attempt_asks(struct world *w, const struct attempt *a) {
    struct limit_ask ask = {.connection = &w->c, .statements = 1, .n_parts = a->n, .parts = a->parts};
    w->now_us = a->at_us;
    ask_now(w, &ask);
    return !limit_refuses(&w->v);
}

static void attempt_fails(struct world *w, const struct attempt *a) {
    set_time(w->l, w->now_us);
    for (uint32_t i = 0; i < a->n; i++) limiter_give_back(w->l, &a->parts[i], a->took);
}

static int64_t level_at(struct bucket b, int64_t now_us, int64_t rate, int64_t cap) {
    bucket_fill(&b, now_us, rate, cap, cap);
    return b.level;
}

static void assert_same_capacity(const struct capacity *a, const struct capacity *b) {
    assert_int_equal(a->in_minute, b->in_minute);
    assert_int_equal(a->window_best, b->window_best);
    assert_int_equal(a->peak, b->peak);
    assert_int_equal(a->scaled, b->scaled);
    assert_int_equal(a->minutes_above, b->minutes_above);
    assert_int_equal(a->minutes_below, b->minutes_below);
}

/* The writes' bucket of a table that is in k.t, in full. */
static int64_t write_level(struct world *w, uint32_t i) {
    const struct limit_table *t = table_now(w, i);
    int64_t rate = capacity_rate(&t->write, 300);
    return level_at(t->write_bucket, w->now_us, rate, t->write.provisioned ? 3 * rate : rate);
}

/* What fails is told at once: every verdict from then on is that of a limiter that was never asked for what failed. */
static void test_what_fails_at_once_might_never_have_been_asked(void **state) {
    (void)state;
    for (uint64_t seed = 1; seed <= 12; seed++) {
        struct world w, model;
        uint64_t r = seed * 7919;
        int refused = 0, failed = 0;
        open_faulty(&w, false);
        open_faulty(&model, false);
        for (int i = 0; i < FAULTY_STEPS; i++) {
            struct attempt a = random_attempt(&r, w.now_us);
            bool may = attempt_asks(&w, &a);
            model.now_us = w.now_us;
            if (may && a.fails) {
                a.took = limit_took(&w.v, a.at_us);
                attempt_fails(&w, &a);
                failed++;
                continue;
            }
            assert_int_equal(attempt_asks(&model, &a), may);
            assert_int_equal(model.v.over.limit, w.v.over.limit);
            assert_int_equal(model.v.over.rate, w.v.over.rate);
            assert_int_equal(model.v.over.retry_us, w.v.over.retry_us);
            assert_int_equal(model.v.guidance.limit, w.v.guidance.limit);
            refused += !may;
        }
        assert_in_range(refused, FAULTY_STEPS / 20, FAULTY_STEPS - FAULTY_STEPS / 20);
        assert_true(failed > FAULTY_STEPS / 20);
        for (uint32_t i = 1; i <= FAULTY_TABLES; i++) assert_int_equal(write_level(&w, i), write_level(&model, i));
        limiter_free(w.l);
        limiter_free(model.l);
    }
}

static void capacities_use(struct capacity c[FAULTY_TABLES + 1], const struct attempt *a, bool of_writes,
                           int64_t window_s) {
    for (uint32_t i = 0; i < a->n; i++)
        capacity_add(&c[a->parts[i].object], a->at_us, of_writes ? a->parts[i].write_units : a->parts[i].read_halves,
                     window_s, true);
}

/* Peaks and auto scaling: capacities that were only told of what was applied come to the same. */
static void test_capacities_move_with_what_was_applied(void **state) {
    (void)state;
    int64_t scaled = 0, peaks = 0;
    for (uint64_t seed = 1; seed <= 12; seed++) {
        struct world w;
        struct capacity read[FAULTY_TABLES + 1], write[FAULTY_TABLES + 1];
        uint64_t r = seed * 15485863;
        open_faulty(&w, true);
        for (uint32_t t = 1; t <= FAULTY_TABLES; t++) {
            read[t] = table_now(&w, t)->read;
            write[t] = table_now(&w, t)->write;
        }
        int64_t window = limiter_options(w.l)->values.of[LIMIT_ON_DEMAND_WINDOW];
        for (int i = 0; i < FAULTY_STEPS; i++) {
            struct attempt a = random_attempt(&r, w.now_us);
            bool may = attempt_asks(&w, &a);
            a.took = limit_took(&w.v, a.at_us);
            if (may && a.fails) attempt_fails(&w, &a);
            if (!may || a.fails || !a.took.of_limits) continue;
            capacities_use(read, &a, false, window);
            capacities_use(write, &a, true, window);
        }
        for (uint32_t t = 1; t <= FAULTY_TABLES; t++) {
            capacity_add(&read[t], w.now_us, 0, window, true);
            capacity_add(&write[t], w.now_us, 0, window, true);
            assert_same_capacity(&table_now(&w, t)->read, &read[t]);
            assert_same_capacity(&table_now(&w, t)->write, &write[t]);
            scaled += write[t].scaled;
            peaks += write[t].peak;
        }
        limiter_free(w.l);
    }
    assert_true(scaled && peaks);
}

/* What a table's bucket would hold had nothing been asked but what was applied. */
static int64_t model_write_level(struct world *w, uint32_t table, const struct attempt *applied, int n) {
    const struct capacity *c = &table_now(w, table)->write;
    int64_t rate = capacity_rate(c, 300), cap = c->provisioned ? 3 * rate : rate;
    struct bucket b = {0};
    for (int i = 0; i < n; i++)
        for (uint32_t k = 0; k < applied[i].n; k++) {
            const struct limit_part *p = &applied[i].parts[k];
            if (p->object != table || !p->write_units) continue;
            bucket_fill(&b, applied[i].at_us, rate, cap, rate);
            b.level -= p->write_units * BUCKET_UNIT;
        }
    return level_at(b, w->now_us, rate, cap);
}

/* What fails is told up to a second later, in any order: nothing that it took is lost, and no
 * bucket has more of it than came back. */
static void test_what_fails_late_comes_back_too(void **state) {
    (void)state;
    enum { UNDER_WAY = 8 };
    struct attempt *applied = calloc(FAULTY_STEPS, sizeof(*applied));
    assert_non_null(applied);
    for (uint64_t seed = 1; seed <= 12; seed++) {
        struct world w;
        struct attempt failing[UNDER_WAY];
        int n_applied = 0, n_failing = 0, n_failed = 0;
        int64_t came_back[FAULTY_TABLES + 1] = {0};
        uint64_t r = seed * 104729;
        open_faulty(&w, false);
        for (int i = 0; i < FAULTY_STEPS || n_failing; i++) {
            struct attempt a = random_attempt(&r, w.now_us);
            a.fails = n_failing < UNDER_WAY && random_next(&r) % 2;
            if (i >= FAULTY_STEPS) w.now_us = a.at_us;
            else if (attempt_asks(&w, &a)) {
                a.took = limit_took(&w.v, a.at_us);
                a.told_us = a.at_us + (int64_t)(random_next(&r) % S);
                if (a.fails) failing[n_failing++] = a;
                else if (a.took.of_limits) applied[n_applied++] = a;
            }
            for (int k = n_failing - 1; k >= 0; k--) {
                if (failing[k].told_us > w.now_us) continue;
                attempt_fails(&w, &failing[k]);
                for (uint32_t m = 0; m < failing[k].n; m++)
                    came_back[failing[k].parts[m].object] += failing[k].parts[m].write_units * BUCKET_UNIT;
                failing[k] = failing[--n_failing];
                n_failed++;
            }
        }
        assert_true(n_failed > FAULTY_STEPS / 20);
        for (uint32_t t = 1; t <= FAULTY_TABLES; t++) {
            int64_t model = model_write_level(&w, t, applied, n_applied);
            assert_true(write_level(&w, t) >= model);
            assert_true(write_level(&w, t) <= model + came_back[t]);
        }
        limiter_free(w.l);
    }
    free(applied);
}

/* ---- what outlives a restart ---- */

static void restore_one(void *arg, const struct limit_table *t, struct slice state) {
    assert_int_equal(limiter_restore(arg, t->object, state), 0);
}

/* In the middle of a random trace the limiter is saved and another one goes on from there: what
 * both answer from then on is the same, but for partitions and connections, whose buckets hold one
 * second. */
static void test_a_limiter_goes_on_where_the_one_before_ended(void **state) {
    (void)state;
    struct limiter_options o = options("on-demand-write=10,on-demand-read=7,account-write=15,table-write=40,partition-"
                                       "write=100000,partition-read=100000,connection=100000");
    struct capacity provisioned = {.provisioned = true, .units = 3};
    struct world a, b;
    uint32_t random = 7, refused = 0;
    o.scales = true;
    open_world(&a, &o);
    assert_int_equal(limiter_define(a.l, 2, "k", "u", &provisioned, &provisioned), 0);
    /* another machine's, or after a boot */
    b = (struct world){.l = limiter_new(&o), .began_us = (int64_t)(NOON - 7) * S};
    for (int step = 0; step < 4000; step++) {
        random = random * 1664525 + 1013904223;
        a.now_us += random >> 8 & 0x7ffff;
        if (step == 2000) {
            assert_int_equal(limiter_save(a.l, restore_one, b.l), 0);
            assert_int_equal(limiter_define(b.l, 1, "k", "t", &(struct capacity){0}, &(struct capacity){0}), 0);
            assert_int_equal(limiter_define(b.l, 2, "k", "u", &provisioned, &provisioned), 0);
            for (uint32_t i = 0; i < 3; i++)
                assert_memory_equal(limiter_table(a.l, i)->counts, limiter_table(b.l, i)->counts,
                                    sizeof(struct limit_counts) * LIMITS);
        }
        struct limit_part p = {.object = 1 + (random >> 28 & 1),
                               .one_partition = true,
                               .token = step,
                               .write_units = random >> 20 & 7,
                               .read_halves = random >> 24 & 7};
        bool passes = ask(&a, p);
        refused += !passes;
        if (step < 2000) continue;
        b.now_us = a.now_us;
        assert_int_equal(ask(&b, p), passes);
        assert_int_equal(a.v.over.limit, b.v.over.limit);
        assert_int_equal(a.v.over.retry_us, b.v.over.retry_us);
    }
    assert_in_range(refused, 400, 3600);
    assert_int_equal(limiter_save(a.l, restore_one, b.l), 0);
    limiter_free(a.l);
    limiter_free(b.l);
}

static void test_damaged_state_is_no_trouble(void **state) {
    (void)state;
    uint32_t random = 3;
    struct limiter_options o = options("on-demand-write=10");
    for (int i = 0; i < 200; i++) {
        uint8_t bytes[40];
        struct world w;
        open_world(&w, &o);
        for (size_t k = 0; k < sizeof(bytes); k++) bytes[k] = (uint8_t)((random = random * 1664525 + 1013904223) >> 24);
        for (size_t k = 0; k < sizeof(bytes); k += 10) bytes[k] &= 63;
        assert_int_equal(limiter_restore(w.l, 1, slice_of(bytes, sizeof(bytes) - i % 8)), 0);
        (void)writes(&w, 1, 1);
        (void)reads(&w, 1, 1);
        w.now_us += (int64_t)S * 4000;
        (void)writes(&w, 1, 1);
        limiter_free(w.l);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_a_second_holds_exactly_its_rate),
        cmocka_unit_test(test_an_older_reading_fills_no_bucket),
        cmocka_unit_test(test_a_wall_clock_that_is_set_back_stops_nothing),
        cmocka_unit_test(test_what_a_write_took_that_failed_comes_back),
        cmocka_unit_test(test_entities_of_a_write_that_failed_come_back),
        cmocka_unit_test(test_a_write_larger_than_the_bucket_waits_until_it_is_full),
        cmocka_unit_test(test_reads_run_into_debt_and_those_after_pay),
        cmocka_unit_test(test_a_read_may_begin_unless_its_table_is_in_debt),
        cmocka_unit_test(test_a_refused_request_counts_for_its_connection),
        cmocka_unit_test(test_a_refused_request_takes_nothing),
        cmocka_unit_test(test_several_partitions_ask_their_table_once),
        cmocka_unit_test(test_a_burst_is_what_was_not_used_up_to_300_seconds),
        cmocka_unit_test(test_on_demand_doubles_the_previous_peak_every_window),
        cmocka_unit_test(test_peaks_go_by_what_was_written),
        cmocka_unit_test(test_every_number_from_1_is_a_limit),
        cmocka_unit_test(test_every_number_up_to_the_bound_is_a_limit),
        cmocka_unit_test(test_numbers_beyond_the_bound_are_refused),
        cmocka_unit_test(test_on_demand_after_provisioned_begins_with_half_of_it),
        cmocka_unit_test(test_auto_scaling_follows_its_target),
        cmocka_unit_test(test_the_innocent_table_and_partition_do_not_pay),
        cmocka_unit_test(test_a_hot_partition_is_not_forgotten_among_many),
        cmocka_unit_test(test_entities_are_counted_apart_from_units),
        cmocka_unit_test(test_a_refusal_by_the_guidance_takes_nothing_of_the_limits),
        cmocka_unit_test(test_the_group_rules),
        cmocka_unit_test(test_the_same_trace_gives_the_same_refusals_byte_for_byte),
        cmocka_unit_test(test_random_traces_agree_with_a_model),
        cmocka_unit_test(test_what_fails_at_once_might_never_have_been_asked),
        cmocka_unit_test(test_what_fails_late_comes_back_too),
        cmocka_unit_test(test_capacities_move_with_what_was_applied),
        cmocka_unit_test(test_a_limiter_goes_on_where_the_one_before_ended),
        cmocka_unit_test(test_damaged_state_is_no_trouble),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
