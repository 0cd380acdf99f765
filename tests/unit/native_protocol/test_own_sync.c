/* A loop whose clients all wait for a sync makes it itself; where anybody may want something of it
 * meanwhile, or syncs take long, the commit thread does. */
#include <sys/socket.h>
#include <unistd.h>

#include "engine/front/eng.h"
#include "engine/local/rocksdb/kv.h"
#include "engine/stats.h"
#include "harness.h"

enum { CLIENTS = 4, MB = 1 << 20, SOON_US = 100, LATER_US = 50000, LONG_US = 5000 };

static struct {
    pthread_t loop;
    _Atomic unsigned here, elsewhere; /* syncs, by thread */
    _Atomic bool fails;
} disk;

struct world {
    struct harness h;
    struct np_conn *conns[CLIENTS];
    int peers[CLIENTS];
    int16_t stream;
};

/* The linker has this function called in place of kv_sync. */
int __wrap_kv_sync(struct kv *kv, bool to_disk, struct err *e);
int __wrap_kv_sync(struct kv *kv, bool to_disk, struct err *e) {
    (void)kv, (void)to_disk;
    atomic_fetch_add(pthread_equal(pthread_self(), disk.loop) ? &disk.here : &disk.elsewhere, 1);
    return atomic_load(&disk.fails) ? err_set(e, ERR_SERVER, "the disk is gone") : 0;
}

static struct engi_commit *commit_of(struct world *w) { return &w->h.options.eng->commit; }

/* As if each of n had been answered by a sync that took so long. */
static void pretend(struct world *w, uint64_t n, int64_t sync_us, int64_t wait_us) {
    struct engi_commit *c = commit_of(w);
    pthread_mutex_lock(&c->lock);
    c->gather = (struct engi_gather){.sync_us = sync_us, .asked = atomic_load(&c->asked)};
    if (n) c->gather.enough = c->gather.asked + n;
    c->gather.until_us = clock_machine_us(&clock_real) + wait_us;
    pthread_mutex_unlock(&c->lock);
}

static void on_durable(void *arg) { npi_durability_moved(arg); }

static void open_world(struct world *w) {
    disk.loop = pthread_self();
    atomic_store(&disk.fails, false);
    harness_open(&w->h, MB, 64 * MB);
    struct eng *eng = w->h.options.eng;
    pthread_mutex_lock(&eng->commit.turn); /* so that the commit thread is not in the store */
    eng->durability = ENG_FSYNC;
    pthread_mutex_unlock(&eng->commit.turn);
    eng_on_durable(eng, on_durable, w->h.loop.durability);
    for (int i = 0; i < CLIENTS; i++) {
        w->conns[i] = harness_connect(&w->h, &w->peers[i]);
        harness_startup(&w->h, w->peers[i], 4);
    }
    atomic_store(&disk.here, 0);
    atomic_store(&disk.elsewhere, 0);
}

static void close_world(struct world *w) {
    for (int i = 0; i < CLIENTS; i++) {
        npi_conn_unref(w->conns[i]);
        close(w->peers[i]);
    }
    harness_close(&w->h);
}

static void write_row(struct world *w, int client) {
    struct buf b;
    buf_init(&b, 0);
    harness_query(&b, w->stream++, slice_str("h"));
    assert_int_equal(send(w->peers[client], b.p, b.n, MSG_NOSIGNAL), (ssize_t)b.n);
    buf_fini(&b);
}

/* The opcode of the next answer, which may take a while; the loop does nothing but what it is woken for. */
static int answer_to(struct world *w, int client) {
    struct buf b;
    buf_init(&b, 0);
    while (b.n < NP_HEADER) {
        assert_true(harness_receive(w->peers[client], NP_HEADER, &b));
        if (!b.n) ev_run(w->h.loop.ev, EVRUN_ONCE);
    }
    int opcode = b.p[4];
    uint32_t rest = load_u32(b.p + 5);
    assert_true(harness_receive(w->peers[client], rest, &b));
    assert_int_equal(b.n, NP_HEADER + rest);
    buf_fini(&b);
    return opcode;
}

/* Asserts that the loop makes the one sync of a scenario. The commit thread looks after the log once
 * a second; a loop that wants to sync at that moment leaves it to the commit thread, and then the
 * scenario is played again. */
static void assert_loop_syncs(void (*play)(struct world *w)) {
    enum { TRIES = 50 };
    for (int i = 0; i < TRIES; i++) {
        struct world w = {0};
        open_world(&w);
        play(&w);
        unsigned here = atomic_load(&disk.here), elsewhere = atomic_load(&disk.elsewhere);
        assert_int_equal(eng_stat(w.h.options.eng, ENG_STAT_SYNCS_HERE), here);
        assert_false(w.h.loop.durability->unsynced);
        close_world(&w);
        if (here == 1 && elsewhere == 0) return;
        assert_int_equal(here, 0);
    }
    fail_msg("the commit thread made each of %d syncs", TRIES);
}

static void write_together(struct world *w) {
    pretend(w, 0, SOON_US, 0);
    for (int i = 0; i < CLIENTS; i++) write_row(w, i);
    ev_run(w->h.loop.ev, EVRUN_NOWAIT); /* all of them arrive */
    for (int i = 0; i < CLIENTS; i++) assert_int_equal(answer_to(w, i), NP_RESULT);
}

static void test_a_loop_whose_clients_all_wait_syncs_by_itself(void **state) {
    (void)state;
    assert_loop_syncs(write_together);
}

static void come_back_one_by_one(struct world *w) {
    pretend(w, CLIENTS, SOON_US, 60 * 1000000);
    for (int i = 0; i < CLIENTS; i++) {
        assert_int_equal(atomic_load(&disk.here), 0);
        write_row(w, i);
        ev_run(w->h.loop.ev, EVRUN_NOWAIT);
    }
    for (int i = 0; i < CLIENTS; i++) assert_int_equal(answer_to(w, i), NP_RESULT);
}

static void test_who_comes_back_while_others_do_shares_its_sync(void **state) {
    (void)state;
    assert_loop_syncs(come_back_one_by_one);
}

/* The loop sleeps meanwhile: nobody else comes, and the commit thread waits as long as it may. */
static void test_who_does_not_come_back_is_waited_for_by_the_commit_thread(void **state) {
    (void)state;
    struct world w = {0};
    open_world(&w);
    pretend(&w, CLIENTS, SOON_US, LATER_US);
    for (int i = 1; i < CLIENTS; i++) write_row(&w, i);
    int64_t begun_us = clock_machine_us(&clock_real);
    for (int i = 1; i < CLIENTS; i++) assert_int_equal(answer_to(&w, i), NP_RESULT);
    assert_true(clock_machine_us(&clock_real) - begun_us >= LATER_US / 2);
    assert_int_equal(atomic_load(&disk.here), 0);
    assert_int_equal(atomic_load(&disk.elsewhere), 1);
    close_world(&w);
}

static void write_without_the_first(struct world *w) {
    pretend(w, 0, SOON_US, 0);
    for (int i = 1; i < CLIENTS; i++) write_row(w, i); /* the first has just begun and may ask for anything */
    for (int i = 1; i < CLIENTS; i++) assert_int_equal(answer_to(w, i), NP_RESULT);
    assert_int_equal(atomic_load(&disk.here), 0);
    assert_true(atomic_load(&disk.elsewhere) >= 1);
    harness_pass(&w->h, 3); /* it has been quiet since */
    atomic_store(&disk.elsewhere, 0);
    pretend(w, 0, SOON_US, 0);
    for (int i = 1; i < CLIENTS; i++) write_row(w, i);
    for (int i = 1; i < CLIENTS; i++) assert_int_equal(answer_to(w, i), NP_RESULT);
}

static void test_who_was_heard_lately_is_not_kept_waiting(void **state) {
    (void)state;
    assert_loop_syncs(write_without_the_first);
}

static void test_a_sync_that_takes_long_is_the_commit_threads(void **state) {
    (void)state;
    struct world w = {0};
    open_world(&w);
    pretend(&w, 0, LONG_US, 0);
    for (int i = 0; i < CLIENTS; i++) write_row(&w, i);
    for (int i = 0; i < CLIENTS; i++) assert_int_equal(answer_to(&w, i), NP_RESULT);
    assert_int_equal(atomic_load(&disk.here), 0);
    assert_true(atomic_load(&disk.elsewhere) >= 1);
    close_world(&w);
}

/* Another thread that syncs: from the first to the second meeting. */
struct other {
    pthread_mutex_t *turn;
    pthread_barrier_t met;
};

static void *take_turn(void *arg) {
    struct other *o = arg;
    pthread_mutex_lock(o->turn);
    pthread_barrier_wait(&o->met);
    pthread_barrier_wait(&o->met);
    pthread_mutex_unlock(o->turn);
    return NULL;
}

static void test_while_another_thread_syncs_the_loop_does_not(void **state) {
    (void)state;
    struct world w = {0};
    pthread_t thread;
    open_world(&w);
    struct other other = {.turn = &commit_of(&w)->turn};
    pthread_barrier_init(&other.met, NULL, 2);
    assert_int_equal(pthread_create(&thread, NULL, take_turn, &other), 0);
    pthread_barrier_wait(&other.met);
    pretend(&w, 0, SOON_US, 0);
    for (int i = 0; i < CLIENTS; i++) write_row(&w, i);
    for (int i = 0; i < 4; i++) ev_run(w.h.loop.ev, EVRUN_NOWAIT);
    assert_int_equal(atomic_load(&disk.here), 0);
    pthread_barrier_wait(&other.met);
    pthread_join(thread, NULL);
    pthread_barrier_destroy(&other.met);
    for (int i = 0; i < CLIENTS; i++) assert_int_equal(answer_to(&w, i), NP_RESULT);
    assert_int_equal(atomic_load(&disk.here), 0);
    close_world(&w);
}

static void write_without_a_disk(struct world *w) {
    pretend(w, 0, SOON_US, 0);
    atomic_store(&disk.fails, true);
    for (int i = 0; i < CLIENTS; i++) write_row(w, i);
    for (int i = 0; i < CLIENTS; i++) assert_int_equal(answer_to(w, i), NP_ERROR);
    atomic_store(&disk.fails, false);
}

static void test_a_sync_of_the_loop_that_fails_fails_its_writes(void **state) {
    (void)state;
    assert_loop_syncs(write_without_a_disk);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_a_loop_whose_clients_all_wait_syncs_by_itself),
        cmocka_unit_test(test_who_comes_back_while_others_do_shares_its_sync),
        cmocka_unit_test(test_who_does_not_come_back_is_waited_for_by_the_commit_thread),
        cmocka_unit_test(test_who_was_heard_lately_is_not_kept_waiting),
        cmocka_unit_test(test_a_sync_that_takes_long_is_the_commit_threads),
        cmocka_unit_test(test_while_another_thread_syncs_the_loop_does_not),
        cmocka_unit_test(test_a_sync_of_the_loop_that_fails_fails_its_writes),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
