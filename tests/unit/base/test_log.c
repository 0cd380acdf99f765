#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include <regex.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/log.h"

/* ---- a log of its own ---- */

static char path[64];

static int open_log(void **state) {
    struct err e = {0};
    (void)state;
    strcpy(path, "/tmp/tally-log-XXXXXX");
    int fd = mkstemp(path);
    assert_true(fd >= 0 && !close(fd) && !unlink(path));
    assert_int_equal(log_open(path, &e), 0);
    return 0;
}

static int close_log(void **state) {
    struct err e = {0};
    (void)state;
    assert_int_equal(log_open("", &e), 0);
    log_set_format(LOG_HUMAN);
    assert_int_equal(log_set_levels("info", &e), 0);
    unlink(path);
    return 0;
}

static size_t read_log(char *text, size_t size) {
    FILE *f = fopen(path, "r");
    assert_non_null(f);
    size_t n = fread(text, 1, size - 1, f);
    text[n] = 0;
    fclose(f);
    return n;
}

static void matches(const char *pattern) {
    char text[8192];
    regex_t r;
    read_log(text, sizeof(text));
    assert_int_equal(regcomp(&r, pattern, REG_EXTENDED | REG_NOSUB), 0);
    int rc = regexec(&r, text, 0, NULL, 0);
    regfree(&r);
    if (rc) fail_msg("no %s in %s", pattern, text);
}

/* As a file of that room would say it. */
static void say(enum log_level level, const char *file, const char *text) {
    char name[256];
    const char *here = strstr(__FILE__, "tests/unit/");
    snprintf(name, sizeof(name), "%.*s%s", (int)(here - __FILE__), __FILE__, file);
    log_line(level, name, "%s", text);
}

#define TIME "[0-9]{4}-[0-9]{2}-[0-9]{2}T[0-9]{2}:[0-9]{2}:[0-9]{2}\\.[0-9]{3}Z"

static void test_lines_have_the_form_that_was_asked_for(void **state) {
    (void)state;
    say(LOG_LEVEL_WARN, "engine/kv.c", "a \"b\"\nc");
    matches("^" TIME " WARN  a \"b\" c\n$"); /* one line, whatever is in it */
    log_set_format(LOG_LOGFMT);
    say(LOG_LEVEL_WARN, "cql/read/page.c", "a \"b\"\nc");
    matches("\ntime=" TIME " level=warn room=cql/read text=\"a \\\\\"b\\\\\"\\\\nc\"\n$");
    log_set_format(LOG_JSON);
    say(LOG_LEVEL_ERROR, "server/admin.c", "tab\there");
    matches("\n\\{\"time\":\"" TIME "\",\"level\":\"error\",\"room\":\"server\",\"text\":\"tab\\\\there\"\\}\n$");
}

static void test_rooms_have_levels_of_their_own(void **state) {
    static const struct {
        const char *file;
        enum log_level level;
        bool told;
    } cases[] = {{"server/x.c", LOG_LEVEL_WARN, true}, {"server/x.c", LOG_LEVEL_INFO, false},
                 {"cql/x.c", LOG_LEVEL_INFO, true},    {"cql/where/x.c", LOG_LEVEL_INFO, true},
                 {"cql/x.c", LOG_LEVEL_DEBUG, false},  {"cql/read/x.c", LOG_LEVEL_DEBUG, true},
                 {"cqlx/x.c", LOG_LEVEL_INFO, false},  {"engine/x.c", LOG_LEVEL_WARN, false},
                 {"engine/x.c", LOG_LEVEL_ERROR, true}};
    struct err e = {0};
    char text[8192];
    (void)state;
    assert_int_equal(log_set_levels("cql=info,warn,cql/read=debug,engine=error", &e), 0);
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        size_t before = read_log(text, sizeof(text));
        say(cases[i].level, cases[i].file, "x");
        assert_int_equal(read_log(text, sizeof(text)) > before, cases[i].told);
    }
}

static void test_levels_that_are_none_change_nothing(void **state) {
    static const char *const bad[] = {"loud",    "info,",       "=info",
                                      "engine=", "engine=loud", "a-room-with-a-name-that-is-longer-than-any=info"};
    (void)state;
    for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
        struct err e = {0};
        assert_int_equal(log_set_levels(bad[i], &e), -1);
        assert_int_equal(e.code, ERR_CONFIG);
    }
    say(LOG_LEVEL_INFO, "engine/x.c", "still");
    matches("INFO  still");
}

static void test_a_file_that_was_moved_away_is_made_again_for_nobody_else(void **state) {
    char moved[80];
    struct stat s;
    struct err e = {0};
    (void)state;
    say(LOG_LEVEL_INFO, "engine/x.c", "before");
    snprintf(moved, sizeof(moved), "%s.1", path);
    assert_int_equal(rename(path, moved), 0);
    assert_int_equal(log_open(path, &e), 0);
    say(LOG_LEVEL_INFO, "engine/x.c", "after");
    matches("^" TIME " INFO  after\n$");
    assert_int_equal(stat(path, &s), 0);
    assert_int_equal(s.st_mode & 0777, 0600);
    assert_int_equal(log_open("/nowhere/at/all", &e), -1);
    say(LOG_LEVEL_INFO, "engine/x.c", "and on");
    matches("and on\n$");
    unlink(moved);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_lines_have_the_form_that_was_asked_for, open_log, close_log),
        cmocka_unit_test_setup_teardown(test_rooms_have_levels_of_their_own, open_log, close_log),
        cmocka_unit_test_setup_teardown(test_levels_that_are_none_change_nothing, open_log, close_log),
        cmocka_unit_test_setup_teardown(test_a_file_that_was_moved_away_is_made_again_for_nobody_else, open_log,
                                        close_log),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
