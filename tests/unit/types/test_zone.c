/* Time zones: what is read of a file, which offset holds at a local time, and which names are taken. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <cmocka.h>
#include <stdlib.h>

#include "base/buf.h"
#include "types/calendar.h"
#include "types/type.h"
#include "types/zone.h"

/* A file with winter time (+1 h), summer time (+2 h) from 1000000, winter time again from 2000000, and a rule. */
static void make_file(struct buf *b, const char *rule, uint8_t last_kind) {
    buf_init(b, 0);
    for (unsigned width = 4; width <= 8; width += 4) {
        static const uint32_t counts[] = {1, 1, 1, 2, 2, 4}; /* isut isstd leap time type char */
        buf_put_str(b, "TZif2");
        for (int i = 0; i < 15; i++) buf_u8(b, 0);
        for (size_t i = 0; i < ARRAY_LEN(counts); i++) buf_u32(b, counts[i]);
        for (uint32_t at = 1000000; at <= 2000000; at += 1000000) {
            if (width == 8) buf_u32(b, 0);
            buf_u32(b, at);
        }
        buf_u8(b, 1), buf_u8(b, last_kind);
        buf_u32(b, 3600), buf_u8(b, 0), buf_u8(b, 0);
        buf_u32(b, 7200), buf_u8(b, 1), buf_u8(b, 0);
        buf_put_str(b, "ABC");
        buf_u8(b, 0);
        for (unsigned i = 0; i < width + 4 + 2; i++) buf_u8(b, 0);
    }
    buf_u8(b, '\n');
    buf_put_str(b, rule);
    buf_u8(b, '\n');
    assert_false(buf_failed(b));
}

static void test_a_skipped_or_repeated_time_has_the_earlier_offset(void **state) {
    (void)state;
    struct buf file;
    struct zone z;
    make_file(&file, "", 0);
    assert_true(zone_read(buf_slice(&file), &z));
    assert_int_equal(zone_offset(&z, INT64_MIN / 1000), 3600);
    assert_int_equal(zone_offset(&z, 1000000 + 3600 - 1), 3600);
    assert_int_equal(zone_offset(&z, 1000000 + 3600), 3600); /* clocks go from here to 7200 */
    assert_int_equal(zone_offset(&z, 1000000 + 7200 - 1), 3600);
    assert_int_equal(zone_offset(&z, 1000000 + 7200), 7200);
    assert_int_equal(zone_offset(&z, 2000000 + 3600), 7200); /* from here to 7200 they are shown twice */
    assert_int_equal(zone_offset(&z, 2000000 + 7200 - 1), 7200);
    assert_int_equal(zone_offset(&z, 2000000 + 7200), 3600);
    assert_int_equal(zone_offset(&z, INT64_MAX / 1000), 3600);
    buf_fini(&file);
}

static int64_t local(int64_t year, int month, int day, int h, int m) {
    return calendar_days(year, month, day) * 86400 + h * 3600 + m * 60;
}

static const struct {
    const char *rule;
    int64_t year;
    int month, day, h, m;
    int32_t offset_s;
} by_rule[] = {
    {"CET-1CEST,M3.5.0,M10.5.0/3", 2055, 3, 28, 1, 59, 3600},
    {"CET-1CEST,M3.5.0,M10.5.0/3", 2055, 3, 28, 2, 30, 3600},
    {"CET-1CEST,M3.5.0,M10.5.0/3", 2055, 3, 28, 3, 0, 7200},
    {"CET-1CEST,M3.5.0,M10.5.0/3", 2055, 10, 31, 2, 59, 7200},
    {"CET-1CEST,M3.5.0,M10.5.0/3", 2055, 10, 31, 3, 0, 3600},
    {"NZST-12NZDT,M9.5.0,M4.1.0/3", 2055, 1, 1, 0, 0, 46800}, /* summer at New Year */
    {"NZST-12NZDT,M9.5.0,M4.1.0/3", 2055, 6, 1, 0, 0, 43200},
    {"<-02>2<-01>,M3.5.0/-1,M10.5.0/0", 2055, 3, 27, 22, 59, -7200},
    {"<-02>2<-01>,M3.5.0/-1,M10.5.0/0", 2055, 3, 28, 0, 0, -3600},
    {"IST-1GMT0,M10.5.0,M3.5.0/1", 2055, 12, 1, 0, 0, 0}, /* Dublin: its winter is the exception */
    {"IST-1GMT0,M10.5.0,M3.5.0/1", 2055, 7, 1, 0, 0, 3600},
    {"AAA3BBB,J60/0,J300/0", 2056, 2, 29, 23, 0, -10800},
    {"AAA3BBB,J60/0,J300/0", 2056, 3, 1, 1, 0, -7200},
    {"AAA3BBB,59/0,299/0", 2056, 2, 29, 1, 0, -7200},
    {"AAA3BBB,59/0,299/0", 2055, 3, 1, 0, 30, -10800},
    {"<+0545>-5:45", 2055, 1, 1, 0, 0, 20700},
    {"EET-2EEST,M3.4.4/50,M10.4.4/50", 2055, 3, 27, 3, 0, 10800}, /* the Thursday's third day */
};

static void test_years_after_the_last_change_follow_the_rule(void **state) {
    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(by_rule); i++) {
        struct buf file;
        struct zone z;
        make_file(&file, by_rule[i].rule, 0);
        assert_true(zone_read(buf_slice(&file), &z));
        int64_t at = local(by_rule[i].year, by_rule[i].month, by_rule[i].day, by_rule[i].h, by_rule[i].m);
        if (zone_offset(&z, at) != by_rule[i].offset_s)
            fail_msg("%s, row %zu: %d", by_rule[i].rule, i, zone_offset(&z, at));
        buf_fini(&file);
    }
}

static void test_a_damaged_zone_file_is_refused(void **state) {
    (void)state;
    static const char *const rules[] = {"CET",           "CET-",         "CET-1CEST",          "CET-1CEST,M3.5.0",
                                        "CET-1CEST,M13.5.0,M10.5.0", "CET-1CEST,M3.6.0,M10.5.0", "CET-1CEST,J0,J5",
                                        "CET-1CEST,M3.5.7,M10.5.0",  "CET-168",      "<CET-1", "-1",
                                        "CET-1CEST,366,5",           "CET-99999999999999999999"};
    struct buf file;
    struct zone z;
    make_file(&file, "CET-1CEST,M3.5.0,M10.5.0/3", 0);
    for (size_t n = 0; n < file.n; n++) {
        uint8_t *exact = malloc(n + 1);
        memcpy(exact, file.p, n);
        assert_false(zone_read(slice_of(exact, n), &z));
        free(exact);
    }
    file.p[4] = 0; /* of the version before times had 8 bytes */
    assert_false(zone_read(buf_slice(&file), &z));
    buf_fini(&file);
    make_file(&file, "", 2); /* of two types */
    assert_false(zone_read(buf_slice(&file), &z));
    buf_fini(&file);
    for (size_t i = 0; i < ARRAY_LEN(rules); i++) {
        make_file(&file, rules[i], 0);
        if (zone_read(buf_slice(&file), &z)) fail_msg("%s is taken", rules[i]);
        buf_fini(&file);
    }
}

static void test_names_of_zones_cannot_address_files_outside_the_folder(void **state) {
    (void)state;
    static const char *const others[] = {
        "", "Europe", "../zoneinfo/CET", "/usr/share/zoneinfo/CET", "posix/CET", "right/CET", "localtime", "Etc/GMT+5",
        "Etc/GMT0", "ROC", "tzdata.zi", "Europe/../CET", "leapseconds", "europe/paris", "cet", "Europe//", "+Europe",
        "CTT", "Europe|Paris", "|",
    };
    static const char *const ids[] = {
#define ZONE(id, names) id,
#include "types/zone.def"
#undef ZONE
    };
    for (size_t i = 0; i < ARRAY_LEN(others); i++)
        if (zone_find(slice_str(others[i]))) fail_msg("%s is a zone", others[i]);
    assert_null(zone_find(slice_of("Europe/Paris\0", 13)));
    for (size_t i = 0; i < ARRAY_LEN(ids); i++)
        if (!zone_find(slice_str(ids[i]))) fail_msg("%s is no zone: is tzdata installed?", ids[i]);
    assert_ptr_equal(zone_find(slice_str("CEST")), zone_find(slice_str("Europe/Paris")));
    assert_ptr_equal(zone_find(slice_str("Pacific Standard Time")), zone_find(slice_str("PDT")));
}

static const struct {
    const char *text;
    bool fixed;
    int64_t ms; /* 0: refused */
} read[] = {
    {"2024-07-01 12:00:00 CET", false, 1719828000000}, {"2024-07-01 12:00:00 CET", true, 1719831600000},
    {"2024-01-15 12:00:00 CEST", false, 1705316400000}, {"2024-01-15 12:00:00 CEST", true, 1705312800000},
    {"2024-07-01 12:00:00 JST", false, 1719802800000}, {"2024-07-01 12:00:00 JST", true, 0},
    {"2024-07-01 12:00:00 UTC+01:00", true, 1719831600000}, {"2024-07-01 12:00:00CET", true, 0},
};

static void test_in_keyspaces_mode_a_name_is_of_winter_or_of_summer(void **state) {
    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(read); i++) {
        struct buf out;
        struct err e = {0};
        buf_init(&out, 0);
        int rc = cql_literal_parse(cql_type_scalar(CQL_TIMESTAMP), LIT_STRING, slice_str(read[i].text), "v",
                                   (struct cql_reading){.fixed_zones = read[i].fixed}, &out, &e);
        assert_int_equal(rc, read[i].ms ? 0 : -1);
        if (!rc) assert_int_equal((int64_t)load_u64(out.p), read[i].ms);
        buf_fini(&out);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_a_skipped_or_repeated_time_has_the_earlier_offset),
        cmocka_unit_test(test_years_after_the_last_change_follow_the_rule),
        cmocka_unit_test(test_a_damaged_zone_file_is_refused),
        cmocka_unit_test(test_names_of_zones_cannot_address_files_outside_the_folder),
        cmocka_unit_test(test_in_keyspaces_mode_a_name_is_of_winter_or_of_summer),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
