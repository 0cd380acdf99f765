/* The stored records of a table, for moving it to another engine and for the verification of a
 * store. */
#include "engine/rows/batch.h"
#include "engine/rows/key.h"
#include "engine/rows/tombstone.h"

int engi_check_record(struct slice key, struct slice value, struct arena *a, struct err *e) {
    size_t n = engi_prefix_len(key);
    struct eng_row row;
    struct engi_tomb tomb;
    int64_t ts, at;
    if (!n || n >= key.n) return err_set(e, ERR_SERVER, "its key is none of a partition");
    switch (key.p[n]) {
    case ENGI_PARTITION_DELETION: return engi_tomb_deletion(value, &ts, &at, e);
    case ENGI_RANGE_TOMBSTONE: return engi_tomb_read(engi_rest(key, n), value, &tomb, e);
    case ENGI_STATIC: case ENGI_ROW:
        eng_row_init(&row, key.p[n] == ENGI_ROW ? ENG_ROW : ENG_STATIC, engi_rest(key, n));
        return eng_row_decode(value, a, &row, e);
    case ENGI_PAST: return 0;
    default: return err_set(e, ERR_SERVER, "its key has an unknown kind");
    }
}

/* Passes the record at which the iterator is to fn, unless it is a ballot, which belongs to its
 * store. A range deletion gets the loose form, which every store reads: only the local one has
 * fragments. loose: scratch. */
static int give(const struct kv_iter *it, struct buf loose[2], eng_record_fn fn, void *arg, struct err *e) {
    struct slice key = it->key, rest = slice_of(key.p + ENGI_KEY_TOKEN, key.n - ENGI_KEY_TOKEN);
    struct eng_record r = {.at = rest, .key = rest, .value = it->value};
    struct engi_tomb tomb;
    size_t n = engi_prefix_len(key);
    if (!n || n >= key.n || key.p[n] < ENGI_PARTITION_DELETION || key.p[n] > ENGI_ROW) return 0;
    if (key.p[n] == ENGI_RANGE_TOMBSTONE) {
        if (engi_tomb_read(engi_rest(key, n), it->value, &tomb, e)) return -1;
        loose[0].n = loose[1].n = 0;
        engi_key_loose(&loose[0], slice_of(key.p, n), &tomb.range, tomb.ts);
        engi_tomb_value(&loose[1], &tomb, false);
        if (buf_failed(&loose[0]) || buf_failed(&loose[1])) return err_nomem(e);
        r.key = slice_of(loose[0].p + ENGI_KEY_TOKEN, loose[0].n - ENGI_KEY_TOKEN);
        r.value = buf_slice(&loose[1]);
    }
    return fn(arg, &r, e);
}

int eng_each_record(struct eng *eng, uint32_t table, struct slice from, eng_record_fn fn, void *arg, struct err *e) {
    struct store *s = store_of(eng);
    struct store_view view;
    struct buf lower, upper, loose[2];
    struct kv_iter *it = NULL;
    for (int i = 0; i < 2; i++) buf_init(&loose[i], 0);
    buf_init(&lower, 0);
    buf_init(&upper, 0);
    engi_key_table(&lower, table);
    buf_put_slice(&lower, from);
    engi_key_table(&upper, table + 1);
    struct store_range range = {.tier = ENG_TIER_ANY, .lower = buf_slice(&lower), .upper = buf_slice(&upper)};
    int rc = buf_failed(&lower) || buf_failed(&upper) ? err_nomem(e) : 0;
    if (!rc) {
        s->front->begin(s, table, &view);
        if (!view.gone && !(it = s->ops->cursor_open(s, &view, &range, e))) rc = -1;
        int got = it ? it->ops->iter_move(it, KV_SEEK, range.lower, e) : 0;
        while (got > 0 && !(rc = give(it, loose, fn, arg, e))) got = it->ops->iter_move(it, KV_NEXT, range.lower, e);
        if (it) it->ops->iter_free(it);
        if (got < 0) rc = -1;
        s->front->end(s, &view);
    }
    for (int i = 0; i < 2; i++) buf_fini(&loose[i]);
    buf_fini(&lower);
    buf_fini(&upper);
    return rc ? -1 : 0;
}

int eng_batch_record(struct eng_batch *b, uint32_t table, const struct eng_record *r, struct err *e) {
    return engi_batch_replay(b, table, r->key, r->value, e);
}
