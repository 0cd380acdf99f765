/* The stored records of a table, for moving it to another engine. */
#include "engine/rows/batch.h"
#include "engine/rows/key.h"
#include "engine/rows/tombstone.h"

static bool is_of_rows(struct slice key) {
    size_t n = engi_prefix_len(key);
    if (!n || n >= key.n) return false;
    switch (key.p[n]) {
    case ENGI_PARTITION_DELETION: case ENGI_STATIC: case ENGI_RANGE_TOMBSTONE: case ENGI_ROW: return true;
    default: return false; /* a ballot, which is its store's own */
    }
}

/* A scratch for the form in which range deletions are moved. */
struct loose {
    struct buf key, value;
};

/* Gives a range deletion the loose form, which every store reads: only the local one has fragments. */
static int make_loose(struct loose *l, struct slice key, struct slice value, struct eng_record *r, struct err *e) {
    struct slice prefix = slice_of(key.p, engi_prefix_len(key));
    struct engi_tomb tomb;
    if (engi_tomb_read(slice_of(key.p + prefix.n + 1, key.n - prefix.n - 1), value, &tomb, e)) return -1;
    buf_clear(&l->key, SIZE_MAX);
    buf_clear(&l->value, SIZE_MAX);
    engi_key_loose(&l->key, prefix, &tomb.range, tomb.ts);
    engi_tomb_value(&l->value, &tomb, false);
    if (buf_failed(&l->key) || buf_failed(&l->value)) return err_nomem(e);
    r->key = slice_of(l->key.p + ENGI_KEY_TOKEN, l->key.n - ENGI_KEY_TOKEN);
    r->value = buf_slice(&l->value);
    return 0;
}

static int give(const struct kv_iter *it, struct loose *l, eng_record_fn fn, void *arg, struct err *e) {
    if (!is_of_rows(it->key)) return 0;
    struct slice rest = slice_of(it->key.p + ENGI_KEY_TOKEN, it->key.n - ENGI_KEY_TOKEN);
    struct eng_record r = {.at = rest, .key = rest, .value = it->value};
    bool is_range = it->key.p[engi_prefix_len(it->key)] == ENGI_RANGE_TOMBSTONE;
    return is_range && make_loose(l, it->key, it->value, &r, e) ? -1 : fn(arg, &r, e);
}

static int each_in(struct store *s, struct store_view *view, const struct store_range *range, eng_record_fn fn,
                   void *arg, struct err *e) {
    struct loose l;
    struct kv_iter *it = s->ops->cursor_open(s, view, range, e);
    if (!it) return -1;
    buf_init(&l.key, 0);
    buf_init(&l.value, 0);
    int rc = 0, got = it->ops->iter_move(it, KV_SEEK, range->lower, e);
    while (got > 0 && !(rc = give(it, &l, fn, arg, e))) got = it->ops->iter_move(it, KV_NEXT, range->lower, e);
    it->ops->iter_free(it);
    buf_fini(&l.key);
    buf_fini(&l.value);
    return rc || got < 0 ? -1 : 0;
}

int eng_each_record(struct eng *eng, uint32_t table, struct slice from, eng_record_fn fn, void *arg, struct err *e) {
    struct store *s = store_of(eng);
    struct store_view view;
    struct buf lower, upper;
    buf_init(&lower, 0);
    buf_init(&upper, 0);
    engi_key_table(&lower, table);
    buf_put_slice(&lower, from);
    engi_key_table(&upper, table + 1);
    struct store_range range = {.tier = ENG_TIER_ANY, .lower = buf_slice(&lower), .upper = buf_slice(&upper)};
    int rc = buf_failed(&lower) || buf_failed(&upper) ? err_nomem(e) : 0;
    if (!rc) {
        s->front->begin(s, table, &view);
        if (!view.gone) rc = each_in(s, &view, &range, fn, arg, e);
        s->front->end(s, &view);
    }
    buf_fini(&lower);
    buf_fini(&upper);
    return rc;
}

int eng_batch_record(struct eng_batch *b, uint32_t table, const struct eng_record *r, struct err *e) {
    return engi_batch_replay(b, table, r->key, r->value, e);
}
