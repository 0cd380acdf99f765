/* Guards of rows and of partitions. */
#include <semaphore.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/fault.h"
#include "base/murmur3.h"
#include "engine/local/local.h"
#include "engine/rows/key.h"
#include "engine/stats.h"

static int setup(void **state) {
    struct engi_guards *s = calloc(1, sizeof(*s));
    engi_guards_init(s);
    return *state = s, 0;
}

static int teardown(void **state) {
    engi_guards_fini(*state);
    free(*state);
    return 0;
}

static void test_only_the_lone_sharer_claims(void **state) {
    struct engi_guards *s = *state;
    engi_guard_share(s, 7);
    engi_guard_share(s, 7 + ENGI_GUARDS); /* another row of the slot */
    assert_false(engi_guard_upgrade(s, 7));
    engi_guard_leave(s, 7);
    assert_true(engi_guard_upgrade(s, 7));
    assert_false(engi_guard_upgrade(s, 7));
    assert_false(engi_guard_try_exclusive(s, 7));
    assert_true(engi_guard_try_share(s, 8)); /* a neighbour is free */
    assert_false(engi_guard_try_exclusive(s, 8));
    engi_guard_leave(s, 8);
    engi_guard_release(s, 7);
    assert_true(engi_guard_try_exclusive(s, 7));
    engi_guard_release(s, 7);
    assert_int_equal(s->waits, 0);
}

static void test_newest_only_rises(void **state) {
    struct engi_guards *s = *state;
    engi_guard_share(s, 7);
    engi_guard_raise(s, 7, 10);
    engi_guard_raise(s, 7, 5);
    assert_false(engi_guard_before(s, 7, 10));
    assert_true(engi_guard_before(s, 7, 11));
    engi_guard_leave(s, 7);
}

static void *share_and_leave(void *arg) {
    struct engi_guards *s = arg;
    engi_guard_share(s, 7);
    engi_guard_leave(s, 7);
    return NULL;
}

static void test_sharers_wait_for_a_claim_and_are_counted(void **state) {
    struct engi_guards *s = *state;
    pthread_t threads[3];
    assert_true(engi_guard_try_exclusive(s, 7));
    for (int i = 0; i < 3; i++) assert_int_equal(pthread_create(&threads[i], NULL, share_and_leave, s), 0);
    while (atomic_load(&s->waiting) < 3) usleep(100);
    engi_guard_release(s, 7);
    for (int i = 0; i < 3; i++) pthread_join(threads[i], NULL);
    assert_int_equal(s->waits, 3);
    assert_true(s->waited_us > 0);
    assert_true(engi_guard_try_exclusive(s, 7));
    engi_guard_release(s, 7);
}

static void test_claims_ended_together_wake_all_waiting_writers(void **state) {
    struct engi_guards *s = *state;
    pthread_t threads[3];
    for (uint64_t hash = 5; hash < 8; hash++) assert_true(engi_guard_try_exclusive(s, hash));
    for (int i = 0; i < 3; i++) assert_int_equal(pthread_create(&threads[i], NULL, share_and_leave, s), 0);
    while (atomic_load(&s->waiting) < 3) usleep(100);
    for (uint64_t hash = 5; hash < 8; hash++) engi_guard_end_exclusive(s, hash);
    engi_guards_wake(s);
    for (int i = 0; i < 3; i++) pthread_join(threads[i], NULL);
    assert_int_equal(s->waits, 3);
    assert_int_equal(atomic_load(&s->waiting), 0);
}

/* ---- commits that meet a claim ---- */

enum { TABLE = 20, NOW = 1000 };

struct world {
    struct eng *eng;
    struct eng_batch *batch;
    _Atomic int rc; /* of the commit; 1: it is under way */
    struct err e;
};

static struct local *own(const struct world *w) { return local_of(&w->eng->store); }

static int setup_engine(void **state) {
    struct world *w = calloc(1, sizeof(*w));
    w->eng = eng_open(&(struct eng_options){.durability = ENG_FSYNC, .clock = &clock_real}, &w->e);
    w->batch = eng_batch_new(w->eng);
    return *state = w, 0;
}

static int teardown_engine(void **state) {
    struct world *w = *state;
    eng_batch_free(w->batch);
    eng_close(w->eng);
    free(w);
    return 0;
}

static struct eng_part the_part(void) {
    struct slice key = slice_str("p");
    return (struct eng_part){.table = TABLE, .key = key, .token = murmur3_token(key)};
}

static uint64_t hash_of(const char *ck) {
    struct eng_part part = the_part();
    struct buf key;
    buf_init(&key, 0);
    engi_key_row(&key, &part, ENG_ROW, slice_str(ck));
    uint64_t hash = murmur3_hash(buf_slice(&key));
    buf_fini(&key);
    return hash;
}

static void add(struct world *w, const char *ck, int64_t ts) {
    struct eng_part part = the_part();
    struct eng_cell cell = {.ts = ts, .expiry = ENG_NO_EXPIRY, .value = slice_str(ck)};
    struct eng_row row;
    eng_row_init(&row, ENG_ROW, slice_str(ck));
    row.live_ts = ts;
    row.covers_below = 1;
    row.n_cells = 1;
    row.cells = &cell;
    assert_int_equal(eng_batch_row(w->batch, &part, &row, NULL, &w->e), 0);
}

/* As statements do it: {a}, {b, c}, {d}. */
static void add_three_statements(struct world *w) {
    for (const char *at = "a bc d"; *at; at++) {
        if (*at == ' ') continue;
        bool begins = at[0] != 'c', ends = at[0] != 'b';
        if (begins) eng_batch_savepoint(w->batch);
        add(w, (char[2]){*at}, 10);
        if (ends) eng_batch_release(w->batch);
    }
}

static bool is_there(struct world *w, const char *ck) {
    struct eng_part part = the_part();
    struct arena a;
    struct eng_row row;
    arena_init(&a, 256, 0);
    int got = eng_row_get(w->eng, ENG_TIER_ANY, &part, ENG_ROW, slice_str(ck), NOW, &a, &row, NULL, &w->e);
    arena_fini(&a);
    return got == 1;
}

static void *commit(void *arg) {
    struct world *w = arg;
    uint64_t seq;
    w->rc = eng_batch_commit(w->batch, &seq, &w->e);
    return NULL;
}

/* Another thread that holds the guard of a row exclusively, as a commit does that puts the row. */
static struct {
    pthread_t thread;
    sem_t taken, done;
    struct engi_guards *guards;
    uint64_t hash;
    bool took;
} other;

static void *hold(void *arg) {
    (void)arg;
    other.took = engi_guard_try_exclusive(other.guards, other.hash);
    sem_post(&other.taken);
    sem_wait(&other.done);
    if (other.took) engi_guard_release(other.guards, other.hash);
    return NULL;
}

static void other_takes(struct world *w, const char *ck) {
    sem_init(&other.taken, 0, 0);
    sem_init(&other.done, 0, 0);
    other.guards = &own(w)->guards;
    other.hash = hash_of(ck);
    assert_int_equal(pthread_create(&other.thread, NULL, hold, NULL), 0);
    sem_wait(&other.taken);
    assert_true(other.took);
}

static void other_releases(void) {
    sem_post(&other.done);
    pthread_join(other.thread, NULL);
    sem_destroy(&other.taken);
    sem_destroy(&other.done);
}

static void test_a_commit_writes_unclaimed_rows_before_it_waits(void **state) {
    struct world *w = *state;
    pthread_t thread;
    other_takes(w, "c");
    add_three_statements(w);
    w->rc = 1;
    assert_int_equal(pthread_create(&thread, NULL, commit, w), 0);
    while (!is_there(w, "a") || !is_there(w, "d") || !atomic_load(&own(w)->guards.waiting)) usleep(100);
    assert_true(w->rc == 1 && !is_there(w, "b") && !is_there(w, "c"));
    other_releases();
    pthread_join(thread, NULL);
    assert_int_equal(w->rc, 0);
    assert_true(is_there(w, "b") && is_there(w, "c") && eng_batch_empty(w->batch));
    assert_int_equal(eng_stat(w->eng, ENG_STAT_GUARD_WAITS), 1);
    assert_int_equal(eng_stat(w->eng, ENG_STAT_PUTS), 4);
    for (const char *ck = "abcd"; *ck; ck++) { /* nothing is left claimed or shared */
        uint64_t hash = hash_of((char[2]){*ck});
        assert_true(engi_guard_try_exclusive(&own(w)->guards, hash));
        engi_guard_release(&own(w)->guards, hash);
    }
}

static int try_commit(struct world *w) {
    uint64_t seq;
    return eng_batch_try_commit(w->batch, &seq, &w->e);
}

static void count_up(void *arg) { atomic_fetch_add((_Atomic int *)arg, 1); }

static void test_a_commit_that_may_not_wait_leaves_claimed_rows_for_later(void **state) {
    struct world *w = *state;
    _Atomic int told = 0;
    eng_batch_on_rows_free(w->batch, count_up, &told);
    other_takes(w, "c");
    add_three_statements(w);
    for (int i = 0; i < 3; i++) assert_int_equal(try_commit(w), ENG_ROWS_HELD);
    assert_true(is_there(w, "a") && is_there(w, "d") && !is_there(w, "b") && !is_there(w, "c") &&
                !eng_batch_empty(w->batch));
    add(w, "e", 10);
    assert_int_equal(try_commit(w), ENG_ROWS_HELD);
    assert_true(is_there(w, "e"));
    told = 0; /* the end of its own claims has told it, too */
    other_releases();
    assert_int_equal(told, 1);
    fault_arm(FAULT_KV_BUSY, 1);
    assert_int_equal(try_commit(w), ENG_BUSY);
    assert_true(!is_there(w, "b") && !eng_batch_empty(w->batch));
    assert_int_equal(try_commit(w), 0);
    assert_true(is_there(w, "b") && is_there(w, "c") && eng_batch_empty(w->batch));
    assert_int_equal(eng_stat(w->eng, ENG_STAT_GUARD_WAITS), 0);
    assert_int_equal(eng_stat(w->eng, ENG_STAT_PUTS) + eng_stat(w->eng, ENG_STAT_MERGES), 5); /* each once */
    assert_int_equal(told, 1);
    assert_int_equal(atomic_load(&own(w)->guards.waiting), 0);
}

static void *end_claim_when_one_waits(void *arg) {
    struct world *w = arg;
    while (!atomic_load(&own(w)->guards.waiting)) usleep(100);
    other_releases();
    return NULL;
}

static void test_a_commit_that_was_put_off_for_long_waits(void **state) {
    struct world *w = *state;
    _Atomic int told = 0;
    pthread_t thread;
    eng_batch_on_rows_free(w->batch, count_up, &told);
    other_takes(w, "c");
    add_three_statements(w);
    assert_int_equal(try_commit(w), ENG_ROWS_HELD);
    other_releases();
    other_takes(w, "c");
    usleep(ENG_ROWS_HELD_US + 1000);
    assert_int_equal(pthread_create(&thread, NULL, end_claim_when_one_waits, w), 0);
    assert_int_equal(try_commit(w), 0);
    pthread_join(thread, NULL);
    assert_int_equal(told, 1);
    assert_int_equal(eng_stat(w->eng, ENG_STAT_GUARD_WAITS), 1);
}

static void test_a_freed_batch_is_not_notified(void **state) {
    struct world *w = *state;
    _Atomic int told = 0;
    struct eng_batch *b = w->batch;
    eng_batch_on_rows_free(b, count_up, &told);
    other_takes(w, "a");
    add(w, "a", 10);
    assert_int_equal(try_commit(w), ENG_ROWS_HELD);
    w->batch = eng_batch_new(w->eng);
    eng_batch_free(b);
    other_releases();
    assert_int_equal(told, 0);
    assert_int_equal(atomic_load(&own(w)->guards.waiting), 0);
}

/* ---- a put that replaces its row ---- */

static struct {
    struct world *w;
    bool armed;
} between;

bool __real_engi_guard_upgrade(struct engi_guards *s, uint64_t hash);
bool __wrap_engi_guard_upgrade(struct engi_guards *s, uint64_t hash);

/* Writes a cell of a column that the schema of the put does not have, with an older timestamp. */
static void *write_new_column(void *arg) {
    struct world *w = arg;
    struct world writer = {.eng = w->eng, .batch = eng_batch_new(w->eng)};
    struct eng_part part = the_part();
    struct eng_cell cell = {.column = 1, .ts = 5, .expiry = ENG_NO_EXPIRY, .value = slice_str("new")};
    struct eng_row row;
    eng_row_init(&row, ENG_ROW, slice_str("a"));
    row.n_cells = 1;
    row.cells = &cell;
    assert_int_equal(eng_batch_row(writer.batch, &part, &row, NULL, &writer.e), 0);
    commit(&writer);
    assert_int_equal(writer.rc, 0);
    eng_batch_free(writer.batch);
    return NULL;
}

/* Before a commit holds a guard exclusively, another one writes. */
bool __wrap_engi_guard_upgrade(struct engi_guards *s, uint64_t hash) {
    pthread_t thread;
    bool now = between.armed;
    between.armed = false;
    if (now && !pthread_create(&thread, NULL, write_new_column, between.w)) pthread_join(thread, NULL);
    return __real_engi_guard_upgrade(s, hash);
}

static void test_a_put_keeps_a_new_column_that_was_written_before_it_was_exclusive(void **state) {
    struct world *w = *state;
    struct eng_part part = the_part();
    struct arena a;
    struct eng_row row;
    between.w = w;
    between.armed = true;
    add(w, "a", 10);
    commit(w);
    assert_int_equal(w->rc, 0);
    assert_false(between.armed);
    arena_init(&a, 256, 0);
    assert_int_equal(eng_row_get(w->eng, ENG_TIER_ANY, &part, ENG_ROW, slice_str("a"), NOW, &a, &row, NULL, &w->e), 1);
    assert_int_equal(row.n_cells, 2);
    assert_int_equal(row.cells[1].column, 1);
    arena_fini(&a);
}

/* ---- guards of partitions ---- */

static const uint8_t a_prefix[18] = {0, 0, 0, 9, 1, 2, 3, 4, 5, 6, 7, 8, 0, 4, 'p', 'q', 'r', 's'};

static uint64_t partition_state(struct engi_guards *s) {
    return atomic_load(engi_partition_guard(s, slice_of(a_prefix, sizeof(a_prefix))));
}

static void test_steps_of_a_partition_exclude_each_other_and_no_writer(void **state) {
    struct engi_guards *s = *state;
    struct slice prefix = slice_of(a_prefix, sizeof(a_prefix));
    engi_partition_share(s, prefix);
    assert_true(engi_partition_fragment(s, prefix, false));
    assert_false(engi_partition_fragment(s, prefix, false));
    engi_partition_share(s, prefix);
    assert_true(engi_partition_is_fragmenting(s, prefix));
    engi_partition_leave(s, prefix);
    engi_partition_end_fragment(s, prefix);
    assert_false(engi_partition_is_fragmenting(s, prefix));
    assert_true(engi_partition_is_shared(s, prefix));
    engi_partition_leave(s, prefix);
    assert_true(engi_guard_is_free(partition_state(s)));
}

static void test_each_write_and_each_step_changes_the_state_of_the_partition(void **state) {
    struct engi_guards *s = *state;
    struct slice prefix = slice_of(a_prefix, sizeof(a_prefix));
    uint64_t first = partition_state(s);
    engi_partition_share(s, prefix);
    engi_partition_leave(s, prefix);
    uint64_t second = partition_state(s);
    (void)engi_partition_fragment(s, prefix, true);
    engi_partition_end_fragment(s, prefix);
    assert_true(first != second && second != partition_state(s) && first != partition_state(s));
}

static void *fragment_once(void *arg) {
    struct engi_guards *s = arg;
    struct slice prefix = slice_of(a_prefix, sizeof(a_prefix));
    (void)engi_partition_fragment(s, prefix, true);
    engi_partition_end_fragment(s, prefix);
    return NULL;
}

static void test_a_step_waits_for_the_one_before(void **state) {
    struct engi_guards *s = *state;
    struct slice prefix = slice_of(a_prefix, sizeof(a_prefix));
    pthread_t thread;
    (void)engi_partition_fragment(s, prefix, true);
    assert_int_equal(pthread_create(&thread, NULL, fragment_once, s), 0);
    while (!atomic_load(&s->waiting)) usleep(100);
    engi_partition_end_fragment(s, prefix);
    pthread_join(thread, NULL);
    assert_true(engi_guard_is_free(partition_state(s)));
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_steps_of_a_partition_exclude_each_other_and_no_writer, setup, teardown),
        cmocka_unit_test_setup_teardown(test_each_write_and_each_step_changes_the_state_of_the_partition, setup,
                                        teardown),
        cmocka_unit_test_setup_teardown(test_a_step_waits_for_the_one_before, setup, teardown),
        cmocka_unit_test_setup_teardown(test_only_the_lone_sharer_claims, setup, teardown),
        cmocka_unit_test_setup_teardown(test_newest_only_rises, setup, teardown),
        cmocka_unit_test_setup_teardown(test_sharers_wait_for_a_claim_and_are_counted, setup, teardown),
        cmocka_unit_test_setup_teardown(test_claims_ended_together_wake_all_waiting_writers, setup, teardown),
        cmocka_unit_test_setup_teardown(test_a_commit_writes_unclaimed_rows_before_it_waits, setup_engine,
                                        teardown_engine),
        cmocka_unit_test_setup_teardown(test_a_commit_that_may_not_wait_leaves_claimed_rows_for_later, setup_engine,
                                        teardown_engine),
        cmocka_unit_test_setup_teardown(test_a_commit_that_was_put_off_for_long_waits, setup_engine, teardown_engine),
        cmocka_unit_test_setup_teardown(test_a_freed_batch_is_not_notified, setup_engine, teardown_engine),
        cmocka_unit_test_setup_teardown(test_a_put_keeps_a_new_column_that_was_written_before_it_was_exclusive,
                                        setup_engine, teardown_engine),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
