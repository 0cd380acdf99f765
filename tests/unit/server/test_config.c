#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "server/data_dir.h"
#include "server/settings.h"

static int load(struct config *c, struct err *e, char **argv) {
    int argc = 0;
    while (argv[argc]) argc++;
    err_clear(e);
    return config_load(c, argc, argv, e);
}
#define LOAD(c, e, ...) load((c), (e), (char *[]){"tallyd", __VA_ARGS__, NULL})

static void test_config_defaults_make_settings(void **state) {
    (void)state;
    struct config c;
    struct settings s;
    struct err e;
    assert_int_equal(load(&c, &e, (char *[]){"tallyd", NULL}), 0);
    assert_int_equal(settings_read(&s, &c, &e), 0);
    assert_int_equal(s.port, 9042);
    assert_int_equal(s.admin_port, 9180);
    assert_int_equal(s.mode, MODE_KEYSPACES);
    assert_false(s.control);
    /* well below the second for which the Java driver collects schema events */
    assert_string_equal(s.ddl_delay, "500");
    assert_int_equal(s.durability, ENG_FSYNC);
    assert_false(s.has_tls || s.tls_only);
    assert_string_equal(s.node.cluster_name, "Amazon Keyspaces");
    assert_string_equal(s.node.release_version, "3.11.2");
    assert_string_equal(s.node.datacenter, "us-east-1");
    assert_int_equal(s.workers[WORK_SCAN], 0);
    assert_int_equal(s.queue_requests, 16384);
    assert_int_equal(s.timeout_ms[WORK_READ], 5000);
    assert_int_equal(s.timeout_ms[WORK_SCAN], 10000);
    assert_int_equal(s.timeout_ms[WORK_UPDATE], 2000);
    assert_int_equal(s.timeout_ms[WORK_DDL], 0);
    config_fini(&c);
}

static void test_config_workers_of_each_class(void **state) {
    (void)state;
    struct config c;
    struct settings s;
    struct err e;
    assert_int_equal(LOAD(&c, &e, "--read-workers=1", "--update-workers=2", "--scan-workers=3", "--ddl-workers=4",
                          "--range-timeout=0"),
                     0);
    assert_int_equal(settings_read(&s, &c, &e), 0);
    for (int i = 0; i < WORK_CLASSES; i++) assert_int_equal(s.workers[i], i + 1);
    assert_int_equal(s.timeout_ms[WORK_SCAN], 0);
    config_fini(&c);
    assert_int_equal(LOAD(&c, &e, "--scan-workers=257"), 0);
    assert_int_equal(settings_read(&s, &c, &e), -1);
    assert_string_equal(e.text, "--scan-workers must be a number from 0 to 256, not '257'");
    config_fini(&c);
}

static void test_config_mode_decides_other_defaults(void **state) {
    (void)state;
    struct config c;
    struct settings s;
    struct err e;
    assert_int_equal(LOAD(&c, &e, "--mode=cassandra", "--release-version", "5.0.9"), 0);
    assert_int_equal(settings_read(&s, &c, &e), 0);
    assert_string_equal(s.ddl_delay, "none");
    assert_string_equal(s.node.release_version, "5.0.9");
    assert_string_equal(s.node.cql_version, "3.4.7");
    config_fini(&c);
}

static void test_config_flags_go_before_environment_before_file(void **state) {
    (void)state;
    char path[] = "/tmp/tally_test_config_XXXXXX";
    int fd = mkstemp(path);
    struct config c;
    struct err e;
    assert_true(fd >= 0);
    assert_true(dprintf(fd, "port: 1\nadmin_port: 2\nrack: here\n") > 0);
    close(fd);
    setenv("TALLY_PORT", "11", 1);
    setenv("TALLY_ADMIN_PORT", "12", 1);
    assert_int_equal(LOAD(&c, &e, "--config", path, "--port", "21"), 0);
    assert_string_equal(c.values[CONFIG_PORT], "21");
    assert_string_equal(c.values[CONFIG_ADMIN_PORT], "12");
    assert_string_equal(c.values[CONFIG_RACK], "here");
    config_fini(&c);
    unsetenv("TALLY_PORT");
    unsetenv("TALLY_ADMIN_PORT");
    unlink(path);
}

static void test_config_refuses_what_it_does_not_know(void **state) {
    (void)state;
    struct config c;
    struct err e;
    assert_int_equal(LOAD(&c, &e, "--nonsense", "1"), -1);
    assert_string_equal(e.text, "unknown flag '--nonsense'; see tallyd --help");
    config_fini(&c);
    assert_int_equal(LOAD(&c, &e, "--port"), -1);
    config_fini(&c);
    assert_int_equal(LOAD(&c, &e, "stray"), -1);
    config_fini(&c);
    assert_int_equal(LOAD(&c, &e, "--config", "/nonexistent/tally.yaml"), -1);
    config_fini(&c);
}

static void refuse(const char *flag, const char *value, const char *text) {
    struct config c;
    struct settings s;
    struct err e;
    assert_int_equal(LOAD(&c, &e, (char *)flag, (char *)value), 0);
    assert_int_equal(settings_read(&s, &c, &e), -1);
    assert_int_equal(e.code, ERR_CONFIG);
    assert_string_equal(e.text, text);
    config_fini(&c);
}

static void test_settings_refuse_bad_values_by_name(void **state) {
    (void)state;
    refuse("--port", "70000", "--port must be a number from 0 to 65535, not '70000'");
    refuse("--port", "-1", "--port must be a number from 0 to 65535, not '-1'");
    refuse("--mode", "dynamo", "--mode must be keyspaces or cassandra, not 'dynamo'");
    refuse("--durability", "maybe", "--durability must be fsync, periodic or none, not 'maybe'");
    refuse("--tls-cert", "cert.pem", "TLS needs both --tls-cert and --tls-key");
    refuse("--memory", "200", "--memory must be 344 or more, not 200: the sum of the minimums of its parts");
    refuse("--max-work-bytes", "1000", "--max-work-bytes must be 0 or a mebibyte at least (1048576), not 1000");
}

static void compatibility_is(enum compat_mode expected, char *mode, char *given) {
    struct config c;
    struct settings s;
    struct err e = {0};
    char *argv[] = {"tallyd", "--mode", mode, given ? "--compatibility" : NULL, given, NULL};
    assert_int_equal(load(&c, &e, argv), 0);
    assert_int_equal(settings_read(&s, &c, &e), 0);
    assert_int_equal(s.compatibility, expected);
    config_fini(&c);
}

static void test_refusals_are_strict_in_keyspaces_mode_unless_asked(void **state) {
    (void)state;
    compatibility_is(COMPAT_STRICT, "keyspaces", NULL);
    compatibility_is(COMPAT_OFF, "keyspaces", "off");
    compatibility_is(COMPAT_REPORT, "keyspaces", "report");
    compatibility_is(COMPAT_OFF, "cassandra", NULL);
    compatibility_is(COMPAT_REPORT, "cassandra", "report");
    refuse("--compatibility", "loose", "--compatibility must be off, report or strict, not 'loose'");
}

static void test_settings_of_limits_are_named(void **state) {
    (void)state;
    refuse("--limits", "hard", "--limits must be off, shadow or enforce, not 'hard'");
    refuse("--guidance", "shadow", "--guidance must be off, warn or enforce, not 'shadow'");
    refuse("--limit-values", "conection=1", "--limit-values: there is no limit 'conection'");
    refuse("--table-limits", "t=off", "--table-limits: 't' is not keyspace.table or keyspace.*");
}

static void test_settings_refuse_logins_that_nobody_could_have(void **state) {
    (void)state;
    refuse("--auth", "sigv4", "--auth sigv4 needs --credentials: a file with access keys");
    refuse("--auth", "password", "--auth password needs --credentials: in keyspaces mode no statement makes logins");
    refuse("--credentials", "file", "--credentials has no effect with --auth none");
    refuse("--auth", "on", "--auth must be none, password or sigv4, not 'on'");
}

enum { MB = 1 << 20 };

static void plan_of(struct memory_plan *plan, size_t memory, enum memory_part part, size_t bytes) {
    struct memory_settings w = {.memory = memory, .frame_max = 16 * MB};
    struct err e = {0};
    w.parts[part] = bytes;
    if (memory_plan(&w, plan, &e)) fail_msg("%s", e.text);
}

static void test_parts_of_memory_come_to_it(void **state) {
    (void)state;
    struct memory_plan small, large, set;
    for (size_t mb = 344; mb < 1 << 16; mb += mb / 5) {
        size_t sum = 0;
        plan_of(&small, mb * MB, MEMORY_CACHE, 0);
        for (int i = 0; i < MEMORY_PARTS; i++) sum += small.parts[i];
        assert_int_equal(sum, mb * MB);
        assert_true(small.parts[MEMORY_CACHE] >= 8 * MB);
    }
    plan_of(&small, 344ul * MB, MEMORY_CACHE, 0);
    plan_of(&large, 8192ul * MB, MEMORY_CACHE, 0);
    for (int i = 0; i < MEMORY_PARTS; i++) assert_true(large.parts[i] > small.parts[i]);
    plan_of(&set, 8192ul * MB, MEMORY_UNREAD, 1024ul * MB);
    assert_int_equal(set.parts[MEMORY_UNREAD], 1024ul * MB);
    assert_int_equal(large.parts[MEMORY_CACHE] - set.parts[MEMORY_CACHE], 1024ul * MB - large.parts[MEMORY_UNREAD]);
}

static void test_the_row_cache_leaves_blocks_as_much_and_may_be_none(void **state) {
    (void)state;
    struct memory_plan plan;
    struct err e = {0};
    for (size_t mb = 344; mb < 1 << 13; mb += mb / 5) {
        plan_of(&plan, mb * MB, MEMORY_ROW_CACHE, 0);
        assert_true(plan.parts[MEMORY_ROW_CACHE] <= plan.parts[MEMORY_CACHE]);
    }
    assert_int_equal(plan.parts[MEMORY_ROW_CACHE], plan.memory / 64 * 8);
    struct memory_settings none = {.memory = 8192ul * MB, .frame_max = 16 * MB, .no_row_cache = true};
    assert_int_equal(memory_plan(&none, &plan, &e), 0);
    assert_int_equal(plan.parts[MEMORY_ROW_CACHE], 0);
    plan_of(&plan, 8192ul * MB, MEMORY_ROW_CACHE, 5 * MB);
    assert_int_equal(plan.parts[MEMORY_ROW_CACHE], 5 * MB);
}

/* data: a data folder below base. */
static void refuses_folders_within(const char *base, const char *data) {
    char inner[128], link[128];
    struct err e = {0};
    snprintf(inner, sizeof(inner), "%s/c/d", data);
    assert_int_equal(data_dir_open(inner, &e), -1);
    assert_non_null(strstr(e.text, "which is a data folder itself"));
    assert_int_equal(access(inner, F_OK), -1);
    snprintf(link, sizeof(link), "%s/link", base);
    snprintf(inner, sizeof(inner), "%s/link/c", base);
    assert_int_equal(symlink(data, link), 0);
    err_clear(&e);
    assert_int_equal(data_dir_open(inner, &e), -1);
    assert_non_null(strstr(e.text, "which is a data folder itself"));
    err_clear(&e);
    int fd = data_dir_open(link, &e); /* the folder itself by another name */
    assert_true(fd >= 0);
    close(fd), unlink(link);
}

static void test_data_dir_is_private_and_locked(void **state) {
    (void)state;
    char base[] = "/tmp/tally_test_dir_XXXXXX", path[64], lock[96];
    struct err e = {0};
    assert_non_null(mkdtemp(base));
    snprintf(path, sizeof(path), "%s/a/b", base);
    int fd = data_dir_open(path, &e);
    assert_true(fd >= 0);
    assert_int_equal(data_dir_open(path, &e), -1);
    assert_non_null(strstr(e.text, "in use by another tallyd"));
    close(fd);
    err_clear(&e);
    fd = data_dir_open(path, &e);
    assert_true(fd >= 0);
    close(fd);
    snprintf(lock, sizeof(lock), "%s/tallyd.lock", path);
    refuses_folders_within(base, path);
    unlink(lock), rmdir(path);
    snprintf(path, sizeof(path), "%s/a", base);
    rmdir(path), rmdir(base);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_config_defaults_make_settings),
        cmocka_unit_test(test_config_workers_of_each_class),
        cmocka_unit_test(test_config_mode_decides_other_defaults),
        cmocka_unit_test(test_config_flags_go_before_environment_before_file),
        cmocka_unit_test(test_config_refuses_what_it_does_not_know),
        cmocka_unit_test(test_settings_refuse_bad_values_by_name),
        cmocka_unit_test(test_refusals_are_strict_in_keyspaces_mode_unless_asked),
        cmocka_unit_test(test_settings_of_limits_are_named),
        cmocka_unit_test(test_settings_refuse_logins_that_nobody_could_have),
        cmocka_unit_test(test_parts_of_memory_come_to_it),
        cmocka_unit_test(test_the_row_cache_leaves_blocks_as_much_and_may_be_none),
        cmocka_unit_test(test_data_dir_is_private_and_locked),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
