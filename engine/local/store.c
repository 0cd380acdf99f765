/* The local store: how it is opened and closed, and its table of functions for the front
 * (engine/store.h). */
#include <assert.h>
#include <stdio.h>
#include <stdlib.h>

#include "engine/front/lock_order.h"
#include "engine/local/cache.h"
#include "engine/local/history.h"
#include "engine/local/local.h"
#include "engine/local/rocksdb/kv_named.h"
#include "engine/rows/key.h"

/* ---- tables ---- */

static void table_init(void *table) {
    struct local_table *t = table;
    atomic_init(&t->as_of, INT64_MAX);
    engi_changed_all(t);
}

void engi_table_change_begin(struct local_table *t) {
    if (t) atomic_fetch_add(&t->generation, ((uint64_t)1 << 32) + 1);
}

void engi_table_change_end(struct local_table *t) {
    if (!t) return;
    uint64_t before = atomic_fetch_add(&t->generation, ((uint64_t)1 << 32) - 1);
    assert(engi_table_is_changing(before));
}

/* Nothing that this engine has written or read says anything of the table any more: every bucket
 * may hold deletions, every row may have more columns. */
void engi_table_forget(struct local_table *t) {
    for (int i = 0; i < ENGI_MARK_WORDS; i++) {
        atomic_store(&t->marks.set[i], UINT64_MAX);
        atomic_store(&t->marks.touched[i], UINT64_MAX);
    }
    atomic_store(&t->columns, UINT32_MAX);
}

void engi_changed_all(struct local_table *t) {
    for (uint32_t i = 0; i < ENGI_BUCKETS / 64; i++) atomic_store(&t->changed[i], ~(uint64_t)0);
}

/* ---- changed buckets: in a store with several writers, all ---- */

bool eng_changed_take(struct eng *eng, uint32_t table, uint16_t bucket) {
    struct local *own = local_if(eng);
    if (!own) return true;
    struct engi_section section = engi_enter(&eng->epoch);
    struct local_table *t = local_table(own, table);
    uint64_t bit = 1ull << (bucket % 64);
    bool changed = !t || atomic_fetch_and(&t->changed[bucket / 64], ~bit) & bit;
    engi_leave(&eng->epoch, section);
    return changed;
}

void eng_changed_put(struct eng *eng, uint32_t table, uint16_t bucket) {
    struct local *own = local_if(eng);
    if (!own) return;
    struct engi_section section = engi_enter(&eng->epoch);
    engi_changed(local_table(own, table), bucket);
    engi_leave(&eng->epoch, section);
}

/* ---- named records ---- */

static int meta_write(struct store *s, uint32_t n, const struct eng_meta_change *changes, struct err *e) {
    struct local *own = local_of(s);
    engi_mutex_lock(&own->named_lock, ENGI_RANK_NAMED);
    int rc = engi_named_write(own->kv, n, changes, e);
    engi_mutex_unlock(&own->named_lock, ENGI_RANK_NAMED);
    return rc;
}

static int meta_scan(struct store *s, struct slice prefix, eng_meta_fn fn, void *arg, struct err *e) {
    return engi_named_scan(local_of(s)->kv, prefix, fn, arg, e);
}

static int each_stored(struct store *s, eng_stored_fn fn, void *arg, struct err *e) {
    return engi_each_stored(local_of(s)->kv, fn, arg, e);
}

/* The marks go after the rows that need them. */
static int drop(struct store *s, uint32_t id, struct err *e) {
    struct local *own = local_of(s);
    struct engi_section section = engi_enter(&own->eng->epoch);
    struct local_table *t = local_table(own, id);
    struct engi_keys marks;
    engi_keys_of(&marks, ENGI_TABLE_MARKS, id);
    engi_table_change_begin(t);
    int rc = engi_drop_rows(own->kv, id, e);
    engi_table_change_end(t);
    if (!rc) rc = kv_drop_range(own->kv, marks.from, marks.to, e);
    for (int i = 0; t && !rc && i < ENGI_MARK_WORDS; i++) {
        atomic_store(&t->marks.recorded[i], 0);
        atomic_store(&t->marks.set[i], 0);
    }
    if (t && !rc) engi_changed_all(t);
    engi_leave(&own->eng->epoch, section);
    return rc;
}

/* ---- the log ---- */

static int sync_log(struct store *s, bool to_disk, struct err *e) { return kv_sync(local_of(s)->kv, to_disk, e); }
static int heal(struct store *s, struct err *e) { return kv_heal(local_of(s)->kv, e); }
static void synced(struct store *s) { kv_synced(local_of(s)->kv); }
static void settle(struct store *s) { kv_settle(local_of(s)->kv); }

static const struct store_log_ops local_log = {.sync = sync_log, .heal = heal, .synced = synced, .settle = settle};

/* ---- further members of store_ops ---- */

/* The folder of rows may be replaced by that of a saved state meanwhile, which the lock
 * excludes. */
static void hold_store(struct local *own) {
    engi_order_will_wait(ENGI_RANK_STORE, 0);
    pthread_rwlock_rdlock(&own->whole);
    engi_order_holds(ENGI_RANK_STORE, 0);
}

static void leave_store(struct local *own) {
    pthread_rwlock_unlock(&own->whole);
    engi_order_leaves(ENGI_RANK_STORE);
}

static bool ailing(struct store *s, char *why, size_t size) {
    enum { STALLED_US = 10000000 };
    struct local *own = local_of(s);
    int64_t since = atomic_load(&own->waiting_since_us);
    snprintf(why, size, "writes have been waiting for flushes and compactions for more than ten seconds");
    if (since && clock_machine_us(&clock_real) - since > STALLED_US) return true;
    hold_store(own);
    bool ails = kv_ailing(own->kv, why, size);
    leave_store(own);
    return ails;
}

static uint64_t stat(const struct store *s, enum eng_stat which) {
    const struct local *own = local_of(s);
    struct engi_cache_stats rows = engi_cache_stats(own->cache, ENGI_CACHED_ROW);
    struct engi_cache_stats ranges = engi_cache_stats(own->cache, ENGI_CACHED_RANGE);
    uint64_t puts = 0, merges = 0;
    for (int i = 0; i < ENGI_COMMIT_LOCKS; i++) {
        puts += atomic_load_explicit(&own->commit_locks.of[i].puts, memory_order_relaxed);
        merges += atomic_load_explicit(&own->commit_locks.of[i].merges, memory_order_relaxed);
    }
    switch (which) {
    case ENG_STAT_PUTS: return puts;
    case ENG_STAT_MERGES: return merges;
    case ENG_STAT_GUARD_WAITS: return atomic_load_explicit(&own->guards.waits, memory_order_relaxed);
    case ENG_STAT_GUARD_WAITED: return atomic_load_explicit(&own->guards.waited_us, memory_order_relaxed);
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

static int backup(struct store *s, const char *folder, uint32_t keep, struct eng_backup *out, struct err *e) {
    struct local *own = local_of(s);
    hold_store(own);
    int rc = engi_commit_check(own->eng, e) || kv_backup(own->kv, folder, keep, out, e) ? -1 : 0;
    leave_store(own);
    return rc;
}

static int compact(struct store *s, struct err *e) { return kv_compact(local_of(s)->kv, e); }

static void close_store(struct store *s) {
    struct local *own = local_of(s);
    if (own->retired) kv_close(own->retired);
    if (own->kv) kv_close(own->kv);
    pthread_rwlock_destroy(&own->whole);
    pthread_mutex_destroy(&own->named_lock);
    engi_guards_fini(&own->guards);
    for (int i = 0; i < ENGI_COMMIT_LOCKS; i++) pthread_rwlock_destroy(&own->commit_locks.of[i].lock);
    engi_histories_fini(&own->histories);
    engi_horizon_fini(&own->newest);
    engi_horizon_fini(&own->assigned);
    engi_cache_free(own->cache);
    free(own);
}

const struct store_ops local_store_ops = {
    .offers = STORE_ONE_WRITER,
    .read = engi_read_row,
    .cursor_open = engi_read_cursor,
    .may_be_deleted = engi_read_may_be_deleted,
    .hint = engi_read_hint,
    .batch_new = engi_write_batch_new,
    .batch_free = engi_write_batch_free,
    .batch_add = engi_write_batch_add,
    .batch_done = engi_write_batch_done,
    .commit = engi_write_commit,
    .meta_write = meta_write,
    .meta_scan = meta_scan,
    .each_stored = each_stored,
    .drop = drop,
    .close = close_store,
    .table_bytes = sizeof(struct local_table),
    .table_init = table_init,
    .reclaim = local_reclaim,
    .reclaimed = local_reclaimed,
    .log = &local_log,
    .ailing = ailing,
    .stat = stat,
    .backup = backup,
    .compact = compact,
};

/* ---- opening and closing ---- */

static int load_mark(void *arg, struct slice key, struct slice value, struct err *e) {
    (void)value, (void)e;
    struct local *own = arg;
    if (engi_horizon_load(&own->newest, key) || engi_horizon_load(&own->assigned, key)) return 0;
    struct local_table *t = key.n == ENGI_MARK_RECORD ? local_table(own, load_u32(key.p + 4)) : NULL;
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

int engi_load_marks(struct local *own, struct err *e) {
    struct engi_keys all;
    engi_keys_of(&all, 0, ENGI_TABLE_MARKS);
    return kv_scan(own->kv, NULL, all.from, all.to, load_mark, own, e);
}

int local_open(struct eng *eng, const struct eng_options *o, struct err *e) {
    struct local *own = calloc(1, sizeof(*own));
    if (!own) return err_nomem(e);
    if (engi_histories_init(&own->histories, e)) {
        free(own);
        return -1;
    }
    own->eng = eng;
    eng->store.own = own;
    eng->store.ops = &local_store_ops;
    pthread_rwlock_init(&own->whole, NULL);
    pthread_mutex_init(&own->named_lock, NULL);
    engi_guards_init(&own->guards);
    for (int i = 0; i < ENGI_COMMIT_LOCKS; i++) pthread_rwlock_init(&own->commit_locks.of[i].lock, NULL);
    engi_horizon_init(&own->newest, ENGI_HORIZON_NEWEST, ENGI_HORIZON_STEP);
    engi_horizon_init(&own->assigned, ENGI_HORIZON_CLOCK, ENGI_CLOCK_STEP);
    own->kv_options = (struct kv_options){.data_dir = o->data_dir,
                                          .damage = o->cut_damage ? KV_DAMAGE_CUT : KV_DAMAGE_REFUSE,
                                          .write_through = o->durability != ENG_FSYNC,
                                          .block_cache_bytes = o->block_cache_bytes,
                                          .memtable_bytes = o->memtable_bytes,
                                          .background_jobs = o->background_jobs,
                                          .merge = eng_row_merge,
                                          .prefix_len = engi_prefix_len,
                                          .near_len = ENGI_KEY_NEAR};
    own->kv = kv_open(&own->kv_options, e);
    if (!own->kv) return -1;
    own->cache = engi_cache_new(o->row_cache_bytes); /* without memory for it, the store works without it */
    if (engi_load_marks(own, e)) return -1;
    if (own->assigned.opened != INT64_MIN)
        engi_write_clock_start(&eng->write_clock, own->assigned.opened, clock_wall_us(eng->clock));
    return 0;
}
