/* Two servers on one store. The second one does not hear what the first one changes, like a server that was paused:
 * before it refuses a request it reads what has changed (J1). */
#include "engine/named.h"
#include "harness.h"

#include "access/access.h"
#include "base/fault.h"

struct pair {
    struct harness a, b;
    struct access_control *roles[2]; /* of a and b; NULL: without logins */
};

static const int64_t START_US = 1700000000000000;

static int setup(void **state) {
    struct pair *p = test_calloc(1, sizeof(*p));
    harness_open_on(&p->a, MODE_CASSANDRA, &(struct eng_options){.shared = true}, START_US);
    harness_open_on(&p->b, MODE_CASSANDRA, &(struct eng_options){.beside = p->a.eng}, START_US);
    run_ok(&p->a, "CREATE KEYSPACE k WITH replication = {'class': 'SimpleStrategy', 'replication_factor': 1}");
    run_ok(&p->a, "CREATE TABLE k.old (p int PRIMARY KEY, v int)");
    assert_int_equal(catalog_catch_up(p->b.catalog, &p->b.err), 0);
    eng_meta_unwatch(p->b.eng, NULL);
    *state = p;
    return 0;
}

static int teardown(void **state) {
    struct pair *p = *state;
    for (int i = 0; i < 2; i++)
        if (p->roles[i]) access_close(p->roles[i]);
    harness_close(&p->b);
    harness_close(&p->a);
    test_free(p);
    return 0;
}

static void test_a_table_of_another_server_exists(void **state) {
    struct pair *p = *state;
    run_ok(&p->a, "CREATE TABLE k.t (p int PRIMARY KEY, v int)");
    run_ok(&p->b, "INSERT INTO k.t (p, v) VALUES (1, 2)");
    assert_rows(&p->a, "SELECT v FROM k.t", "2");
    run_ok(&p->a, "ALTER TABLE k.t ADD w int");
    run_ok(&p->b, "INSERT INTO k.t (p, w) VALUES (1, 3)");
    assert_rows(&p->a, "SELECT v, w FROM k.t", "2,3");
    run_ok(&p->a, "CREATE TABLE k.u (p int PRIMARY KEY)");
    run_ok(&p->b, "BEGIN BATCH INSERT INTO k.u (p) VALUES (1); INSERT INTO k.t (p) VALUES (7); APPLY BATCH");
    assert_rows(&p->a, "SELECT p FROM k.u", "1");
    run_ok(&p->a, "CREATE TABLE k.x (p int PRIMARY KEY)");
    uint8_t id[16];
    harness_prepare(&p->b, "SELECT p FROM k.x", id);
    assert_int_equal(harness_execute(&p->b, id, 0, NULL), CQL_DONE);
}

static void test_a_keyspace_and_a_type_of_another_server_exist(void **state) {
    struct pair *p = *state;
    run_ok(&p->a, "CREATE KEYSPACE n WITH replication = {'class': 'SimpleStrategy', 'replication_factor': 1}");
    run_ok(&p->b, "USE n");
    run_ok(&p->a, "CREATE TYPE n.y (i int)");
    run_ok(&p->b, "CREATE TABLE n.t (p int PRIMARY KEY, y frozen<y>)");
    assert_rows(&p->a, "SELECT p FROM n.t", "");
}

static void test_statements_with_if_decide_by_what_another_server_has_made(void **state) {
    struct pair *p = *state;
    run_ok(&p->a, "CREATE TABLE k.t (p int PRIMARY KEY)");
    run_ok(&p->b, "DROP TABLE IF EXISTS k.t");
    assert_int_equal(catalog_catch_up(p->a.catalog, &p->a.err), 0); /* it may not have heard of the drop yet */
    assert_error(&p->a, "SELECT * FROM k.t", "table t does not exist");
    run_ok(&p->b, "CREATE TABLE k.t (p int PRIMARY KEY, v int)"); /* the name is free at both */
    run_ok(&p->a, "DROP TABLE k.t");
    run_ok(&p->b, "CREATE TABLE k.t (p int PRIMARY KEY, w int)");
    assert_rows(&p->a, "SELECT w FROM k.t", "");
}

static void test_a_loop_leaves_the_refusal_to_a_worker(void **state) {
    struct pair *p = *state;
    run_ok(&p->a, "CREATE TABLE k.t (p int PRIMARY KEY)");
    p->b.on_loop = true;
    assert_int_equal(harness_run(&p->b, "SELECT * FROM k.t", 0, NULL), CQL_OFFLOAD);
    assert_int_equal(p->b.work_class, WORK_READ);
    assert_int_equal(harness_run(&p->b, "INSERT INTO k.t (p) VALUES (1)", 0, NULL), CQL_OFFLOAD);
    assert_int_equal(p->b.work_class, WORK_UPDATE);
    assert_int_equal(harness_execute(&p->b, (const uint8_t *)"0123456789abcdef", 0, NULL), CQL_OFFLOAD);
    assert_int_equal(harness_run(&p->b, "SELECT nonsense", 0, NULL), CQL_FAILED); /* whatever the schema is */
    assert_int_equal(p->b.err.code, ERR_SYNTAX);
}

static void test_what_exists_nowhere_is_refused_as_before(void **state) {
    struct pair *p = *state;
    assert_error(&p->b, "SELECT * FROM k.none", "table none does not exist");
    assert_error(&p->b, "USE none", "Keyspace 'none' does not exist");
    assert_int_equal(harness_execute(&p->b, (const uint8_t *)"0123456789abcdef", 0, NULL), CQL_FAILED);
    assert_int_equal(p->b.err.code, ERR_UNPREPARED);
}

/* While the store cannot be read, the server does not know what exists. What it knows it goes on serving. */
static void test_a_store_that_fails_makes_nothing_nonexistent(void **state) {
    struct pair *p = *state;
    run_ok(&p->a, "CREATE TABLE k.t (p int PRIMARY KEY)");
    fault_arm(FAULT_KV_READ, FAULT_ALWAYS);
    assert_int_equal(harness_run(&p->b, "SELECT * FROM k.t", 0, NULL), CQL_FAILED);
    assert_int_equal(p->b.err.code, ERR_SERVER);
    assert_int_equal(harness_run(&p->b, "INSERT INTO k.old (p, v) VALUES (1, 1)", 0, NULL), CQL_COMMIT);
    fault_arm(FAULT_KV_READ, 0);
    assert_rows(&p->b, "SELECT * FROM k.t", "");
}

static void test_roles_and_permissions_of_another_server_count(void **state) {
    struct pair *p = *state;
    struct harness *all[] = {&p->a, &p->b};
    for (int i = 0; i < 2; i++) {
        struct access_options o = {
            .eng = all[i]->eng, .catalog = all[i]->catalog, .first_role = "root", .first_password = "root"};
        p->roles[i] = access_open(&o, &all[i]->err);
        assert_non_null(p->roles[i]);
        harness_ask(all[i], NULL, p->roles[i]);
        all[i]->session.role = "root";
    }
    eng_meta_unwatch(p->b.eng, NULL);
    run_ok(&p->a, "CREATE ROLE reader WITH LOGIN = true AND PASSWORD = 'x'");
    run_ok(&p->b, "GRANT MODIFY ON k.old TO reader");
    run_ok(&p->a, "GRANT SELECT ON k.old TO reader");
    p->b.session.role = "reader";
    assert_rows(&p->b, "SELECT * FROM k.old", "");
    run_ok(&p->a, "ALTER ROLE reader WITH SUPERUSER = true");
    run_ok(&p->b, "CREATE ROLE other");
    p->b.session.role = "other";
    assert_int_equal(harness_run(&p->b, "SELECT * FROM k.old", 0, NULL), CQL_FAILED);
    assert_int_equal(p->b.err.code, ERR_UNAUTHORIZED);
}

int main(void) {
#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)
    const struct CMUnitTest tests[] = {
        TEST(test_a_table_of_another_server_exists),
        TEST(test_a_keyspace_and_a_type_of_another_server_exist),
        TEST(test_statements_with_if_decide_by_what_another_server_has_made),
        TEST(test_a_loop_leaves_the_refusal_to_a_worker),
        TEST(test_what_exists_nowhere_is_refused_as_before),
        TEST(test_a_store_that_fails_makes_nothing_nonexistent),
        TEST(test_roles_and_permissions_of_another_server_count),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
