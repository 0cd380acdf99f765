/* What INSERT, UPDATE, DELETE and BATCH hand to the engine: all or nothing, once, and what it was decided on. */
#include <stdio.h>
#include <stdlib.h>

#include "access/access.h"
#include "harness.h"

#include "base/murmur3.h"
#include "cql/request/db.h"
#include "cql/write/mutation.h"
#include "cql/write/row_bound.h"

static int setup(void **state) {
    static const char *const tables[] = {
        "CREATE TABLE n (p int, c int, a counter, b counter, s counter static, PRIMARY KEY (p, c))",
        "CREATE TABLE t (p int, c int, v int, l list<int>, s int static, PRIMARY KEY (p, c))",
        NULL,
    };
    *state = harness_new(MODE_CASSANDRA, tables);
    return 0;
}

/* How often the engine was written to by a statement that must succeed. */
static uint64_t writes_of(struct harness *h, const char *cql) {
    uint64_t before = eng_durable_seq(h->eng);
    run_ok(h, cql);
    return eng_durable_seq(h->eng) - before;
}

static void test_a_batch_is_one_write(void **state) {
    struct harness *h = *state;
    assert_int_equal(writes_of(h,
                               "BEGIN COUNTER BATCH UPDATE n SET a = a + 1 WHERE p = 1 AND c = 1; UPDATE n SET a = a + "
                               "1 WHERE p = 1 AND c = 1; "
                               "UPDATE n SET b = b + 1 WHERE p = 2 AND c = 1; DELETE FROM n WHERE p = 3 APPLY BATCH"),
                     1);
    assert_int_equal(writes_of(h, "BEGIN BATCH INSERT INTO t (p, c, v) VALUES (1, 1, 1); INSERT INTO t (p, c, v) "
                                  "VALUES (2, 1, 1) APPLY BATCH"),
                     1);
    assert_int_equal(
        writes_of(
            h,
            "BEGIN BATCH INSERT INTO t (p, c, v) VALUES (5, 1, 1) IF NOT EXISTS; DELETE FROM t WHERE p = 5 AND c > 2; "
            "UPDATE t SET s = 1 WHERE p = 5 APPLY BATCH"),
        1);
    run_ok(h, "UPDATE t SET l = [1, 2] WHERE p = 1 AND c IN (1, 2)");
    assert_int_equal(writes_of(h, "UPDATE t SET l[0] = 9 WHERE p = 1 AND c IN (1, 2)"), 1);
    assert_int_equal(writes_of(h, "UPDATE n SET a = a + 1 WHERE p IN (7, 8, 9) AND c IN (1, 2)"), 1);
}

enum fault { FAULT_NULL, FAULT_SHORT, FAULT_NULL_KEY, FAULTS };

/* A counter batch over three partitions whose statement at one place cannot be written. */
static void run_faulty(struct harness *h, const uint8_t id[16], uint32_t n, uint32_t at, enum fault fault) {
    uint8_t keys[8][4], increments[8][8] = {{0}};
    struct value values[8][2];
    struct cql_batch_item items[8];
    for (uint32_t i = 0; i < n; i++) {
        store_u32(keys[i], i % 3);
        increments[i][7] = 1;
        values[i][0] = value_of(increments[i], i == at && fault == FAULT_SHORT ? 4 : 8);
        if (i == at && fault == FAULT_NULL) values[i][0] = value_null();
        values[i][1] = i == at && fault == FAULT_NULL_KEY ? value_null() : value_of(keys[i], 4);
        items[i] = (struct cql_batch_item){.prepared_id = slice_of(id, 16), .n_values = 2, .values = values[i]};
    }
    struct cql_request r = {.kind = REQUEST_BATCH, .batch_kind = BATCH_COUNTER, .n_items = n, .items = items};
    assert_int_equal(harness_request(h, &r), at < n ? CQL_FAILED : CQL_COMMIT);
}

static void test_a_counter_batch_that_fails_anywhere_leaves_nothing(void **state) {
    struct harness *h = *state;
    uint8_t id[16];
    harness_prepare(h, "UPDATE n SET a = a + ? WHERE p = ? AND c = 1", id);
    run_faulty(h, id, 6, 6, FAULT_NULL);
    assert_rows(h, "SELECT p, a FROM n WHERE p IN (0, 1, 2)", "0,2;1,2;2,2");
    uint64_t before = eng_durable_seq(h->eng);
    for (enum fault fault = 0; fault < FAULTS; fault++)
        for (uint32_t at = 0; at < 6; at++) run_faulty(h, id, 6, at, fault);
    assert_int_equal(eng_durable_seq(h->eng), before);
    assert_rows(h, "SELECT p, a FROM n WHERE p IN (0, 1, 2)", "0,2;1,2;2,2");
}

static void test_a_batch_that_fails_late_leaves_nothing(void **state) {
    struct harness *h = *state;
    run_ok(h, "INSERT INTO t (p, c, v) VALUES (1, 1, 1)");
    uint64_t before = eng_durable_seq(h->eng);
    harness_error(h, "BEGIN BATCH UPDATE t SET v = 2 WHERE p = 1 AND c = 1 IF v = 1; UPDATE t SET l[3] = 1 WHERE p = 1 "
                     "AND c = 1 APPLY BATCH");
    harness_error(h, "BEGIN BATCH INSERT INTO t (p, c, v) VALUES (9, 9, 9); UPDATE t SET l[3] = 1 WHERE p = 1 AND c = "
                     "1 APPLY BATCH");
    harness_error(h, "BEGIN BATCH UPDATE t SET v = 2 WHERE p = 1 AND c = 1 IF v = 1; UPDATE t SET l[-1] = 1 WHERE p = "
                     "1 AND c = 1 APPLY BATCH");
    assert_int_equal(eng_durable_seq(h->eng), before);
    assert_rows(h, "SELECT p, c, v FROM t", "1,1,1");
}

/* A statement with a timestamp of the driver's own. */
static void run_at(struct harness *h, const char *cql, int64_t ts) {
    struct cql_request r = {.kind = REQUEST_QUERY,
                            .query = slice_str(cql),
                            .params = {.has_timestamp = true, .timestamp = ts}};
    if (harness_request(h, &r) == CQL_FAILED) fail_msg("%s: %s", cql, h->err.text);
}

static void test_in_keyspaces_mode_client_side_timestamps_are_asked_for(void **state) {
    (void)state;
    struct harness *h = test_calloc(1, sizeof *h);
    harness_open(h, MODE_KEYSPACES);
    run_ok(h, "CREATE KEYSPACE k WITH replication = {'class': 'SingleRegionStrategy'}");
    run_ok(h, "USE k");
    run_ok(h, "CREATE TABLE plain (p int PRIMARY KEY, v int)");
    run_ok(h, "CREATE TABLE timed (p int PRIMARY KEY, v int) WITH CUSTOM_PROPERTIES = {'client_side_timestamps': "
              "{'status': 'enabled'}}");
    run_at(h, "INSERT INTO plain (p, v) VALUES (1, 1)", 2000);
    run_at(h, "INSERT INTO plain (p, v) VALUES (1, 2)", 1000);
    assert_rows(h, "SELECT v FROM plain", "2");
    run_at(h, "INSERT INTO timed (p, v) VALUES (1, 1)", 2000);
    run_at(h, "INSERT INTO timed (p, v) VALUES (1, 2)", 1000);
    assert_rows(h, "SELECT v, writetime(v) FROM timed", "1,2000");
    run_at(h, "BEGIN BATCH INSERT INTO timed (p, v) VALUES (2, 1); INSERT INTO plain (p, v) VALUES (2, 1) APPLY BATCH",
           3000);
    assert_rows(h, "SELECT writetime(v) FROM timed WHERE p = 2", "3000");
    run_at(h, "DELETE FROM plain WHERE p = 2", 1000);
    assert_rows(h, "SELECT v FROM plain WHERE p = 2", "");
    harness_close(h);
    test_free(h);
}

/* ---- consistency levels ---- */

static enum cql_outcome run_with(struct harness *h, const char *cql, uint16_t level) {
    struct cql_request r = {.kind = REQUEST_QUERY, .query = slice_str(cql)};
    h->consistency = level;
    enum cql_outcome outcome = harness_request(h, &r);
    h->consistency = CL_LOCAL_QUORUM;
    return outcome;
}

static void test_levels_are_reached_by_the_replication_factor(void **state) {
    static const char *const statements[] = {
        "INSERT INTO %s.t (p, v) VALUES (1, 1)", "SELECT v FROM %s.t",
        "BEGIN BATCH INSERT INTO k.t (p, c, v) VALUES (9, 1, 1); DELETE FROM %s.t WHERE p = 1 APPLY BATCH"};
    static const struct { const char *keyspace, *replication; int replicas; } keyspaces[] = {
        {"one", "{'class': 'SimpleStrategy', 'replication_factor': 1}", 1},
        {"two", "{'class': 'NetworkTopologyStrategy', 'datacenter1': 2}", 2},
        {"three", "{'class': 'SimpleStrategy', 'replication_factor': 3}", 3},
    };
    struct harness *h = *state;
    char text[200];
    run_ok(h, "ALTER KEYSPACE k WITH replication = {'class': 'SimpleStrategy', 'replication_factor': 3}");
    for (size_t k = 0; k < ARRAY_LEN(keyspaces); k++) {
        snprintf(text, sizeof(text), "CREATE KEYSPACE %s WITH replication = %s", keyspaces[k].keyspace,
                 keyspaces[k].replication);
        run_ok(h, text);
        snprintf(text, sizeof(text), "CREATE TABLE %s.t (p int PRIMARY KEY, v int)", keyspaces[k].keyspace);
        run_ok(h, text);
        for (size_t i = 0; i < ARRAY_LEN(statements); i++) {
            snprintf(text, sizeof(text), statements[i], keyspaces[k].keyspace);
            for (uint16_t level = CL_ONE; level <= CL_ALL; level++) {
                int needed = level == CL_TWO ? 2 : level == CL_THREE ? 3 : 1;
                uint64_t before = eng_durable_seq(h->eng);
                enum cql_outcome outcome = run_with(h, text, level);
                assert_int_equal(outcome == CQL_FAILED, needed > keyspaces[k].replicas);
                if (outcome != CQL_FAILED) continue;
                assert_int_equal(h->err.code, ERR_UNAVAILABLE);
                assert_int_equal(h->err.detail.consistency, level);
                assert_int_equal(h->err.detail.required, needed);
                assert_int_equal(h->err.detail.received, keyspaces[k].replicas);
                assert_int_equal(eng_durable_seq(h->eng), before);
            }
        }
    }
}

/* ---- admission and permission ---- */

/* One request of each kind that changes something, to be run in this order; the first ones make
 * what the others need. */
static const char *const requests[] = {
    "CREATE TABLE extra%d (p int PRIMARY KEY)",
    "INSERT INTO t (p, c, v, l, s) VALUES (%d, 1, 1, [1, 2, 3], 1)",
    "UPDATE t SET v = v_ WHERE p = %d AND c = 2",
    "UPDATE t SET s = 7 WHERE p = %d",
    "UPDATE t SET l[1] = 9 WHERE p = %d AND c = 1",
    "UPDATE t SET v = 5 WHERE p = %d AND c = 1 IF v = 1",
    "UPDATE t SET v = 6 WHERE p = %d AND c = 1 IF v = 77",
    "UPDATE t SET s = 8 WHERE p = %d IF s = 7",
    "UPDATE n SET a = a + 3, s = s + 1 WHERE p = %d AND c = 1",
    "BEGIN COUNTER BATCH UPDATE n SET a = a + 1 WHERE p = %d AND c = 1; UPDATE n SET b = b + 1 WHERE p = 1000 AND c = "
    "1 APPLY BATCH",
    "BEGIN BATCH INSERT INTO t (p, c, v) VALUES (%d, 3, 3); INSERT INTO t (p, c, v) VALUES (1001, 3, 3) APPLY BATCH",
    "BEGIN BATCH UPDATE t SET s = 9 WHERE p = %d IF s = 8; DELETE FROM t WHERE p = %d AND c > 5; INSERT INTO t (p, c) "
    "VALUES (%d, 4) APPLY BATCH",
    "SELECT * FROM t WHERE p = %d",
    "INSERT INTO t (p, c, v) VALUES (%d, 8, 8) USING TTL 1000",
    "DELETE FROM t WHERE p = %d AND c = 8",
    "DELETE v FROM t WHERE p = %d AND c = 3",
};

struct gate {
    uint32_t asked, refuse_at; /* 0: none */
    bool written;
    struct harness *h;
    uint64_t seq;
};

/* Also proves that nothing was written yet, and that every write says whose it is. */
static int admit(void *arg, struct cql_run *r, struct err *e) {
    struct gate *g = arg;
    g->written = g->written || eng_durable_seq(g->h->eng) != g->seq || !eng_batch_empty(g->h->batch);
    assert_true(!r->cost->is_write || r->cost->writes);
    for (const struct op_write *w = r->cost->writes; w; w = w->next) {
        assert_string_equal(w->item.keyspace, "k");
        assert_true(strcmp(w->item.table, "t") == 0 || strcmp(w->item.table, "n") == 0);
        assert_int_equal(w->key.n, 4);
        assert_int_equal(w->item.token, murmur3_token(w->key));
    }
    return ++g->asked == g->refuse_at ? err_set(e, ERR_OVERLOADED, "refused by the test") : 0;
}

static void request_text(char *out, size_t n, uint32_t kind, uint32_t round) {
    char fmt[300];
    const char *v = strstr(requests[kind], "v_");
    snprintf(fmt, sizeof(fmt), "%s", requests[kind]);
    if (v) snprintf(fmt, sizeof(fmt), "%.*s4%s", (int)(v - requests[kind]), requests[kind], v + 2);
    snprintf(out, n, fmt, round, round, round);
}

static char *state_of(struct harness *h) {
    struct buf b;
    buf_init(&b, 0);
    buf_put_str(&b, harness_query(h, "SELECT p, c, v, l, s FROM t"));
    buf_put_str(&b, "|");
    buf_put_str(&b, harness_query(h, "SELECT p, c, a, b, s FROM n"));
    buf_put_str(&b, "|");
    buf_put_str(&b, harness_query(h, "SELECT table_name FROM system_schema.tables WHERE keyspace_name = 'k'"));
    buf_u8(&b, 0);
    return (char *)b.p;
}

/* Runs all kinds of request; the one at refused is refused (then what follows sees nothing of it),
 * or left out altogether. */
static char *run_kinds(uint32_t refused, bool leave_out) {
    struct harness *h = test_calloc(1, sizeof *h);
    struct gate g = {.h = h};
    char text[400];
    harness_open(h, MODE_CASSANDRA);
    harness_ask(h, &(struct cql_admission){.admit = admit, .arg = &g}, NULL);
    run_ok(h, "CREATE KEYSPACE k WITH replication = {'class': 'SimpleStrategy', 'replication_factor': 1}");
    run_ok(h, "USE k");
    run_ok(h, "CREATE TABLE n (p int, c int, a counter, b counter, s counter static, PRIMARY KEY (p, c))");
    run_ok(h, "CREATE TABLE t (p int, c int, v int, l list<int>, s int static, PRIMARY KEY (p, c))");
    g.written = false;
    for (uint32_t i = 0; i < ARRAY_LEN(requests); i++) {
        if (leave_out && i == refused) continue;
        request_text(text, sizeof(text), i, 5);
        g.seq = eng_durable_seq(h->eng);
        g.asked = 0;
        g.refuse_at = !leave_out && i == refused;
        enum cql_outcome outcome = harness_run(h, text, 0, NULL);
        /* What fails by itself, for it misses what was refused before it, is not asked for. */
        assert_int_equal(g.asked, outcome == CQL_FAILED && !g.refuse_at ? 0 : 1);
        if (!g.refuse_at) continue;
        assert_int_equal(outcome, CQL_FAILED);
        assert_int_equal(h->err.code, ERR_OVERLOADED);
        assert_int_equal(eng_durable_seq(h->eng), g.seq);
        assert_true(eng_batch_empty(h->batch));
    }
    assert_false(g.written);
    g.refuse_at = 0;
    char *found = state_of(h);
    harness_close(h);
    test_free(h);
    return found;
}

static void test_a_refused_request_leaves_no_trace(void **state) {
    (void)state;
    for (uint32_t i = 0; i < ARRAY_LEN(requests); i++) {
        char *refused = run_kinds(i, false), *without = run_kinds(i, true);
        assert_string_equal(refused, without);
        free(refused);
        free(without);
    }
}

static void log_in(struct harness *h, const char *role) { h->session.role = role; }

/* What a role may not do is refused with words that say what it lacks, of each statement of a
 * batch, prepared or not; what it may runs. */
static void test_permission_is_checked_for_every_statement_also_of_a_batch(void **state) {
    (void)state;
    static const char no_modify[] = "User u has no MODIFY permission on <table k.secret> or any of its parents";
    static const char no_select[] = "User u has no SELECT permission on <table k.secret> or any of its parents";
    struct harness *h = test_calloc(1, sizeof *h);
    uint8_t id[16];
    harness_open(h, MODE_CASSANDRA);
    const struct access_options o = {.eng = h->eng, .catalog = h->catalog, .first_role = "root", .first_password = "x"};
    struct access_control *access = access_open(&o, &h->err);
    harness_ask(h, NULL, access);
    log_in(h, "root");
    run_ok(h, "CREATE KEYSPACE k WITH replication = {'class': 'SimpleStrategy', 'replication_factor': 1}");
    run_ok(h, "CREATE TABLE k.t (p int PRIMARY KEY, v int)");
    run_ok(h, "CREATE TABLE k.secret (p int PRIMARY KEY, v int)");
    run_ok(h, "CREATE ROLE u");
    run_ok(h, "GRANT MODIFY ON k.t TO u");
    log_in(h, "u");
    harness_prepare(h, "INSERT INTO k.secret (p, v) VALUES (9, 9)", id);
    run_ok(h, "INSERT INTO k.t (p, v) VALUES (1, 1)");
    assert_error(h, "SELECT * FROM k.t", "User u has no SELECT permission on <table k.t> or any of its parents");
    assert_error(h, "UPDATE k.t SET v = 2 WHERE p = 1 IF v = 1",
                 "User u has no SELECT permission on <table k.t> or any of its parents");
    assert_error(h,
                 "BEGIN BATCH INSERT INTO k.t (p, v) VALUES (2, 2); UPDATE k.secret SET v = 1 WHERE p = 1 APPLY BATCH",
                 no_modify);
    assert_error(h, "SELECT * FROM k.secret", no_select);
    assert_int_equal(harness_execute(h, id, 0, NULL), CQL_FAILED);
    struct cql_batch_item items[] = {{.query = slice_str("INSERT INTO k.t (p, v) VALUES (2, 2)")},
                                     {.prepared_id = slice_of(id, 16)}};
    struct cql_request r = {.kind = REQUEST_BATCH, .n_items = 2, .items = items};
    assert_int_equal(harness_request(h, &r), CQL_FAILED);
    assert_int_equal(h->err.code, ERR_UNAUTHORIZED);
    assert_string_equal(h->err.text, no_modify);
    log_in(h, "root");
    assert_rows(h, "SELECT * FROM k.t", "1,1");
    run_ok(h, "GRANT MODIFY ON KEYSPACE k TO u");
    log_in(h, "u");
    assert_int_equal(harness_execute(h, id, 0, NULL), CQL_COMMIT); /* at once, though it was refused a moment ago */
    log_in(h, "root");
    run_ok(h, "REVOKE ALL ON KEYSPACE k FROM u");
    log_in(h, "u");
    assert_int_equal(harness_execute(h, id, 0, NULL), CQL_FAILED);
    harness_ask(h, NULL, NULL);
    access_close(access);
    harness_close(h);
    test_free(h);
}

/* ---- weight ---- */

static void test_what_one_write_may_weigh_is_bounded(void **state) {
    enum { VALUE = 1 << 20 };
    struct harness *h = *state;
    uint8_t *bytes = test_calloc(1, VALUE);
    memset(bytes, 'x', VALUE);
    struct value v = value_of(bytes, VALUE);
    struct { int parts, rows; const char *error;
    } cases[] = {{1, 15, NULL},
                 {1, 17, "Rejected an oversized mutation (17826"},
                 {60, 1, NULL},
                 {70, 1, "Rejected an oversized mutation (734"},
                 {9, 9, "Rejected an oversized mutation (849"}};
    run_ok(h, "CREATE TABLE big (p int, c int, v text, PRIMARY KEY (p, c))");
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        struct buf text;
        buf_init(&text, 0);
        buf_put_str(&text, "UPDATE big SET v = ? WHERE p IN (0");
        for (int k = 1; k < cases[i].parts; k++) buf_printf(&text, ", %d", k);
        buf_put_str(&text, ") AND c IN (0");
        for (int k = 1; k < cases[i].rows; k++) buf_printf(&text, ", %d", k);
        buf_put_str(&text, ")");
        buf_u8(&text, 0);
        uint64_t before = eng_durable_seq(h->eng);
        enum cql_outcome outcome = harness_run(h, (char *)text.p, 1, &v);
        assert_int_equal(outcome, cases[i].error ? CQL_FAILED : CQL_COMMIT);
        if (cases[i].error && strncmp(h->err.text, cases[i].error, strlen(cases[i].error))) fail_msg("%s", h->err.text);
        assert_int_equal(eng_durable_seq(h->eng) - before, cases[i].error ? 0 : 1);
        buf_fini(&text);
    }
    test_free(bytes);
}

/* ---- mutations ---- */

static void test_mutations_are_one_for_each_partition(void **state) {
    (void)state;
    enum { PARTS = 40, ADDRESSES = 200 };
    struct arena a;
    struct err e = {0};
    uint8_t keys[PARTS];
    struct eng_part parts[ADDRESSES];
    struct mutation_address addresses[ADDRESSES];
    arena_init(&a, 4096, 0);
    struct cql_run r = {.arena = &a, .err = &e};
    struct mutations m = {.r = &r};
    for (uint32_t i = 0; i < ADDRESSES; i++) {
        uint32_t p = i * 7 % PARTS;
        keys[p] = (uint8_t)p;
        parts[i] = (struct eng_part){.table = 20 + p % 2, .token = p % 5, .key = slice_of(&keys[p], 1)};
        addresses[i] = (struct mutation_address){.part = &parts[i]};
    }
    assert_int_equal(mutations_open(&m, addresses, ADDRESSES), 0);
    assert_int_equal(m.n, PARTS);
    for (uint32_t i = 0; i < ADDRESSES; i++) {
        const struct mutation *found = mutations_find(&m, &parts[i]);
        assert_int_equal(found->part.table, parts[i].table);
        assert_int_equal(found->part.token, parts[i].token);
        assert_true(slice_eq(found->part.key, parts[i].key));
    }
    struct change *first = mutation_add(&m, &m.list[3], CHANGE_ROW),
                  *second = mutation_add(&m, &m.list[3], CHANGE_PARTITION);
    assert_ptr_equal(m.list[3].first, first);
    assert_ptr_equal(first->next, second);
    assert_ptr_equal(m.list[3].last, second);
    arena_fini(&a);
}

#define CASE(f) cmocka_unit_test_setup_teardown(f, setup, harness_teardown)

/* Sets the map entry of 1 KB in the row of partition p. */
static enum cql_outcome grow(struct harness *h, int p, int entry) {
    char cql[1200];
    snprintf(cql, sizeof cql, "UPDATE k.r SET m[%d] = '%01000d' WHERE p = %d AND c = 1", entry, entry, p);
    return harness_run(h, cql, 0, NULL);
}

/* A row does not outgrow its bound by more than what is written between two measurements. Writes to
 * another row and deletions are not refused. */
static void test_a_row_is_bounded_although_writes_do_not_read_it(void **state) {
    struct harness *h = *state;
    enum { BOUND = 64 << 10, ENTRY = 1004, SLACK = BOUND / 8 };
    h->db->row_bound = row_bound_new(BOUND, &h->err);
    assert_non_null(h->db->row_bound);
    run_ok(h, "CREATE TABLE r (p int, c int, m map<int, text>, PRIMARY KEY (p, c))");
    int guilty = 0, taken = 0;
    for (int i = 0; i < 1000; i++) {
        if (grow(h, 2, i % 8) == CQL_FAILED) fail_msg("innocent: %s", h->err.text);
        if (grow(h, 1, i) != CQL_FAILED) taken++;
        else if (!guilty) guilty = i;
    }
    assert_true(taken * ENTRY >= BOUND - SLACK && taken * ENTRY <= BOUND + SLACK);
    assert_int_equal(guilty, taken); /* once refused, every write is */
    assert_int_equal(grow(h, 1, 1000), CQL_FAILED);
    assert_int_equal(h->err.code, ERR_INVALID);
    assert_non_null(strstr(h->err.text, "Guardrail row_size violated: Row of k.r has size "));
    run_ok(h, "DELETE m FROM r WHERE p = 1 AND c = 1");
    if (grow(h, 1, 0) == CQL_FAILED) fail_msg("%s", h->err.text);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        CASE(test_a_batch_is_one_write),
        CASE(test_a_counter_batch_that_fails_anywhere_leaves_nothing),
        CASE(test_a_batch_that_fails_late_leaves_nothing),
        CASE(test_levels_are_reached_by_the_replication_factor),
        cmocka_unit_test(test_a_refused_request_leaves_no_trace),
        cmocka_unit_test(test_permission_is_checked_for_every_statement_also_of_a_batch),
        CASE(test_what_one_write_may_weigh_is_bounded),
        CASE(test_a_row_is_bounded_although_writes_do_not_read_it),
        cmocka_unit_test(test_in_keyspaces_mode_client_side_timestamps_are_asked_for),
        cmocka_unit_test(test_mutations_are_one_for_each_partition),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
