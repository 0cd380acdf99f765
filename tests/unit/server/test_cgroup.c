#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include <cmocka.h>

#include "server/cgroup.h"

static char root[64];

static void put(const char *folder, const char *file, const char *text) {
    char path[256];
    snprintf(path, sizeof(path), "%s%s", root, folder);
    for (char *at = path + strlen(root); (at = strchr(at + 1, '/'));) {
        *at = 0;
        mkdir(path, 0700);
        *at = '/';
    }
    mkdir(path, 0700);
    snprintf(path, sizeof(path), "%s%s/%s", root, folder, file);
    FILE *f = fopen(path, "we");
    assert_non_null(f);
    fputs(text, f);
    fclose(f);
}

static size_t limit_of(const char *self) {
    char path[80];
    put("", "self", self);
    snprintf(path, sizeof(path), "%s/self", root);
    return cgroup_memory_limit(root, path);
}

static void test_cgroup_limit_is_the_least_on_the_way_up(void **state) {
    (void)state;
    put("/system.slice/tallyd.service", "memory.max", "max\n");
    put("/system.slice", "memory.max", "1000000\n");
    put("/other", "memory.max", "10\n");
    assert_true(limit_of("0::/system.slice/tallyd.service\n") == 1000000);
    put("/system.slice/tallyd.service", "memory.max", "900000\n");
    assert_true(limit_of("0::/system.slice/tallyd.service\n") == 900000);
    assert_true(limit_of("0::/\n") == SIZE_MAX);
}

/* With a namespace of groups the path is /, and without one it is a path that the container cannot see. */
static void test_cgroup_limit_of_a_container_stands_at_the_root(void **state) {
    (void)state;
    put("", "memory.max", "500000\n");
    assert_true(limit_of("0::/\n") == 500000);
    assert_true(limit_of("0::/docker/0123456789\n") == 500000);
}

static void test_cgroup_limit_of_version_1(void **state) {
    (void)state;
    put("/memory/docker/1", "memory.limit_in_bytes", "700000\n");
    put("/memory", "memory.limit_in_bytes", "9223372036854771712\n");
    assert_true(limit_of("5:cpu,cpuacct:/docker/1\n4:memory:/docker/1\n") == 700000);
    assert_true(limit_of("4:hugetlb,memory:/docker/1\n") == 700000);
    assert_true(limit_of("4:memory:/\n0::/\n") == 9223372036854771712u);
    assert_true(limit_of("4:memory_not:/docker/1\n") == SIZE_MAX);
    assert_true(limit_of("nonsense\n") == SIZE_MAX);
}

static int make_root(void **state) {
    (void)state;
    strcpy(root, "/tmp/tally_cgroup_XXXXXX");
    return mkdtemp(root) ? 0 : -1;
}

static int remove_root(void **state) {
    char command[96];
    (void)state;
    snprintf(command, sizeof(command), "rm -r %s", root);
    return system(command);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_cgroup_limit_is_the_least_on_the_way_up, make_root, remove_root),
        cmocka_unit_test_setup_teardown(test_cgroup_limit_of_a_container_stands_at_the_root, make_root, remove_root),
        cmocka_unit_test_setup_teardown(test_cgroup_limit_of_version_1, make_root, remove_root),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
