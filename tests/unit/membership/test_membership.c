/* Servers on one store in memory, whose rounds and whose time the test moves. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "membership/membership.h"

enum { SERVERS = 3, TEXT = 256 };

/* A machine with a clock of its own. */
struct machine {
    struct clock clock; /* first */
    int64_t us;
    struct eng *eng;
    struct membership *membership; /* NULL: down */
    char events[TEXT];             /* "NEW 2 UP 2 " */
};

struct world {
    struct machine machines[SERVERS];
    struct err e;
};

static int64_t machine_us(struct clock *c) { return ((struct machine *)c)->us; }

static void note_event(void *arg, enum member_event event, const struct member *m) {
    static const char *const names[] = {"NEW", "UP", "DOWN", "REMOVED"};
    struct machine *on = arg;
    size_t n = strlen(on->events);
    snprintf(on->events + n, sizeof(on->events) - n, "%s %c ", names[event], m->address[strlen(m->address) - 1]);
}

static void start(struct world *w, int i) {
    struct machine *at = &w->machines[i];
    struct membership_options o = {.eng = at->eng, .clock = &at->clock, .self = {.port = 9042, .started_s = i}};
    snprintf(o.self.address, sizeof(o.self.address), "127.0.0.%d", i);
    snprintf(o.self.datacenter, sizeof(o.self.datacenter), "dc1");
    member_set_host_id(&o.self, "test");
    at->membership = membership_open(&o, &w->e);
    assert_non_null(at->membership);
    membership_hear(at->membership, note_event, at);
    at->events[0] = 0;
}

/* kill -9: its record stays. */
static void kill_server(struct world *w, int i) {
    membership_abandon(w->machines[i].membership);
    w->machines[i].membership = NULL;
}

/* Time goes by on every machine, as many seconds; each server that is up has a round every second. */
static void go(struct world *w, int seconds) {
    for (; seconds; seconds--)
        for (int i = 0; i < SERVERS; i++) {
            w->machines[i].us += 1000000;
            if (w->machines[i].membership) membership_tick(w->machines[i].membership);
        }
}

static int live_at(struct world *w, int i) {
    const struct member_list *l = membership_list(w->machines[i].membership);
    int n = (int)l->n;
    char own[IP_ADDRESS_TEXT];
    snprintf(own, sizeof(own), "127.0.0.%d", i);
    assert_string_equal(l->items[l->self].address, own);
    for (uint32_t k = 1; k < l->n; k++)
        assert_true(memcmp(l->items[k - 1].host_id, l->items[k].host_id, MEMBER_ID) < 0);
    membership_unref(l);
    return n;
}

static void assert_events(struct world *w, int i, const char *expected) {
    assert_string_equal(w->machines[i].events, expected);
    w->machines[i].events[0] = 0;
}

static int set_up(void **state) {
    struct world *w = calloc(1, sizeof(*w));
    struct eng_options o = {.durability = ENG_FSYNC, .clock = &clock_real, .shared = true};
    for (int i = 0; i < SERVERS; i++) {
        struct machine *at = &w->machines[i];
        at->clock = (struct clock){.mono_us = machine_us};
        at->us = 1000000000000 * i; /* no two machines agree about the time */
        o.beside = i ? w->machines[0].eng : NULL;
        at->eng = eng_open(&o, &w->e);
        assert_non_null(at->eng);
    }
    *state = w;
    return 0;
}

static int tear_down(void **state) {
    struct world *w = *state;
    for (int i = 0; i < SERVERS; i++)
        if (w->machines[i].membership) membership_close(w->machines[i].membership);
    for (int i = 0; i < SERVERS; i++) eng_close(w->machines[i].eng);
    free(w);
    return 0;
}

static void test_servers_see_one_another_come_and_go(void **state) {
    struct world *w = *state;
    start(w, 1);
    assert_int_equal(live_at(w, 1), 1);
    start(w, 2);
    assert_int_equal(live_at(w, 2), 2); /* from the start */
    go(w, 1);
    assert_int_equal(live_at(w, 1), 2);
    assert_events(w, 1, "NEW 2 UP 2 ");
    assert_events(w, 2, "");
    membership_close(w->machines[2].membership);
    w->machines[2].membership = NULL;
    go(w, 1);
    assert_int_equal(live_at(w, 1), 1);
    assert_events(w, 1, "DOWN 2 REMOVED 2 ");
}

static void test_a_server_that_renews_its_record_lives_for_ever(void **state) {
    struct world *w = *state;
    start(w, 1);
    start(w, 2);
    go(w, 1);
    w->machines[1].events[0] = 0;
    uint64_t generation = membership_generation(w->machines[1].membership);
    go(w, 100);
    assert_events(w, 1, "");
    assert_int_equal(live_at(w, 1), 2);
    assert_int_equal(membership_generation(w->machines[1].membership), generation);
}

static void test_a_killed_server_is_dead_after_its_time_and_removed_after_a_longer_one(void **state) {
    struct world *w = *state;
    start(w, 1);
    start(w, 2);
    go(w, 3);
    assert_events(w, 1, "NEW 2 UP 2 ");
    kill_server(w, 2);
    go(w, 4); /* at most a second old when it was read, and then not for six */
    assert_events(w, 1, "");
    go(w, 3);
    assert_events(w, 1, "DOWN 2 ");
    assert_int_equal(live_at(w, 1), 1);
    go(w, 280);
    assert_events(w, 1, "");
    go(w, 30);
    assert_events(w, 1, "REMOVED 2 ");
    start(w, 0);
    assert_int_equal(live_at(w, 0), 2);
}

static void test_a_dead_server_that_comes_back_is_up_again(void **state) {
    struct world *w = *state;
    start(w, 1);
    start(w, 2);
    go(w, 2);
    kill_server(w, 2);
    go(w, 10);
    assert_events(w, 1, "NEW 2 UP 2 DOWN 2 ");
    start(w, 2);
    go(w, 1);
    assert_events(w, 1, "UP 2 ");
    kill_server(w, 2);
    start(w, 2); /* before it was missed */
    go(w, 1);
    assert_events(w, 1, "UP 2 ");
}

/* A process that was stopped for a while finds the records of the others as they have become. */
static void test_an_observer_that_was_stopped_declares_nobody_dead(void **state) {
    struct world *w = *state;
    start(w, 1);
    start(w, 2);
    go(w, 2);
    struct membership *stopped = w->machines[1].membership;
    w->machines[1].membership = NULL;
    go(w, 20);
    assert_events(w, 2, "DOWN 1 ");
    w->machines[1].membership = stopped;
    w->machines[1].events[0] = 0;
    go(w, 2);
    assert_events(w, 1, "");
    assert_events(w, 2, "UP 1 ");
}

/* ... and makes its own record anew if the others have removed it. */
static void test_a_server_that_was_removed_comes_back(void **state) {
    struct world *w = *state;
    start(w, 1);
    start(w, 2);
    go(w, 2);
    struct membership *stopped = w->machines[1].membership;
    w->machines[1].membership = NULL;
    go(w, 310);
    assert_events(w, 2, "DOWN 1 REMOVED 1 ");
    w->machines[1].membership = stopped;
    go(w, 2);
    assert_events(w, 2, "NEW 1 UP 1 ");
    assert_int_equal(live_at(w, 1), 2);
}

static void test_the_version_of_the_schema_is_published(void **state) {
    struct world *w = *state;
    const uint8_t version[MEMBER_ID] = "one version....";
    start(w, 1);
    start(w, 2);
    membership_set_schema(w->machines[2].membership, version);
    go(w, 2);
    const struct member_list *l = membership_list(w->machines[1].membership);
    assert_int_equal(l->n, 2);
    assert_memory_equal(l->items[!l->self].schema_version, version, MEMBER_ID);
    assert_string_equal(l->items[!l->self].datacenter, "dc1");
    membership_unref(l);
}

static void test_tokens_are_the_same_everywhere_and_no_two_servers_share_one(void **state) {
    struct world *w = *state;
    int64_t all[2][MEMBER_TOKENS], again[MEMBER_TOKENS];
    for (int i = 0; i < 2; i++) {
        struct member m = {.port = 9042};
        snprintf(m.address, sizeof(m.address), "10.0.0.%d", i);
        member_set_host_id(&m, "test");
        member_tokens(m.host_id, all[i]);
        member_tokens(m.host_id, again);
        assert_memory_equal(all[i], again, sizeof(again));
        for (int k = 1; k < MEMBER_TOKENS; k++) assert_true(all[i][k - 1] < all[i][k]);
    }
    for (int i = 0; i < MEMBER_TOKENS; i++)
        for (int k = 0; k < MEMBER_TOKENS; k++) assert_true(all[0][i] != all[1][k]);
    (void)w;
}

static void test_a_record_that_is_damaged_is_no_server(void **state) {
    struct world *w = *state;
    assert_int_equal(eng_meta_put(w->machines[0].eng, slice_str("membership/of/nonsense"), slice_str("x"), &w->e), 0);
    start(w, 1);
    go(w, 10);
    assert_int_equal(live_at(w, 1), 1);
    assert_events(w, 1, "");
}

int main(void) {
#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)
    const struct CMUnitTest tests[] = {
        TEST(test_servers_see_one_another_come_and_go),
        TEST(test_a_server_that_renews_its_record_lives_for_ever),
        TEST(test_a_killed_server_is_dead_after_its_time_and_removed_after_a_longer_one),
        TEST(test_a_dead_server_that_comes_back_is_up_again),
        TEST(test_an_observer_that_was_stopped_declares_nobody_dead),
        TEST(test_a_server_that_was_removed_comes_back),
        TEST(test_the_version_of_the_schema_is_published),
        TEST(test_tokens_are_the_same_everywhere_and_no_two_servers_share_one),
        TEST(test_a_record_that_is_damaged_is_no_server),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
