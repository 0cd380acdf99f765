#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include "native_protocol/peers.h"

static const uint8_t a[4] = {127, 0, 0, 1}, b[4] = {127, 0, 0, 2};

static void test_peers_bound_each_address_and_all(void **state) {
    (void)state;
    struct np_peers p;
    struct np_peer *of_a[2], *of_b;
    npi_peers_init(&p, 3, 2);
    for (int i = 0; i < 2; i++) assert_non_null(of_a[i] = npi_peers_enter(&p, a, 4));
    assert_null(npi_peers_enter(&p, a, 4));
    assert_non_null(of_b = npi_peers_enter(&p, b, 4));
    assert_null(npi_peers_enter(&p, b, 4)); /* all are taken */
    npi_peers_leave(&p, of_a[0]);
    npi_peers_leave(&p, of_b);
    assert_non_null(of_a[0] = npi_peers_enter(&p, a, 4));
    assert_null(npi_peers_enter(&p, a, 4));
    for (int i = 0; i < 2; i++) npi_peers_leave(&p, of_a[i]);
    npi_peers_fini(&p);
}

static void test_peers_of_one_ipv6_network_are_one(void **state) {
    (void)state;
    static const uint8_t one[16] = {0x20, 1, 0xd, 0xb8, [15] = 1}, same[16] = {0x20, 1, 0xd, 0xb8, [8] = 9},
                         other[16] = {0x20, 1, 0xd, 0xb8, 0, 0, 0, 1};
    static const uint8_t mapped[16] = {[10] = 0xff, [11] = 0xff, 127, 0, 0, 1}, loopback[16] = {[15] = 1};
    struct np_peers p;
    npi_peers_init(&p, 100, 1);
    struct np_peer *in[] = {npi_peers_enter(&p, one, 16), npi_peers_enter(&p, other, 16),
                            npi_peers_enter(&p, mapped, 16), npi_peers_enter(&p, loopback, 16),
                            npi_peers_enter(&p, b, 4)};
    for (size_t i = 0; i < 5; i++) assert_non_null(in[i]);
    assert_null(npi_peers_enter(&p, same, 16));
    assert_null(npi_peers_enter(&p, a, 4)); /* the same as mapped */
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
        assert_non_null(in[i] = npi_peers_enter(&p, (const uint8_t[]){10, 0, (uint8_t)(i >> 8), (uint8_t)i}, 4));
    for (uint32_t i = 0; i < MANY; i += 2) npi_peers_leave(&p, in[i]);
    for (uint32_t i = 1; i < MANY; i += 2)
        assert_null(npi_peers_enter(&p, (const uint8_t[]){10, 0, (uint8_t)(i >> 8), (uint8_t)i}, 4));
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
