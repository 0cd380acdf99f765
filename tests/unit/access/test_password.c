#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>

#include <cmocka.h>

#include "access/password.h"

/* Made by Cassandra 5.0.8 for the password "pb" (jBcrypt), read from its system_auth.roles. */
static const char cassandras[] = "$2a$10$wzSBBQ/QgTHnLF47SBcJMuocHlbukAXs/PzdKjphWJ/u9TBIlV3qe";

static void test_hashes_are_those_of_cassandra(void **state) {
    (void)state;
    assert_int_equal(password_form(cassandras), PASSWORD_IS_HASH);
    assert_false(password_verify(cassandras, "pc"));
    assert_true(password_verify(cassandras, "pb"));
}

static void test_only_what_was_right_is_remembered(void **state) {
    char hash[PASSWORD_HASH_MAX], other[PASSWORD_HASH_MAX];
    struct err e = {0};
    (void)state;
    assert_int_equal(password_hash("secret", hash, &e) | password_hash("secret", other, &e), 0);
    assert_string_not_equal(hash, other); /* salted */
    assert_false(password_is_remembered(hash, "secret"));
    assert_false(password_verify(hash, "Secret"));
    assert_false(password_is_remembered(hash, "Secret"));
    assert_true(password_verify(hash, "secret"));
    assert_true(password_is_remembered(hash, "secret"));
    assert_false(password_is_remembered(hash, "secret2"));
    assert_false(password_is_remembered(other, "secret")); /* another role's */
    assert_true(password_verify(hash, "secret"));
}

static void test_no_hash_is_never_right(void **state) {
    static const char *const none[] = {"", "x", "$2a$10$", "$1$abc$def",
                                       "$2a$10$wzSBBQ/QgTHnLF47SBcJMuocHlbukAXs/PzdKjphWJ/u9TBIlV3q"};
    (void)state;
    for (size_t i = 0; i < sizeof(none) / sizeof(none[0]); i++) {
        assert_int_equal(password_form(none[i]), PASSWORD_IS_NO_HASH);
        assert_false(password_verify(none[i], ""));
        assert_false(password_verify(none[i], none[i]));
    }
}

/* Cost 31 would hold the one thread that checks logins for a day. */
static void test_a_hash_that_would_take_for_ever_is_not_tried(void **state) {
    static const char slow[] = "$2a$31$JSJEMFm6GeaW9XxT5JIheuEtPvat6i7uKbnTcxX3c1wshIIsGyUtG",
                      cheap[] = "$2a$04$JSJEMFm6GeaW9XxT5JIheuEtPvat6i7uKbnTcxX3c1wshIIsGyUtG";
    (void)state;
    assert_int_equal(password_form(slow), PASSWORD_IS_TOO_SLOW);
    assert_int_equal(password_form(cheap), PASSWORD_IS_HASH);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_hashes_are_those_of_cassandra),
        cmocka_unit_test(test_only_what_was_right_is_remembered),
        cmocka_unit_test(test_no_hash_is_never_right),
        cmocka_unit_test(test_a_hash_that_would_take_for_ever_is_not_tried),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
