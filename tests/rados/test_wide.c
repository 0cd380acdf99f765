/* Wide partitions, whose rows lie in pieces: they are read as any other, also while rows move, and give the space of
 * dead rows and deletions back. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

#include <cmocka.h>
#include <errno.h>
#include <pthread.h>
#include <sched.h>

#include "engine/rados/fetch.h"
#include "engine/rados/move.h"
#include "engine/rados/omap_key.h"
#include "engine/rados/rados.h"
#include "harness.h"
#include "pair.h"

/* Few partitions, whose rows go to pieces of a few rows. */
static int setup(void **state) { return pair_setup(state, WIDE_PARTITIONS, 10); }

static uint64_t n_moves(struct pair *p) {
    return atomic_load(&pair_store(p->rados)->n_moves) + atomic_load(&pair_store(p->other)->n_moves);
}

/* ---- what is stored ---- */

struct objects {
    char prefix[40];
    size_t n;
};
static int count_object(void *arg, const char *name) {
    struct objects *o = arg;
    o->n += strncmp(name, o->prefix, strlen(o->prefix)) == 0;
    return 0;
}
static size_t count_pieces(struct pair *p) {
    struct objects o = {0};
    snprintf(o.prefix, sizeof(o.prefix), "piece.%08x.", p->table);
    assert_int_equal(pool_each_object(&pair_store(p->rados)->pool, count_object, &o), 0);
    return o.n;
}

/* Operands in shards and pieces, as they count them. */
static uint64_t count_operands(struct pair *p) {
    uint64_t keys, bytes;
    assert_int_equal(table_size(pair_store(p->rados), p->table, &keys, &bytes, &p->e), 0);
    return keys;
}

/* Waits until both clients have made the splits and moves that writes have asked for. */
static void await_moves(struct pair *p) {
    for (int i = 1; i <= 2; i++) {
        struct shard_map *map = &pair_store(pair_engine(p, i))->shards;
        for (size_t chain = 0; chain < map->n_chains; chain++)
            for (struct shard *sh = map->chains[chain]; sh; sh = sh->next)
                while (atomic_load(&sh->will_split)) sched_yield();
    }
}

static void compare_all(struct pair *p) {
    pair_compare_table(p);
    for (uint32_t i = 0; i < p->partitions; i++) pair_compare_partition(p, i);
}

static void test_both_engines_return_the_same_rows_of_wide_partitions(void **state) {
    struct pair *p = *state;
    pair_compare_random(p, ROUNDS / 2);
    assert_true(n_moves(p) > 10);
}

/* ---- both directions ---- */

struct mover {
    struct pair pair;
    pthread_t thread;
    _Atomic bool ends;
    _Atomic size_t n_scans; /* which have ended */
    const struct statement *statements;
    size_t n;
};

/* Writes again what is there, so that rows move and are combined, and pieces are replaced: some rows beside each
 * scan, because one is given up that is overtaken all the time. */
static void *write_again(void *arg) {
    enum { BESIDE_SCAN = 12 };
    struct mover *m = arg;
    for (size_t i = 0; !atomic_load(&m->ends);) {
        if (i > BESIDE_SCAN * atomic_load(&m->n_scans)) {
            sched_yield();
            continue;
        }
        pair_commit(&m->pair, i % 2 ? m->pair.rados : m->pair.other, &m->statements[i % m->n], 1, false);
        i++;
    }
    return NULL;
}

/* A scan downwards gives the rows of one upwards, in the other order, whatever moves meanwhile. */
static void test_rows_are_the_same_in_both_directions_while_they_move(void **state) {
    enum { STATEMENTS = 200, SCANS = 40 };
    struct pair *p = *state;
    struct statement *statements = calloc(STATEMENTS, sizeof(*statements));
    for (int i = 0; i < STATEMENTS; i++) {
        pair_draw_statement(p, &statements[i]);
        statements[i].row.cells = statements[i].cells;
        statements[i].partition = 1;
        for (int k = 0; k < 2; k++) pair_commit(p, pair_engine(p, k), &statements[i], 1, false);
    }
    struct mover m = {.pair = *p, .statements = statements, .n = STATEMENTS};
    assert_int_equal(pthread_create(&m.thread, NULL, write_again, &m), 0);
    uint64_t before = n_moves(p);
    for (int i = 0; i < SCANS || n_moves(p) < before + 3; i++) {
        pair_compare_partition(p, 1);
        atomic_fetch_add(&m.n_scans, 1);
    }
    atomic_store(&m.ends, true);
    pthread_join(m.thread, NULL);
    pair_compare_partition(p, 1);
    free(statements);
}

/* ---- reclaiming ---- */

static void delete_all(struct pair *p, uint32_t partition) {
    struct eng_part part = pair_part(p, partition);
    for (int k = 0; k < 2; k++) {
        uint64_t seq;
        struct eng_batch *b = eng_batch_new(pair_engine(p, k));
        assert_int_equal(eng_batch_delete_partition(b, &part, 1 << 20, p->now, NULL, &p->e), 0);
        assert_int_equal(eng_batch_commit(b, &seq, &p->e), 0);
        eng_batch_free(b);
    }
}

/* Data expire, gc_grace passes, and passes are made in between. Both engines answer the same, and in the end nothing is
 * left, neither in the shards nor in pieces. */
static void test_reclaiming_frees_the_space_of_wide_partitions(void **state) {
    struct pair *p = *state;
    pair_set_gc_grace(p);
    for (int era = 0; era < 5; era++) {
        pair_write_both(p, 150);
        p->now += era % 2 ? 60 : GC_GRACE + 200;
        pair_reclaim(p, p->local);
        pair_reclaim(p, era % 3 ? p->rados : p->other);
        compare_all(p);
        uint64_t after = count_operands(p);
        pair_reclaim(p, p->rados);
        assert_true(count_operands(p) <= after);
        compare_all(p);
    }
    assert_true(count_pieces(p) > WIDE_PARTITIONS);
    pair_assert_found(p, true, NULL);
    for (uint32_t i = 0; i < p->partitions; i++) delete_all(p, i);
    await_moves(p);
    for (int i = 0; i < 2; i++) pair_reclaim(p, p->rados);
    assert_int_equal(count_operands(p), p->partitions); /* the deletions */
    assert_int_equal(count_pieces(p), 0);
    p->now += GC_GRACE + 1;
    for (int i = 0; i < 3; i++) pair_reclaim(p, p->other);
    pair_reclaim(p, p->local);
    assert_int_equal(count_operands(p), 0);
    assert_int_equal(pair_keys(p), 0);
    compare_all(p);
}

/* Writes rows of a queue, and deletes those before them, each or as a range. */
static void advance_queue(struct pair *p, int from, int n, bool by_range) {
    struct eng_part part = pair_part(p, 1);
    for (int k = 0; k < 2; k++) {
        struct eng_batch *b = eng_batch_new(pair_engine(p, k));
        uint64_t seq;
        for (int i = from - n; i < from + n; i++) {
            char ck[16];
            struct eng_row row;
            snprintf(ck, sizeof(ck), "%08d", i);
            eng_row_init(&row, ENG_ROW, slice_str(ck));
            if (i >= from) row.live_ts = i + n;
            else if (i < 0 || by_range) continue;
            else row.del_ts = i + n + 1, row.del_at = p->now;
            assert_int_equal(eng_batch_row(b, &part, &row, NULL, &p->e), 0);
        }
        if (by_range) {
            char to[16];
            snprintf(to, sizeof(to), "%08d", from);
            struct eng_slice range = {.from = {.key = slice_str("")}, .to = {.key = slice_str(to)}};
            assert_int_equal(eng_batch_delete_range(b, &part, &range, from + n, p->now, NULL, &p->e), 0);
        }
        assert_int_equal(eng_batch_commit(b, &seq, &p->e), 0);
        eng_batch_free(b);
    }
}

/* The shard has no keys but those of operands, three of the partition, and a fence for each piece. */
static void assert_no_old_fences(struct pair *p) {
    struct arena a;
    struct shard_head head;
    arena_init(&a, 1 << 10, 0);
    struct shard *root = shard_map_find(&pair_store(p->rados)->shards, p->table, 0);
    assert_int_equal(head_read(pair_store(p->rados), root, false, &a, &head), 0);
    assert_true(pair_keys(p) <= shard_sum(&head).keys + OMAP_PARTITION_KEYS_MAX + count_pieces(p));
    arena_fini(&a);
}

/* Rows come at one end and are deleted at the other: what is stored stays as much as it was. */
static void test_a_queue_keeps_its_size(void **state) {
    enum { STEP = 40, STEPS = 24, MOST = 5 * STEP };
    struct pair *p = *state;
    pair_set_gc_grace(p);
    for (int i = 0; i < STEPS; i++) {
        advance_queue(p, i * STEP, STEP, i % 3 == 0);
        p->now += GC_GRACE / 2;
        await_moves(p);
        pair_reclaim(p, i % 2 ? p->rados : p->other);
        if (i % 4 == 0) pair_compare_partition(p, 1);
        assert_no_old_fences(p);
        assert_true(count_operands(p) <= MOST);
        assert_true(count_pieces(p) <= MOST / 7 + 1); /* new ones have seven rows */
    }
    assert_true(n_moves(p) > 10);
    pair_assert_found(p, true, NULL);
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
        pair_commit(&w->pair, i % 2 ? w->pair.rados : w->pair.other, &w->written[i], 1, false);
    }
    return NULL;
}

/* Two passes at the same time beside two writers, whose deletions are new, and the moves of two clients. */
static void test_purging_during_writes_and_moves_loses_no_rows(void **state) {
    enum { THREADS = 4, WRITES = 150, PASSES = 6 };
    struct pair *p = *state;
    struct writer *w = calloc(THREADS, sizeof(*w));
    pair_set_gc_grace(p);
    pair_write_both(p, 200);
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
    await_moves(p);
    for (int i = 0; i < 2; i++) pair_reclaim(p, i ? p->rados : p->local);
    pair_assert_found(p, true, NULL);
    compare_all(p);
    for (int i = 0; i < THREADS; i++) free(w[i].written);
    free(w);
}

/* ---- movers that die, or are slow ---- */

/* Moves are made by the test alone. */
static int setup_calm(void **state) { return pair_setup(state, WIDE_PARTITIONS, 0); }

/* Writes rows [from, to). Those with odd numbers have expired when p->now has advanced. */
static void write_rows(struct pair *p, int from, int to) {
    struct eng_part part = pair_part(p, 1);
    for (int k = 0; k < 2; k++) {
        struct eng_batch *b = eng_batch_new(pair_engine(p, k));
        uint64_t seq;
        for (int i = from; i < to; i++) {
            char ck[16];
            struct eng_row row;
            snprintf(ck, sizeof(ck), "%02d", i);
            eng_row_init(&row, ENG_ROW, slice_str(ck));
            row.live_ts = p->newer + 1;
            if (i % 2) row.live_ttl = 1, row.live_expiry = p->now;
            assert_int_equal(eng_batch_row(b, &part, &row, NULL, &p->e), 0);
        }
        assert_int_equal(eng_batch_commit(b, &seq, &p->e), 0);
        eng_batch_free(b);
    }
}

static struct slice prefix_of(struct pair *p, struct buf *out) {
    struct eng_part part = pair_part(p, 1);
    buf_init(out, 0);
    engi_key_prefix(out, &part);
    return buf_slice(out);
}

static void move_all(struct pair *p, struct slice prefix) {
    struct rados *s = pair_store(p->rados);
    for (int i = 0; i < 2; i++) /* the first call leaves one alone that another client has begun */
        assert_int_equal(move_rows(s, shard_map_find(&s->shards, p->table, shard_position(prefix)), prefix), 0);
}

static int judge_by_number(void *arg, const struct record *r, struct buf *left) {
    (void)arg, (void)left;
    return r->key.p[r->key.n - 1] % 2;
}

/* A client dies behind each step of a move that purges. No answer changes, and the next pass removes the dead rows
 * and what the client has made. */
static void test_an_abandoned_purge_changes_no_rows(void **state) {
    struct pair *p = *state;
    struct buf b;
    struct slice prefix = prefix_of(p, &b);
    pair_set_gc_grace(p);
    for (int steps = 0; steps <= 3; steps++) {
        struct move m;
        const struct move_purge purge = {.from = prefix, .judge = judge_by_number};
        p->newer += 10;
        write_rows(p, 0, 30);
        move_all(p, prefix);
        write_rows(p, 20, 40);
        p->now += GC_GRACE + 100;
        move_init(&m, pair_store(p->other), prefix);
        assert_int_equal(move_read(&m), 0);
        m.purge = &purge;
        if (steps > 0) assert_int_equal(move_begin(&m), 0);
        if (steps > 1) assert_int_equal(move_copy(&m), 0);
        if (steps > 2) assert_int_equal(move_complete(&m), 0);
        if (steps > 2) pair_reclaim(p, p->local); /* else they differ in write times of what is dead */
        pair_compare_partition(p, 1);
        assert_true(steps > 2 ? count_operands(p) == 20 : count_operands(p) >= 50);
        for (int i = 0; i < 3; i++) pair_reclaim(p, i < 2 ? p->rados : p->local);
        pair_compare_partition(p, 1);
        assert_int_equal(count_operands(p), 20);
        assert_int_equal(count_pieces(p), 1);
        if (steps == 1) assert_int_equal(move_copy(&m), -EAGAIN); /* it was only slow */
        if (steps == 2) assert_int_equal(move_complete(&m), -EAGAIN);
        move_fini(&m);
        pair_compare_partition(p, 1);
        assert_int_equal(count_pieces(p), 1);
    }
    buf_fini(&b);
}

/* The rows that it has read are purged meanwhile. */
static void test_a_delayed_mover_restores_no_dead_row(void **state) {
    struct pair *p = *state;
    struct move late;
    struct buf b;
    struct slice prefix = prefix_of(p, &b);
    pair_set_gc_grace(p);
    write_rows(p, 0, 20);
    move_all(p, prefix);
    write_rows(p, 10, 30);
    move_init(&late, pair_store(p->other), prefix);
    assert_int_equal(move_read(&late), 0);
    assert_int_equal(move_begin(&late), 0);
    p->now += GC_GRACE + 100;
    pair_reclaim(p, p->rados);
    assert_int_equal(count_operands(p), 40); /* the other client is perhaps at it */
    pair_reclaim(p, p->rados);
    assert_int_equal(count_operands(p), 15);
    assert_int_equal(move_copy(&late), -EAGAIN);
    move_fini(&late);
    assert_int_equal(count_operands(p), 15);
    pair_reclaim(p, p->local);
    pair_compare_partition(p, 1);
    buf_fini(&b);
}

/* Q18: a deletion that another server has removed drops nothing: rows with lower timestamps may have come since. */
static void test_a_purge_by_a_removed_deletion_is_refused(void **state) {
    struct pair *p = *state;
    struct rados *s = pair_store(p->rados);
    struct read_result head;
    struct arena a;
    struct buf b, end;
    struct slice prefix = prefix_of(p, &b);
    const struct move_purge purge = {.from = prefix, .judge = judge_by_number};
    pair_set_gc_grace(p);
    arena_init(&a, 1 << 12, 0);
    buf_init(&end, 0);
    write_rows(p, 0, 10);
    move_all(p, prefix);
    delete_all(p, 1);
    assert_int_equal(read_partition(s, prefix, NULL, 0, &a, &head, &p->e), 0);
    assert_true(head.is_wide);
    p->now += GC_GRACE + 100;
    pair_reclaim(p, p->other);
    pair_reclaim(p, p->local);
    write_rows(p, 0, 10);
    move_all(p, prefix);
    assert_int_equal(move_purge(s, prefix, head.removals, &purge, &end), -EAGAIN);
    assert_int_equal(count_operands(p), 10);
    pair_reclaim(p, p->local);
    pair_compare_partition(p, 1);
    buf_fini(&b);
    buf_fini(&end);
    arena_fini(&a);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_both_engines_return_the_same_rows_of_wide_partitions,
                                        setup, pair_teardown),
        cmocka_unit_test_setup_teardown(test_rows_are_the_same_in_both_directions_while_they_move, setup,
                                        pair_teardown),
        cmocka_unit_test_setup_teardown(test_reclaiming_frees_the_space_of_wide_partitions, setup, pair_teardown),
        cmocka_unit_test_setup_teardown(test_a_queue_keeps_its_size, setup, pair_teardown),
        cmocka_unit_test_setup_teardown(test_purging_during_writes_and_moves_loses_no_rows, setup, pair_teardown),
        cmocka_unit_test_setup_teardown(test_an_abandoned_purge_changes_no_rows, setup_calm, pair_teardown),
        cmocka_unit_test_setup_teardown(test_a_delayed_mover_restores_no_dead_row, setup_calm, pair_teardown),
        cmocka_unit_test_setup_teardown(test_a_purge_by_a_removed_deletion_is_refused, setup_calm, pair_teardown),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
