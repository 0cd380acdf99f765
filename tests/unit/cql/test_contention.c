/* Sixteen threads in one process, while the store takes its time for what one of them writes: all
 * others go on, with prepared statements, reads, writes and conditions, for no lock is held across
 * the store's write but what guards the very row or partition that is written, and who waits for
 * that is counted. What all of them share:
 *
 *   the prepared statements   a lock for the look-up or the addition of one
 *   a stripe                  of the partition, from the read that decides to the write:
 *                             ENG_STAT_STRIPE_WAITS
 *   a slot                    of the row, shared by who merges, claimed by who puts:
 *                             ENG_STAT_GUARD_WAITS
 *   a gate                    passed by every write, one of ENGI_COMMIT_LOCKS; shut for a moment when the
 *                             reclaimer takes a mark away or a table's history begins
 *   sequences, counters       atomic
 */
#include "harness.h"

#include <pthread.h>
#include <stdio.h>
#include <time.h>
#include <unistd.h>

#include "engine/local/local.h"
#include "engine/stats.h"

enum { THREADS = 16, ROUNDS = 20, PATIENCE_SECONDS = 60 };

/* ---- a store whose write of one thread waits to be let go ---- */

static struct {
    pthread_mutex_t lock;
    pthread_cond_t changed;
    bool inside, let_go; /* under lock */
} slow = {.lock = PTHREAD_MUTEX_INITIALIZER, .changed = PTHREAD_COND_INITIALIZER};

static _Thread_local bool is_slow;

/* The linker has this function called in place of kv_write. */
int __real_kv_write(struct kv *kv, struct kv_batch *b, bool patience, struct err *e);
int __wrap_kv_write(struct kv *kv, struct kv_batch *b, bool patience, struct err *e);
int __wrap_kv_write(struct kv *kv, struct kv_batch *b, bool patience, struct err *e) {
    if (is_slow) {
        is_slow = false;
        pthread_mutex_lock(&slow.lock);
        slow.inside = true;
        pthread_cond_broadcast(&slow.changed);
        while (!slow.let_go) pthread_cond_wait(&slow.changed, &slow.lock);
        pthread_mutex_unlock(&slow.lock);
    }
    return __real_kv_write(kv, b, patience, e);
}

static void let_go(void) {
    pthread_mutex_lock(&slow.lock);
    slow.let_go = true;
    pthread_cond_broadcast(&slow.changed);
    pthread_mutex_unlock(&slow.lock);
}

/* ---- threads ---- */

struct client {
    struct harness h; /* its own batch, arena and session of the shared database */
    pthread_t thread;
    int number;
    const char *slow_statement; /* NULL: a round of everything, again and again */
    const char *failed;
    _Atomic bool done;
};

static void client_open(struct client *c, const struct harness *of, int number) {
    *c = (struct client){.number = number};
    c->h.mode = of->mode;
    c->h.clock.clock = of->clock.clock;
    c->h.clock.now_us = of->clock.now_us;
    c->h.eng = of->eng;
    c->h.catalog = of->catalog;
    c->h.db = of->db;
    c->h.session = of->session;
    c->h.sink = of->sink;
    c->h.consistency = of->consistency;
    c->h.batch = eng_batch_new(of->eng);
    arena_init(&c->h.arena, 4096, 0);
    buf_init(&c->h.rows, 0);
    buf_init(&c->h.paging, 0);
}

static void client_close(struct client *c) {
    eng_batch_free(c->h.batch);
    arena_fini(&c->h.arena);
    buf_fini(&c->h.rows);
    buf_fini(&c->h.paging);
}

/* Not by the harness's own, which ends the test, and that only the test's thread may. */
static bool prepare(struct client *c, const char *cql, uint8_t id[16]) {
    struct cql_request r = {.kind = REQUEST_PREPARE, .query = slice_str(cql)};
    if (harness_request(&c->h, &r) != CQL_DONE) return false;
    memcpy(id, cql_prepared_info(c->h.result.prepared)->id, 16);
    cql_prepared_unref(c->h.result.prepared);
    return true;
}

static bool run(struct client *c, const char *cql) {
    enum cql_outcome outcome = harness_run(&c->h, cql, 0, NULL);
    return outcome == CQL_DONE || outcome == CQL_COMMIT;
}

/* A statement of every kind on the client's own partition; a text that all prepare and one that is its own. */
static bool round_of(struct client *c, int round) {
    static const char *const statements[] = {
        "INSERT INTO k.t (p, v, w) VALUES (?, 1, 2)", "SELECT v, w FROM k.t WHERE p = ?",
        "UPDATE k.t SET v = 3 WHERE p = ?",           "UPDATE k.t SET w = 4 WHERE p = ? IF v = 3",
        "UPDATE k.n SET c = c + 1 WHERE p = ?",
    };
    uint8_t p[4], id[16];
    char own[80];
    store_u32(p, (uint32_t)c->number);
    struct value key = value_of_slice(slice_of(p, 4));
    for (size_t i = 0; i < ARRAY_LEN(statements); i++) {
        enum cql_outcome outcome = prepare(c, statements[i], id) ? harness_execute(&c->h, id, 1, &key) : CQL_FAILED;
        if (outcome != CQL_DONE && outcome != CQL_COMMIT) return false;
    }
    snprintf(own, sizeof(own), "SELECT v AS a%d FROM k.t WHERE p = ?", c->number * ROUNDS + round);
    return prepare(c, own, id) && harness_execute(&c->h, id, 1, &key) == CQL_DONE && c->h.n_rows == 1;
}

static void *talk(void *arg) {
    struct client *c = arg;
    is_slow = c->slow_statement != NULL;
    if (is_slow && !run(c, c->slow_statement)) c->failed = c->slow_statement;
    for (int round = 0; !c->slow_statement && !c->failed && round < ROUNDS; round++)
        if (!round_of(c, round)) c->failed = "a round";
    atomic_store(&c->done, true);
    return NULL;
}

static void start(struct client *c) { assert_int_equal(pthread_create(&c->thread, NULL, talk, c), 0); }

static void end(struct client *c) {
    pthread_join(c->thread, NULL);
    if (c->failed) fail_msg("%s: %s", c->failed, c->h.err.text);
    client_close(c);
}

/* The client's write is in the store from here on, until let_go. */
static void start_slowly(struct client *c, const char *cql) {
    slow.inside = slow.let_go = false;
    c->slow_statement = cql;
    start(c);
    pthread_mutex_lock(&slow.lock);
    while (!slow.inside) pthread_cond_wait(&slow.changed, &slow.lock);
    pthread_mutex_unlock(&slow.lock);
}

static bool in_time(bool (*what)(void *arg), void *arg) {
    time_t until = time(NULL) + PATIENCE_SECONDS;
    while (!what(arg)) {
        if (time(NULL) > until) return false;
        usleep(200);
    }
    return true;
}

/* ---- */

static int setup(void **state) {
    static const char *const tables[] = {"CREATE TABLE k.t (p int PRIMARY KEY, v int, w int)",
                                         "CREATE TABLE k.n (p int PRIMARY KEY, c counter)", NULL};
    *state = harness_new(MODE_CASSANDRA, tables);
    return 0;
}

static bool all_done(void *arg) {
    struct client *c = arg;
    for (int i = 1; i < THREADS; i++)
        if (!atomic_load(&c[i].done)) return false;
    return true;
}

static void test_fifteen_go_on_while_the_store_takes_its_time_for_one(void **state) {
    static const char *const writes[] = {"INSERT INTO k.t (p, v, w) VALUES (0, 1, 1)",
                                         "UPDATE k.t SET v = 2 WHERE p = 0",
                                         "UPDATE k.t SET w = 5 WHERE p = 0 IF v = 2",
                                         "UPDATE k.n SET c = c + 1 WHERE p = 0"};
    static struct client clients[THREADS];
    struct harness *h = *state;
    for (size_t i = 0; i < ARRAY_LEN(writes); i++) {
        for (int n = 0; n < THREADS; n++) client_open(&clients[n], h, n);
        start_slowly(&clients[0], writes[i]);
        for (int n = 1; n < THREADS; n++) start(&clients[n]);
        bool went_on = in_time(all_done, clients), stands = !atomic_load(&clients[0].done);
        let_go();
        for (int n = 0; n < THREADS; n++) end(&clients[n]);
        if (!went_on || !stands)
            fail_msg("%s: %s", writes[i],
                     stands ? "others waited for the store's write of one" : "the write did not wait in the store");
    }
    assert_int_equal(eng_stat(h->eng, ENG_STAT_STRIPE_WAITS), 0);
    assert_int_equal(eng_stat(h->eng, ENG_STAT_GUARD_WAITS), 0);
    assert_rows(h, "SELECT v, w FROM k.t WHERE p = 0", "2,5");
    assert_rows(
        h, "SELECT count(*), min(c), max(c) FROM k.n WHERE p IN (1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15)",
        "15,80,80");
}

static bool waits_for_a_stripe(void *arg) {
    struct eng *eng = arg;
    bool any = false;
    for (int i = 0; i < ENGI_STRIPES; i++) {
        pthread_mutex_lock(&eng->stripes[i].lock);
        any |= eng->stripes[i].n_waiting > 0;
        pthread_mutex_unlock(&eng->stripes[i].lock);
    }
    return any;
}

static bool waits_for_a_guard(void *arg) {
    const struct eng *eng = arg;
    return atomic_load(&local_of(&eng->store)->guards.waiting) > 0;
}

/* The first one's write is in the store; the second one must wait for it, and is counted. */
static void check_wait(struct harness *h, const char *first, const char *second, bool (*waits)(void *),
                       enum eng_stat counter) {
    static struct client clients[2];
    uint64_t before = eng_stat(h->eng, counter);
    for (int n = 0; n < 2; n++) client_open(&clients[n], h, n);
    start_slowly(&clients[0], first);
    clients[1].slow_statement = second; /* let go at once once the first one is */
    start(&clients[1]);
    bool waited = in_time(waits, h->eng) && !atomic_load(&clients[1].done);
    let_go();
    for (int n = 0; n < 2; n++) end(&clients[n]);
    assert_true(waited);
    assert_int_equal(eng_stat(h->eng, counter), before + 1);
}

static void test_who_writes_the_same_row_waits_and_is_counted(void **state) {
    struct harness *h = *state;
    run_ok(h, "INSERT INTO k.t (p, v, w) VALUES (0, 1, 1)");
    check_wait(h, "UPDATE k.t SET v = 2 WHERE p = 0 IF v = 1", "UPDATE k.t SET w = 6 WHERE p = 0 IF v = 2",
               waits_for_a_stripe, ENG_STAT_STRIPE_WAITS);
    assert_rows(h, "SELECT v, w FROM k.t WHERE p = 0", "2,6");
    check_wait(h, "UPDATE k.n SET c = c + 1 WHERE p = 0", "UPDATE k.n SET c = c + 1 WHERE p = 0", waits_for_a_stripe,
               ENG_STAT_STRIPE_WAITS);
    assert_rows(h, "SELECT c FROM k.n WHERE p = 0", "2");
    check_wait(h, "INSERT INTO k.t (p, v, w) VALUES (90, 1, 1)", "UPDATE k.t SET v = 3 WHERE p = 90", waits_for_a_guard,
               ENG_STAT_GUARD_WAITS);
    assert_rows(h, "SELECT v, w FROM k.t WHERE p = 90", "3,1");
}

int main(void) {
#define CASE(test) cmocka_unit_test_setup_teardown(test, setup, harness_teardown)
    const struct CMUnitTest tests[] = {
        CASE(test_fifteen_go_on_while_the_store_takes_its_time_for_one),
        CASE(test_who_writes_the_same_row_waits_and_is_counted),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
