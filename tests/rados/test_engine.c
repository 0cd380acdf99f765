/* The engine on Ceph answers as the engine of one process with its store in memory does: the same
 * random statements go to both, and every row, slice and scan is compared, while shards split. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

#include <cmocka.h>
#include <pthread.h>

#include "base/murmur3.h"
#include "engine/engine.h"
#include "engine/rados/batchlog.h"
#include "engine/rados/fetch.h"
#include "engine/rados/omap_key.h"
#include "engine/rados/move.h"
#include "engine/rados/pieces.h"
#include "engine/rados/reclaim.h"
#include "engine/rados/store.h"
#include "engine/rados/write.h"
#include "engine/verify.h"
#include "harness.h"

enum { PARTITIONS = 25, WIDE_PARTITIONS = 3, KEYS = 30, COLUMNS = 4, ROUNDS = 1200 };

struct pair {
    struct eng *local, *rados, *other; /* other: a second client of the cluster */
    struct clock clock;
    int64_t now; /* seconds */
    uint32_t table, partitions;
    uint64_t random;
    int64_t newer; /* added to the timestamps of statements */
    uint8_t partition[4];
    struct err e;
};

static uint32_t draw(struct pair *p, uint32_t below) {
    p->random ^= p->random << 13, p->random ^= p->random >> 7, p->random ^= p->random << 17;
    return (uint32_t)(p->random >> 20) % below;
}

static struct rados *store_rados(struct eng *eng) { return rados_of(store_of(eng)); }

static int64_t now_us(struct clock *c) {
    return ((struct pair *)((char *)c - offsetof(struct pair, clock)))->now * 1000000;
}

static struct eng *open_rados(struct clock *clock, uint64_t split_keys, struct err *e) {
    struct eng_rados rados = {.conf = getenv("TALLY_RADOS_CONF"), .pool = "tally", .split_keys = split_keys};
    struct eng *eng = eng_open(&(struct eng_options){.rados = &rados, .clock = clock}, e);
    if (!eng) fail_msg("%s", e->text);
    return eng;
}

static int setup_with(void **state, uint32_t partitions, uint64_t split_keys) {
    struct pair *p = calloc(1, sizeof(*p));
    p->clock = (struct clock){.wall_us = now_us, .mono_us = now_us};
    p->now = clock_wall_us(&clock_real) / 1000000;
    struct eng_options o = {.durability = ENG_NONE, .clock = &p->clock};
    p->local = eng_open(&o, &p->e);
    p->rados = open_rados(&p->clock, split_keys, &p->e);
    p->other = open_rados(&p->clock, split_keys, &p->e);
    p->table = harness_table();
    p->partitions = partitions;
    p->random = 88172645463325252u;
    *state = p;
    return p->local ? 0 : -1;
}

static int setup(void **state) { return setup_with(state, PARTITIONS, 60); }
/* Few partitions, whose rows go to pieces of a few rows. */
static int setup_wide(void **state) { return setup_with(state, WIDE_PARTITIONS, 10); }

/* Shards are as large as those of a server. */
static int setup_large(void **state) { return setup_with(state, PARTITIONS, 0); }

static int teardown(void **state) {
    struct pair *p = *state;
    eng_close(p->local);
    eng_close(p->rados);
    eng_close(p->other);
    free(p);
    return 0;
}

static struct eng_part part_of(struct pair *p, uint32_t number) {
    store_u32(p->partition, number);
    struct slice key = slice_of(p->partition, 4);
    return (struct eng_part){.table = p->table, .token = murmur3_token(key), .key = key};
}

/* ---- statements ---- */

struct statement {
    uint32_t partition, kind, from, to;
    struct eng_row row;
    struct eng_cell cells[COLUMNS];
    char ck[8], from_key[8], to_key[8], values[COLUMNS][24];
    int64_t ts;
};

static void draw_row(struct pair *p, struct statement *s, enum eng_row_kind kind) {
    snprintf(s->ck, sizeof(s->ck), "%02u", draw(p, KEYS));
    eng_row_init(&s->row, kind, kind == ENG_STATIC ? slice_of("", 0) : slice_str(s->ck));
    s->row.cells = s->cells;
    if (kind == ENG_ROW && draw(p, 2)) s->row.live_ts = s->ts;
    if (kind == ENG_ROW && !draw(p, 6)) {
        s->row.del_ts = s->ts;
        s->row.del_at = p->now;
        return;
    }
    for (uint32_t column = 0; column < COLUMNS; column++) {
        if (draw(p, 2)) continue;
        struct eng_cell *c = &s->cells[s->row.n_cells++];
        snprintf(s->values[column], sizeof(s->values[column]), "%u", draw(p, 1 << 30));
        *c = (struct eng_cell){
            .column = column, .ts = s->ts, .expiry = ENG_NO_EXPIRY, .value = slice_str(s->values[column])};
        if (!draw(p, 5))
            *c = (struct eng_cell){.column = column, .flags = ENG_CELL_TOMBSTONE, .ts = s->ts, .expiry = p->now};
        else if (!draw(p, 5)) {
            c->flags = ENG_CELL_EXPIRING;
            c->ttl = 100;
            c->expiry = p->now - 50 + (int64_t)draw(p, 100);
        }
    }
    if (!s->row.n_cells) s->row.live_ts = s->ts;
}

static void draw_statement(struct pair *p, struct statement *s) {
    *s = (struct statement){.partition = draw(p, p->partitions), .kind = draw(p, 20)};
    s->ts = p->newer + 1 + (int64_t)draw(p, 2000);
    s->from = draw(p, KEYS), s->to = s->from + 1 + draw(p, KEYS - s->from);
    snprintf(s->from_key, sizeof(s->from_key), "%02u", s->from);
    snprintf(s->to_key, sizeof(s->to_key), "%02u", s->to);
    if (s->kind >= 2) draw_row(p, s, s->kind < 4 ? ENG_STATIC : ENG_ROW);
}

static void add(struct pair *p, struct eng_batch *b, const struct statement *s) {
    struct eng_part part = part_of(p, s->partition);
    struct eng_slice range = {.from = {.key = slice_str(s->from_key)}, .to = {.key = slice_str(s->to_key)}};
    int rc;
    if (s->kind == 0) rc = s->partition % 2 ? 0 : eng_batch_delete_partition(b, &part, s->ts, p->now, NULL, &p->e);
    else if (s->kind == 1) rc = eng_batch_delete_range(b, &part, &range, s->ts, p->now, NULL, &p->e);
    else rc = eng_batch_row(b, &part, &s->row, NULL, &p->e);
    if (rc) fail_msg("%s", p->e.text);
}

static void commit(struct pair *p, struct eng *eng, const struct statement *statements, size_t n, bool together) {
    struct eng_batch *b = eng_batch_new(eng);
    uint64_t seq;
    if (together) eng_batch_savepoint(b);
    for (size_t i = 0; i < n; i++) add(p, b, &statements[i]);
    if (together) eng_batch_release(b);
    if (eng_batch_commit(b, &seq, &p->e)) fail_msg("%s", p->e.text);
    eng_batch_free(b);
}

/* ---- what is read ---- */

static void row_text(const struct eng_row *row, struct buf *out) {
    buf_printf(out, "%.*s:%lld,%lld", SLICE_FMT(row->ck), (long long)row->live_ts, (long long)row->newest_ts);
    for (uint32_t i = 0; i < row->n_cells; i++)
        buf_printf(out, " %u=%.*s@%lld/%lld", row->cells[i].column, SLICE_FMT(row->cells[i].value),
                   (long long)row->cells[i].ts, (long long)row->cells[i].expiry);
    buf_u8(out, '\n');
}

static void read_pair(struct pair *p, struct eng *eng, uint32_t partition, const char *ck, struct buf *out) {
    struct eng_pair got;
    struct op_cost cost = {0};
    struct arena a;
    struct eng_part part = part_of(p, partition);
    arena_init(&a, 1 << 12, 0);
    if (eng_pair_get(eng, ENG_TIER_ANY, &part, slice_str(ck), p->now, &a, &got, &cost, &p->e))
        fail_msg("%s", p->e.text);
    buf_printf(out, "%d %d markers %u newest %lld: ", got.has_row, got.has_statics, got.row.n_markers,
               (long long)got.row.newest_ts);
    if (got.has_row) row_text(&got.row, out);
    if (got.has_statics) row_text(&got.statics, out);
    arena_fini(&a);
}

static void scan(struct pair *p, struct eng *eng, const struct eng_part *part, const struct eng_slice *slice,
                 bool reverse, struct buf *out) {
    struct eng_scan_spec spec = {.table = p->table,
                                 .part = part,
                                 .token_from = INT64_MIN,
                                 .token_to = INT64_MAX,
                                 .slices = slice,
                                 .n_slices = slice != NULL,
                                 .reverse = reverse,
                                 .statics = true,
                                 .rows = true,
                                 .now = p->now};
    struct op_cost cost = {0};
    struct eng_item item;
    struct eng_scan *s = eng_scan_open(eng, ENG_TIER_ANY, &spec, &cost, &p->e);
    int got;
    if (!s) fail_msg("%s", p->e.text);
    while ((got = eng_scan_next(s, &item, &p->e)) > 0) {
        if (item.kind == ENG_ITEM_ROW) row_text(item.row, out);
        else if (item.kind == ENG_ITEM_PARTITION && item.has_static) {
            buf_printf(out, "partition %u: ", load_u32(item.part.key.p));
            row_text(&item.statics, out);
        }
    }
    if (got < 0) fail_msg("%s", p->e.text);
    eng_scan_close(s);
}

struct texts {
    struct buf of[3];
};
static void texts_init(struct texts *t) {
    for (int i = 0; i < 3; i++) buf_init(&t->of[i], 0);
}
static void texts_compare(struct texts *t) {
    for (int i = 0; i < 3; i++) buf_u8(&t->of[i], 0);
    for (int i = 1; i < 3; i++) assert_string_equal((char *)t->of[i].p, (char *)t->of[0].p);
    for (int i = 0; i < 3; i++) buf_fini(&t->of[i]);
}

static struct eng *engine_at(struct pair *p, int i) { return i == 0 ? p->local : i == 1 ? p->rados : p->other; }

static void compare_partition(struct pair *p, uint32_t partition) {
    struct texts t;
    char ck[8], from[8], to[8];
    uint32_t start = draw(p, KEYS), end = start + 1 + draw(p, KEYS - start);
    snprintf(ck, sizeof(ck), "%02u", draw(p, KEYS));
    snprintf(from, sizeof(from), "%02u", start);
    snprintf(to, sizeof(to), "%02u", end);
    struct eng_slice slice = {.from = {.key = slice_str(from)}, .to = {.key = slice_str(to)}};
    texts_init(&t);
    for (int i = 0; i < 3; i++) {
        struct eng_part part = part_of(p, partition);
        read_pair(p, engine_at(p, i), partition, ck, &t.of[i]);
        scan(p, engine_at(p, i), &part, &slice, false, &t.of[i]);
        scan(p, engine_at(p, i), &part, &slice, true, &t.of[i]);
        scan(p, engine_at(p, i), &part, NULL, false, &t.of[i]);
    }
    texts_compare(&t);
}

static void compare_table(struct pair *p) {
    struct texts t;
    texts_init(&t);
    for (int i = 0; i < 3; i++) scan(p, engine_at(p, i), NULL, NULL, false, &t.of[i]);
    texts_compare(&t);
}

static void compare_random(struct pair *p, int rounds) {
    for (int round = 0; round < rounds; round++) {
        struct statement statements[3];
        size_t n = 1 + draw(p, 3);
        bool together = draw(p, 2);
        for (size_t i = 0; i < n; i++) draw_statement(p, &statements[i]);
        commit(p, p->local, statements, n, together);
        commit(p, draw(p, 2) ? p->rados : p->other, statements, n, together);
        if (round % 8 == 0) compare_partition(p, draw(p, p->partitions));
        if (round % 200 == 199) compare_table(p);
    }
    for (uint32_t i = 0; i < p->partitions; i++) compare_partition(p, i);
}

static void test_both_engines_answer_the_same(void **state) {
    struct pair *p = *state;
    compare_random(p, ROUNDS);
    assert_true(store_rados(p->rados)->n_splits + store_rados(p->other)->n_splits > 3);
    assert_true(store_rados(p->rados)->n_folds + store_rados(p->other)->n_folds > 0);
}

static void test_both_engines_answer_the_same_of_wide_partitions(void **state) {
    struct pair *p = *state;
    compare_random(p, ROUNDS / 2);
    assert_true(store_rados(p->rados)->n_moves + store_rados(p->other)->n_moves > 10);
}

static void test_a_loop_is_told_to_leave_it_to_workers(void **state) {
    struct pair *p = *state;
    struct statement s;
    struct eng_row row;
    struct arena a;
    uint64_t seq;
    struct eng_part part = part_of(p, 1);
    do draw_statement(p, &s);
    while (s.kind < 4);
    struct eng_batch *b = eng_batch_new(p->rados);
    add(p, b, &s);
    assert_int_equal(eng_batch_try_commit(b, &seq, &p->e), ENG_BUSY);
    assert_int_equal(eng_batch_commit(b, &seq, &p->e), 0);
    eng_batch_free(b);
    arena_init(&a, 1 << 12, 0);
    int got =
        eng_row_get(p->rados, ENG_TIER_CACHE, &part, ENG_ROW, slice_str("01"), p->now, &a, &row, NULL, &p->e);
    assert_int_equal(got, ENG_INCOMPLETE);
    arena_fini(&a);
}

/* Leaves a batch over two partitions in the log, as a server that dies before it writes them: for this one, every
 * object is full. */
static void leave_in_log(struct pair *p, const struct statement s[2]) {
    struct rados *r = store_rados(p->rados);
    struct eng_batch *b = eng_batch_new(p->rados);
    uint64_t seq, max_keys = r->o.max_keys;
    eng_batch_savepoint(b);
    for (int i = 0; i < 2; i++) add(p, b, &s[i]);
    eng_batch_release(b);
    r->o.max_keys = 0;
    assert_int_equal(eng_batch_commit(b, &seq, &p->e), -1);
    assert_non_null(strstr(p->e.text, "is full"));
    r->o.max_keys = max_keys;
    err_clear(&p->e);
    eng_batch_free(b);
}

static void test_a_batch_that_was_left_in_the_log_is_applied(void **state) {
    struct pair *p = *state;
    struct statement s[2];
    struct rados *r = store_rados(p->other);
    size_t n;
    for (int i = 0; i < 2; i++) do
            draw_statement(p, &s[i]);
        while (s[i].kind < 4 || (i && s[0].partition == s[1].partition));
    commit(p, p->local, s, 2, true);
    leave_in_log(p, s);
    assert_int_equal(batchlog_replay(r, 3600 * 1000000ll, &n, &p->e), 0);
    assert_int_equal(n, 0);
    assert_int_equal(batchlog_replay(r, -1000000, &n, &p->e), 0);
    assert_int_equal(n, 1);
    assert_int_equal(batchlog_replay(r, -1000000, &n, &p->e), 0);
    assert_int_equal(n, 0);
    compare_table(p);
}

/* A record in front of it that nobody can read holds it up as little. */
static void test_a_damaged_record_of_the_log_holds_up_no_other(void **state) {
    struct pair *p = *state;
    struct rados *r = store_rados(p->other);
    struct statement s[2];
    struct omap_write damaged = {.creates = true}, gone = {0};
    struct buf key;
    size_t n;
    buf_init(&key, 0);
    omap_key_number(&key, 1, OMAP_SEQUENCE_DIGITS);
    omap_key_number(&key, 1, 6);
    omap_write_set(&damaged, buf_slice(&key), slice_str("damaged"));
    assert_int_equal(omap_write_run(&damaged, &r->pool, "batches"), 0);
    for (int i = 0; i < 2; i++) do
            draw_statement(p, &s[i]);
        while (s[i].kind < 4 || (i && s[0].partition == s[1].partition));
    commit(p, p->local, s, 2, true);
    leave_in_log(p, s);
    assert_int_equal(batchlog_replay(r, -1000000, &n, &p->e), -1);
    assert_non_null(strstr(p->e.text, "damaged"));
    assert_int_equal(n, 1);
    err_clear(&p->e);
    compare_table(p);
    omap_write_remove(&gone, buf_slice(&key));
    assert_int_equal(omap_write_run(&gone, &r->pool, "batches"), 0);
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
    struct eng_part part = part_of(p, number);
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
static void test_a_shard_with_too_much_to_be_read_downwards_refuses_that(void **state) {
    enum { ROWS = 66 };
    struct pair *p = *state;
    store_rados(p->rados)->o.split_bytes = (uint64_t)1 << 40; /* no rows are moved to pieces */
    write_megabytes(p, 0, ROWS);
    write_megabytes(p, 1, 3);
    struct eng_part large = part_of(p, 0);
    assert_int_equal(scan_all(p, &large, false), ROWS);
    assert_int_equal(scan_all(p, &large, true), -1);
    assert_int_equal(p->e.code, ERR_READ_FAILURE);
    err_clear(&p->e);
    struct eng_part small = part_of(p, 1);
    assert_int_equal(scan_all(p, &small, true), 3);
}

/* A wide partition is read downwards piece by piece, however large it is. */
static void test_a_wide_partition_is_read_downwards(void **state) {
    enum { ROWS = 70 };
    struct pair *p = *state;
    struct eng_part large = part_of(p, 0);
    struct rados *s = store_rados(p->rados);
    struct shard *sh = shard_map_find(&s->shards, large.table, (uint64_t)large.token ^ (uint64_t)1 << 63);
    write_megabytes(p, 0, ROWS);
    while (!atomic_load(&s->n_moves)) assert_int_equal(move_relieve(s, sh), 0);
    assert_int_equal(scan_all(p, &large, true), ROWS);
    assert_int_equal(scan_all(p, &large, false), ROWS);
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
static void test_a_batch_that_is_written_in_part_says_so(void **state) {
    struct pair *p = *state;
    uint8_t keys[2][4];
    struct eng_part parts[2];
    const struct eng_part *both[] = {&parts[0], &parts[1]};
    bool written[2];
    for (uint32_t i = 0; i < 2; i++) {
        parts[i] = part_of(p, i);
        memcpy(keys[i], p->partition, 4);
        parts[i].key = slice_of(keys[i], 4);
    }
    for (uint32_t n = 1; n <= 2; n++) {
        eng_lock_many(p->rados, both, 2);
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

struct findings {
    struct pair *p;
    struct buf words; /* of this test's table */
    bool in_catalogue;
};

static void take_finding(void *arg, const char *words) {
    struct findings *f = arg;
    char table[16], id[16];
    snprintf(table, sizeof(table), ".%08x.", f->p->table);
    snprintf(id, sizeof(id), "id %u", f->p->table);
    if (strstr(words, table) || strstr(words, id)) buf_printf(&f->words, "%s\n", words);
}
static int take_record(void *arg, struct slice name, struct slice value, struct err *e) {
    return (void)arg, (void)name, (void)value, (void)e, 0;
}
static void take_store(void *arg) { (void)arg; }
static bool catalogue_has(void *arg, uint32_t id) {
    const struct findings *f = arg;
    return id != f->p->table || f->in_catalogue;
}

/* Expects the words to be found; NULL: nothing. Returns the number of operands of all tables. */
static uint64_t assert_found(struct pair *p, bool in_catalogue, const char *words) {
    struct findings f = {.p = p, .in_catalogue = in_catalogue};
    struct eng_rados where = {.conf = getenv("TALLY_RADOS_CONF"), .pool = "tally"};
    struct eng_verify v = {.found = take_finding, .named = take_record, .next_store = take_store,
                           .has = catalogue_has, .arg = &f};
    buf_init(&f.words, 0);
    if (eng_verify_rados(&v, &where, &p->e)) fail_msg("%s", p->e.text);
    buf_u8(&f.words, 0);
    if (!words && f.words.n > 1) fail_msg("found: %s", f.words.p);
    if (words && !strstr((char *)f.words.p, words)) fail_msg("not found: %s, but: %s", words, f.words.p);
    buf_fini(&f.words);
    return v.rows;
}

static void put_raw(struct pair *p, const char *object, struct slice key, struct slice value) {
    struct omap_write w = {.creates = true};
    omap_write_set(&w, key, value);
    assert_int_equal(omap_write_run(&w, &store_rados(p->rados)->pool, object), 0);
    omap_write_fini(&w);
}

static void remove_raw(struct pair *p, const char *object, struct slice key) {
    struct omap_write w = {0};
    omap_write_remove(&w, key);
    assert_int_equal(omap_write_run(&w, &store_rados(p->rados)->pool, object), 0);
    omap_write_fini(&w);
}

static void write_some(struct pair *p, size_t n) {
    for (size_t i = 0; i < n; i++) {
        struct statement s;
        do draw_statement(p, &s);
        while (s.kind < 4);
        commit(p, i % 2 ? p->rados : p->other, &s, 1, false);
    }
}

static void test_damage_of_a_shard_is_found(void **state) {
    struct pair *p = *state;
    struct shard sh = {.id = {.table = p->table}};
    struct buf key;
    shard_name(&sh.id, sh.name);
    buf_init(&key, 0);
    write_some(p, 20);
    assert_true(assert_found(p, true, NULL) >= 20);
    put_raw(p, sh.name, slice_str("garbage"), slice_str("x"));
    assert_found(p, true, "its key is none of an operand");
    remove_raw(p, sh.name, slice_str("garbage"));
    assert_found(p, true, NULL);

    /* an operand of a row that decodes to nothing, and that no counter counts */
    struct omap_operand_id id = {.kind = OMAP_APPENDED, .sequence = 1, .writer = 1};
    struct buf record;
    buf_init(&record, 0);
    harness_key(&record, p->table, 1, ENGI_ROW, slice_str("01"));
    omap_key_escape(&key, slice_of(record.p + ENGI_KEY_TOKEN, record.n - ENGI_KEY_TOKEN));
    buf_u8(&key, OMAP_KEY_END);
    omap_key_operand(&key, &id);
    put_raw(p, sh.name, buf_slice(&key), slice_str("\xff\xff\xff"));
    assert_found(p, true, ": the key 0x");
    assert_found(p, true, "21 operands of");
    assert_found(p, true, "and counts 20 of");
    remove_raw(p, sh.name, buf_slice(&key));
    assert_found(p, true, NULL);

    put_raw(p, sh.name, shard_state_key, slice_str("?"));
    assert_found(p, true, "is in no state");
    put_raw(p, sh.name, shard_state_key, shard_state_value(SHARD_SPLIT));
    assert_found(p, true, "is split and still has 20 keys");
    assert_found(p, true, "the object of its half 0 is missing");
    put_raw(p, sh.name, shard_state_key, shard_state_value(SHARD_OPEN));
    assert_found(p, false, "which no object of the catalogue has");
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
    compare_random(p, ROUNDS / 4);
    /* engines that have written nothing move nothing */
    eng_close(p->rados);
    eng_close(p->other);
    p->rados = open_rados(&p->clock, 10, &p->e);
    p->other = open_rados(&p->clock, 10, &p->e);
    assert_int_equal(pool_each_object(&store_rados(p->rados)->pool, note_piece, &note), 0);
    assert_true(note.name[0] != 0);
    assert_found(p, true, NULL);
    put_raw(p, note.name, slice_str("garbage"), slice_str("x"));
    assert_found(p, true, "its key is none of an operand");
    remove_raw(p, note.name, slice_str("garbage"));
    put_raw(p, note.name, shard_state_key, slice_str("?"));
    assert_found(p, true, "is in no state");
    put_raw(p, note.name, shard_state_key, shard_state_value(SHARD_OPEN));
    assert_found(p, true, NULL);
    assert_found(p, false, note.name);
}

static void test_halves_and_wholes_that_do_not_fit_are_found(void **state) {
    struct pair *p = *state;
    struct shard root = {.id = {.table = p->table}}, half = {.id = shard_half(&root.id, 1)};
    const struct pool *pool = &store_rados(p->rados)->pool;
    shard_name(&root.id, root.name);
    shard_name(&half.id, half.name);
    write_some(p, 10);
    put_raw(p, half.name, shard_state_key, shard_state_value(SHARD_OPEN));
    assert_found(p, true, "is an open half of a shard that is not split");
    put_raw(p, half.name, shard_state_key, shard_state_value(SHARD_COPIED)); /* a split that has begun */
    assert_found(p, true, NULL);
    put_raw(p, half.name, shard_state_key, shard_state_value(SHARD_OPEN));
    assert_int_equal(pool->lib->remove(pool->io, root.name), 0);
    assert_found(p, true, "the object of the whole is missing");
    assert_int_equal(eng_table_drop(p->rados, p->table, &p->e), 0);
    assert_found(p, false, NULL);
    put_raw(p, half.name, shard_state_key, shard_state_value(SHARD_OPEN));
    assert_found(p, false, "which was dropped");
    assert_int_equal(pool->lib->remove(pool->io, half.name), 0);
}

/* Two engines write, split and fold while a third looks at everything. */
static void *write_on(void *arg) {
    struct pair *p = arg;
    for (int i = 0; i < 300; i++) {
        struct statement s;
        draw_statement(p, &s);
        commit(p, i % 2 ? p->rados : p->other, &s, 1, false);
    }
    return NULL;
}

static void test_nothing_is_found_beside_writers(void **state) {
    struct pair *p = *state, looks = *p;
    pthread_t writer;
    assert_int_equal(pthread_create(&writer, NULL, write_on, p), 0);
    for (int i = 0; i < 10; i++) assert_found(&looks, true, NULL);
    pthread_join(writer, NULL);
    assert_found(p, true, NULL);
}

/* ---- reclaiming ---- */

enum { GC_GRACE = 1000 };

/* The keys in the objects of the table, but those that tell of the objects. */
static uint64_t keys_of(struct pair *p) {
    struct fetched f = {0};
    struct arena a;
    uint64_t n = 0;
    char start[64] = SHARD_HEAD_LAST;
    arena_init(&a, 1 << 12, 0);
    for (uint64_t position = 0;;) {
        const struct fetch_part part = {.start_after = start, .prefix = "", .max = OMAP_READ_MAX};
        arena_reset(&a);
        assert_int_equal(fetch(store_rados(p->rados), p->table, position, &part, 1, &a, &f), 0);
        const struct omap_pairs *pairs = &f.pairs[0];
        n += pairs->n;
        if (f.more[0]) {
            snprintf(start, sizeof(start), "%.*s", SLICE_FMT(pairs->items[pairs->n - 1].key));
            continue;
        }
        position = f.shard ? shard_last(&f.shard->id) + 1 : 0;
        if (!position) break;
        snprintf(start, sizeof(start), "%s", SHARD_HEAD_LAST);
    }
    fetched_fini(&f);
    arena_fini(&a);
    return n;
}

static void set_gc_grace(struct pair *p) {
    for (int i = 0; i < 3; i++) eng_table_set(engine_at(p, i), p->table, GC_GRACE);
}

static void write_both(struct pair *p, int n) {
    for (int i = 0; i < n; i++) {
        struct statement s;
        draw_statement(p, &s);
        commit(p, p->local, &s, 1, false);
        commit(p, draw(p, 2) ? p->rados : p->other, &s, 1, false);
    }
}

static void compare_all(struct pair *p) {
    compare_table(p);
    for (uint32_t i = 0; i < PARTITIONS; i++) compare_partition(p, i);
}

static void delete_everything(struct pair *p) {
    for (uint32_t i = 0; i < PARTITIONS; i++) {
        struct eng_part part = part_of(p, i);
        for (int k = 0; k < 2; k++) {
            uint64_t seq;
            struct eng_batch *b = eng_batch_new(engine_at(p, k));
            assert_int_equal(eng_batch_delete_partition(b, &part, 1 << 20, p->now, NULL, &p->e), 0);
            assert_int_equal(eng_batch_commit(b, &seq, &p->e), 0);
            eng_batch_free(b);
        }
    }
}

static void reclaim(struct pair *p, struct eng *eng) {
    if (eng_reclaim(eng, &p->e)) fail_msg("%s", p->e.text);
}

/* Data expire, gc_grace passes, and a pass is made in between: both engines still answer the same, and the cluster
 * keeps nothing that is dead. */
static void test_reclaiming_gives_space_back_and_changes_no_answer(void **state) {
    struct pair *p = *state;
    set_gc_grace(p);
    for (int era = 0; era < 6; era++) {
        write_both(p, 300);
        p->now += era % 2 ? 60 : GC_GRACE + 200;
        uint64_t before = keys_of(p);
        reclaim(p, p->local);
        reclaim(p, era % 3 ? p->rados : p->other);
        assert_true(keys_of(p) < before);
        compare_all(p);
        reclaim(p, p->rados); /* removes the own keys of empty partitions */
        uint64_t after = keys_of(p);
        reclaim(p, p->rados);
        assert_int_equal(keys_of(p), after); /* nothing was left to do */
    }
    assert_found(p, true, NULL);
    delete_everything(p);
    reclaim(p, p->rados);
    assert_int_equal(keys_of(p), 2 * PARTITIONS); /* the deletions, and marks */
    p->now += GC_GRACE + 1;
    for (int i = 0; i < 2; i++) reclaim(p, p->rados);
    reclaim(p, p->local);
    assert_int_equal(keys_of(p), 0);
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
            reclaim(&w->pair, i % 2 ? w->pair.rados : w->pair.other);
            continue;
        }
        draw_statement(&w->pair, &w->written[i]);
        w->written[i].row.cells = w->written[i].cells;
        commit(&w->pair, w->pair.other, &w->written[i], 1, false);
    }
    return NULL;
}

/* Two passes at the same time beside two writers, whose deletions are new. */
static void test_reclaiming_beside_writers_loses_nothing(void **state) {
    enum { THREADS = 4, WRITES = 250, PASSES = 6 };
    struct pair *p = *state;
    struct writer *w = calloc(THREADS, sizeof(*w));
    set_gc_grace(p);
    write_both(p, 600);
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
    reclaim(p, p->local);
    for (int i = 0; i < THREADS; i++)
        for (int k = 0; !w[i].reclaims && k < WRITES; k++) commit(p, p->local, &w[i].written[k], 1, false);
    reclaim(p, p->local);
    reclaim(p, p->rados);
    assert_found(p, true, NULL);
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
    set_gc_grace(p);
    for (int i = 0; i < 2; i++) do
            draw_statement(p, &s[i]);
        while (s[i].kind < 4 || (i && s[0].partition == s[1].partition));
    commit(p, p->local, s, 2, true);
    leave_in_log(p, s);
    p->now += 1;
    delete_everything(p);
    p->now += GC_GRACE + 100;
    reclaim(p, p->rados);
    assert_int_equal(keys_of(p), PARTITIONS);
    assert_int_equal(batchlog_replay(store_rados(p->other), -1000000, &n, &p->e), 0);
    assert_int_equal(n, 1);
    compare_all(p);
    for (int i = 0; i < 2; i++) reclaim(p, p->rados);
    reclaim(p, p->local);
    assert_int_equal(keys_of(p), 0);
    compare_all(p);
}

/* Each expiry is told once, by the engine that removes the row. */
static void test_a_row_that_expires_is_told_once(void **state) {
    struct pair *p = *state;
    set_gc_grace(p);
    n_expired = 0;
    for (uint32_t i = 0; i < 10; i++) {
        struct eng_part part = part_of(p, i);
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
    for (int i = 0; i < 4; i++) reclaim(p, i % 2 ? p->rados : p->other);
    assert_int_equal(n_expired, 5);
    assert_int_equal(keys_of(p), 5);
}

/* A partition with more rows than a round changes, and a deletion of all of them but one. */
static void write_large(struct pair *p) {
    enum { ROWS = 1501 }; /* all but one are dead: the last round is as full as can be */
    for (int k = 0; k < 2; k++) {
        struct eng_part part = part_of(p, 1);
        struct eng_batch *b = eng_batch_new(engine_at(p, k));
        uint64_t seq;
        for (int i = 0; i < ROWS; i++) {
            char ck[8];
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

/* Operands of their rows lie in several objects, of which a round sees one. */
static void test_nothing_is_reclaimed_of_wide_partitions(void **state) {
    struct pair *p = *state;
    set_gc_grace(p);
    compare_random(p, ROUNDS / 4);
    p->now += GC_GRACE + 100;
    for (int i = 0; i < 2; i++) reclaim(p, i ? p->rados : p->other);
    for (uint32_t i = 0; i < p->partitions; i++) compare_partition(p, i);
    compare_random(p, ROUNDS / 4);
}

static void test_a_large_deleted_partition_goes_in_rounds(void **state) {
    struct pair *p = *state;
    set_gc_grace(p);
    write_large(p);
    reclaim(p, p->rados);
    assert_int_equal(keys_of(p), 3); /* the row that was written later, the deletion, the mark */
    compare_all(p);
    p->now += GC_GRACE + 100;
    reclaim(p, p->rados);
    reclaim(p, p->local);
    assert_int_equal(keys_of(p), 2);
    compare_all(p);
}

/* The deletion is old when the first round finds it, and stays until the last one. */
static void test_an_old_deletion_goes_with_the_last_row_under_it(void **state) {
    struct pair *p = *state;
    set_gc_grace(p);
    write_large(p);
    p->now += GC_GRACE + 100;
    reclaim(p, p->rados);
    assert_int_equal(keys_of(p), 2);
    reclaim(p, p->local);
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
                                    .now_seconds = now,
                                    .before_seconds = now - GC_GRACE,
                                    .period_seconds = 100,
                                    .visited = count_record,
                                    .dropped = count_dropped,
                                    .arg = count};
    return reclaim_table(store_rados(eng), &r, &p->e);
}

/* Writes a row that has expired at the time of the passes. */
static void write_expired(struct pair *p, uint32_t number) {
    struct eng_part part = part_of(p, number);
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
    struct eng_part part = part_of(p, o->partition);
    for (int k = 0; k < 2; k++) {
        uint64_t seq;
        struct eng_batch *b = eng_batch_new(engine_at(p, k));
        assert_int_equal(eng_batch_delete_partition(b, &part, 100, p->now, NULL, &p->e), 0);
        assert_int_equal(eng_batch_commit(b, &seq, &p->e), 0);
        eng_batch_free(b);
    }
    p->now += GC_GRACE + 100;
    for (int i = 0; i < 2; i++) reclaim(p, p->other);
    reclaim(p, p->local);
    return 0;
}

static void drop_nothing(void *arg, struct slice key, struct slice value, int64_t covered_ts, bool expired) {
    (void)arg, (void)key, (void)value, (void)covered_ts, (void)expired;
}

/* At each step of the pass. Marks are younger than what the clock of this test calls old. */
static void test_a_pass_that_is_overtaken_brings_nothing_back(void **state) {
    enum { ROWS = 2, STEPS = 7 };
    struct pair *p = *state;
    p->now -= 1000000;
    set_gc_grace(p);
    for (int at = 1; at <= STEPS; at++) {
        struct overtaking o = {.p = p, .partition = (uint32_t)at, .at = at};
        struct eng_part part = part_of(p, o.partition);
        for (int i = 0; i < 4 * ROWS; i++) {
            struct eng_row row;
            uint64_t seq;
            struct eng_batch *b = eng_batch_new(engine_at(p, i % 2));
            eng_row_init(&row, ENG_ROW, slice_str(i / 4 ? "b" : "a"));
            row.live_ts = 1 + i % 4 / 2;
            assert_int_equal(eng_batch_row(b, &part, &row, NULL, &p->e), 0);
            assert_int_equal(eng_batch_commit(b, &seq, &p->e), 0);
            eng_batch_free(b);
        }
        const struct store_reclaim r = {.table = p->table,
                                        .now_seconds = p->now,
                                        .before_seconds = p->now - GC_GRACE,
                                        .visited = overtake,
                                        .dropped = drop_nothing,
                                        .arg = &o};
        assert_int_equal(reclaim_table(store_rados(p->rados), &r, &p->e), 0);
        assert_true(o.n >= at || at == STEPS);
        if (o.n >= at) compare_all(p);
    }
}

/* As if rows of the partition were taken elsewhere while a pass scans it: it gets another key of its own. */
static int take_rows_elsewhere(void *arg) {
    struct overtaking *o = arg;
    if (++o->n != o->at) return 0;
    struct shard *sh = shard_map_find(&store_rados(o->p->rados)->shards, o->p->table, 0);
    struct eng_part part = part_of(o->p, o->partition);
    struct buf prefix, key, value;
    buf_init(&prefix, 0);
    buf_init(&key, 0);
    buf_init(&value, 0);
    engi_key_prefix(&prefix, &part);
    omap_key_partition(&key, buf_slice(&prefix), OMAP_PIECES);
    pieces_write(&value, &(struct pieces){.id = 1, .move = 1, .next = 1});
    put_raw(o->p, sh->name, buf_slice(&key), buf_slice(&value));
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
                                        .now_seconds = p->now + GC_GRACE + 1000,
                                        .before_seconds = p->now + 1000,
                                        .visited = take_rows_elsewhere,
                                        .dropped = drop_one,
                                        .arg = &o};
        for (int i = 0; i < 2; i++) {
            write_expired(p, 1);
            assert_int_equal(reclaim_table(store_rados(p->rados), &r, &p->e), 0);
            assert_int_equal(o.dropped, at ? 0 : i + 1);
        }
    }
}

static void test_a_pass_ends_when_it_is_told(void **state) {
    struct pair *p = *state;
    struct count c = {.end_after = 5};
    for (uint32_t i = 0; i < 20; i++) write_expired(p, i);
    assert_int_equal(pass_of(p, p->rados, p->now + GC_GRACE + 1000, &c), 7);
    assert_int_equal(c.records, 5);
    assert_in_range(c.dropped, 1, 5);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_both_engines_answer_the_same, setup, teardown),
        cmocka_unit_test_setup_teardown(test_both_engines_answer_the_same_of_wide_partitions, setup_wide, teardown),
        cmocka_unit_test_setup_teardown(test_a_loop_is_told_to_leave_it_to_workers, setup, teardown),
        cmocka_unit_test_setup_teardown(test_a_batch_that_was_left_in_the_log_is_applied, setup, teardown),
        cmocka_unit_test_setup_teardown(test_a_damaged_record_of_the_log_holds_up_no_other, setup, teardown),
        cmocka_unit_test_setup_teardown(test_a_shard_with_too_much_to_be_read_downwards_refuses_that, setup, teardown),
        cmocka_unit_test_setup_teardown(test_a_wide_partition_is_read_downwards, setup_large, teardown),
        cmocka_unit_test_setup_teardown(test_a_batch_that_is_written_in_part_says_so, setup, teardown),
        cmocka_unit_test_setup_teardown(test_damage_of_a_shard_is_found, setup, teardown),
        cmocka_unit_test_setup_teardown(test_halves_and_wholes_that_do_not_fit_are_found, setup, teardown),
        cmocka_unit_test_setup_teardown(test_nothing_is_found_beside_writers, setup, teardown),
        cmocka_unit_test_setup_teardown(test_reclaiming_gives_space_back_and_changes_no_answer, setup, teardown),
        cmocka_unit_test_setup_teardown(test_reclaiming_beside_writers_loses_nothing, setup, teardown),
        cmocka_unit_test_setup_teardown(test_tombstones_stay_while_an_older_batch_is_in_the_log, setup, teardown),
        cmocka_unit_test_setup_teardown(test_a_row_that_expires_is_told_once, setup, teardown),
        cmocka_unit_test_setup_teardown(test_nothing_is_reclaimed_of_wide_partitions, setup_wide, teardown),
        cmocka_unit_test_setup_teardown(test_damage_of_a_piece_is_found, setup_wide, teardown),
        cmocka_unit_test_setup_teardown(test_a_large_deleted_partition_goes_in_rounds, setup_large, teardown),
        cmocka_unit_test_setup_teardown(test_an_old_deletion_goes_with_the_last_row_under_it, setup_large, teardown),
        cmocka_unit_test_setup_teardown(test_a_pass_that_is_overtaken_brings_nothing_back, setup, teardown),
        cmocka_unit_test_setup_teardown(test_a_shard_is_visited_by_one_server_in_a_period, setup, teardown),
        cmocka_unit_test_setup_teardown(test_a_partition_with_rows_elsewhere_is_left_alone, setup, teardown),
        cmocka_unit_test_setup_teardown(test_a_pass_ends_when_it_is_told, setup, teardown),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
