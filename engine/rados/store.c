#include <stdio.h>
#include <stdlib.h>

#include "base/clock.h"
#include "base/log.h"
#include "base/random.h"
#include "engine/rados/batchlog.h"
#include "engine/rados/iter.h"
#include "engine/rados/jobs.h"
#include "engine/rados/move.h"
#include "engine/rados/named.h"
#include "engine/rados/read.h"
#include "engine/rados/reclaim.h"
#include "engine/rows/batch.h"
#include "engine/rows/partition.h"

enum {
    BALLOT_BYTES = 8,
    REPLAY_EVERY_US = BATCHLOG_EVERY_S * 1000000,
    REPLAY_AGE_US = BATCHLOG_AGE_S * 1000000, /* longer than the store that logged a batch takes to write it */
};

/* ---- the store's threads ---- */

static void run_job(struct rados *s, struct rados_job *job) {
    struct err e = {0};
    size_t n;
    int rc;
    switch (job->kind) {
    case RADOS_SPLIT:
        if ((rc = move_relieve(s, job->shard)) < 0)
            log_warn("the split of %s has failed and is tried again later: %s", job->shard->name, strerror(-rc));
        atomic_store(&job->shard->stays_whole, !atomic_load(&job->shard->split));
        atomic_store(&job->shard->will_split, false);
        break;
    case RADOS_FOLD:
        if (read_fold(s, slice_of(job->key, job->n), &e) < 0)
            log_warn("a row's operands were not folded: %s", e.text);
        break;
    case RADOS_FORGET: table_forget(s, job->table); break;
    case RADOS_REPLAY:
        if (batchlog_replay(s, job->died, REPLAY_AGE_US, &n, &e) < 0)
            log_warn("the log of batches was not applied: %s", e.text);
        else if (n && job->died) log_info("%zu batches were applied that a server has left that died", n);
        else if (n) log_info("%zu batches were applied that have stayed in the log", n);
        break;
    }
    jobs_done(s, job);
}


static void *work(void *arg) {
    struct rados *s = arg;
    for (struct rados_job *job; jobs_take(s, REPLAY_EVERY_US, &job);) {
        if (job) run_job(s, job);
        int64_t now_us = clock_machine_us(&clock_real), due_us = atomic_load(&s->replay_due_us);
        if (now_us >= due_us && atomic_compare_exchange_strong(&s->replay_due_us, &due_us, now_us + REPLAY_EVERY_US))
            jobs_add_replay(s, 0);
    }
    return NULL;
}

static void stop_threads(struct rados *s) {
    jobs_end(s);
    for (uint32_t i = 0; i < s->n_threads; i++) pthread_join(s->threads[i], NULL);
    jobs_fini(s);
}

/* ---- opening ---- */

struct rados *rados_open(const struct rados_options *o, struct err *e) {
    struct rados *s = calloc(1, sizeof(*s));
    if (!s) return err_null(err_nomem(e));
    s->o = *o;
    pthread_mutex_init(&s->drop_lock, NULL);
    pthread_mutex_init(&s->log_lock, NULL);
    if (!s->o.split_keys) s->o.split_keys = RADOS_SPLIT_KEYS;
    if (!s->o.split_bytes) s->o.split_bytes = RADOS_SPLIT_BYTES;
    if (!s->o.max_keys) s->o.max_keys = RADOS_MAX_KEYS;
    if (!s->o.max_bytes) s->o.max_bytes = RADOS_MAX_BYTES;
    if (shard_map_init(&s->shards) < 0) {
        err_nomem(e);
        goto free_store;
    }
    while (!s->o.incarnation)
        if (random_bytes(&s->o.incarnation, sizeof(s->o.incarnation), e) < 0) goto fini_shards;
    if (pool_open(&s->pool, &s->o.pool, e) < 0) goto fini_shards;
    if (batchlog_begin(s, 0, e) < 0) goto close_pool;
    jobs_init(s);
    atomic_store(&s->replay_due_us, clock_machine_us(&clock_real) + REPLAY_EVERY_US);
    for (; s->n_threads < RADOS_THREADS; s->n_threads++)
        if (pthread_create(&s->threads[s->n_threads], NULL, work, s)) break;
    if (s->n_threads == RADOS_THREADS) return s;
    stop_threads(s);
    err_set(e, ERR_SERVER, "cannot start a thread");
    batchlog_close(s);
close_pool:
    pool_close(&s->pool);
fini_shards:
    shard_map_fini(&s->shards);
free_store:
    pthread_mutex_destroy(&s->drop_lock);
    pthread_mutex_destroy(&s->log_lock);
    free(s);
    return NULL;
}

void rados_close(struct rados *s) {
    stop_threads(s);
    batchlog_close(s);
    pool_close(&s->pool);
    shard_map_fini(&s->shards);
    pthread_mutex_destroy(&s->drop_lock);
    pthread_mutex_destroy(&s->log_lock);
    free(s);
}

/* ---- reads ---- */

static int read_row(struct store *s, const struct store_view *view, enum eng_tier tier, struct store_read *r,
                    struct err *e) {
    struct read_result found;
    struct kv_iter *it = NULL;
    struct arena a;
    bool is_row = r->key.p[r->n_prefix] == ENGI_ROW;
    (void)view;
    if (tier == ENG_TIER_CACHE) return KV_INCOMPLETE;
    arena_init(&a, 1 << 12, 0);
    int rc = read_partition(rados_of(s), slice_of(r->key.p, r->n_prefix), &r->key, is_row, &a, &found, e);
    if (rc) goto fini;
    size_t n = found.head.n + found.ranges.n;
    struct record *records = arena_alloc(r->arena, (n + 1) * sizeof(*records));
    if (!records) {
        rc = err_nomem(e);
        goto fini;
    }
    if (found.head.n) memcpy(records, found.head.items, found.head.n * sizeof(*records));
    if (found.ranges.n) memcpy(records + found.head.n, found.ranges.items, found.ranges.n * sizeof(*records));
    if (found.keys[0].value.p) records[n++] = found.keys[0];
    if (!(it = iter_of_records(records, n, e))) {
        rc = -1;
        goto fini;
    }
    engi_read_begin(r);
    if (found.ballot.n == BALLOT_BYTES) r->ballot = load_u64(found.ballot.p);
    rc = engi_walk(it, ENG_TIER_ANY, r, e);
    it->ops->iter_free(it);
fini:
    arena_fini(&a);
    return rc;
}

/* A cursor in the cache tier: every move is incomplete. */
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
    if (rados_of(s)->watch) named_watch_stop(rados_of(s)->watch);
    rados_close(rados_of(s));
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
