/* Dead rows and deletions on Ceph give their space back, no answer changes, and no pass brings back
 * what another one has removed. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

#include <cmocka.h>
#include <pthread.h>

#include "engine/rados/batchlog.h"
#include "engine/rados/omap_key.h"
#include "engine/rados/pieces.h"
#include "engine/rados/reclaim.h"
#include "engine/table.h"
#include "harness.h"
#include "pair.h"

/* Shards split at 60 keys. */
static int setup(void **state) { return pair_setup(state, PARTITIONS, 60); }
/* Shards are as large as those of a server. */
static int setup_large(void **state) { return pair_setup(state, PARTITIONS, 0); }

static void compare_all(struct pair *p) {
    pair_compare_table(p);
    for (uint32_t i = 0; i < PARTITIONS; i++) pair_compare_partition(p, i);
}

static void delete_everything(struct pair *p) {
    for (uint32_t i = 0; i < PARTITIONS; i++) {
        struct eng_part part = pair_part(p, i);
        for (int k = 0; k < 2; k++) {
            uint64_t seq;
            struct eng_batch *b = eng_batch_new(pair_engine(p, k));
            assert_int_equal(eng_batch_delete_partition(b, &part, 1 << 20, p->now, NULL, &p->e), 0);
            assert_int_equal(eng_batch_commit(b, &seq, &p->e), 0);
            eng_batch_free(b);
        }
    }
}

/* Data expire, gc_grace passes, and a pass is made in between: both engines still answer the same, and the cluster
 * keeps nothing that is dead. */
static void test_reclaiming_frees_space_and_changes_no_results(void **state) {
    struct pair *p = *state;
    pair_set_gc_grace(p);
    for (int era = 0; era < 6; era++) {
        pair_write_both(p, 300);
        p->now += era % 2 ? 60 : GC_GRACE + 200;
        uint64_t before = pair_keys(p);
        pair_reclaim(p, p->local);
        pair_reclaim(p, era % 3 ? p->rados : p->other);
        assert_true(pair_keys(p) < before);
        compare_all(p);
        pair_reclaim(p, p->rados); /* removes the own keys of empty partitions */
        uint64_t after = pair_keys(p);
        pair_reclaim(p, p->rados);
        assert_int_equal(pair_keys(p), after); /* nothing was left to do */
    }
    pair_assert_found(p, true, NULL);
    delete_everything(p);
    pair_reclaim(p, p->rados);
    assert_int_equal(pair_keys(p), 2 * PARTITIONS); /* the deletions, and marks */
    p->now += GC_GRACE + 1;
    for (int i = 0; i < 2; i++) pair_reclaim(p, p->rados);
    pair_reclaim(p, p->local);
    assert_int_equal(pair_keys(p), 0);
    compare_all(p);
}

struct writer {
    struct pair pair;
    pthread_t thread;
    int rounds;
    struct statement *written;
    bool reclaims;
};

static void *write_beside(void *arg) {
    struct writer *w = arg;
    for (int i = 0; i < w->rounds; i++) {
        if (w->reclaims) {
            pair_reclaim(&w->pair, i % 2 ? w->pair.rados : w->pair.other);
            continue;
        }
        pair_draw_statement(&w->pair, &w->written[i]);
        w->written[i].row.cells = w->written[i].cells;
        pair_commit(&w->pair, w->pair.other, &w->written[i], 1, false);
    }
    return NULL;
}

/* Two passes at the same time beside two writers, whose deletions are new. */
static void test_reclaiming_while_others_write_loses_no_rows(void **state) {
    enum { THREADS = 4, WRITES = 250, PASSES = 6 };
    struct pair *p = *state;
    struct writer *w = calloc(THREADS, sizeof(*w));
    pair_set_gc_grace(p);
    pair_write_both(p, 600);
    p->now += GC_GRACE + 200;
    for (int i = 0; i < THREADS; i++) {
        w[i].pair = *p;
        w[i].pair.random += (uint64_t)i * 7919;
        w[i].pair.newer = 1 << 20;
        w[i].reclaims = i >= 2;
        w[i].rounds = w[i].reclaims ? PASSES : WRITES;
        w[i].written = calloc(WRITES, sizeof(*w[i].written));
        assert_int_equal(pthread_create(&w[i].thread, NULL, write_beside, &w[i]), 0);
    }
    for (int i = 0; i < THREADS; i++) pthread_join(w[i].thread, NULL);
    pair_reclaim(p, p->local);
    for (int i = 0; i < THREADS; i++)
        for (int k = 0; !w[i].reclaims && k < WRITES; k++) pair_commit(p, p->local, &w[i].written[k], 1, false);
    pair_reclaim(p, p->local);
    pair_reclaim(p, p->rados);
    pair_assert_found(p, true, NULL);
    compare_all(p);
    for (int i = 0; i < THREADS; i++) free(w[i].written);
    free(w);
}

static uint64_t n_expired;
static void count_expiry(void *arg, const struct eng_expiry *x) { (void)arg, (void)x, n_expired++; }

/* A batch in the log may be older than a deletion, and be applied later. */
static void test_tombstones_stay_while_an_older_batch_is_in_the_log(void **state) {
    struct pair *p = *state;
    struct statement s[2];
    size_t n;
    pair_set_gc_grace(p);
    for (int i = 0; i < 2; i++) do
            pair_draw_statement(p, &s[i]);
        while (s[i].kind < 4 || (i && s[0].partition == s[1].partition));
    pair_commit(p, p->local, s, 2, true);
    pair_leave_in_log(p, s);
    p->now += 1;
    delete_everything(p);
    p->now += GC_GRACE + 100;
    pair_reclaim(p, p->rados);
    assert_int_equal(pair_keys(p), PARTITIONS);
    assert_int_equal(batchlog_replay(pair_store(p->other), 0, -1000000, &n, &p->e), 0);
    assert_int_equal(n, 1);
    compare_all(p);
    for (int i = 0; i < 2; i++) pair_reclaim(p, p->rados);
    pair_reclaim(p, p->local);
    assert_int_equal(pair_keys(p), 0);
    compare_all(p);
}

/* Each expiry is told once, by the engine that removes the row. */
static void test_an_expired_row_is_reported_once(void **state) {
    struct pair *p = *state;
    pair_set_gc_grace(p);
    n_expired = 0;
    for (uint32_t i = 0; i < 10; i++) {
        struct eng_part part = pair_part(p, i);
        struct eng_row row;
        uint64_t seq;
        struct eng_batch *b = eng_batch_new(p->rados);
        eng_row_init(&row, ENG_ROW, slice_str("a"));
        row.live_ts = 1;
        row.live_ttl = i < 5 ? 100 : 100000;
        row.live_expiry = p->now + row.live_ttl;
        assert_int_equal(eng_batch_row(b, &part, &row, NULL, &p->e), 0);
        assert_int_equal(eng_batch_commit(b, &seq, &p->e), 0);
        eng_batch_free(b);
    }
    eng_on_expiry(p->rados, count_expiry, NULL);
    eng_on_expiry(p->other, count_expiry, NULL);
    p->now += GC_GRACE + 200;
    for (int i = 0; i < 4; i++) pair_reclaim(p, i % 2 ? p->rados : p->other);
    assert_int_equal(n_expired, 5);
    assert_int_equal(pair_keys(p), 5);
}

/* A partition with more rows than a round changes, and a deletion of all of them but one. */
static void write_large(struct pair *p) {
    enum { ROWS = 1501 }; /* all but one are dead: the last round is as full as can be */
    for (int k = 0; k < 2; k++) {
        struct eng_part part = pair_part(p, 1);
        struct eng_batch *b = eng_batch_new(pair_engine(p, k));
        uint64_t seq;
        for (int i = 0; i < ROWS; i++) {
            char ck[16];
            struct eng_row row;
            snprintf(ck, sizeof(ck), "%04d", i);
            eng_row_init(&row, ENG_ROW, slice_str(ck));
            row.live_ts = i == ROWS / 2 ? 3 : 1;
            assert_int_equal(eng_batch_row(b, &part, &row, NULL, &p->e), 0);
        }
        assert_int_equal(eng_batch_delete_partition(b, &part, 2, p->now, NULL, &p->e), 0);
        assert_int_equal(eng_batch_commit(b, &seq, &p->e), 0);
        eng_batch_free(b);
    }
}

static void test_a_large_deleted_partition_is_removed_in_rounds(void **state) {
    struct pair *p = *state;
    pair_set_gc_grace(p);
    write_large(p);
    pair_reclaim(p, p->rados);
    assert_int_equal(pair_keys(p), 3); /* the row that was written later, the deletion, the mark */
    compare_all(p);
    p->now += GC_GRACE + 100;
    pair_reclaim(p, p->rados);
    pair_reclaim(p, p->local);
    assert_int_equal(pair_keys(p), 2);
    compare_all(p);
}

/* The deletion is old when the first round finds it, and stays until the last one. */
static void test_an_old_deletion_is_removed_with_its_last_row(void **state) {
    struct pair *p = *state;
    pair_set_gc_grace(p);
    write_large(p);
    p->now += GC_GRACE + 100;
    pair_reclaim(p, p->rados);
    assert_int_equal(pair_keys(p), 2);
    pair_reclaim(p, p->local);
    compare_all(p);
}

struct count {
    int records, dropped, end_after;
};
static int count_record(void *arg) {
    struct count *c = arg;
    return ++c->records == c->end_after ? 7 : 0;
}
static void count_dropped(void *arg, struct slice key, struct slice value, int64_t covered_ts, bool expired) {
    (void)key, (void)value, (void)covered_ts, (void)expired;
    ((struct count *)arg)->dropped++;
}

static int pass_of(struct pair *p, struct eng *eng, int64_t now, struct count *count) {
    const struct store_reclaim r = {.table = p->table,
                                    .position = &(uint64_t){0},
                                    .now_seconds = now,
                                    .before_seconds = now - GC_GRACE,
                                    .period_seconds = 100,
                                    .visited = count_record,
                                    .dropped = count_dropped,
                                    .arg = count};
    return reclaim_table(pair_store(eng), &r, &p->e);
}

/* Writes a row that has expired at the time of the passes. */
static void write_expired(struct pair *p, uint32_t number) {
    struct eng_part part = pair_part(p, number);
    struct eng_row row;
    uint64_t seq;
    struct eng_batch *b = eng_batch_new(p->rados);
    eng_row_init(&row, ENG_ROW, slice_str("a"));
    row.live_ts = row.live_ttl = 1;
    row.live_expiry = p->now;
    assert_int_equal(eng_batch_row(b, &part, &row, NULL, &p->e), 0);
    assert_int_equal(eng_batch_commit(b, &seq, &p->e), 0);
    eng_batch_free(b);
}

/* By whichever clock: also by one that is behind that of the last visitor by more than the period. */
static void test_a_shard_is_visited_by_one_server_in_a_period(void **state) {
    static const struct {
        bool by_other;
        int at, dropped;
    } visits[] = {{false, 0, 1}, {true, 50, 0}, {true, 99, 0}, {true, 100, 1}, {false, 150, 0},
                  {false, 20, 0}, {false, 0, 1}, {true, 200, 1}};
    struct pair *p = *state;
    int64_t now = p->now + GC_GRACE + 1000;
    for (size_t i = 0; i < ARRAY_LEN(visits); i++) {
        struct count c = {0};
        write_expired(p, 1);
        assert_int_equal(pass_of(p, visits[i].by_other ? p->other : p->rados, now + visits[i].at, &c), 0);
        assert_int_equal(c.dropped, visits[i].dropped);
    }
}

/* While a pass visits a partition, a client deletes it, time passes, and another server removes rows and deletion. */
struct overtaking {
    struct pair *p;
    uint32_t partition;
    int at, n, dropped;
};

static int overtake(void *arg) {
    struct overtaking *o = arg;
    struct pair *p = o->p;
    if (++o->n != o->at) return 0;
    struct eng_part part = pair_part(p, o->partition);
    for (int k = 0; k < 2; k++) {
        uint64_t seq;
        struct eng_batch *b = eng_batch_new(pair_engine(p, k));
        assert_int_equal(eng_batch_delete_partition(b, &part, 100, p->now, NULL, &p->e), 0);
        assert_int_equal(eng_batch_commit(b, &seq, &p->e), 0);
        eng_batch_free(b);
    }
    p->now += GC_GRACE + 100;
    for (int i = 0; i < 2; i++) pair_reclaim(p, p->other);
    pair_reclaim(p, p->local);
    return 0;
}

static void drop_nothing(void *arg, struct slice key, struct slice value, int64_t covered_ts, bool expired) {
    (void)arg, (void)key, (void)value, (void)covered_ts, (void)expired;
}

/* At each step of the pass. Marks are younger than what the clock of this test calls old. */
static void test_a_pass_that_is_overtaken_restores_no_rows(void **state) {
    enum { ROWS = 2, STEPS = 7 };
    struct pair *p = *state;
    p->now -= 1000000;
    pair_set_gc_grace(p);
    for (int at = 1; at <= STEPS; at++) {
        struct overtaking o = {.p = p, .partition = (uint32_t)at, .at = at};
        struct eng_part part = pair_part(p, o.partition);
        for (int i = 0; i < 4 * ROWS; i++) {
            struct eng_row row;
            uint64_t seq;
            struct eng_batch *b = eng_batch_new(pair_engine(p, i % 2));
            eng_row_init(&row, ENG_ROW, slice_str(i / 4 ? "b" : "a"));
            row.live_ts = 1 + i % 4 / 2;
            assert_int_equal(eng_batch_row(b, &part, &row, NULL, &p->e), 0);
            assert_int_equal(eng_batch_commit(b, &seq, &p->e), 0);
            eng_batch_free(b);
        }
        const struct store_reclaim r = {.table = p->table,
                                        .position = &(uint64_t){0},
                                        .now_seconds = p->now,
                                        .before_seconds = p->now - GC_GRACE,
                                        .visited = overtake,
                                        .dropped = drop_nothing,
                                        .arg = &o};
        assert_int_equal(reclaim_table(pair_store(p->rados), &r, &p->e), 0);
        assert_true(o.n >= at || at == STEPS);
        if (o.n >= at) compare_all(p);
    }
}

/* As if rows of the partition were taken elsewhere while a pass scans it: it gets another key of its own. */
static int take_rows_elsewhere(void *arg) {
    struct overtaking *o = arg;
    if (++o->n != o->at) return 0;
    struct shard *sh = shard_map_find(&pair_store(o->p->rados)->shards, o->p->table, 0);
    struct eng_part part = pair_part(o->p, o->partition);
    struct buf prefix, key, value;
    buf_init(&prefix, 0);
    buf_init(&key, 0);
    buf_init(&value, 0);
    engi_key_prefix(&prefix, &part);
    omap_key_partition(&key, buf_slice(&prefix), OMAP_PIECES);
    struct piece piece = {.number = 1, .first = slice_of("", 0)};
    pieces_write(&value, &(struct pieces){.id = 1, .move = 1, .next = 2, .items = &piece, .n = 1});
    pair_put_raw(o->p, sh->name, buf_slice(&key), buf_slice(&value));
    buf_fini(&prefix);
    buf_fini(&key);
    buf_fini(&value);
    return 0;
}

static void drop_one(void *arg, struct slice key, struct slice value, int64_t covered_ts, bool expired) {
    (void)key, (void)value, (void)covered_ts, (void)expired;
    ((struct overtaking *)arg)->dropped++;
}

static void test_a_partition_with_rows_elsewhere_is_left_alone(void **state) {
    struct pair *p = *state;
    for (int at = 0; at <= 1; at++) { /* beside, and then when a row of it is found */
        struct overtaking o = {.p = p, .partition = 1, .at = at};
        const struct store_reclaim r = {.table = p->table,
                                        .position = &(uint64_t){0},
                                        .now_seconds = p->now + GC_GRACE + 1000,
                                        .before_seconds = p->now + 1000,
                                        .visited = take_rows_elsewhere,
                                        .dropped = drop_one,
                                        .arg = &o};
        for (int i = 0; i < 2; i++) {
            write_expired(p, 1);
            assert_int_equal(reclaim_table(pair_store(p->rados), &r, &p->e), 0);
            assert_int_equal(o.dropped, at ? 0 : i + 1);
        }
    }
}

static void test_a_pass_ends_on_request(void **state) {
    struct pair *p = *state;
    struct count c = {.end_after = 5};
    for (uint32_t i = 0; i < 20; i++) write_expired(p, i);
    assert_int_equal(pass_of(p, p->rados, p->now + GC_GRACE + 1000, &c), 7);
    assert_int_equal(c.records, 5);
    assert_in_range(c.dropped, 1, 5);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_reclaiming_frees_space_and_changes_no_results, setup, pair_teardown),
        cmocka_unit_test_setup_teardown(test_reclaiming_while_others_write_loses_no_rows, setup, pair_teardown),
        cmocka_unit_test_setup_teardown(test_tombstones_stay_while_an_older_batch_is_in_the_log, setup, pair_teardown),
        cmocka_unit_test_setup_teardown(test_an_expired_row_is_reported_once, setup, pair_teardown),
        cmocka_unit_test_setup_teardown(test_a_large_deleted_partition_is_removed_in_rounds,
                                        setup_large, pair_teardown),
        cmocka_unit_test_setup_teardown(test_an_old_deletion_is_removed_with_its_last_row,
                                        setup_large, pair_teardown),
        cmocka_unit_test_setup_teardown(test_a_pass_that_is_overtaken_restores_no_rows, setup, pair_teardown),
        cmocka_unit_test_setup_teardown(test_a_shard_is_visited_by_one_server_in_a_period, setup, pair_teardown),
        cmocka_unit_test_setup_teardown(test_a_partition_with_rows_elsewhere_is_left_alone, setup, pair_teardown),
        cmocka_unit_test_setup_teardown(test_a_pass_ends_on_request, setup, pair_teardown),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
