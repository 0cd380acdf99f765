/* The stamp of a data folder counts the logs that RocksDB needs, however many others there are. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

#include "engine/local/rocksdb/kv_check.h"
#include "engine/local/rocksdb/kv_folder.h"
#include "engine/local/rocksdb/rocks.h"
#include "tests/unit/folder.h"

enum { LOGS = 100 };

struct world {
    char dir[FOLDER_PATH], stamp[96];
    struct kv *kv;
    struct err e;
};

static size_t no_prefix(struct slice key) { return (void)key, 0; }
static int keep_last(struct slice a, struct slice b, struct buf *out) { return (void)a, buf_put_slice(out, b), 0; }

static struct kv *open_kv(struct world *w) {
    struct kv_options o = {
        .data_dir = w->dir, .block_cache_bytes = 1 << 20, .merge = keep_last, .prefix_len = no_prefix};
    return kv_open(&o, &w->e);
}

static int setup(void **state) {
    struct world *w = *state = calloc(1, sizeof(*w));
    folder_make(w->dir);
    snprintf(w->stamp, sizeof(w->stamp), "%s/tally.stamp", w->dir);
    w->kv = open_kv(w);
    if (!w->kv) fail_msg("%s", w->e.text);
    return 0;
}

static int teardown(void **state) {
    struct world *w = *state;
    if (w->kv) kv_close(w->kv);
    folder_remove(w->dir);
    free(w);
    return 0;
}

static void write_one(struct world *w, uint32_t n) {
    uint8_t key[4];
    struct kv_batch *b = kv_batch_new(w->kv);
    store_u32(key, n);
    kv_batch_put(b, slice_of(key, 4), slice_str("v"));
    assert_int_equal(kv_write(w->kv, b, true, &w->e), 0);
    kv_batch_free(b);
    if (kv_sync(w->kv, true, &w->e)) fail_msg("%s", w->e.text);
}

static int count_log(void *arg, const char *name, struct err *e) {
    size_t n = strlen(name);
    (void)e;
    *(uint32_t *)arg += n > 4 && !strcmp(name + n - 4, ".log");
    return 0;
}

/* What a backup does: RocksDB deletes no file, while memtables are flushed and logs begin. */
static void pile_up_logs(struct world *w) {
    char *text = NULL;
    uint32_t logs = 0;
    rocksdb_disable_file_deletions(w->kv->db, &text);
    assert_null(text);
    for (uint32_t i = 0; i < LOGS; i++) {
        write_one(w, i);
        assert_int_equal(rocks_flush(w->kv, true, &w->e), 0);
    }
    write_one(w, LOGS);
    assert_int_equal(kv_each_name(w->kv->rows, count_log, &logs, &w->e), 0);
    assert_true(logs > LOGS);
}

static void test_stamp_counts_only_logs_that_are_needed(void **state) {
    struct world *w = *state;
    struct kv_stamp stamp;
    pile_up_logs(w);
    assert_int_equal(rocks_write_stamp(w->kv, &w->e), 0);
    assert_int_equal(kv_stamp_read(w->stamp, &stamp, &w->e), 1);
    assert_int_equal(stamp.n_logs, 1);
    assert_true(stamp.logs[0].bytes > 0);
    kv_stamp_fini(&stamp);
}

static void test_store_with_many_old_logs_opens_after_a_crash(void **state) {
    struct world *w = *state;
    pile_up_logs(w);
    char copy[96], command[256];
    snprintf(copy, sizeof(copy), "%s.copy", w->dir);
    snprintf(command, sizeof(command), "cp -a %s %s", w->dir, copy);
    assert_int_equal(system(command), 0);
    kv_close(w->kv);
    snprintf(command, sizeof(command), "rm -rf %s && mv %s %s", w->dir, copy, w->dir);
    assert_int_equal(system(command), 0);
    w->kv = open_kv(w);
    if (!w->kv) fail_msg("%s", w->e.text);
}

static void test_stamp_that_is_a_fifo_or_too_long_is_refused(void **state) {
    struct world *w = *state;
    struct kv_stamp stamp;
    assert_int_equal(truncate(w->stamp, (off_t)1 << 38), 0); /* sparse */
    assert_int_equal(kv_stamp_read(w->stamp, &stamp, &w->e), -1);
    kv_stamp_fini(&stamp);
    assert_non_null(strstr(w->e.text, "has more than"));
    assert_int_equal(unlink(w->stamp), 0);
    assert_int_equal(mkfifo(w->stamp, 0600), 0);
    w->e = (struct err){0};
    assert_int_equal(kv_stamp_read(w->stamp, &stamp, &w->e), -1);
    kv_stamp_fini(&stamp);
    assert_non_null(strstr(w->e.text, "not a regular file"));
}

/* RocksDB would read such a file to its end, and so would the check. */
static void test_sparse_log_or_manifest_is_refused_before_it_is_read(void **state) {
    struct world *w = *state;
    char command[320], path[96];
    static const char *const patterns[] = {"*.log", "MANIFEST-*"};
    write_one(w, 1);
    kv_close(w->kv);
    w->kv = NULL;
    for (size_t i = 0; i < ARRAY_LEN(patterns); i++) {
        uint64_t bytes;
        snprintf(command, sizeof(command), "cp -r %s %s-kept && truncate -s 256G %s/rows/%s", w->dir, w->dir, w->dir,
                 patterns[i]);
        assert_int_equal(system(command), 0);
        w->e = (struct err){0};
        assert_null(open_kv(w));
        assert_non_null(strstr(w->e.text, "is sparse"));
        snprintf(path, sizeof(path), "%s/rows", w->dir);
        w->e = (struct err){0};
        assert_int_equal(kv_check(path, NULL, KV_DAMAGE_LOOK, &bytes, &w->e), KV_CHECK_UNREAD);
        assert_non_null(strstr(w->e.text, "is sparse"));
        snprintf(command, sizeof(command), "rm -r %s && mv %s-kept %s", w->dir, w->dir, w->dir);
        assert_int_equal(system(command), 0);
    }
    w->e = (struct err){0};
    w->kv = open_kv(w);
    if (!w->kv) fail_msg("%s", w->e.text);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_stamp_counts_only_logs_that_are_needed, setup, teardown),
        cmocka_unit_test_setup_teardown(test_store_with_many_old_logs_opens_after_a_crash, setup, teardown),
        cmocka_unit_test_setup_teardown(test_stamp_that_is_a_fifo_or_too_long_is_refused, setup, teardown),
        cmocka_unit_test_setup_teardown(test_sparse_log_or_manifest_is_refused_before_it_is_read, setup, teardown),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
