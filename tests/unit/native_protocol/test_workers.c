/* Workers with works of the test's own, on a clock that stands still until it is moved: nothing
 * here sleeps. A work is closed (its part does not end) until the test opens it. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <pthread.h>
#include <stdlib.h>

#include "native_protocol/workers.h"

enum { ENDED_NOT = -1, MAX_WORKS = 64 };

struct world {
    struct clock clock; /* first */
    _Atomic int64_t now_us;
    struct eng *eng;
    struct np_workers *workers;
    struct np_work_client clients[2];
    pthread_mutex_t lock;
    pthread_cond_t changed;
    char log[256]; /* names of works, as their parts begin */
    struct test_work {
        struct np_work work; /* first */
        struct world *world;
        char name;
        int parts;     /* it wants */
        int begun;     /* it has had, or has now */
        bool closed, later;
        int ended;     /* enum np_work_end, or ENDED_NOT */
        int n_ended;
    } works[MAX_WORKS];
    unsigned n;
};

static int64_t world_now(struct clock *c) { return ((struct world *)c)->now_us; }

static struct test_work *work_of(struct np_work *w) { return (struct test_work *)w; }

static enum np_work_part run(struct np_work *w, struct eng_batch *batch) {
    struct test_work *t = work_of(w);
    struct world *world = t->world;
    assert_non_null(batch);
    pthread_mutex_lock(&world->lock);
    char name[2] = {t->name, 0};
    strncat(world->log, name, sizeof(world->log) - strlen(world->log) - 1);
    t->begun++;
    pthread_cond_broadcast(&world->changed);
    while (t->closed) pthread_cond_wait(&world->changed, &world->lock);
    enum np_work_part part = t->begun >= t->parts ? NP_PART_LAST : t->later ? NP_PART_LATER : NP_PART_MORE;
    pthread_mutex_unlock(&world->lock);
    return part;
}

static void ended(struct np_work *w, enum np_work_end why) {
    struct test_work *t = work_of(w);
    pthread_mutex_lock(&t->world->lock);
    t->ended = (int)why;
    t->n_ended++;
    pthread_cond_broadcast(&t->world->changed);
    pthread_mutex_unlock(&t->world->lock);
}

static const struct np_work_ops ops = {.run = run, .ended = ended};

static struct world *world_with(unsigned queue_max, unsigned readers, unsigned quick_us) {
    struct world *w = calloc(1, sizeof(*w));
    struct err e = {0};
    assert_non_null(w);
    w->clock = (struct clock){world_now, world_now};
    w->now_us = 1000000; /* the monitor has not looked for long */
    pthread_mutex_init(&w->lock, NULL);
    pthread_cond_init(&w->changed, NULL);
    for (int i = 0; i < 2; i++) np_work_client_init(&w->clients[i]);
    w->eng = eng_open(&(struct eng_options){.clock = &w->clock, .durability = ENG_NONE}, &e);
    assert_non_null(w->eng);
    struct np_workers_options o = {.ops = &ops,
                                   .eng = w->eng,
                                   .clock = &w->clock,
                                   .threads = {1, 1, 1, 1},
                                   .queue_max = queue_max,
                                   .quick_us = quick_us};
    o.threads[WORK_READ] = readers;
    w->workers = np_workers_new(&o, &e);
    assert_non_null(w->workers);
    return w;
}

static struct world *world_new(unsigned queue_max) { return world_with(queue_max, 1, 0); }

static void world_free(struct world *w) {
    np_workers_stop(w->workers);
    for (unsigned i = 0; i < w->n; i++) assert_int_equal(w->works[i].n_ended, 1);
    np_workers_free(w->workers);
    eng_close(w->eng);
    pthread_cond_destroy(&w->changed);
    pthread_mutex_destroy(&w->lock);
    free(w);
}

static struct test_work *make(struct world *w, int client, enum cql_work_class class, char name) {
    assert_true(w->n < MAX_WORKS);
    struct test_work *t = &w->works[w->n++];
    *t = (struct test_work){.work = {.client = &w->clients[client], .class = class, .bytes = 1},
                            .world = w,
                            .name = name,
                            .parts = 1,
                            .ended = ENDED_NOT};
    return t;
}

static void submit(struct test_work *t) {
    struct np_works one = TAILQ_HEAD_INITIALIZER(one);
    TAILQ_INSERT_TAIL(&one, &t->work, entry);
    np_workers_submit(t->world->workers, &one);
}

static void submit_together(struct test_work **works, int n) {
    struct np_works list = TAILQ_HEAD_INITIALIZER(list);
    for (int i = 0; i < n; i++) TAILQ_INSERT_TAIL(&list, &works[i]->work, entry);
    np_workers_submit(works[0]->world->workers, &list);
    assert_true(TAILQ_EMPTY(&list));
}

static void assert_begins(struct test_work *t) {
    pthread_mutex_lock(&t->world->lock);
    while (!t->begun) pthread_cond_wait(&t->world->changed, &t->world->lock);
    pthread_mutex_unlock(&t->world->lock);
}

static struct test_work *submit_new(struct world *w, int client, enum cql_work_class class, char name) {
    struct test_work *t = make(w, client, class, name);
    submit(t);
    return t;
}

/* Its thread is busy with it from now on. */
static struct test_work *occupy(struct world *w, enum cql_work_class class, char name) {
    struct test_work *t = make(w, 0, class, name);
    t->closed = true;
    submit(t);
    assert_begins(t);
    return t;
}

static void open_work(struct test_work *t) {
    pthread_mutex_lock(&t->world->lock);
    t->closed = false;
    pthread_cond_broadcast(&t->world->changed);
    pthread_mutex_unlock(&t->world->lock);
}

static void assert_ends(struct test_work *t, enum np_work_end why) {
    pthread_mutex_lock(&t->world->lock);
    while (t->ended == ENDED_NOT) pthread_cond_wait(&t->world->changed, &t->world->lock);
    int how = t->ended;
    pthread_mutex_unlock(&t->world->lock);
    assert_int_equal(how, (int)why);
}

static void assert_waits(struct test_work *t) {
    pthread_mutex_lock(&t->world->lock);
    assert_int_equal(t->ended, ENDED_NOT);
    pthread_mutex_unlock(&t->world->lock);
}

static void test_scans_hold_up_no_other_class(void **state) {
    (void)state;
    struct world *w = world_new(0);
    struct test_work *scan = occupy(w, WORK_SCAN, 's');
    struct test_work *waiting = submit_new(w, 0, WORK_SCAN, 't');
    assert_ends(submit_new(w, 1, WORK_READ, 'r'), NP_WORK_DONE);
    assert_ends(submit_new(w, 1, WORK_UPDATE, 'u'), NP_WORK_DONE);
    assert_ends(submit_new(w, 1, WORK_DDL, 'd'), NP_WORK_DONE);
    assert_waits(waiting);
    open_work(scan);
    assert_ends(waiting, NP_WORK_DONE);
    world_free(w);
}

static void test_scan_gives_way_after_each_part(void **state) {
    (void)state;
    struct world *w = world_new(0);
    struct test_work *first = occupy(w, WORK_SCAN, '-');
    struct test_work *a = make(w, 0, WORK_SCAN, 'a'), *b = make(w, 1, WORK_SCAN, 'b');
    a->parts = 4;
    b->parts = 2;
    submit(a);
    submit(b);
    open_work(first);
    assert_ends(a, NP_WORK_DONE);
    assert_ends(b, NP_WORK_DONE);
    assert_string_equal(w->log, "-ababaa");
    world_free(w);
}

static void test_short_read_that_is_long_goes_on_as_a_scan(void **state) {
    (void)state;
    struct world *w = world_new(0);
    struct test_work *scan = occupy(w, WORK_SCAN, 's');
    struct test_work *read = make(w, 1, WORK_READ, 'r');
    read->parts = 2;
    submit(read);
    assert_ends(submit_new(w, 1, WORK_READ, 'q'), NP_WORK_DONE); /* its thread is free again */
    assert_waits(read);
    open_work(scan);
    assert_ends(read, NP_WORK_DONE);
    assert_string_equal(w->log, "srqr");
    world_free(w);
}

static void test_deadline_ends_what_waits_while_all_threads_are_busy(void **state) {
    (void)state;
    struct world *w = world_new(0);
    struct test_work *busy = occupy(w, WORK_UPDATE, 'x');
    struct test_work *late = make(w, 1, WORK_UPDATE, 'u'), *patient = submit_new(w, 1, WORK_UPDATE, 'v');
    late->work.deadline_us = 1005000;
    submit(late);
    w->now_us = 1004999;
    assert_int_equal(np_workers_check(w->workers), 1005000);
    assert_waits(late);
    w->now_us = 1005000;
    assert_int_equal(np_workers_check(w->workers), INT64_MAX);
    assert_ends(late, NP_WORK_STALE);
    assert_waits(patient);
    open_work(busy);
    assert_ends(patient, NP_WORK_DONE);
    assert_string_equal(w->log, "xv"); /* the late one never ran */
    world_free(w);
}

static void test_deadline_ends_a_scan_between_its_parts(void **state) {
    (void)state;
    struct world *w = world_new(0);
    struct test_work *scan = make(w, 0, WORK_SCAN, 's');
    scan->parts = 2;
    scan->closed = true;
    scan->work.deadline_us = 1005000;
    submit(scan);
    pthread_mutex_lock(&w->lock);
    while (!scan->begun) pthread_cond_wait(&w->changed, &w->lock);
    pthread_mutex_unlock(&w->lock);
    w->now_us = 1005000;
    open_work(scan);
    assert_ends(scan, NP_WORK_STALE);
    assert_string_equal(w->log, "s");
    world_free(w);
}

static void test_work_of_a_client_that_went_is_not_run(void **state) {
    (void)state;
    struct world *w = world_new(0);
    _Atomic bool gone = false;
    struct test_work *busy = occupy(w, WORK_READ, 'x');
    struct test_work *r = make(w, 1, WORK_READ, 'r');
    r->work.cancelled = &gone;
    submit(r);
    gone = true;
    np_workers_wake_monitor(w->workers); /* the monitor's thread does the rest */
    assert_ends(r, NP_WORK_STALE);
    open_work(busy);
    assert_ends(busy, NP_WORK_DONE);
    assert_string_equal(w->log, "x");
    world_free(w);
}

static void test_client_with_the_most_pays_for_a_full_queue(void **state) {
    (void)state;
    struct world *w = world_new(3);
    struct test_work *busy = occupy(w, WORK_SCAN, 'x'), *greedy[3];
    for (int i = 0; i < 3; i++) greedy[i] = submit_new(w, 0, WORK_SCAN, 'a');
    struct test_work *innocent = submit_new(w, 1, WORK_SCAN, 'b');
    assert_ends(greedy[2], NP_WORK_NO_ROOM);
    open_work(busy);
    assert_ends(innocent, NP_WORK_DONE);
    assert_ends(greedy[1], NP_WORK_DONE);
    world_free(w);
}

static void test_work_that_waits_for_its_moment_holds_no_thread(void **state) {
    (void)state;
    struct world *w = world_new(0);
    struct test_work *held = make(w, 0, WORK_DDL, 'h');
    held->parts = 2;
    held->later = true;
    held->work.not_before_us = 1009000;
    submit(held);
    assert_ends(submit_new(w, 1, WORK_DDL, 'd'), NP_WORK_DONE);
    assert_waits(held);
    w->now_us = 1009000;
    np_workers_check(w->workers);
    assert_ends(held, NP_WORK_DONE);
    assert_string_equal(w->log, "hdh");
    world_free(w);
}

static void test_stop_ends_what_waits_and_lets_what_runs_finish(void **state) {
    (void)state;
    struct world *w = world_new(0);
    struct test_work *held = make(w, 0, WORK_DDL, 'h'), *more = make(w, 0, WORK_DDL, 'i');
    held->parts = more->parts = 2;
    held->later = more->later = true;
    held->work.not_before_us = more->work.not_before_us = INT64_MAX;
    submit(held);
    assert_ends(submit_new(w, 1, WORK_DDL, 'd'), NP_WORK_DONE); /* held is delayed by now */
    struct test_work *busy = occupy(w, WORK_SCAN, 'x'), *queued = submit_new(w, 0, WORK_SCAN, 'y');
    busy->parts = 2;
    np_workers_stop_waiting(w->workers);
    assert_ends(held, NP_WORK_STOPPING);
    submit(more); /* what would be delayed now ends as well */
    assert_ends(more, NP_WORK_STOPPING);
    assert_waits(queued);
    open_work(busy);
    np_workers_stop(w->workers);
    assert_true(busy->ended == NP_WORK_DONE || busy->ended == NP_WORK_STOPPING);
    assert_true(queued->ended == NP_WORK_DONE || queued->ended == NP_WORK_STOPPING);
    struct test_work *after = submit_new(w, 1, WORK_READ, 'z');
    assert_ends(after, NP_WORK_STOPPING);
    world_free(w);
}

/* ---- many at a time ---- */

static void test_a_thread_that_leaves_some_wakes_another(void **state) {
    (void)state;
    enum { READERS = 3 };
    struct world *w = world_with(0, READERS, 0);
    struct test_work *works[READERS + 2];
    for (int i = 0; i < READERS + 2; i++) {
        works[i] = make(w, i % 2, WORK_READ, (char)('a' + i));
        works[i]->closed = i < READERS - 1;
    }
    submit_together(works, READERS + 2);
    /* all but one of the threads are busy */
    for (int i = READERS - 1; i < READERS + 2; i++) assert_ends(works[i], NP_WORK_DONE);
    for (int i = 0; i < READERS - 1; i++) {
        open_work(works[i]);
        assert_ends(works[i], NP_WORK_DONE);
    }
    world_free(w);
}

static void test_who_has_no_room_among_many_is_told(void **state) {
    (void)state;
    struct world *w = world_new(2);
    struct test_work *busy = occupy(w, WORK_READ, 'a'), *works[3];
    for (int i = 0; i < 3; i++) works[i] = make(w, 1, WORK_READ, (char)('b' + i));
    submit_together(works, 3);
    assert_ends(works[2], NP_WORK_NO_ROOM);
    open_work(busy);
    for (int i = 0; i < 2; i++) assert_ends(works[i], NP_WORK_DONE);
    world_free(w);
}

static void test_quick_reads_are_given_back_together_and_none_waits_behind_a_slow_one(void **state) {
    (void)state;
    enum { QUICK_US = 100 };
    struct world *w = world_with(0, 1, QUICK_US);
    struct test_work *busy = occupy(w, WORK_READ, 'a'), *works[4];
    for (int i = 0; i < 4; i++) {
        works[i] = make(w, 0, WORK_READ, (char)('b' + i));
        works[i]->closed = i == 1 || i == 2;
    }
    submit_together(works, 4);
    open_work(busy);
    assert_begins(works[1]);
    assert_waits(busy); /* they took no time */
    assert_waits(works[0]);
    w->now_us += QUICK_US;
    open_work(works[1]);
    for (int i = 0; i < 2; i++) assert_ends(works[i], NP_WORK_DONE); /* though the next one is not done */
    assert_ends(busy, NP_WORK_DONE);
    assert_begins(works[2]);
    assert_waits(works[2]);
    open_work(works[2]);
    for (int i = 2; i < 4; i++) assert_ends(works[i], NP_WORK_DONE); /* nothing is left to do */
    world_free(w);
}

static void test_only_short_reads_wait_for_each_other(void **state) {
    (void)state;
    struct world *w = world_with(0, 1, 100);
    struct test_work *first = make(w, 0, WORK_UPDATE, 'a'), *second = make(w, 0, WORK_UPDATE, 'b');
    second->closed = true;
    submit_together((struct test_work *[]){first, second}, 2);
    assert_ends(first, NP_WORK_DONE);
    open_work(second);
    assert_ends(second, NP_WORK_DONE);
    world_free(w);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_scans_hold_up_no_other_class),
        cmocka_unit_test(test_scan_gives_way_after_each_part),
        cmocka_unit_test(test_short_read_that_is_long_goes_on_as_a_scan),
        cmocka_unit_test(test_deadline_ends_what_waits_while_all_threads_are_busy),
        cmocka_unit_test(test_deadline_ends_a_scan_between_its_parts),
        cmocka_unit_test(test_work_of_a_client_that_went_is_not_run),
        cmocka_unit_test(test_client_with_the_most_pays_for_a_full_queue),
        cmocka_unit_test(test_work_that_waits_for_its_moment_holds_no_thread),
        cmocka_unit_test(test_stop_ends_what_waits_and_lets_what_runs_finish),
        cmocka_unit_test(test_a_thread_that_leaves_some_wakes_another),
        cmocka_unit_test(test_who_has_no_room_among_many_is_told),
        cmocka_unit_test(test_quick_reads_are_given_back_together_and_none_waits_behind_a_slow_one),
        cmocka_unit_test(test_only_short_reads_wait_for_each_other),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
