/* Two engines on a pool in memory, whose operations the test notes: the logs of batches. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

#include <cmocka.h>

#include "base/clock.h"
#include "engine/front/eng.h"
#include "engine/rados/batchlog.h"
#include "engine/rados/rados.h"
#include "engine/verify.h"
#include "tests/unit/engine/world.h"
#include "twin.h"

enum { TABLE = 16, NOW = 1000, DAY_S = 24 * 3600 };

/* Any thread of an engine may ask for an answer. */
struct servers {
    struct eng *engs[2];
    _Atomic bool loses;   /* operations on rows time out */
    _Atomic bool watches; /* operations on the object of that name are counted, and have the result */
    char watched[BATCHLOG_NAME];
    int result;
    _Atomic int n_watched;
    struct err e;
};

static int answer(void *arg, const char *object) {
    struct servers *w = arg;
    if (w->watches && strcmp(object, w->watched) == 0) {
        w->n_watched++;
        return w->result;
    }
    return w->loses && strncmp(object, "rows.", 5) == 0 ? -ETIMEDOUT : 0;
}

/* The machine's clocks, as the test has moved them. */
static struct clock machine;
static _Atomic int64_t wall_ahead_us, mono_ahead_us;

static int64_t moved_wall_us(struct clock *c) { return (void)c, machine.wall_us(&machine) + wall_ahead_us; }
static int64_t moved_machine_us(struct clock *c) { return (void)c, clock_machine_us(&machine) + mono_ahead_us; }

static struct rados *store(struct servers *w, int i) { return rados_of(store_of(w->engs[i])); }

static int setup(void **state) {
    struct servers *w = calloc(1, sizeof(*w));
    wall_ahead_us = 0;
    twin_clear();
    twin_answer(answer, w);
    for (uint32_t i = 0; i < 2; i++) {
        const struct eng_rados place = {.conf = "ceph.conf", .pool = "tally", .incarnation = 0xa0 + i};
        const struct eng_options o = {.rados = &place, .durability = ENG_FSYNC, .clock = &clock_real};
        w->engs[i] = eng_open(&o, &w->e);
        assert_non_null(w->engs[i]);
        atomic_store(&store(w, (int)i)->replay_due_us, INT64_MAX); /* the test alone replays */
    }
    *state = w;
    return 0;
}

static int teardown(void **state) {
    struct servers *w = *state;
    for (int i = 0; i < 2; i++) eng_close(w->engs[i]);
    twin_answer(NULL, NULL);
    twin_clear();
    free(w);
    return 0;
}

/* A row in each of two partitions. */
static int write_batch(struct eng *eng, int64_t ts, struct err *e) {
    struct eng_batch *b = eng_batch_new(eng);
    struct eng_row row;
    uint64_t seq;
    int rc = 0;
    eng_batch_savepoint(b);
    for (int i = 0; rc == 0 && i < 2; i++) {
        struct eng_part part = part_of(TABLE, i ? "b" : "a");
        eng_row_init(&row, ENG_ROW, slice_str("c"));
        row.live_ts = ts;
        rc = eng_batch_row(b, &part, &row, NULL, e);
    }
    eng_batch_release(b);
    if (!rc) rc = eng_batch_commit(b, &seq, e);
    eng_batch_free(b);
    return rc;
}

/* A batch of a server whose writes of rows are lost. */
static void leave_batch(struct servers *w, int i) {
    w->loses = true;
    assert_int_equal(write_batch(w->engs[i], 1, &w->e), -1);
    err_clear(&w->e);
    w->loses = false;
}

/* Rows of the batch. */
static int count_rows(struct servers *w, int i) {
    int n = 0;
    for (int k = 0; k < 2; k++) {
        struct eng_part part = part_of(TABLE, k ? "b" : "a");
        struct eng_row row;
        struct arena a;
        arena_init(&a, 1 << 10, 0);
        n += eng_row_get(w->engs[i], ENG_TIER_ANY, &part, ENG_ROW, slice_str("c"), NOW, &a, &row, NULL, &w->e);
        arena_fini(&a);
    }
    return n;
}

static int note_log(void *arg, const struct batchlog *log) {
    (void)log;
    ++*(int *)arg;
    return 0;
}
static int count_logs(struct servers *w, uint32_t incarnation) {
    int n = 0;
    assert_int_equal(batchlog_each(store(w, 0), incarnation, note_log, &n), 0);
    return n;
}

static int note_object(void *arg, const char *name) {
    *(int *)arg += strncmp(name, "batches.", 8) == 0;
    return 0;
}
static int count_objects(struct servers *w) {
    int n = 0;
    assert_int_equal(pool_each_object(&store(w, 0)->pool, note_object, &n), 0);
    return n;
}

static bool is_empty(struct servers *w) {
    int64_t oldest_us;
    assert_int_equal(batchlog_oldest(store(w, 0), &oldest_us, &w->e), 0);
    return oldest_us == INT64_MAX;
}

static void replay(struct servers *w, uint32_t died, size_t expected) {
    size_t n;
    assert_int_equal(batchlog_replay(store(w, 0), died, BATCHLOG_AGE_S * 1000000ll, &n, &w->e), 0);
    assert_int_equal(n, expected);
}

static void test_an_applied_batch_is_removed_from_its_log(void **state) {
    struct servers *w = *state;
    for (int i = 0; i < 2; i++) assert_int_equal(write_batch(w->engs[i], i + 1, &w->e), 0);
    assert_int_equal(count_rows(w, 1), 2);
    assert_true(is_empty(w));
    assert_int_equal(count_logs(w, 0), 2);
    assert_int_equal(count_objects(w), 2);
}

/* Its own log alone is read, and removed when its batches have been applied. */
static void test_the_log_of_a_server_that_died_is_applied_and_removed(void **state) {
    struct servers *w = *state;
    leave_batch(w, 1);
    leave_batch(w, 0);
    assert_false(is_empty(w));
    snprintf(w->watched, sizeof(w->watched), "batches.%08x.%08x", 0xa0, 1);
    w->watches = true;
    replay(w, 0xa1, 1);
    assert_int_equal(count_logs(w, 0xa1), 1); /* it is read once more before it is removed */
    replay(w, 0xa1, 0);
    w->watches = false;
    assert_int_equal(w->n_watched, 0);
    assert_int_equal(count_rows(w, 0), 2);
    assert_int_equal(count_logs(w, 0xa1), 0);
    assert_int_equal(count_objects(w), 1);
    assert_false(is_empty(w)); /* the batch of the one that lives */
}

/* It notices that its log is gone, and its batches go to one that is registered. */
static void test_a_server_that_was_taken_for_dead_begins_another_log(void **state) {
    struct servers *w = *state;
    for (int i = 0; i < 3; i++) {
        replay(w, 0xa1, 0);
        assert_int_equal(count_logs(w, 0xa1), 0);
        leave_batch(w, 1);
        assert_int_equal(count_logs(w, 0xa1), 1);
        assert_false(is_empty(w));
        replay(w, 0xa1, 1);
        /* The mark is gone, the log is not yet. */
        leave_batch(w, 1);
        assert_int_equal(count_logs(w, 0xa1), 2);
        replay(w, 0xa1, 1);
        replay(w, 0xa1, 0);
        assert_true(is_empty(w));
    }
    assert_int_equal(count_objects(w), 1);
}

/* It makes one object, however often it tries, and writes no batch meanwhile. */
static void test_a_log_that_cannot_be_registered_is_tried_again(void **state) {
    struct servers *w = *state;
    replay(w, 0xa1, 0);
    snprintf(w->watched, sizeof(w->watched), "batches");
    w->result = -ENOSPC;
    w->watches = true;
    for (int i = 0; i < 3; i++) {
        assert_int_equal(write_batch(w->engs[1], 1, &w->e), -1);
        err_clear(&w->e);
    }
    w->watches = false;
    assert_int_equal(w->n_watched, 3);
    assert_int_equal(count_objects(w), 2);
    assert_int_equal(count_rows(w, 0), 0);
    assert_int_equal(write_batch(w->engs[1], 1, &w->e), 0);
    assert_int_equal(count_rows(w, 0), 2);
    assert_int_equal(count_logs(w, 0xa1), 1);
    assert_int_equal(count_objects(w), 2);
}

/* The log that nobody has registered for a day goes, that of a server which lives stays. */
static void test_a_log_that_was_forgotten_is_removed(void **state) {
    struct servers *w = *state;
    uint8_t then[8];
    store_u64(then, (uint64_t)clock_wall_us(&clock_real) - (DAY_S + 60) * 1000000ull);
    for (int i = 0; i < 2; i++) {
        char name[32];
        snprintf(name, sizeof(name), "%08x.%08x", 0xa0 + i, 1);
        twin_set("batches", slice_str(name), slice_of(then, sizeof(then)));
    }
    replay(w, 0, 0);
    assert_int_equal(count_logs(w, 0xa0), 1);
    assert_int_equal(count_logs(w, 0xa1), 0);
    assert_int_equal(count_objects(w), 1);
    assert_int_equal(write_batch(w->engs[1], 2, &w->e), 0);
    assert_int_equal(count_objects(w), 2);
}

/* ---- ages ---- */

/* A step of the wall clock, as much as an hour before or after the batch is written. */
static void test_a_step_of_the_wall_clock_changes_the_age_of_no_batch(void **state) {
    static const int64_t steps_us[][2] = {{0, 3600 * 1000000ll}, {3600 * 1000000ll, 0}};
    struct servers *w = *state;
    for (int i = 0; i < 2; i++) {
        wall_ahead_us = steps_us[i][0];
        leave_batch(w, 1);
        wall_ahead_us = steps_us[i][1];
        replay(w, 0, 0);
        mono_ahead_us += (BATCHLOG_AGE_S + 1) * 1000000ll;
        leave_batch(w, 1); /* the innocent, which its writer may still be sending */
        replay(w, 0, 1);
        assert_false(is_empty(w));
        mono_ahead_us += (BATCHLOG_AGE_S + 1) * 1000000ll;
        replay(w, 0, 1);
        assert_true(is_empty(w));
    }
}

static void test_a_batch_keeps_its_age_while_its_log_cannot_be_read(void **state) {
    struct servers *w = *state;
    size_t n;
    leave_batch(w, 1);
    replay(w, 0, 0);
    snprintf(w->watched, sizeof(w->watched), "batches.%08x.%08x", 0xa1, 1);
    w->result = -EIO;
    w->watches = true;
    assert_int_equal(batchlog_replay(store(w, 0), 0, BATCHLOG_AGE_S * 1000000ll, &n, &w->e), -1);
    err_clear(&w->e);
    w->watches = false;
    mono_ahead_us += (BATCHLOG_AGE_S + 1) * 1000000ll;
    replay(w, 0, 1);
}

/* Its batches are applied when it ends, and nothing is left. */
static void test_a_server_that_ends_removes_its_log(void **state) {
    struct servers *w = *state;
    const struct eng_rados place = {.conf = "ceph.conf", .pool = "tally", .incarnation = 0xa2};
    const struct eng_options o = {.rados = &place, .durability = ENG_FSYNC, .clock = &clock_real};
    struct eng *third = eng_open(&o, &w->e);
    assert_non_null(third);
    assert_int_equal(count_logs(w, 0), 3);
    assert_int_equal(write_batch(third, 1, &w->e), 0);
    eng_close(third);
    assert_int_equal(count_logs(w, 0), 2);
    assert_int_equal(count_objects(w), 2);
    assert_int_equal(count_rows(w, 0), 2);
}

/* ---- verification ---- */

static void note_fault(void *arg, const char *words) { strcat(arg, words); }
static int take_record(void *arg, struct slice name, struct slice value, struct err *e) {
    return (void)arg, (void)name, (void)value, (void)e, 0;
}
static void begin_store(void *arg) { (void)arg; }
static bool has(void *arg, uint32_t id) { return (void)arg, id == TABLE; }

static void test_verification_names_the_log_of_a_damaged_batch(void **state) {
    struct servers *w = *state;
    const struct eng_rados place = {.conf = "ceph.conf", .pool = "tally"};
    char words[4 * ERR_TEXT_MAX] = "";
    struct eng_verify v = {
        .arg = words, .found = note_fault, .named = take_record, .next_store = begin_store, .has = has};
    leave_batch(w, 0);
    leave_batch(w, 1);
    assert_int_equal(eng_verify_rados(&v, &place, &w->e), 0);
    assert_string_equal(words, "");
    twin_set("batches.000000a1.00000001", slice_str("damaged key."), slice_str("damaged"));
    assert_int_equal(eng_verify_rados(&v, &place, &w->e), 0);
    assert_string_equal(words, "object batches.000000a1.00000001: a batch in the Ceph pool's log is damaged");
}

int main(void) {
#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)
    const struct CMUnitTest tests[] = {
        TEST(test_an_applied_batch_is_removed_from_its_log),
        TEST(test_the_log_of_a_server_that_died_is_applied_and_removed),
        TEST(test_a_server_that_was_taken_for_dead_begins_another_log),
        TEST(test_a_log_that_cannot_be_registered_is_tried_again),
        TEST(test_a_log_that_was_forgotten_is_removed),
        TEST(test_a_step_of_the_wall_clock_changes_the_age_of_no_batch),
        TEST(test_a_batch_keeps_its_age_while_its_log_cannot_be_read),
        TEST(test_a_server_that_ends_removes_its_log),
        TEST(test_verification_names_the_log_of_a_damaged_batch),
    };
    machine = clock_real;
    clock_real.wall_us = moved_wall_us;
    clock_real.machine_us = moved_machine_us;
    return cmocka_run_group_tests(tests, NULL, NULL);
}
