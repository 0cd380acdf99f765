#include "engine/local/history.h"

#include <assert.h>
#include <stdlib.h>

#include "base/random.h"
#include "engine/front/lock_order.h"
#include "engine/history.h"
#include "engine/local/local.h"
#include "engine/rows/batch.h"
#include "engine/rows/key.h"

enum { LOG_KEY = 24, CHUNK_BYTES = 1 << 20, CHUNK_ROWS = 4096 };

int engi_histories_init(struct engi_histories *h, struct err *e) {
    uint64_t first;
    *h = (struct engi_histories){0};
    if (random_bytes(&first, sizeof(first), e)) return -1;
    atomic_init(&h->serial, first);
    pthread_mutex_init(&h->lock, NULL);
    return 0;
}

static void unlink_history(struct engi_history **at) {
    struct engi_history *h = *at;
    *at = h->next;
    pthread_mutex_destroy(&h->lock);
    free(h);
}

void engi_histories_forget(struct engi_histories *h) {
    while (h->first) unlink_history(&h->first);
}

void engi_histories_fini(struct engi_histories *h) {
    engi_histories_forget(h);
    pthread_mutex_destroy(&h->lock);
}

/* Under the lock of all. */
static struct engi_history *find_locked(const struct engi_histories *all, uint32_t id) {
    struct engi_history *h = all->first;
    while (h && h->id != id) h = h->next;
    return h;
}

/* Returns NULL if own is NULL, there is no such history, or memory is exhausted. */
static struct engi_history *find(struct local *own, uint32_t id, bool make) {
    if (!own) return NULL;
    struct engi_histories *all = &own->histories;
    engi_mutex_lock(&all->lock, ENGI_RANK_LEAF);
    struct engi_history *h = find_locked(all, id);
    if (!h && make && (h = calloc(1, sizeof(*h)))) {
        h->id = id;
        pthread_mutex_init(&h->lock, NULL);
        h->next = all->first;
        all->first = h;
    }
    engi_mutex_unlock(&all->lock, ENGI_RANK_LEAF);
    return h;
}

/* ---- records ---- */

static struct slice log_key(uint8_t key[LOG_KEY], uint32_t history, int64_t us, uint64_t serial) {
    store_u32(key, ENGI_TABLE_HISTORY);
    store_u32(key + 4, history);
    store_u64(key + 8, (uint64_t)us);
    store_u64(key + 16, serial);
    return slice_of(key, LOG_KEY);
}

/* The time of a commit (invariant 14), or of another change of the table. */
static int64_t moment(struct engi_history *h, int64_t at_least_us) {
    int64_t last_us = atomic_load(&h->last_us);
    while (at_least_us > last_us && !atomic_compare_exchange_weak(&h->last_us, &last_us, at_least_us)) {}
    return at_least_us > last_us ? at_least_us : last_us;
}

int engi_history_log(struct local *own, struct engi_history *h, struct kv_batch *b, int64_t now_us, struct slice key,
                     struct slice delta, struct buf *scratch) {
    uint8_t at[LOG_KEY];
    int64_t floor_us = atomic_load(&h->floor_us), us = moment(h, now_us > floor_us ? now_us : floor_us + 1);
    struct slice name = log_key(at, h->id, us,
                                atomic_fetch_add_explicit(&own->histories.serial, 1, memory_order_relaxed));
    assert(us > atomic_load(&h->floor_us)); /* invariant 9 */
    scratch->n = 0;
    buf_u32(scratch, (uint32_t)(key.n - 4));
    buf_put(scratch, key.p + 4, key.n - 4);
    buf_put_slice(scratch, delta);
    if (buf_failed(scratch)) return -1;
    atomic_fetch_add_explicit(&h->logged, name.n + scratch->n, memory_order_relaxed);
    kv_batch_put(b, name, buf_slice(scratch));
    return 0;
}

static int write_floor(struct local *own, uint32_t history, int64_t us, struct err *e) {
    uint8_t at[LOG_KEY], value[8];
    struct kv_batch *b = kv_batch_new(own->kv);
    if (!b) return err_nomem(e);
    store_u64(value, (uint64_t)us);
    kv_batch_put(b, log_key(at, history, 0, 0), slice_of(value, 8));
    int rc = kv_write_patiently(own->kv, b, e);
    kv_batch_free(b);
    return rc ? -1 : engi_commit_wait(own->eng, engi_commit_next_seq(own->eng), e);
}

/* ---- life ---- */

/* Sets the history's floor. Expiry of the base's rows is decided at that moment. */
static void floor_is(struct local *own, struct engi_history *h, int64_t us) {
    struct engi_section section = engi_enter(&own->eng->epoch);
    struct local_table *base = local_table(own, h->id);
    atomic_store(&h->floor_us, us);
    if (base) atomic_store(&base->as_of, us / 1000000);
    engi_leave(&own->eng->epoch, section);
}

/* Waits until every commit that may not know the table's history or its floor has ended. */
static void let_commits_pass(struct local *own) {
    engi_commit_locks_take(&own->commit_locks);
    engi_commit_locks_leave(&own->commit_locks);
}

/* Sets the history of a table; h NULL: none. Returns -1 if no memory, or the table was freed. */
static int set_history(struct local *own, uint32_t table, struct engi_history *h) {
    struct engi_section section = engi_enter(&own->eng->epoch);
    struct local_table *t = local_table(own, table);
    if (t) atomic_store(&t->history, h);
    engi_leave(&own->eng->epoch, section);
    return t ? 0 : -1;
}

int eng_history_begin(struct eng *eng, uint32_t table, uint32_t history, bool copy, int64_t after_us, struct err *e) {
    struct local *own = local_if(eng);
    if (!own)
        return err_invalid(e, "Point-in-time recovery is not available on a Ceph cluster: use snapshots of its pool");
    struct engi_history *h = find(own, history, true);
    if (!h) return err_nomem(e);
    /* Removes the remains of an interrupted call. Looks for a row of the base first, because even
     * a range deletion of nothing stays in the store for a while. */
    struct engi_keys log, base;
    engi_keys_of(&log, ENGI_TABLE_HISTORY, history);
    engi_keys_of(&base, 0, history);
    struct kv_iter_spec spec = {.tier = ENG_TIER_ANY, .lower = base.from, .upper = base.to};
    struct kv_iter *it = kv_delete_each(own->kv, log.from, log.to, e) ? NULL : kv_iter_new(own->kv, &spec, e);
    int got = it ? it->ops->iter_move(it, KV_SEEK, base.from, e) : -1;
    if (it) it->ops->iter_free(it);
    if (got < 0 || (got > 0 && engi_table_clear(own->eng, history, e))) return -1;
    floor_is(own, h, 0);
    atomic_store(&h->last_us, after_us);
    if (set_history(own, table, h)) return err_set(e, ERR_INVALID, "the table is gone");
    let_commits_pass(own);
    struct kv_snapshot *at = copy ? kv_snapshot_new(own->kv) : NULL;
    /* for an empty table, writes in this very microsecond count as later */
    int64_t now_us = moment(h, clock_wall_us(own->eng->clock) - !copy);
    int rc = copy && !at ? err_nomem(e) : 0;
    if (at) {
        rc = engi_ingest_at(own, history, own, table, at, e);
        kv_snapshot_free(own->kv, at);
    }
    if (rc || write_floor(own, history, now_us, e)) return -1;
    floor_is(own, h, now_us);
    return 0;
}

/* Loads the newest time in the log. */
static int load_last(struct local *own, struct engi_history *h, struct err *e) {
    uint8_t from[LOG_KEY], to[LOG_KEY];
    struct kv_iter_spec spec = {.tier = ENG_TIER_ANY,
                                .lower = log_key(from, h->id, 1, 0),
                                .upper = log_key(to, h->id, INT64_MAX, UINT64_MAX)};
    struct kv_iter *it = kv_iter_new(own->kv, &spec, e);
    int got = it ? it->ops->iter_move(it, KV_SEEK_BACK, spec.upper, e) : -1;
    atomic_store(&h->last_us, atomic_load(&h->floor_us));
    if (got > 0 && it->key.n == LOG_KEY) (void)moment(h, (int64_t)load_u64(it->key.p + 8));
    if (it) it->ops->iter_free(it);
    return got < 0 ? -1 : 0;
}

int eng_history_follow(struct eng *eng, uint32_t table, uint32_t history, struct err *e) {
    struct local *own = local_of(&eng->store);
    struct engi_history *h = find(own, history, true);
    uint8_t at[LOG_KEY];
    struct kv_value value;
    if (!h) return err_nomem(e);
    int got = kv_get(own->kv, ENG_TIER_ANY, log_key(at, history, 0, 0), &value, e);
    if (got == 0) return err_set(e, ERR_SERVER, "the history %u of a table has no beginning", history);
    if (got < 0) return -1;
    floor_is(own, h, value.bytes.n == 8 ? (int64_t)load_u64(value.bytes.p) : INT64_MAX);
    kv_release(value.handle);
    if (load_last(own, h, e)) return -1;
    return table && set_history(own, table, h) ? err_nomem(e) : 0;
}

void eng_history_end(struct eng *eng, uint32_t table) {
    struct local *own = local_if(eng);
    if (!own) return;
    (void)set_history(own, table, NULL);
    let_commits_pass(own);
}

int eng_history_drop(struct eng *eng, uint32_t history, struct err *e) {
    struct local *own = local_of(&eng->store);
    struct engi_histories *all = &own->histories;
    struct engi_keys log;
    engi_keys_of(&log, ENGI_TABLE_HISTORY, history);
    if (kv_drop_range(own->kv, log.from, log.to, e)) return -1;
    int rc = eng_table_drop(eng, history, e);
    if (rc)
        return rc == ENG_BUSY ? err_set(e, ERR_OVERLOADED, "the history %u of a table is still written to", history)
                              : -1;
    engi_mutex_lock(&all->lock, ENGI_RANK_LEAF);
    struct engi_history **at = &all->first;
    while (*at && (*at)->id != history) at = &(*at)->next;
    if (*at) unlink_history(at);
    engi_mutex_unlock(&all->lock, ENGI_RANK_LEAF);
    return 0;
}

/* These three use a field under the lock, because another thread may free the history. */
int64_t eng_history_since(struct eng *eng, uint32_t history) {
    struct local *own = local_if(eng);
    if (!own) return INT64_MAX;
    engi_mutex_lock(&own->histories.lock, ENGI_RANK_LEAF);
    const struct engi_history *h = find_locked(&own->histories, history);
    int64_t floor_us = h ? atomic_load(&h->floor_us) : INT64_MAX;
    engi_mutex_unlock(&own->histories.lock, ENGI_RANK_LEAF);
    return floor_us;
}

int64_t eng_history_moment(struct eng *eng, uint32_t history, int64_t at_least_us) {
    struct local *own = local_if(eng);
    int64_t now_us = clock_wall_us(eng->clock);
    if (now_us > at_least_us) at_least_us = now_us;
    if (!own) return at_least_us;
    engi_mutex_lock(&own->histories.lock, ENGI_RANK_LEAF);
    struct engi_history *h = find_locked(&own->histories, history);
    if (h) at_least_us = moment(h, at_least_us);
    engi_mutex_unlock(&own->histories.lock, ENGI_RANK_LEAF);
    return at_least_us;
}

uint64_t eng_history_bytes(struct eng *eng, uint32_t history) {
    struct local *own = local_if(eng);
    if (!own) return 0;
    engi_mutex_lock(&own->histories.lock, ENGI_RANK_LEAF);
    const struct engi_history *h = find_locked(&own->histories, history);
    uint64_t bytes = h ? atomic_load(&h->logged) : 0;
    engi_mutex_unlock(&own->histories.lock, ENGI_RANK_LEAF);
    struct engi_keys log, base;
    engi_keys_of(&log, ENGI_TABLE_HISTORY, history);
    engi_keys_of(&base, 0, history);
    return bytes + kv_bytes(own->kv, log.from, log.to) + kv_bytes(own->kv, base.from, base.to);
}

/* ---- copies from another engine ---- */

struct log_copy {
    struct kv_load *load;
    uint32_t history;
};

static int copy_record(void *arg, struct slice key, struct slice value, struct err *e) {
    const struct log_copy *copy = arg;
    uint8_t at[LOG_KEY];
    if (key.n != LOG_KEY) return err_set(e, ERR_SERVER, "a record of a table's history is damaged");
    memcpy(at, key.p, LOG_KEY);
    store_u32(at + 4, copy->history);
    return kv_load_add(copy->load, slice_of(at, LOG_KEY), value, e);
}

int eng_history_ingest(struct eng *eng, uint32_t history, struct eng *from, uint32_t from_history, struct err *e) {
    struct local *own = local_of(&eng->store);
    struct engi_keys log;
    struct log_copy copy = {.load = kv_load_new(own->kv, e), .history = history};
    if (!copy.load) return -1;
    engi_keys_of(&log, ENGI_TABLE_HISTORY, from_history);
    int rc = kv_scan(local_of(&from->store)->kv, NULL, log.from, log.to, copy_record, &copy, e);
    if (!rc) rc = kv_load_finish(copy.load, e);
    kv_load_free(copy.load);
    return rc ? -1 : eng_ingest(eng, history, from, from_history, e);
}

/* ---- reading the log ---- */

struct replay {
    struct local *own;
    uint32_t history, table; /* table: receives the merged deltas */
    const struct kv_snapshot *at;
    int64_t up_to_us;
    struct eng_batch *batch;
    struct kv_batch *taken; /* deletes the merged log records; NULL if they stay */
    uint32_t rows;
};

/* Commits the merged deltas before it deletes the records, so that the store's log has both in this
 * order. */
static int end_chunk(struct replay *p, struct err *e) {
    uint64_t seq;
    if (!p->rows) return 0;
    p->rows = 0;
    if (eng_batch_commit(p->batch, &seq, e)) return -1;
    if (!p->taken) return 0;
    int rc = kv_write_patiently(p->own->kv, p->taken, e);
    kv_batch_clear(p->taken);
    return rc;
}

static int replay(struct replay *p, struct err *e) {
    uint8_t from[LOG_KEY], to[LOG_KEY];
    struct kv_iter_spec spec = {.tier = ENG_TIER_ANY,
                                .snapshot = p->at,
                                .lower = log_key(from, p->history, 1, 0),
                                .upper = log_key(to, p->history, p->up_to_us + 1, 0)};
    if (!(p->batch = eng_batch_new(p->own->eng))) return err_nomem(e);
    struct kv_iter *it = kv_iter_new(p->own->kv, &spec, e);
    int rc = 0, got = it ? it->ops->iter_move(it, KV_SEEK, spec.lower, e) : -1;
    for (; got > 0 && !rc; got = rc ? rc : it->ops->iter_move(it, KV_NEXT, spec.lower, e)) {
        struct rd rd = rd_of(it->value);
        struct slice key = rd_bytes(&rd, rd_u32(&rd)), delta = rd_bytes(&rd, rd_left(&rd));
        rc = rd.bad || it->key.n != LOG_KEY ? err_set(e, ERR_SERVER, "a record of a table's history is damaged")
                                            : engi_batch_replay(p->batch, p->table, key, delta, e);
        if (!rc && p->taken) kv_batch_delete(p->taken, it->key);
        if (!rc && (++p->rows >= CHUNK_ROWS || eng_batch_bytes(p->batch) >= CHUNK_BYTES)) rc = end_chunk(p, e);
    }
    if (it) it->ops->iter_free(it);
    rc = rc || got < 0 ? -1 : end_chunk(p, e);
    eng_batch_drop(p->batch);
    eng_batch_free(p->batch);
    return rc;
}

int eng_history_roll(struct eng *eng, uint32_t history, int64_t floor_us, struct err *e) {
    struct local *own = local_if(eng);
    struct engi_history *h = find(own, history, false);
    if (!h || floor_us <= atomic_load(&h->floor_us)) return 0;
    struct replay p = {.own = own, .history = history, .table = history, .up_to_us = floor_us};
    engi_mutex_lock(&h->lock, ENGI_RANK_HISTORY);
    int rc = write_floor(own, history, floor_us, e);
    if (!rc) {
        floor_is(own, h, floor_us);
        let_commits_pass(own);
    }
    engi_mutex_unlock(&h->lock, ENGI_RANK_HISTORY);
    if (rc) return -1;
    p.taken = kv_batch_new(own->kv);
    if (!p.taken) return err_nomem(e);
    rc = replay(&p, e);
    kv_batch_free(p.taken);
    return rc;
}

int eng_history_restore(struct eng *eng, uint32_t history, int64_t at_us, uint32_t table, struct err *e) {
    struct local *own = local_if(eng);
    struct engi_history *h = find(own, history, false);
    if (!h) return err_set(e, ERR_INVALID, "the table has no history");
    struct engi_keys rows; /* that an interrupted restore left */
    engi_keys_of(&rows, 0, table);
    if (kv_delete_each(own->kv, rows.from, rows.to, e)) return -1;
    /* A snapshot that has every commit up to at_us, and a base that is not newer. */
    struct kv_snapshot *s = NULL;
    engi_mutex_lock(&h->lock, ENGI_RANK_HISTORY);
    bool early = at_us < atomic_load(&h->floor_us);
    if (!early) {
        engi_commit_locks_take(&own->commit_locks);
        s = kv_snapshot_new(own->kv);
        engi_commit_locks_leave(&own->commit_locks);
    }
    engi_mutex_unlock(&h->lock, ENGI_RANK_HISTORY);
    if (early) return err_set(e, ERR_INVALID, "the history of the table begins later");
    if (!s) return err_nomem(e);
    struct replay p = {.own = own, .history = history, .table = table, .at = s, .up_to_us = at_us};
    int rc = engi_ingest_at(own, table, own, history, s, e) || replay(&p, e) ? -1 : 0;
    kv_snapshot_free(own->kv, s);
    return rc ? -1 : engi_commit_wait(own->eng, engi_commit_next_seq(own->eng), e);
}
