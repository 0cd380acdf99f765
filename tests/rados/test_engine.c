/* The engine on Ceph answers as the engine of one process with its store in memory does: the same
 * random statements go to both, and every row, slice and scan is compared, while shards split. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include <cmocka.h>
#include <pthread.h>
#include <sched.h>

#include "engine/rados/batchlog.h"
#include "engine/rados/move.h"
#include "engine/rados/omap_key.h"
#include "engine/rados/pieces.h"
#include "engine/rados/rados.h"
#include "engine/table.h"
#include "harness.h"
#include "pair.h"

/* Shards split at 60 keys. */
static int setup(void **state) { return pair_setup(state, PARTITIONS, 60); }
/* Few partitions, whose rows go to pieces of a few rows. */
static int setup_wide(void **state) { return pair_setup(state, WIDE_PARTITIONS, 10); }
/* Shards are as large as those of a server. */
static int setup_large(void **state) { return pair_setup(state, PARTITIONS, 0); }

static void test_both_engines_return_the_same_rows(void **state) {
    struct pair *p = *state;
    pair_compare_random(p, ROUNDS);
    assert_true(pair_store(p->rados)->n_splits + pair_store(p->other)->n_splits > 3);
    assert_true(pair_store(p->rados)->n_folds + pair_store(p->other)->n_folds > 0);
}

static void test_operations_on_a_loop_are_left_to_workers(void **state) {
    struct pair *p = *state;
    struct statement s;
    struct eng_row row;
    struct arena a;
    uint64_t seq;
    struct eng_part part = pair_part(p, 1);
    do pair_draw_statement(p, &s);
    while (s.kind < 4);
    struct eng_batch *b = eng_batch_new(p->rados);
    pair_add(p, b, &s);
    assert_int_equal(eng_batch_try_commit(b, &seq, &p->e), ENG_BUSY);
    assert_int_equal(eng_batch_commit(b, &seq, &p->e), 0);
    eng_batch_free(b);
    arena_init(&a, 1 << 12, 0);
    int got =
        eng_row_get(p->rados, ENG_TIER_CACHE, &part, ENG_ROW, slice_str("01"), p->now, &a, &row, NULL, &p->e);
    assert_int_equal(got, ENG_INCOMPLETE);
    arena_fini(&a);
}

static void test_a_batch_that_was_left_in_the_log_is_applied(void **state) {
    struct pair *p = *state;
    struct statement s[2];
    struct rados *r = pair_store(p->other);
    size_t n;
    for (int i = 0; i < 2; i++) do
            pair_draw_statement(p, &s[i]);
        while (s[i].kind < 4 || (i && s[0].partition == s[1].partition));
    pair_commit(p, p->local, s, 2, true);
    pair_leave_in_log(p, s);
    assert_int_equal(batchlog_replay(r, 0, 3600 * 1000000ll, &n, &p->e), 0);
    assert_int_equal(n, 0);
    assert_int_equal(batchlog_replay(r, 0, -1000000, &n, &p->e), 0);
    assert_int_equal(n, 1);
    assert_int_equal(batchlog_replay(r, 0, -1000000, &n, &p->e), 0);
    assert_int_equal(n, 0);
    pair_compare_table(p);
}

/* The log of the server that leaves batches in it. */
static void log_name(struct pair *p, char name[BATCHLOG_NAME]) {
    const struct rados *r = pair_store(p->rados);
    snprintf(name, BATCHLOG_NAME, "batches.%08x.%08x", r->o.incarnation, r->log);
}

/* The server that has logged it may still be writing it, and be killed then. */
static void test_a_batch_that_cannot_be_applied_stays_in_the_log(void **state) {
    struct pair *p = *state;
    struct rados *r = pair_store(p->other);
    struct statement s[2];
    int64_t oldest_us;
    size_t n;
    for (int i = 0; i < 2; i++) do
            pair_draw_statement(p, &s[i]);
        while (s[i].kind < 4 || (i && s[0].partition == s[1].partition));
    pair_leave_in_log(p, s);
    assert_int_equal(table_drop(r, pair_part(p, 0).table, &p->e), 0);
    for (int settled = 0; settled < 2; settled++) {
        uint32_t died = settled ? 0 : pair_store(p->rados)->o.incarnation;
        assert_int_equal(batchlog_replay(r, died, -1000000, &n, &p->e), -1);
        assert_int_equal(p->e.code, ERR_INVALID);
        err_clear(&p->e);
        assert_int_equal(batchlog_oldest(r, &oldest_us, &p->e), 0);
        assert_int_equal(oldest_us == INT64_MAX, settled);
    }
}

/* A death tells nothing of the batches of other servers. */
static void test_a_batch_of_a_living_server_waits_for_its_age(void **state) {
    struct pair *p = *state;
    struct rados *r = pair_store(p->other);
    struct statement s[2];
    size_t n;
    for (int i = 0; i < 2; i++) do
            pair_draw_statement(p, &s[i]);
        while (s[i].kind < 4 || (i && s[0].partition == s[1].partition));
    pair_commit(p, p->local, s, 2, true);
    pair_leave_in_log(p, s);
    assert_int_not_equal(r->o.incarnation, pair_store(p->rados)->o.incarnation);
    assert_int_equal(batchlog_replay(r, r->o.incarnation, 3600 * 1000000ll, &n, &p->e), 0);
    assert_int_equal(n, 0);
    assert_int_equal(batchlog_replay(r, pair_store(p->rados)->o.incarnation, 3600 * 1000000ll, &n, &p->e), 0);
    assert_int_equal(n, 1);
    pair_compare_table(p);
}

/* The one that is told that a server has died applies the batch that it has left. */
static void test_a_batch_of_a_server_that_died_is_applied_at_once(void **state) {
    struct pair *p = *state;
    struct statement s[2];
    int64_t oldest_us = 0;
    for (int i = 0; i < 2; i++) do
            pair_draw_statement(p, &s[i]);
        while (s[i].kind < 4 || (i && s[0].partition == s[1].partition));
    pair_commit(p, p->local, s, 2, true);
    pair_leave_in_log(p, s);
    eng_peer_died(p->other, pair_store(p->rados)->o.incarnation);
    while (oldest_us < INT64_MAX) { /* a hang is the failure */
        assert_int_equal(batchlog_oldest(pair_store(p->other), &oldest_us, &p->e), 0);
        sched_yield();
    }
    pair_compare_table(p);
}

/* A record in front of it that nobody can read holds it up as little. */
static void test_a_damaged_record_of_the_log_does_not_delay_others(void **state) {
    struct pair *p = *state;
    struct rados *r = pair_store(p->other);
    struct statement s[2];
    struct omap_write damaged = {0}, gone = {0};
    struct buf key;
    size_t n;
    char name[BATCHLOG_NAME];
    log_name(p, name);
    buf_init(&key, 0);
    omap_key_number(&key, 1, OMAP_SEQUENCE_DIGITS);
    omap_key_number(&key, 1, 5);
    omap_write_set(&damaged, buf_slice(&key), slice_str("damaged"));
    assert_int_equal(omap_write_run(&damaged, &r->pool, name), 0);
    for (int i = 0; i < 2; i++) do
            pair_draw_statement(p, &s[i]);
        while (s[i].kind < 4 || (i && s[0].partition == s[1].partition));
    pair_commit(p, p->local, s, 2, true);
    pair_leave_in_log(p, s);
    assert_int_equal(batchlog_replay(r, 0, -1000000, &n, &p->e), -1);
    assert_non_null(strstr(p->e.text, "damaged"));
    assert_int_equal(n, 1);
    err_clear(&p->e);
    pair_compare_table(p);
    omap_write_remove(&gone, buf_slice(&key));
    assert_int_equal(omap_write_run(&gone, &r->pool, name), 0);
    omap_write_fini(&damaged);
    omap_write_fini(&gone);
    buf_fini(&key);
}

/* Scans a partition to its end. The number of rows, or -1. */
static int scan_all(struct pair *p, const struct eng_part *part, bool reverse) {
    struct eng_scan_spec spec = {.table = part->table, .part = part, .reverse = reverse, .rows = true, .now = p->now};
    struct eng_item item;
    int n = 0, got = -1;
    struct eng_scan *scan = eng_scan_open(p->rados, ENG_TIER_ANY, &spec, NULL, &p->e);
    while (scan && (got = eng_scan_next(scan, &item, &p->e)) == 1) n += item.kind == ENG_ITEM_ROW;
    eng_scan_close(scan);
    return got ? -1 : n;
}

/* Writes rows of a megabyte each. */
static void write_megabytes(struct pair *p, uint32_t number, int n) {
    enum { BYTES = 1 << 20 };
    static char value[BYTES];
    struct eng_part part = pair_part(p, number);
    for (int i = 0; i < n; i++) {
        char ck[16];
        uint64_t seq;
        struct eng_row row;
        struct eng_cell cell = {.ts = 1, .expiry = ENG_NO_EXPIRY, .value = slice_of(value, BYTES)};
        struct eng_batch *b = eng_batch_new(p->rados);
        snprintf(ck, sizeof(ck), "%02d", i);
        eng_row_init(&row, ENG_ROW, slice_str(ck));
        row.cells = &cell;
        row.n_cells = 1;
        assert_int_equal(eng_batch_row(b, &part, &row, NULL, &p->e), 0);
        assert_int_equal(eng_batch_commit(b, &seq, &p->e), 0);
        eng_batch_free(b);
    }
}

/* The memory of a read downwards is bounded. Upwards the same partition is read, and others downwards. */
static void test_a_read_downwards_of_too_many_bytes_is_refused(void **state) {
    enum { ROWS = 66 };
    struct pair *p = *state;
    /* Neither server moves rows to pieces, for their bytes or their number. */
    pair_store(p->rados)->o.split_bytes = pair_store(p->other)->o.split_bytes = (uint64_t)1 << 40;
    write_megabytes(p, 0, ROWS);
    write_megabytes(p, 1, 3);
    struct eng_part large = pair_part(p, 0);
    assert_int_equal(scan_all(p, &large, false), ROWS);
    assert_int_equal(scan_all(p, &large, true), -1);
    assert_int_equal(p->e.code, ERR_READ_FAILURE);
    err_clear(&p->e);
    struct eng_part small = pair_part(p, 1);
    assert_int_equal(scan_all(p, &small, true), 3);
}

/* A wide partition is read downwards piece by piece, however large it is. */
static void test_a_wide_partition_is_read_downwards(void **state) {
    enum { ROWS = 70 };
    struct pair *p = *state;
    struct eng_part large = pair_part(p, 0);
    struct rados *s = pair_store(p->rados);
    struct buf prefix;
    uint64_t split_bytes = s->o.split_bytes;
    buf_init(&prefix, 0);
    engi_key_prefix(&prefix, &large);
    s->o.split_bytes = (uint64_t)1 << 40; /* this test alone moves rows */
    write_megabytes(p, 0, ROWS);
    s->o.split_bytes = split_bytes;
    struct shard *sh = shard_map_find(&s->shards, large.table, shard_position(buf_slice(&prefix)));
    assert_int_equal(move_rows(s, sh, buf_slice(&prefix)), 0);
    assert_int_equal(scan_all(p, &large, true), ROWS);
    assert_int_equal(scan_all(p, &large, false), ROWS);
    buf_fini(&prefix);
}

/* Writes a row to a partition, or to two, of which this thread has the locks. */
static int write_locked(struct pair *p, struct eng *eng, const struct eng_part *const *parts, uint32_t n,
                        bool *written) {
    struct eng_row row;
    uint64_t seq;
    struct eng_batch *b = eng_batch_new(eng);
    assert_non_null(b);
    eng_row_init(&row, ENG_ROW, slice_str("a"));
    row.live_ts = 1;
    for (uint32_t i = 0; i < n; i++) assert_int_equal(eng_batch_row(b, parts[i], &row, NULL, &p->e), 0);
    memset(written, 0, n * sizeof(*written));
    int rc = eng_batch_commit_locked(b, parts, n, written, &seq, &p->e);
    eng_batch_free(b);
    return rc;
}

/* The first read under a lock decides what a write may depend on. */
static void read_first(struct pair *p, const struct eng_part *part) {
    struct eng_row row;
    struct arena a;
    arena_init(&a, 1 << 10, 0);
    assert_true(eng_row_get(p->rados, ENG_TIER_ANY, part, ENG_ROW, slice_str("a"), p->now, &a, &row, NULL, &p->e) >= 0);
    arena_fini(&a);
}

struct other_write {
    struct pair *p;
    const struct eng_part *const *parts;
    uint32_t n;
    int rc;
};

static void *write_by_other(void *arg) {
    struct other_write *w = arg;
    bool written[2];
    eng_lock_many(w->p->other, w->parts, w->n);
    w->rc = write_locked(w->p, w->p->other, w->parts, w->n, written);
    eng_unlock_many(w->p->other, w->parts, w->n);
    return NULL;
}

/* Of a batch over two partitions, one of which another client has written to, the other one is written. The commit
 * says which, and the error says so. If the other client has written to both, it says that nothing was written. */
static void test_a_batch_written_in_part_reports_it(void **state) {
    struct pair *p = *state;
    uint8_t keys[2][4];
    struct eng_part parts[2];
    const struct eng_part *both[] = {&parts[0], &parts[1]};
    bool written[2];
    for (uint32_t i = 0; i < 2; i++) {
        parts[i] = pair_part(p, i);
        memcpy(keys[i], p->partition, 4);
        parts[i].key = slice_of(keys[i], 4);
    }
    for (uint32_t n = 1; n <= 2; n++) {
        eng_lock_many(p->rados, both, 2);
        for (uint32_t i = 0; i < 2; i++) read_first(p, &parts[i]);
        struct other_write w = {.p = p, .parts = both, .n = n};
        pthread_t other; /* a thread locks partitions of one engine at a time */
        assert_int_equal(pthread_create(&other, NULL, write_by_other, &w), 0);
        pthread_join(other, NULL);
        assert_int_equal(w.rc, 0);
        assert_int_equal(write_locked(p, p->rados, both, 2, written), ENG_CHANGED);
        assert_false(written[0]);
        assert_int_equal(written[1], n == 1);
        eng_unlock_many(p->rados, both, 2);
        assert_int_equal(p->e.code, ERR_WRITE_TIMEOUT);
        assert_non_null(strstr(p->e.text, n == 1 ? "the others were written" : "nothing was written"));
        err_clear(&p->e);
    }
}

/* ---- verification ---- */

static void remove_raw(struct pair *p, const char *object, struct slice key) {
    struct omap_write w = {0};
    omap_write_remove(&w, key);
    assert_int_equal(omap_write_run(&w, &pair_store(p->rados)->pool, object), 0);
    omap_write_fini(&w);
}

static void write_some(struct pair *p, size_t n) {
    for (size_t i = 0; i < n; i++) {
        struct statement s;
        do pair_draw_statement(p, &s);
        while (s.kind < 4);
        pair_commit(p, i % 2 ? p->rados : p->other, &s, 1, false);
    }
}

static size_t n_shards(struct eng *eng) {
    struct shard_map *m = &pair_store(eng)->shards;
    pthread_rwlock_rdlock(&m->lock);
    size_t n = m->n;
    pthread_rwlock_unlock(&m->lock);
    return n;
}

static void await_no_shards(struct eng *eng) {
    enum { HANG_S = 120, EACH_US = 1000 };
    for (int i = 0; n_shards(eng) && i < HANG_S * 1000000 / EACH_US; i++) usleep(EACH_US);
    assert_int_equal(n_shards(eng), 0);
}

/* One engine frees the table. The other forgets it, when the last batch that has a write to it is gone. */
static void test_shards_of_a_freed_table_are_removed_from_memory(void **state) {
    struct pair *p = *state;
    struct eng_part part = pair_part(p, 1);
    struct eng_batch *held = eng_batch_new(p->other);
    struct buf text;
    write_some(p, 300);
    assert_true(n_shards(p->rados) > 0 && n_shards(p->other) > 0);
    assert_int_equal(eng_batch_delete_partition(held, &part, p->now, 1, NULL, &p->e), 0);
    assert_int_equal(eng_table_drop(p->rados, p->table, &p->e), 0);
    await_no_shards(p->rados);
    eng_table_forget(p->other, p->table);
    assert_true(n_shards(p->other) > 0);
    eng_batch_free(held);
    await_no_shards(p->other);
    buf_init(&text, 0);
    for (int i = 1; i < 3; i++) {
        pair_scan(p, pair_engine(p, i), NULL, NULL, false, &text);
        assert_int_equal(text.n, 0);
        assert_int_equal(n_shards(pair_engine(p, i)), 0);
    }
    buf_fini(&text);
}

static void test_damage_of_a_shard_is_found(void **state) {
    struct pair *p = *state;
    struct shard sh = {.id = {.table = p->table}};
    struct buf key;
    shard_name(&sh.id, sh.name);
    buf_init(&key, 0);
    write_some(p, 20);
    assert_true(pair_assert_found(p, true, NULL) >= 20);
    pair_put_raw(p, sh.name, slice_str("garbage"), slice_str("x"));
    pair_assert_found(p, true, "its key is none of an operand");
    remove_raw(p, sh.name, slice_str("garbage"));
    pair_assert_found(p, true, NULL);

    /* an operand of a row that decodes to nothing, and that no counter counts */
    struct omap_operand_id id = {.kind = OMAP_APPENDED, .sequence = 1, .writer = 1};
    struct buf record;
    buf_init(&record, 0);
    harness_key(&record, p->table, 1, ENGI_ROW, slice_str("01"));
    omap_key_escape(&key, slice_of(record.p + ENGI_KEY_TOKEN, record.n - ENGI_KEY_TOKEN));
    buf_u8(&key, OMAP_KEY_END);
    omap_key_operand(&key, &id);
    pair_put_raw(p, sh.name, buf_slice(&key), slice_str("\xff\xff\xff"));
    pair_assert_found(p, true, ": the key 0x");
    pair_assert_found(p, true, "21 operands of");
    pair_assert_found(p, true, "and counts 20 of");
    remove_raw(p, sh.name, buf_slice(&key));
    pair_assert_found(p, true, NULL);

    pair_put_raw(p, sh.name, shard_state_key, slice_str("?"));
    pair_assert_found(p, true, "is in no state");
    pair_put_raw(p, sh.name, shard_state_key, shard_state_value(SHARD_SPLIT));
    pair_assert_found(p, true, "is split and still has 20 keys");
    pair_assert_found(p, true, "the object of its half 0 is missing");
    pair_put_raw(p, sh.name, shard_state_key, shard_state_value(SHARD_OPEN));
    pair_assert_found(p, false, "which no object of the catalogue has");
    buf_fini(&record);
    buf_fini(&key);
}

struct noted_piece {
    uint32_t table;
    char name[PIECE_NAME];
};

/* Keeps the name of a piece of this test's table. */
static int note_piece(void *arg, const char *name) {
    struct noted_piece *note = arg;
    uint32_t table;
    uint64_t id, number;
    if (piece_name_read(name, &table, &id, &number) == 0 && table == note->table)
        snprintf(note->name, sizeof(note->name), "%s", name);
    return 0;
}

static void test_damage_of_a_piece_is_found(void **state) {
    struct pair *p = *state;
    struct noted_piece note = {.table = p->table};
    pair_compare_random(p, ROUNDS / 4);
    /* engines that have written nothing move nothing */
    eng_close(p->rados);
    eng_close(p->other);
    p->rados = pair_open(&p->clock, 10, &p->e);
    p->other = pair_open(&p->clock, 10, &p->e);
    assert_int_equal(pool_each_object(&pair_store(p->rados)->pool, note_piece, &note), 0);
    assert_true(note.name[0] != 0);
    pair_assert_found(p, true, NULL);
    pair_put_raw(p, note.name, slice_str("garbage"), slice_str("x"));
    pair_assert_found(p, true, "its key is none of an operand");
    remove_raw(p, note.name, slice_str("garbage"));
    pair_put_raw(p, note.name, shard_state_key, slice_str("?"));
    pair_assert_found(p, true, "is in no state");
    pair_put_raw(p, note.name, shard_state_key, shard_state_value(SHARD_OPEN));
    pair_assert_found(p, true, NULL);
    pair_assert_found(p, false, note.name);
}

static void test_inconsistent_halves_and_wholes_are_found(void **state) {
    struct pair *p = *state;
    struct shard root = {.id = {.table = p->table}}, half = {.id = shard_half(&root.id, 1)};
    const struct pool *pool = &pair_store(p->rados)->pool;
    shard_name(&root.id, root.name);
    shard_name(&half.id, half.name);
    write_some(p, 10);
    pair_put_raw(p, half.name, shard_state_key, shard_state_value(SHARD_OPEN));
    pair_assert_found(p, true, "is an open half of a shard that is not split");
    pair_put_raw(p, half.name, shard_state_key, shard_state_value(SHARD_COPIED)); /* a split that has begun */
    pair_assert_found(p, true, NULL);
    pair_put_raw(p, half.name, shard_state_key, shard_state_value(SHARD_OPEN));
    assert_int_equal(pool->lib->remove(pool->io, root.name), 0);
    pair_assert_found(p, true, "the object of the whole is missing");
    assert_int_equal(eng_table_drop(p->rados, p->table, &p->e), 0);
    pair_assert_found(p, false, NULL);
    pair_put_raw(p, half.name, shard_state_key, shard_state_value(SHARD_OPEN));
    pair_assert_found(p, false, "which was dropped");
    pair_assert_found(p, true, NULL); /* as after a server was killed in the middle of the drop */
    assert_int_equal(pool->lib->remove(pool->io, half.name), 0);
}

/* Two engines write, split and fold while a third looks at everything. */
static void *write_on(void *arg) {
    struct pair *p = arg;
    for (int i = 0; i < 300; i++) {
        struct statement s;
        pair_draw_statement(p, &s);
        pair_commit(p, i % 2 ? p->rados : p->other, &s, 1, false);
    }
    return NULL;
}

static void test_verification_finds_no_damage_while_others_write(void **state) {
    struct pair *p = *state, looks = *p;
    pthread_t writer;
    assert_int_equal(pthread_create(&writer, NULL, write_on, p), 0);
    for (int i = 0; i < 10; i++) pair_assert_found(&looks, true, NULL);
    pthread_join(writer, NULL);
    pair_assert_found(p, true, NULL);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_both_engines_return_the_same_rows, setup, pair_teardown),
        cmocka_unit_test_setup_teardown(test_operations_on_a_loop_are_left_to_workers, setup, pair_teardown),
        cmocka_unit_test_setup_teardown(test_a_batch_that_was_left_in_the_log_is_applied, setup, pair_teardown),
        cmocka_unit_test_setup_teardown(test_a_batch_that_cannot_be_applied_stays_in_the_log, setup,
                                        pair_teardown),
        cmocka_unit_test_setup_teardown(test_a_batch_of_a_living_server_waits_for_its_age, setup, pair_teardown),
        cmocka_unit_test_setup_teardown(test_a_batch_of_a_server_that_died_is_applied_at_once, setup, pair_teardown),
        cmocka_unit_test_setup_teardown(test_a_damaged_record_of_the_log_does_not_delay_others, setup, pair_teardown),
        cmocka_unit_test_setup_teardown(test_a_read_downwards_of_too_many_bytes_is_refused, setup_large,
                                        pair_teardown),
        cmocka_unit_test_setup_teardown(test_a_wide_partition_is_read_downwards, setup_large, pair_teardown),
        cmocka_unit_test_setup_teardown(test_a_batch_written_in_part_reports_it, setup, pair_teardown),
        cmocka_unit_test_setup_teardown(test_shards_of_a_freed_table_are_removed_from_memory, setup, pair_teardown),
        cmocka_unit_test_setup_teardown(test_damage_of_a_shard_is_found, setup, pair_teardown),
        cmocka_unit_test_setup_teardown(test_inconsistent_halves_and_wholes_are_found, setup, pair_teardown),
        cmocka_unit_test_setup_teardown(test_verification_finds_no_damage_while_others_write, setup, pair_teardown),
        cmocka_unit_test_setup_teardown(test_damage_of_a_piece_is_found, setup_wide, pair_teardown),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
