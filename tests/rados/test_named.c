/* Named records, and those who watch them. */
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>

#include <cmocka.h>

#include "engine/named.h"
#include "engine/rados/named.h"
#include "world.h"

static int put_if(struct world *w, struct rados *s, const char *key, const char *value, const char *expected) {
    struct slice seen = slice_str(expected ? expected : "");
    struct eng_meta_change c = {
        .key = slice_str(key), .value = slice_str(value), .conditional = true, .expected = expected ? &seen : NULL};
    return named_write(s, 1, &c, &w->e);
}

static int print(void *arg, struct slice key, struct slice value, struct err *e) {
    (void)e;
    buf_printf(arg, "%.*s=%.*s ", SLICE_FMT(key), SLICE_FMT(value));
    return 0;
}
static void assert_named(struct world *w, const char *prefix, const char *expected) {
    struct buf b;
    buf_init(&b, 0);
    assert_int_equal(named_scan(w->other, slice_str(prefix), print, &b, &w->e), 0);
    assert_true(slice_is(buf_slice(&b), expected));
    buf_fini(&b);
}

static void test_named_records_change_on_conditions(void **state) {
    struct world *w = *state;
    struct eng_meta_change two[] = {{.key = slice_str("test/a2"), .deleted = true},
                                 {.key = slice_str("test/a3"), .value = slice_str("z"), .conditional = true}};
    assert_int_equal(put_if(w, w->s, "test/a1", "", NULL), 0);
    assert_int_equal(put_if(w, w->other, "test/a1", "y", NULL), ENG_CHANGED); /* an empty value is there */
    assert_int_equal(put_if(w, w->other, "test/a1", "y", "x"), ENG_CHANGED);
    assert_int_equal(put_if(w, w->other, "test/a1", "y", ""), 0);
    assert_int_equal(put_if(w, w->s, "test/a2", "2", NULL), 0);
    assert_int_equal(put_if(w, w->s, "test/b", "3", NULL), 0);
    assert_named(w, "test/a", "test/a1=y test/a2=2 ");
    assert_named(w, "test/a1", "test/a1=y ");
    assert_named(w, "test/", "test/a1=y test/a2=2 test/b=3 ");
    assert_int_equal(named_write(w->s, 2, two, &w->e), 0);
    assert_named(w, "test/a", "test/a1=y test/a3=z ");
    assert_int_equal(named_write(w->s, 2, two, &w->e), ENG_CHANGED);
    for (int i = 0; i < 4; i++) {
        struct eng_meta_change gone = {.key = slice_str((const char *[]){"test/a1", "test/a2", "test/a3", "test/b"}[i]),
                                    .deleted = true};
        assert_int_equal(named_write(w->s, 1, &gone, &w->e), 0);
    }
    assert_named(w, "test/", "");
}

struct bell {
    pthread_mutex_t lock;
    pthread_cond_t rings;
    int rung;
};
static void ring(void *arg) {
    struct bell *b = arg;
    pthread_mutex_lock(&b->lock);
    b->rung++;
    pthread_cond_signal(&b->rings);
    pthread_mutex_unlock(&b->lock);
}

static void test_a_watcher_is_notified_of_changes(void **state) {
    struct world *w = *state;
    struct bell b = {.lock = PTHREAD_MUTEX_INITIALIZER, .rings = PTHREAD_COND_INITIALIZER};
    struct named_watch *watch = named_watch_start(w->other, ring, &b, &w->e);
    assert_non_null(watch);
    for (int i = 0; i < 5; i++) {
        struct eng_meta_change c = {.key = slice_str("watched"), .deleted = true};
        pthread_mutex_lock(&b.lock);
        b.rung = 0;
        pthread_mutex_unlock(&b.lock);
        assert_int_equal(named_write(w->s, 1, &c, &w->e), 0);
        pthread_mutex_lock(&b.lock);
        while (!b.rung) pthread_cond_wait(&b.rings, &b.lock); /* a hang is the failure */
        pthread_mutex_unlock(&b.lock);
    }
    named_watch_stop(watch);
}

/* The answers to a notification come while the store closes, or later. */
static void test_a_store_can_be_closed_right_after_a_notification(void **state) {
    struct world *w = *state;
    struct bell b = {.lock = PTHREAD_MUTEX_INITIALIZER, .rings = PTHREAD_COND_INITIALIZER};
    struct named_watch *watch = named_watch_start(w->other, ring, &b, &w->e);
    assert_non_null(watch);
    for (int i = 0; i < 50; i++) {
        struct rados *s = harness_open(0, 10);
        struct eng_meta_change c = {.key = slice_str("closing"), .deleted = true};
        assert_int_equal(named_write(s, 1, &c, &w->e), 0);
        rados_close(s);
    }
    named_watch_stop(watch);
}

int main(void) {
#define TEST(name, setup) cmocka_unit_test_setup_teardown(name, setup, world_teardown)
    const struct CMUnitTest tests[] = {
        TEST(test_named_records_change_on_conditions, world_setup),
        TEST(test_a_watcher_is_notified_of_changes, world_setup),
        TEST(test_a_store_can_be_closed_right_after_a_notification, world_setup),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
