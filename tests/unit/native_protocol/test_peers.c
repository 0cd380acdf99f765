#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include "native_protocol/peers.h"

static const struct ip_address a = {4, {127, 0, 0, 1}}, b = {4, {127, 0, 0, 2}};

static void test_peers_bound_each_address_and_all(void **state) {
    (void)state;
    struct np_peers p;
    struct np_peer *of_a[2], *of_b;
    npi_peers_init(&p, 3, 2);
    for (int i = 0; i < 2; i++) assert_non_null(of_a[i] = npi_peers_enter(&p, &a));
    assert_null(npi_peers_enter(&p, &a));
    assert_non_null(of_b = npi_peers_enter(&p, &b));
    assert_null(npi_peers_enter(&p, &b)); /* all are taken */
    npi_peers_leave(&p, of_a[0]);
    npi_peers_leave(&p, of_b);
    assert_non_null(of_a[0] = npi_peers_enter(&p, &a));
    assert_null(npi_peers_enter(&p, &a));
    for (int i = 0; i < 2; i++) npi_peers_leave(&p, of_a[i]);
    npi_peers_fini(&p);
}

static void test_peers_of_one_ipv6_network_are_one(void **state) {
    (void)state;
    static const struct ip_address one = {16, {0x20, 1, 0xd, 0xb8, [15] = 1}},
                                   same = {16, {0x20, 1, 0xd, 0xb8, [8] = 9}},
                                   other = {16, {0x20, 1, 0xd, 0xb8, 0, 0, 0, 1}}, loopback = {16, {[15] = 1}};
    struct np_peers p;
    npi_peers_init(&p, 100, 1);
    struct np_peer *in[] = {npi_peers_enter(&p, &one), npi_peers_enter(&p, &other), npi_peers_enter(&p, &loopback),
                            npi_peers_enter(&p, &a), npi_peers_enter(&p, &b)};
    for (size_t i = 0; i < 5; i++) assert_non_null(in[i]);
    assert_null(npi_peers_enter(&p, &same));
    for (size_t i = 0; i < 5; i++) npi_peers_leave(&p, in[i]);
    npi_peers_fini(&p);
}

static void test_peers_by_the_thousand(void **state) {
    (void)state;
    enum { MANY = 3000 };
    static struct np_peer *in[MANY];
    struct np_peers p;
    npi_peers_init(&p, MANY, 1);
    for (uint32_t i = 0; i < MANY; i++)
        assert_non_null(in[i] = npi_peers_enter(&p, &(struct ip_address){4, {10, 0, (uint8_t)(i >> 8), (uint8_t)i}}));
    for (uint32_t i = 0; i < MANY; i += 2) npi_peers_leave(&p, in[i]);
    for (uint32_t i = 1; i < MANY; i += 2)
        assert_null(npi_peers_enter(&p, &(struct ip_address){4, {10, 0, (uint8_t)(i >> 8), (uint8_t)i}}));
    for (uint32_t i = 1; i < MANY; i += 2) npi_peers_leave(&p, in[i]);
    npi_peers_fini(&p);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_peers_bound_each_address_and_all),
        cmocka_unit_test(test_peers_of_one_ipv6_network_are_one),
        cmocka_unit_test(test_peers_by_the_thousand),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
