/* The engine's behaviour, the same in memory and on disk. */
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/fault.h"
#include "engine/named.h"
#include "engine/stats.h"
#include "engine/table.h"
#include "tests/unit/engine/world.h"

enum { TABLE = 20, NOW = 1000, OPERANDS = 100 };

static int setup(void **state, const char *store) {
    const struct eng_options o = {.durability = ENG_FSYNC,
                                  .clock = &clock_real,
                                  .memtable_bytes = 1 << 20,
                                  .block_cache_bytes = 1 << 20,
                                  .row_cache_bytes = 64 << 10};
    return *state = world_new(store, NOW, &o), 0;
}

static int setup_memory(void **state) { return setup(state, "memory"); }
static int setup_rocksdb(void **state) { return setup(state, "local"); }

static void put_row(struct world *w, const char *pk, enum eng_row_kind kind, const char *ck, const char *value,
                    int64_t ts) {
    struct eng_part part = part_of(TABLE, pk);
    struct eng_cell cell = {.column = 1, .ts = ts, .expiry = ENG_NO_EXPIRY, .value = slice_str(value)};
    struct eng_row row;
    eng_row_init(&row, kind, slice_str(ck));
    if (kind == ENG_ROW) row.live_ts = ts;
    row.cells = &cell;
    row.n_cells = 1;
    assert_int_equal(eng_batch_row(w->batch, &part, &row, NULL, &w->e), 0);
}

static void delete_row(struct world *w, const char *pk, const char *ck, int64_t ts) {
    add_row_deletion(w, TABLE, pk, ck, ts);
}

static struct eng_slice slice_between(const char *from, bool from_after, const char *to, bool to_after) {
    return (struct eng_slice){.from = {.key = slice_str(from), .after = from_after},
                              .to = {.key = slice_str(to), .after = to_after}};
}

static void delete_range(struct world *w, const char *pk, struct eng_slice range, int64_t ts) {
    add_range_deletion(w, TABLE, pk, range, ts);
}

static const char *get_value(struct world *w, const char *pk, enum eng_row_kind kind, const char *ck) {
    struct eng_part part = part_of(TABLE, pk);
    struct eng_row row;
    int got = world_get(w, ENG_TIER_ANY, &part, kind, ck, &row);
    assert_true(got >= 0);
    return got && row.n_cells ? (const char *)arena_dup(&w->arena, row.cells[0].value).p : "-";
}

static void test_rows_are_read_back(void **state) {
    struct world *w = *state;
    put_row(w, "p", ENG_ROW, "a", "old", 10);
    uint64_t seq = commit(w);
    put_row(w, "p", ENG_ROW, "a", "new", 11);
    put_row(w, "p", ENG_ROW, "a", "older", 9);
    put_row(w, "p", ENG_STATIC, "", "s", 9);
    uint64_t next = commit(w);
    assert_true(next > seq);
    assert_int_equal(eng_wait_durable(w->eng, next, &w->e), 0);
    assert_true(eng_durable_seq(w->eng) >= next);
    assert_string_equal(get_value(w, "p", ENG_ROW, "a"), "new");
    assert_string_equal(get_value(w, "p", ENG_STATIC, ""), "s");
    assert_string_equal(get_value(w, "p", ENG_ROW, "b"), "-");
    delete_row(w, "p", "a", 11);
    commit(w);
    assert_string_equal(get_value(w, "p", ENG_ROW, "a"), "-");
}

static void test_rollback_returns_to_the_savepoint(void **state) {
    struct world *w = *state;
    put_row(w, "p", ENG_ROW, "a", "1", 10);
    eng_batch_savepoint(w->batch);
    put_row(w, "p", ENG_ROW, "b", "2", 10);
    eng_batch_savepoint(w->batch);
    put_row(w, "p", ENG_ROW, "c", "3", 10);
    eng_batch_release(w->batch);
    eng_batch_rollback(w->batch);
    eng_batch_savepoint(w->batch);
    put_row(w, "p", ENG_ROW, "d", "4", 10);
    eng_batch_release(w->batch);
    assert_false(eng_batch_empty(w->batch));
    commit(w);
    assert_true(eng_batch_empty(w->batch));
    struct eng_part part = part_of(TABLE, "p");
    struct eng_scan_spec spec = {.table = TABLE, .part = &part, .rows = true, .now = NOW};
    assert_string_equal(scan_text(w, &spec), "p a=1 d=4");
}

static void fill(struct world *w) {
    put_row(w, "p", ENG_STATIC, "", "s", 10);
    const char *cks[] = {"a1", "a2", "b1", "b2", "c1"};
    for (int i = 0; i < 5; i++) put_row(w, "p", ENG_ROW, cks[i], cks[i], 10);
    put_row(w, "q", ENG_STATIC, "", "only", 10);
    put_row(w, "r", ENG_ROW, "", "x", 10);
    commit(w);
}

static void test_scan_gives_slices_in_both_orders(void **state) {
    struct world *w = *state;
    fill(w);
    struct eng_part part = part_of(TABLE, "p");
    struct eng_slice slices[] = {slice_between("a", true, "b", true), slice_between("c", false, "", false)};
    struct eng_scan_spec spec = {.table = TABLE, .part = &part, .rows = true, .statics = true, .now = NOW};
    assert_string_equal(scan_text(w, &spec), "p/s a1=a1 a2=a2 b1=b1 b2=b2 c1=c1");
    spec.reverse = true;
    assert_string_equal(scan_text(w, &spec), "p/s c1=c1 b2=b2 b1=b1 a2=a2 a1=a1");
    spec.slices = slices;
    spec.n_slices = 2;
    assert_string_equal(scan_text(w, &spec), "p/s c1=c1 b2=b2 b1=b1");
    spec.reverse = false;
    assert_string_equal(scan_text(w, &spec), "p/s b1=b1 b2=b2 c1=c1");
    slices[0] = slice_between("a1", true, "b1", false);
    spec.statics = false;
    spec.n_slices = 1;
    assert_string_equal(scan_text(w, &spec), "p a2=a2");
    spec.reverse = true;
    assert_string_equal(scan_text(w, &spec), "p a2=a2");
}

static void test_pair_is_of_one_moment(void **state) {
    struct world *w = *state;
    struct eng_pair pair;
    fill(w);
    struct eng_part part = part_of(TABLE, "p"), row_only = part_of(TABLE, "r");
    struct eng_part static_only = part_of(TABLE, "q"), none = part_of(TABLE, "x");
    for (int deleted = 0; deleted < 2; deleted++) {
        assert_int_equal(eng_pair_get(w->eng, ENG_TIER_ANY, &part, slice_str("b1"), NOW, &w->arena, &pair, NULL, &w->e),
                         0);
        assert_true(pair.has_statics && slice_eq(pair.statics.cells[0].value, slice_str("s")));
        assert_int_equal(pair.has_row, !deleted);
        if (!deleted) assert_true(slice_eq(pair.row.cells[0].value, slice_str("b1")));
        assert_int_equal(pair.row.newest_ts, deleted ? 20 : 10);
        assert_int_equal(eng_pair_get(w->eng, ENG_TIER_ANY, &row_only, slice_str(""), NOW, &w->arena, &pair, NULL,
                                      &w->e),
                         0);
        assert_true(pair.has_row && !pair.has_statics);
        assert_int_equal(eng_pair_get(w->eng, ENG_TIER_ANY, &static_only, slice_str("a"), NOW, &w->arena, &pair, NULL,
                                      &w->e),
                         0);
        assert_true(!pair.has_row && pair.has_statics && !pair.expired);
        assert_int_equal(eng_pair_get(w->eng, ENG_TIER_ANY, &none, slice_str("a"), NOW, &w->arena, &pair, NULL, &w->e),
                         0);
        assert_true(!pair.has_row && !pair.has_statics);
        delete_range(w, "p", slice_between("b", false, "b", true), 20);
        commit(w);
    }
    assert_int_equal(eng_batch_delete_partition(w->batch, &part, 30, NOW, NULL, &w->e), 0);
    put_row(w, "p", ENG_ROW, "b1", "again", 31);
    commit(w);
    assert_int_equal(eng_pair_get(w->eng, ENG_TIER_ANY, &part, slice_str("b1"), NOW, &w->arena, &pair, NULL, &w->e), 0);
    assert_true(pair.has_row && !pair.has_statics);
    assert_int_equal(pair.statics.newest_ts, 30);
}

struct pair_writer {
    struct world *w;
    _Atomic bool stop;
};

/* Row and static row always change together. */
static void *write_pairs(void *arg) {
    struct pair_writer *p = arg;
    struct eng_batch *b = eng_batch_new(p->w->eng);
    struct eng_part part = part_of(TABLE, "p");
    struct err e = {0};
    for (uint64_t i = 1; !p->stop; i++) {
        uint64_t seq;
        struct eng_cell cell = {.column = 1,
                                .ts = (int64_t)i,
                                .expiry = ENG_NO_EXPIRY,
                                .value = slice_of(&i, sizeof(i))};
        for (int k = 0; k < 2; k++) {
            struct eng_row row;
            eng_row_init(&row, k ? ENG_ROW : ENG_STATIC, slice_str(k ? "a" : ""));
            row.cells = &cell;
            row.n_cells = 1;
            if (eng_batch_row(b, &part, &row, NULL, &e)) return "failed";
        }
        if (eng_batch_commit(b, &seq, &e)) return "failed";
    }
    eng_batch_free(b);
    return NULL;
}

static void test_pair_is_never_torn(void **state) {
    struct pair_writer writer = {.w = *state};
    struct world *w = *state;
    struct eng_part part = part_of(TABLE, "p");
    pthread_t thread;
    void *failed;
    assert_int_equal(pthread_create(&thread, NULL, write_pairs, &writer), 0);
    for (int found = 0; found < 2000;) {
        struct eng_pair pair;
        arena_reset(&w->arena);
        assert_int_equal(eng_pair_get(w->eng, ENG_TIER_ANY, &part, slice_str("a"), NOW, &w->arena, &pair, NULL, &w->e),
                         0);
        assert_int_equal(pair.has_row, pair.has_statics);
        if (!pair.has_row) continue;
        assert_true(slice_eq(pair.row.cells[0].value, pair.statics.cells[0].value));
        found++;
    }
    writer.stop = true;
    pthread_join(thread, &failed);
    assert_null(failed);
}

static void test_scan_resumes_after_a_row(void **state) {
    struct world *w = *state;
    fill(w);
    struct eng_part part = part_of(TABLE, "p");
    struct eng_scan_spec spec = {.table = TABLE, .part = &part, .rows = true, .statics = true, .now = NOW,
                                 .resume_key = part.key, .resume_ck = slice_str("a2")};
    assert_string_equal(scan_text(w, &spec), "p/s b1=b1 b2=b2 c1=c1");
    spec.reverse = true;
    assert_string_equal(scan_text(w, &spec), "p/s a1=a1");
    spec.resume_ck = slice_str("a1");
    assert_string_equal(scan_text(w, &spec), ""); /* not the static row again */
    spec.resume_ck = (struct slice){0};
    spec.resume_skip = true;
    assert_string_equal(scan_text(w, &spec), "");
}

static void test_scan_of_tokens_gives_every_partition(void **state) {
    struct world *w = *state;
    fill(w);
    struct eng_scan_spec spec = {
        .table = TABLE, .token_from = INT64_MIN, .token_to = INT64_MAX, .rows = true, .statics = true, .now = NOW};
    const char *names[] = {"p", "q", "r"}, *texts[] = {"p/s a1=a1 a2=a2 b1=b1 b2=b2 c1=c1", "q/only", "r =x"};
    const char *brief[] = {"p/s", "q/only", "r"};
    struct buf full, distinct;
    buf_init(&full, 0);
    buf_init(&distinct, 0);
    int64_t last = INT64_MIN;
    int order[3];
    for (int n = 0; n < 3; n++) {
        int best = -1;
        for (int i = 0; i < 3; i++)
            if (part_of(TABLE, names[i]).token > last &&
                (best < 0 || part_of(TABLE, names[i]).token < part_of(TABLE, names[best]).token))
                best = i;
        last = part_of(TABLE, names[best]).token;
        order[n] = best;
        buf_printf(&full, "%s%s", n ? "; " : "", texts[best]);
        buf_printf(&distinct, "%s%s", n ? "; " : "", brief[best]);
    }
    buf_u8(&full, 0);
    buf_u8(&distinct, 0);
    assert_string_equal(scan_text(w, &spec), (char *)full.p);
    spec.rows = false;
    assert_string_equal(scan_text(w, &spec), (char *)distinct.p);
    spec.rows = true;
    spec.token_from = spec.token_to = part_of(TABLE, "q").token;
    assert_string_equal(scan_text(w, &spec), "q/only");
    spec.token_from++;
    assert_string_equal(scan_text(w, &spec), "");
    spec.token_from = INT64_MIN;
    spec.token_to = INT64_MAX;
    spec.resume_key = slice_str(names[order[1]]);
    spec.resume_skip = true;
    assert_string_equal(scan_text(w, &spec), texts[order[2]]);
    buf_fini(&full);
    buf_fini(&distinct);
}

static void test_deletions_shadow_by_timestamp(void **state) {
    struct world *w = *state;
    fill(w);
    struct eng_part part = part_of(TABLE, "p");
    struct eng_scan_spec spec = {.table = TABLE, .part = &part, .rows = true, .statics = true, .now = NOW};
    delete_range(w, "p", slice_between("a", false, "a", true), 9);
    commit(w);
    assert_string_equal(scan_text(w, &spec), "p/s a1=a1 a2=a2 b1=b1 b2=b2 c1=c1");
    delete_range(w, "p", slice_between("a1", true, "b1", true), 10);
    put_row(w, "p", ENG_ROW, "b1", "again", 11);
    commit(w);
    assert_string_equal(scan_text(w, &spec), "p/s a1=a1 b1=again b2=b2 c1=c1");
    assert_string_equal(get_value(w, "p", ENG_ROW, "a2"), "-");
    assert_string_equal(get_value(w, "p", ENG_ROW, "b1"), "again");
    assert_int_equal(eng_batch_delete_partition(w->batch, &part, 10, NOW, NULL, &w->e), 0);
    commit(w);
    assert_string_equal(scan_text(w, &spec), "p b1=again");
    assert_string_equal(get_value(w, "p", ENG_STATIC, ""), "-");
    spec.reverse = true;
    assert_string_equal(scan_text(w, &spec), "p b1=again");
}

/* Random overlapping range tombstones against a plain model, forward, reverse, by get, and resumed. */
static void test_overlapping_ranges_agree_with_a_model(void **state) {
    struct world *w = *state;
    uint64_t seed = 12345;
    char pk[16], key[3] = {0};
    for (int round = 0; round < 30; round++) {
        int64_t covered[26] = {0};
        snprintf(pk, sizeof(pk), "m%d", round);
        for (int i = 0; i < 26; i++) {
            key[0] = (char)('a' + i);
            put_row(w, pk, ENG_ROW, key, key, 50);
        }
        for (int n = 0; n < 8; n++) {
            seed = seed * 6364136223846793005u + 1442695040888963407u;
            int from = (int)(seed >> 33) % 26, to = from + (int)(seed >> 40) % 8;
            int64_t ts = 44 + (int64_t)((seed >> 50) % 9);
            bool open = to >= 26;
            char a[2] = {(char)('a' + from)}, b[2] = {open ? 0 : (char)('a' + to)};
            delete_range(w, pk, slice_between(a, seed >> 60 & 1, b, seed >> 61 & 1), ts);
            for (int i = from + (int)(seed >> 60 & 1); i < (open ? 26 : to + (int)(seed >> 61 & 1)); i++)
                if (ts > covered[i]) covered[i] = ts;
        }
        commit(w);
        struct buf want[2];
        for (int dir = 0; dir < 2; dir++) {
            buf_init(&want[dir], 0);
            for (int j = 0; j < 26; j++) {
                int i = dir ? 25 - j : j;
                if (covered[i] < 50) buf_printf(&want[dir], "%s %c=%c", want[dir].n ? "" : pk, 'a' + i, 'a' + i);
            }
            buf_u8(&want[dir], 0);
            struct eng_part part = part_of(TABLE, pk);
            struct eng_scan_spec spec = {.table = TABLE, .part = &part, .rows = true, .now = NOW, .reverse = dir};
            assert_string_equal(scan_text(w, &spec), (char *)want[dir].p);
            buf_fini(&want[dir]);
        }
        for (int i = 0; i < 26; i++) {
            key[0] = (char)('a' + i);
            assert_string_equal(get_value(w, pk, ENG_ROW, key), covered[i] < 50 ? key : "-");
        }
    }
}

static void test_drop_frees_the_table_alone(void **state) {
    struct world *w = *state;
    fill(w);
    struct eng_part other = part_of(TABLE, "p");
    struct eng_row row;
    other.table = TABLE + 1;
    eng_row_init(&row, ENG_ROW, slice_str("k"));
    row.live_ts = 5;
    assert_int_equal(eng_batch_row(w->batch, &other, &row, NULL, &w->e), 0);
    commit(w);
    assert_int_equal(eng_table_drop(w->eng, TABLE, &w->e), 0);
    assert_string_equal(get_value(w, "p", ENG_ROW, "a1"), "-");
    assert_int_equal(eng_row_get(w->eng, ENG_TIER_ANY, &other, ENG_ROW, slice_str("k"), NOW, &w->arena, &row, NULL,
                                 &w->e),
                     1);
}

static int count_meta(void *arg, struct slice key, struct slice value, struct err *e) {
    (void)e;
    buf_printf(arg, "%.*s=%.*s ", SLICE_FMT(key), SLICE_FMT(value));
    return 0;
}

static void test_meta_records_are_kept_in_order(void **state) {
    struct world *w = *state;
    struct buf out;
    buf_init(&out, 0);
    assert_int_equal(eng_meta_put(w->eng, slice_str("t/b"), slice_str("2"), &w->e), 0);
    assert_int_equal(eng_meta_put(w->eng, slice_str("t/a"), slice_str("1"), &w->e), 0);
    assert_int_equal(eng_meta_put(w->eng, slice_str("u"), slice_str("3"), &w->e), 0);
    assert_int_equal(eng_meta_put(w->eng, slice_str("t/c"), slice_str("x"), &w->e), 0);
    assert_int_equal(eng_meta_delete(w->eng, slice_str("t/c"), &w->e), 0);
    assert_int_equal(eng_meta_scan(w->eng, slice_str("t/"), count_meta, &out, &w->e), 0);
    buf_u8(&out, 0);
    assert_string_equal((char *)out.p, "t/a=1 t/b=2 ");
    buf_fini(&out);
}

static void test_a_failed_write_stores_nothing(void **state) {
    struct world *w = *state;
    uint64_t seq;
    put_row(w, "p", ENG_ROW, "a", "1", 10);
    fault_arm(FAULT_KV_WRITE, 1);
    assert_int_equal(eng_batch_commit(w->batch, &seq, &w->e), -1);
    assert_true(w->e.set && eng_batch_empty(w->batch));
    err_clear(&w->e);
    assert_string_equal(get_value(w, "p", ENG_ROW, "a"), "-");
    put_row(w, "p", ENG_ROW, "a", "2", 10);
    commit(w);
    assert_string_equal(get_value(w, "p", ENG_ROW, "a"), "2");
}

static void test_failed_reads_are_errors(void **state) {
    struct world *w = *state;
    fill(w);
    delete_range(w, "p", slice_between("b", false, "b", true), 20);
    commit(w);
    struct eng_part part = part_of(TABLE, "p");
    struct eng_scan_spec spec = {.table = TABLE, .part = &part, .rows = true, .statics = true, .now = NOW};
    bool clean = false;
    for (int n = 1; n < 50 && !clean; n++) {
        struct eng_item item;
        struct eng_row row;
        fault_arm(FAULT_KV_READ, n);
        struct eng_scan *s = eng_scan_open(w->eng, ENG_TIER_ANY, &spec, NULL, &w->e);
        assert_non_null(s);
        int got, items = 0;
        while ((got = eng_scan_next(s, &item, &w->e)) > 0) items++;
        eng_scan_close(s);
        int row_got = eng_row_get(w->eng, ENG_TIER_ANY, &part, ENG_ROW, slice_str("a1"), NOW, &w->arena, &row, NULL,
                                  &w->e);
        clean = got == 0 && row_got == 1;
        assert_true(clean ? items == 4 : w->e.set);
        err_clear(&w->e);
    }
    fault_arm(FAULT_KV_READ, 0);
    assert_true(clean);
}

/* What a serial read saw is on disk when its barrier is. */
static void test_a_barrier_covers_all_visible_writes(void **state) {
    struct world *w = *state;
    put_row(w, "p", ENG_ROW, "a", "1", 10);
    uint64_t seq = commit(w);
    assert_string_equal(get_value(w, "p", ENG_ROW, "a"), "1");
    uint64_t barrier = eng_barrier_seq(w->eng);
    assert_true(barrier > seq);
    assert_int_equal(eng_wait_durable(w->eng, barrier, &w->e), 0);
    assert_true(eng_durable_seq(w->eng) >= barrier);
    barrier = eng_barrier_seq(w->eng);
    fault_arm(FAULT_KV_SYNC, 1);
    assert_int_equal(eng_wait_durable(w->eng, barrier, &w->e), -1);
    err_clear(&w->e);
}

static void test_failed_sync_ends_acknowledging(void **state) {
    struct world *w = *state;
    put_row(w, "p", ENG_ROW, "a", "1", 10);
    uint64_t seq = commit(w);
    fault_arm(FAULT_KV_SYNC, FAULT_ALWAYS);
    assert_int_equal(eng_wait_durable(w->eng, seq, &w->e), -1);
    assert_true(eng_failed(w->eng));
    assert_true(eng_durable_seq(w->eng) < seq);
    err_clear(&w->e);
    put_row(w, "p", ENG_ROW, "b", "1", 10);
    assert_int_equal(eng_batch_commit(w->batch, &seq, &w->e), -1);
    fault_arm(FAULT_KV_SYNC, 0);
}

static void test_a_failed_sync_is_repaired_once_all_data_is_on_disk_again(void **state) {
    struct world *w = *state;
    put_row(w, "p", ENG_ROW, "a", "1", 10);
    uint64_t seq = commit(w);
    fault_arm(FAULT_KV_SYNC, FAULT_ALWAYS);
    assert_int_equal(eng_wait_durable(w->eng, seq, &w->e), -1);
    err_clear(&w->e);
    char why[256];
    assert_false(eng_ready(w->eng, why, sizeof(why)));
    assert_non_null(strstr(why, "storage failed"));
    fault_arm(FAULT_KV_SYNC, 0);
    for (int i = 0; i < 1000 && eng_failed(w->eng); i++) usleep(10000);
    assert_false(eng_failed(w->eng));
    assert_true(eng_ready(w->eng, why, sizeof(why)));
    assert_int_equal(eng_wait_durable(w->eng, seq, &w->e), 0);
    put_row(w, "p", ENG_ROW, "b", "2", 10);
    assert_int_equal(eng_wait_durable(w->eng, commit(w), &w->e), 0);
}

static void test_busy_store_leaves_the_batch_as_it_is(void **state) {
    struct world *w = *state;
    uint64_t seq;
    put_row(w, "p", ENG_ROW, "a", "1", 10);
    fault_arm(FAULT_KV_BUSY, 1);
    assert_int_equal(eng_batch_try_commit(w->batch, &seq, &w->e), ENG_BUSY);
    assert_false(w->e.set || eng_batch_empty(w->batch));
    assert_string_equal(get_value(w, "p", ENG_ROW, "a"), "-");
    fault_arm(FAULT_KV_BUSY, 1);
    assert_int_equal(eng_batch_commit(w->batch, &seq, &w->e), 0);
    assert_string_equal(get_value(w, "p", ENG_ROW, "a"), "1");
}

static void test_reopening_finds_rows_and_tombstones(void **state) {
    struct world *w = *state;
    fill(w);
    delete_range(w, "p", slice_between("a", false, "b", true), 20);
    commit(w);
    w->options.durability = ENG_PERIODIC;
    world_reopen(w);
    struct eng_part part = part_of(TABLE, "p");
    struct eng_scan_spec spec = {.table = TABLE, .part = &part, .rows = true, .statics = true, .now = NOW};
    assert_string_equal(scan_text(w, &spec), "p/s c1=c1");
    struct stat st;
    assert_int_equal(stat(w->folder, &st), 0);
    assert_int_equal(st.st_mode & 0777, 0700);
}

static void *lock_and_leave(void *arg) {
    struct world *w = arg;
    struct eng_part part = part_of(TABLE, "q");
    bool held = eng_holds(w->eng, &part);
    eng_lock(w->eng, &part);
    held = held || !eng_holds(w->eng, &part);
    eng_unlock(w->eng, &part);
    return held ? "wrong" : NULL;
}

static void test_a_stripe_is_held_by_its_thread(void **state) {
    struct world *w = *state;
    struct eng_part p = part_of(TABLE, "p"), q = part_of(TABLE, "q");
    const struct eng_part *both[] = {&p, &q, &p};
    pthread_t thread;
    void *wrong;
    assert_false(eng_holds(w->eng, &p));
    eng_lock_many(w->eng, both, 3);
    assert_true(eng_holds(w->eng, &p) && eng_holds(w->eng, &q));
    assert_int_equal(pthread_create(&thread, NULL, lock_and_leave, w), 0);
    eng_unlock_many(w->eng, both, 3);
    pthread_join(thread, &wrong);
    assert_null(wrong);
    assert_false(eng_holds(w->eng, &p) || eng_holds(w->eng, &q));
}

/* A loop's batch has a stripe until it is committed, by whatever thread, or dropped; its own writes
 * share it; another batch goes without; who waits comes next. */
static void test_a_stripe_is_a_batchs_until_it_is_committed(void **state) {
    struct world *w = *state;
    struct eng_part part = part_of(TABLE, "q");
    struct eng_batch *other = eng_batch_new(w->eng);
    pthread_t waiter;
    for (int end = 0; end < 3; end++) {
        assert_int_equal(eng_batch_try_lock(w->batch, &part), 1);
        assert_int_equal(eng_batch_try_lock(w->batch, &part), 0);
        assert_true(eng_batch_holds(w->batch, &part) && !eng_batch_holds(other, &part) && !eng_holds(w->eng, &part));
        assert_int_equal(eng_batch_try_lock(other, &part), -1);
        assert_false(eng_batch_has_written(w->batch, &part, ENG_ROW, slice_str("a")));
        put_row(w, "q", ENG_ROW, "a", "v", 10);
        eng_batch_wrote(w->batch, &part, ENG_ROW, slice_str("a"));
        assert_true(eng_batch_has_written(w->batch, &part, ENG_ROW, slice_str("a")));
        assert_false(eng_batch_has_written(w->batch, &part, ENG_ROW, slice_str("b")));
        assert_false(eng_batch_has_written(w->batch, &part, ENG_STATIC, slice_str("a")));
        assert_int_equal(pthread_create(&waiter, NULL, lock_and_leave, w), 0);
        if (end == 0) commit(w);
        else eng_batch_drop(w->batch);
        assert_int_equal(pthread_join(waiter, NULL), 0);
        assert_false(eng_batch_holds(w->batch, &part) ||
                     eng_batch_has_written(w->batch, &part, ENG_ROW, slice_str("a")));
        assert_int_equal(eng_batch_try_lock(other, &part), 1);
        eng_batch_unlock(other, &part);
    }
    eng_lock(w->eng, &part);
    assert_int_equal(eng_batch_try_lock(w->batch, &part), -1);
    eng_unlock(w->eng, &part);
    eng_batch_free(other);
}

/* Few other rows are taken for one that the batch wrote, though it wrote as many as a wake-up may
 * have; and none is once it is committed. */
static void test_few_rows_are_taken_for_written_ones(void **state) {
    struct world *w = *state;
    struct eng_part part = part_of(TABLE, "q");
    static const uint32_t sizes[] = {1, 100, 128, 129, 1000};
    for (size_t s = 0; s < ARRAY_LEN(sizes); s++) {
        uint32_t mistaken = 0, left = 0;
        assert_int_equal(eng_batch_try_lock(w->batch, &part), 1);
        put_row(w, "q", ENG_ROW, "a", "v", 10);
        for (uint32_t i = 0; i < sizes[s]; i++) eng_batch_wrote(w->batch, &part, ENG_ROW, slice_of(&i, sizeof(i)));
        for (uint32_t i = 0; i < sizes[s]; i++)
            assert_true(eng_batch_has_written(w->batch, &part, ENG_ROW, slice_of(&i, sizeof(i))));
        for (uint32_t i = 10000; i < 30000; i++)
            mistaken += eng_batch_has_written(w->batch, &part, ENG_ROW, slice_of(&i, sizeof(i)));
        assert_true(mistaken < 20000 / 50);
        commit(w);
        for (uint32_t i = 0; i < 30000; i++)
            left += eng_batch_has_written(w->batch, &part, ENG_ROW, slice_of(&i, sizeof(i)));
        assert_int_equal(left, 0);
    }
}

/* A writer and a reader at once; also what the thread sanitizer looks at. */
static void *write_rows(void *arg) {
    struct world *w = arg;
    struct eng_batch *b = eng_batch_new(w->eng);
    struct eng_part part = part_of(TABLE, "p");
    struct err e = {0};
    for (int i = 0; i < 300; i++) {
        struct eng_row row;
        uint64_t seq = 0;
        eng_row_init(&row, ENG_ROW, slice_of(&i, sizeof(i)));
        row.live_ts = 10;
        eng_lock(w->eng, &part);
        bool ok = !eng_batch_row(b, &part, &row, NULL, &e) && !eng_batch_commit(b, &seq, &e);
        eng_unlock(w->eng, &part);
        if (!ok || (i % 50 == 0 && eng_wait_durable(w->eng, seq, &e))) return "failed";
        if (i == 150) {
            struct eng_slice range = slice_between("x", false, "x", true);
            if (eng_batch_delete_range(b, &part, &range, 5, NOW, NULL, &e)) return "failed";
        }
    }
    eng_batch_free(b);
    return NULL;
}

static void test_writers_and_readers_share_the_engine(void **state) {
    struct world *w = *state;
    pthread_t writers[2];
    void *failed[2];
    int rows = 0;
    for (int i = 0; i < 2; i++) assert_int_equal(pthread_create(&writers[i], NULL, write_rows, w), 0);
    for (int round = 0; round < 50 || rows < 300; round++) {
        struct eng_part part = part_of(TABLE, "p");
        struct eng_scan_spec spec = {.table = TABLE, .part = &part, .rows = true, .now = NOW};
        struct eng_scan *s = eng_scan_open(w->eng, ENG_TIER_ANY, &spec, NULL, &w->e);
        struct eng_item item;
        int got, seen = 0;
        while ((got = eng_scan_next(s, &item, &w->e)) > 0) seen += item.kind == ENG_ITEM_ROW;
        eng_scan_close(s);
        assert_int_equal(got, 0);
        assert_true(seen >= rows);
        rows = seen;
    }
    for (int i = 0; i < 2; i++) pthread_join(writers[i], &failed[i]);
    assert_null(failed[0]);
    assert_null(failed[1]);
}

static void test_many_operands_of_one_row_are_folded(void **state) {
    struct world *w = *state;
    char value[16];
    for (int i = 0; i < OPERANDS; i++) {
        snprintf(value, sizeof(value), "%d", i);
        put_row(w, "p", ENG_ROW, "a", value, 10 + i);
        commit(w);
    }
    assert_string_equal(get_value(w, "p", ENG_ROW, "a"), "99");
    assert_in_range(eng_stat(w->eng, ENG_STAT_FOLDS), OPERANDS / 16 - 1, OPERANDS / 16 + 1);
}

struct column_writer {
    struct world *w;
    uint32_t first;
};

static void *write_columns(void *arg) {
    struct column_writer *c = arg;
    struct eng_batch *b = eng_batch_new(c->w->eng);
    struct eng_part part = part_of(TABLE, "p");
    struct err e = {0};
    for (uint32_t i = 0; i < OPERANDS * 3; i++) {
        struct eng_cell cell = {.column = c->first + i * 2, .ts = 10, .expiry = ENG_NO_EXPIRY, .value = slice_str("v")};
        struct eng_row row;
        uint64_t seq;
        eng_row_init(&row, ENG_ROW, slice_str("a"));
        row.cells = &cell;
        row.n_cells = 1;
        if (eng_batch_row(b, &part, &row, NULL, &e) || eng_batch_commit(b, &seq, &e)) return "failed";
    }
    eng_batch_free(b);
    return NULL;
}

static void test_folding_loses_no_write_of_another_thread(void **state) {
    struct world *w = *state;
    struct column_writer args[2] = {{.w = w, .first = 1}, {.w = w, .first = 2}};
    pthread_t writers[2];
    void *failed[2];
    for (int i = 0; i < 2; i++) assert_int_equal(pthread_create(&writers[i], NULL, write_columns, &args[i]), 0);
    for (int i = 0; i < 2; i++) pthread_join(writers[i], &failed[i]);
    assert_null(failed[0]);
    assert_null(failed[1]);
    struct eng_part part = part_of(TABLE, "p");
    struct eng_row row;
    assert_int_equal(eng_row_get(w->eng, ENG_TIER_ANY, &part, ENG_ROW, slice_str("a"), NOW, &w->arena, &row, NULL,
                                 &w->e),
                     1);
    assert_int_equal(row.n_cells, OPERANDS * 6);
}

static void write_cell(struct world *w, const char *ck, uint8_t flags, int64_t ts, int64_t expiry) {
    struct eng_part part = part_of(TABLE, "p");
    struct eng_cell cell = {
        .column = 1, .flags = flags, .ts = ts, .ttl = flags & ENG_CELL_EXPIRING ? 5 : 0, .expiry = expiry};
    struct eng_row row;
    eng_row_init(&row, ENG_ROW, slice_str(ck));
    if (!(flags & ENG_CELL_TOMBSTONE)) cell.value = slice_str("v");
    row.cells = &cell;
    row.n_cells = 1;
    assert_int_equal(eng_batch_row(w->batch, &part, &row, NULL, &w->e), 0);
    commit(w);
}

/* A row whose cells have all expired comes as it is stored, but for what a deletion covers; others
 * come as they are seen. */
static void test_scan_gives_expired_rows_when_asked(void **state) {
    struct world *w = *state;
    struct eng_part part = part_of(TABLE, "p");
    write_cell(w, "a", ENG_CELL_EXPIRING, 1000, NOW - 100);
    write_cell(w, "b", 0, 1000, ENG_NO_EXPIRY);
    write_cell(w, "c", ENG_CELL_TOMBSTONE, 1000, NOW - 100);
    write_cell(w, "d", ENG_CELL_EXPIRING, 1000, NOW + 100);
    struct eng_scan_spec spec = {.table = TABLE, .part = &part, .rows = true, .expired = true, .now = NOW};
    static const enum eng_item_kind kinds[] = {ENG_ITEM_PARTITION, ENG_ITEM_EXPIRED, ENG_ITEM_ROW, ENG_ITEM_ROW};
    struct eng_scan *s = eng_scan_open(w->eng, ENG_TIER_ANY, &spec, NULL, &w->e);
    struct eng_item item;
    for (size_t i = 0; i < ARRAY_LEN(kinds); i++) {
        assert_int_equal(eng_scan_next(s, &item, &w->e), 1);
        assert_int_equal(item.kind, kinds[i]);
        if (item.kind != ENG_ITEM_PARTITION) assert_int_equal(item.row->n_cells, 1);
    }
    assert_int_equal(eng_scan_next(s, &item, &w->e), 0);
    eng_scan_close(s);
    spec.expired = false;
    assert_string_equal(scan_text(w, &spec), "p b=v d=v");
}

/* Rows that nobody sees count, too: what is bounded is what a part of a scan does. */
static void test_a_scan_pauses_after_its_limit_of_skipped_keys(void **state) {
    struct world *w = *state;
    struct eng_part part = part_of(TABLE, "p");
    char ck[16];
    for (int i = 0; i < 20; i++) {
        snprintf(ck, sizeof(ck), "%02d", i);
        write_cell(w, ck, i % 2 ? 0 : ENG_CELL_TOMBSTONE, 1000, i % 2 ? ENG_NO_EXPIRY : NOW - 100);
    }
    struct eng_scan_spec spec = {.table = TABLE, .part = &part, .rows = true, .now = NOW};
    static const size_t allowed[][2] = {{4, SIZE_MAX}, {SIZE_MAX, 1}};
    for (size_t k = 0; k < ARRAY_LEN(allowed); k++) {
        struct eng_scan *s = eng_scan_open(w->eng, ENG_TIER_ANY, &spec, NULL, &w->e);
        struct eng_item item;
        int got, rows = 0, pauses = 0;
        eng_scan_allow(s, allowed[k][0], allowed[k][1]);
        while ((got = eng_scan_next(s, &item, &w->e)) != 0) {
            assert_true(got == 1 || got == ENG_PAUSED);
            if (got == ENG_PAUSED) eng_scan_allow(s, allowed[k][0], allowed[k][1]);
            pauses += got == ENG_PAUSED;
            rows += got == 1 && item.kind == ENG_ITEM_ROW;
        }
        assert_int_equal(rows, 10);
        assert_int_equal(pauses, k == 0 ? 4 : 19);
        eng_scan_close(s);
    }
}

static uint64_t passed_tombstones(struct world *w) {
    struct eng_part part = part_of(TABLE, "p");
    struct op_cost cost = {0};
    struct eng_scan_spec spec = {.table = TABLE,
                                 .part = &part,
                                 .rows = true,
                                 .now = clock_wall_us(&clock_real) / 1000000};
    struct eng_item item;
    struct eng_scan *s = eng_scan_open(w->eng, ENG_TIER_ANY, &spec, &cost, &w->e);
    int got;
    while ((got = eng_scan_next(s, &item, &w->e)) > 0) {}
    assert_int_equal(got, 0);
    eng_scan_close(s);
    return cost.tombstones;
}

static void test_reclaiming_drops_old_data_and_a_compaction_does_not(void **state) {
    struct world *w = *state;
    int64_t now = clock_wall_us(&clock_real) / 1000000;
    write_cell(w, "old", ENG_CELL_TOMBSTONE, 1000, now - 100);
    write_cell(w, "expired", ENG_CELL_EXPIRING, 1000, now - 100);
    write_cell(w, "young", ENG_CELL_TOMBSTONE, 1000, now - 1);
    write_cell(w, "live", 0, 1000, ENG_NO_EXPIRY);
    eng_table_set(w->eng, TABLE, 50);
    assert_int_equal(eng_compact(w->eng, &w->e), 0);
    assert_int_equal(passed_tombstones(w), 3);
    assert_int_equal(eng_reclaim(w->eng, &w->e), 0);
    assert_int_equal(passed_tombstones(w), 1);
    write_cell(w, "live", ENG_CELL_TOMBSTONE, 900, now - 100);
    assert_string_equal(get_value(w, "p", ENG_ROW, "live"), "v");
}

static void test_cold_data_is_incomplete_in_cache_tier(void **state) {
    struct world *w = *state;
    char ck[16], value[1001];
    memset(value, 'v', 1000);
    value[1000] = 0;
    /* four memtables' worth: a start puts those of the first two into files, if they are not there yet (replay) */
    for (int i = 0; i < 4000; i++) {
        snprintf(ck, sizeof(ck), "%06d", i);
        put_row(w, "p", ENG_ROW, ck, value, 10);
        if (i % 50 == 49) {
            uint64_t seq;
            while (eng_batch_commit(w->batch, &seq, &w->e)) { /* back-pressure */
                assert_int_equal(w->e.code, ERR_OVERLOADED);
                err_clear(&w->e);
                for (int j = i - 49; j <= i; j++) {
                    snprintf(ck, sizeof(ck), "%06d", j);
                    put_row(w, "p", ENG_ROW, ck, value, 10);
                }
            }
        }
    }
    world_reopen(w);
    struct eng_part part = part_of(TABLE, "p");
    struct eng_row row;
    assert_int_equal(eng_row_get(w->eng, ENG_TIER_CACHE, &part, ENG_ROW, slice_str("001000"), NOW, &w->arena, &row,
                                 NULL, &w->e),
                     ENG_INCOMPLETE);
    assert_false(w->e.set);
    assert_int_equal(eng_row_get(w->eng, ENG_TIER_ANY, &part, ENG_ROW, slice_str("001000"), NOW, &w->arena, &row, NULL,
                                 &w->e),
                     1);
    assert_int_equal(eng_row_get(w->eng, ENG_TIER_CACHE, &part, ENG_ROW, slice_str("001000"), NOW, &w->arena, &row,
                                 NULL, &w->e),
                     1);
    struct eng_scan_spec spec = {.table = TABLE, .part = &part, .rows = true, .now = NOW};
    struct eng_scan *s = eng_scan_open(w->eng, ENG_TIER_CACHE, &spec, NULL, &w->e);
    struct eng_item item;
    int got;
    while ((got = eng_scan_next(s, &item, &w->e)) > 0) {}
    assert_int_equal(got, ENG_INCOMPLETE);
    eng_scan_close(s);
}

static uint32_t count_rows(struct world *w, enum eng_tier tier, int *end) {
    struct eng_part part = part_of(TABLE, "p");
    struct eng_scan_spec spec = {.table = TABLE, .part = &part, .rows = true, .now = NOW};
    struct eng_item item;
    struct eng_scan *s = eng_scan_open(w->eng, tier, &spec, NULL, &w->e);
    uint32_t n = 0;
    assert_non_null(s);
    while ((*end = eng_scan_next(s, &item, &w->e)) > 0) n += item.kind == ENG_ITEM_ROW;
    eng_scan_close(s);
    return n;
}

static void test_long_scans_end_in_cache_tier(void **state) {
    struct world *w = *state;
    char ck[16];
    int end;
    for (int i = 0; i < 3000; i++) {
        snprintf(ck, sizeof(ck), "%05d", i);
        put_row(w, "p", ENG_ROW, ck, "v", 10);
        if (i == 500) {
            commit(w);
            assert_int_equal(count_rows(w, ENG_TIER_CACHE, &end), 501);
            assert_int_equal(end, 0);
        }
    }
    commit(w);
    assert_in_range(count_rows(w, ENG_TIER_CACHE, &end), 501, 2000);
    assert_int_equal(end, ENG_INCOMPLETE);
    assert_int_equal(count_rows(w, ENG_TIER_ANY, &end), 3000);
    assert_int_equal(end, 0);
}

#define BOTH(f) \
    cmocka_unit_test_setup_teardown(f, setup_memory, world_teardown), \
        cmocka_unit_test_setup_teardown(f, setup_rocksdb, world_teardown)
#define ROCKSDB(f) cmocka_unit_test_setup_teardown(f, setup_rocksdb, world_teardown)

int main(void) {
    const struct CMUnitTest tests[] = {
        BOTH(test_rows_are_read_back),
        BOTH(test_rollback_returns_to_the_savepoint),
        BOTH(test_scan_gives_slices_in_both_orders),
        BOTH(test_pair_is_of_one_moment),
        ROCKSDB(test_pair_is_never_torn),
        BOTH(test_scan_resumes_after_a_row),
        BOTH(test_scan_of_tokens_gives_every_partition),
        BOTH(test_deletions_shadow_by_timestamp),
        BOTH(test_overlapping_ranges_agree_with_a_model),
        BOTH(test_drop_frees_the_table_alone),
        BOTH(test_meta_records_are_kept_in_order),
        BOTH(test_writers_and_readers_share_the_engine),
        BOTH(test_a_stripe_is_held_by_its_thread),
        BOTH(test_a_stripe_is_a_batchs_until_it_is_committed),
        BOTH(test_few_rows_are_taken_for_written_ones),
        BOTH(test_many_operands_of_one_row_are_folded),
        BOTH(test_folding_loses_no_write_of_another_thread),
        BOTH(test_long_scans_end_in_cache_tier),
        BOTH(test_scan_gives_expired_rows_when_asked),
        BOTH(test_a_scan_pauses_after_its_limit_of_skipped_keys),
        BOTH(test_reclaiming_drops_old_data_and_a_compaction_does_not),
        BOTH(test_a_failed_write_stores_nothing),
        BOTH(test_failed_reads_are_errors),
        BOTH(test_failed_sync_ends_acknowledging),
        BOTH(test_a_barrier_covers_all_visible_writes),
        BOTH(test_a_failed_sync_is_repaired_once_all_data_is_on_disk_again),
        BOTH(test_busy_store_leaves_the_batch_as_it_is),
        ROCKSDB(test_reopening_finds_rows_and_tombstones),
        ROCKSDB(test_cold_data_is_incomplete_in_cache_tier),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
