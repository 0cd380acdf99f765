/* Which requests are refused because a browser may have sent them for a foreign web page. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "server/http/origin.h"

static const struct http_hosts own = {
    .listen = "192.0.2.7", .port_listen = "198.51.100.1", .names = "tally.example,fd00::1,[fd00::2],10.1.2.3"};

static bool allows(const char *host, const char *origin, const char *site, const char *words) {
    struct buf why;
    buf_init(&why, 0);
    bool allowed = http_origin_allows(&own, &(struct http_caller){host, origin, site}, &why);
    buf_u8(&why, 0);
    if (allowed) assert_string_equal(why.p, "");
    else if (words) assert_non_null(strstr((const char *)why.p, words));
    else assert_true(why.n > 1);
    buf_fini(&why);
    return allowed;
}

static void test_own_names_are_allowed(void **state) {
    static const char *const hosts[] = {
        "localhost", "LocalHost:9181", "localhost.:80", "db.localhost", "127.0.0.1", "127.0.0.1:9180", "127.8.7.6:1",
        "[::1]:9181", "[::1]", "[::ffff:127.0.0.1]:1", "192.0.2.7:9180",
        "198.51.100.1:9180", "tally.example:9181", "Tally.Example.",
        "[fd00::1]:9181", "[FD00:0::2]", "10.1.2.3:1", "localhost:"};
    (void)state;
    assert_true(allows(NULL, NULL, NULL, NULL));
    for (size_t i = 0; i < ARRAY_LEN(hosts); i++) assert_true(allows(hosts[i], NULL, NULL, NULL));
}

static void test_other_names_are_refused(void **state) {
    static const char *const hosts[] = {"evil.example", "evil.example:9181", "localhost.evil.example", "notlocalhost",
                                        "127.0.0.1.evil.example", "192.0.2.8", "10.1.2.33", "[fd00::3]:9181",
                                        "ally.example", "tally.example.evil", "128.0.0.1", "[::]", "0.0.0.0"};
    static const char *const malformed[] = {"", ":", ":9181", "[::1", "[::1]x", "localhost:x", "a b", "localhost,evil",
                                            "user@localhost", "http://localhost"};
    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(hosts); i++) assert_false(allows(hosts[i], NULL, NULL, "--http-hosts"));
    for (size_t i = 0; i < ARRAY_LEN(malformed); i++) assert_false(allows(malformed[i], NULL, NULL,
        "not a host's name"));
}

static void test_foreign_origins_are_refused(void **state) {
    static const char *const origins[] = {"null", "", "http://evil.example", "http://localhost:9180",
                                          "http://127.0.0.1:9181", "ftp://localhost:9181", "localhost:9181"};
    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(origins); i++) assert_false(allows("localhost:9181", origins[i], NULL, "Origin"));
    assert_false(allows(NULL, "http://localhost", NULL, "Origin"));
    assert_true(allows("localhost:9181", "http://localhost:9181", NULL, NULL));
    assert_true(allows("tally.example", "https://Tally.example", "same-origin", NULL));
    assert_false(allows("evil.example", "http://evil.example", "same-origin", "--http-hosts"));
}

static void test_what_a_browser_sends_for_another_site_is_refused(void **state) {
    (void)state;
    assert_false(allows("localhost", NULL, "cross-site", "Sec-Fetch-Site"));
    assert_false(allows("localhost", NULL, "same-site", "Sec-Fetch-Site"));
    assert_true(allows("localhost", NULL, "none", NULL));
}

static void test_names_have_a_form(void **state) {
    static const char *const sound[] = {"", "tally", "tally.example,10.0.0.1,fd00::1,[::1]"};
    static const char *const wrong[] = {",", "a,", ",a", "a,,b", "a:9180", "http://a", "a b", "[fd00::1]:80", "*"};
    struct err e = {0};
    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(sound); i++) assert_int_equal(http_hosts_check(sound[i], &e), 0);
    for (size_t i = 0; i < ARRAY_LEN(wrong); i++) {
        err_clear(&e);
        assert_int_equal(http_hosts_check(wrong[i], &e), -1);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_own_names_are_allowed),
        cmocka_unit_test(test_other_names_are_refused),
        cmocka_unit_test(test_foreign_origins_are_refused),
        cmocka_unit_test(test_what_a_browser_sends_for_another_site_is_refused),
        cmocka_unit_test(test_names_have_a_form),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
