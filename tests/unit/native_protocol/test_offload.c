/* A call on its way to workers and back, without any thread: the loop is only its inbox, and the test is the worker. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <stdlib.h>

#include "native_protocol/dispatch.h"
#include "native_protocol/conn.h"
#include "native_protocol/wakeup.h"

enum { VERSION = 4, STREAM = 7 };

struct world {
    struct clock clock; /* first */
    _Atomic int64_t now_us;
    struct eng *eng;
    struct catalog *catalog;
    struct cql_db *db;
    struct np_options options;
    struct np_bounds bounds;
    struct np_loop *loop;
    struct np_conn *conn;
    struct eng_batch *batch;
};

static int64_t world_now(struct clock *c) { return ((struct world *)c)->now_us; }

/* faults: of a store that other servers write to, too; NULL: it has one writer. */
static struct world *world_new_beside(const char *ddl_delay, const struct eng_test_faults *faults) {
    struct world *w = calloc(1, sizeof(*w));
    struct err e = {0};
    assert_non_null(w);
    w->clock = (struct clock){world_now, world_now};
    w->now_us = 1000000;
    w->eng = eng_open(
        &(struct eng_options){.clock = &w->clock, .durability = ENG_NONE, .shared = faults, .faults = faults},
        &e);
    assert_non_null(w->eng);
    struct catalog_options co = {.eng = w->eng, .clock = &w->clock, .mode = MODE_CASSANDRA,
                                 .node = {"test", "dc1", "rack1", "5.0.8", "3.4.7", "127.0.0.1", 9042}};
    co.ddl_delay = ddl_delay;
    w->catalog = catalog_open(&co, &e);
    assert_non_null(w->catalog);
    w->db = cql_db_new(
        &(struct cql_db_options){.eng = w->eng, .catalog = w->catalog, .clock = &w->clock, .mode = MODE_CASSANDRA}, &e);
    assert_non_null(w->db);
    w->options = (struct np_options){
        .db = w->db, .eng = w->eng, .catalog = w->catalog, .clock = &w->clock, .capacity_payload = NP_CAPACITY_OFF};
    w->loop = calloc(1, sizeof(*w->loop));
    assert_non_null(w->loop);
    struct np_budget_options budget = {.clock = &w->clock, .limit = 1 << 20};
    npi_peers_init(&w->bounds.peers, 1, 1);
    npi_budget_init(&w->bounds.unfinished, &budget);
    npi_budget_init(&w->bounds.unread, &budget);
    w->bounds.work.limit = 16 << 20;
    assert_int_equal(npi_loop_init(w->loop, &w->options, npi_dispatch_fns, &w->bounds, &e), 0);
    w->conn = calloc(1, sizeof(*w->conn));
    assert_non_null(w->conn);
    w->conn->loop = w->loop;
    w->conn->version = VERSION;
    np_work_client_init(&w->conn->work);
    np_output_init(&w->conn->output, &w->loop->bufs, &w->bounds.unread, w->loop);
    w->batch = eng_batch_new(w->eng);
    assert_non_null(w->batch);
    return w;
}

static struct world *world_new(const char *ddl_delay) { return world_new_beside(ddl_delay, NULL); }

static void world_free(struct world *w) {
    eng_batch_free(w->batch);
    npi_loop_close(w->loop);
    npi_loop_fini(w->loop);
    npi_budget_fini(&w->bounds.unread);
    npi_budget_fini(&w->bounds.unfinished);
    npi_peers_fini(&w->bounds.peers);
    free(w->loop);
    free(w->conn);
    cql_db_free(w->db);
    catalog_close(w->catalog);
    eng_close(w->eng);
    free(w);
}

/* As offload leaves it, on its way to a worker. */
static struct np_call *call_new(struct world *w, const char *cql, enum cql_work_class class, int64_t deadline_us) {
    struct np_call *c = npi_call_take(w->loop);
    struct buf body;
    assert_non_null(c);
    buf_init(&body, 0);
    buf_u32(&body, (uint32_t)strlen(cql));
    buf_put_str(&body, cql);
    buf_u16(&body, CL_QUORUM);
    buf_u8(&body, 0);
    err_clear(c->err);
    c->state = NP_CALL_QUEUED;
    c->conn = w->conn;
    c->env = (struct np_envelope){.version = VERSION, .stream = STREAM, .opcode = NP_QUERY};
    c->body = arena_dup(&c->arena, buf_slice(&body));
    buf_fini(&body);
    c->reply = (struct np_reply){0};
    c->work = (struct np_work){.client = &w->conn->work,
                               .class = class,
                               .deadline_us = deadline_us,
                               .cancelled = &w->conn->gone};
    c->request = (struct cql_request){.params.consistency = CL_QUORUM};
    c->r = (struct cql_run){.in = &c->request,
                            .db = w->db,
                            .err = c->err,
                            .answer.work_class = class,
                            .cancelled = &w->conn->gone,
                            .deadline_us = deadline_us};
    return c;
}

static enum np_work_part run(struct world *w, struct np_call *c) { return npi_dispatch_work.run(&c->work, w->batch); }

/* It came back to the loop, alone. */
static void end(struct world *w, struct np_call *c, enum np_work_end why) {
    npi_dispatch_work.ended(&c->work, why);
    assert_ptr_equal(w->loop->inbox.first, &c->task);
    assert_null(c->task.next);
    w->loop->inbox.first = NULL;
    w->loop->inbox.tail = &w->loop->inbox.first;
}

static void call_free(struct world *w, struct np_call *c) {
    npi_call_forget(c);
    npi_call_give(w->loop, c);
}

static void run_to_end(struct world *w, const char *cql, enum cql_work_class class) {
    struct np_call *c = call_new(w, cql, class, 0);
    enum np_work_part part;
    while ((part = run(w, c)) == NP_PART_MORE) continue;
    assert_int_equal(part, NP_PART_LAST);
    if (c->state == NP_CALL_FAILED) fail_msg("%s: %s", cql, c->err->text);
    end(w, c, NP_WORK_DONE);
    call_free(w, c);
}

static void test_call_that_ran_comes_back_committed(void **state) {
    (void)state;
    struct world *w = world_new("none");
    run_to_end(w, "CREATE KEYSPACE k WITH replication = {'class': 'SimpleStrategy', 'replication_factor': 1}",
               WORK_DDL);
    run_to_end(w, "CREATE TABLE k.t (p int PRIMARY KEY, v int)", WORK_DDL);
    struct np_call *c = call_new(w, "INSERT INTO k.t (p, v) VALUES (1, 1) IF NOT EXISTS", WORK_UPDATE, 0);
    assert_int_equal(run(w, c), NP_PART_LAST);
    assert_int_equal(c->state, NP_CALL_WRITTEN);
    assert_true(c->r.answer.commit_seq > 0);
    assert_true(eng_batch_empty(w->batch));
    end(w, c, NP_WORK_DONE);
    call_free(w, c);
    world_free(w);
}

static void test_ddl_that_is_held_asks_for_a_later_part(void **state) {
    (void)state;
    struct world *w = world_new("held");
    struct np_call *c =
        call_new(w, "CREATE KEYSPACE k WITH replication = {'class': 'SimpleStrategy', 'replication_factor': 1}",
                 WORK_DDL, 0);
    for (int i = 0; i < 3; i++) {
        assert_int_equal(run(w, c), NP_PART_LATER);
        assert_true(c->work.not_before_us > w->now_us);
        w->now_us = c->work.not_before_us;
    }
    end(w, c, NP_WORK_STOPPING);
    assert_int_equal(c->state, NP_CALL_FAILED);
    assert_int_equal(c->err->code, ERR_SERVER);
    assert_non_null(strstr(c->err->text, "continues when it starts again"));
    call_free(w, c);
    world_free(w);
}

static void test_call_that_could_not_run_says_why(void **state) {
    (void)state;
    static const struct {
        enum cql_work_class class;
        enum np_work_end why;
        enum err_code code;
        const char *text;
    } cases[] = {
        {WORK_READ, NP_WORK_NO_ROOM, ERR_OVERLOADED, "this connection has the most of them"},
        {WORK_SCAN, NP_WORK_STOPPING, ERR_OVERLOADED, "The server is stopping"},
        {WORK_SCAN, NP_WORK_STALE, ERR_READ_TIMEOUT, "Operation timed out - received only 0 responses."},
        {WORK_READ, NP_WORK_STALE, ERR_READ_TIMEOUT, "Operation timed out - received only 0 responses."},
        {WORK_UPDATE, NP_WORK_STALE, ERR_WRITE_TIMEOUT, "Operation timed out - received only 0 responses."},
    };
    struct world *w = world_new("none");
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        struct np_call *c = call_new(w, "SELECT * FROM system.local", cases[i].class, w->now_us);
        end(w, c, cases[i].why);
        assert_int_equal(c->state, NP_CALL_FAILED);
        assert_int_equal(c->err->code, cases[i].code);
        assert_non_null(strstr(c->err->text, cases[i].text));
        call_free(w, c);
    }
    world_free(w);
}

static void test_call_of_a_client_that_went_ends_without_a_run(void **state) {
    (void)state;
    struct world *w = world_new("none");
    struct np_call *c = call_new(w, "SELECT * FROM system.local", WORK_READ, 0);
    atomic_store(&w->conn->gone, true);
    end(w, c, NP_WORK_STALE);
    assert_int_equal(c->err->code, ERR_SERVER);
    assert_string_equal(c->err->text, "The client is gone");
    assert_int_equal(c->n_parts, 0);
    call_free(w, c);
    world_free(w);
}

enum { KB = 1 << 10, VALUE = 300 * KB };

/* With a row that needs a block of 512 KB. */
static struct world *world_with_large_row(void) {
    struct world *w = world_new("none");
    struct buf insert;
    buf_init(&insert, 0);
    buf_put_str(&insert, "INSERT INTO k.t (p, v) VALUES (1, '");
    memset(buf_reserve(&insert, VALUE), 'x', VALUE);
    buf_advance(&insert, VALUE);
    buf_put(&insert, "') IF NOT EXISTS", sizeof("') IF NOT EXISTS"));
    run_to_end(w, "CREATE KEYSPACE k WITH replication = {'class': 'SimpleStrategy', 'replication_factor': 1}",
               WORK_DDL);
    run_to_end(w, "CREATE TABLE k.t (p int PRIMARY KEY, v text)", WORK_DDL);
    run_to_end(w, (const char *)insert.p, WORK_UPDATE);
    buf_fini(&insert);
    return w;
}

static void makes(struct world *w, struct np_share *s, size_t n) {
    npi_share_init(s, &w->bounds.unread, NULL);
    assert_int_equal(npi_share_make(s, s, 0, n), NP_MAY_GO_ON);
}

static void leaves(struct np_share *s) {
    npi_share_made(s, s->making);
    npi_share_sub(s, s->bytes);
}

static void answered(struct world *w, struct np_call *c) {
    assert_int_equal(c->state, NP_CALL_DONE);
    assert_true(np_reply_size(&c->reply) > VALUE);
    np_reply_drop(&c->reply);
    end(w, c, NP_WORK_DONE);
    call_free(w, c);
}

static void test_small_answer_without_room_waits_and_holds_nothing(void **state) {
    (void)state;
    struct world *w = world_with_large_row();
    struct np_share others[2];
    struct np_call *c = call_new(w, "SELECT v FROM k.t WHERE p = 1", WORK_READ, w->now_us + 1000000);
    for (int i = 0; i < 2; i++) makes(w, &others[i], 450 * KB); /* of 1 MB; none makes more than the call needs */
    for (int i = 0; i < 3; i++) {
        assert_int_equal(run(w, c), NP_PART_LATER);
        assert_int_equal(c->work.deadline_us, 2000000); /* its time goes on */
        assert_int_equal(w->conn->output.share.bytes, 0);
        assert_int_equal(c->n_parts, 1); /* it looks for room before it runs again */
        w->now_us = c->work.not_before_us;
    }
    for (int i = 0; i < 2; i++) leaves(&others[i]);
    assert_int_equal(run(w, c), NP_PART_LAST);
    answered(w, c);
    world_free(w);
}

static void test_small_answer_that_found_no_room_in_time_says_so(void **state) {
    (void)state;
    struct world *w = world_with_large_row();
    struct np_share others[2];
    struct np_call *c = call_new(w, "SELECT v FROM k.t WHERE p = 1", WORK_READ, w->now_us + 1000000);
    for (int i = 0; i < 2; i++) makes(w, &others[i], 450 * KB);
    assert_int_equal(run(w, c), NP_PART_LATER);
    w->now_us += 1000000;
    end(w, c, NP_WORK_STALE);
    assert_int_equal(c->state, NP_CALL_FAILED);
    assert_int_equal(c->err->code, ERR_OVERLOADED);
    assert_non_null(strstr(c->err->text, "too many results that wait to be read"));
    call_free(w, c);
    for (int i = 0; i < 2; i++) leaves(&others[i]);
    world_free(w);
}

static void test_small_answer_is_made_while_another_makes_all_that_there_may_be(void **state) {
    (void)state;
    struct world *w = world_with_large_row();
    struct np_share guilty;
    struct np_call *c = call_new(w, "SELECT v FROM k.t WHERE p = 1", WORK_READ, 0);
    makes(w, &guilty, 1024 * KB);
    assert_int_equal(run(w, c), NP_PART_LAST);
    assert_true(guilty.revoked);
    answered(w, c);
    leaves(&guilty);
    world_free(w);
}

/* ---- writes that meet those of other servers ---- */

struct refunds {
    unsigned n;
};

static void on_write_failed(void *arg, const struct ledger_posting *posting, struct limit_took took) {
    (void)posting, (void)took;
    ((struct refunds *)arg)->n++;
}

/* With a table of rows and one of counters. */
static struct world *world_with_counters(const struct eng_test_faults *faults, struct refunds *refunds) {
    struct world *w = world_new_beside("none", faults);
    run_to_end(w, "CREATE KEYSPACE k WITH replication = {'class': 'SimpleStrategy', 'replication_factor': 1}",
               WORK_DDL);
    run_to_end(w, "CREATE TABLE k.t (p int PRIMARY KEY, v int)", WORK_DDL);
    run_to_end(w, "CREATE TABLE k.n (p int PRIMARY KEY, c counter)", WORK_DDL);
    w->options.write_failed.fn = on_write_failed;
    w->options.write_failed.arg = refunds;
    return w;
}

/* Runs an update, which starts over after a time as often as it meets a conflict. */
static struct np_call *update(struct world *w, const char *cql, int64_t deadline_us) {
    struct np_call *c = call_new(w, cql, WORK_UPDATE, deadline_us);
    enum np_work_part part;
    while ((part = run(w, c)) == NP_PART_LATER) {
        assert_true(c->work.not_before_us >= w->now_us && c->work.not_before_us < w->now_us + 64000);
        assert_int_equal(c->work.deadline_us, deadline_us);
        assert_true(eng_batch_empty(w->batch));
        w->now_us = c->work.not_before_us;
    }
    assert_int_equal(part, NP_PART_LAST);
    return c;
}

static void update_end(struct world *w, struct np_call *c) {
    end(w, c, NP_WORK_DONE);
    call_free(w, c);
}

/* The bigint of the one row and column that a statement reads. */
static uint64_t number(struct world *w, const char *cql) {
    struct np_call *c = call_new(w, cql, WORK_READ, 0);
    assert_int_equal(run(w, c), NP_PART_LAST);
    assert_int_equal(c->state, NP_CALL_DONE);
    uint64_t n = load_u64(c->out.p + c->out.n - 8);
    np_reply_drop(&c->reply);
    update_end(w, c);
    return n;
}

static void test_write_that_meets_a_conflict_is_made_once_and_charged_once(void **state) {
    (void)state;
    static const char *const statements[] = {"UPDATE k.n SET c = c + 1 WHERE p = 1",
                                             "UPDATE k.t SET v = 1 WHERE p = 1 IF v = null",
                                             "UPDATE k.t SET v = null WHERE p = 1 IF v = 1"};
    struct refunds refunds = {0}, none = {0};
    struct world *w = world_with_counters(&(struct eng_test_faults){.seed = 1, .conflict_in = 2}, &refunds);
    struct world *alone = world_with_counters(NULL, &none);
    unsigned n_conflicts = 0;
    for (int i = 0; i < 60; i++) {
        const char *cql = statements[i % ARRAY_LEN(statements)];
        struct np_call *c = update(w, cql, 0), *same = update(alone, cql, 0);
        assert_int_equal(c->state, NP_CALL_WRITTEN);
        assert_int_equal(same->state, NP_CALL_WRITTEN);
        assert_true(same->charge.write_units > 0);
        assert_true(c->charge.write_units == same->charge.write_units);
        assert_true(c->charge.read_units == same->charge.read_units);
        assert_int_equal(c->out.n, same->out.n); /* [applied] once, or nothing */
        n_conflicts += c->n_conflicts;
        update_end(w, c);
        update_end(alone, same);
    }
    assert_int_equal(number(w, "SELECT c FROM k.n WHERE p = 1"), 20);
    assert_true(n_conflicts > 20);
    assert_int_equal(refunds.n, n_conflicts); /* every run but the last gave its units back */
    assert_int_equal(none.n, 0);
    world_free(w);
    world_free(alone);
}

static void fails_by_conflict(struct world *w, struct np_call *c) {
    assert_int_equal(c->state, NP_CALL_FAILED);
    assert_int_equal(c->err->code, ERR_WRITE_TIMEOUT);
    assert_string_equal(c->err->detail.write_type, "CAS");
    assert_non_null(strstr(c->err->text, "nothing was written"));
    update_end(w, c);
}

static void test_write_that_always_meets_a_conflict_fails_in_time(void **state) {
    (void)state;
    struct refunds refunds = {0};
    struct world *w = world_with_counters(&(struct eng_test_faults){.seed = 1, .conflict_in = 1}, &refunds);
    fails_by_conflict(w, update(w, "UPDATE k.n SET c = c + 1 WHERE p = 1", 0));
    assert_int_equal(refunds.n, 64);
    int64_t deadline_us = w->now_us + 100000;
    fails_by_conflict(w, update(w, "UPDATE k.n SET c = c + 1 WHERE p = 1", deadline_us));
    assert_true(w->now_us < deadline_us);
    assert_in_range(refunds.n, 66, 127);
    world_free(w);
}

static void test_counters_of_a_batch_that_were_written_are_not_written_again(void **state) {
    (void)state;
    enum { BATCHES = 20 };
    struct refunds refunds = {0};
    struct world *w = world_with_counters(&(struct eng_test_faults){.seed = 1, .part_in = 2}, &refunds);
    for (int i = 0; i < BATCHES; i++) {
        struct np_call *c = update(w,
                                   "BEGIN COUNTER BATCH UPDATE k.n SET c = c + 1 WHERE p = 1; "
                                   "UPDATE k.n SET c = c + 10 WHERE p = 2; UPDATE k.n SET c = c + 100 WHERE p = 3; "
                                   "APPLY BATCH",
                                   0);
        assert_int_equal(c->state, NP_CALL_WRITTEN);
        update_end(w, c);
    }
    assert_true(refunds.n > 5);
    assert_int_equal(number(w, "SELECT c FROM k.n WHERE p = 1"), BATCHES);
    assert_int_equal(number(w, "SELECT c FROM k.n WHERE p = 2"), 10 * BATCHES);
    assert_int_equal(number(w, "SELECT c FROM k.n WHERE p = 3"), 100 * BATCHES);
    world_free(w);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_call_that_ran_comes_back_committed),
        cmocka_unit_test(test_ddl_that_is_held_asks_for_a_later_part),
        cmocka_unit_test(test_call_that_could_not_run_says_why),
        cmocka_unit_test(test_call_of_a_client_that_went_ends_without_a_run),
        cmocka_unit_test(test_small_answer_without_room_waits_and_holds_nothing),
        cmocka_unit_test(test_small_answer_that_found_no_room_in_time_says_so),
        cmocka_unit_test(test_small_answer_is_made_while_another_makes_all_that_there_may_be),
        cmocka_unit_test(test_write_that_meets_a_conflict_is_made_once_and_charged_once),
        cmocka_unit_test(test_write_that_always_meets_a_conflict_fails_in_time),
        cmocka_unit_test(test_counters_of_a_batch_that_were_written_are_not_written_again),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
