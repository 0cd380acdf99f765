/* Opening, closing, and what concerns the engine as a whole. */
#include <stdlib.h>

#include "engine/local/cache.h"
#include "engine/local/eng.h"

#include "engine/local/commit.h"
#include "engine/local/history.h"
#include "engine/local/reclaim.h"
#include "engine/local/stripe.h"
#include "engine/local/table.h"
#include "engine/memory/several.h"
#include "engine/rados/store.h"
#include "engine/rows/key.h"

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
    return kv_scan(eng->kv, NULL, slice_of(from, 4), slice_of(to, 4), load_mark, eng, e);
}

/* The counters that the cache keeps itself. */
static uint64_t cache_stat(const struct eng *eng, enum eng_stat stat) {
    struct engi_cache_stats rows = engi_cache_stats(eng->cache, ENGI_CACHED_ROW);
    struct engi_cache_stats ranges = engi_cache_stats(eng->cache, ENGI_CACHED_RANGE);
    switch (stat) {
    case ENG_STAT_ROW_CACHE_HITS: return rows.hits;
    case ENG_STAT_ROW_CACHE_MISSES: return rows.misses;
    case ENG_STAT_ROW_CACHE_ROWS: return rows.kept;
    case ENG_STAT_ROW_CACHE_BYTES: return rows.bytes;
    case ENG_STAT_RANGE_HITS: return ranges.hits;
    case ENG_STAT_RANGE_MISSES: return ranges.misses;
    case ENG_STAT_RANGES: return ranges.kept;
    case ENG_STAT_RANGE_BYTES: return ranges.bytes;
    default: return 0;
    }
}

uint64_t eng_stat(const struct eng *eng, enum eng_stat stat) {
    uint64_t n = cache_stat(eng, stat) + atomic_load_explicit(&eng->stats[stat], memory_order_relaxed);
    for (int i = 0; i < ENGI_COMMIT_LOCKS && (stat == ENG_STAT_PUTS || stat == ENG_STAT_MERGES); i++)
        n += atomic_load_explicit(stat == ENG_STAT_PUTS ? &eng->commit_locks.of[i].puts
                                                        : &eng->commit_locks.of[i].merges,
                                  memory_order_relaxed);
    if (stat == ENG_STAT_GUARD_WAITS) n += atomic_load_explicit(&eng->guards.waits, memory_order_relaxed);
    if (stat == ENG_STAT_TABLES) n += atomic_load_explicit(&eng->tables.n, memory_order_relaxed);
    if (stat == ENG_STAT_GUARD_WAITED) n += atomic_load_explicit(&eng->guards.waited_us, memory_order_relaxed);
    return n;
}

bool eng_store_figures(const struct eng *eng, struct eng_store_figures *out) {
    if (!eng->store.ops->figures) return false;
    eng->store.ops->figures(&eng->store, out);
    return true;
}

int64_t eng_write_us(struct eng *eng, int64_t now_us) { return engi_write_clock_us(&eng->write_clock, now_us); }

int64_t eng_write_ticks(struct eng *eng, int64_t now_us, uint32_t n) {
    return engi_write_clock_ticks(&eng->write_clock, now_us, n);
}

bool eng_one_writer(const struct eng *eng) { return eng->store.ops->offers & STORE_ONE_WRITER; }
bool eng_is_remote(const struct eng *eng) { return eng->store.ops->offers & STORE_REMOTE; }

int eng_backup_make(struct eng *eng, const char *folder, uint32_t keep, struct eng_backup *out, struct err *e) {
    if (!eng->store.ops->backup) return err_invalid(e, "Backups of a Ceph cluster are made with Ceph's own means");
    return eng->store.ops->backup(&eng->store, folder, keep, out, e);
}

int eng_compact(struct eng *eng, struct err *e) {
    return eng->store.ops->compact ? eng->store.ops->compact(&eng->store, e) : 0;
}

/* ---- opening ---- */

static int open_rados(struct eng *eng, const struct eng_rados *o, struct err *e) {
    struct rados_options options = {.pool = {.conf = o->conf, .pool = o->pool}, .split_keys = o->split_keys};
    return rados_store_init(&eng->store, &options, e);
}

static int open_local(struct eng *eng, const struct eng_options *o, struct err *e) {
    struct kv_options kv = {.data_dir = o->data_dir,
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
    eng->kv_options = kv;
    eng->kv = kv_rocksdb_open(&kv, e);
    eng->store.ops = &engi_local_store;
    if (!eng->kv) return -1;
    eng->cache = engi_cache_new(o->row_cache_bytes); /* without memory for it, the engine works without it */
    return engi_load_marks(eng, e);
}

static int open_store(struct eng *eng, const struct eng_options *o, struct err *e) {
    if (o->rados) return open_rados(eng, o->rados, e);
    if (o->beside) return several_share(&eng->store, &o->beside->store, o->faults, e);
    if (o->shared) return several_open(&eng->store, o->faults, e);
    return open_local(eng, o, e);
}

struct eng *eng_open(const struct eng_options *o, struct err *e) {
    struct eng *eng = calloc(1, sizeof(*eng));
    if (!eng) return err_nomem(e), NULL;
    if (engi_histories_init(&eng->histories, e)) {
        free(eng);
        return NULL;
    }
    eng->store.front = &engi_front;
    eng->durability = o->durability;
    pthread_rwlock_init(&eng->whole, NULL);
    eng->clock = o->clock ? o->clock : &clock_real;
    engi_stripes_init(eng->stripes);
    engi_guards_init(&eng->guards);
    engi_epoch_init(&eng->epoch);
    engi_tables_init(&eng->tables);
    engi_commit_locks_init(&eng->commit_locks);
    engi_reclaim_init(&eng->reclaim, o->reclaim_rows_per_second);
    engi_horizon_init(&eng->newest, ENGI_HORIZON_NEWEST, ENGI_HORIZON_STEP);
    pthread_mutex_init(&eng->expiry_lock, NULL);
    pthread_mutex_init(&eng->named_lock, NULL);
    pthread_mutex_init(&eng->notice_lock, NULL);
    engi_write_clock_init(&eng->write_clock);
    int rc = open_store(eng, o, e) || engi_commit_start(eng, e);
    if (!rc) engi_write_clock_start(&eng->write_clock, clock_wall_us(eng->clock));
    if (!rc && !engi_reclaim_start(eng, e)) return eng;
    eng_close(eng);
    return NULL;
}

void eng_close(struct eng *eng) {
    engi_reclaim_stop(eng);
    if (eng->commit.running) engi_commit_stop(eng);
    if (eng->store.ops) eng->store.ops->close(&eng->store);
    eng->store.ops = NULL;
    pthread_rwlock_destroy(&eng->whole);
    engi_guards_fini(&eng->guards);
    engi_commit_locks_fini(&eng->commit_locks);
    engi_reclaim_fini(&eng->reclaim);
    engi_histories_fini(&eng->histories);
    pthread_mutex_destroy(&eng->expiry_lock);
    pthread_mutex_destroy(&eng->named_lock);
    pthread_mutex_destroy(&eng->notice_lock);
    engi_cache_free(eng->cache);
    engi_tables_fini(eng);
    engi_epoch_fini(&eng->epoch);
    engi_stripes_fini(eng->stripes);
    free(eng);
}
