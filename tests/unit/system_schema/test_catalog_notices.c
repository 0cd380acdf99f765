/* Listeners: when the catalogue calls them, and what they find out then. */
#include <sched.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>

#include <cmocka.h>

#include "base/clock.h"
#include "harness.h"

/* What a listener finds out about the catalogue while it is called. */
struct curious {
    struct world *w;
    uint32_t unfinished; /* the statement's object */
    uint32_t n_calls, n_locked, n_answered; /* locked: the caller held the lock; answered: the statement was */
};
enum { LOCK_HANGS_AFTER = 120 }; /* seconds: other threads hold the lock for milliseconds */

static void look_around(void *arg, const struct schema_change *change) {
    struct curious *s = arg;
    struct err e = {0};
    int64_t end_us = clock_machine_us(&clock_real) + LOCK_HANGS_AFTER * INT64_C(1000000);
    s->n_calls++;
    while (pthread_mutex_trylock(&s->w->catalog->objects->lock)) {
        if (clock_machine_us(&clock_real) > end_us) {
            s->n_locked++;
            return;
        }
        sched_yield();
    }
    pthread_mutex_unlock(&s->w->catalog->objects->lock);
    if (change->object == s->unfinished) s->n_answered += catalog_outcome(s->w->catalog, s->unfinished, &e) != 1;
}

/* N1 and N2. */
static void test_listeners_run_without_the_lock_and_before_the_answer(void **state) {
    (void)state;
    struct world *w = world_new(MODE_CASSANDRA, "100");
    struct curious s = {.w = w};
    struct schema_change out;
    const struct catalog_change keyspace = {.op = CATALOG_CREATE_KEYSPACE, .keyspace = "ks",
                                            .n_replication = 2, .replication = simple_strategy};
    const struct catalog_change drop = {.op = CATALOG_DROP_KEYSPACE, .keyspace = "ks"};
    struct catalog_listener listener = {.changed = look_around, .arg = &s};
    catalog_on_change(w->catalog, &listener);
    assert_int_equal(catalog_apply(w->catalog, &keyspace, &out, &s.unfinished, &w->err), 1);
    advance(w, 100);
    while (catalog_outcome(w->catalog, s.unfinished, &w->err) == 1) sched_yield(); /* the worker is at it */
    assert_int_equal(s.n_calls, 1);
    s.unfinished = out.object;
    assert_int_equal(apply(w, &drop), 1);
    assert_int_equal(s.n_calls, 2);
    advance(w, 100);
    while (catalog_outcome(w->catalog, out.object, &w->err) == 1) sched_yield();
    assert_int_equal(s.n_calls, 3);
    assert_int_equal(s.n_locked, 0);
    assert_int_equal(s.n_answered, 0);
    catalog_off_change(w->catalog, &listener);
    world_free(w);
}

/* A listener that, told that a table is gone, lets another thread ask for its name, and is slow
 * then. */
struct slow {
    struct world *w;
    pthread_t thread;
    atomic_bool asks, returned;
    bool began, too_early;
};

static void *take_name(void *arg) {
    struct slow *s = arg;
    struct world other = {.catalog = s->w->catalog};
    atomic_store(&s->asks, true);
    assert_int_equal(make_table(&other, "ks", "t"), 1);
    s->too_early = !atomic_load(&s->returned);
    return NULL;
}

static void be_slow(void *arg, const struct schema_change *change) {
    struct slow *s = arg;
    if (change->kind != CHANGE_GONE) return;
    s->began = true;
    assert_int_equal(pthread_create(&s->thread, NULL, take_name, s), 0);
    while (!atomic_load(&s->asks)) sched_yield();
    for (int i = 0; i < 1000; i++) { /* the lock is free for the other one */
        assert_false(catalog_has_object(s->w->catalog, 0));
        sched_yield();
    }
    atomic_store(&s->returned, true);
}

/* N3. */
static void test_a_name_is_free_when_listeners_know_that_it_is(void **state) {
    (void)state;
    struct world *w = world_new(MODE_KEYSPACES, "none");
    struct slow s = {.w = w};
    assert_int_equal(make_keyspace(w, "ks"), 1);
    assert_int_equal(make_table(w, "ks", "t"), 1);
    struct catalog_listener listener = {.changed = be_slow, .arg = &s};
    catalog_on_change(w->catalog, &listener);
    assert_int_equal(drop_table(w, "ks", "t"), 1);
    assert_true(s.began);
    pthread_join(s.thread, NULL);
    assert_false(s.too_early);
    const struct schema_change *last = &w->changes[w->n_changes - 1];
    assert_int_equal(last[-2].kind, CHANGE_DROPPED);
    assert_int_equal(last[-1].kind, CHANGE_GONE);
    assert_int_equal(last[0].kind, CHANGE_CREATED);
    catalog_off_change(w->catalog, &listener);
    world_free(w);
}

static void test_listeners_hear_of_a_failed_creation(void **state) {
    (void)state;
    struct world *w = world_new(MODE_KEYSPACES, "none");
    const struct ddl_subject of = {"CREATE TABLE", "ks", "t"};
    assert_int_equal(make_keyspace(w, "ks"), 1);
    pthread_mutex_lock(&w->catalog->objects->lock);
    assert_int_equal(rules_set(w->catalog->ddl, &of, "100", "no luck", &w->err), 0);
    pthread_mutex_unlock(&w->catalog->objects->lock);
    unsigned before = w->n_changes;
    assert_int_equal(make_table(w, "ks", "t"), 1);
    assert_int_equal(w->n_changes, before);
    advance(w, 100);
    assert_string_equal(status_of(w, "ks", "t"), "");
    assert_int_equal(w->n_changes, before + 1);
    assert_int_equal(w->changes[before].kind, CHANGE_GONE);
    assert_string_equal(w->changes[before].name, "t");
    world_free(w);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_listeners_run_without_the_lock_and_before_the_answer),
        cmocka_unit_test(test_a_name_is_free_when_listeners_know_that_it_is),
        cmocka_unit_test(test_listeners_hear_of_a_failed_creation),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
