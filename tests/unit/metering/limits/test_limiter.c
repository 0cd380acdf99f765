/* The limiter on times of the test's own: rates, bursts, debts, peaks, and the guidance for partitions. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>
#include <stdio.h>
#include <stdlib.h>

#include "harness.h"

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
            struct charge_item p = {.object = 1, .one_partition = true, .keyspace = "k", .table = "t", .token = i,
                                    .write_units = 30, .entities = 1};
            limiter_admit(w.l,
                          &(struct limit_request){.connection = &w.c, .statements = 1, .n_items = 1, .items = &p},
                          &w.v);
            assert_false(limit_refuses(&w.v));
        }
    }
    assert_int_equal(limiter_table(w.l, 1)->write.peak, 90);
    limiter_free(w.l);
}

static void give_back(struct world *w, int64_t token, int64_t units) {
    struct charge_item p = {.object = 1, .one_partition = true, .token = token, .write_units = units, .entities = 1};
    set_time(w->l, w->now_us);
    limiter_reverse(w->l, &p, limit_took(&w->v, w->now_us));
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
    struct charge_item batch[3];
    for (int i = 0; i < 3; i++)
        batch[i] = (struct charge_item){.object = 1, .one_partition = true, .keyspace = "k", .table = "t",
                                        .token = i + 1, .write_units = i ? 5 : 50, .entities = 1};
    assert_true(writes(&w, 2, 10));
    struct limit_request a = {.connection = &w.c, .statements = 1, .n_items = 3, .items = batch};
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

static bool asks_two(struct world *w, struct charge_item of) {
    struct charge_item parts[] = {of, of};
    parts[1].token++;
    struct limit_request a = {.connection = &w->c, .statements = 1, .n_items = 2, .items = parts};
    ask_now(w, &a);
    return !limit_refuses(&w->v);
}

static void test_several_partitions_ask_their_table_once(void **state) {
    (void)state;
    struct limiter_options o = options("on-demand-write=10,on-demand-read=10");
    struct world w;
    struct charge_item write = {.object = 1, .keyspace = "k", .table = "t", .one_partition = true, .write_units = 8},
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

static int64_t write_capacity(struct world *w) { return capacity_rate(&table_now(w, 1)->write, INT64_MAX); }

/* A minute at so many write units a second. */
static void minute_of(struct world *w, int64_t rate) {
    for (int i = 0; i < 60; i++, w->now_us += S)
        for (int64_t n = 0; n < rate; n += 500) (void)writes(w, n, rate - n < 500 ? rate - n : 500);
}

static int64_t granted(struct world *w, int seconds, int64_t a_second) {
    int64_t n = 0;
    for (int i = 0; i < 10 * seconds; i++, w->now_us += S / 10)
        for (int k = 0; k < a_second / 10; k++) n += writes(w, i * a_second + k, 1);
    return n;
}

/* T4: time before a change of the capacity counts by the capacity of then. */
static void test_a_raised_capacity_grants_idle_time_at_the_rate_of_then(void **state) {
    (void)state;
    const struct capacity ten = {.provisioned = true, .units = 10}, thousand = {.provisioned = true, .units = 1000};
    struct limiter_options o = options("connection=1000000,partition-write=1000000");
    struct world w;
    open_world(&w, &o);
    set_time(w.l, w.now_us);
    assert_int_equal(limiter_define(w.l, 1, "k", "t", &ten, &ten), 0);
    assert_int_equal(granted(&w, 10, 100), 10 + 99); /* the last tenth of a second is not over */
    w.now_us += (int64_t)300 * S;
    set_time(w.l, w.now_us);
    assert_int_equal(limiter_define(w.l, 1, "k", "t", &thousand, &thousand), 0);
    assert_int_equal(granted(&w, 12, 40000), 3000 + 119 * 100);
    set_time(w.l, w.now_us);
    assert_int_equal(limiter_define(w.l, 1, "k", "t", &ten, &ten), 0);
    w.now_us += (int64_t)100 * S;
    assert_int_equal(granted(&w, 1, 40000), 100 + 100 * 10 + 9); /* a tenth of a second at 1,000, then 10 a second */
    limiter_free(w.l);
}

/* Warm throughput of a table on demand, raised and raised again. */
static void test_raised_warm_throughput_counts_from_then_on(void **state) {
    (void)state;
    struct limiter_options o = options("connection=1000000,partition-write=1000000,on-demand-write=10");
    const struct capacity warm = {.warm = 1000};
    struct world w;
    open_world(&w, &o);
    assert_true(writes(&w, 1, 10));
    w.now_us += (int64_t)300 * S;
    set_time(w.l, w.now_us);
    assert_int_equal(limiter_define(w.l, 1, "k", "t", &warm, &warm), 0);
    assert_int_equal(granted(&w, 1, 20000), 10 + 9 * 100);
    limiter_free(w.l);
}

/* Auto scaling raises the capacity after two busy minutes, and the next request follows minutes later:
 * the bucket has been filling at the raised rate, whether or not the table was displayed meanwhile. */
static void test_scaling_of_a_quiet_table_fills_its_bucket_in_time(void **state) {
    (void)state;
    for (int looks = 0; looks < 2; looks++) {
        struct limiter_options o = options("connection=1000000,partition-write=1000000");
        const struct capacity c = {.provisioned = true, .units = 10,
                                   .scaling = {.enabled = true, .minimum = 10, .maximum = 1000, .target_percent = 50}};
        struct world w;
        o.scales = true;
        open_world(&w, &o);
        set_time(w.l, w.now_us);
        assert_int_equal(limiter_define(w.l, 1, "k", "t", &c, &c), 0);
        for (int i = 0; i < 240; i++, w.now_us += S / 2) assert_true(writes(&w, i, 5));
        for (int i = 0; i < 200; i++, w.now_us += S)
            if (looks) assert_int_equal(capacity_rate(&table_now(&w, 1)->write, INT64_MAX), 20);
        assert_int_equal(granted(&w, 1, 20000), 10 + 200 * 20 + 18);
        limiter_free(w.l);
    }
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
    limiter_reverse(
        w.l, &(struct charge_item){.object = 1, .one_partition = true, .token = 1, .write_units = 6000, .entities = 1},
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

/* Auto scaling raises the capacity while the table is in debt. A read that asks whether it may begin is the first to
 * come after that: it finds the raised capacity, and the debt paid at the rate of each minute. */
static void test_a_read_may_begin_by_the_capacity_of_its_minute(void **state) {
    (void)state;
    struct limiter_options o = options("connection=1000000,partition-read=1000000");
    const struct capacity c = {.provisioned = true, .units = 10,
                               .scaling = {.enabled = true, .minimum = 10, .maximum = 1000, .target_percent = 50}};
    struct world w;
    o.scales = true;
    open_world(&w, &o);
    set_time(w.l, w.now_us);
    assert_int_equal(limiter_define(w.l, 1, "k", "t", &c, &c), 0);
    for (int i = 0; i < 238; i++, w.now_us += S / 2) assert_true(reads(&w, i, 10));
    assert_true(reads(&w, 1, 2000)); /* a second before the end of the second minute above the target */
    w.now_us += (int64_t)41 * S;
    set_time(w.l, w.now_us);
    assert_true(limiter_may_read(w.l, 1, &w.c, &w.v));
    const struct limit_table *t = table_now(&w, 1);
    assert_in_range(t->read_bucket.rate, 50, 2000);
    assert_int_equal(t->read_bucket.rate, capacity_rate(&t->read, INT64_MAX) * 2);
    limiter_free(w.l);
}

/* Two minutes above the target are in a row only if auto scaling counted in between. */
static void test_auto_scaling_counts_its_minutes_anew_after_it_was_off(void **state) {
    (void)state;
    for (int on_demand = 0; on_demand < 2; on_demand++) {
        struct limiter_options o = options("partition-write=1000000");
        o.scales = true;
        struct world w;
        open_world(&w, &o);
        struct capacity p = {.provisioned = true, .units = 100,
                             .scaling = {.enabled = true, .minimum = 50, .maximum = 150, .target_percent = 70}};
        struct capacity off = p;
        if (on_demand) off = (struct capacity){0};
        else off.scaling.enabled = false;
        assert_int_equal(limiter_define(w.l, 1, "k", "t", &p, &p), 0);
        minute_of(&w, 90);
        assert_int_equal(write_capacity(&w), 100); /* one minute above the target */
        set_time(w.l, w.now_us);
        assert_int_equal(limiter_define(w.l, 1, "k", "t", &off, &off), 0);
        for (int i = 0; i < 3; i++) minute_of(&w, 1);
        set_time(w.l, w.now_us);
        assert_int_equal(limiter_define(w.l, 1, "k", "t", &p, &p), 0);
        minute_of(&w, 90);
        assert_int_equal(write_capacity(&w), 100);
        minute_of(&w, 90);
        assert_int_equal(write_capacity(&w), 129);
        limiter_free(w.l);
    }
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
    assert_true(ask(&w, (struct charge_item){.object = 2, .one_partition = true, .token = 7, .write_units = 10}));
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
    struct charge_item scan = {.one_partition = true, .token = 3, .read_halves = 2, .entities = 1000}, point = scan;
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
    struct charge_item p = {.object = 1, .one_partition = true, .keyspace = "k", .table = "t", .token = 1,
                            .write_units = 1, .entities = 1};
    const struct {
        int64_t operations, bytes, same_row;
        enum limit_id limit;
    } cases[] = {{100, 4 << 20, 1, LIMITS},
                 {101, 1, 1, LIMIT_GROUP_OPERATIONS},
                 {100, (4 << 20) + 1, 1, LIMIT_GROUP_BYTES},
                 {2, 1, 2, LIMIT_GROUP_SAME_ROW}};
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        struct limit_request a = {.connection = &w.c,
                              .statements = 1,
                              .n_items = 1,
                              .items = &p,
                              .group_operations = cases[i].operations,
                              .group_bytes = cases[i].bytes,
                              .group_same_row = cases[i].same_row};
        ask_now(&w, &a);
        assert_int_equal(w.v.guidance.limit, cases[i].limit);
        assert_false(limit_refuses(&w.v));
    }
    limiter_free(w.l);
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
        cmocka_unit_test(test_a_raised_capacity_grants_idle_time_at_the_rate_of_then),
        cmocka_unit_test(test_raised_warm_throughput_counts_from_then_on),
        cmocka_unit_test(test_scaling_of_a_quiet_table_fills_its_bucket_in_time),
        cmocka_unit_test(test_on_demand_doubles_the_previous_peak_every_window),
        cmocka_unit_test(test_peaks_go_by_what_was_written),
        cmocka_unit_test(test_every_number_from_1_is_a_limit),
        cmocka_unit_test(test_every_number_up_to_the_bound_is_a_limit),
        cmocka_unit_test(test_numbers_beyond_the_bound_are_refused),
        cmocka_unit_test(test_on_demand_after_provisioned_begins_with_half_of_it),
        cmocka_unit_test(test_auto_scaling_follows_its_target),
        cmocka_unit_test(test_a_read_may_begin_by_the_capacity_of_its_minute),
        cmocka_unit_test(test_auto_scaling_counts_its_minutes_anew_after_it_was_off),
        cmocka_unit_test(test_the_innocent_table_and_partition_do_not_pay),
        cmocka_unit_test(test_a_hot_partition_is_not_forgotten_among_many),
        cmocka_unit_test(test_entities_are_counted_apart_from_units),
        cmocka_unit_test(test_a_refusal_by_the_guidance_takes_nothing_of_the_limits),
        cmocka_unit_test(test_the_group_rules),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
