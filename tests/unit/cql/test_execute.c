/* cql_execute: one function for callers that may block. */
#include "cql/execute.h"

#include <stdio.h>

#include "harness.h"
#include "metering/limits/limiter.h"

struct gate {
    uint32_t begun, asked;
    bool refuses;
};

static int begin(void *arg, struct cql_run *r, const struct schema_table *t, struct err *e) {
    struct gate *g = arg;
    assert_non_null(r->session->limit);
    assert_non_null(t);
    g->begun++;
    return g->refuses ? err_set(e, ERR_READ_TIMEOUT, "refused at any cost") : 0;
}

static int admit(void *arg, struct cql_run *r, struct err *e) {
    struct gate *g = arg;
    assert_non_null(r->session->limit);
    g->asked++;
    return g->refuses ? err_set(e, ERR_WRITE_TIMEOUT, "refused") : 0;
}

struct executed {
    struct harness *h;
    struct gate gate;
    struct arena arena;
    struct cql_execution x;
    struct err err;
};

static int setup(void **state) {
    static const char *const tables[] = {"CREATE TABLE t (k int PRIMARY KEY, v text)", NULL};
    struct executed *f = test_calloc(1, sizeof(*f));
    f->h = harness_new(MODE_KEYSPACES, tables);
    harness_ask(f->h, &(struct cql_admission){.begin = begin, .admit = admit, .arg = &f->gate}, NULL);
    run_ok(f->h, "INSERT INTO t (k, v) VALUES (1, 'a')");
    f->gate = (struct gate){0};
    arena_init(&f->arena, 16 << 10, 16 << 20);
    *state = f;
    return 0;
}

static int teardown(void **state) {
    struct executed *f = *state;
    cql_execution_fini(&f->x);
    arena_fini(&f->arena);
    harness_close(f->h);
    test_free(f->h);
    test_free(f);
    return 0;
}

static int execute(struct executed *f, struct cql_session *session, const char *text, bool prices) {
    cql_execution_fini(&f->x);
    arena_reset(&f->arena);
    err_clear(&f->err);
    f->x = (struct cql_execution){.db = f->h->db, .session = session, .arena = &f->arena, .prices = prices,
                                  .request = {.kind = REQUEST_QUERY, .query = slice_str(text),
                                              .params.consistency = CL_LOCAL_QUORUM}};
    return cql_execute(&f->x, &f->err);
}

static void test_a_session_of_the_server_is_outside_all_limits(void **state) {
    struct executed *f = *state;
    f->gate.refuses = true;
    assert_int_equal(execute(f, NULL, "SELECT * FROM k.t WHERE k = 1", false), 0);
    assert_true(f->x.charge.read_units == 1);
    assert_int_equal(f->x.cost.rows_returned, 1);
    assert_int_equal(execute(f, NULL, "INSERT INTO k.t (k, v) VALUES (2, 'b')", false), 0);
    assert_true(f->x.charge.write_units == 1);
    assert_int_equal(f->gate.begun + f->gate.asked, 0);
    f->gate.refuses = false;
    assert_rows(f->h, "SELECT v FROM t WHERE k = 2", "b");
}

static void test_a_session_with_a_limit_is_admitted_once_a_request(void **state) {
    struct executed *f = *state;
    struct limit_connection limit = {0};
    struct cql_session session = {.protocol_version = 4, .limit = &limit};
    assert_int_equal(execute(f, &session, "SELECT * FROM k.t WHERE k = 1", false), 0);
    assert_int_equal(f->gate.begun, 1);
    assert_int_equal(f->gate.asked, 1);
    f->gate.refuses = true;
    assert_int_equal(execute(f, &session, "INSERT INTO k.t (k, v) VALUES (1, 'z')", false), -1);
    assert_string_equal(f->err.text, "refused");
    assert_int_equal(f->gate.asked, 2);
    f->gate.refuses = false;
    assert_rows(f->h, "SELECT v FROM t WHERE k = 1", "a");
}

static void test_a_price_changes_nothing(void **state) {
    struct executed *f = *state;
    assert_int_equal(execute(f, NULL, "DELETE FROM k.t WHERE k = 1", true), 0);
    assert_true(f->x.charge.write_units == 1);
    assert_rows(f->h, "SELECT v FROM t WHERE k = 1", "a");
}

static void test_a_text_that_is_not_utf8_is_refused(void **state) {
    struct executed *f = *state;
    assert_int_equal(execute(f, NULL, "SELECT k AS \"\xff\" FROM k.t", false), -1);
    assert_int_equal(f->err.code, ERR_PROTOCOL);
    assert_string_equal(f->err.text, "Cannot decode string as UTF8");
}

static void test_all_parts_of_a_request_run(void **state) {
    struct executed *f = *state;
    enum { ROWS = 30000 };
    char text[80];
    for (int i = 0; i < ROWS; i++) {
        snprintf(text, sizeof(text), "INSERT INTO t (k, v) VALUES (%d, '')", i);
        run_ok(f->h, text);
    }
    assert_int_equal(execute(f, NULL, "SELECT count(*) FROM k.t", false), 0);
    assert_int_equal(f->x.cost.rows_read, ROWS);
    run_ok(f->h, "SELECT count(*) FROM k.t");
    assert_true(f->h->n_parts > 1);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_a_session_of_the_server_is_outside_all_limits, setup, teardown),
        cmocka_unit_test_setup_teardown(test_a_session_with_a_limit_is_admitted_once_a_request, setup, teardown),
        cmocka_unit_test_setup_teardown(test_a_price_changes_nothing, setup, teardown),
        cmocka_unit_test_setup_teardown(test_a_text_that_is_not_utf8_is_refused, setup, teardown),
        cmocka_unit_test_setup_teardown(test_all_parts_of_a_request_run, setup, teardown),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
