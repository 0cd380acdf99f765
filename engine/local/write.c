/* The store's side of a batch: its commit, which uses the timestamps of earlier writes of each
 * row, and the stripes that belong to it. */
#include <assert.h>
#include <stdlib.h>

#include "base/murmur3.h"
#include "engine/front/lock_order.h"
#include "engine/front/stripe.h"
#include "engine/local/fragment.h"
#include "engine/local/history.h"
#include "engine/local/local.h"
#include "engine/local/row_cache.h"
#include "engine/rows/batch.h"
#include "engine/rows/key.h"

enum { BYTES_KEPT = 1 << 20, TAKEN_OUT_BYTES_MAX = 1 << 20 /* before-images of cached rows, in one round */ };

/* A timestamp that is further than this ahead of the clock marks its bucket and does not raise the
 * horizon: a horizon that high would end all proofs after a restart. */
static const int64_t FAR_US = 3600000000;

struct mark { struct local_table *table; uint16_t place; };

/* The progress of one write in a commit. A commit writes in rounds: the first round writes the rows
 * that no other commit is writing at that moment. */
enum step { TO_WRITE, SHARED /* the commit shares its guard and writes it in this round */, WRITTEN };

/* The commit's own fields of a change, in addition to struct store_change. */
struct write {
    uint64_t hash;           /* of the key */
    uint8_t marks;           /* bits of enum engi_mark that its bucket must have */
    uint8_t step;            /* enum step */
    bool exclusive;          /* this commit holds its guard exclusively */
    bool replaces;           /* readers no longer see any part of the row's earlier state */
    bool fold; /* after the commit: fold the row, or fragment the partition's range tombstones */
};

/* The before-image of a cached row that a write of this round changes, from at on in the batch's
 * bytes. */
struct evicted {
    struct engi_cache_look look;
    size_t write, at, n;
    bool absent;
};

/* A filter of the rows written under a stripe. Its size keeps false positives rare for the rows of
 * one wake-up, which are some hundreds. */
enum { WRITTEN_LOG = 17, WRITTEN_BITS = 1 << WRITTEN_LOG, WRITTEN_NOTED = 128 };

struct batch {
    struct eng_batch base;
    struct local *own;
    struct kv_batch *kv;  /* filled by the commit */
    struct write *writes; /* of base.changes */
    size_t cap_writes;
    struct mark *marks; /* recorded with this batch; filled by the commit */
    size_t n_marks, cap_marks;
    struct evicted *taken; /* of one round */
    size_t n_taken, cap_taken;
    struct buf taken_bytes;
    int64_t deferred_since_us; /* time since which commits defer rows held exclusively by others; 0 if none did */
    uint64_t met;           /* the hash of such a row */
    struct engi_guard_note note; /* called when such a guard is released */
    uint32_t commit_lock;          /* where its commits pass */
    uint32_t puts, merges;  /* of the commit */
    struct engi_stripe_set locked; /* until the commit */
    uint64_t written[WRITTEN_BITS / 64]; /* by hash: rows that were written under these stripes */
    uint16_t noted[WRITTEN_NOTED];       /* positions of the first bits in written, for clearing a few */
    uint32_t n_written;
    int64_t now_us;         /* the commit's time in a history; 0 if the clock was not read yet */
};

static struct batch *batch_of(struct eng_batch *b) { return (struct batch *)b; }

struct eng_batch *engi_write_batch_new(struct store *s) {
    struct local *own = local_of(s);
    struct batch *b = calloc(1, sizeof(*b));
    if (!b) return NULL;
    b->own = own;
    b->commit_lock = atomic_fetch_add(&own->commit_locks.next, 1) % ENGI_COMMIT_LOCKS;
    b->kv = kv_batch_new(own->kv);
    if (!b->kv) {
        free(b);
        return NULL;
    }
    buf_init(&b->taken_bytes, 0);
    return &b->base;
}

/* ---- stripes of a batch: batches of other stores have none ---- */

static struct batch *mine(const struct eng_batch *b) {
    return b->store->ops->commit == engi_write_commit ? (struct batch *)b : NULL;
}

void eng_batch_on_rows_free(struct eng_batch *batch, void (*fn)(void *arg), void *arg) {
    struct batch *b = mine(batch);
    if (!b) return; /* its commits never answer ENG_ROWS_HELD */
    b->note.fn = fn;
    b->note.arg = arg;
}

int eng_batch_try_lock(struct eng_batch *batch, const struct eng_part *part) {
    struct batch *b = mine(batch);
    return b ? engi_stripes_try(b->own->eng, &b->locked, part) : -1;
}
void eng_batch_unlock(struct eng_batch *batch, const struct eng_part *part) {
    struct batch *b = mine(batch);
    if (b) engi_stripes_remove(b->own->eng, &b->locked, part);
}
bool eng_batch_holds(const struct eng_batch *batch, const struct eng_part *part) {
    const struct batch *b = mine(batch);
    return b && engi_stripes_have(&b->locked, part);
}

static uint32_t written_bit(const struct eng_part *part, enum eng_row_kind kind, struct slice ck) {
    uint64_t h = ((uint64_t)part->token ^ part->table) + (uint64_t)kind;
    return (uint32_t)((h ^ (uint64_t)murmur3_hash(ck)) * UINT64_C(0x9e3779b97f4a7c15) >> (64 - WRITTEN_LOG));
}

void eng_batch_wrote(struct eng_batch *batch, const struct eng_part *part, enum eng_row_kind kind, struct slice ck) {
    struct batch *b = mine(batch);
    uint32_t i = written_bit(part, kind, ck);
    if (!b) return;
    if (b->n_written < WRITTEN_NOTED) b->noted[b->n_written] = (uint16_t)(i / 64);
    b->n_written++;
    b->written[i / 64] |= 1ull << (i % 64);
}

bool eng_batch_has_written(const struct eng_batch *batch, const struct eng_part *part, enum eng_row_kind kind,
                           struct slice ck) {
    const struct batch *b = mine(batch);
    uint32_t i = written_bit(part, kind, ck);
    return b && b->written[i / 64] >> (i % 64) & 1;
}

void engi_write_batch_free(struct eng_batch *batch) {
    struct batch *b = batch_of(batch);
    engi_guard_cancel(&b->own->guards, &b->note);
    kv_batch_free(b->kv);
    buf_fini(&b->taken_bytes);
    free(b->writes);
    free(b->marks);
    free(b->taken);
    free(b);
}

void engi_write_batch_done(struct eng_batch *batch) {
    struct batch *b = batch_of(batch);
    b->deferred_since_us = 0;
    if (!b->locked.any) return;
    if (b->n_written > WRITTEN_NOTED) memset(b->written, 0, sizeof(b->written));
    else for (uint32_t i = 0; i < b->n_written; i++) b->written[b->noted[i]] = 0;
    b->n_written = 0;
    engi_stripes_leave(b->own->eng, &b->locked);
}

int engi_write_batch_add(struct eng_batch *batch, struct err *e) {
    struct batch *b = batch_of(batch);
    const struct store_change *c = &batch->changes[batch->n];
    if (engi_array_grow((void **)&b->writes, batch->n, &b->cap_writes, sizeof(*b->writes))) return err_nomem(e);
    struct slice key = engi_change_key(batch, c);
    struct write *w = &b->writes[batch->n];
    *w = (struct write){.hash = murmur3_hash(key)};
    if (UNLIKELY(c->deletes))
        w->marks = (uint8_t)((c->deletes & STORE_DELETES_MANY ? 1 << ENGI_MARK_COVER : 0) |
                             (c->deletes & STORE_DELETES_ROW ? 1 << ENGI_MARK_ROWS : 0) |
                             (c->deletes & STORE_DELETES_CELLS ? 1 << ENGI_MARK_DEAD : 0));
    /* The commit reads these soon. */
    __builtin_prefetch(engi_guard(&b->own->guards, w->hash), 1);
    __builtin_prefetch(engi_partition_guard(&b->own->guards, key), 1);
    if (b->own->cache) __builtin_prefetch(engi_cache_bucket(b->own->cache, w->hash));
    return 0;
}

/* ---- the commit ---- */

static struct slice key_of(const struct batch *b, size_t i) { return engi_change_key(&b->base, &b->base.changes[i]); }

static struct slice operand_of(const struct batch *b, size_t i) {
    return engi_change_value(&b->base, &b->base.changes[i]);
}

/* Notes the write's marks before the store has the write (invariant 4). */
static int note_marks(struct batch *b, size_t i) {
    struct local_table *t = b->base.changes[i].table;
    uint16_t bucket = engi_bucket_of_key(key_of(b, i));
    for (uint32_t bits = b->writes[i].marks; bits; bits &= bits - 1) {
        enum engi_mark mark = (enum engi_mark)__builtin_ctz(bits);
        uint16_t place = engi_mark_place(mark, bucket);
        uint8_t key[ENGI_MARK_RECORD];
        if (engi_mark_note(&t->marks, mark, place)) {
            if (engi_array_grow((void **)&b->marks, b->n_marks, &b->cap_marks, sizeof(*b->marks))) return -1;
            b->marks[b->n_marks++] = (struct mark){.table = t, .place = place};
            store_u32(key, ENGI_TABLE_MARKS);
            store_u32(key + 4, t->front.id);
            store_u16(key + 8, place);
            kv_batch_put(b->kv, slice_of(key, sizeof(key)), slice_of("", 0));
        }
        assert(mark == ENGI_MARK_FAR || engi_mark_has(t->marks.set, place)); /* invariant 4 */
    }
    return 0;
}

/* Whether the delta, reconciled with all earlier writes of its row, gives the delta itself. */
static bool decides_row(struct batch *b, size_t i) {
    struct local *own = b->own;
    const struct store_change *c = &b->base.changes[i];
    const struct local_table *t = c->table;
    if (!c->covers_below || c->covers_below < atomic_load_explicit(&t->columns, memory_order_relaxed)) return false;
    if (c->oldest < own->newest.opened || own->newest.opened == INT64_MAX) return false;
    uint16_t bucket = engi_bucket_of_key(key_of(b, i));
    if (engi_mark_has(t->marks.set, engi_mark_place(ENGI_MARK_ROWS, bucket))) return false;
    if (engi_mark_has(t->marks.set, engi_mark_place(ENGI_MARK_FAR, bucket))) return false;
    return engi_guard_before(&own->guards, b->writes[i].hash, c->oldest);
}

/* Whether the delta may be put. While the guard is shared, other commits may write to the row: a cell
 * of a column that is newer than the delta's schema, or one with a newer timestamp. So everything is
 * checked again once the guard is held exclusively (invariant 3). The first check only saves taking
 * the guard. */
static bool replaces(struct batch *b, size_t i) {
    struct write *w = &b->writes[i];
    w->exclusive = decides_row(b, i) && engi_guard_upgrade(&b->own->guards, w->hash);
    return w->exclusive && decides_row(b, i);
}

static int hand_over(struct batch *b, size_t i) {
    struct local *own = b->own;
    struct write *w = &b->writes[i];
    const struct store_change *c = &b->base.changes[i];
    struct local_table *t = c->table;
    struct slice key = key_of(b, i), value = operand_of(b, i);
    assert(engi_partition_is_shared(&own->guards, key)); /* invariant 7 (a) */
    assert(engi_is_pinned(&t->front)); /* invariant 8 */
    bool alone = w->replaces = replaces(b, i);
    assert(!alone || w->exclusive); /* invariant 3 */
    uint32_t columns = atomic_load_explicit(&t->columns, memory_order_relaxed);
    while (columns < c->columns && !atomic_compare_exchange_weak(&t->columns, &columns, c->columns)) {}
    engi_guard_raise(&own->guards, w->hash, c->newest);
    if (UNLIKELY(w->marks) && note_marks(b, i)) return -1;
    struct engi_history *history = atomic_load_explicit(&t->history, memory_order_acquire);
    if (UNLIKELY(history != NULL)) {
        if (!b->now_us) b->now_us = clock_wall_us(own->eng->clock);
        if (engi_history_log(own, history, b->kv, b->now_us, key, value, &b->base.value)) return -1;
    }
    if (c->is_range) {
        w->fold = engi_fold_count(&own->fold, murmur3_hash(slice_of(key.p, engi_prefix_len(key))));
        kv_batch_put(b->kv, key, value); /* every write of this key has this value */
    } else if (alone) {
        w->fold = false;
        b->puts++;
        kv_batch_put(b->kv, key, value);
    } else {
        w->fold = engi_fold_count(&own->fold, w->hash);
        b->merges++;
        kv_batch_merge(b->kv, key, value);
    }
    return 0;
}

struct ceilings { struct engi_horizon_step newest, clock; };

/* Evicts the row from the row cache, before the store has the write. */
static void evict(struct batch *b, size_t i) {
    const struct write *w = &b->writes[i];
    struct evicted *o = NULL;
    if (b->taken_bytes.n < TAKEN_OUT_BYTES_MAX &&
        !engi_array_grow((void **)&b->taken, b->n_taken, &b->cap_taken, sizeof(*b->taken)))
        o = &b->taken[b->n_taken];
    if (UNLIKELY(!o)) {
        engi_row_cache_evict(b->own, w->hash, key_of(b, i));
        return;
    }
    size_t at = b->taken_bytes.n;
    if (!engi_row_cache_evict_copy(b->own, b->base.changes[i].table, w->hash, key_of(b, i), &b->taken_bytes,
                                   &o->absent, &o->look))
        return;
    o->write = i;
    o->at = at;
    o->n = b->taken_bytes.n - at;
    b->n_taken++;
}

/* Inserts the rows' after-images into the row cache, after the store has the batch and the guards
 * were left. */
static void put_back(struct batch *b) {
    for (size_t i = 0; i < b->n_taken; i++) {
        const struct evicted *o = &b->taken[i];
        const struct write *w = &b->writes[o->write];
        struct slice key = key_of(b, o->write), value = operand_of(b, o->write);
        struct buf *merged = &b->base.value;
        merged->n = 0;
        if (!w->replaces && !o->absent) {
            struct slice before = slice_of(b->taken_bytes.p + o->at, o->n);
            if (eng_row_merge(before, value, merged) || buf_failed(merged)) break;
            value = buf_slice(merged);
        }
        engi_row_cache_put_back(b->own, &o->look, key, value);
    }
}

static int fill(struct batch *b, struct ceilings *ceilings) {
    int64_t newest = ENG_NO_TS, ceiling = atomic_load(&b->own->newest.ceiling);
    for (size_t i = 0; i < b->base.n; i++) {
        struct write *w = &b->writes[i];
        if (w->step != SHARED) continue;
        int64_t ts = b->base.changes[i].newest;
        bool is_far = UNLIKELY(ts >= ceiling) && ts > clock_wall_us(b->own->eng->clock) + FAR_US;
        if (is_far) w->marks |= 1 << ENGI_MARK_FAR;
        else if (ts > newest) newest = ts;
        evict(b, i);
        if (hand_over(b, i)) return -1;
    }
    /* Adds the horizons that cover the batch's timestamps: invariant 1 of engine/local/marks.h. */
    if (newest != ENG_NO_TS) engi_horizon_record(&b->own->newest, b->kv, newest, &ceilings->newest);
    engi_horizon_record(&b->own->assigned, b->kv, engi_write_clock_end(&b->own->eng->write_clock), &ceilings->clock);
    return 0;
}

/* Shares the guards of a group's writes: all, or none if another commit has held exclusively one
 * and wait is false. */
static bool share_group(struct batch *b, size_t from, size_t to, bool wait) {
    struct engi_guards *guards = &b->own->guards;
    for (size_t i = from; i < to; i++) {
        if (wait) engi_guard_share(guards, b->writes[i].hash);
        else if (UNLIKELY(!engi_guard_try_share(guards, b->writes[i].hash))) {
            b->met = b->writes[i].hash;
            while (i-- > from) engi_guard_leave(guards, b->writes[i].hash);
            return false;
        }
    }
    for (size_t i = from; i < to; i++) {
        b->writes[i].step = SHARED;
        engi_partition_share(guards, key_of(b, i));
    }
    return true;
}

/* Shares the guards of this round's writes and returns their number. */
static size_t share_guards(struct batch *b, bool wait) {
    size_t n = 0;
    for (size_t from = 0, to; from < b->base.n; from = to) {
        uint32_t group = b->base.changes[from].group;
        for (to = from + 1; to < b->base.n && b->base.changes[to].group == group; to++) {}
        if (b->writes[from].step == TO_WRITE && share_group(b, from, to, wait)) n += to - from;
    }
    return n;
}

/* Leaves the guards of this round's writes, and sets their step. */
static void leave_guards(struct batch *b, enum step step) {
    struct engi_guards *guards = &b->own->guards;
    for (size_t i = 0; i < b->base.n; i++) {
        struct write *w = &b->writes[i];
        if (w->step != SHARED) continue;
        engi_partition_leave(guards, key_of(b, i));
        if (w->exclusive) engi_guard_end_exclusive(guards, w->hash);
        else engi_guard_leave(guards, w->hash);
        w->exclusive = false;
        w->step = (uint8_t)step;
    }
    engi_guards_wake(guards);
}

/* Writes this round. Every row's guard is shared before the first one is held exclusively. */
static int write_shared(struct batch *b, bool patience, struct err *e) {
    struct local *own = b->own;
    struct ceilings ceilings = {0};
    b->puts = b->merges = 0;
    b->now_us = 0;
    int rc = fill(b, &ceilings) ? err_nomem(e) : kv_write(own->kv, b->kv, patience, e);
    leave_guards(b, rc ? TO_WRITE : WRITTEN);
    if (!rc) {
        engi_horizon_recorded(&own->newest, &ceilings.newest);
        engi_horizon_recorded(&own->assigned, &ceilings.clock);
        for (size_t i = 0; i < b->n_marks; i++)
            engi_mark_put(b->marks[i].table->marks.recorded, b->marks[i].place, true);
        for (size_t i = 0; i < b->base.n; i++)
            if (b->writes[i].step == WRITTEN) engi_changed(b->base.changes[i].table, engi_bucket_of_key(key_of(b, i)));
        atomic_fetch_add_explicit(&own->commit_locks.of[b->commit_lock].puts, b->puts, memory_order_relaxed);
        atomic_fetch_add_explicit(&own->commit_locks.of[b->commit_lock].merges, b->merges, memory_order_relaxed);
        put_back(b);
    }
    b->n_taken = 0;
    buf_clear(&b->taken_bytes, BYTES_KEPT);
    b->base.value.failed = false;
    kv_batch_clear(b->kv);
    b->n_marks = 0;
    return rc;
}

/* Whether the commit returns ENG_ROWS_HELD when all of its rows are held exclusively by others, to be
 * called back later. */
static bool puts_off(struct batch *b) {
    int64_t now = clock_mono_us(&clock_real);
    if (!b->note.fn || (b->deferred_since_us && now - b->deferred_since_us > ENG_ROWS_HELD_US)) return false;
    if (!b->deferred_since_us) b->deferred_since_us = now;
    return engi_guard_on_release(&b->own->guards, b->met, &b->note);
}

_Static_assert(ENG_BUSY == (int)KV_BUSY && ENG_CHANGED == (int)KV_CHANGED && ENG_ROWS_HELD < (int)KV_CHANGED,
               "the store's answers and the engine's are distinct");

/* Writes one round while it holds the commit's lock. *n: the number of writes done. Returns 0, -1,
 * KV_BUSY or ENG_ROWS_HELD. The commit holds neither commit lock nor guard while it waits for room in the
 * store. */
static int write_round(struct batch *b, bool patience, size_t *n, struct err *e) {
    pthread_rwlock_t *lock = &b->own->commit_locks.of[b->commit_lock].lock;
    engi_order_will_wait(ENGI_RANK_COMMIT, b->commit_lock);
    pthread_rwlock_rdlock(lock);
    engi_order_holds(ENGI_RANK_COMMIT, b->commit_lock);
    *n = share_guards(b, false);
    if (!*n && (patience || !puts_off(b))) *n = share_guards(b, true);
    int rc = *n ? write_shared(b, patience, e) : ENG_ROWS_HELD;
    pthread_rwlock_unlock(lock);
    engi_order_leaves(ENGI_RANK_COMMIT);
    return rc;
}

/* Writes the rounds that are left; earlier rounds may have written a part of the batch. */
static int write_all(struct batch *b, bool patience, struct err *e) {
    size_t left = 0, n;
    for (size_t i = 0; i < b->base.n; i++) left += b->writes[i].step == TO_WRITE;
    int rc = 0;
    for (; !rc && left; left -= n) rc = write_round(b, patience, &n, e);
    return rc;
}

/* Folds a row or fragments a partition after the commit. It reads only memory, because a loop may
 * run it. A failure leaves the work to a later write. */
static void fold(struct batch *b, size_t i) {
    struct slice key = key_of(b, i);
    struct err e;
    err_clear(&e);
    if (!b->base.changes[i].is_range) {
        if (engi_fold_row(b->own->kv, &b->own->guards, key, b->writes[i].hash)) engi_count(b->own->eng, ENG_STAT_FOLDS);
    } else if (engi_fragment_step(b->own, ENG_TIER_CACHE, slice_of(key.p, engi_prefix_len(key)), &e) < 0) return;
}

int engi_write_commit(struct eng_batch *batch, bool patience, struct err *e) {
    struct batch *b = batch_of(batch);
    struct local *own = b->own;
    int rc = engi_commit_check(own->eng, e);
    if (!rc) rc = write_all(b, patience, e);
    while (patience && rc == KV_BUSY) {
        int64_t none = 0;
        atomic_compare_exchange_strong(&own->waiting_since_us, &none, clock_machine_us(&clock_real));
        if (kv_wait_for_room(own->kv, e)) return -1;
        if (!(rc = engi_commit_check(own->eng, e))) rc = write_all(b, true, e);
    }
    if (patience && !rc && atomic_load_explicit(&own->waiting_since_us, memory_order_relaxed))
        atomic_store(&own->waiting_since_us, 0);
    for (size_t i = 0; !rc && i < batch->n; i++)
        if (b->writes[i].fold) fold(b, i);
    return rc;
}
