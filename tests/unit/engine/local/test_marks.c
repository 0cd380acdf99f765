/* Horizons: ceilings of timestamps, recorded in the store. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>

#include <cmocka.h>

#include "engine/local/local.h"
#include "engine/rows/key.h"
#include "tests/unit/engine/local/harness.h"

enum { STEP = 10 };

static struct local *own(const struct world *w) { return local_of(&w->eng->store); }

struct step {
    struct kv_batch *batch;
    struct engi_horizon_step horizon;
};

static struct step begin(struct world *w, struct engi_horizon *h, int64_t ts) {
    struct step s = {.batch = kv_batch_new(own(w)->kv)};
    engi_horizon_record(h, s.batch, ts, &s.horizon);
    return s;
}

static void end(struct world *w, struct engi_horizon *h, struct step *s) {
    assert_int_equal(kv_write(own(w)->kv, s->batch, true, &w->e), 0);
    engi_horizon_recorded(h, &s->horizon);
    kv_batch_free(s->batch);
}

static void record(struct world *w, struct engi_horizon *h, int64_t ts) {
    struct step s = begin(w, h, ts);
    end(w, h, &s);
}

static int load(void *arg, struct slice key, struct slice value, struct err *e) {
    (void)value, (void)e;
    (void)engi_horizon_load(arg, key);
    return 0;
}

/* The horizon as a start finds it in the store. */
static struct engi_horizon found(struct world *w) {
    struct engi_horizon h;
    struct engi_keys all;
    engi_horizon_init(&h, ENGI_HORIZON_NEWEST, STEP);
    engi_keys_of(&all, 0, ENGI_TABLE_MARKS);
    assert_int_equal(kv_scan(own(w)->kv, NULL, all.from, all.to, load, &h, &w->e), 0);
    return h;
}

static void assert_found(struct world *w, size_t n, int64_t ceiling) {
    struct engi_horizon h = found(w);
    assert_int_equal(h.n_records, n);
    assert_int_equal(h.opened, ceiling);
    engi_horizon_fini(&h);
}

static void test_records_of_commits_at_the_same_time_are_deleted_by_the_next(void **state) {
    struct world *w = *state;
    struct engi_horizon h = found(w);
    record(w, &h, 100);
    struct step a = begin(w, &h, 200), b = begin(w, &h, 205), c = begin(w, &h, 203);
    end(w, &h, &a);
    end(w, &h, &b);
    end(w, &h, &c);
    assert_found(w, 3, 215);
    record(w, &h, 300);
    assert_found(w, 1, 310);
    engi_horizon_fini(&h);
}

static void test_record_that_comes_late_is_deleted_by_the_next(void **state) {
    struct world *w = *state;
    struct engi_horizon h = found(w);
    struct step late = begin(w, &h, 100), failed = begin(w, &h, 101);
    record(w, &h, 200);
    struct step later = begin(w, &h, 300);
    end(w, &h, &late);
    kv_batch_free(failed.batch);
    end(w, &h, &later); /* was filled before the late one was in the store */
    assert_found(w, 2, 310);
    record(w, &h, 400);
    assert_found(w, 1, 410);
    engi_horizon_fini(&h);
}

static void test_records_of_a_batch_that_failed_to_delete_them_are_deleted_by_the_next(void **state) {
    struct world *w = *state;
    struct engi_horizon h = found(w);
    record(w, &h, 100);
    kv_batch_free(begin(w, &h, 200).batch);
    assert_found(w, 1, 110);
    record(w, &h, 300);
    assert_found(w, 1, 310);
    engi_horizon_fini(&h);
}

/* Earlier versions left records behind. One batch deletes a bounded number of them. */
static void test_records_found_at_the_start_are_deleted(void **state) {
    enum { LEFT = 2500, BATCHES = 3 };
    struct world *w = *state;
    for (int64_t i = 0; i < LEFT; i++) {
        struct engi_horizon empty;
        engi_horizon_init(&empty, ENGI_HORIZON_NEWEST, STEP);
        record(w, &empty, i);
        engi_horizon_fini(&empty);
    }
    struct engi_horizon h = found(w);
    assert_int_equal(h.n_records, LEFT);
    for (int i = 0; i < BATCHES; i++) record(w, &h, 3000 + i * STEP);
    assert_found(w, 1, 3000 + BATCHES * STEP);
    engi_horizon_fini(&h);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_records_of_commits_at_the_same_time_are_deleted_by_the_next, setup_memory,
                                        world_teardown),
        cmocka_unit_test_setup_teardown(test_record_that_comes_late_is_deleted_by_the_next, setup_memory,
                                        world_teardown),
        cmocka_unit_test_setup_teardown(test_records_of_a_batch_that_failed_to_delete_them_are_deleted_by_the_next,
                                        setup_memory, world_teardown),
        cmocka_unit_test_setup_teardown(test_records_found_at_the_start_are_deleted, setup_memory, world_teardown),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
