#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

#include <cmocka.h>

#include "base/murmur3.h"
#include "engine/rados/fetch.h"
#include "engine/table.h"
#include "engine/verify.h"
#include "harness.h"
#include "pair.h"

uint32_t pair_draw(struct pair *p, uint32_t below) {
    p->random ^= p->random << 13, p->random ^= p->random >> 7, p->random ^= p->random << 17;
    return (uint32_t)(p->random >> 20) % below;
}

static int64_t now_us(struct clock *c) {
    return ((struct pair *)((char *)c - offsetof(struct pair, clock)))->now * 1000000;
}

struct eng *pair_open(struct clock *clock, uint64_t split_keys, struct err *e) {
    struct eng_rados rados = {.conf = getenv("TALLY_RADOS_CONF"), .pool = "tally", .split_keys = split_keys};
    struct eng *eng = eng_open(&(struct eng_options){.rados = &rados, .clock = clock}, e);
    if (!eng) fail_msg("%s", e->text);
    return eng;
}

int pair_setup(void **state, uint32_t partitions, uint64_t split_keys) {
    struct pair *p = calloc(1, sizeof(*p));
    p->clock = (struct clock){.wall_us = now_us, .mono_us = now_us};
    p->now = clock_wall_us(&clock_real) / 1000000;
    struct eng_options o = {.durability = ENG_NONE, .clock = &p->clock};
    p->local = eng_open(&o, &p->e);
    p->rados = pair_open(&p->clock, split_keys, &p->e);
    p->other = pair_open(&p->clock, split_keys, &p->e);
    p->table = harness_table();
    p->partitions = partitions;
    p->random = 88172645463325252u;
    *state = p;
    return p->local ? 0 : -1;
}

int pair_teardown(void **state) {
    struct pair *p = *state;
    eng_close(p->local);
    eng_close(p->rados);
    eng_close(p->other);
    free(p);
    return 0;
}

struct eng_part pair_part(struct pair *p, uint32_t number) {
    store_u32(p->partition, number);
    struct slice key = slice_of(p->partition, 4);
    return (struct eng_part){.table = p->table, .token = murmur3_token(key), .key = key};
}

static void draw_row(struct pair *p, struct statement *s, enum eng_row_kind kind) {
    snprintf(s->ck, sizeof(s->ck), "%02u", pair_draw(p, KEYS));
    eng_row_init(&s->row, kind, kind == ENG_STATIC ? slice_of("", 0) : slice_str(s->ck));
    s->row.cells = s->cells;
    if (kind == ENG_ROW && pair_draw(p, 2)) s->row.live_ts = s->ts;
    if (kind == ENG_ROW && !pair_draw(p, 6)) {
        s->row.del_ts = s->ts;
        s->row.del_at = p->now;
        return;
    }
    for (uint32_t column = 0; column < COLUMNS; column++) {
        if (pair_draw(p, 2)) continue;
        struct eng_cell *c = &s->cells[s->row.n_cells++];
        snprintf(s->values[column], sizeof(s->values[column]), "%u", pair_draw(p, 1 << 30));
        *c = (struct eng_cell){
            .column = column, .ts = s->ts, .expiry = ENG_NO_EXPIRY, .value = slice_str(s->values[column])};
        if (!pair_draw(p, 5))
            *c = (struct eng_cell){.column = column, .flags = ENG_CELL_TOMBSTONE, .ts = s->ts, .expiry = p->now};
        else if (!pair_draw(p, 5)) {
            c->flags = ENG_CELL_EXPIRING;
            c->ttl = 100;
            c->expiry = p->now - 50 + (int64_t)pair_draw(p, 100);
        }
    }
    if (!s->row.n_cells) s->row.live_ts = s->ts;
}

void pair_draw_statement(struct pair *p, struct statement *s) {
    *s = (struct statement){.partition = pair_draw(p, p->partitions), .kind = pair_draw(p, 20)};
    s->ts = p->newer + 1 + (int64_t)pair_draw(p, 2000);
    s->from = pair_draw(p, KEYS), s->to = s->from + 1 + pair_draw(p, KEYS - s->from);
    snprintf(s->from_key, sizeof(s->from_key), "%02u", s->from);
    snprintf(s->to_key, sizeof(s->to_key), "%02u", s->to);
    if (s->kind >= 2) draw_row(p, s, s->kind < 4 ? ENG_STATIC : ENG_ROW);
}

void pair_add(struct pair *p, struct eng_batch *b, const struct statement *s) {
    struct eng_part part = pair_part(p, s->partition);
    struct eng_slice range = {.from = {.key = slice_str(s->from_key)}, .to = {.key = slice_str(s->to_key)}};
    int rc;
    if (s->kind == 0) rc = s->partition % 2 ? 0 : eng_batch_delete_partition(b, &part, s->ts, p->now, NULL, &p->e);
    else if (s->kind == 1) rc = eng_batch_delete_range(b, &part, &range, s->ts, p->now, NULL, &p->e);
    else rc = eng_batch_row(b, &part, &s->row, NULL, &p->e);
    if (rc) fail_msg("%s", p->e.text);
}

void pair_commit(struct pair *p, struct eng *eng, const struct statement *statements, size_t n, bool together) {
    struct eng_batch *b = eng_batch_new(eng);
    uint64_t seq;
    if (together) eng_batch_savepoint(b);
    for (size_t i = 0; i < n; i++) pair_add(p, b, &statements[i]);
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
    struct eng_part part = pair_part(p, partition);
    arena_init(&a, 1 << 12, 0);
    if (eng_pair_get(eng, ENG_TIER_ANY, &part, slice_str(ck), p->now, &a, &got, &cost, &p->e))
        fail_msg("%s", p->e.text);
    buf_printf(out, "%d %d ", got.has_row, got.has_statics);
    if (!p->reclaims)
        buf_printf(out, "markers %u newest %lld: ", got.row.n_markers, (long long)got.row.newest_ts);
    if (got.has_row) row_text(&got.row, out);
    if (got.has_statics) row_text(&got.statics, out);
    arena_fini(&a);
}

void pair_scan(struct pair *p, struct eng *eng, const struct eng_part *part, const struct eng_slice *slice,
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
                                 .now = p->now,
                                 .wanted = p->random % 9}; /* the answer does not depend on it */
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
/* A text is longer than what cmocka shows: what is shown begins with the first line that differs. */
static void texts_compare(struct texts *t) {
    enum { SHOWN = 400 };
    for (int i = 0; i < 3; i++) buf_u8(&t->of[i], 0);
    const char *expected = (const char *)t->of[0].p;
    for (int i = 1; i < 3; i++) {
        const char *text = (const char *)t->of[i].p;
        size_t at = 0, line = 0;
        for (; text[at] && text[at] == expected[at]; at++)
            if (text[at] == '\n') line = at + 1;
        if (text[at] != expected[at])
            fail_msg("engine %d:\n%.*s\nand not\n%.*s", i, SHOWN, text + line, SHOWN, expected + line);
    }
    for (int i = 0; i < 3; i++) buf_fini(&t->of[i]);
}

struct eng *pair_engine(struct pair *p, int i) { return i == 0 ? p->local : i == 1 ? p->rados : p->other; }

void pair_compare_partition(struct pair *p, uint32_t partition) {
    struct texts t;
    char ck[8], from[8], to[8];
    uint32_t start = pair_draw(p, KEYS), end = start + 1 + pair_draw(p, KEYS - start);
    snprintf(ck, sizeof(ck), "%02u", pair_draw(p, KEYS));
    snprintf(from, sizeof(from), "%02u", start);
    snprintf(to, sizeof(to), "%02u", end);
    struct eng_slice slice = {.from = {.key = slice_str(from)}, .to = {.key = slice_str(to)}};
    texts_init(&t);
    for (int i = 0; i < 3; i++) {
        struct eng_part part = pair_part(p, partition);
        read_pair(p, pair_engine(p, i), partition, ck, &t.of[i]);
        pair_scan(p, pair_engine(p, i), &part, &slice, false, &t.of[i]);
        pair_scan(p, pair_engine(p, i), &part, &slice, true, &t.of[i]);
        pair_scan(p, pair_engine(p, i), &part, NULL, false, &t.of[i]);
    }
    texts_compare(&t);
}

void pair_compare_table(struct pair *p) {
    struct texts t;
    texts_init(&t);
    for (int i = 0; i < 3; i++) pair_scan(p, pair_engine(p, i), NULL, NULL, false, &t.of[i]);
    texts_compare(&t);
}

void pair_compare_random(struct pair *p, int rounds) {
    for (int round = 0; round < rounds; round++) {
        struct statement statements[3];
        size_t n = 1 + pair_draw(p, 3);
        bool together = pair_draw(p, 2);
        for (size_t i = 0; i < n; i++) pair_draw_statement(p, &statements[i]);
        pair_commit(p, p->local, statements, n, together);
        pair_commit(p, pair_draw(p, 2) ? p->rados : p->other, statements, n, together);
        if (round % 8 == 0) pair_compare_partition(p, pair_draw(p, p->partitions));
        if (round % 200 == 199) pair_compare_table(p);
    }
    for (uint32_t i = 0; i < p->partitions; i++) pair_compare_partition(p, i);
}

/* Leaves a batch over two partitions in the log, as a server that dies before it writes them: for this one, every
 * object is full. */
void pair_leave_in_log(struct pair *p, const struct statement s[2]) {
    struct rados *r = pair_store(p->rados);
    struct eng_batch *b = eng_batch_new(p->rados);
    uint64_t seq, max_keys = r->o.max_keys;
    eng_batch_savepoint(b);
    for (int i = 0; i < 2; i++) pair_add(p, b, &s[i]);
    eng_batch_release(b);
    r->o.max_keys = 0;
    assert_int_equal(eng_batch_commit(b, &seq, &p->e), -1);
    assert_int_equal(p->e.code, ERR_OVERLOADED);
    r->o.max_keys = max_keys;
    err_clear(&p->e);
    eng_batch_free(b);
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
uint64_t pair_assert_found(struct pair *p, bool in_catalogue, const char *words) {
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

void pair_put_raw(struct pair *p, const char *object, struct slice key, struct slice value) {
    struct omap_write w = {.creates = true};
    omap_write_set(&w, key, value);
    assert_int_equal(omap_write_run(&w, &pair_store(p->rados)->pool, object), 0);
    omap_write_fini(&w);
}

/* ---- reclaiming ---- */

/* The keys in the objects of the table, but those that tell of the objects. */
uint64_t pair_keys(struct pair *p) {
    struct fetched f = {0};
    struct arena a;
    uint64_t n = 0;
    char start[64] = SHARD_HEAD_LAST;
    arena_init(&a, 1 << 12, 0);
    for (uint64_t position = 0;;) {
        const struct fetch_part part = {.start_after = start, .prefix = "", .max = OMAP_READ_MAX};
        arena_reset(&a);
        assert_int_equal(fetch(pair_store(p->rados), p->table, position, &part, 1, &a, &f), 0);
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

void pair_set_gc_grace(struct pair *p) {
    p->reclaims = true;
    for (int i = 0; i < 3; i++) eng_table_set(pair_engine(p, i), p->table, GC_GRACE);
}

void pair_write_both(struct pair *p, int n) {
    for (int i = 0; i < n; i++) {
        struct statement s;
        pair_draw_statement(p, &s);
        pair_commit(p, p->local, &s, 1, false);
        pair_commit(p, pair_draw(p, 2) ? p->rados : p->other, &s, 1, false);
    }
}

void pair_reclaim(struct pair *p, struct eng *eng) {
    if (eng_reclaim(eng, &p->e)) fail_msg("%s", p->e.text);
}
