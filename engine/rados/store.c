#include <stdio.h>
#include <stdlib.h>

#include "engine/rados/batchlog.h"
#include "engine/rados/iter.h"
#include "engine/rados/jobs.h"
#include "engine/rados/named.h"
#include "engine/rados/read.h"
#include "engine/rados/reclaim.h"
#include "engine/rados/store.h"
#include "engine/rados/table.h"
#include "engine/rows/batch.h"
#include "engine/rows/walk.h"

enum { BALLOT_BYTES = 8 };

/* ---- reads ---- */

/* Walks over what one operation has read of the partition. */
static int walk_result(const struct read_result *found, struct store_read *r, struct err *e) {
    size_t n = found->head.n + found->ranges.n;
    struct record *records = arena_alloc(r->arena, (n + 1) * sizeof(*records));
    if (!records) return err_nomem(e);
    if (found->head.n) memcpy(records, found->head.items, found->head.n * sizeof(*records));
    if (found->ranges.n) memcpy(records + found->head.n, found->ranges.items, found->ranges.n * sizeof(*records));
    if (found->keys[0].value.p) records[n++] = found->keys[0];
    struct kv_iter *it = iter_of_records(records, n, e);
    if (!it) return -1;
    engi_read_begin(r);
    if (found->ballot.n == BALLOT_BYTES) r->ballot = load_u64(found->ballot.p);
    int rc = engi_walk(it, ENG_TIER_ANY, r, e);
    it->ops->iter_free(it);
    return rc;
}

static int read_row(struct store *s, const struct store_view *view, enum eng_tier tier, struct store_read *r,
                    struct err *e) {
    struct read_result found;
    struct arena a;
    bool is_row = r->key.p[r->n_prefix] == ENGI_ROW;
    (void)view;
    if (tier == ENG_TIER_CACHE) return KV_INCOMPLETE;
    arena_init(&a, 1 << 12, 0);
    int rc = read_partition(rados_of(s), slice_of(r->key.p, r->n_prefix), &r->key, is_row, &a, &found, e);
    if (!rc) rc = walk_result(&found, r, e);
    arena_fini(&a);
    return rc;
}

/* A cursor, which in the cache tier finds nothing out. */
static int incomplete_move(struct kv_iter *it, enum kv_move move, struct slice key, struct err *e) {
    (void)move, (void)key;
    return kv_iter_lend(it, KV_INCOMPLETE, e);
}
static void incomplete_free(struct kv_iter *it) { free(it); }
static const struct kv_iter_ops incomplete_ops = {.iter_move = incomplete_move, .iter_free = incomplete_free};

static struct kv_iter *cursor_open(struct store *s, struct store_view *view, const struct store_range *range,
                                   struct err *e) {
    uint32_t table = load_u32(range->lower.p);
    (void)view;
    if (range->tier == ENG_TIER_CACHE) {
        struct kv_iter *it = calloc(1, sizeof(*it));
        if (!it) return err_null(err_nomem(e));
        it->ops = &incomplete_ops;
        return it;
    }
    /* A range of one partition begins with its prefix. */
    struct slice prefix =
        range->part ? slice_of(range->lower.p, ENGI_KEY_PREFIX_MIN + range->part->key.n) : (struct slice){0};
    return iter_of_range(rados_of(s), table, prefix, range->lower, range->upper, range->reverse, range->wanted, e);
}

/* ---- batches ---- */

static struct eng_batch *batch_new(struct store *s) {
    (void)s;
    return malloc(sizeof(struct eng_batch));
}
static void batch_free(struct eng_batch *b) { free(b); }

static int commit(struct eng_batch *b, bool patience, struct err *e) {
    if (!b->n) return 0;
    return patience ? batchlog_write(rados_of(b->store), b, e) : ENG_BUSY;
}

/* ---- named records, tables ---- */

static int meta_write(struct store *s, uint32_t n, const struct eng_meta_change *changes, struct err *e) {
    return named_write(rados_of(s), n, changes, e);
}

static int meta_scan(struct store *s, struct slice prefix, eng_meta_fn fn, void *arg, struct err *e) {
    return named_scan(rados_of(s), prefix, fn, arg, e);
}

static int meta_watch(struct store *s, eng_notice_fn fn, void *arg, struct err *e) {
    struct rados *r = rados_of(s);
    r->watch = named_watch_start(r, fn, arg, e);
    return r->watch ? 0 : -1;
}

static int each_stored(struct store *s, eng_stored_fn fn, void *arg, struct err *e) {
    return table_each(rados_of(s), fn, arg, e);
}

static int drop(struct store *s, uint32_t table, struct err *e) { return table_drop(rados_of(s), table, e); }

static void forget(struct store *s, uint32_t table) { jobs_add_forget(rados_of(s), table); }

static int reclaim(struct store *s, const struct store_reclaim *r, struct err *e) {
    return r->whole ? reclaim_table(rados_of(s), r, e) : 0;
}

static void close_store(struct store *s) {
    struct rados *r = rados_of(s);
    if (r->watch) named_watch_stop(r->watch);
    rados_close(r);
}

/* ---- what operators see ---- */

static void figures(const struct store *s, struct eng_store_figures *out) {
    struct rados *r = rados_of(s);
    *out = (struct eng_store_figures){0};
    pool_figures(r->pool.counts, out);
    out->n[ENG_STORE_GROUPS] = atomic_load(&r->n_groups);
    out->n[ENG_STORE_SPLITS] = atomic_load(&r->n_splits);
    out->n[ENG_STORE_MOVES] = atomic_load(&r->n_moves);
    out->n[ENG_STORE_FOLDS] = atomic_load(&r->n_folds);
    shard_map_sum(&r->shards, &out->n[ENG_STORE_SHARDS], &out->n[ENG_STORE_SHARD_KEYS],
                  &out->n[ENG_STORE_SHARD_BYTES]);
}

static bool ailing(struct store *s, char *why, size_t size) {
    enum { SILENT_US = 3000000 };
    int64_t silent_us = pool_silent_us(rados_of(s)->pool.counts);
    if (silent_us <= SILENT_US) return false;
    snprintf(why, size, "the Ceph cluster has answered nothing for %lld seconds", (long long)silent_us / 1000000);
    return true;
}

static void peer_died(struct store *s, uint32_t incarnation) { jobs_add_replay(rados_of(s), incarnation); }

static const struct store_ops rados_ops = {
    .offers = STORE_REMOTE,
    .read = read_row,
    .cursor_open = cursor_open,
    .batch_new = batch_new,
    .batch_free = batch_free,
    .commit = commit,
    .meta_write = meta_write,
    .meta_scan = meta_scan,
    .each_stored = each_stored,
    .drop = drop,
    .close = close_store,
    .forget = forget,
    .reclaim = reclaim,
    .meta_watch = meta_watch,
    .ailing = ailing,
    .peer_died = peer_died,
    .figures = figures,
};

int rados_store_init(struct store *s, const struct rados_options *o, struct err *e) {
    struct rados_options with_rows = *o;
    with_rows.merge = eng_row_merge;
    struct rados *rados = rados_open(&with_rows, e);
    if (!rados) return -1;
    s->ops = &rados_ops;
    s->own = rados;
    return 0;
}
