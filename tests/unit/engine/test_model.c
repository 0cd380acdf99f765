/* Random writes, deletions of rows, ranges and partitions, times to live, compactions and restarts,
 * against a plain model that keeps every event and looks through all of them for every cell. The rows
 * are in memory, in files, or on the Ceph cluster of TALLY_RADOS_CONF (tests/rados/run.py). */
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

#include <cmocka.h>

#include "base/murmur3.h"
#include "engine/stats.h"
#include "engine/table.h"
#include "tests/unit/folder.h"

enum { TABLE = 20, PARTS = 3, KEYS = 24, COLUMNS = 2, EVENTS_MAX = 6000, ROUNDS = 700, GC_GRACE = 50 };

enum kind { ROW, ROW_DELETION, RANGE, PARTITION };

struct model_cell { bool set, tombstone; int64_t expiry; uint8_t value; };

struct event {
    enum kind kind;
    uint32_t part, key, end;   /* of a range: [key, end) */
    int64_t ts, live_expiry;
    bool live;
    struct model_cell cells[COLUMNS];
};

struct test_clock {
    struct clock clock;
    int64_t seconds;
};

static int64_t read_clock(struct clock *c) { return ((struct test_clock *)c)->seconds * 1000000; }

enum place { MEMORY, FILES, CLUSTER };

struct model {
    char path[FOLDER_PATH];
    enum place place;
    uint32_t table;
    struct test_clock clock;
    struct eng *eng;
    struct eng_batch *batch;
    struct arena arena;
    struct err e;
    uint64_t seed;
    uint32_t as_stored; /* rows of which all that is stored was read */
    uint32_t passed_over; /* scans that delivered rows, and passed over a partition */
    uint32_t n;
    struct event events[EVENTS_MAX];
};

static uint32_t draw(struct model *m, uint32_t below) {
    m->seed ^= m->seed << 13;
    m->seed ^= m->seed >> 7;
    m->seed ^= m->seed << 17;
    return (uint32_t)(m->seed >> 20) % below;
}

static const char *part_names[PARTS] = {"p", "q", "r"};

static struct eng_part part_at(const struct model *m, uint32_t i) {
    struct slice key = slice_str(part_names[i]);
    return (struct eng_part){.table = m->table, .token = murmur3_token(key), .key = key};
}

static void open_engine(struct model *m) {
    struct eng_rados rados = {.conf = getenv("TALLY_RADOS_CONF"), .pool = "tally", .split_keys = 40};
    struct eng_options o = {.data_dir = m->place == FILES ? m->path : NULL,
                            .rados = m->place == CLUSTER ? &rados : NULL,
                            .durability = ENG_PERIODIC,
                            .clock = &m->clock.clock,
                            .memtable_bytes = 1 << 20,
                            .block_cache_bytes = 1 << 20,
                            .row_cache_bytes = 64 << 10};
    m->eng = eng_open(&o, &m->e);
    if (!m->eng) fail_msg("%s", m->e.text);
    eng_table_set(m->eng, m->table, GC_GRACE);
    m->batch = eng_batch_new(m->eng);
}

static void close_engine(struct model *m) {
    eng_batch_free(m->batch);
    eng_close(m->eng);
}

/* ---- the model ---- */

static int64_t deleted_at(const struct model *m, uint32_t part, uint32_t key) {
    int64_t ts = ENG_NO_TS;
    for (uint32_t i = 0; i < m->n; i++) {
        const struct event *v = &m->events[i];
        bool covers = v->part == part && (v->kind == PARTITION || (v->kind == RANGE && v->key <= key && key < v->end) ||
                                          (v->kind == ROW_DELETION && v->key == key));
        if (covers && v->ts > ts) ts = v->ts;
    }
    return ts;
}

static bool beats(int64_t ts, int rank, int64_t expiry, uint8_t value, int64_t ts2, int rank2, int64_t expiry2,
                  uint8_t value2) {
    if (ts != ts2) return ts > ts2;
    if (rank != rank2) return rank > rank2;
    if (rank && expiry != expiry2) return expiry > expiry2;
    return value > value2;
}

static int rank_of(const struct model_cell *c) { return c->tombstone ? 2 : c->expiry != ENG_NO_EXPIRY; }

/* "x1.x2" with - for what is not there; NULL: no such row. */
static bool model_row(const struct model *m, uint32_t part, uint32_t key, char *text) {
    int64_t del = deleted_at(m, part, key), live_ts = ENG_NO_TS, live_expiry = 0;
    const struct event *won[COLUMNS] = {NULL};
    for (uint32_t i = 0; i < m->n; i++) {
        const struct event *v = &m->events[i];
        if (v->kind != ROW || v->part != part || v->key != key || v->ts <= del) continue;
        if (v->live && beats(v->ts, v->live_expiry != ENG_NO_EXPIRY, v->live_expiry, 0, live_ts,
                             live_expiry != ENG_NO_EXPIRY, live_expiry, 0))
            live_ts = v->ts, live_expiry = v->live_expiry;
        for (int c = 0; c < COLUMNS; c++) {
            const struct model_cell *x = &v->cells[c], *y = won[c] ? &won[c]->cells[c] : NULL;
            if (x->set &&
                (!y || beats(v->ts, rank_of(x), x->expiry, x->value, won[c]->ts, rank_of(y), y->expiry, y->value)))
                won[c] = v;
        }
    }
    bool there = live_ts != ENG_NO_TS && live_expiry > m->clock.seconds;
    for (int c = 0; c < COLUMNS; c++) {
        const struct model_cell *x = won[c] ? &won[c]->cells[c] : NULL;
        bool alive = x && !x->tombstone && x->expiry > m->clock.seconds;
        text[c] = alive ? (char)x->value : '-';
        there = there || alive;
    }
    text[COLUMNS] = 0;
    return there;
}

static void model_slice(const struct model *m, uint32_t part, uint32_t from, uint32_t to, bool reverse,
                        struct buf *out) {
    char text[COLUMNS + 1];
    for (uint32_t i = from; i < to; i++) {
        uint32_t key = reverse ? to - 1 - (i - from) : i;
        if (model_row(m, part, key, text)) buf_printf(out, "%02u=%s ", key, text);
    }
    buf_u8(out, 0);
}

/* ---- the engine, as text of the same form ---- */

static void row_text(const struct eng_row *row, struct buf *out) {
    char text[COLUMNS + 1] = "--";
    for (uint32_t i = 0; i < row->n_cells; i++) text[row->cells[i].column] = (char)row->cells[i].value.p[0];
    buf_printf(out, "%.*s=%s ", SLICE_FMT(row->ck), text);
}

/* Up to most rows; ENG_INCOMPLETE: a loop may not read on. */
static int engine_slice(struct model *m, uint32_t part, struct eng_slice *slice, const char *resume, bool reverse,
                        enum eng_tier tier, uint32_t most, struct buf *out) {
    struct eng_part p = part_at(m, part);
    struct eng_scan_spec spec = {.table = m->table,
                                 .part = &p,
                                 .slices = slice,
                                 .n_slices = slice != NULL,
                                 .rows = true,
                                 .statics = draw(m, 2),
                                 .reverse = reverse,
                                 .now = m->clock.seconds};
    if (resume) spec.resume_key = p.key, spec.resume_ck = slice_str(resume);
    struct eng_item item;
    struct eng_scan *s = eng_scan_open(m->eng, tier, &spec, NULL, &m->e);
    int got = 1;
    assert_non_null(s);
    out->n = 0;
    while (most && (got = eng_scan_next(s, &item, &m->e)) > 0) {
        if (item.kind != ENG_ITEM_ROW) continue;
        row_text(item.row, out);
        most--;
    }
    if (got < 0 && got != ENG_INCOMPLETE) fail_msg("%s", m->e.text);
    eng_scan_close(s);
    buf_u8(out, 0);
    return got;
}

static void check_slice(struct model *m, uint32_t part, uint32_t from, uint32_t to, bool reverse, bool resumed) {
    struct buf want, have;
    char keys[2][8], at[8];
    buf_init(&want, 0);
    buf_init(&have, 0);
    snprintf(keys[0], sizeof(keys[0]), "%02u", from);
    snprintf(keys[1], sizeof(keys[1]), "%02u", to);
    struct eng_slice slice = {.from = {.key = slice_str(keys[0])}, .to = {.key = slice_str(keys[1])}};
    uint32_t resume = from + draw(m, to - from);
    snprintf(at, sizeof(at), "%02u", resume);
    if (resumed && reverse) to = resume;
    if (resumed && !reverse) from = resume + 1;
    model_slice(m, part, from, to, reverse, &want);
    /* Again and again, some of them not to the end, so that runs are made and used (engine/local/range_cache.h). */
    for (uint32_t i = draw(m, 4); i < 6; i++) {
        uint32_t most = draw(m, 2) ? UINT32_MAX : 1 + draw(m, 6);
        if (engine_slice(m, part, &slice, resumed ? at : NULL, reverse, draw(m, 2) ? ENG_TIER_ANY : ENG_TIER_CACHE,
                         most, &have) == ENG_INCOMPLETE)
            engine_slice(m, part, &slice, resumed ? at : NULL, reverse, ENG_TIER_ANY, most, &have);
        if (most == UINT32_MAX) assert_string_equal((char *)have.p, (char *)want.p);
        else assert_memory_equal(have.p, want.p, have.n - 1);
    }
    buf_fini(&want);
    buf_fini(&have);
}

/* A row of which it is said that it is all that is stored. */
static void check_as_stored(struct model *m, const struct eng_part *p, const struct eng_row *row) {
    struct eng_row stored;
    assert_int_equal(eng_row_get(m->eng, ENG_TIER_ANY, p, ENG_ROW, row->ck, ENG_AS_STORED, &m->arena, &stored, NULL,
                                 &m->e),
                     1);
    assert_true(stored.del_ts == ENG_NO_TS && stored.live_ts == row->live_ts && stored.live_ttl == row->live_ttl &&
                stored.live_expiry == row->live_expiry);
    assert_int_equal(stored.n_cells, row->n_cells);
    for (uint32_t i = 0; i < row->n_cells; i++) {
        const struct eng_cell *a = &row->cells[i], *b = &stored.cells[i];
        assert_true(a->column == b->column && a->flags == b->flags && a->ts == b->ts && a->expiry == b->expiry &&
                    slice_eq(a->path, b->path) && slice_eq(a->value, b->value));
    }
    m->as_stored++;
}

static void check_gets(struct model *m, uint32_t part) {
    struct eng_part p = part_at(m, part);
    for (uint32_t key = 0; key < KEYS; key++) {
        char ck[8], text[COLUMNS + 1];
        struct buf want, have;
        struct eng_row row;
        buf_init(&want, 0);
        buf_init(&have, 0);
        snprintf(ck, sizeof(ck), "%02u", key);
        if (model_row(m, part, key, text)) buf_printf(&want, "%s=%s ", ck, text);
        bool found = eng_row_get(m->eng, ENG_TIER_ANY, &p, ENG_ROW, slice_str(ck), m->clock.seconds, &m->arena, &row,
                                 NULL, &m->e) == 1;
        if (found) row_text(&row, &have);
        if (found && eng_row_is_as_stored(&row)) check_as_stored(m, &p, &row);
        buf_u8(&want, 0);
        buf_u8(&have, 0);
        assert_string_equal((char *)have.p, (char *)want.p);
        buf_fini(&want);
        buf_fini(&have);
    }
}

/* ---- a scan of a range of tokens that wants some of its partitions ---- */

struct choice {
    const struct model *model;
    uint32_t wanted; /* bits */
    int fails_at;    /* a partition; -1: none */
};

static uint32_t index_of(const struct model *m, const struct eng_part *part) {
    uint32_t i = 0;
    while (i < PARTS && !slice_eq(part->key, slice_str(part_names[i]))) i++;
    assert_true(i < PARTS && part->table == m->table && part->token == murmur3_token(part->key));
    return i;
}

static int wants(void *arg, const struct eng_part *part, struct err *e) {
    const struct choice *c = arg;
    uint32_t i = index_of(c->model, part);
    return (int)i == c->fails_at ? err_set(e, ERR_SERVER, "no answer") : (int)(c->wanted >> i & 1);
}

/* What it delivers: of each wanted partition in the range, and behind the place where it resumes, its rows. */
static void model_range(const struct model *m, const struct eng_scan_spec *spec, uint32_t wanted, struct buf *out) {
    for (int64_t from = spec->token_from; from < INT64_MAX; from++) { /* the next one, in the order of tokens */
        uint32_t next = PARTS;
        for (uint32_t i = 0; i < PARTS; i++)
            if (part_at(m, i).token >= from && (next == PARTS || part_at(m, i).token < part_at(m, next).token))
                next = i;
        if (next == PARTS || part_at(m, next).token > spec->token_to) break;
        from = part_at(m, next).token;
        bool resumes = spec->resume_key.p && slice_eq(spec->resume_key, part_at(m, next).key);
        if (!(wanted >> next & 1) || (resumes && spec->resume_skip)) continue;
        uint32_t done = resumes && spec->resume_ck.p ? (uint32_t)atoi((const char *)spec->resume_ck.p) : KEYS;
        model_slice(m, next, done < KEYS ? done + 1 : 0, KEYS, false, out);
        out->n--; /* the end of a text */
    }
    buf_u8(out, 0);
}

/* ENG_INCOMPLETE: a loop may not read on; -1: the choice has failed. */
static int engine_range(struct model *m, const struct eng_scan_spec *spec, enum eng_tier tier, struct op_cost *cost,
                        struct buf *out) {
    const struct choice *c = spec->wants_arg;
    struct eng_item item;
    struct eng_scan *s = eng_scan_open(m->eng, tier, spec, cost, &m->e);
    int got;
    assert_non_null(s);
    out->n = 0;
    while ((got = eng_scan_next(s, &item, &m->e)) > 0) {
        if (item.kind == ENG_ITEM_PARTITION) assert_true(c->wanted >> index_of(m, &item.part) & 1);
        if (item.kind == ENG_ITEM_ROW) row_text(item.row, out);
    }
    eng_scan_close(s);
    buf_u8(out, 0);
    return got;
}

static void check_range(struct model *m) {
    struct buf want, have;
    struct choice c = {.model = m, .wanted = draw(m, 1 << PARTS), .fails_at = draw(m, 8) ? -1 : (int)draw(m, PARTS)};
    struct op_cost cost = {0};
    const struct eng_part first = part_at(m, draw(m, PARTS)), last = part_at(m, draw(m, PARTS));
    char at[8];
    struct eng_scan_spec spec = {.table = m->table,
                                 .token_from = draw(m, 2) ? INT64_MIN : first.token,
                                 .token_to = draw(m, 2) ? INT64_MAX : last.token,
                                 .wants = wants,
                                 .wants_arg = &c,
                                 .rows = true,
                                 .now = m->clock.seconds};
    snprintf(at, sizeof(at), "%02u", draw(m, KEYS));
    if (draw(m, 2)) {
        spec.token_from = first.token;
        spec.resume_key = first.key;
        spec.resume_skip = draw(m, 2);
        if (!spec.resume_skip) spec.resume_ck = slice_str(at);
    }
    buf_init(&want, 0);
    buf_init(&have, 0);
    model_range(m, &spec, c.wanted, &want);
    int got = engine_range(m, &spec, draw(m, 2) ? ENG_TIER_ANY : ENG_TIER_CACHE, NULL, &have);
    if (got == ENG_INCOMPLETE || got == 0) got = engine_range(m, &spec, ENG_TIER_ANY, &cost, &have);
    if (got < 0) {
        assert_true(c.fails_at >= 0 && m->e.code == ERR_SERVER);
        assert_string_equal(m->e.text, "no answer");
        err_clear(&m->e);
    } else {
        assert_string_equal((char *)have.p, (char *)want.p);
        assert_true(cost.partitions <= (uint64_t)__builtin_popcount(c.wanted)); /* the others count as not read */
        assert_true(c.wanted || (cost.rows_read == 0 && cost.bytes_read == 0));
        m->passed_over += c.wanted != (1 << PARTS) - 1 && want.n > 1;
    }
    buf_fini(&want);
    buf_fini(&have);
}

static void check(struct model *m) {
    uint32_t part = draw(m, PARTS), from = draw(m, KEYS), to = from + 1 + draw(m, KEYS - from);
    arena_reset(&m->arena);
    check_slice(m, part, 0, KEYS, draw(m, 2), false);
    check_slice(m, part, from, to, draw(m, 2), false);
    check_slice(m, part, from, to, draw(m, 2), true);
    check_gets(m, part);
    check_range(m);
}

/* ---- events ---- */

/* A deletion's time is before those that the reclaimer may have dropped; a write is never older than that. */
static struct event *add_event(struct model *m, enum kind kind) {
    assert_true(m->n < EVENTS_MAX);
    struct event *v = &m->events[m->n++];
    *v = (struct event){.kind = kind,
                        .part = draw(m, PARTS),
                        .key = draw(m, KEYS),
                        .ts = m->clock.seconds * 1000000 - draw(m, 8) * 1000000,
                        .live_expiry = ENG_NO_EXPIRY};
    return v;
}

static void write_row(struct model *m) {
    struct event *v = add_event(m, ROW);
    struct eng_part part = part_at(m, v->part);
    struct eng_cell cells[COLUMNS];
    struct eng_row row;
    char ck[8];
    snprintf(ck, sizeof(ck), "%02u", v->key);
    eng_row_init(&row, ENG_ROW, slice_str(ck));
    row.cells = cells;
    int32_t ttl = draw(m, 3) ? 0 : 1 + (int32_t)draw(m, 40);
    if ((v->live = draw(m, 4) != 0)) {
        row.live_ts = v->ts;
        row.live_ttl = ttl;
        if (ttl) row.live_expiry = v->live_expiry = m->clock.seconds + ttl;
    }
    bool whole = v->live && draw(m, 2);
    for (uint32_t c = 0; c < COLUMNS; c++) {
        struct model_cell *x = &v->cells[c];
        if (!whole && draw(m, 2)) continue;
        *x = (struct model_cell){.set = true,
                                 .tombstone = draw(m, 6) == 0,
                                 .expiry = ttl ? m->clock.seconds + ttl : ENG_NO_EXPIRY,
                                 .value = (uint8_t)('a' + draw(m, 26))};
        struct eng_cell *to = &cells[row.n_cells++];
        *to = (struct eng_cell){.column = c,
                                .ts = v->ts,
                                .ttl = ttl,
                                .expiry = x->expiry,
                                .flags = ttl ? ENG_CELL_EXPIRING : 0,
                                .value = slice_of(&x->value, 1)};
        if (!x->tombstone) continue;
        x->expiry = m->clock.seconds;
        *to = (struct eng_cell){.column = c, .ts = v->ts, .expiry = m->clock.seconds, .flags = ENG_CELL_TOMBSTONE};
    }
    if (whole) row.covers_below = COLUMNS;
    assert_int_equal(eng_batch_row(m->batch, &part, &row, NULL, &m->e), 0);
}

static void delete_row(struct model *m) {
    struct event *v = add_event(m, ROW_DELETION);
    struct eng_part part = part_at(m, v->part);
    struct eng_row row;
    char ck[8];
    snprintf(ck, sizeof(ck), "%02u", v->key);
    eng_row_init(&row, ENG_ROW, slice_str(ck));
    row.del_ts = v->ts;
    row.del_at = m->clock.seconds;
    assert_int_equal(eng_batch_row(m->batch, &part, &row, NULL, &m->e), 0);
}

static void delete_range(struct model *m) {
    struct event *v = add_event(m, RANGE);
    v->part %= PARTS - 1; /* of one partition only rows are deleted */
    struct eng_part part = part_at(m, v->part);
    char keys[2][8];
    v->end = v->key + 1 + draw(m, draw(m, 4) ? 3 : KEYS - v->key);
    if (v->end > KEYS) v->end = KEYS;
    bool open = v->end == KEYS && draw(m, 2);
    snprintf(keys[0], sizeof(keys[0]), "%02u", v->key);
    snprintf(keys[1], sizeof(keys[1]), "%02u", v->end - 1);
    struct eng_slice range = {.from = {.key = slice_str(keys[0])},
                              .to = {.key = slice_str(open ? "" : keys[1]), .after = true}};
    if (v->key == 0 && draw(m, 2)) range.from.key = slice_str("");
    assert_int_equal(eng_batch_delete_range(m->batch, &part, &range, v->ts, m->clock.seconds, NULL, &m->e), 0);
}

static void delete_partition(struct model *m) {
    struct event *v = add_event(m, PARTITION);
    v->part %= PARTS - 1;
    struct eng_part part = part_at(m, v->part);
    assert_int_equal(eng_batch_delete_partition(m->batch, &part, v->ts, m->clock.seconds, NULL, &m->e), 0);
}

static void commit(struct model *m) {
    uint64_t seq;
    if (eng_batch_commit(m->batch, &seq, &m->e)) fail_msg("%s", m->e.text);
}

static void step(struct model *m) {
    uint32_t what = draw(m, 100);
    for (uint32_t i = draw(m, 6); i > 0; i--) {
        if (what < 45) write_row(m);
        else if (what < 60) delete_row(m);
        else if (what < 85) delete_range(m);
        else if (what < 88) delete_partition(m);
    }
    commit(m);
    m->clock.seconds += draw(m, 3);
    if (what >= 98 && eng_compact(m->eng, &m->e)) fail_msg("%s", m->e.text);
    if (what >= 96 && what < 98 && eng_reclaim(m->eng, &m->e)) fail_msg("%s", m->e.text);
    if (what == 95 && m->place != MEMORY) {
        close_engine(m);
        open_engine(m);
    }
}

static void run_model(enum place place, uint64_t seed) {
    struct model *m = calloc(1, sizeof(*m));
    m->place = place;
    m->table = TABLE + (uint32_t)seed;
    m->seed = seed * 0x9e3779b97f4a7c15u;
    m->clock = (struct test_clock){.clock = {.wall_us = read_clock, .mono_us = read_clock}, .seconds = 1000000};
    arena_init(&m->arena, 4096, 0);
    if (place == FILES) folder_make(m->path);
    open_engine(m);
    for (int i = 0; i < ROUNDS; i++) {
        step(m);
        check(m);
    }
    /* an engine of files is opened again and again, and one on a cluster caches no ranges */
    if (place != CLUSTER) assert_true(eng_stat(m->eng, ENG_STAT_RANGE_HITS) > (place == FILES ? 0 : ROUNDS / 10));
    assert_true(m->as_stored > ROUNDS / 10 && m->passed_over > ROUNDS / 10);
    arena_fini(&m->arena);
    close_engine(m);
    if (place == FILES) folder_remove(m->path);
    free(m);
}

static void test_memory_agrees_with_the_model(void **state) {
    (void)state;
    for (uint64_t seed = 1; seed <= 2; seed++) run_model(MEMORY, seed);
}

static void test_rocksdb_agrees_with_the_model(void **state) {
    (void)state;
    for (uint64_t seed = 11; seed <= 11; seed++) run_model(FILES, seed);
}

static void test_a_cluster_agrees_with_the_model(void **state) {
    (void)state;
    run_model(CLUSTER, 21);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_memory_agrees_with_the_model),
        cmocka_unit_test(test_rocksdb_agrees_with_the_model),
    };
    const struct CMUnitTest on_cluster[] = {cmocka_unit_test(test_a_cluster_agrees_with_the_model)};
    if (getenv("TALLY_RADOS_CONF")) return cmocka_run_group_tests(on_cluster, NULL, NULL);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
