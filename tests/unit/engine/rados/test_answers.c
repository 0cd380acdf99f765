/* An engine on a pool in memory whose answers the test counts, delays and loses. */
#include <errno.h>
#include <pthread.h>
#include <sched.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#include <cmocka.h>

#include "engine/front/eng.h"
#include "engine/rados/jobs.h"
#include "engine/rados/omap_key.h"
#include "engine/rados/read.h"
#include "engine/rados/rados.h"
#include "engine/rados/shard.h"
#include "engine/rados/write.h"
#include "engine/stats.h"
#include "tests/unit/engine/world.h"
#include "twin.h"

enum { TABLE = 16, OTHER = 17, NOW = 1000 };

struct hanging_pool {
    struct eng *eng;
    pthread_mutex_t lock; /* of what follows */
    pthread_cond_t moves;
    char hung[SHARD_NAME]; /* operations on this object wait until the test ends their wait; "": none does */
    int n_hung;            /* that wait now */
    int result;            /* of those that have waited */
    struct err e;
};

static const struct eng_rados place = {.conf = "ceph.conf", .pool = "tally"};

static int answer(void *arg, const char *object) {
    struct hanging_pool *w = arg;
    int rc = 0;
    pthread_mutex_lock(&w->lock);
    if (strcmp(object, w->hung) == 0) {
        w->n_hung++;
        pthread_cond_broadcast(&w->moves);
        while (strcmp(object, w->hung) == 0) pthread_cond_wait(&w->moves, &w->lock);
        w->n_hung--;
        pthread_cond_broadcast(&w->moves);
        rc = w->result;
    }
    pthread_mutex_unlock(&w->lock);
    return rc;
}

static int setup(void **state) {
    struct hanging_pool *w = calloc(1, sizeof(*w));
    pthread_mutex_init(&w->lock, NULL);
    pthread_cond_init(&w->moves, NULL);
    twin_clear();
    twin_answer(answer, w);
    struct eng_options o = {.rados = &place, .durability = ENG_FSYNC, .clock = &clock_real};
    w->eng = eng_open(&o, &w->e);
    assert_non_null(w->eng);
    *state = w;
    return 0;
}

static int teardown(void **state) {
    struct hanging_pool *w = *state;
    eng_close(w->eng);
    twin_answer(NULL, NULL);
    twin_clear();
    free(w);
    return 0;
}

static void hang(struct hanging_pool *w, uint32_t table) {
    pthread_mutex_lock(&w->lock);
    shard_name(&(struct shard_id){.table = table}, w->hung);
    pthread_mutex_unlock(&w->lock);
}

static void await_hung(struct hanging_pool *w, int n) {
    pthread_mutex_lock(&w->lock);
    while (w->n_hung < n) pthread_cond_wait(&w->moves, &w->lock);
    pthread_mutex_unlock(&w->lock);
}

static void end_hang(struct hanging_pool *w, int result) {
    pthread_mutex_lock(&w->lock);
    w->result = result;
    w->hung[0] = 0;
    pthread_cond_broadcast(&w->moves);
    while (w->n_hung) pthread_cond_wait(&w->moves, &w->lock);
    pthread_mutex_unlock(&w->lock);
}

static int write_row(struct eng *eng, uint32_t table, const char *key, int64_t ts, struct err *e) {
    struct eng_part part = part_of(table, key);
    struct eng_batch *b = eng_batch_new(eng);
    struct eng_row row;
    uint64_t seq;
    eng_row_init(&row, ENG_ROW, slice_str("c"));
    row.live_ts = ts;
    int rc = eng_batch_row(b, &part, &row, NULL, e);
    if (!rc) rc = eng_batch_commit(b, &seq, e);
    eng_batch_free(b);
    return rc;
}

/* 1: there is a row, 0, -1 */
static int read_row(struct eng *eng, uint32_t table, const char *key, struct err *e) {
    struct eng_part part = part_of(table, key);
    struct eng_row row;
    struct arena a;
    arena_init(&a, 1 << 10, 0);
    int rc = eng_row_get(eng, ENG_TIER_ANY, &part, ENG_ROW, slice_str("c"), NOW, &a, &row, NULL, e);
    arena_fini(&a);
    return rc;
}

/* ---- conditions ---- */

static void test_a_conditional_write_reads_once_and_writes_once(void **state) {
    struct hanging_pool *w = *state;
    struct eng_store_figures before, after;
    struct eng_part part = part_of(TABLE, "k");
    assert_int_equal(write_row(w->eng, TABLE, "k", 1, &w->e), 0);
    for (int64_t ts = 2; ts < 5; ts++) {
        assert_true(eng_store_figures(w->eng, &before));
        eng_lock(w->eng, &part);
        assert_int_equal(read_row(w->eng, TABLE, "k", &w->e), 1);
        assert_int_equal(write_row(w->eng, TABLE, "k", ts, &w->e), 0);
        eng_unlock(w->eng, &part);
        assert_true(eng_store_figures(w->eng, &after));
        assert_int_equal(after.n[ENG_STORE_READS] - before.n[ENG_STORE_READS], 1);
        assert_int_equal(after.n[ENG_STORE_WRITES] - before.n[ENG_STORE_WRITES], 1);
    }
}

static uint8_t *prefix_of(const struct eng_part *part, uint8_t to[128]) {
    engi_key_row_write(to, part, ENG_STATIC, slice_of("", 0));
    return to;
}

static uint64_t conditional_write(struct hanging_pool *w, const struct eng_part *part, int64_t ts) {
    uint8_t key[128];
    struct slice prefix = slice_of(prefix_of(part, key), ENGI_KEY_PREFIX_MIN + part->key.n);
    struct read_result found;
    struct arena a;
    eng_lock(w->eng, part);
    assert_true(read_row(w->eng, TABLE, "k", &w->e) >= 0);
    assert_int_equal(write_row(w->eng, TABLE, "k", ts, &w->e), 0);
    eng_unlock(w->eng, part);
    arena_init(&a, 1 << 10, 0);
    assert_int_equal(read_partition(rados_of(store_of(w->eng)), prefix, NULL, 0, &a, &found, &w->e), 0);
    assert_int_equal(found.ballot.n, 8);
    uint64_t ballot = load_u64(found.ballot.p);
    arena_fini(&a);
    return ballot;
}

/* A server that has read the ballot before it was forgotten must not find it again. */
static void test_a_ballot_that_was_forgotten_does_not_come_back(void **state) {
    struct hanging_pool *w = *state;
    struct eng_part part = part_of(TABLE, "k");
    struct omap_write forget = {0};
    struct buf key;
    uint8_t prefix[128];
    char object[SHARD_NAME];
    uint64_t first = conditional_write(w, &part, 1);
    assert_int_equal(conditional_write(w, &part, 2), first + 1);
    buf_init(&key, 0);
    omap_key_partition(&key, slice_of(prefix_of(&part, prefix), ENGI_KEY_PREFIX_MIN + part.key.n), OMAP_BALLOT);
    omap_write_remove(&forget, buf_slice(&key));
    shard_name(&(struct shard_id){.table = TABLE}, object);
    assert_int_equal(omap_write_run(&forget, &rados_of(store_of(w->eng))->pool, object), 0);
    omap_write_fini(&forget);
    buf_fini(&key);
    uint64_t again = conditional_write(w, &part, 3);
    assert_true(again != first && again != first + 1 && again != 1);
}

/* ---- locks ---- */

struct locker {
    struct eng *eng;
    const struct eng_part *parts[2];
    pthread_t thread;
};

static void *lock_both(void *arg) {
    struct locker *l = arg;
    eng_lock_many(l->eng, l->parts, 2);
    eng_unlock_many(l->eng, l->parts, 2);
    return NULL;
}

static bool has_waiter(struct eng *eng) {
    bool found = false;
    for (int i = 0; i < ENGI_STRIPES; i++) {
        pthread_mutex_lock(&eng->stripes[i].lock);
        found = found || eng->stripes[i].n_waiting;
        pthread_mutex_unlock(&eng->stripes[i].lock);
    }
    return found;
}

static void *lock_one(void *arg) {
    struct locker *l = arg;
    eng_lock(l->eng, l->parts[0]);
    eng_unlock(l->eng, l->parts[0]);
    return NULL;
}

/* A thread holds one of two partitions, as while its object hangs. One that wants both does not keep the other one from
 * a third thread. */
static void test_a_thread_that_waits_for_a_lock_holds_no_other(void **state) {
    struct hanging_pool *w = *state;
    const struct eng_part parts[] = {part_of(TABLE, "a"), part_of(TABLE, "b")};
    for (int held = 0; held < 2; held++) {
        struct locker both = {.eng = w->eng, .parts = {&parts[0], &parts[1]}}, one = {w->eng, {&parts[1 - held]}, 0};
        eng_lock(w->eng, &parts[held]);
        assert_int_equal(pthread_create(&both.thread, NULL, lock_both, &both), 0);
        while (!has_waiter(w->eng)) sched_yield();
        assert_int_equal(pthread_create(&one.thread, NULL, lock_one, &one), 0);
        pthread_join(one.thread, NULL); /* the innocent */
        eng_unlock(w->eng, &parts[held]);
        pthread_join(both.thread, NULL);
    }
}

/* ---- an object that hangs ---- */

struct client {
    struct hanging_pool *w;
    pthread_t thread;
    bool writes;
    int rc;
    struct err e;
};

static void *ask(void *arg) {
    struct client *c = arg;
    c->rc = c->writes ? write_row(c->w->eng, TABLE, "k", 9, &c->e) : read_row(c->w->eng, TABLE, "k", &c->e);
    return NULL;
}

enum { CLIENTS = 3 * POOL_IN_FLIGHT };

/* A crowd of clients of a table that hangs: only a bounded number of their threads wait, and others are served. */
static void crowd(struct hanging_pool *w, bool writes, int n_waiting) {
    struct client clients[CLIENTS] = {0};
    int refused = 0;
    assert_int_equal(write_row(w->eng, TABLE, "k", 1, &w->e), 0);
    hang(w, TABLE);
    for (int i = 0; i < CLIENTS; i++) {
        clients[i] = (struct client){.w = w, .writes = writes};
        assert_int_equal(pthread_create(&clients[i].thread, NULL, ask, &clients[i]), 0);
    }
    await_hung(w, writes ? 1 : POOL_IN_FLIGHT);
    assert_int_equal(write_row(w->eng, OTHER, "k", 1, &w->e), 0); /* the innocent */
    assert_int_equal(read_row(w->eng, OTHER, "k", &w->e), 1);
    for (int i = 0; refused < CLIENTS - n_waiting; i = (i + 1) % CLIENTS) { /* the others end while it hangs */
        struct timespec now;
        clock_gettime(CLOCK_REALTIME, &now);
        if (!clients[i].thread || pthread_timedjoin_np(clients[i].thread, NULL, &now)) continue;
        clients[i].thread = 0;
        refused++;
        assert_int_equal(clients[i].rc, -1);
        assert_true(clients[i].e.code == ERR_OVERLOADED || (writes && clients[i].e.code == ERR_WRITE_TIMEOUT));
    }
    end_hang(w, -ETIMEDOUT);
    for (int i = 0; i < CLIENTS; i++)
        if (clients[i].thread) {
            pthread_join(clients[i].thread, NULL);
            assert_int_equal(clients[i].rc, -1);
        }
    /* The next one finds out that the object answers again. */
    assert_int_equal(write_row(w->eng, TABLE, "k", 10, &w->e), 0);
    assert_int_equal(read_row(w->eng, TABLE, "k", &w->e), 1);
}

static void test_readers_of_an_object_that_hangs_leave_threads_to_others(void **state) {
    crowd(*state, false, POOL_IN_FLIGHT);
}

static void test_writers_to_an_object_that_hangs_leave_threads_to_others(void **state) {
    crowd(*state, true, WRITE_PATIENT + 1);
}

/* After a timeout one operation at a time is sent to the object. */
static void test_an_object_that_has_timed_out_is_tried_by_one_thread(void **state) {
    struct hanging_pool *w = *state;
    assert_int_equal(write_row(w->eng, TABLE, "k", 1, &w->e), 0);
    for (int i = 0; i < 2; i++) {
        struct client probe = {.w = w};
        hang(w, TABLE);
        assert_int_equal(pthread_create(&probe.thread, NULL, ask, &probe), 0);
        await_hung(w, 1);
        if (i) {
            assert_int_equal(read_row(w->eng, TABLE, "k", &w->e), -1); /* at once */
            assert_int_equal(w->e.code, ERR_OVERLOADED);
            err_clear(&w->e);
        }
        end_hang(w, -ETIMEDOUT);
        pthread_join(probe.thread, NULL);
        assert_int_equal(probe.e.code, ERR_READ_TIMEOUT);
    }
    assert_int_equal(read_row(w->eng, TABLE, "k", &w->e), 1);
    assert_int_equal(read_row(w->eng, TABLE, "k", &w->e), 1);
}

/* Many objects have timed out: the threads that try them again are few, and another object is served. */
static void test_objects_that_have_timed_out_are_tried_by_few_threads(void **state) {
    enum { OBJECTS = 3 * POOL_RETRIES };
    char names[OBJECTS][SHARD_NAME];
    struct pool_gate *g = pool_gate_new();
    (void)state;
    assert_non_null(g);
    for (int i = 0; i < OBJECTS; i++) {
        snprintf(names[i], sizeof(names[i]), "hung.%d", i);
        assert_int_equal(pool_enter(g, names[i]), 0);
        pool_leave(g, names[i], -ETIMEDOUT);
    }
    for (int i = 0; i < OBJECTS; i++) assert_int_equal(pool_enter(g, names[i]), i < POOL_RETRIES ? 0 : -EBUSY);
    for (int i = 0; i < POOL_IN_FLIGHT; i++) assert_int_equal(pool_enter(g, "innocent"), 0);
    for (int i = 0; i < POOL_IN_FLIGHT; i++) pool_leave(g, "innocent", 0);
    pool_leave(g, names[0], -ETIMEDOUT); /* its place goes to another object */
    assert_int_equal(pool_enter(g, names[POOL_RETRIES]), 0);
    assert_int_equal(pool_enter(g, names[0]), -EBUSY);
    for (int i = 1; i <= POOL_RETRIES; i++) pool_leave(g, names[i], 0);
    for (int i = 1; i <= POOL_RETRIES; i++) { /* they answer again */
        for (int k = 0; k < 2; k++) assert_int_equal(pool_enter(g, names[i]), 0);
        for (int k = 0; k < 2; k++) pool_leave(g, names[i], 0);
    }
    pool_gate_free(g);
}

/* ---- the work in the background ---- */

enum { SPLIT_KEYS = 20, MAX_KEYS = 100 };

static struct shard *root_of(struct hanging_pool *w, uint32_t table) {
    return shard_map_get(&rados_of(store_of(w->eng))->shards, &(struct shard_id){.table = table});
}

/* Writes rows of so many partitions. Returns how many were written. */
static int fill(struct hanging_pool *w, uint32_t table, int n) {
    int i = 0;
    char key[16];
    for (; i < n; i++) {
        snprintf(key, sizeof(key), "%d", i);
        if (write_row(w->eng, table, key, 1, &w->e)) break;
    }
    return i;
}

static void test_work_on_a_shard_that_hangs_takes_one_thread(void **state) {
    struct hanging_pool *w = *state;
    struct rados *s = rados_of(store_of(w->eng));
    struct shard *other = root_of(w, OTHER);
    char key[64];
    assert_int_equal(fill(w, TABLE, SPLIT_KEYS), SPLIT_KEYS);
    hang(w, TABLE);
    jobs_add_split(s, root_of(w, TABLE));
    await_hung(w, 1);
    for (int i = 0; i < 2 * RADOS_THREADS; i++) {
        struct eng_part part = part_of(TABLE, "k");
        int n = snprintf(key, sizeof(key), "%d", i);
        uint8_t record[128];
        engi_key_row_write(record, &part, ENG_ROW, slice_of(key, (size_t)n));
        jobs_add_fold(s, slice_of(record, engi_key_row_size(&part, ENG_ROW, slice_of(key, (size_t)n))));
    }
    s->o.split_keys = SPLIT_KEYS;
    assert_int_equal(fill(w, OTHER, 2 * SPLIT_KEYS), 2 * SPLIT_KEYS);
    while (!atomic_load(&other->split)) sched_yield(); /* the innocent */
    assert_int_equal(w->n_hung, 1);
    end_hang(w, 0);
}

/* An ordinary shard that fills up faster than it is split is no fault of the client's. */
static void test_a_full_shard_is_overloaded_until_it_is_split(void **state) {
    struct hanging_pool *w = *state;
    struct rados *s = rados_of(store_of(w->eng));
    struct shard *root = root_of(w, TABLE);
    s->o.split_keys = SPLIT_KEYS;
    s->o.max_keys = MAX_KEYS;
    atomic_store(&root->will_split, true); /* the work in the background is late */
    assert_int_equal(fill(w, TABLE, 2 * MAX_KEYS), MAX_KEYS);
    assert_int_equal(w->e.code, ERR_OVERLOADED);
    err_clear(&w->e);
    assert_int_equal(write_row(w->eng, OTHER, "k", 1, &w->e), 0);
    atomic_store(&root->will_split, false);
    while (write_row(w->eng, TABLE, "late", 1, &w->e)) {
        assert_int_equal(w->e.code, ERR_OVERLOADED);
        err_clear(&w->e);
        sched_yield();
    }
    assert_true(atomic_load(&root->split));
}

/* ---- the time of a write ---- */

/* A write whose time has passed before it is sent is not sent (Q26): a tombstone may be gone by then (Q14). */
static void test_a_write_that_has_waited_too_long_is_not_sent(void **state) {
    struct hanging_pool *w = *state;
    struct shard *root = root_of(w, TABLE);
    assert_int_equal(fill(w, TABLE, 1), 1);
    struct client client = {.w = w, .writes = true};
    pthread_mutex_lock(&root->lock);
    root->busy = true; /* by an operation of this thread */
    pthread_mutex_unlock(&root->lock);
    assert_int_equal(pthread_create(&client.thread, NULL, ask, &client), 0);
    for (bool queued = false; !queued; sched_yield()) {
        pthread_mutex_lock(&root->lock);
        if ((queued = root->first != NULL)) {
            root->first->send_until_us = 0;
            root->busy = false;
            pthread_cond_broadcast(&root->turn);
        }
        pthread_mutex_unlock(&root->lock);
    }
    pthread_join(client.thread, NULL);
    assert_int_equal(client.rc, -1);
    assert_int_equal(client.e.code, ERR_WRITE_TIMEOUT);
    assert_int_equal(read_row(w->eng, TABLE, "k", &w->e), 0);
}

int main(void) {
#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)
    const struct CMUnitTest tests[] = {
        TEST(test_a_conditional_write_reads_once_and_writes_once),
        TEST(test_a_ballot_that_was_forgotten_does_not_come_back),
        TEST(test_a_thread_that_waits_for_a_lock_holds_no_other),
        TEST(test_readers_of_an_object_that_hangs_leave_threads_to_others),
        TEST(test_writers_to_an_object_that_hangs_leave_threads_to_others),
        TEST(test_an_object_that_has_timed_out_is_tried_by_one_thread),
        TEST(test_objects_that_have_timed_out_are_tried_by_few_threads),
        TEST(test_work_on_a_shard_that_hangs_takes_one_thread),
        TEST(test_a_full_shard_is_overloaded_until_it_is_split),
        TEST(test_a_write_that_has_waited_too_long_is_not_sent),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
