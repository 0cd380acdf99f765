/* Opening, and the catalogue's records. */
#include <assert.h>
#include <stdlib.h>

#include "engine/store.h"

int engi_merge(void *arg, struct slice a, struct slice b, struct buf *out) {
    (void)arg;
    return eng_row_merge(a, b, out);
}

int engi_scan_keys(struct eng *eng, const struct kv_snapshot *at, struct slice from, struct slice to,
                   int (*fn)(void *arg, struct slice key, struct slice value, struct err *e), void *arg,
                   struct err *e) {
    struct kv_iter_spec spec = {.tier = ENG_TIER_ANY, .snapshot = at, .lower = from, .upper = to};
    struct kv_iter *it = eng->kv->ops->iter_new(eng->kv, &spec, e);
    if (!it) return -1;
    int got = it->ops->iter_move(it, KV_SEEK, from, e), rc = 0;
    while (got > 0 && rc == 0) {
        rc = fn(arg, it->key, it->value, e);
        if (rc == 0) got = it->ops->iter_move(it, KV_NEXT, from, e);
    }
    it->ops->iter_free(it);
    return rc || got < 0 ? -1 : 0;
}

static int load_mark(void *arg, struct slice key, struct slice value, struct err *e) {
    (void)value, (void)e;
    struct eng *eng = arg;
    if (engi_horizon_load(&eng->newest, key) || engi_horizon_load(&eng->write_clock.horizon, key)) return 0;
    struct engi_table *t = key.n == ENGI_MARK_RECORD ? engi_table(eng, load_u32(key.p + 4)) : NULL;
    uint16_t place = t ? load_u16(key.p + 8) : 0;
    if (!t || place >= ENGI_MARKS * ENGI_BUCKETS) return 0;
    if (place == engi_mark_place(ENGI_MARK_OLD_ROWS, 0)) {
        for (uint16_t i = 0; i < ENGI_BUCKETS; i++)
            engi_mark_put(t->marks.set, engi_mark_place(ENGI_MARK_ROWS, i), true);
        return 0;
    }
    engi_mark_put(t->marks.set, place, true);
    engi_mark_put(t->marks.recorded, place, true);
    return 0;
}

int engi_load_marks(struct eng *eng, struct err *e) {
    uint8_t from[4], to[4];
    store_u32(from, ENGI_TABLE_MARKS);
    store_u32(to, ENGI_TABLE_MARKS + 1);
    return engi_scan_keys(eng, NULL, slice_of(from, 4), slice_of(to, 4), load_mark, eng, e);
}

/* The counters that the row cache and the runs keep themselves. */
static uint64_t cache_stat(const struct eng *eng, enum eng_stat stat) {
    struct engi_row_cache_stats s = engi_row_cache_stats(eng->row_cache);
    struct engi_run_stats runs = engi_run_stats(eng->runs);
    switch (stat) {
    case ENG_STAT_ROW_CACHE_HITS: return s.hits;
    case ENG_STAT_ROW_CACHE_MISSES: return s.misses;
    case ENG_STAT_ROW_CACHE_ROWS: return s.rows;
    case ENG_STAT_ROW_CACHE_BYTES: return s.bytes;
    case ENG_STAT_RUN_HITS: return runs.hits;
    case ENG_STAT_RUN_MISSES: return runs.misses;
    case ENG_STAT_RUNS: return runs.runs;
    case ENG_STAT_RUN_BYTES: return runs.bytes;
    default: return 0;
    }
}

uint64_t eng_stat(const struct eng *eng, enum eng_stat stat) {
    uint64_t n = cache_stat(eng, stat) + atomic_load_explicit(&eng->stats[stat], memory_order_relaxed);
    for (int i = 0; i < ENGI_GATES && (stat == ENG_STAT_PUTS || stat == ENG_STAT_MERGES); i++)
        n += atomic_load_explicit(stat == ENG_STAT_PUTS ? &eng->gate.gates[i].puts : &eng->gate.gates[i].merges,
                                  memory_order_relaxed);
    if (stat == ENG_STAT_SLOT_WAITS) n += atomic_load_explicit(&eng->slots.waits, memory_order_relaxed);
    if (stat == ENG_STAT_TABLES) n += atomic_load_explicit(&eng->tables.n, memory_order_relaxed);
    if (stat == ENG_STAT_SLOT_WAITED) n += atomic_load_explicit(&eng->slots.waited_us, memory_order_relaxed);
    return n;
}

bool eng_one_writer(const struct eng *eng) { return eng->kv->one_writer; }

static void pass_notice(void *arg) {
    struct eng *eng = arg;
    pthread_mutex_lock(&eng->notice_lock);
    if (eng->notice) eng->notice(eng->notice_arg);
    pthread_mutex_unlock(&eng->notice_lock);
}

int eng_meta_watch(struct eng *eng, eng_notice_fn fn, void *arg, struct err *e) {
    uint8_t from[4], to[4];
    pthread_mutex_lock(&eng->notice_lock);
    bool watches = eng->watches;
    eng->notice = fn;
    eng->notice_arg = arg;
    eng->watches = watches || fn;
    pthread_mutex_unlock(&eng->notice_lock);
    if (watches || !fn) return 0;
    store_u32(from, ENGI_TABLE_META);
    store_u32(to, ENGI_TABLE_META + 1);
    return eng->kv->ops->watch(eng->kv, slice_of(from, 4), slice_of(to, 4), pass_notice, eng, e);
}

int eng_backup_make(struct eng *eng, const char *folder, uint32_t keep, struct eng_backup *out, struct err *e) {
    pthread_rwlock_rdlock(&eng->whole);
    int rc = engi_commit_check(eng, e) || eng->kv->ops->backup(eng->kv, folder, keep, out, e) ? -1 : 0;
    pthread_rwlock_unlock(&eng->whole);
    return rc;
}

/* A compaction removes data from any table, so all tables count as changed when it ends. */
int eng_compact(struct eng *eng, struct err *e) {
    int rc = eng->kv->ops->compact(eng->kv, e);
    struct engi_section section = engi_enter(&eng->epoch);
    for (uint32_t i = 0; i < ENGI_TABLE_PLACES; i++)
        for (struct engi_table *t = atomic_load(&eng->tables.places[i]); t; t = atomic_load(&t->next))
            engi_changed_all(t);
    engi_leave(&eng->epoch, section);
    return rc;
}

/* ---- changed buckets ---- */

void eng_on_expiry(struct eng *eng, eng_expiry_fn fn, void *arg) {
    pthread_mutex_lock(&eng->expiry_lock);
    eng->expiry = fn;
    eng->expiry_arg = arg;
    pthread_mutex_unlock(&eng->expiry_lock);
}

static void tell_expiry(struct eng *eng, struct slice key, size_t n, struct slice value, int64_t covered_ts) {
    struct err e = {0};
    struct arena a;
    arena_init(&a, 1024, 0);
    struct eng_expiry x = {.part = engi_prefix_part(slice_of(key.p, n))};
    eng_row_init(&x.row, key.p[n] == ENGI_STATIC ? ENG_STATIC : ENG_ROW, slice_of(key.p + n + 1, key.n - n - 1));
    if (!eng_row_decode(value, &a, &x.row, &e)) {
        if (covered_ts > x.row.del_ts) {
            x.row.del_ts = covered_ts;
            x.row.del_at = ENG_COVERED;
        }
        eng->expiry(eng->expiry_arg, &x);
    }
    arena_fini(&a);
}

void engi_tell_expiry(struct eng *eng, struct slice key, struct slice value, int64_t covered_ts) {
    size_t n = engi_prefix_len(key);
    if (!n || key.n <= n) return;
    pthread_mutex_lock(&eng->expiry_lock);
    if (eng->expiry) tell_expiry(eng, key, n, value, covered_ts);
    pthread_mutex_unlock(&eng->expiry_lock);
}

/* ---- opening ---- */

static struct kv *open_kv(const struct eng_options *o, const struct kv_options *kv, struct err *e) {
    if (o->copy_of) return o->copy_of->kv->ops->checkpoint(o->copy_of->kv, kv, e);
    if (o->beside) return kv_memory_share(o->beside->kv, kv, e);
    return o->data_dir ? kv_rocksdb_open(kv, e) : kv_memory_open(kv, e);
}

/* Opens the row cache and the runs. Without memory for one of them, the engine runs without it. */
static void open_row_cache(struct eng *eng, size_t bytes) {
    size_t runs = bytes / ENGI_RUNS_SHARE;
    eng->row_cache = bytes ? engi_row_cache_new(bytes - runs) : NULL;
    eng->runs = engi_runs_new(runs);
}

struct eng *eng_open(const struct eng_options *o, struct err *e) {
    struct eng *eng = calloc(1, sizeof(*eng));
    if (!eng) return err_nomem(e), NULL;
    if (engi_histories_init(&eng->histories, e)) {
        free(eng);
        return NULL;
    }
    eng->durability = o->durability;
    pthread_rwlock_init(&eng->whole, NULL);
    eng->clock = o->clock ? o->clock : &clock_real;
    engi_stripes_init(eng->stripes);
    engi_slots_init(&eng->slots);
    engi_epoch_init(&eng->epoch);
    engi_tables_init(&eng->tables);
    engi_gate_init(&eng->gate);
    engi_reclaim_init(&eng->reclaim, o->reclaim_rows_per_second);
    engi_horizon_init(&eng->newest, ENGI_HORIZON_NEWEST, ENGI_HORIZON_STEP);
    engi_settle_init(&eng->settle);
    pthread_mutex_init(&eng->expiry_lock, NULL);
    pthread_mutex_init(&eng->notice_lock, NULL);
    engi_write_clock_init(&eng->write_clock);
    struct kv_options kv = {.data_dir = o->data_dir,
                            .shared = o->shared,
                            .damage = o->cut_damage ? KV_DAMAGE_CUT : KV_DAMAGE_REFUSE,
                            .write_through = o->durability != ENG_FSYNC,
                            .block_cache_bytes = o->block_cache_bytes,
                            .memtable_bytes = o->memtable_bytes,
                            .memtables = ENG_MEMTABLES,
                            .background_jobs = o->background_jobs,
                            .arg = eng,
                            .merge = engi_merge,
                            .prefix_len = engi_prefix_len,
                            .near_len = ENGI_KEY_NEAR,
                            .filter = engi_purge};
    eng->shared = o->shared || o->beside;
    eng->kv_options = kv;
    eng->kv = open_kv(o, &kv, e);
    assert(!eng->kv || eng->kv->one_writer == !eng->shared);
    if (!eng->shared) open_row_cache(eng, o->row_cache_bytes);
    if (eng->kv && !engi_load_marks(eng, e) && !engi_commit_start(eng, e)) {
        engi_write_clock_start(&eng->write_clock, clock_wall_us(eng->clock));
        if (!engi_reclaim_start(eng, e)) return eng;
        engi_commit_stop(eng);
    }
    if (eng->kv) eng->kv->ops->close(eng->kv);
    engi_slots_fini(&eng->slots);
    engi_gate_fini(&eng->gate);
    engi_reclaim_fini(&eng->reclaim);
    engi_settle_fini(&eng->settle);
    engi_histories_fini(&eng->histories);
    pthread_mutex_destroy(&eng->expiry_lock);
    pthread_mutex_destroy(&eng->notice_lock);
    engi_row_cache_free(eng->row_cache);
    engi_runs_free(eng->runs);
    engi_tables_fini(eng);
    engi_epoch_fini(&eng->epoch);
    free(eng);
    return NULL;
}

void eng_close(struct eng *eng) {
    engi_reclaim_stop(eng);
    engi_commit_stop(eng);
    if (eng->retired) eng->retired->ops->close(eng->retired);
    pthread_rwlock_destroy(&eng->whole);
    eng->kv->ops->close(eng->kv);
    engi_slots_fini(&eng->slots);
    engi_gate_fini(&eng->gate);
    engi_reclaim_fini(&eng->reclaim);
    engi_settle_fini(&eng->settle);
    engi_histories_fini(&eng->histories);
    pthread_mutex_destroy(&eng->expiry_lock);
    pthread_mutex_destroy(&eng->notice_lock);
    engi_row_cache_free(eng->row_cache);
    engi_runs_free(eng->runs);
    engi_tables_fini(eng);
    engi_epoch_fini(&eng->epoch);
    engi_stripes_fini(eng->stripes);
    free(eng);
}

/* ---- named records ---- */

static int meta_add(struct eng *eng, struct kv_batch *b, const struct eng_meta_change *change, struct err *e) {
    const struct kv_ops *ops = eng->kv->ops;
    struct buf key;
    buf_init(&key, 0);
    engi_key_table(&key, ENGI_TABLE_META);
    buf_put_slice(&key, change->key);
    int rc = buf_failed(&key)  ? -1
             : change->deleted ? ops->batch_delete(b, buf_slice(&key))
                               : ops->batch_put(b, buf_slice(&key), change->value);
    buf_fini(&key);
    return rc ? err_nomem(e) : 0;
}

int eng_meta_write(struct eng *eng, uint32_t n, const struct eng_meta_change *changes, struct err *e) {
    const struct kv_ops *ops = eng->kv->ops;
    struct kv_batch *b = ops->batch_new(eng->kv);
    int rc = b ? engi_commit_check(eng, e) : err_nomem(e);
    for (uint32_t i = 0; i < n && !rc; i++) rc = meta_add(eng, b, &changes[i], e);
    if (!rc) rc = kv_write_patiently(eng->kv, b, e);
    if (b) ops->batch_free(b);
    return rc ? rc : engi_commit_wait(eng, engi_commit_next_seq(eng), e);
}

int eng_meta_put(struct eng *eng, struct slice key, struct slice value, struct err *e) {
    return eng_meta_write(eng, 1, &(struct eng_meta_change){.key = key, .value = value}, e);
}

int eng_meta_delete(struct eng *eng, struct slice key, struct err *e) {
    return eng_meta_write(eng, 1, &(struct eng_meta_change){.key = key, .deleted = true}, e);
}

struct meta_scan {
    struct slice prefix;
    eng_meta_fn fn;
    void *arg;
};

static int meta_item(void *arg, struct slice key, struct slice value, struct err *e) {
    struct meta_scan *s = arg;
    struct slice name = slice_of(key.p + 4, key.n - 4);
    if (name.n < s->prefix.n || !slice_eq(slice_of(name.p, s->prefix.n), s->prefix)) return 1;
    return s->fn(s->arg, name, value, e);
}

int eng_meta_scan(struct eng *eng, struct slice prefix, eng_meta_fn fn, void *arg, struct err *e) {
    struct meta_scan s = {.prefix = prefix, .fn = fn, .arg = arg};
    struct buf from;
    uint8_t to[4];
    buf_init(&from, 0);
    engi_key_table(&from, ENGI_TABLE_META);
    buf_put_slice(&from, prefix);
    store_u32(to, ENGI_TABLE_META + 1);
    err_clear(e);
    int rc = buf_failed(&from) ? err_nomem(e)
                               : engi_scan_keys(eng, NULL, buf_slice(&from), slice_of(to, 4), meta_item, &s, e);
    buf_fini(&from);
    return rc && !e->set ? 0 : rc; /* past the last name with the prefix is no error */
}
