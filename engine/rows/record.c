/* The stored records of a table, for moving it to another engine. */
#include "engine/rows/batch.h"
#include "engine/rows/key.h"

static bool is_of_rows(struct slice key) {
    size_t n = engi_prefix_len(key);
    if (!n || n >= key.n) return false;
    switch (key.p[n]) {
    case ENGI_PARTITION_DELETION: case ENGI_STATIC: case ENGI_RANGE_TOMBSTONE: case ENGI_ROW: return true;
    default: return false; /* a ballot, which is its store's own */
    }
}

static int each_in(struct store *s, struct store_view *view, const struct store_range *range, eng_record_fn fn,
                   void *arg, struct err *e) {
    struct kv_iter *it = s->ops->cursor_open(s, view, range, e);
    if (!it) return -1;
    int rc = 0, got = it->ops->iter_move(it, KV_SEEK, range->lower, e);
    while (got > 0 && !rc) {
        struct slice rest = slice_of(it->key.p + ENGI_KEY_TOKEN, it->key.n - ENGI_KEY_TOKEN);
        if (is_of_rows(it->key)) rc = fn(arg, rest, it->value, e);
        if (!rc) got = it->ops->iter_move(it, KV_NEXT, range->lower, e);
    }
    it->ops->iter_free(it);
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

int eng_batch_record(struct eng_batch *b, uint32_t table, struct slice key, struct slice value, struct err *e) {
    return engi_batch_replay(b, table, key, value, e);
}
