/* What a dropped range holds on disk comes back, also when a compaction had it in hand when it was dropped. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "engine/local/rocksdb/kv_trim.h"
#include "tests/unit/folder.h"

enum { MB = 1 << 20, FILES = 8, FILE_BYTES = 6 * MB, VALUE = 4096, LEFT = 8 * MB, PATIENCE = 60 /* s */ };

static void check(char *text) {
    if (text) fail_msg("%s", text);
}

static void put_file(rocksdb_t *db, int file) {
    static uint8_t value[VALUE];
    rocksdb_writeoptions_t *w = rocksdb_writeoptions_create();
    rocksdb_flushoptions_t *f = rocksdb_flushoptions_create();
    char *text = NULL;
    for (int i = 0; i < FILE_BYTES / VALUE; i++) {
        char key[KV_TRIM_KEY + 1];
        snprintf(key, sizeof(key), "t%07d", i * FILES + file);
        for (int k = 0; k < VALUE; k++) value[k] = (uint8_t)rand();
        rocksdb_put(db, w, key, KV_TRIM_KEY, (const char *)value, VALUE, &text);
        check(text);
    }
    rocksdb_flush(db, f, &text);
    check(text);
    rocksdb_flushoptions_destroy(f);
    rocksdb_writeoptions_destroy(w);
}

static uint64_t number(rocksdb_t *db, const char *property) {
    uint64_t n = 0;
    assert_int_equal(rocksdb_property_int(db, property, &n), 0);
    return n;
}

static void drop(rocksdb_t *db) {
    rocksdb_writeoptions_t *w = rocksdb_writeoptions_create();
    rocksdb_writebatch_t *b = rocksdb_writebatch_create();
    char *text = NULL;
    rocksdb_writebatch_delete_range(b, "t", 1, "u", 1);
    rocksdb_write(db, w, b, &text);
    check(text);
    rocksdb_writebatch_destroy(b);
    rocksdb_writeoptions_destroy(w);
}

static void *compact_all(void *db) {
    rocksdb_compactoptions_t *o = rocksdb_compactoptions_create();
    rocksdb_compactoptions_set_exclusive_manual_compaction(o, 0);
    rocksdb_compact_range_opt(db, o, NULL, 0, NULL, 0);
    rocksdb_compactoptions_destroy(o);
    return NULL;
}

static void test_a_range_that_a_compaction_has_in_hand_is_given_back(void **state) {
    (void)state;
    char path[FOLDER_PATH], *text = NULL;
    folder_make(path);
    rocksdb_options_t *o = rocksdb_options_create();
    rocksdb_options_set_create_if_missing(o, 1);
    rocksdb_options_set_write_buffer_size(o, 2 * FILE_BYTES);
    rocksdb_options_set_disable_auto_compactions(o, 1);
    rocksdb_options_set_level_compaction_dynamic_level_bytes(o, 1);
    /* so that what the compaction makes is not on the first level in use */
    rocksdb_options_set_max_bytes_for_level_base(o, MB);
    rocksdb_options_set_max_background_jobs(o, 4);
    rocksdb_t *db = rocksdb_open(o, path, &text);
    check(text);
    for (int i = 0; i < FILES; i++) put_file(db, i);
    struct kv_trim trim = {0};
    kv_trim_init(&trim, db);
    pthread_t other;
    assert_int_equal(pthread_create(&other, NULL, compact_all, db), 0);
    for (int i = 0; i < PATIENCE * 1000 && !number(db, "rocksdb.num-running-compactions"); i++) usleep(1000);
    assert_true(number(db, "rocksdb.num-running-compactions"));
    drop(db);
    kv_trim_add(&trim, slice_str("t"), slice_str("u"));
    pthread_join(other, NULL);
    for (int i = 0; i < PATIENCE * 100 && number(db, "rocksdb.live-sst-files-size") > LEFT; i++) usleep(10000);
    assert_in_range(number(db, "rocksdb.live-sst-files-size"), 0, LEFT);
    kv_trim_fini(&trim);
    rocksdb_close(db);
    rocksdb_options_destroy(o);
    folder_remove(path);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_a_range_that_a_compaction_has_in_hand_is_given_back),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
