/* The end of a connection, with a library in place of librados. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include <cmocka.h>

#include "engine/rados/pool.h"

/* The one notification, and what was done to the connection. */
static struct {
    void (*done)(void *completion, void *arg);
    void *arg;
    int notify_result;
    bool destroyed, shut_down;
} seen;

static int aio_create_completion2(void *arg, void (*done)(void *completion, void *arg), void **completion) {
    seen.done = done;
    seen.arg = arg;
    *completion = &seen;
    return 0;
}
static int aio_notify(void *io, const char *object, void *completion, const char *data, int n, uint64_t timeout_ms,
                      char **reply, size_t *reply_n) {
    (void)io, (void)object, (void)completion, (void)data, (void)n, (void)timeout_ms, (void)reply, (void)reply_n;
    return seen.notify_result;
}
static void aio_release(void *completion) { assert_ptr_equal(completion, &seen); }
static void ioctx_destroy(void *io) {
    (void)io;
    assert_false(seen.shut_down);
    seen.destroyed = true;
}
static void shut_down(void *cluster) {
    (void)cluster;
    seen.shut_down = true;
}

static const struct librados library = {.aio_create_completion2 = aio_create_completion2,
                                        .aio_notify = aio_notify,
                                        .aio_release = aio_release,
                                        .ioctx_destroy = ioctx_destroy,
                                        .shutdown = shut_down};

static struct pool pool_that_notifies(int result) {
    seen.destroyed = seen.shut_down = false;
    seen.notify_result = result;
    return (struct pool){.lib = &library,
                         .timeout_s = 1,
                         .lock = PTHREAD_MUTEX_INITIALIZER,
                         .ends = PTHREAD_COND_INITIALIZER};
}

static void test_the_handle_of_a_pool_stays_while_a_notification_is_under_way(void **state) {
    (void)state;
    struct pool p = pool_that_notifies(0);
    pool_notify(&p, "object");
    pool_close(&p);
    assert_true(seen.shut_down);
    assert_false(seen.destroyed);
}

static void test_it_goes_when_none_is_under_way(void **state) {
    (void)state;
    struct pool p = pool_that_notifies(0);
    pool_notify(&p, "object");
    seen.done(&seen, seen.arg);
    pool_close(&p);
    assert_true(seen.destroyed && seen.shut_down);

    p = pool_that_notifies(-5); /* librados calls nobody */
    pool_notify(&p, "object");
    pool_close(&p);
    assert_true(seen.destroyed && seen.shut_down);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_the_handle_of_a_pool_stays_while_a_notification_is_under_way),
        cmocka_unit_test(test_it_goes_when_none_is_under_way),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
