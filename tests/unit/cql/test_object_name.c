/* Which texts name MBeans: as Java 17's javax.management.ObjectName took them. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>

#include <cmocka.h>

#include "cql/syntax/build.h"

static void test_object_names_are_accepted_as_in_java(void **state) {
    static const char *const names[] = {"a:b=c",   "a:b=c,d=e", "a:b=\"c\"", "a:b=",        ":b=c",
                                        "a=b:c=d", "a=:b=c",    "a:b=,c=d",  "a:b=\"c\\n\""};
    static const char *const patterns[] = {"a:*",    "a:*,",  "a:*,b=c",    "a:b=c,*", "a:b=c,*,", "*:*",
                                           "a*:b=c", "a:b=*", "a:b=\"c*\"", "a:b=c?",  "a=b*:c=d"};
    static const char *const none[] = {"x",          "",           "a:b",     "a:b=c,",    "a:b=\"c",
                                       "a:b=\"c\",", "a:b=\"c\"d", "a:=b",    "a:b=c,b=d", "a=b",
                                       "a:",         ":",          "a:b=c:d", "a:b=c=d",   "a:b=\"\\x\"",
                                       "a\n:b=c",    "a:b?=c",     "a:*,*",   "a:b,c=d",   "a:,b=c",
                                       "a:b=c,,d=e", "*",          "a:**",    "a=\n:c=d",  "a:*,b=*,"};
    bool pattern;
    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(names); i++)
        if (!object_name_read(slice_str(names[i]), &pattern) || pattern) fail_msg("%s is a name", names[i]);
    for (size_t i = 0; i < ARRAY_LEN(patterns); i++)
        if (!object_name_read(slice_str(patterns[i]), &pattern) || !pattern) fail_msg("%s is a pattern", patterns[i]);
    for (size_t i = 0; i < ARRAY_LEN(none); i++)
        if (object_name_read(slice_str(none[i]), &pattern)) fail_msg("%s is no name", none[i]);
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_object_names_are_accepted_as_in_java)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
