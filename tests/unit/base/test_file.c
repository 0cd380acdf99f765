/* Files that are opened only when that cannot hang: what the files here are is made in a folder of
 * the test's own. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/file.h"

static char folder[] = "/tmp/tally-file-XXXXXX", regular[64], fifo[64], link_to_it[64], none[64];

static int set_up(void **state) {
    (void)state;
    if (!mkdtemp(folder)) return -1;
    snprintf(regular, sizeof(regular), "%s/regular", folder);
    snprintf(fifo, sizeof(fifo), "%s/fifo", folder);
    snprintf(link_to_it, sizeof(link_to_it), "%s/link", folder);
    snprintf(none, sizeof(none), "%s/none", folder);
    FILE *f = fopen(regular, "w");
    if (!f || fputs("0123456789", f) < 0 || fclose(f)) return -1;
    return mkfifo(fifo, 0600) || symlink(regular, link_to_it);
}

static int tear_down(void **state) {
    (void)state;
    return unlink(regular) || unlink(fifo) || unlink(link_to_it) || rmdir(folder);
}

static void test_only_regular_files_are_read(void **state) {
    const char *why = NULL;
    (void)state;
    int fd = file_open_read(link_to_it, &why);
    assert_true(fd >= 0);
    close(fd);
    const char *const others[] = {fifo, folder, "/dev/zero"};
    for (size_t i = 0; i < ARRAY_LEN(others); i++) {
        assert_int_equal(file_open_read(others[i], &why), -1);
        assert_string_equal(why, "it is not a regular file");
        assert_int_equal(errno, 0);
    }
    assert_int_equal(file_open_read(none, &why), -1);
    assert_int_equal(errno, ENOENT);
}

static void test_file_is_sparse_if_more_than_a_gigabyte_was_never_written(void **state) {
    struct stat st;
    (void)state;
    static const struct {
        off_t bytes;
        bool sparse;
    } cases[] = {{1 << 30, false}, {(off_t)1 << 38, true}, {10, false}};
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        assert_int_equal(truncate(regular, cases[i].bytes) || stat(regular, &st), 0);
        assert_int_equal(file_is_sparse(&st), cases[i].sparse);
    }
}

static void test_appending_does_not_wait_for_a_reader(void **state) {
    const char *why = NULL;
    (void)state;
    assert_int_equal(file_open_append(fifo, &why), -1);
    assert_string_equal(why, "no process reads from it");
    int reader = open(fifo, O_RDONLY | O_NONBLOCK), fd = file_open_append(fifo, &why);
    assert_true(reader >= 0 && fd >= 0);
    assert_false(fcntl(fd, F_GETFL) & O_NONBLOCK);
    close(fd);
    close(reader);
}

static void test_a_file_is_read_up_to_a_bound(void **state) {
    struct err e = {0};
    struct buf out;
    (void)state;
    buf_init(&out, 0);
    buf_u8(&out, '-');
    assert_int_equal(file_append_to(regular, 10, &out, &e), 0);
    assert_true(slice_is(buf_slice(&out), "-0123456789"));
    assert_int_equal(file_append_to(regular, 9, &out, &e), -1);
    assert_non_null(strstr(e.text, "has more than 9 bytes"));
    err_clear(&e);
    assert_int_equal(file_append_to(fifo, 9, &out, &e), -1);
    assert_non_null(strstr(e.text, "not a regular file"));
    buf_fini(&out);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_only_regular_files_are_read),
        cmocka_unit_test(test_file_is_sparse_if_more_than_a_gigabyte_was_never_written),
        cmocka_unit_test(test_appending_does_not_wait_for_a_reader),
        cmocka_unit_test(test_a_file_is_read_up_to_a_bound),
    };
    return cmocka_run_group_tests(tests, set_up, tear_down);
}
