/* What engine/local/rocksdb/kv.h promises, on disk and in memory; and that engines which share a store rely on nothing
 * that only its one writer could know. */
#include <dirent.h>
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/fault.h"
#include "engine/copy.h"
#include "engine/local/rocksdb/kv.h"
#include "engine/named.h"
#include "engine/table.h"
#include "tests/unit/engine/world.h"

enum { TABLE = 20, NOW = 1000 };

/* ---- the store ---- */

struct kv_world {
    struct kv *kv;
    char path[FOLDER_PATH], copy[FOLDER_PATH];
    bool on_disk;
    struct err e;
};

/* Joins with a comma; refuses a value "bad". */
static int join(struct slice a, struct slice b, struct buf *out) {
    buf_put_slice(out, a);
    buf_put_str(out, ",");
    buf_put_slice(out, b);
    return slice_eq(b, slice_str("bad")) ? -1 : 0;
}

static int setup(void **state, bool on_disk) {
    struct kv_world *w = calloc(1, sizeof(*w));
    folder_make(w->path);
    folder_make(w->copy);
    struct kv_options o = {.data_dir = on_disk ? w->path : NULL, .merge = join};
    w->on_disk = on_disk;
    w->kv = kv_open(&o, &w->e);
    *state = w;
    return w->kv ? 0 : -1;
}

static int setup_memory(void **state) { return setup(state, false); }
static int setup_disk(void **state) { return setup(state, true); }

static int teardown(void **state) {
    struct kv_world *w = *state;
    kv_close(w->kv);
    folder_remove(w->path);
    folder_remove(w->copy);
    free(w);
    return 0;
}

static int put_one(struct kv_world *w, struct kv *kv, const char *key, const char *value, const char *expected_key,
                   const char *expected) {
    struct kv_batch *b = kv_batch_new(kv);
    struct slice seen = slice_str(expected ? expected : "");
    if (expected_key) assert_int_equal(kv_batch_expect(b, slice_str(expected_key), expected ? &seen : NULL), 0);
    kv_batch_put(b, slice_str(key), slice_str(value));
    int rc = kv_write(kv, b, false, &w->e);
    kv_batch_free(b);
    return rc;
}

/* "key=value ..." */
static char *text_of(struct kv_world *w, struct kv *kv, const struct kv_snapshot *at) {
    struct kv_iter_spec spec = {.tier = ENG_TIER_ANY, .snapshot = at};
    struct kv_iter *it = kv_iter_new(kv, &spec, &w->e);
    struct buf out;
    buf_init(&out, 0);
    for (int got = it->ops->iter_move(it, KV_SEEK, slice_str(""), &w->e); got > 0;
         got = it->ops->iter_move(it, KV_NEXT, slice_str(""), &w->e))
        buf_printf(&out, "%.*s=%.*s ", SLICE_FMT(it->key), SLICE_FMT(it->value));
    it->ops->iter_free(it);
    buf_u8(&out, 0);
    return (char *)out.p;
}

static void assert_holds(struct kv_world *w, struct kv *kv, const struct kv_snapshot *at, const char *expected) {
    char *text = text_of(w, kv, at);
    assert_string_equal(text, expected);
    free(text);
}

static void test_condition_decides_a_write(void **state) {
    struct kv_world *w = *state;
    assert_int_equal(put_one(w, w->kv, "a", "1", "a", NULL), 0);
    assert_int_equal(put_one(w, w->kv, "a", "2", "a", NULL), KV_CHANGED);
    assert_int_equal(put_one(w, w->kv, "a", "2", "a", "0"), KV_CHANGED);
    assert_int_equal(put_one(w, w->kv, "b", "2", "c", "1"), KV_CHANGED);
    assert_false(w->e.set);
    assert_holds(w, w->kv, NULL, "a=1 ");
    assert_int_equal(put_one(w, w->kv, "a", "2", "a", "1"), 0);
    assert_holds(w, w->kv, NULL, "a=2 ");
}

static void test_snapshots_and_iterators_see_one_moment(void **state) {
    struct kv_world *w = *state;
    assert_int_equal(put_one(w, w->kv, "a", "1", NULL, NULL) | put_one(w, w->kv, "c", "3", NULL, NULL), 0);
    struct kv_snapshot *s = kv_snapshot_new(w->kv);
    struct kv_iter *it = kv_iter_new(w->kv, &(struct kv_iter_spec){.tier = ENG_TIER_ANY}, &w->e);
    assert_int_equal(it->ops->iter_move(it, KV_SEEK, slice_str(""), &w->e), 1);
    for (int i = 0; i < 3; i++) {
        struct kv_batch *b = kv_batch_new(w->kv);
        kv_batch_put(b, slice_str("a"), slice_str("9"));
        kv_batch_put(b, slice_str("b"), slice_str("9"));
        if (i == 1) kv_batch_delete(b, slice_str("c"));
        if (i == 2) kv_batch_delete_range(b, slice_str("a"), slice_str("d"));
        assert_int_equal(kv_write(w->kv, b, false, &w->e), 0);
        kv_batch_free(b);
        assert_holds(w, w->kv, s, "a=1 c=3 ");
    }
    assert_holds(w, w->kv, NULL, "");
    assert_int_equal(it->ops->iter_move(it, KV_NEXT, slice_str(""), &w->e), 1);
    assert_true(slice_eq(it->key, slice_str("c")) && slice_eq(it->value, slice_str("3")));
    assert_int_equal(it->ops->iter_move(it, KV_PREV, slice_str(""), &w->e), 1);
    assert_true(slice_eq(it->key, slice_str("a")) && slice_eq(it->value, slice_str("1")));
    assert_int_equal(it->ops->iter_move(it, KV_PREV, slice_str(""), &w->e), 0);
    it->ops->iter_free(it);
    kv_snapshot_free(w->kv, s);
}

/* A file has a row, which is not in memory, and deletions of ranges around it; the rows that those
 * cover are in an older file, and in memory. */
static void flush_row_between_deleted_ranges(struct kv_world *w) {
    struct kv_value value;
    assert_int_equal(put_one(w, w->kv, "a", "1", NULL, NULL) | put_one(w, w->kv, "e", "1", NULL, NULL) |
                         kv_heal(w->kv, &w->e),
                     0);
    assert_int_equal(kv_get(w->kv, ENG_TIER_ANY, slice_str("a"), &value, &w->e), 1);
    kv_release(value.handle);
    struct kv_batch *b = kv_batch_new(w->kv);
    kv_batch_put(b, slice_str("c"), slice_str("1"));
    kv_batch_delete_range(b, slice_str("a"), slice_str("b"));
    kv_batch_delete_range(b, slice_str("e"), slice_str("f"));
    assert_int_equal(kv_write(w->kv, b, false, &w->e) | kv_heal(w->kv, &w->e), 0);
    kv_batch_free(b);
}

static void test_a_key_outside_memory_is_not_the_end_of_a_scan(void **state) {
    static const struct { enum kv_move move; const char *key; } moves[] = {{KV_SEEK, "c"}, {KV_SEEK_BACK, "cc"}};
    struct kv_world *w = *state;
    flush_row_between_deleted_ranges(w);
    for (int tier = ENG_TIER_CACHE; tier <= ENG_TIER_ANY; tier++)
        for (size_t i = 0; i < ARRAY_LEN(moves); i++) {
            struct kv_iter_spec spec = {.tier = (enum eng_tier)tier,
                                        .undeleted = true,
                                        .lower = slice_str("c"),
                                        .upper = slice_str("d")};
            struct kv_iter *it = kv_iter_new(w->kv, &spec, &w->e);
            int got = it->ops->iter_move(it, moves[i].move, slice_str(moves[i].key), &w->e);
            it->ops->iter_free(it);
            assert_int_equal(got, tier == ENG_TIER_CACHE ? KV_INCOMPLETE : 1);
        }
    assert_holds(w, w->kv, NULL, "c=1 ");
}

/* ---- engines ---- */

static const char *const part_names[] = {"p", "q", "r"};

static void add_row(struct eng_batch *b, uint32_t table, int p, const char *ck, int64_t value, int64_t ts,
                    bool deletion) {
    struct err e = {0};
    struct eng_part part = part_of(table, part_names[p]);
    uint8_t bytes[8];
    store_u64(bytes, (uint64_t)value);
    struct eng_cell cell = {.ts = ts, .expiry = ENG_NO_EXPIRY, .value = slice_of(bytes, 8)};
    struct eng_row row;
    eng_row_init(&row, ENG_ROW, slice_str(ck));
    if (deletion) {
        row.del_ts = ts;
        row.del_at = NOW;
    } else {
        row.live_ts = ts;
        row.cells = &cell;
        row.n_cells = 1;
        row.covers_below = 1; /* every column that there is: it may be put blindly, where that can be proven */
    }
    assert_int_equal(eng_batch_row(b, &part, &row, NULL, &e), 0);
}

static int64_t get_row(struct eng *eng, uint32_t table, int p, const char *ck, int64_t *newest) {
    struct err e = {0};
    struct arena a;
    struct eng_part part = part_of(table, part_names[p]);
    struct eng_row row;
    arena_init(&a, 1024, 0);
    int got = eng_row_get(eng, ENG_TIER_ANY, &part, ENG_ROW, slice_str(ck), NOW, &a, &row, NULL, &e);
    if (got < 0) fail_msg("%s", e.text);
    int64_t value = got && row.n_cells ? (int64_t)load_u64(row.cells[0].value.p) : -1;
    if (newest) *newest = row.newest_ts;
    arena_fini(&a);
    return value;
}

static void commit_batch(struct eng_batch *b) {
    struct err e = {0};
    uint64_t seq;
    if (eng_batch_commit(b, &seq, &e)) fail_msg("%s", e.text);
}

/* The plain model: of every row the newest write, and the newest deletion of anything that covers it. */
enum { PARTS = 3, ROWS = 6 };

struct model {
    int64_t value[PARTS][ROWS], ts[PARTS][ROWS], deleted[PARTS][ROWS];
};

static const char *const row_names[ROWS] = {"a", "b", "c", "d", "e", "f"};

static void model_delete(struct model *m, int p, int from, int to, int64_t ts) {
    for (int i = from; i < to; i++)
        if (ts > m->deleted[p][i]) m->deleted[p][i] = ts;
}

static void model_write(struct model *m, int p, int i, int64_t value, int64_t ts) {
    if (ts <= m->ts[p][i]) return;
    m->ts[p][i] = ts;
    m->value[p][i] = value;
}

static int64_t model_get(const struct model *m, int p, int i) {
    return m->ts[p][i] > m->deleted[p][i] ? m->value[p][i] : -1;
}

static void random_op(struct eng_batch *b, struct model *m, int64_t ts) {
    struct err e = {0};
    int p = rand() % PARTS, i = rand() % ROWS, k = i + 1 + rand() % (ROWS - i);
    struct eng_part part = part_of(TABLE, part_names[p]);
    int what = rand() % 20;
    if (what == 0) {
        assert_int_equal(eng_batch_delete_partition(b, &part, ts, NOW, NULL, &e), 0);
        model_delete(m, p, 0, ROWS, ts);
    } else if (what < 3) {
        struct eng_slice range = {.from = {.key = slice_str(row_names[i])},
                                  .to = {.key = slice_str(row_names[k - 1]), .after = true}};
        assert_int_equal(eng_batch_delete_range(b, &part, &range, ts, NOW, NULL, &e), 0);
        model_delete(m, p, i, k, ts);
    } else if (what < 5) {
        add_row(b, TABLE, p, row_names[i], 0, ts, true);
        model_delete(m, p, i, i + 1, ts);
    } else {
        add_row(b, TABLE, p, row_names[i], ts, ts, false);
        model_write(m, p, i, ts, ts);
    }
}

/* A conditional write: sets the row to twice what it is, if it is there. */
static void random_condition(struct eng *eng, struct eng_batch *b, struct model *m, int64_t *ts) {
    int p = rand() % PARTS, i = rand() % ROWS;
    int64_t newest;
    struct eng_part part = part_of(TABLE, part_names[p]);
    eng_lock(eng, &part);
    int64_t value = get_row(eng, TABLE, p, row_names[i], &newest);
    assert_int_equal(value, model_get(m, p, i));
    if (value >= 0) {
        int64_t at = newest >= *ts ? newest + 1 : ++*ts;
        add_row(b, TABLE, p, row_names[i], value * 2 % 1000003, at, false);
        commit_batch(b);
        model_write(m, p, i, value * 2 % 1000003, at);
        if (at > *ts) *ts = at;
    }
    eng_unlock(eng, &part);
}

static void test_two_engines_on_one_store_follow_the_model(void **state) {
    (void)state;
    enum { ROUNDS = 60, OPS = 120 };
    struct err e = {0};
    srand(11);
    for (int round = 0; round < ROUNDS; round++) {
        struct model m = {0};
        struct eng_options o = {.durability = ENG_FSYNC, .clock = &clock_real, .shared = true};
        struct eng *eng[2];
        eng[0] = eng_open(&o, &e);
        o.beside = eng[0];
        eng[1] = eng_open(&o, &e);
        struct eng_batch *b[2] = {eng_batch_new(eng[0]), eng_batch_new(eng[1])};
        int64_t ts = 1000;
        for (int i = 0; i < OPS; i++) {
            int who = rand() % 2;
            /* now and then an older timestamp, as clients send them */
            if (rand() % 8 == 0) random_condition(eng[who], b[who], &m, &ts);
            else random_op(b[who], &m, rand() % 6 ? ++ts : 1 + rand() % 999), commit_batch(b[who]);
            if (i == OPS / 2) assert_int_equal(eng_compact(eng[who], &e), 0);
            int p = rand() % PARTS, r = rand() % ROWS;
            assert_int_equal(get_row(eng[1 - who], TABLE, p, row_names[r], NULL), model_get(&m, p, r));
        }
        for (int k = 0; k < 2; k++)
            for (int p = 0; p < PARTS; p++)
                for (int r = 0; r < ROWS; r++)
                    assert_int_equal(get_row(eng[k], TABLE, p, row_names[r], NULL), model_get(&m, p, r));
        for (int k = 0; k < 2; k++) eng_batch_free(b[k]), eng_close(eng[k]);
    }
}

struct counter {
    struct eng *eng;
    int applied, refused;
    const char *failure;
};

/* Adds one, two hundred times over, and tries again when another server was quicker. */
static void *add_ones(void *arg) {
    enum { TIMES = 200 };
    struct counter *c = arg;
    struct eng_part part = part_of(TABLE, part_names[0]);
    struct eng_batch *b = eng_batch_new(c->eng);
    while (c->applied < TIMES && !c->failure) {
        struct err e = {0};
        uint64_t seq;
        int64_t newest;
        eng_lock(c->eng, &part);
        int64_t value = get_row(c->eng, TABLE, 0, "n", &newest);
        add_row(b, TABLE, 0, "n", value < 0 ? 1 : value + 1, newest == ENG_NO_TS ? 1 : newest + 1, false);
        int rc = eng_batch_commit(b, &seq, &e);
        eng_unlock(c->eng, &part);
        if (!rc) c->applied++;
        else if (e.code == ERR_WRITE_TIMEOUT && !strcmp(e.detail.write_type, "CAS")) c->refused++;
        else c->failure = "the commit failed otherwise";
    }
    eng_batch_free(b);
    return NULL;
}

static void test_two_engines_decide_one_after_the_other(void **state) {
    (void)state;
    enum { THREADS = 4 };
    struct err e = {0};
    struct eng_options o = {.durability = ENG_FSYNC, .clock = &clock_real, .shared = true};
    struct eng *a = eng_open(&o, &e);
    o.beside = a;
    struct eng *b = eng_open(&o, &e);
    assert_false(eng_one_writer(a) || eng_one_writer(b));
    struct counter c[THREADS] = {{.eng = a}, {.eng = b}, {.eng = a}, {.eng = b}};
    pthread_t t[THREADS];
    int sum = 0;
    for (int i = 0; i < THREADS; i++) assert_int_equal(pthread_create(&t[i], NULL, add_ones, &c[i]), 0);
    for (int i = 0; i < THREADS; i++) {
        pthread_join(t[i], NULL);
        if (c[i].failure) fail_msg("%s", c[i].failure);
        sum += c[i].applied;
    }
    assert_int_equal(get_row(a, TABLE, 0, "n", NULL), sum);
    eng_close(a);
    eng_close(b);
}

/* ---- named records that are written on a condition ---- */

static struct eng *open_copy(struct kv_world *w) {
    struct eng *eng =
        eng_open(&(struct eng_options){.data_dir = w->copy, .durability = ENG_FSYNC, .clock = &clock_real}, &w->e);
    assert_non_null(eng);
    return eng;
}

static int take_number(void *arg, struct slice key, struct slice value, struct err *e) {
    (void)key, (void)e;
    *(uint32_t *)arg = load_u32(value.p);
    return 0;
}

/* Adds one to a named record, on the condition that it is as it was read; tries again when it is not. */
static void *add_ones_to_record(void *arg) {
    enum { TIMES = 200 };
    struct counter *c = arg;
    while (c->applied < TIMES && !c->failure) {
        struct err e = {0};
        uint32_t n = 0;
        uint8_t before[4], after[4];
        if (eng_meta_scan(c->eng, slice_str("number"), take_number, &n, &e)) c->failure = "the record cannot be read";
        store_u32(before, n);
        store_u32(after, n + 1);
        const struct slice expected = slice_of(before, 4);
        const struct eng_meta_change change = {.key = slice_str("number"),
                                               .value = slice_of(after, 4),
                                               .conditional = true,
                                               .expected = n ? &expected : NULL};
        int rc = eng_meta_write(c->eng, 1, &change, &e);
        if (!rc) c->applied++;
        else if (rc == ENG_CHANGED && !e.set) c->refused++;
        else c->failure = "the write failed otherwise";
    }
    return NULL;
}

static void add_from_threads(struct eng *const *engines) {
    enum { THREADS = 4 };
    struct counter c[THREADS] = {0};
    struct err e = {0};
    pthread_t t[THREADS];
    uint32_t sum = 0, n = 0;
    for (int i = 0; i < THREADS; i++) {
        c[i].eng = engines[i % 2];
        assert_int_equal(pthread_create(&t[i], NULL, add_ones_to_record, &c[i]), 0);
    }
    for (int i = 0; i < THREADS; i++) {
        pthread_join(t[i], NULL);
        if (c[i].failure) fail_msg("%s", c[i].failure);
        sum += (uint32_t)c[i].applied;
    }
    assert_int_equal(eng_meta_scan(engines[1], slice_str("number"), take_number, &n, &e), 0);
    assert_int_equal(n, sum);
}

static void count_notice(void *arg) { ++*(int *)arg; }

static void test_records_are_written_on_a_condition_by_two_engines(void **state) {
    (void)state;
    struct err e = {0};
    struct eng_options o = {.durability = ENG_FSYNC, .clock = &clock_real, .shared = true};
    struct eng *engines[2] = {eng_open(&o, &e)};
    o.beside = engines[0];
    engines[1] = eng_open(&o, &e);
    int told = 0; /* under the lock of the notice */
    assert_int_equal(eng_meta_watch(engines[1], count_notice, &told, &e), 0);
    add_from_threads(engines);
    assert_true(told > 0); /* of the other engine's writes */
    for (int i = 0; i < 2; i++) eng_close(engines[i]);
}

static void test_each_watcher_is_notified_until_its_watch_ends(void **state) {
    (void)state;
    struct err e = {0};
    struct eng_options o = {.durability = ENG_FSYNC, .clock = &clock_real, .shared = true};
    struct eng *engines[2] = {eng_open(&o, &e)};
    o.beside = engines[0];
    engines[1] = eng_open(&o, &e);
    int told[ENG_WATCHERS_MAX + 1] = {0};
    for (int i = 0; i < ENG_WATCHERS_MAX; i++)
        assert_int_equal(eng_meta_watch(engines[1], count_notice, &told[i], &e), 0);
    assert_int_equal(eng_meta_watch(engines[1], count_notice, &told[ENG_WATCHERS_MAX], &e), -1);
    err_clear(&e);
    assert_int_equal(eng_meta_put(engines[0], slice_str("a"), slice_str("1"), &e), 0);
    for (int i = 0; i < ENG_WATCHERS_MAX; i++) assert_int_equal(told[i], 1);
    eng_meta_unwatch(engines[1], &told[0]);
    assert_int_equal(eng_meta_put(engines[0], slice_str("a"), slice_str("2"), &e), 0);
    assert_true(told[0] == 1 && told[1] == 2);
    assert_int_equal(eng_meta_watch(engines[1], count_notice, &told[ENG_WATCHERS_MAX], &e), 0);
    eng_meta_unwatch(engines[1], NULL);
    assert_int_equal(eng_meta_put(engines[0], slice_str("a"), slice_str("3"), &e), 0);
    assert_true(told[1] == 2 && told[ENG_WATCHERS_MAX] == 0);
    for (int i = 0; i < 2; i++) eng_close(engines[i]);
}

static void test_records_are_written_on_a_condition_by_several_threads(void **state) {
    struct kv_world *w = *state;
    struct eng *eng = open_copy(w), *const both[2] = {eng, eng};
    add_from_threads(both);
    eng_close(eng);
}

/* One condition that does not hold keeps all changes from being written. */
static void test_a_failed_condition_writes_no_record(void **state) {
    (void)state;
    struct err e = {0};
    struct eng *eng = eng_open(&(struct eng_options){.durability = ENG_FSYNC, .clock = &clock_real}, &e);
    uint8_t one[4], two[4];
    uint32_t a = 0, b = 0;
    store_u32(one, 1);
    store_u32(two, 2);
    const struct slice is_one = slice_of(one, 4), is_two = slice_of(two, 4);
    struct eng_meta_change changes[2] = {
        {.key = slice_str("a"), .value = is_one, .conditional = true},
        {.key = slice_str("b"), .value = is_two, .conditional = true, .expected = &is_one}};
    assert_int_equal(eng_meta_write(eng, 2, changes, &e), ENG_CHANGED);
    assert_false(e.set);
    assert_int_equal(eng_meta_scan(eng, slice_str("a"), take_number, &a, &e), 0);
    assert_int_equal(a, 0);
    assert_int_equal(eng_meta_put(eng, slice_str("b"), is_one, &e), 0);
    assert_int_equal(eng_meta_write(eng, 2, changes, &e), 0);
    assert_int_equal(eng_meta_write(eng, 1, changes, &e), ENG_CHANGED); /* there is one by now */
    changes[1].deleted = true;
    assert_int_equal(eng_meta_write(eng, 1, &changes[1], &e), ENG_CHANGED);
    changes[1].expected = &is_two;
    assert_int_equal(eng_meta_write(eng, 1, &changes[1], &e), 0);
    assert_int_equal(eng_meta_scan(eng, slice_str("a"), take_number, &a, &e), 0);
    assert_int_equal(eng_meta_scan(eng, slice_str("b"), take_number, &b, &e), 0);
    assert_true(a == 1 && b == 0);
    eng_close(eng);
}

static int add_to_load(struct kv_world *w, struct kv_load *l, const char *key, const char *value) {
    return kv_load_add(l, slice_str(key), slice_str(value), &w->e);
}

static void test_load_is_seen_as_a_whole(void **state) {
    struct kv_world *w = *state;
    assert_int_equal(put_one(w, w->kv, "a", "0", NULL, NULL) | put_one(w, w->kv, "d", "0", NULL, NULL), 0);
    struct kv_load *l = kv_load_new(w->kv, &w->e), *dropped = kv_load_new(w->kv, &w->e),
                   *none = kv_load_new(w->kv, &w->e);
    assert_int_equal(add_to_load(w, l, "b", "1") | add_to_load(w, l, "c", "2") | add_to_load(w, dropped, "e", "3"), 0);
    assert_holds(w, w->kv, NULL, "a=0 d=0 ");
    struct kv_snapshot *before = kv_snapshot_new(w->kv);
    assert_int_equal(kv_load_finish(l, &w->e) | kv_load_finish(none, &w->e), 0);
    kv_load_free(l);
    kv_load_free(dropped);
    kv_load_free(none);
    assert_holds(w, w->kv, NULL, "a=0 b=1 c=2 d=0 ");
    assert_holds(w, w->kv, before, "a=0 d=0 ");
    kv_snapshot_free(w->kv, before);
    struct kv_batch *b = kv_batch_new(w->kv);
    kv_batch_merge(b, slice_str("b"), slice_str("x"));
    kv_batch_delete(b, slice_str("c"));
    assert_int_equal(kv_write(w->kv, b, false, &w->e), 0);
    kv_batch_free(b);
    assert_holds(w, w->kv, NULL, "a=0 b=1,x d=0 ");
}

static void test_a_failed_load_stores_nothing(void **state) {
    struct kv_world *w = *state;
    struct kv_load *l = kv_load_new(w->kv, &w->e);
    assert_int_equal(add_to_load(w, l, "b", "1"), 0);
    fault_arm(FAULT_KV_WRITE, 1);
    assert_int_equal(kv_load_finish(l, &w->e), -1);
    fault_arm(FAULT_KV_WRITE, 0);
    kv_load_free(l);
    assert_holds(w, w->kv, NULL, "");
}

/* As a crash leaves it: a load is under way when the store is opened anew. */
static void test_load_that_was_cut_off_is_removed_at_the_start(void **state) {
    struct kv_world *w = *state;
    char folder[100];
    struct kv_load *l = kv_load_new(w->kv, &w->e);
    assert_int_equal(add_to_load(w, l, "b", "1"), 0);
    snprintf(folder, sizeof(folder), "%s/loading", w->path);
    assert_int_equal(access(folder, F_OK), 0);
    kv_close(w->kv);
    w->kv = kv_open(&(struct kv_options){.data_dir = w->path, .merge = join}, &w->e);
    assert_non_null(w->kv);
    assert_int_equal(access(folder, F_OK), -1);
    assert_holds(w, w->kv, NULL, "");
    kv_load_free(l);
}

/* From a key, which is in memory, to the next one. */
static int next_in_memory(struct kv_world *w, const char *key) {
    struct kv_value value;
    assert_int_equal(kv_get(w->kv, ENG_TIER_ANY, slice_str(key), &value, &w->e), 1);
    kv_release(value.handle);
    struct kv_iter_spec spec = {.tier = ENG_TIER_CACHE, .undeleted = true};
    struct kv_iter *it = kv_iter_new(w->kv, &spec, &w->e);
    int got = it->ops->iter_move(it, KV_SEEK, slice_str(key), &w->e);
    if (got > 0) got = it->ops->iter_move(it, KV_NEXT, slice_str(""), &w->e);
    it->ops->iter_free(it);
    return got;
}

enum { DELETED = 4 * KV_DENSE };

static void change_each(struct kv_world *w, bool there) {
    struct kv_batch *b = kv_batch_new(w->kv);
    for (int i = 0; i < DELETED; i++) {
        char key[16];
        snprintf(key, sizeof(key), "k%05d", i);
        if (there) kv_batch_put(b, slice_str(key), slice_str("v"));
        else kv_batch_delete(b, slice_str(key));
    }
    assert_int_equal(kv_write(w->kv, b, false, &w->e), 0);
    kv_batch_free(b);
}

/* Who must not be kept waiting does not pass them, and nobody does for long. */
static void delete_each_and_read_behind(struct kv_world *w) {
    change_each(w, false);
    assert_int_equal(next_in_memory(w, "a"), KV_INCOMPLETE);
    assert_holds(w, w->kv, NULL, "a=1 z=2 ");
    kv_tidy(w->kv, KV_DENSE / 2);
    kv_tidy(w->kv, KV_DENSE / 2); /* in sum */
    for (int tries = 2000; next_in_memory(w, "a") != 1; kv_tidy(w->kv, 0), usleep(10000))
        assert_int_not_equal(--tries, 0);
    assert_holds(w, w->kv, NULL, "a=1 z=2 ");
}

static void test_a_reader_that_may_wait_skips_many_deleted_keys_which_are_compacted_soon(void **state) {
    struct kv_world *w = *state;
    put_one(w, w->kv, "a", "1", NULL, NULL);
    put_one(w, w->kv, "z", "2", NULL, NULL);
    change_each(w, true);
    delete_each_and_read_behind(w); /* nothing of them was in files */
    change_each(w, true);
    assert_int_equal(kv_compact(w->kv, &w->e), 0);
    delete_each_and_read_behind(w);
}

/* More than one file takes. What is not in memory is not the end behind a file's last key either. */
static void test_large_load_is_whole_after_a_restart(void **state) {
    struct kv_world *w = *state;
    enum { N = 140, BYTES = 1 << 20 };
    char *value = malloc(BYTES), key[16];
    memset(value, 'v', BYTES);
    struct kv_load *l = kv_load_new(w->kv, &w->e);
    for (int i = 0; i < N; i++) {
        snprintf(key, sizeof(key), "%04d", i);
        value[0] = (char)i;
        assert_int_equal(kv_load_add(l, slice_str(key), slice_of(value, BYTES), &w->e), 0);
    }
    assert_int_equal(kv_load_finish(l, &w->e), 0);
    kv_load_free(l);
    kv_close(w->kv);
    w->kv = kv_open(&(struct kv_options){.data_dir = w->path, .merge = join}, &w->e);
    assert_non_null(w->kv);
    for (int i = 0; i < N - 1; i++) {
        snprintf(key, sizeof(key), "%04d", i);
        assert_int_equal(next_in_memory(w, key), KV_INCOMPLETE);
    }
    struct kv_iter *it = kv_iter_new(w->kv, &(struct kv_iter_spec){.tier = ENG_TIER_ANY}, &w->e);
    int n = 0;
    for (int got = it->ops->iter_move(it, KV_SEEK, slice_str(""), &w->e); got > 0;
         got = it->ops->iter_move(it, KV_NEXT, slice_str(""), &w->e), n++)
        assert_true(it->value.n == BYTES && it->value.p[0] == (uint8_t)n);
    it->ops->iter_free(it);
    assert_int_equal(n, N);
    free(value);
}

/* ---- places that memtables remember ---- */

enum { NEAR = 5 }; /* bytes of a key: two tables of four bytes, of two parts each */

static void open_near(struct kv_world *w, size_t near_len) {
    kv_close(w->kv);
    w->kv = kv_open(&(struct kv_options){.data_dir = w->path, .merge = join, .near_len = near_len}, &w->e);
    assert_non_null(w->kv);
}

/* The same to both stores. */
static void put_both(struct kv_world *w, struct kv *model, uint32_t seed, uint32_t n) {
    for (uint32_t i = 0; i < n; i++) {
        char key[32], value[32];
        uint32_t random = (seed + i) * 2654435761u;
        snprintf(key, sizeof(key), "tab%c%c%08x", "AB"[random & 1], "xy"[random >> 1 & 1], random >> 12);
        snprintf(value, sizeof(value), "%u", seed + i);
        assert_int_equal(put_one(w, w->kv, key, value, NULL, NULL) | put_one(w, model, key, value, NULL, NULL), 0);
    }
}

static void drop_both(struct kv_world *w, struct kv *model, const char *from, const char *to) {
    assert_int_equal(kv_drop_range(w->kv, slice_str(from), slice_str(to), &w->e), 0);
    assert_int_equal(kv_drop_range(model, slice_str(from), slice_str(to), &w->e), 0);
}

static void assert_equal_stores(struct kv_world *w, struct kv *model) {
    char *expected = text_of(w, model, NULL);
    assert_holds(w, w->kv, NULL, expected);
    free(expected);
}

/* A place in RocksDB's list of rows is none in its list of deleted ranges: this ends the process
 * when a range begins with a key whose place is remembered. */
static void test_ranges_are_dropped_between_writes_with_insert_hints(void **state) {
    enum { FEW = 40, MANY = 3000, ROUNDS = 8 };
    struct kv_world *w = *state;
    struct kv *model = kv_open(&(struct kv_options){.merge = join}, &w->e);
    open_near(w, NEAR);
    for (uint32_t i = 0; i < ROUNDS; i++) {
        put_both(w, model, i * MANY, i % 4 ? FEW : MANY);
        drop_both(w, model, "tabA", "tabB");
        put_both(w, model, i * MANY + FEW, FEW);
        drop_both(w, model, "tabBx", "tabBx4");
        put_both(w, model, i * MANY + 2 * FEW, FEW);
        drop_both(w, model, "tabAy0000", "tabBy8"); /* more than one batch of the store's, in the rounds of many */
        drop_both(w, model, "tab", "tabA");
        put_both(w, model, i * MANY + 3 * FEW, FEW);
        assert_equal_stores(w, model);
        if (i % 3 == 2) open_near(w, NEAR);
    }
    open_near(w, NEAR);
    assert_equal_stores(w, model);
    kv_close(model);
}

/* The number of the newest log: each memtable begins one. */
static long newest_log(const struct kv_world *w) {
    char path[96];
    long newest = 0;
    snprintf(path, sizeof(path), "%s/rows", w->path);
    DIR *d = opendir(path);
    assert_non_null(d);
    for (struct dirent *f; (f = readdir(d));)
        if (strstr(f->d_name, ".log") && atol(f->d_name) > newest) newest = atol(f->d_name);
    closedir(d);
    return newest;
}

/* Over so many tables evenly, in memtables of 1 MB, once the store has rows of each and is opened
 * again; how many memtables were filled. */
static int memtables_of_rows(struct kv_world *w, uint32_t tables) {
    enum { MANY = 60000, SOME = 32 };
    struct kv_options o = {
        .data_dir = w->path, .merge = join, .near_len = NEAR, .memtable_bytes = 1 << 20, .write_through = true};
    int n = -1;
    long log = 0;
    for (uint32_t i = 0; i < MANY + tables; i++) {
        uint8_t key[32] = {0};
        uint64_t random = (i + 1) * 0x9e3779b97f4a7c15ull;
        if (i == 0 || i == tables) {
            kv_close(w->kv);
            w->kv = kv_open(&o, &w->e);
            assert_non_null(w->kv);
        }
        store_u32(key, 1000 * tables + i % tables);
        store_u64(key + 4, random ^ random >> 29);
        struct kv_batch *b = kv_batch_new(w->kv);
        kv_batch_put(b, slice_of(key, sizeof(key)), slice_str("value"));
        while (kv_write(w->kv, b, false, &w->e) == KV_BUSY) usleep(1000);
        kv_batch_free(b);
        if (i >= tables && i % SOME == 0 && newest_log(w) != log) {
            log = newest_log(w);
            n++;
        }
    }
    return n;
}

/* A hint takes more memory than most rows. Rows of many tables, written evenly, would fill memtables with hints. */
static void test_rows_of_many_tables_fill_no_more_memtables_than_those_of_one(void **state) {
    struct kv_world *w = *state;
    int few = memtables_of_rows(w, 1), many = memtables_of_rows(w, 100), more = memtables_of_rows(w, 400);
    assert_true(few > 2);
    assert_in_range(many, few - 1, few * 3 / 2);
    assert_in_range(more, few - 1, few * 3 / 2);
}

/* Writes a row of each table, drops the others, and puts all that into a table file. */
static void write_and_drop(struct kv_world *w, uint32_t n, const uint32_t *tables, const char *const *cks,
                           uint32_t n_drop, const uint32_t *drop) {
    struct eng *eng = open_copy(w);
    struct eng_batch *b = eng_batch_new(eng);
    for (uint32_t i = 0; i < n; i++) add_row(b, tables[i], 0, cks[i], 7, 100, false);
    commit_batch(b);
    eng_batch_free(b);
    for (uint32_t i = 0; i < n_drop; i++) assert_int_equal(eng_table_drop(eng, drop[i], &w->e), 0);
    eng_close(eng);
    eng_close(open_copy(w)); /* what is in the log alone goes to a file at the start */
}

static int scan_one(struct eng *eng, enum eng_tier tier, const struct eng_part *part, bool reverse, struct err *e) {
    struct eng_scan_spec spec = {.table = part->table, .part = part, .reverse = reverse, .rows = true, .now = NOW};
    struct eng_item item;
    struct eng_scan *scan = eng_scan_open(eng, tier, &spec, NULL, e);
    int got = eng_scan_next(scan, &item, e);
    eng_scan_close(scan);
    return got;
}

/* On both sides of the row in the order of keys are dropped tables, whose rows are in memory, and the row is not. */
static void test_row_between_dropped_tables_is_not_missed(void **state) {
    enum { LONG = 20 << 10 }; /* more than a block */
    struct kv_world *w = *state;
    const uint32_t around[] = {TABLE - 1, TABLE + 1}, live[] = {TABLE - 2, TABLE};
    const char *const cks[] = {"a", "a"};
    char *ck = calloc(1, LONG + 1);
    memset(ck, 'k', LONG);
    write_and_drop(w, 2, around, cks, 0, NULL);
    write_and_drop(w, 2, live, (const char *const[]){ck, "a"}, 2, around);
    struct eng *eng = open_copy(w);
    struct eng_part part = part_of(TABLE, part_names[0]);
    struct eng_pair pair;
    struct arena a;
    int got[4];
    arena_init(&a, 1024, 0);
    for (int reverse = 0; reverse < 2; reverse++) got[reverse] = scan_one(eng, ENG_TIER_CACHE, &part, reverse, &w->e);
    got[2] = eng_pair_get(eng, ENG_TIER_CACHE, &part, slice_str("a"), NOW, &a, &pair, NULL, &w->e);
    got[3] = scan_one(eng, ENG_TIER_ANY, &part, true, &w->e);
    arena_fini(&a);
    eng_close(eng);
    free(ck);
    for (int i = 0; i < 3; i++) assert_int_equal(got[i], ENG_INCOMPLETE);
    assert_int_equal(got[3], 1);
}

static void test_an_ingested_table_is_read_and_written_without_cached_knowledge(void **state) {
    struct kv_world *w = *state;
    struct eng_options o = {.data_dir = w->on_disk ? w->copy : NULL, .durability = ENG_FSYNC, .clock = &clock_real};
    struct eng *from = eng_open(&(struct eng_options){.durability = ENG_FSYNC, .clock = &clock_real}, &w->e),
               *to = eng_open(&o, &w->e);
    struct eng_batch *b = eng_batch_new(from), *t = eng_batch_new(to);
    struct eng_part q = part_of(TABLE, part_names[1]);
    for (int i = 0; i < ROWS; i++)
        add_row(b, TABLE, 0, row_names[i], i, 500 + i, false), add_row(b, TABLE, 1, row_names[i], i, 500, false);
    commit_batch(b);
    assert_int_equal(eng_batch_delete_partition(b, &q, 600, NOW, NULL, &w->e), 0);
    commit_batch(b);
    /* the engine has its proofs of the table, as long as nothing is ingested */
    add_row(t, TABLE + 1, 0, "z", 1, 10, false);
    commit_batch(t);
    assert_int_equal(eng_ingest(to, TABLE + 1, from, TABLE, &w->e), 0);
    assert_int_equal(get_row(to, TABLE + 1, 1, "a", NULL), -1);
    add_row(t, TABLE + 1, 0, "c", 99, 100, false); /* older than what came: must not replace it */
    add_row(t, TABLE + 1, 1, "a", 99, 550, false); /* older than the deletion that came */
    commit_batch(t);
    for (int i = 0; i < ROWS; i++) assert_int_equal(get_row(to, TABLE + 1, 0, row_names[i], NULL), i);
    assert_int_equal(get_row(to, TABLE + 1, 1, "a", NULL), -1);
    if (w->on_disk) {
        eng_batch_free(t);
        eng_close(to);
        to = eng_open(&o, &w->e);
        t = eng_batch_new(to);
        add_row(t, TABLE + 1, 0, "d", 99, 100, false);
        commit_batch(t);
        assert_int_equal(get_row(to, TABLE + 1, 0, "d", NULL), 3);
        assert_int_equal(get_row(to, TABLE + 1, 1, "a", NULL), -1);
    }
    eng_batch_free(b);
    eng_batch_free(t);
    eng_close(from);
    eng_close(to);
}

/* ---- disk space of dropped ranges ---- */

struct reader {
    struct kv_world *w;
    pthread_t thread;
    _Atomic bool started, stop;
};

/* Reads one key all the time, past the caches of rows. */
static void *read_one(void *arg) {
    struct reader *r = arg;
    struct kv *kv = r->w->kv;
    struct kv_value value;
    struct err e = {0};
    while (!r->stop) {
        if (kv_get(kv, ENG_TIER_ANY, slice_str("a"), &value, &e) > 0) kv_release(value.handle);
        r->started = true;
    }
    return NULL;
}

static uint64_t table_files(const struct kv_world *w) {
    char path[400];
    uint64_t n = 0;
    snprintf(path, sizeof(path), "%s/rows", w->path);
    DIR *d = opendir(path);
    assert_non_null(d);
    for (struct dirent *f; (f = readdir(d));) {
        struct stat st;
        snprintf(path, sizeof(path), "%s/rows/%s", w->path, f->d_name);
        if (strstr(f->d_name, ".sst") && !stat(path, &st)) n += (uint64_t)st.st_size;
    }
    closedir(d);
    return n;
}

/* Random, so that a block is not compressed. Each value is a block, so all may be the same. */
static void write_table_file(struct kv_world *w, int keys, struct slice value) {
    char key[16];
    struct kv_batch *b = kv_batch_new(w->kv);
    for (int i = 0; i < keys; i++) {
        snprintf(key, sizeof(key), "k%d", i);
        kv_batch_put(b, slice_str(key), value);
    }
    while (kv_write(w->kv, b, false, &w->e) == KV_BUSY) usleep(1000);
    kv_batch_free(b);
    assert_int_equal(kv_compact(w->kv, &w->e), 0);
    assert_true(table_files(w) > (uint64_t)keys * value.n);
}

/* RocksDB keeps the files of a range while a reader is in them, and when that reader is a get, nobody deletes them
 * after it. Threads read from before the range is dropped until its files are gone. */
static void test_files_of_a_dropped_range_go_though_others_read(void **state) {
    enum { ROUNDS = 20, READERS = 4, KEYS = 30, BYTES = 100 << 10 };
    struct kv_world *w = *state;
    uint8_t *value = malloc(BYTES);
    kv_close(w->kv);
    w->kv = kv_open(&(struct kv_options){.data_dir = w->path, .merge = join, .memtable_bytes = 1 << 20}, &w->e);
    put_one(w, w->kv, "a", "1", NULL, NULL);
    assert_int_equal(kv_compact(w->kv, &w->e), 0);
    bool held = false;
    for (int at = 0; at < BYTES; at += 8) store_u64(value + at, (uint64_t)rand() << 32 | rand());
    for (int round = 0; round < ROUNDS && !held; round++) {
        struct reader readers[READERS];
        write_table_file(w, KEYS, slice_of(value, BYTES));
        for (int i = 0; i < READERS; i++) {
            readers[i] = (struct reader){.w = w};
            assert_int_equal(pthread_create(&readers[i].thread, NULL, read_one, &readers[i]), 0);
        }
        for (int i = 0; i < READERS; i++)
            while (!readers[i].started) usleep(100);
        assert_int_equal(kv_drop_range(w->kv, slice_str("k"), slice_str("l"), &w->e), 0);
        int tries = 60000;
        while ((held = table_files(w) > KEYS * BYTES / 2) && --tries) usleep(1000);
        for (int i = 0; i < READERS; i++) {
            readers[i].stop = true;
            pthread_join(readers[i].thread, NULL);
        }
    }
    free(value);
    assert_false(held);
}

/* The old log may have a hole where its sync failed, so nothing may be appended to it. */
static void test_healing_begins_a_new_log_though_the_memtable_is_empty(void **state) {
    struct kv_world *w = *state;
    long before = newest_log(w);
    assert_int_equal(kv_heal(w->kv, &w->e), 0);
    long after = newest_log(w);
    assert_true(after > before);
    put_one(w, w->kv, "a", "1", NULL, NULL);
    assert_int_equal(kv_sync(w->kv, true, &w->e), 0);
    assert_int_equal(kv_heal(w->kv, &w->e), 0);
    assert_true(newest_log(w) > after);
}

#define BOTH(f) \
    cmocka_unit_test_setup_teardown(f, setup_memory, teardown), \
        cmocka_unit_test_setup_teardown(f, setup_disk, teardown)

int main(void) {
    const struct CMUnitTest tests[] = {
        BOTH(test_condition_decides_a_write),
        BOTH(test_snapshots_and_iterators_see_one_moment),
        BOTH(test_an_ingested_table_is_read_and_written_without_cached_knowledge),
        BOTH(test_load_is_seen_as_a_whole),
        BOTH(test_a_failed_load_stores_nothing),
        cmocka_unit_test_setup_teardown(test_load_that_was_cut_off_is_removed_at_the_start, setup_disk, teardown),
        cmocka_unit_test_setup_teardown(test_large_load_is_whole_after_a_restart, setup_disk, teardown),
        cmocka_unit_test_setup_teardown(test_ranges_are_dropped_between_writes_with_insert_hints, setup_disk,
                                        teardown),
        cmocka_unit_test_setup_teardown(test_rows_of_many_tables_fill_no_more_memtables_than_those_of_one, setup_disk,
                                        teardown),
        cmocka_unit_test_setup_teardown(test_a_key_outside_memory_is_not_the_end_of_a_scan, setup_disk, teardown),
        cmocka_unit_test_setup_teardown(test_a_reader_that_may_wait_skips_many_deleted_keys_which_are_compacted_soon,
                                        setup_disk,
                                        teardown),
        cmocka_unit_test_setup_teardown(test_files_of_a_dropped_range_go_though_others_read, setup_disk, teardown),
        cmocka_unit_test_setup_teardown(test_healing_begins_a_new_log_though_the_memtable_is_empty, setup_disk,
                                        teardown),
        cmocka_unit_test_setup_teardown(test_row_between_dropped_tables_is_not_missed, setup_disk, teardown),
        cmocka_unit_test(test_two_engines_on_one_store_follow_the_model),
        cmocka_unit_test(test_two_engines_decide_one_after_the_other),
        cmocka_unit_test(test_records_are_written_on_a_condition_by_two_engines),
        cmocka_unit_test(test_each_watcher_is_notified_until_its_watch_ends),
        cmocka_unit_test_setup_teardown(test_records_are_written_on_a_condition_by_several_threads, setup_disk,
                                        teardown),
        cmocka_unit_test(test_a_failed_condition_writes_no_record),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
