/* Roles at the bound of their permissions. */
#include <stdio.h>

#include "harness.h"

#include "access/access.h"

static struct grant grants[ROLE_GRANTS_MAX];

/* Puts a role with n grants. */
static void put_role(struct access_control *access, const char *name, uint32_t n, bool superuser) {
    struct err e = {0};
    access_begin(access);
    const struct role r = {
        .name = name, .hash = "", .superuser = superuser, .login = true, .n_grants = n, .grants = grants};
    assert_non_null(access_put(access, &r, &e));
    assert_int_equal(access_end(access, 0, &e), 0);
}

static uint32_t grants_of(struct access_control *access, const char *name) {
    const struct role_set *roles = access_roles(access);
    uint32_t n = role_find(roles, name)->n_grants;
    role_set_unref(roles);
    return n;
}

static void test_the_last_permission_of_a_role_is_checked_before_anything_happens(void **state) {
    (void)state;
    static const char full[] = "A role may have permissions on at most 10000 resources";
    static char texts[ROLE_GRANTS_MAX][32];
    const char *const tables[] = {"CREATE TABLE k.t (p int PRIMARY KEY)", NULL};
    struct harness *h = harness_new(MODE_CASSANDRA, tables);
    const struct access_options o = {.eng = h->eng, .catalog = h->catalog};
    struct access_control *access = access_open(&o, &h->err);
    assert_non_null(access);
    for (int i = 0; i < ROLE_GRANTS_MAX; i++) {
        snprintf(texts[i], sizeof(texts[i]), i ? "roles/%05d" : "data", i);
        grants[i] = (struct grant){texts[i], i ? 1 << MAY_ALTER : 1 << MAY_CREATE | 1 << MAY_DROP};
    }
    grants[1] = (struct grant){"roles", 1 << MAY_CREATE | 1 << MAY_DROP};
    put_role(access, "plain", ROLE_GRANTS_MAX - 1, false);
    put_role(access, "root", ROLE_GRANTS_MAX, true);
    harness_ask(h, NULL, access);

    h->session.role = "plain";
    run_ok(h, "CREATE TABLE k.last (p int PRIMARY KEY)");
    assert_int_equal(grants_of(access, "plain"), ROLE_GRANTS_MAX);
    assert_error(h, "CREATE TABLE k.more (p int PRIMARY KEY)", full);
    assert_error(h, "CREATE KEYSPACE more WITH replication = {'class': 'SimpleStrategy', 'replication_factor': 1}",
                 full);
    assert_error(h, "CREATE ROLE more", full);
    assert_rows(h, "SELECT table_name FROM system_schema.tables WHERE keyspace_name = 'k'", "last;t");
    assert_rows(h, "SELECT keyspace_name FROM system_schema.keyspaces WHERE keyspace_name = 'more'", "");
    run_ok(h, "CREATE TABLE IF NOT EXISTS k.t (p int PRIMARY KEY)");
    assert_error(h, "CREATE TABLE k.t (p int PRIMARY KEY)",
                 "Cannot add already existing table \"t\" to keyspace \"k\"");
    run_ok(h, "DROP TABLE k.last");
    run_ok(h, "CREATE TABLE k.more (p int PRIMARY KEY)");
    assert_int_equal(grants_of(access, "plain"), ROLE_GRANTS_MAX);

    h->session.role = "root";
    run_ok(h, "CREATE TABLE k.of_root (p int PRIMARY KEY)");
    assert_int_equal(h->n_warnings, 0);
    run_ok(h, "CREATE ROLE of_root");
    run_ok(h, "INSERT INTO k.of_root (p) VALUES (1)");
    assert_int_equal(grants_of(access, "root"), ROLE_GRANTS_MAX);
    harness_ask(h, NULL, NULL);
    access_close(access);
    harness_close(h);
    test_free(h);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_the_last_permission_of_a_role_is_checked_before_anything_happens),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
