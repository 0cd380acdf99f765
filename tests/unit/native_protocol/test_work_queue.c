/* Order, turns, bounds and staleness of what waits for workers. Works are named by a letter for the
 * client and a digit. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <stdio.h>
#include <stdlib.h>

#include "native_protocol/work_queue.h"

enum { CLIENTS = 4, WORKS = 64 };

struct named {
    struct np_work work; /* first */
    char name[4];
};

struct world {
    struct np_queue q;
    struct np_work_client clients[CLIENTS];
    struct named works[WORKS];
    unsigned n;
    _Atomic bool gone[CLIENTS];
};

static struct world *world_new(unsigned n_max, size_t bytes_max) {
    struct world *w = calloc(1, sizeof(*w));
    assert_non_null(w);
    np_queue_init(&w->q, n_max, bytes_max);
    for (int i = 0; i < CLIENTS; i++) np_work_client_init(&w->clients[i]);
    return w;
}

static struct np_work *make(struct world *w, const char *name, enum cql_work_class class, size_t bytes) {
    struct named *x = &w->works[w->n++];
    assert_true(w->n <= WORKS);
    int client = name[0] - 'a';
    snprintf(x->name, sizeof(x->name), "%s", name);
    x->work =
        (struct np_work){.client = &w->clients[client], .class = class, .bytes = bytes, .cancelled = &w->gone[client]};
    return &x->work;
}

static const char *name_of(const struct np_work *work) { return work ? ((const struct named *)work)->name : "-"; }

/* The name of what had no room. */
static const char *put(struct world *w, const char *name, enum cql_work_class class, size_t bytes) {
    return name_of(np_queue_put(&w->q, make(w, name, class, bytes), 0));
}

static void put_all(struct world *w, enum cql_work_class class, const char *names) {
    for (const char *s = names; *s; s += 3) {
        char name[3] = {s[0], s[1], 0};
        assert_string_equal(put(w, name, class, 1), "-");
        if (!s[2]) break;
    }
}

static const char *take(struct world *w, enum cql_work_class class) { return name_of(np_queue_take(&w->q, class)); }

static void assert_order(struct world *w, enum cql_work_class class, const char *names) {
    for (const char *s = names; *s; s += 3) {
        char name[3] = {s[0], s[1], 0};
        assert_string_equal(take(w, class), name);
        if (!s[2]) break;
    }
    assert_string_equal(take(w, class), "-");
}

static void test_works_of_one_client_keep_their_order(void **state) {
    (void)state;
    struct world *w = world_new(64, 64);
    put_all(w, WORK_READ, "a1 a2 a3");
    assert_order(w, WORK_READ, "a1 a2 a3");
    assert_int_equal(w->q.n, 0);
    assert_int_equal(w->q.bytes, 0);
    free(w);
}

static void test_clients_take_turns_whatever_each_has(void **state) {
    (void)state;
    struct world *w = world_new(64, 64);
    put_all(w, WORK_SCAN, "a1 a2 a3 a4 b1 c1 c2");
    assert_order(w, WORK_SCAN, "a1 b1 c1 a2 c2 a3 a4");
    free(w);
}

static void test_part_that_is_put_again_goes_behind_everybody(void **state) {
    (void)state;
    struct world *w = world_new(64, 64);
    put_all(w, WORK_SCAN, "a1 a2 b1");
    struct np_work *a1 = np_queue_take(&w->q, WORK_SCAN);
    assert_null(np_queue_put(&w->q, a1, 0));
    assert_order(w, WORK_SCAN, "b1 a2 a1");
    free(w);
}

static void test_classes_do_not_see_each_other(void **state) {
    (void)state;
    struct world *w = world_new(64, 64);
    put_all(w, WORK_SCAN, "a1 a2 a3");
    put_all(w, WORK_READ, "a4");
    put_all(w, WORK_UPDATE, "b1");
    assert_order(w, WORK_UPDATE, "b1");
    assert_order(w, WORK_READ, "a4");
    assert_order(w, WORK_DDL, "");
    assert_order(w, WORK_SCAN, "a1 a2 a3");
    free(w);
}

static void test_client_with_most_works_pays_for_a_full_queue(void **state) {
    (void)state;
    struct world *w = world_new(4, 64);
    put_all(w, WORK_READ, "a1 a2 a3 b1");
    assert_string_equal(put(w, "b2", WORK_READ, 1), "a3"); /* the innocent has room */
    assert_string_equal(put(w, "a4", WORK_READ, 1), "a4");
    assert_string_equal(put(w, "c1", WORK_UPDATE, 1), "a2");
    assert_order(w, WORK_READ, "a1 b1 b2");
    assert_order(w, WORK_UPDATE, "c1");
    free(w);
}

static void test_client_with_most_bytes_pays_when_they_are_too_many(void **state) {
    (void)state;
    struct world *w = world_new(64, 100);
    for (int i = 0; i < 5; i++) assert_string_equal(put(w, "b1", WORK_READ, 4), "-");
    assert_string_equal(put(w, "a1", WORK_READ, 70), "-");
    assert_string_equal(put(w, "c1", WORK_READ, 40), "a1");
    assert_int_equal(w->q.bytes, 60);
    free(w);
}

static void test_scan_pays_before_other_works_of_its_client(void **state) {
    (void)state;
    struct world *w = world_new(3, 64);
    put_all(w, WORK_UPDATE, "a1");
    put_all(w, WORK_SCAN, "a2");
    put_all(w, WORK_READ, "a3");
    assert_string_equal(put(w, "b1", WORK_READ, 1), "a2");
    free(w);
}

static void test_the_client_with_most_delayed_works_loses_one(void **state) {
    (void)state;
    struct world *w = world_new(3, 64);
    for (int i = 0; i < 3; i++) np_queue_delay(&w->q, make(w, "a1", WORK_READ, 1), 0);
    assert_string_equal(put(w, "b1", WORK_READ, 1), "a1"); /* the innocent has room */
    assert_int_equal(w->clients[0].n, 2);
    assert_order(w, WORK_READ, "b1");
    free(w);
}

static const char *stale(struct world *w, int64_t now_us) {
    static char names[WORKS * 3 + 1];
    struct np_works out = TAILQ_HEAD_INITIALIZER(out);
    const struct np_work *x;
    size_t n = 0;
    np_queue_stale(&w->q, now_us, &out);
    names[0] = 0;
    TAILQ_FOREACH(x, &out, entry) n += (size_t)snprintf(names + n, sizeof(names) - n, "%s ", name_of(x));
    return names;
}

static void test_deadline_ends_the_wait_in_every_class(void **state) {
    (void)state;
    struct world *w = world_new(64, 64);
    for (int class = 0; class < WORK_CLASSES; class++) {
        struct np_work *x = make(w, "a1", (enum cql_work_class)class, 1),
                       *y = make(w, "b1", (enum cql_work_class)class, 1);
        x->deadline_us = 10 * (class + 1);
        assert_null(np_queue_put(&w->q, x, 0));
        assert_null(np_queue_put(&w->q, y, 0));
    }
    for (int class = 0; class < WORK_CLASSES; class++) {
        int64_t at = 10 * (class + 1);
        assert_int_equal(np_queue_next_moment(&w->q), at);
        assert_string_equal(stale(w, at - 1), "");
        assert_string_equal(stale(w, at), "a1 ");
    }
    assert_int_equal(np_queue_next_moment(&w->q), INT64_MAX);
    for (int class = 0; class < WORK_CLASSES; class++) assert_order(w, (enum cql_work_class)class, "b1");
    free(w);
}

static void test_works_of_a_client_that_is_gone_leave(void **state) {
    (void)state;
    struct world *w = world_new(64, 64);
    put_all(w, WORK_SCAN, "a1 b1 a2");
    put_all(w, WORK_READ, "a3");
    np_queue_delay(&w->q, make(w, "a4", WORK_DDL, 1), 0);
    w->gone[0] = true;
    assert_string_equal(stale(w, 0), "a4 a3 a1 a2 ");
    assert_int_equal(w->clients[0].n, 0);
    assert_order(w, WORK_SCAN, "b1");
    free(w);
}

static void test_a_delayed_work_resumes_at_its_time(void **state) {
    (void)state;
    struct world *w = world_new(64, 64);
    struct np_work *x = make(w, "a1", WORK_DDL, 1), *y = make(w, "b1", WORK_DDL, 1);
    x->not_before_us = 50;
    y->not_before_us = 40;
    np_queue_delay(&w->q, x, 0);
    np_queue_delay(&w->q, y, 0);
    assert_int_equal(np_queue_next_moment(&w->q), 40);
    assert_order(w, WORK_DDL, "");
    assert_int_equal(np_queue_resume(&w->q, 39), 0);
    assert_int_equal(np_queue_resume(&w->q, 40), 1u << WORK_DDL);
    assert_order(w, WORK_DDL, "b1");
    assert_int_equal(np_queue_next_moment(&w->q), 50);
    assert_int_equal(np_queue_resume(&w->q, 60), 1u << WORK_DDL);
    assert_order(w, WORK_DDL, "a1");
    assert_int_equal(w->q.n, 0);
    free(w);
}

static void test_emptying_leaves_nothing_behind(void **state) {
    (void)state;
    struct world *w = world_new(64, 64);
    struct np_works out = TAILQ_HEAD_INITIALIZER(out);
    put_all(w, WORK_SCAN, "a1 b1 a2");
    np_queue_delay(&w->q, make(w, "c1", WORK_DDL, 1), 0);
    np_queue_empty(&w->q, true, &out);
    assert_string_equal(name_of(TAILQ_FIRST(&out)), "c1");
    assert_int_equal(w->q.n, 3);
    np_queue_empty(&w->q, false, &out);
    assert_int_equal(w->q.n, 0);
    assert_int_equal(w->q.bytes, 0);
    assert_order(w, WORK_SCAN, "");
    free(w);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_works_of_one_client_keep_their_order),
        cmocka_unit_test(test_clients_take_turns_whatever_each_has),
        cmocka_unit_test(test_part_that_is_put_again_goes_behind_everybody),
        cmocka_unit_test(test_classes_do_not_see_each_other),
        cmocka_unit_test(test_client_with_most_works_pays_for_a_full_queue),
        cmocka_unit_test(test_client_with_most_bytes_pays_when_they_are_too_many),
        cmocka_unit_test(test_scan_pays_before_other_works_of_its_client),
        cmocka_unit_test(test_the_client_with_most_delayed_works_loses_one),
        cmocka_unit_test(test_deadline_ends_the_wait_in_every_class),
        cmocka_unit_test(test_works_of_a_client_that_is_gone_leave),
        cmocka_unit_test(test_a_delayed_work_resumes_at_its_time),
        cmocka_unit_test(test_emptying_leaves_nothing_behind),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
