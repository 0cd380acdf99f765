#include "engine/local/reclaim.h"

#include <assert.h>
#include <errno.h>
#include <stdlib.h>
#include <time.h>

#include "base/log.h"
#include "base/murmur3.h"
#include "engine/local/commit.h"
#include "engine/local/eng.h"
#include "engine/local/fragment.h"
#include "engine/front/lock_order.h"
#include "engine/local/row_cache.h"
#include "engine/local/table.h"
#include "engine/rows/key.h"
#include "engine/rows/purge.h"
#include "engine/rows/tombstone.h"

enum {
    KEYS_PER_ITERATOR = 4096,
    KEYS_PER_PAUSE = 256,
    EXCLUSIVE_TRIES = 100,
    ROUND_SECONDS = 10,
    PASS_SECONDS_MIN = 60
};

/* Results beside 0 and -1. AGAIN: start the partition again. STOPPED: the engine closes. GONE: the
 * table is being freed. */
enum { AGAIN = 1, STOPPED = 2, GONE = 3 };

struct pass {
    struct eng *eng;
    struct engi_table *t; /* pinned: invariant 8 */
    uint16_t bucket;
    bool paced;
    struct kv_iter *it;
    struct kv_iter_spec kv;
    struct buf prefix, seek, value, lower, upper;
    struct arena tomb_arena;
    struct engi_tombs tombs;
    struct engi_window window;
    struct engi_purge_limits limits;
    int64_t ceiling;                 /* timestamps from this one on count as far */
    /* of the partition: has fragments; loose ones were made into fragments; a row was busy */
    bool fragmented, relieved, skipped;
    bool left[ENGI_MARKS];           /* marks that the bucket still needs */
    uint32_t since_open, since_pause;
};

/* ---- the pace ---- */

/* STOPPED: the engine closes. */
static int pause_for(struct eng *eng, int64_t us) {
    struct engi_reclaim *r = &eng->reclaim;
    struct timespec until;
    clock_gettime(CLOCK_MONOTONIC, &until);
    int64_t ns = until.tv_nsec + us % 1000000 * 1000;
    until.tv_sec += us / 1000000 + ns / 1000000000;
    until.tv_nsec = ns % 1000000000;
    engi_mutex_lock(&r->lock, ENGI_RANK_LEAF);
    while (!r->stop && pthread_cond_timedwait(&r->wake, &r->lock, &until) != ETIMEDOUT) {}
    engi_mutex_unlock(&r->lock, ENGI_RANK_LEAF);
    return r->stop ? STOPPED : 0;
}

static int keep_pace(struct pass *p) {
    p->since_open++;
    if (engi_is_closed(p->t)) return GONE;
    if (++p->since_pause < KEYS_PER_PAUSE) return 0;
    p->since_pause = 0;
    if (atomic_load(&p->eng->reclaim.stop)) return STOPPED;
    return p->paced ? pause_for(p->eng, (int64_t)KEYS_PER_PAUSE * 1000000 / p->eng->reclaim.rows_per_second) : 0;
}

/* ---- the iterator ---- */

static int reopen(struct pass *p, struct err *e) {
    if (p->it) p->it->ops->iter_free(p->it);
    p->it = p->eng->kv->ops->iter_new(p->eng->kv, &p->kv, e);
    p->since_open = 0;
    return p->it ? 0 : -1;
}

static int seek_to(struct pass *p, enum engi_kind kind, struct err *e) {
    p->seek.n = 0;
    buf_put_slice(&p->seek, buf_slice(&p->prefix));
    if (kind) buf_u8(&p->seek, (uint8_t)kind);
    if (buf_failed(&p->seek) || buf_failed(&p->prefix)) return err_nomem(e);
    return p->it->ops->iter_move(p->it, KV_SEEK, buf_slice(&p->seek), e);
}

static int next(struct pass *p, struct err *e) {
    return p->it->ops->iter_move(p->it, KV_NEXT, buf_slice(&p->prefix), e);
}

static bool in_partition(const struct pass *p) {
    return p->it->key.n > p->prefix.n && memcmp(p->it->key.p, p->prefix.p, p->prefix.n) == 0;
}

static enum engi_kind kind_at(const struct pass *p) { return p->it->key.p[p->prefix.n]; }
static struct slice rest_at(const struct pass *p) {
    return slice_of(p->it->key.p + p->prefix.n + 1, p->it->key.n - p->prefix.n - 1);
}

/* ---- rows ---- */

static void note_left(struct pass *p, const struct engi_purged *row) {
    p->left[ENGI_MARK_ROWS] = p->left[ENGI_MARK_ROWS] || row->row_deletion;
    p->left[ENGI_MARK_DEAD] = p->left[ENGI_MARK_DEAD] || row->dead_cells;
    p->left[ENGI_MARK_FAR] = p->left[ENGI_MARK_FAR] || row->newest_ts >= p->ceiling;
}

/* Takes the row's guard exclusively, and waits a little for commits that write the row. */
static bool take_exclusive(struct pass *p, uint64_t hash) {
    struct timespec nap = {.tv_nsec = 50000};
    for (int i = 0; i < EXCLUSIVE_TRIES; i++) {
        if (engi_guard_try_exclusive(&p->eng->guards, hash)) return true;
        nanosleep(&nap, NULL);
    }
    return false;
}

static int write_record(struct pass *p, struct slice key, const struct slice *value, struct err *e) {
    const struct kv_ops *ops = p->eng->kv->ops;
    assert(engi_is_pinned(p->t)); /* invariant 8 */
    struct kv_batch *b = ops->batch_new(p->eng->kv);
    if (!b) return err_nomem(e);
    int rc = value ? ops->batch_put(b, key, *value) : ops->batch_delete(b, key);
    if (rc) rc = err_nomem(e);
    else rc = ops->write(p->eng->kv, b, false, e);
    if (rc == KV_BUSY)
        rc = err_set(e, ERR_OVERLOADED, "the store is flushing and compacting; reclaiming goes on later");
    ops->batch_free(b);
    if (!rc) engi_count(p->eng, ENG_STAT_RECLAIMED);
    if (!rc && !value) p->eng->reclaim.removed++;
    if (!rc) engi_changed(p->t, p->bucket);
    return rc;
}

/* A partition's record. */
static int write_one(struct pass *p, struct slice key, const struct slice *value, struct err *e) {
    engi_partition_share(&p->eng->guards, key); /* invariant 7 (a) */
    int rc = write_record(p, key, value, e);
    engi_partition_leave(&p->eng->guards, key);
    return rc;
}

/* Reads the whole row as it is now and writes it back without the dead parts, with the guard held
 * exclusively (invariant 3). */
static int clean_row(struct pass *p, struct slice key, struct err *e) {
    const struct kv_ops *ops = p->eng->kv->ops;
    uint64_t hash = murmur3_hash(key);
    struct kv_value value;
    if (!take_exclusive(p, hash)) {
        p->skipped = p->left[ENGI_MARK_ROWS] = p->left[ENGI_MARK_DEAD] = p->left[ENGI_MARK_FAR] = true;
        return 0;
    }
    struct engi_purged purged = {.empty = true, .newest_ts = ENG_NO_TS};
    int rc = ops->get(p->eng->kv, ENG_TIER_ANY, key, &value, e);
    if (rc > 0) {
        p->value.n = 0;
        rc = engi_purge_row(&p->limits, value.bytes, &p->value, &purged)
                 ? err_set(e, ERR_SERVER, "a stored row is damaged")
                 : 0;
        struct slice left = buf_slice(&p->value);
        if (!rc && purged.dropped) engi_row_cache_evict(p->eng, hash, key);
        if (!rc && purged.dropped) rc = write_one(p, key, purged.empty ? NULL : &left, e);
        if (!rc && purged.expired) engi_tell_expiry(p->eng, key, value.bytes, p->limits.covered_ts);
        ops->release(p->eng->kv, &value);
    }
    engi_guard_release(&p->eng->guards, hash);
    note_left(p, &purged);
    return rc;
}

/* The row that the iterator stands on. */
static int visit_row(struct pass *p, int64_t covered_ts, struct err *e) {
    struct engi_purged purged;
    p->limits.covered_ts = covered_ts;
    p->value.n = 0;
    if (engi_purge_row(&p->limits, p->it->value, &p->value, &purged))
        return err_set(e, ERR_SERVER, "a stored row is damaged");
    if (purged.newest_ts >= p->eng->newest.opened) { /* an earlier run wrote it, perhaps far ahead of the clock */
        uint64_t hash = murmur3_hash(p->it->key);
        engi_guard_share(&p->eng->guards, hash);
        engi_guard_raise(&p->eng->guards, hash, purged.newest_ts);
        engi_guard_leave(&p->eng->guards, hash);
    }
    if (!purged.dropped) note_left(p, &purged);
    else if (clean_row(p, p->it->key, e)) return -1;
    return keep_pace(p);
}

static int covered_at(struct pass *p, int64_t *ts, struct err *e) {
    struct slice ck = rest_at(p);
    if (p->fragmented && !engi_window_knows(&p->window, ck)) {
        p->seek.n = 0;
        buf_put_slice(&p->seek, p->it->key);
        if (buf_failed(&p->seek)) return err_nomem(e);
        size_t n = p->prefix.n + 1;
        int rc = engi_window_load(&p->window, p->it, buf_slice(&p->prefix), slice_of(p->seek.p + n, p->seek.n - n),
                                  false, e);
        if (rc || (rc = p->it->ops->iter_move(p->it, KV_SEEK, buf_slice(&p->seek), e)) <= 0)
            return rc < 0 ? rc : err_set(e, ERR_SERVER, "a row is gone");
        ck = rest_at(p);
    }
    *ts = engi_tombs_at(&p->tombs, ck);
    int64_t fragmented = p->fragmented ? engi_window_at(&p->window, ck) : ENG_NO_TS;
    if (fragmented > *ts) *ts = fragmented;
    return 0;
}

static int visit_rows(struct pass *p, struct err *e) {
    int got = seek_to(p, ENGI_ROW, e), rc = 0;
    while (got > 0 && in_partition(p)) {
        int64_t ts = ENG_NO_TS;
        if ((rc = covered_at(p, &ts, e)) || (rc = visit_row(p, ts, e))) return rc;
        got = next(p, e);
    }
    return got < 0 ? got : 0;
}

/* ---- deletions of ranges and of the partition ---- */

/* Removes the deletion's record, unless it has changed since the rows below it were checked. */
static int remove_same(struct pass *p, struct err *e) {
    const struct kv_ops *ops = p->eng->kv->ops;
    struct kv_value value;
    int got = ops->get(p->eng->kv, ENG_TIER_ANY, p->it->key, &value, e);
    if (got <= 0) return got;
    bool same = slice_eq(value.bytes, p->it->value);
    ops->release(p->eng->kv, &value);
    if (!same) p->left[ENGI_MARK_COVER] = true;
    return same ? write_one(p, p->it->key, NULL, e) : 0;
}

/* With the lock of the writers of such a record: of fragments, or of the record's key. */
static int remove_deletion(struct pass *p, bool range, struct err *e) {
    struct engi_guards *guards = &p->eng->guards;
    uint64_t hash = murmur3_hash(p->it->key);
    if (range) engi_partition_fragment(guards, buf_slice(&p->prefix));
    else if (!take_exclusive(p, hash)) {
        p->left[ENGI_MARK_COVER] = true;
        return 0;
    }
    int rc = remove_same(p, e);
    if (range) engi_partition_end_fragment(guards, buf_slice(&p->prefix));
    else engi_guard_release(guards, hash);
    return rc;
}

/* Visits the deletions after the rows below them, at the same moment of the store: by then the rows
 * that they cover are removed. */
static int visit_deletions(struct pass *p, struct err *e) {
    int got = seek_to(p, 0, e), rc = 0;
    for (; got > 0 && in_partition(p) && kind_at(p) <= ENGI_RANGE_TOMBSTONE; got = next(p, e)) {
        int64_t ts, at;
        if (kind_at(p) == ENGI_STATIC) continue;
        if (engi_tomb_deletion(p->it->value, &ts, &at, e)) return -1;
        bool range = kind_at(p) == ENGI_RANGE_TOMBSTONE, swallowed = range && ts <= p->tombs.partition_ts;
        if (ts >= p->ceiling) p->left[ENGI_MARK_FAR] = true;
        bool is_old = !p->skipped && at < p->limits.before_seconds;
        if (!is_old && !swallowed) p->left[ENGI_MARK_COVER] = true;
        else if ((rc = remove_deletion(p, range, e))) return rc;
        if ((rc = keep_pace(p))) return rc;
    }
    return got < 0 ? got : 0;
}

/* ---- partitions ---- */

/* Returns AGAIN after the loose range tombstones were fragmented. */
static int read_loose(struct pass *p, int got, struct err *e) {
    struct engi_tomb tomb;
    for (; got > 0 && in_partition(p) && kind_at(p) == ENGI_RANGE_TOMBSTONE; got = next(p, e)) {
        p->fragmented = engi_on_fragment(p->it, buf_slice(&p->prefix));
        if (p->fragmented) break;
        if (!p->relieved) {
            p->relieved = true;
            if (engi_fragment_all(p->eng, buf_slice(&p->prefix), e)) return -1;
            return reopen(p, e) ? -1 : AGAIN;
        }
        if (engi_tomb_read(rest_at(p), p->it->value, &tomb, e) || engi_tombs_add(&p->tombs, &tomb, e)) return -1;
    }
    return got < 0 ? got : engi_tombs_fragment(&p->tombs, e);
}

static int read_head(struct pass *p, struct err *e) {
    arena_reset(&p->tomb_arena);
    engi_tombs_init(&p->tombs, &p->tomb_arena);
    engi_window_reset(&p->window);
    p->fragmented = p->skipped = false;
    int got = seek_to(p, 0, e);
    if (got > 0 && in_partition(p) && kind_at(p) == ENGI_PARTITION_DELETION) {
        int64_t at;
        if (engi_tomb_deletion(p->it->value, &p->tombs.partition_ts, &at, e)) return -1;
        got = next(p, e);
    }
    if (got > 0 && in_partition(p) && kind_at(p) == ENGI_STATIC) {
        int rc = visit_row(p, p->tombs.partition_ts, e);
        if (rc) return rc;
        got = next(p, e);
    }
    return got < 0 ? got : read_loose(p, got, e);
}

static int visit_partition(struct pass *p, struct err *e) {
    int rc;
    p->relieved = false;
    do rc = read_head(p, e);
    while (rc == AGAIN);
    if (rc) return rc;
    bool deletions = p->fragmented || p->tombs.n || p->tombs.partition_ts != ENG_NO_TS;
    if ((rc = visit_rows(p, e))) return rc;
    return deletions ? visit_deletions(p, e) : 0;
}

/* ---- buckets ---- */

static int visit_bucket(struct pass *p, struct err *e) {
    if (reopen(p, e)) return -1;
    int got = p->it->ops->iter_move(p->it, KV_SEEK, buf_slice(&p->lower), e), rc = 0;
    while (got > 0 && !rc) {
        size_t n = engi_prefix_len(p->it->key);
        if (!n) return err_set(e, ERR_SERVER, "a stored key is damaged");
        p->prefix.n = 0;
        buf_put(&p->prefix, p->it->key.p, n);
        rc = visit_partition(p, e);
        if (!rc && p->since_open > KEYS_PER_ITERATOR) rc = reopen(p, e);
        if (!rc) got = seek_to(p, ENGI_PAST, e);
    }
    return rc ? rc : got < 0 ? got : 0;
}

/* Removes the marks that the bucket no longer needs, in the store first. With all commit locks. */
static int clear_marks(struct pass *p, struct err *e) {
    struct engi_marks *marks = &p->t->marks;
    for (int m = 0; m < ENGI_MARKS; m++) {
        uint16_t place = engi_mark_place((enum engi_mark)m, p->bucket);
        uint8_t key[ENGI_MARK_RECORD];
        if (m == ENGI_MARK_OLD_ROWS) continue;
        if (m == ENGI_MARK_FAR) engi_mark_put(marks->set, place, false); /* the guards know by now */
        bool there = engi_mark_has(marks->set, place) || engi_mark_has(marks->recorded, place);
        if (!there || p->left[m] || engi_mark_has(marks->touched, place)) continue;
        store_u32(key, ENGI_TABLE_MARKS);
        store_u32(key + 4, p->t->id);
        store_u16(key + 8, place);
        if (write_record(p, slice_of(key, sizeof(key)), NULL, e)) return -1;
        engi_mark_put(marks->recorded, place, false);
        if (m == ENGI_MARK_COVER) atomic_fetch_add(&p->eng->heals, 1);
        engi_mark_put(marks->set, place, false);
    }
    return 0;
}

static bool is_marked(const struct pass *p) {
    bool marked = false;
    for (int m = 0; m < ENGI_MARKS; m++) {
        uint16_t place = engi_mark_place((enum engi_mark)m, p->bucket);
        marked = marked || engi_mark_has(p->t->marks.set, place) || engi_mark_has(p->t->marks.recorded, place);
    }
    return marked;
}

static int run_bucket(struct pass *p, struct err *e) {
    struct engi_commit_locks *locks = &p->eng->commit_locks;
    uint8_t first = (uint8_t)(p->bucket ^ 0x80); /* as the key has it, sign flipped */
    p->lower.n = p->upper.n = 0;
    engi_key_table(&p->lower, p->t->id);
    buf_u8(&p->lower, first);
    engi_key_table(&p->upper, p->t->id + (first == 0xff));
    buf_u8(&p->upper, (uint8_t)(first + 1));
    if (buf_failed(&p->lower) || buf_failed(&p->upper)) return err_nomem(e);
    p->kv = (struct kv_iter_spec){.tier = ENG_TIER_ANY, .lower = buf_slice(&p->lower), .upper = buf_slice(&p->upper)};
    memset(p->left, 0, sizeof(p->left));
    /* With all commit locks no commit is between noting a mark and its write. Every later note is
     * seen. */
    engi_commit_locks_take(locks);
    for (int m = 0; m < ENGI_MARKS; m++)
        engi_mark_put(p->t->marks.touched, engi_mark_place((enum engi_mark)m, p->bucket), false);
    p->ceiling = atomic_load(&p->eng->newest.ceiling);
    engi_commit_locks_leave(locks);
    int rc = visit_bucket(p, e);
    if (p->it) p->it->ops->iter_free(p->it);
    p->it = NULL;
    if (rc) return rc;
    engi_commit_locks_take(locks);
    rc = clear_marks(p, e);
    engi_commit_locks_leave(locks);
    return rc;
}

/* ---- tables ---- */

/* whole: visits all marked buckets; otherwise those where reads passed many rows. */
static int run_table(struct eng *eng, struct engi_table *t, bool paced, bool whole, struct err *e) {
    int64_t now = clock_wall_us(eng->clock) / 1000000;
    struct pass *p = calloc(1, sizeof(*p));
    if (!p) return err_nomem(e);
    *p = (struct pass){.eng = eng,
                       .t = t,
                       .paced = paced,
                       .limits = {.before_ts = INT64_MAX,
                                  .before_seconds = engi_table_now(eng, t) - atomic_load(&t->gc_grace)}};
    struct buf *bufs[] = {&p->prefix, &p->seek, &p->value, &p->lower, &p->upper};
    for (size_t i = 0; i < ARRAY_LEN(bufs); i++) buf_init(bufs[i], 0);
    arena_init(&p->tomb_arena, 4096, 0);
    engi_window_init(&p->window);
    int rc = 0;
    for (uint32_t b = 0; b < ENGI_BUCKETS && !rc; b++) {
        p->bucket = (uint16_t)b;
        bool passed = engi_mark_has(t->passed, p->bucket);
        if (passed) engi_mark_put(t->passed, p->bucket, false);
        if ((whole || passed) && is_marked(p)) rc = run_bucket(p, e);
    }
    for (size_t i = 0; i < ARRAY_LEN(bufs); i++) buf_fini(bufs[i]);
    arena_fini(&p->tomb_arena);
    engi_window_fini(&p->window);
    free(p);
    if (whole) atomic_store(&t->reclaimed_at, now);
    return rc == GONE ? 0 : rc;
}

static int64_t period_of(const struct engi_table *t) {
    int64_t period = atomic_load(&t->gc_grace) / 8;
    return period < PASS_SECONDS_MIN ? PASS_SECONDS_MIN : period;
}

/* ---- tables of a store with several writers, which knows by itself what may be removed ---- */

static int visited(void *arg) { return keep_pace(arg); }

static void dropped(void *arg, struct slice key, struct slice value, int64_t covered_ts, bool expired) {
    const struct pass *p = arg;
    engi_count(p->eng, ENG_STAT_RECLAIMED);
    engi_changed(p->t, engi_bucket_of_key(key));
    if (expired) engi_tell_expiry(p->eng, key, value, covered_ts);
}

static int run_shared(struct eng *eng, struct engi_table *t, bool paced, struct err *e) {
    struct pass p = {.eng = eng, .t = t, .paced = paced};
    const struct store_reclaim r = {.table = t->id,
                                    .now_seconds = clock_wall_us(eng->clock) / 1000000,
                                    .before_seconds = engi_table_now(eng, t) - atomic_load(&t->gc_grace),
                                    .period_seconds = paced ? period_of(t) : 0,
                                    .visited = visited,
                                    .dropped = dropped,
                                    .arg = &p};
    int rc = eng->store.ops->reclaim(&eng->store, &r, e);
    atomic_store(&t->reclaimed_at, r.now_seconds);
    if (rc == -1 && paced) { /* the other tables have their turn nevertheless */
        log_warn("the dead rows of table %u stay until the next pass: %s", t->id, e->text);
        err_clear(e);
        rc = 0;
    }
    return rc == GONE ? 0 : rc;
}

enum reach { EVERYTHING, WHAT_IS_DUE /* at the pace */, WHAT_WAS_PASSED };

/* Runs the pass over one table that the engine has in memory, unless it is being freed. */
static int run_id(struct eng *eng, uint32_t id, enum reach reach, struct err *e) {
    struct err gone = {0};
    struct engi_table *t = engi_table_pin(eng, id, &gone);
    if (!t) return 0;
    bool due = clock_wall_us(eng->clock) / 1000000 - atomic_load(&t->reclaimed_at) >= period_of(t);
    bool whole = reach == EVERYTHING || (reach == WHAT_IS_DUE && due);
    uint64_t passed = 0;
    for (size_t i = 0; i < ARRAY_LEN(t->passed); i++) passed |= atomic_load(&t->passed[i]);
    int rc = 0;
    if (eng->store.ops->reclaim) rc = whole ? run_shared(eng, t, reach == WHAT_IS_DUE, e) : 0;
    else if (whole || passed) rc = run_table(eng, t, reach == WHAT_IS_DUE, whole, e);
    engi_table_unpin(eng, t);
    return rc;
}

static int run_tables(struct eng *eng, enum reach reach, struct err *e) {
    int rc = engi_commit_check(eng, e);
    uint32_t n;
    engi_epoch_step(&eng->epoch);
    bool shared = !eng_one_writer(eng); /* guards and marks cover only this process's writes */
    if (shared && !eng->store.ops->reclaim) return rc;
    uint32_t *ids = engi_table_ids(eng, &n);
    if (!ids) return err_nomem(e);
    engi_mutex_lock(&eng->reclaim.pass, ENGI_RANK_PASS);
    for (uint32_t i = 0; i < n && !rc; i++) rc = run_id(eng, ids[i], reach, e);
    if (!shared) eng->kv->ops->tidy(eng->kv, eng->reclaim.removed);
    eng->reclaim.removed = 0;
    engi_mutex_unlock(&eng->reclaim.pass, ENGI_RANK_PASS);
    free(ids);
    return rc;
}

static int run_now(struct eng *eng, enum reach reach, struct err *e) {
    int rc = run_tables(eng, reach, e);
    return rc == STOPPED ? err_set(e, ERR_SERVER, "the engine closes") : rc;
}

int eng_reclaim(struct eng *eng, struct err *e) { return run_now(eng, EVERYTHING, e); }

int eng_reclaim_passed(struct eng *eng, struct err *e) { return run_now(eng, WHAT_WAS_PASSED, e); }

static void *run(void *arg) {
    struct eng *eng = arg;
    while (!pause_for(eng, (int64_t)ROUND_SECONDS * 1000000)) {
        struct err e;
        err_clear(&e);
        if (run_tables(eng, WHAT_IS_DUE, &e) < 0) log_warn("reclaiming has stopped for now: %s", e.text);
    }
    return NULL;
}

void engi_reclaim_init(struct engi_reclaim *r, uint32_t rows_per_second) {
    pthread_condattr_t attr;
    pthread_condattr_init(&attr);
    pthread_condattr_setclock(&attr, CLOCK_MONOTONIC);
    pthread_mutex_init(&r->lock, NULL);
    pthread_mutex_init(&r->pass, NULL);
    pthread_cond_init(&r->wake, &attr);
    pthread_condattr_destroy(&attr);
    r->rows_per_second = rows_per_second;
}

void engi_reclaim_fini(struct engi_reclaim *r) {
    pthread_mutex_destroy(&r->lock);
    pthread_mutex_destroy(&r->pass);
    pthread_cond_destroy(&r->wake);
}

int engi_reclaim_start(struct eng *eng, struct err *e) {
    struct engi_reclaim *r = &eng->reclaim;
    atomic_store(&r->stop, false);
    if (!r->rows_per_second) return 0;
    if (pthread_create(&r->thread, NULL, run, eng))
        return err_set(e, ERR_SERVER, "the thread that reclaims cannot be started");
    r->running = true;
    return 0;
}

void engi_reclaim_stop(struct eng *eng) {
    struct engi_reclaim *r = &eng->reclaim;
    engi_mutex_lock(&r->lock, ENGI_RANK_LEAF);
    r->stop = true;
    pthread_cond_signal(&r->wake);
    engi_mutex_unlock(&r->lock, ENGI_RANK_LEAF);
    if (r->running) pthread_join(r->thread, NULL);
    r->running = false;
}
