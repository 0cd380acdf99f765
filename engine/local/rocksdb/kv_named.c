#include "engine/local/rocksdb/kv_named.h"

#include "engine/rows/key.h"

/* ---- named records: keys under table 0 ---- */

int engi_named_write(struct kv *kv, uint32_t n, const struct eng_meta_change *changes, struct err *e) {
    struct kv_batch *b = kv_batch_new(kv);
    struct buf key;
    int rc = b ? 0 : err_nomem(e);
    buf_init(&key, 0);
    for (uint32_t i = 0; i < n && !rc; i++) {
        const struct eng_meta_change *change = &changes[i];
        key.n = 0;
        engi_key_table(&key, ENGI_TABLE_META);
        buf_put_slice(&key, change->key);
        if (buf_failed(&key)) rc = err_nomem(e);
        if (!rc && change->conditional) rc = kv_batch_expect(b, buf_slice(&key), change->expected) ? err_nomem(e) : 0;
        if (!rc && change->deleted) kv_batch_delete(b, buf_slice(&key));
        else if (!rc) kv_batch_put(b, buf_slice(&key), change->value);
    }
    if (!rc) rc = kv_write_patiently(kv, b, e);
    if (b) kv_batch_free(b);
    buf_fini(&key);
    return rc;
}

struct named_scan {
    struct slice prefix;
    eng_meta_fn fn;
    void *arg;
};

static int take_record(void *arg, struct slice key, struct slice value, struct err *e) {
    struct named_scan *s = arg;
    struct slice name = slice_of(key.p + ENGI_KEY_TOKEN, key.n - ENGI_KEY_TOKEN);
    if (name.n < s->prefix.n || !slice_eq(slice_of(name.p, s->prefix.n), s->prefix)) return 1;
    return s->fn(s->arg, name, value, e);
}

int engi_named_scan(struct kv *kv, struct slice prefix, eng_meta_fn fn, void *arg, struct err *e) {
    struct named_scan s = {.prefix = prefix, .fn = fn, .arg = arg};
    struct buf from;
    uint8_t to[4];
    buf_init(&from, 0);
    engi_key_table(&from, ENGI_TABLE_META);
    buf_put_slice(&from, prefix);
    store_u32(to, ENGI_TABLE_META + 1);
    err_clear(e);
    int rc = buf_failed(&from) ? err_nomem(e)
                               : kv_scan(kv, NULL, buf_slice(&from), slice_of(to, 4), take_record, &s, e);
    buf_fini(&from);
    return rc && !e->set ? 0 : rc; /* past the last name with the prefix is no error */
}

/* ---- tables ---- */

/* The ids after lead, in ascending order; 0 is no table's
 * (engine/local/marks.h). */
static int each_of(struct kv *kv, uint32_t lead, eng_stored_fn fn, void *arg, struct err *e) {
    uint8_t seek[8], to[4];
    size_t n = lead ? 8 : 4;
    store_u32(seek, lead);
    store_u32(seek + n - 4, lead ? 0 : ENGI_TABLE_FIRST);
    store_u32(to, lead + 1);
    struct kv_iter_spec spec = {.tier = ENG_TIER_ANY};
    if (lead) spec.upper = slice_of(to, sizeof(to));
    struct kv_iter *it = kv_iter_new(kv, &spec, e);
    if (!it) return -1;
    int got = 0, rc = 0;
    while (!rc && (got = it->ops->iter_move(it, KV_SEEK, slice_of(seek, n), e)) > 0) {
        uint32_t id = it->key.n >= n ? load_u32(it->key.p + n - 4) : 0;
        if (id) rc = fn(arg, id, e);
        if (id == UINT32_MAX) break;
        store_u32(seek + n - 4, id + 1);
    }
    it->ops->iter_free(it);
    return rc || got < 0 ? -1 : 0;
}

int engi_each_stored(struct kv *kv, eng_stored_fn fn, void *arg, struct err *e) {
    bool failed = each_of(kv, ENGI_TABLE_MARKS, fn, arg, e) || each_of(kv, ENGI_TABLE_HISTORY, fn, arg, e) ||
                  each_of(kv, 0, fn, arg, e);
    return failed ? -1 : 0;
}

int engi_drop_rows(struct kv *kv, uint32_t table, struct err *e) {
    struct engi_keys rows;
    engi_keys_of(&rows, 0, table);
    return kv_drop_range(kv, rows.from, rows.to, e);
}
