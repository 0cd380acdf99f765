#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "base/crc32c.h"

/* RFC 3720, appendix B.4, and the check value of the CRC catalogues. */
static void test_crc32c_gives_the_published_values(void **state) {
    (void)state;
    uint8_t bytes[32] = {0};
    assert_int_equal(crc32c(0, slice_of(bytes, 32)), 0x8a9136aa);
    for (int i = 0; i < 32; i++) bytes[i] = (uint8_t)i;
    assert_int_equal(crc32c(0, slice_of(bytes, 32)), 0x46dd794e);
    assert_int_equal(crc32c(0, slice_str("123456789")), 0xe3069283);
    assert_int_equal(crc32c(0, slice_str("")), 0);
}

static void test_crc32c_goes_on_from_any_cut(void **state) {
    (void)state;
    uint8_t bytes[61];
    for (size_t i = 0; i < sizeof(bytes); i++) bytes[i] = (uint8_t)(i * 37);
    uint32_t whole = crc32c(0, slice_of(bytes, sizeof(bytes)));
    for (size_t cut = 0; cut <= sizeof(bytes); cut++)
        assert_int_equal(crc32c(crc32c(0, slice_of(bytes, cut)), slice_of(bytes + cut, sizeof(bytes) - cut)), whole);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_crc32c_gives_the_published_values),
        cmocka_unit_test(test_crc32c_goes_on_from_any_cut),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
