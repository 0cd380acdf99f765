/* A request between two parts: what stops it, and who gives back what it holds. */
#include <stdatomic.h>

#include "cql/request/db.h"
#include "cql/request/statement.h"
#include "tests/unit/cql/harness.h"

static int64_t now_us;
static int64_t fake_now(struct clock *c) { return (void)c, now_us; }
static struct clock fake_clock = {.wall_us = fake_now, .mono_us = fake_now};

static struct cql_db db = {.options.clock = &fake_clock};

static void test_a_request_without_deadline_continues(void **state) {
    (void)state;
    struct err e = {0};
    struct cql_run r = {.db = &db, .err = &e};
    now_us = INT64_MAX;
    assert_int_equal(cql_check_running(&r), 0);
    assert_false(e.set);
}

static void test_a_request_of_a_closed_connection_fails(void **state) {
    (void)state;
    struct err e = {0};
    _Atomic bool gone = false;
    struct cql_run r = {.db = &db, .err = &e, .cancelled = &gone};
    assert_int_equal(cql_check_running(&r), 0);
    atomic_store(&gone, true);
    assert_int_equal(cql_check_running(&r), -1);
    assert_int_equal(e.code, ERR_SERVER);
}

static void expect_timeout(struct cql_run *r, enum err_code code, const char *write_type) {
    now_us = 999;
    assert_int_equal(cql_check_running(r), 0);
    now_us = 1000;
    assert_int_equal(cql_check_running(r), -1);
    assert_int_equal(r->err->code, code);
    assert_string_equal(r->err->text, "Operation timed out - received only 0 responses.");
    assert_int_equal(r->err->detail.consistency, CL_QUORUM);
    assert_int_equal(r->err->detail.required, 1);
    assert_int_equal(r->err->detail.received, 0);
    assert_string_equal(r->err->detail.write_type, write_type);
}

static void test_deadline_is_a_timeout_of_its_kind(void **state) {
    (void)state;
    static const struct {
        enum cql_work_class work_class;
        const char *write_type;
        enum err_code code;
    } cases[] = {
        {WORK_READ, NULL, ERR_READ_TIMEOUT},
        {WORK_SCAN, NULL, ERR_READ_TIMEOUT},
        {WORK_UPDATE, "CAS", ERR_WRITE_TIMEOUT},
        {WORK_UPDATE, "UNLOGGED_BATCH", ERR_WRITE_TIMEOUT},
    };
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        struct err e = {0};
        struct cql_request in = {.params.consistency = CL_QUORUM};
        struct cql_run r = {.in = &in,
                            .db = &db,
                            .err = &e,
                            .deadline_us = 1000,
                            .answer = {.work_class = cases[i].work_class, .write_type = cases[i].write_type}};
        expect_timeout(&r, cases[i].code, cases[i].write_type ? cases[i].write_type : "");
    }
}

static void test_a_late_prepare_does_not_report_a_write_timeout(void **state) {
    (void)state;
    struct err e = {0};
    struct cql_request in = {.kind = REQUEST_PREPARE};
    struct cql_run r = {
        .in = &in, .db = &db, .err = &e, .deadline_us = 1000, .answer.work_class = WORK_UPDATE};
    now_us = 1000;
    assert_int_equal(cql_check_running(&r), -1);
    assert_int_equal(e.code, ERR_OVERLOADED);
    assert_string_equal(e.text, "Query timed out before it could start");
}

static enum cql_outcome three_parts(struct cql_run *r, const struct cql_statement *s) {
    int *parts = r->running;
    assert_ptr_equal(s, r->compiled);
    return ++*parts < 3 ? CQL_AGAIN : CQL_DONE;
}

static void three_parts_fini(struct cql_run *r) { *(int *)r->running += 100; }

static void test_parts_run_until_done_and_release_once(void **state) {
    (void)state;
    static const struct statement_ops ops = {.more = three_parts};
    int parts = 1;
    struct err e = {0};
    struct cql_statement s = {.ops = &ops};
    struct cql_request in = {.kind = REQUEST_QUERY};
    struct cql_run r = {.in = &in,
                        .db = &db,
                        .err = &e,
                        .blocking = true,
                        .compiled = &s,
                        .running = &parts,
                        .running_fini = three_parts_fini};
    assert_int_equal(cql_run_more(&r), CQL_AGAIN);
    assert_int_equal(cql_run_more(&r), CQL_DONE);
    cql_run_fini(&r);
    cql_run_fini(&r);
    assert_int_equal(parts, 103);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_a_request_without_deadline_continues),
        cmocka_unit_test(test_a_request_of_a_closed_connection_fails),
        cmocka_unit_test(test_deadline_is_a_timeout_of_its_kind),
        cmocka_unit_test(test_a_late_prepare_does_not_report_a_write_timeout),
        cmocka_unit_test(test_parts_run_until_done_and_release_once),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
