/* Servers on one store in memory whose ledgers store their totals there. The test moves the clock and starts
 * the rounds. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "base/file.h"
#include "engine/named.h"
#include "metering/limits/limiter.h"
#include "server/fleet.h"

enum { S = 1000000, SERVERS = 3, TABLES = 3 };

static int64_t now_us;
static int64_t test_now(struct clock *c) {
    (void)c;
    return now_us;
}
static struct clock test_clock = {.wall_us = test_now, .mono_us = test_now};

struct server {
    struct limiter *limiter;
    struct limit_connection connection;
    struct eng *eng;
    struct ledger *ledger;
    struct fleet *fleet;
    char file[64]; /* "": the ledger is in memory */
};

struct world {
    char folder[32];
    struct server servers[SERVERS];
    bool dropped[TABLES + 1]; /* in the catalogue */
    struct err e;
};

static bool exists(void *arg, uint32_t object) { return !((struct world *)arg)->dropped[object]; }

static void begin(struct world *w, int i) {
    struct server *s = &w->servers[i];
    struct ledger_options lo = {.clock = &test_clock, .n_shards = 1, .path = *s->file ? s->file : NULL};
    if (!(s->ledger = ledger_open(&lo, &w->e))) fail_msg("%s", w->e.text);
    struct fleet_options fo = {.eng = s->eng, .ledger = s->ledger, .clock = &test_clock};
    if (!(s->fleet = fleet_open(&fo, &w->e))) fail_msg("%s", w->e.text);
}

static void end(struct world *w, int i) {
    struct server *s = &w->servers[i];
    if (s->fleet) fleet_close(s->fleet);
    if (s->ledger) ledger_close(s->ledger);
    s->fleet = NULL;
    s->ledger = NULL;
}

/* As kill -9, but that the ledger's thread has written its file. */
static void kill9(struct world *w, int i) {
    struct server *s = &w->servers[i];
    fleet_abandon(s->fleet);
    ledger_close(s->ledger);
    s->fleet = NULL;
    s->ledger = NULL;
}

static int setup(void **state) {
    struct world *w = calloc(1, sizeof(*w));
    struct eng_options o = {.durability = ENG_NONE, .clock = &clock_real, .shared = true};
    now_us = INT64_C(6000000) * S;
    char folder[] = "/tmp/fleet.XXXXXX";
    assert_non_null(mkdtemp(folder));
    memcpy(w->folder, folder, sizeof(folder));
    for (int i = 0; i < SERVERS; i++) {
        if (i) o.shared = false;
        o.beside = i ? w->servers[0].eng : NULL;
        if (!(w->servers[i].eng = eng_open(&o, &w->e))) fail_msg("%s", w->e.text);
        snprintf(w->servers[i].file, sizeof(w->servers[i].file), "%s/ledger.%d", folder, i);
    }
    *state = w;
    return 0;
}

static int teardown(void **state) {
    struct world *w = *state;
    for (int i = 0; i < SERVERS; i++) end(w, i);
    for (int i = SERVERS; i-- > 0;) eng_close(w->servers[i].eng);
    for (int i = 0; i < SERVERS; i++) (void)unlink(w->servers[i].file);
    (void)rmdir(w->folder);
    free(w);
    return 0;
}

static void charge(struct world *w, int i, uint32_t object, uint32_t units) {
    char table[8];
    snprintf(table, sizeof(table), "t%u", object);
    struct op_write write = {.item = {.object = object, .one_partition = true, .keyspace = "k", .table = table,
                                      .token = 5, .write_units = units, .entities = 1},
                             .key = slice_str("key"), .has_row = true};
    struct op_cost cost = {.writes = &write, .keyspace = "k", .table = table, .object = object};
    struct ledger_request q = {.cost = &cost, .operation = OPERATION_INSERT, .statements = 1, .now_us = now_us,
                               .took_us = 100, .statement_id = 1, .text = slice_str("INSERT")};
    ledger_post(w->servers[i].ledger, 0, &q);
}

/* A round that finds that another process has written the server's records fails, and the next one continues under
 * another id. */
static void turn(struct world *w, int i) {
    if (fleet_round(w->servers[i].fleet, true, &w->e) && fleet_round(w->servers[i].fleet, true, &w->e))
        fail_msg("%s", w->e.text);
    ledger_hide_dropped(w->servers[i].ledger, exists, w);
}

/* Each writes, then each reads what all have written. */
static void turn_all(struct world *w) {
    for (int k = 0; k < 2; k++)
        for (int i = 0; i < SERVERS; i++)
            if (w->servers[i].fleet) turn(w, i);
}

struct seen {
    uint32_t object, last, n;
    uint64_t units, requests, of_minute;
};
static int look(void *arg, const struct table_stats *t, uint32_t second) {
    struct seen *s = arg;
    const struct stats_minute *m = stats_minute(t, second / 60);
    assert_true(!s->n || s->last < t->object); /* in order, each once */
    s->last = t->object;
    s->n++;
    if (t->object != s->object) return 0;
    s->units = t->total.n[FIGURE_WRITE_UNITS];
    s->requests = t->total.of[OPERATION_INSERT][OF_REQUESTS];
    s->of_minute = m ? m->cell.f.n[FIGURE_WRITE_UNITS] : 0;
    return 0;
}
static struct seen at(struct world *w, int i, uint32_t object) {
    struct seen s = {.object = object};
    assert_int_equal(ledger_tables(w->servers[i].ledger, look, &s), 0);
    return s;
}
static uint64_t dropped_at(struct world *w, int i) {
    return ledger_dropped(w->servers[i].ledger).n[FIGURE_WRITE_UNITS];
}

static void test_each_server_has_the_sums_of_all(void **state) {
    struct world *w = *state;
    for (int i = 0; i < SERVERS; i++) begin(w, i);
    charge(w, 0, 1, 5);
    charge(w, 1, 1, 7);
    charge(w, 2, 2, 11);
    assert_int_equal(at(w, 0, 1).units, 5); /* not yet */
    turn_all(w);
    for (int i = 0; i < SERVERS; i++) {
        assert_int_equal(at(w, i, 1).units, 12);
        assert_int_equal(at(w, i, 1).requests, 2);
        assert_int_equal(at(w, i, 1).of_minute, 12);
        assert_int_equal(at(w, i, 2).units, 11);
        assert_int_equal(at(w, i, 2).n, 2);
    }
    now_us += 60 * S;
    charge(w, 1, 1, 1);
    turn_all(w);
    assert_int_equal(at(w, 0, 1).units, 13);
    assert_int_equal(at(w, 0, 1).of_minute, 1);
}

/* Servers keep the minutes that another server's records no longer contain. */
static void test_old_minutes_stay_in_the_total(void **state) {
    struct world *w = *state;
    begin(w, 0);
    begin(w, 1);
    for (uint32_t i = 0; i < 2 * STATS_MINUTES; i++, now_us += 60 * S) {
        charge(w, 0, 1, 1);
        if (i % 7 == 0) turn(w, 0), turn(w, 1);
    }
    now_us -= 60 * S;
    turn(w, 0), turn(w, 1);
    assert_int_equal(at(w, 1, 1).units, 2 * STATS_MINUTES);
    assert_int_equal(at(w, 1, 1).of_minute, 1);
    begin(w, 2);
    assert_int_equal(at(w, 2, 1).units, 2 * STATS_MINUTES);
}

static void test_a_dead_server_still_counts_and_continues_after_a_restart(void **state) {
    struct world *w = *state;
    begin(w, 0);
    begin(w, 1);
    charge(w, 0, 1, 5);
    charge(w, 1, 1, 7);
    turn_all(w);
    kill9(w, 1);
    begin(w, 2);
    assert_int_equal(at(w, 2, 1).units, 12);
    begin(w, 1);
    assert_int_equal(at(w, 1, 1).units, 12);
    charge(w, 1, 1, 1);
    turn_all(w);
    for (int i = 0; i < SERVERS; i++) assert_int_equal(at(w, i, 1).units, 13);
}

/* E2: a power cut has removed the newest charges from the file, but not from the store. */
static void test_charges_lost_from_the_file_are_restored_from_the_store(void **state) {
    struct world *w = *state;
    struct buf older;
    struct err e = {0};
    buf_init(&older, 0);
    begin(w, 0);
    begin(w, 1);
    charge(w, 0, 1, 5);
    turn_all(w);
    kill9(w, 0);
    assert_int_equal(file_append_to(w->servers[0].file, SIZE_MAX - 1, &older, &e), 0);
    begin(w, 0);
    charge(w, 0, 1, 7);
    charge(w, 0, 2, 3);
    turn_all(w);
    kill9(w, 0);
    FILE *f = fopen(w->servers[0].file, "wb");
    assert_int_equal(fwrite(older.p, 1, older.n, f), older.n);
    assert_int_equal(fclose(f), 0);
    begin(w, 0);
    assert_int_equal(at(w, 0, 1).units, 12);
    charge(w, 0, 1, 1);
    turn_all(w);
    for (int i = 0; i < 2; i++) {
        assert_int_equal(at(w, i, 1).units, 13);
        assert_int_equal(at(w, i, 2).units, 3);
    }
    kill9(w, 0);
    begin(w, 0); /* the file has it again */
    assert_int_equal(at(w, 0, 1).units, 13);
    buf_fini(&older);
}

static void test_a_dropped_table_counts_once_whoever_drops_it_first(void **state) {
    struct world *w = *state;
    for (int i = 0; i < SERVERS; i++) begin(w, i);
    for (int i = 0; i < SERVERS; i++) charge(w, i, 1, 10), charge(w, i, 2, 1);
    turn_all(w);
    kill9(w, 2); /* its records keep the table */
    w->dropped[1] = true;
    ledger_drop(w->servers[0].ledger, 1);
    for (int round = 0; round < 2; round++) {
        turn_all(w);
        assert_int_equal(dropped_at(w, 0), 30);
        assert_int_equal(at(w, 0, 1).units, 0);
        assert_int_equal(at(w, 0, 2).units, 3);
        if (round == 0) { /* this server has not dropped it yet */
            assert_int_equal(at(w, 1, 1).units + dropped_at(w, 1), 30);
            ledger_drop(w->servers[1].ledger, 1);
        } else {
            assert_int_equal(dropped_at(w, 1), 30);
        }
    }
}

/* E1 */
static void test_two_ledgers_with_one_id_do_not_overwrite_each_other(void **state) {
    struct world *w = *state;
    struct buf copy;
    struct err e = {0};
    buf_init(&copy, 0);
    begin(w, 0);
    charge(w, 0, 1, 5);
    turn(w, 0);
    end(w, 0);
    assert_int_equal(file_append_to(w->servers[0].file, SIZE_MAX - 1, &copy, &e), 0);
    FILE *f = fopen(w->servers[1].file, "wb");
    assert_int_equal(fwrite(copy.p, 1, copy.n, f), copy.n);
    assert_int_equal(fclose(f), 0);
    begin(w, 0);
    begin(w, 1);
    charge(w, 0, 1, 100);
    charge(w, 1, 1, 1000);
    assert_int_equal(fleet_round(w->servers[0].fleet, true, &e), -1); /* the other server has replaced the head */
    assert_non_null(strstr(e.text, "another server has written"));
    turn_all(w);
    begin(w, 2);
    assert_int_equal(at(w, 2, 1).units, 105 + 1005);
    assert_int_equal(at(w, 0, 1).units, 105 + 1005);
    buf_fini(&copy);
}

static void test_a_damaged_record_is_left_out(void **state) {
    struct world *w = *state;
    struct fleet *f;
    uint64_t id;
    char key[64];
    begin(w, 0);
    charge(w, 0, 1, 5);
    charge(w, 0, 2, 7);
    turn(w, 0);
    f = w->servers[0].fleet;
    assert_non_null(f);
    assert_int_equal(ledger_id(w->servers[0].ledger, &id, &w->e), 0);
    snprintf(key, sizeof(key), "share/table/%016llx/%08x", (unsigned long long)id, 1u);
    assert_int_equal(eng_meta_put(w->servers[1].eng, slice_str(key), slice_str("damaged"), &w->e), 0);
    assert_int_equal(eng_meta_put(w->servers[1].eng, slice_str("share/head/x"), slice_str("damaged"), &w->e), 0);
    begin(w, 1);
    assert_int_equal(at(w, 1, 1).units, 0);
    assert_int_equal(at(w, 1, 2).units, 7);
}

/* Totals are written when something has changed, and at most once in FLEET_TABLES_US. */
static void test_writes_are_few(void **state) {
    struct world *w = *state;
    begin(w, 0);
    begin(w, 1);
    turn_all(w);
    charge(w, 0, 1, 5);
    for (int i = 0; i < 3; i++, now_us += S) {
        assert_int_equal(fleet_round(w->servers[0].fleet, false, &w->e), 0);
        assert_int_equal(fleet_round(w->servers[1].fleet, false, &w->e), 0);
        assert_int_equal(at(w, 1, 1).units, 0);
    }
    now_us += FLEET_TABLES_US;
    assert_int_equal(fleet_round(w->servers[0].fleet, false, &w->e), 0);
    assert_int_equal(fleet_round(w->servers[1].fleet, false, &w->e), 0);
    assert_int_equal(at(w, 1, 1).units, 5);
}

/* Servers charge, write, read, die and restart at random; at the end every sum is exact. */
static void test_sums_are_exact_after_any_history(void **state) {
    struct world *w = *state;
    uint64_t random = 88172645463325252u, units[TABLES + 1] = {0};
    for (int i = 0; i < SERVERS; i++) begin(w, i);
    for (int step = 0; step < 3000; step++) {
        random ^= random << 13, random ^= random >> 7, random ^= random << 17;
        int i = (int)((random >> 10) % SERVERS);
        uint32_t object = 1 + (uint32_t)(random >> 20) % TABLES, n = 1 + (uint32_t)(random >> 30) % 9;
        switch (random >> 40 & 31) {
        case 0:
            if (w->servers[i].fleet) kill9(w, i);
            break;
        case 1:
            if (w->servers[i].fleet) end(w, i);
            break;
        case 2: now_us += 61 * S; break;
        case 3: now_us += INT64_C(28800) * S; break;
        case 4:
        case 5:
        case 6:
        case 7:
            if (w->servers[i].fleet) turn(w, i);
            break;
        default:
            if (!w->servers[i].fleet) begin(w, i);
            charge(w, i, object, n), units[object] += n;
            break;
        }
    }
    for (int i = 0; i < SERVERS; i++)
        if (!w->servers[i].fleet) begin(w, i);
    turn_all(w);
    for (int i = 0; i < SERVERS; i++)
        for (uint32_t t = 1; t <= TABLES; t++) assert_int_equal(at(w, i, t).units, units[t]);
}

/* ---- limits ---- */

enum { UNITS = 100 };

static int demands(void *arg, struct limit_demands *out) { return limiter_demands(arg, out); }
static void divide(void *arg, struct limit_demand *others, size_t n) { limiter_divide(arg, others, n); }

static void begin_limited(struct world *w, int i) {
    struct server *s = &w->servers[i];
    struct limiter_options o = {.mode = LIMITS_ENFORCE};
    const struct capacity c = {.provisioned = true, .units = UNITS};
    assert_int_equal(limit_values_parse("burst=1", &o.values, &w->e), 0);
    s->limiter = limiter_new(&o);
    limiter_set_time(s->limiter, (struct limit_time){.now_us = now_us, .wall_us = now_us});
    assert_int_equal(limiter_define(s->limiter, 1, "k", "t", &c, &c), 0);
    begin(w, i);
    fleet_share_limits(s->fleet, &(struct fleet_limits){.demands = demands, .divide = divide, .arg = s->limiter});
}

/* A second with three times the limit's writes at a server, and its round. Returns how many are admitted. */
static uint32_t second_of(struct world *w, int i) {
    struct server *s = &w->servers[i];
    const struct charge_item p = {.object = 1, .keyspace = "k", .table = "t", .one_partition = true, .write_units = 1};
    uint32_t admitted = 0;
    limiter_set_time(s->limiter, (struct limit_time){.now_us = now_us, .wall_us = now_us});
    for (int k = 0; k < 3 * UNITS; k++) {
        struct limit_verdict v;
        limiter_admit(s->limiter,
                    &(struct limit_request){.connection = &s->connection, .statements = 1, .n_items = 1, .items = &p},
                    &v);
        admitted += !limit_refuses(&v);
    }
    if (fleet_round(s->fleet, false, &w->e)) fail_msg("%s", w->e.text);
    return admitted;
}

static void test_servers_share_a_limit_until_one_dies(void **state) {
    struct world *w = *state;
    uint32_t sum = 0;
    begin_limited(w, 0);
    begin_limited(w, 1);
    for (int i = 0; i < 5; i++, now_us += S) second_of(w, 0), second_of(w, 1);
    for (int i = 0; i < 10; i++, now_us += S) {
        uint32_t a = second_of(w, 0), b = second_of(w, 1);
        assert_in_range(a, UNITS * 4 / 10, UNITS * 6 / 10);
        sum += a + b;
    }
    assert_in_range(sum, 10 * UNITS * 9 / 10, 10 * UNITS * 11 / 10);
    kill9(w, 1);
    for (int64_t us = 0; us < FLEET_LEASE_US - S; us += S, now_us += S) /* it may be alive */
        assert_true(second_of(w, 0) <= UNITS * 6 / 10);
    for (int i = 0; i < 3; i++, now_us += S) second_of(w, 0);
    assert_int_equal(second_of(w, 0), UNITS);
    limiter_free(w->servers[0].limiter);
    limiter_free(w->servers[1].limiter);
}

static void test_a_server_without_demand_leaves_the_others_the_limit(void **state) {
    struct world *w = *state;
    begin_limited(w, 0);
    begin_limited(w, 1);
    for (int i = 0; i < 3; i++, now_us += S) second_of(w, 1);
    for (int i = 0; i < 20; i++, now_us += S) { /* its demand ends */
        second_of(w, 0);
        if (fleet_round(w->servers[1].fleet, false, &w->e)) fail_msg("%s", w->e.text);
    }
    assert_int_equal(second_of(w, 0), UNITS);
    now_us += S;
    assert_in_range(second_of(w, 1), 1, UNITS / 20 + 1); /* what is new gets some at once */
    limiter_free(w->servers[0].limiter);
    limiter_free(w->servers[1].limiter);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_each_server_has_the_sums_of_all, setup, teardown),
        cmocka_unit_test_setup_teardown(test_old_minutes_stay_in_the_total, setup, teardown),
        cmocka_unit_test_setup_teardown(test_a_dead_server_still_counts_and_continues_after_a_restart, setup, teardown),
        cmocka_unit_test_setup_teardown(test_charges_lost_from_the_file_are_restored_from_the_store, setup, teardown),
        cmocka_unit_test_setup_teardown(test_a_dropped_table_counts_once_whoever_drops_it_first, setup, teardown),
        cmocka_unit_test_setup_teardown(test_two_ledgers_with_one_id_do_not_overwrite_each_other, setup, teardown),
        cmocka_unit_test_setup_teardown(test_a_damaged_record_is_left_out, setup, teardown),
        cmocka_unit_test_setup_teardown(test_writes_are_few, setup, teardown),
        cmocka_unit_test_setup_teardown(test_sums_are_exact_after_any_history, setup, teardown),
        cmocka_unit_test_setup_teardown(test_servers_share_a_limit_until_one_dies, setup, teardown),
        cmocka_unit_test_setup_teardown(test_a_server_without_demand_leaves_the_others_the_limit, setup, teardown),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
