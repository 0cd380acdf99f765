/* The digits of floats and doubles as Java 17 wrote them. */
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <setjmp.h>
#include <cmocka.h>

#include "types/type.h"

struct sample {
    double value;
    const char *text;
};

static void check(enum cql_type_id id, double value, const char *text) {
    uint8_t raw[8];
    uint64_t bits;
    uint32_t small;
    float f = (float)value;
    struct buf b;
    memcpy(&bits, &value, 8);
    memcpy(&small, &f, 4);
    if (id == CQL_FLOAT) store_u32(raw, small);
    else store_u64(raw, bits);
    buf_init(&b, 0);
    cql_value_text(cql_type_scalar(id), slice_of(raw, id == CQL_FLOAT ? 4 : 8), &b);
    buf_u8(&b, 0);
    assert_string_equal((const char *)b.p, text);
    buf_fini(&b);
}

static void test_double_has_the_digits_of_java(void **state) {
    (void)state;
    static const struct sample rows[] = {
        {0.1, "0.1"},
        {100.0, "100.0"},
        {1e7, "1.0E7"},
        {0.001, "0.001"},
        {0.0001, "1.0E-4"},
        {9007199254740993.0, "9.007199254740992E15"},
        {1e23, "9.999999999999999E22"},
        {5e-324, "4.9E-324"},
        {1.7976931348623157e308, "1.7976931348623157E308"},
        {10125635958.8, "1.01256359588E10"},
        {-26996455603396.395, "-2.6996455603396395E13"},
        {4.887898181599368e-150, "4.8878981815993675E-150"},
        {3.091630018413807e+172, "3.0916300184138067E172"},
        {4.239575861902385e-168, "4.2395758619023847E-168"},
        {30747977333.95, "3.074797733395E10"},
    };
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) check(CQL_DOUBLE, rows[i].value, rows[i].text);
}

static void test_float_has_the_digits_of_java(void **state) {
    (void)state;
    static const struct sample rows[] = {
        {0.1, "0.1"},
        {16777216.0, "1.6777216E7"},
        {1e-45, "1.4E-45"},
        {3.4028234663852886e38, "3.4028235E38"},
        {9.671406556917033e+24, "9.6714065E24"},
        {1024716636160.0, "1.02471664E12"},
        {-177047104.0, "-1.77047104E8"},
        {1.5845632502852868e+29, "1.58456325E29"},
        {-2829589676032.0, "-2.82958968E12"},
        {444892184576.0, "4.44892185E11"},
        {459692933382144.0, "4.59692933E14"},
    };
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) check(CQL_FLOAT, rows[i].value, rows[i].text);
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_double_has_the_digits_of_java),
                                       cmocka_unit_test(test_float_has_the_digits_of_java)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
