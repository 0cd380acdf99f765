#include "world.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>

#include <cmocka.h>

#include "engine/rados/move.h"
#include "engine/rados/rados.h"

static int setup_with(void **state, uint64_t split_keys) {
    struct world *w = calloc(1, sizeof(*w));
    w->s = harness_open(split_keys, 10);
    w->other = harness_open(split_keys, 10);
    w->table = harness_table();
    arena_init(&w->a, 1 << 16, 0);
    *state = w;
    return 0;
}
int world_setup(void **state) { return setup_with(state, 0); }
int world_setup_small(void **state) { return setup_with(state, 50); }
int world_setup_calm(void **state) {
    int rc = setup_with(state, 50);
    struct world *w = *state;
    for (int i = 0; i < 2; i++) {
        struct shard_map *map = i ? &w->s->shards : &w->other->shards;
        struct shard *root = shard_map_get(map, &(struct shard_id){.table = w->table});
        root->split_keys = root->split_bytes = UINT64_MAX;
    }
    return rc;
}

int world_teardown(void **state) {
    struct world *w = *state;
    rados_close(w->s);
    rados_close(w->other);
    arena_fini(&w->a);
    free(w);
    return 0;
}

struct slice world_key(struct world *w, uint32_t partition, struct slice rest) {
    struct buf b;
    buf_init(&b, 0);
    harness_key(&b, w->table, partition, ENGI_ROW, rest);
    return arena_take(&w->a, &b);
}
struct slice world_row(struct world *w, uint32_t partition, uint32_t row) {
    uint8_t rest[4];
    store_u32(rest, row);
    return world_key(w, partition, slice_of(rest, 4));
}
struct slice world_prefix(struct world *w, uint32_t partition) {
    struct buf b;
    buf_init(&b, 0);
    harness_prefix(&b, w->table, partition);
    return arena_take(&w->a, &b);
}
struct slice world_set(struct world *w, uint32_t number) {
    uint8_t v[4];
    store_u32(v, number);
    return arena_dup(&w->a, slice_of(v, 4));
}

void world_append(struct world *w, struct rados *s, struct slice prefix, struct slice key, uint32_t number) {
    struct write_change c = {.kind = WRITE_APPEND, .key = key, .value = world_set(w, number)};
    struct write_group g = {.prefix = prefix, .changes = &c, .n = 1};
    assert_int_equal(write_groups(s, &g, 1, &w->e), 0);
}

struct record world_read(struct world *w, struct rados *s, struct slice prefix, struct slice key) {
    struct read_result r;
    assert_int_equal(read_partition(s, prefix, &key, 1, &w->a, &r, &w->e), 0);
    w->removals = r.removals;
    return r.keys[0];
}

int world_write_if(struct world *w, struct rados *s, struct slice prefix, struct slice key, uint32_t number,
                   const char *expected, const char *ballot) {
    struct write_change c = {.kind = WRITE_APPEND, .key = key, .value = world_set(w, number)};
    struct slice e = slice_str(expected);
    struct write_group g = {.prefix = prefix, .changes = &c, .n = 1, .expected = &e, .ballot = slice_str(ballot)};
    if (write_groups(s, &g, 1, &w->e) < 0) return -1;
    return g.result;
}

void world_expect_rest(struct world *w, struct cursor *c, uint32_t from, uint32_t to) {
    const struct record *r;
    for (uint32_t row = from; row < to; row++) {
        assert_int_equal(cursor_next(c, &r, &w->e), 1);
        assert_true(slice_eq(r->key, world_row(w, 1, row)));
        assert_int_equal(r->n_operands, 1);
    }
    assert_int_equal(cursor_next(c, &r, &w->e), 0);
}

size_t world_count_rows(struct world *w, struct rados *s, uint32_t table) {
    struct cursor c;
    const struct record *r;
    uint8_t lower[4];
    struct buf before;
    size_t n = 0;
    int got;
    store_u32(lower, table);
    buf_init(&before, 0);
    cursor_init(&c, s, table, (struct slice){0}, slice_of(lower, 4), (struct slice){0});
    for (; (got = cursor_next(&c, &r, &w->e)) == 1; n++) {
        assert_true(slice_cmp(buf_slice(&before), r->key) < 0);
        buf_clear(&before, SIZE_MAX);
        buf_put_slice(&before, r->key);
    }
    assert_int_equal(got, 0);
    cursor_fini(&c);
    buf_fini(&before);
    return n;
}

void world_write_rows(struct world *w, struct rados *s, uint32_t from, uint32_t to) {
    for (uint32_t p = from; p < to; p++)
        assert_int_equal(harness_append(s, w->table, p, (uint32_t[]){1, 2}, 2, p, &w->e), 0);
}

/* ---- shards, tables ---- */

void world_freeze(struct world *w, const struct shard *sh) {
    struct omap_write f = {0};
    omap_write_compare(&f, shard_state_key, shard_state_value(SHARD_OPEN));
    omap_write_set(&f, shard_state_key, shard_state_value(SHARD_FROZEN));
    assert_int_equal(omap_write_run(&f, &w->s->pool, sh->name), 0);
    omap_write_fini(&f);
}

struct seen {
    uint32_t table;
    int n;
};
static int see(void *arg, uint32_t table, struct err *e) {
    struct seen *x = arg;
    (void)e;
    x->n += table == x->table;
    return 0;
}
int world_times_stored(struct world *w, uint32_t table) {
    struct seen x = {.table = table};
    assert_int_equal(table_each(w->s, see, &x, &w->e), 0);
    return x.n;
}

/* ---- wide partitions ---- */

struct pieces world_pieces(struct world *w, uint32_t partition, struct slice *value) {
    struct fetched f = {0};
    struct pieces p;
    struct buf own;
    struct slice prefix = world_prefix(w, partition);
    buf_init(&own, 0);
    omap_key_escape(&own, slice_of(prefix.p + ENGI_KEY_TOKEN, prefix.n - ENGI_KEY_TOKEN));
    buf_put_str(&own, OMAP_PARTITION_KEYS);
    const char *key = (const char *)arena_take(&w->a, &own).p;
    assert_int_equal(fetch(w->s, w->table, shard_position(prefix), &(struct fetch_part){key, key, 3}, 1, &w->a, &f), 0);
    struct slice found = fetch_partition_value(&f.pairs[0], OMAP_PIECES);
    if (value) *value = found;
    assert_int_equal(pieces_read(found.p ? found : slice_of("", 0), &w->a, &p), 0);
    fetched_fini(&f);
    return p;
}

struct shard *world_shard(struct rados *s, struct world *w, uint32_t partition) {
    struct shard *sh = shard_map_find(&s->shards, w->table, shard_position(world_prefix(w, partition)));
    assert_non_null(sh);
    return sh;
}

void world_make_wide(struct world *w, uint32_t partition) {
    while (!world_pieces(w, partition, NULL).n)
        assert_int_equal(move_relieve(w->s, world_shard(w->s, w, partition)), 0);
}
