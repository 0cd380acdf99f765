/* A mapped IPv4 address is the IPv4 address, whether it comes as text or from a socket. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>

#include <arpa/inet.h>
#include <cmocka.h>

#include "base/ip_address.h"

static const char *text_of(const char *numeric, uint32_t after) {
    static char text[IP_ADDRESS_TEXT];
    struct ip_address a;
    assert_true(ip_address_parse(numeric, &a));
    a = ip_address_after(a, after);
    ip_address_print(&a, text);
    return text;
}

static void test_ip_address_of_text_is_canonical(void **state) {
    (void)state;
    struct ip_address a;
    assert_string_equal(text_of("10.0.0.5", 0), "10.0.0.5");
    assert_string_equal(text_of("2001:DB8:0:0::5", 0), "2001:db8::5");
    assert_string_equal(text_of("::FFFF:10.0.0.5", 0), "10.0.0.5");
    assert_string_equal(text_of("::10.0.0.5", 0), "::10.0.0.5"); /* a deprecated form, but of IPv6 */
    for (const char *const *t = (const char *const[]){"", "10.0.0", "localhost", "[::1]", "::1%lo", NULL}; *t; t++) {
        assert_false(ip_address_parse(*t, &a));
        assert_int_equal(a.n, 0);
    }
}

static void test_ip_address_of_a_socket_knows_mapped_addresses(void **state) {
    (void)state;
    struct sockaddr_storage s = {.ss_family = AF_INET6};
    struct sockaddr_in6 *v6 = (struct sockaddr_in6 *)&s;
    struct ip_address a;
    assert_int_equal(inet_pton(AF_INET6, "::ffff:127.0.0.9", &v6->sin6_addr), 1);
    a = ip_address_of_socket(&s);
    assert_int_equal(a.n, 4);
    assert_memory_equal(a.bytes, ((uint8_t[]){127, 0, 0, 9}), 4);
    v6->sin6_addr = in6addr_loopback;
    a = ip_address_of_socket(&s);
    assert_int_equal(a.n, 16);
    assert_true(ip_address_is_loopback(&a));
    s = (struct sockaddr_storage){.ss_family = AF_UNIX};
    a = ip_address_of_socket(&s);
    assert_int_equal(a.n, 0);
    assert_false(ip_address_is_loopback(&a));
}

static void test_ip_address_after_carries_and_wraps(void **state) {
    (void)state;
    assert_string_equal(text_of("127.0.0.1", 9), "127.0.0.10");
    assert_string_equal(text_of("10.0.0.255", 1), "10.0.1.0");
    assert_string_equal(text_of("255.255.255.255", 1), "0.0.0.0");
    assert_string_equal(text_of("::1", 9), "::a");
    assert_string_equal(text_of("2001:db8::ffff:ffff", 2), "2001:db8::1:0:1");
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_ip_address_of_text_is_canonical),
        cmocka_unit_test(test_ip_address_of_a_socket_knows_mapped_addresses),
        cmocka_unit_test(test_ip_address_after_carries_and_wraps),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
