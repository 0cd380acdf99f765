/* Logins at a server that does not hear what another one on the store changes, as if it had been paused. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "access/password.h"
#include "base/fault.h"
#include "engine/named.h"
#include "native_protocol/login.h"

struct server {
    struct eng *eng;
    struct catalog *catalog;
    struct access_control *access;
    struct err err;
};

static void start(struct server *s, const struct eng_options *store) {
    const struct node_info node = {"test", "dc1", "rack1", "5.0.8", "3.4.7", "127.0.0.1", 9042};
    s->eng = eng_open(store, &s->err);
    assert_non_null(s->eng);
    s->catalog = catalog_open(
        &(struct catalog_options){.eng = s->eng, .clock = &clock_real, .mode = MODE_CASSANDRA, .node = node}, &s->err);
    assert_non_null(s->catalog);
    s->access = access_open(&(struct access_options){.eng = s->eng, .catalog = s->catalog}, &s->err);
    assert_non_null(s->access);
}

static void stop(struct server *s) {
    access_close(s->access);
    catalog_close(s->catalog);
    eng_close(s->eng);
}

static void set_password(struct server *s, const char *name, const char *password) {
    char hash[PASSWORD_HASH_MAX];
    assert_int_equal(password_hash(password, hash, &s->err), 0);
    access_begin(s->access);
    int rc = access_put(s->access, &(struct role){.name = name, .hash = hash, .login = true}, &s->err) ? 0 : -1;
    assert_int_equal(access_end(s->access, rc, &s->err), 0);
}

static void test_roles_and_passwords_of_another_server_may_log_in(void **state) {
    static const struct ip_address address = {.n = 4, .bytes = {127, 0, 0, 1}};
    struct server s[2] = {0};
    struct err e = {0};
    (void)state;
    start(&s[0], &(struct eng_options){.clock = &clock_real, .durability = ENG_NONE, .shared = true});
    start(&s[1], &(struct eng_options){.clock = &clock_real, .durability = ENG_NONE, .beside = s[0].eng});
    struct np_logins *logins =
        np_logins_new(&(struct np_logins_options){.access = s[1].access, .clock = &clock_real}, &e);
    assert_non_null(logins);
    set_password(&s[1], "old", "x");
    eng_meta_unwatch(s[1].eng, NULL);
    set_password(&s[0], "new", "y");
    assert_int_equal(np_logins_check(logins, &address, "new", "y", &e), 0);
    set_password(&s[0], "old", "z");
    assert_int_equal(np_logins_check(logins, &address, "old", "z", &e), 0);
    assert_int_equal(np_logins_check(logins, &address, "new", "z", &e), -1);
    assert_int_equal(e.code, ERR_BAD_CREDENTIALS);
    err_clear(&e);
    set_password(&s[0], "late", "y");
    fault_arm(FAULT_KV_READ, FAULT_ALWAYS);
    assert_int_equal(np_logins_check(logins, &address, "late", "y", &e), -1);
    assert_int_equal(e.code, ERR_SERVER); /* it does not know */
    err_clear(&e);
    assert_int_equal(np_logins_check(logins, &address, "new", "y", &e), 0);
    fault_arm(FAULT_KV_READ, 0);
    assert_int_equal(np_logins_check(logins, &address, "late", "y", &e), 0);
    np_logins_stop(logins);
    np_logins_free(logins);
    stop(&s[1]);
    stop(&s[0]);
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_roles_and_passwords_of_another_server_may_log_in)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
