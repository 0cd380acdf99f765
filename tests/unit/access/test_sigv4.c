/* Signatures of AWS's authentication plugins: their own test vector, and what is no such response. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>

#include <cmocka.h>

#include "access/sigv4.h"

static const char nonce[] = "91703fdc2ef562e19fbdab0f58e42fe5", date[] = "2020-06-09T22:41:51.000Z",
                  due[] = "7f3691c18a81b8ce7457699effbfae5b09b4e0714ab38c1292dbdf082c9ddd87";

static void assert_signature(const char *at, const char *key, const char *secret, const char *region, const char *with,
                             bool same) {
    char made[SIGV4_SIGNATURE + 1] = "";
    assert_int_equal(sigv4_sign(slice_str(at), slice_str(key), secret, region, with, made), 0);
    assert_int_equal(!strcmp(made, due), same);
}

/* The vector of the plugins for Go and Node; everything that is signed changes the signature. */
static void test_signature_is_that_of_the_plugins(void **state) {
    (void)state;
    assert_signature(date, "UserID-1", "UserSecretKey-1", "us-west-2", nonce, true);
    assert_signature("2020-06-09T22:41:51.001Z", "UserID-1", "UserSecretKey-1", "us-west-2", nonce, false);
    assert_signature(date, "UserID-2", "UserSecretKey-1", "us-west-2", nonce, false);
    assert_signature(date, "UserID-1", "UserSecretKey-2", "us-west-2", nonce, false);
    assert_signature(date, "UserID-1", "UserSecretKey-1", "us-west-1", nonce, false);
    assert_signature(date, "UserID-1", "UserSecretKey-1", "us-west-2", "91703fdc2ef562e19fbdab0f58e42fe6", false);
}

static void test_dates_are_read_or_refused(void **state) {
    static const struct {
        const char *text;
        int64_t seconds;
    } dates[] = {{"2020-06-09T22:41:51.000Z", 1591742511},
                 {"2020-06-09T22:41:51.1000Z", 1591742511},
                 {"1970-01-01T00:00:00.000Z", 0},
                 {"", -1},
                 {"2020-06-09", -1},
                 {"2020-06-09T22:41:51Z", -1},
                 {"2020-06-09T22:41:51.000", -1},
                 {"2020-06-09T22:41:51.Z", -1},
                 {"2020/06/09T22:41:51.000Z", -1},
                 {"2020-06-09T22:41:5x.000Z", -1},
                 {"2020-06-09T22:41:51.00xZ", -1},
                 {"2020-06-09T22:41:51.00000000000000000000000000000Z", -1}};
    char made[SIGV4_SIGNATURE];
    (void)state;
    for (size_t i = 0; i < sizeof(dates) / sizeof(dates[0]); i++) {
        assert_int_equal(sigv4_time(slice_str(dates[i].text)), dates[i].seconds);
        assert_int_equal(sigv4_sign(slice_str(dates[i].text), slice_str("k"), "s", "r", nonce, made),
                         dates[i].seconds < 0 ? -1 : 0);
    }
}

static void test_responses_are_taken_apart_or_refused(void **state) {
    struct sigv4_response r;
    struct err e = {0};
    char text[256];
    (void)state;
    snprintf(text, sizeof(text), "signature=%s,access_key=UserID-1,amzdate=%s,session_token=a=b/c+d==", due, date);
    assert_int_equal(sigv4_parse(slice_str(text), &r, &e), 0);
    assert_true(slice_is(r.signature, due) && slice_is(r.access_key, "UserID-1") && slice_is(r.date, date) &&
                slice_is(r.session_token, "a=b/c+d=="));
    snprintf(text, sizeof(text), "signature=%s,access_key=UserID-1,amzdate=%s", due, date);
    assert_int_equal(sigv4_parse(slice_str(text), &r, &e), 0);
    assert_null(r.session_token.p);
    for (size_t n = strlen(text) - strlen(date); n; n--) { /* a beginning of it is none */
        err_clear(&e);
        assert_int_equal(sigv4_parse(slice_of(text, n), &r, &e), -1);
        assert_int_equal(e.code, ERR_BAD_CREDENTIALS);
    }
}

static void test_hello_is_told_from_a_password(void **state) {
    (void)state;
    assert_true(sigv4_is_hello(slice_of("SigV4\0\0", 7)));
    assert_false(sigv4_is_hello(slice_of("SigV4\0", 6)));
    assert_false(sigv4_is_hello(slice_of("\0user\0password", 14)));
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_signature_is_that_of_the_plugins),
        cmocka_unit_test(test_dates_are_read_or_refused),
        cmocka_unit_test(test_responses_are_taken_apart_or_refused),
        cmocka_unit_test(test_hello_is_told_from_a_password),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
