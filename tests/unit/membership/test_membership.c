/* Servers on one store in memory, whose rounds and whose time the test moves. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/fault.h"
#include "engine/named.h"
#include "membership/membership.h"

enum { SERVERS = 3, TEXT = 256 };

/* A machine with a clock of its own. */
struct machine {
    struct clock clock; /* first */
    int64_t us;
    struct eng *eng;
    struct membership *membership; /* NULL: down */
    int n_runs;                    /* it had so far */
    char events[TEXT];             /* "NEW 2 UP 2 " */
    char died[TEXT];               /* "2.1 ": the first run of machine 2 */
    uint8_t schema;
    void (*looks)(struct machine *m); /* called whenever it looks at its clock; NULL: nothing is */
    struct machine *other;            /* for looks */
    int n_looks;
    int n_doubled;
};

struct world {
    struct machine machines[SERVERS];
    struct err e;
};

static int64_t machine_us(struct clock *c) {
    struct machine *m = (struct machine *)c;
    void (*looks)(struct machine *m) = m->looks;
    if (looks) looks(m);
    return m->us;
}

static void note_event(void *arg, enum member_event event, const struct member *m) {
    static const char *const names[] = {"NEW", "UP", "DOWN", "REMOVED"};
    struct machine *on = arg;
    size_t n = strlen(on->events);
    snprintf(on->events + n, sizeof(on->events) - n, "%s %c ", names[event], m->address[strlen(m->address) - 1]);
}

static void note_died(void *arg, const uint8_t incarnation[MEMBER_ID]) {
    struct machine *on = arg;
    size_t n = strlen(on->died);
    snprintf(on->died + n, sizeof(on->died) - n, "%d.%d ", incarnation[0], incarnation[1]);
}

static void tell_schema(void *arg, uint8_t version[MEMBER_ID]) {
    memset(version, ((const struct machine *)arg)->schema, MEMBER_ID);
}

static void note_doubled(void *arg) { ((struct machine *)arg)->n_doubled++; }

static void open_at(struct world *w, int i, int address) {
    struct machine *at = &w->machines[i];
    struct membership_options o = {.eng = at->eng, .clock = &at->clock, .self = {.port = 9042, .started_s = i}};
    o.self.incarnation[0] = (uint8_t)i;
    o.self.incarnation[1] = (uint8_t)++at->n_runs;
    snprintf(o.self.address, sizeof(o.self.address), "127.0.0.%d", address);
    snprintf(o.self.datacenter, sizeof(o.self.datacenter), "dc1");
    member_set_host_id(&o.self, "test");
    at->membership = membership_open(&o, &w->e);
    assert_non_null(at->membership);
}

static void open_server(struct world *w, int i) { open_at(w, i, i); }

static void start_at(struct world *w, int i, int address) {
    struct machine *at = &w->machines[i];
    const struct membership_hooks hooks = {
        .event = note_event, .died = note_died, .doubled = note_doubled, .schema = tell_schema, .arg = at};
    open_at(w, i, address);
    assert_int_equal(membership_join(at->membership, &hooks, &w->e), 0);
    at->events[0] = 0;
}

static void start(struct world *w, int i) { start_at(w, i, i); }

/* kill -9: its record stays. */
static void kill_server(struct world *w, int i) {
    membership_free(w->machines[i].membership);
    w->machines[i].membership = NULL;
}

static void stop_server(struct world *w, int i) {
    membership_leave(w->machines[i].membership);
    kill_server(w, i);
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

static void assert_died(struct world *w, int i, const char *expected) {
    assert_string_equal(w->machines[i].died, expected);
    w->machines[i].died[0] = 0;
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
        if (w->machines[i].membership) stop_server(w, i);
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
    stop_server(w, 2);
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

static void test_of_two_servers_with_one_address_the_second_stops(void **state) {
    struct world *w = *state;
    start(w, 1);
    start_at(w, 2, 1);
    go(w, 2);
    assert_int_equal(w->machines[1].n_doubled, 0);
    assert_int_equal(w->machines[2].n_doubled, 1);
    stop_server(w, 2); /* and leaves the other's record alone */
    start(w, 0);
    assert_int_equal(live_at(w, 0), 2);
    go(w, 20);
    assert_int_equal(live_at(w, 0), 2);
    assert_int_equal(w->machines[1].n_doubled, 0);
}

/* The first server hangs, and is replaced meanwhile. A killed one is replaced, too, and never comes back. */
static void test_a_server_that_was_replaced_while_it_hung_stops(void **state) {
    struct world *w = *state;
    start(w, 1);
    struct membership *hung = w->machines[1].membership;
    w->machines[1].membership = NULL;
    go(w, 10);
    start_at(w, 2, 1);
    go(w, 3);
    w->machines[1].membership = hung;
    go(w, 20);
    assert_int_equal(w->machines[1].n_doubled, 1);
    assert_int_equal(w->machines[2].n_doubled, 0);
    kill_server(w, 1);
    kill_server(w, 2);
    start_at(w, 2, 1);
    go(w, 20);
    assert_int_equal(w->machines[2].n_doubled, 0);
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

/* Also of one that was started anew before the others took it for dead, and of one that nobody saw die. */
static void test_each_run_that_ends_is_told_of(void **state) {
    struct world *w = *state;
    start(w, 1);
    start(w, 2);
    go(w, 1);
    assert_died(w, 1, "");
    kill_server(w, 2);
    start(w, 2);
    assert_died(w, 2, "2.1 ");
    go(w, 1);
    assert_died(w, 1, "2.1 ");
    kill_server(w, 2);
    go(w, 10);
    assert_died(w, 1, "2.2 ");
    start(w, 2);
    assert_died(w, 2, "2.2 ");
    go(w, 1);
    stop_server(w, 2);
    go(w, 1);
    assert_died(w, 1, "2.3 ");
    start(w, 2);
    go(w, 1);
    kill_server(w, 1);
    kill_server(w, 2);
    start(w, 1);
    assert_died(w, 1, "1.1 ");
    go(w, 10);
    assert_died(w, 1, "2.4 ");
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

/* While the store fails, no server can renew its record. Those of servers that live change within
 * MEMBERSHIP_RENEW_US after the outage, the first observer reads them before that. */
static void test_rounds_that_fail_declare_nobody_dead(void **state) {
    static const enum fault_point points[] = {FAULT_KV_READ, FAULT_KV_WRITE};
    struct world *w = *state;
    start(w, 1);
    start(w, 2);
    go(w, 3);
    w->machines[1].events[0] = w->machines[2].events[0] = 0;
    for (size_t i = 0; i < ARRAY_LEN(points); i++) {
        fault_arm(points[i], FAULT_ALWAYS);
        go(w, 8);
        fault_arm(points[i], 0);
        go(w, 20);
        assert_events(w, 1, "");
        assert_events(w, 2, "");
    }
    kill_server(w, 2); /* the outage hides its death, and no more than that */
    fault_arm(FAULT_KV_READ, FAULT_ALWAYS);
    go(w, 20);
    fault_arm(FAULT_KV_READ, 0);
    go(w, MEMBERSHIP_EXPIRE_US / 1000000);
    assert_events(w, 1, "");
    go(w, 1);
    assert_events(w, 1, "DOWN 2 ");
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

static void test_a_server_is_known_when_it_has_joined(void **state) {
    struct world *w = *state;
    start(w, 1);
    open_server(w, 2);
    go(w, 0);
    membership_tick(w->machines[1].membership);
    assert_events(w, 1, "");
    assert_int_equal(live_at(w, 2), 2);
    assert_false(membership_leads(w->machines[2].membership));
}

static void test_the_version_of_the_schema_is_published(void **state) {
    struct world *w = *state;
    uint8_t version[MEMBER_ID];
    start(w, 1);
    start(w, 2);
    go(w, 1);
    w->machines[2].schema = 7;
    go(w, 1); /* it is not time to renew the record */
    membership_tick(w->machines[1].membership);
    memset(version, 7, sizeof(version));
    const struct member_list *l = membership_list(w->machines[1].membership);
    assert_int_equal(l->n, 2);
    assert_memory_equal(l->items[!l->self].schema_version, version, MEMBER_ID);
    assert_string_equal(l->items[!l->self].datacenter, "dc1");
    membership_unref(l);
}

/* ---- the lease ---- */

/* The number of the leader; 0: there is none, for a while. */
static int leader(struct world *w) {
    int found = 0;
    for (int i = 0; i < SERVERS; i++)
        if (w->machines[i].membership && membership_leads(w->machines[i].membership)) {
            assert_int_equal(found, 0);
            found = i;
        }
    return found;
}

static void test_one_server_leads_and_another_takes_over_when_it_dies(void **state) {
    struct world *w = *state;
    start(w, 1);
    assert_int_equal(leader(w), 1);
    start(w, 2);
    for (int i = 0; i < 20; i++) {
        go(w, 1);
        assert_int_equal(leader(w), 1);
    }
    kill_server(w, 1);
    int waited = 0;
    while (leader(w) == 0 && waited < 20) {
        go(w, 1);
        waited++;
    }
    assert_int_equal(leader(w), 2);
    assert_true(waited >= 4 && waited <= 7); /* its last renewal was up to two seconds old */
    start(w, 1);
    go(w, 20);
    assert_int_equal(leader(w), 2);
    stop_server(w, 2); /* leaves the lease at once */
    go(w, 1);
    assert_int_equal(leader(w), 1);
    kill_server(w, 1);
    start(w, 1); /* finds the lease of its earlier run */
    assert_int_equal(leader(w), 1);
}

static void test_a_leader_that_was_stopped_does_not_lead(void **state) {
    struct world *w = *state;
    start(w, 1);
    start(w, 2);
    go(w, 2);
    struct membership *stopped = w->machines[1].membership;
    w->machines[1].membership = NULL;
    go(w, 20);
    w->machines[1].membership = stopped;
    assert_int_equal(leader(w), 2); /* the other one has noticed nothing yet */
    go(w, 5);
    assert_int_equal(leader(w), 2);
}

/* In the second look of its round, which is after its reads, the other server has a round in between. */
static void let_other_in(struct machine *m) {
    enum { READ = 2 };
    if (++m->n_looks != READ) return;
    m->looks = NULL;
    membership_tick(m->other->membership);
}

static void round_with(struct world *w, int i, int other) {
    struct machine *m = &w->machines[i];
    m->looks = let_other_in;
    m->n_looks = 0;
    m->other = &w->machines[other];
    membership_tick(m->membership);
    assert_null(m->looks);
}

/* The dead leader lives on just when another one has found it dead. */
static void test_of_a_renewal_and_a_take_over_that_meet_one_fails(void **state) {
    struct world *w = *state;
    start(w, 1);
    start(w, 2);
    go(w, 2);
    for (int i = 0; i < SERVERS; i++) w->machines[i].us += MEMBERSHIP_EXPIRE_US;
    round_with(w, 2, 1);
    assert_int_equal(leader(w), 1);
    for (int i = 0; i < SERVERS; i++) w->machines[i].us += MEMBERSHIP_EXPIRE_US;
    round_with(w, 1, 2);
    assert_int_equal(leader(w), 2);
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

static void test_a_client_is_told_of_the_servers_that_it_can_reach(void **state) {
    (void)state;
    static const struct {
        const char *own, *address;
        uint16_t own_port, port, tls_port;
        bool with_tls, reachable, with_ports; /* with_ports: reachable by a client that knows ports */
    } rows[] = {{"10.0.0.1", "10.0.0.2", 9042, 9042, 9142, false, true, true},
                {"10.0.0.1", "10.0.0.2", 9042, 9043, 0, false, false, true},
                {"127.0.0.1", "127.0.0.1", 9042, 9043, 0, false, false, true},
                {"10.0.0.1", "10.0.0.1", 9042, 9042, 0, false, false, false},
                {"10.0.0.1", "::2", 9042, 9042, 0, false, false, false},
                {"::1", "::2", 9042, 9042, 0, false, true, true},
                {"10.0.0.1", "10.0.0.2", 9142, 9042, 9142, true, true, true},
                {"10.0.0.1", "10.0.0.2", 9142, 9042, 0, true, false, false}};
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        struct member m = {.port = rows[i].port, .tls_port = rows[i].tls_port};
        struct member_client c = {.port = rows[i].own_port, .with_tls = rows[i].with_tls};
        snprintf(m.address, sizeof(m.address), "%s", rows[i].address);
        assert_true(ip_address_parse(rows[i].own, &c.address));
        assert_int_equal(member_is_reachable(&m, &c), rows[i].reachable);
        c.knows_ports = true;
        assert_int_equal(member_is_reachable(&m, &c), rows[i].with_ports);
    }
}

static void test_a_record_that_is_damaged_is_no_server(void **state) {
    struct world *w = *state;
    assert_int_equal(eng_meta_put(w->machines[0].eng, slice_str("membership/of/nonsense"), slice_str("x"), &w->e), 0);
    start(w, 1);
    go(w, 10);
    assert_int_equal(live_at(w, 1), 1);
    assert_events(w, 1, "");
}

static void damage_record(struct world *w, int i) {
    struct member m = {.port = 9042};
    char key[64] = "membership/of/";
    snprintf(m.address, sizeof(m.address), "127.0.0.%d", i);
    member_set_host_id(&m, "test");
    for (int k = 0; k < MEMBER_ID; k++) snprintf(key + strlen(key), 3, "%02x", m.host_id[k]);
    assert_int_equal(eng_meta_put(w->machines[1].eng, slice_str(key), slice_str("damaged"), &w->e), 0);
}

/* Of a server that runs, of one that starts, and of a leader that is gone. */
static void test_a_damaged_record_goes_and_its_server_writes_another(void **state) {
    struct world *w = *state;
    start(w, 0);
    start(w, 1);
    go(w, 2);
    assert_true(membership_leads(w->machines[0].membership));
    damage_record(w, 0);
    go(w, 5);
    assert_int_equal(live_at(w, 1), 2);
    assert_true(membership_leads(w->machines[0].membership));
    kill_server(w, 0);
    damage_record(w, 0);
    start(w, 0);
    go(w, 5);
    assert_int_equal(live_at(w, 1), 2);
    kill_server(w, 0);
    damage_record(w, 0);
    go(w, 10);
    assert_int_equal(live_at(w, 1), 1);
    assert_true(membership_leads(w->machines[1].membership));
}

int main(void) {
#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)
    const struct CMUnitTest tests[] = {
        TEST(test_servers_see_one_another_come_and_go),
        TEST(test_of_two_servers_with_one_address_the_second_stops),
        TEST(test_a_server_that_was_replaced_while_it_hung_stops),
        TEST(test_a_server_that_renews_its_record_lives_for_ever),
        TEST(test_a_killed_server_is_dead_after_its_time_and_removed_after_a_longer_one),
        TEST(test_a_dead_server_that_comes_back_is_up_again),
        TEST(test_each_run_that_ends_is_told_of),
        TEST(test_an_observer_that_was_stopped_declares_nobody_dead),
        TEST(test_rounds_that_fail_declare_nobody_dead),
        TEST(test_a_server_that_was_removed_comes_back),
        TEST(test_a_server_is_known_when_it_has_joined),
        TEST(test_the_version_of_the_schema_is_published),
        TEST(test_one_server_leads_and_another_takes_over_when_it_dies),
        TEST(test_a_leader_that_was_stopped_does_not_lead),
        TEST(test_of_a_renewal_and_a_take_over_that_meet_one_fails),
        TEST(test_tokens_are_the_same_everywhere_and_no_two_servers_share_one),
        TEST(test_a_client_is_told_of_the_servers_that_it_can_reach),
        TEST(test_a_record_that_is_damaged_is_no_server),
        TEST(test_a_damaged_record_goes_and_its_server_writes_another),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
