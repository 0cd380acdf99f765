/* What the thread that syncs does when nothing is left to sync does not wait for compactions. */
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/clock.h"
#include "engine/local/rocksdb/kv.h"
#include "tests/unit/folder.h"

enum { MEMTABLE = 64 << 10, FILES = 19 /* one more and RocksDB slows down writers */, PATIENCE = 60 /* s */ };

struct world {
    char dir[FOLDER_PATH];
    struct kv *kv;
    pthread_mutex_t lock;
    pthread_cond_t changed;
    bool held, reached; /* under lock: compactions are held up; one is */
    bool settled;       /* under lock */
    struct err e;
};

static size_t no_prefix(struct slice key) {
    (void)key;
    return 0;
}

static struct world *merging; /* whose compactions merge */

static int hold_up(struct slice a, struct slice b, struct buf *out) {
    struct world *w = merging;
    (void)a;
    pthread_mutex_lock(&w->lock);
    w->reached = true;
    pthread_cond_broadcast(&w->changed);
    while (w->held) pthread_cond_wait(&w->changed, &w->lock);
    pthread_mutex_unlock(&w->lock);
    buf_put_slice(out, b);
    return 0;
}

static void write_some(struct world *w, uint32_t from, uint32_t n) {
    static const uint8_t value[1024];
    struct kv_batch *b = kv_batch_new(w->kv);
    for (uint32_t i = from; i < from + n; i++) {
        uint8_t key[4];
        store_u32(key, i);
        kv_batch_put(b, slice_of(key, 4), slice_of(value, sizeof(value)));
    }
    assert_int_equal(kv_write(w->kv, b, true, &w->e), 0);
    kv_batch_free(b);
}

static void write_file(struct world *w, uint32_t from) {
    write_some(w, from, 1);
    assert_int_equal(kv_heal(w->kv, &w->e), 0);
}

/* An operand that a compaction merges into the value of the first file. */
static void write_operand(struct world *w) {
    uint8_t key[4];
    struct kv_batch *b = kv_batch_new(w->kv);
    store_u32(key, 0);
    kv_batch_merge(b, slice_of(key, 4), slice_str("v"));
    assert_int_equal(kv_write(w->kv, b, true, &w->e), 0);
    kv_batch_free(b);
    assert_int_equal(kv_heal(w->kv, &w->e), 0);
}

static void *settle(void *arg) {
    struct world *w = arg;
    for (int i = 0; i < 2; i++) kv_settle(w->kv); /* the first one has the stamp to renew */
    pthread_mutex_lock(&w->lock);
    w->settled = true;
    pthread_cond_broadcast(&w->changed);
    pthread_mutex_unlock(&w->lock);
    return NULL;
}

/* With the lock. False: it did not come. */
static bool await(struct world *w, const bool *what) {
    int64_t until_us = clock_machine_us(&clock_real) + PATIENCE * INT64_C(1000000);
    while (!*what)
        if (!clock_cond_wait_until(&w->changed, &w->lock, until_us)) return *what;
    return true;
}

static void test_a_store_that_compacts_is_not_waited_for(void **state) {
    (void)state;
    struct world w = {.held = true};
    pthread_t settling;
    pthread_mutex_init(&w.lock, NULL);
    pthread_cond_init(&w.changed, NULL);
    folder_make(w.dir);
    w.kv = kv_open(&(struct kv_options){.data_dir = w.dir,
                                                .memtable_bytes = MEMTABLE,
                                                .merge = hold_up,
                                                .prefix_len = no_prefix},
                           &w.e);
    if (!w.kv) fail_msg("%s", w.e.text);
    merging = &w;
    write_file(&w, 0);
    /* two files, which RocksDB compacts by itself; kv_compact would flush first, and so could make one file too many */
    write_operand(&w);
    pthread_mutex_lock(&w.lock);
    assert_true(await(&w, &w.reached));
    pthread_mutex_unlock(&w.lock);
    for (uint32_t i = 2; i < FILES; i++) write_file(&w, 100 * i);
    write_some(&w, 10000, MEMTABLE / 1024 / 4);
    assert_int_equal(kv_sync(w.kv, true, &w.e), 0);
    pthread_create(&settling, NULL, settle, &w);
    pthread_mutex_lock(&w.lock);
    bool settled = await(&w, &w.settled);
    w.held = false;
    pthread_cond_broadcast(&w.changed);
    pthread_mutex_unlock(&w.lock);
    pthread_join(settling, NULL);
    kv_close(w.kv);
    folder_remove(w.dir);
    assert_true(settled);
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_a_store_that_compacts_is_not_waited_for)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
