/* Reclaiming in the local store: a pass over the buckets that are marked to hold deletions or
 * expiring data. It removes dead data that is old enough, and then the marks, so that the
 * optimisations that a deletion switched off work again.
 *
 * A compaction sees only a part of a row's records, so it cannot tell whether an older write could
 * resurface. The reclaimer reads the whole row with its guard held exclusively and writes it back
 * without the dead parts. Deletions of ranges and partitions are removed gc_grace after they were
 * made, when all rows that they cover are gone. Compactions then drop the bytes. The pass holds no
 * lock or guard while the reclaimer keeps its pace (engine/front/reclaim.c).
 */
#include <assert.h>
#include <stdlib.h>
#include <time.h>

#include "base/murmur3.h"
#include "engine/front/lock_order.h"
#include "engine/local/fragment.h"
#include "engine/local/local.h"
#include "engine/local/row_cache.h"
#include "engine/rows/key.h"
#include "engine/rows/purge.h"
#include "engine/rows/partition.h"

enum { KEYS_PER_ITERATOR = 4096, EXCLUSIVE_TRIES = 100 };

/* A result in addition to 0, -1, KV_INCOMPLETE and what o->visited returns: start the partition again. */
enum { AGAIN = -100 };

struct pass {
    struct local *own;
    struct local_table *t; /* pinned: invariant 8 */
    const struct store_reclaim *o;
    uint16_t bucket;
    struct kv_iter *it;
    struct kv_iter_spec kv;
    struct buf prefix, seek, value, lower, upper;
    struct arena tomb_arena;
    struct engi_cover cover; /* the deletions of the partition */
    struct engi_purge_limits limits;
    int64_t ceiling;                 /* timestamps from this one on count as far */
    bool relieved; /* the partition's loose range deletions were made into fragments */
    bool skipped;  /* a row of the partition was busy */
    bool left[ENGI_MARKS];           /* marks that the bucket still needs */
    uint32_t since_open; /* of it: records visited */
};

/* ---- the iterator ---- */

static int reopen(struct pass *p, struct err *e) {
    if (p->it) p->it->ops->iter_free(p->it);
    p->it = kv_iter_new(p->own->kv, &p->kv, e);
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

/* The kind of the record at which the iterator is; ENGI_PAST if it is another
 * partition's. */
static enum engi_kind kind_at(const struct pass *p) {
    bool within = p->it->key.n > p->prefix.n && memcmp(p->it->key.p, p->prefix.p, p->prefix.n) == 0;
    return within ? p->it->key.p[p->prefix.n] : ENGI_PAST;
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
        if (engi_guard_try_exclusive(&p->own->guards, hash)) return true;
        nanosleep(&nap, NULL);
    }
    return false;
}

static int write_record(struct pass *p, struct slice key, const struct slice *value, struct err *e) {
    assert(engi_is_pinned(&p->t->front)); /* invariant 8 */
    struct kv_batch *b = kv_batch_new(p->own->kv);
    if (!b) return err_nomem(e);
    if (value) kv_batch_put(b, key, *value);
    else kv_batch_delete(b, key);
    int rc = kv_write(p->own->kv, b, false, e);
    kv_batch_free(b);
    if (rc == KV_BUSY)
        return err_set(e, ERR_OVERLOADED, "the store is flushing and compacting; reclaiming continues later");
    if (rc) return rc;
    engi_count(p->own->eng, ENG_STAT_RECLAIMED);
    if (!value) p->own->removed++;
    engi_changed(p->t, p->bucket);
    return 0;
}

/* A partition's record. */
static int write_one(struct pass *p, struct slice key, const struct slice *value, struct err *e) {
    engi_partition_share(&p->own->guards, key); /* invariant 7 (a) */
    int rc = write_record(p, key, value, e);
    engi_partition_leave(&p->own->guards, key);
    return rc;
}

/* Reads the whole row as it is now and writes it back without the dead parts, with the guard held
 * exclusively (invariant 3). */
static int clean_row(struct pass *p, struct slice key, struct err *e) {
    uint64_t hash = murmur3_hash(key);
    struct kv_value value;
    if (!take_exclusive(p, hash)) {
        p->skipped = p->left[ENGI_MARK_ROWS] = p->left[ENGI_MARK_DEAD] = p->left[ENGI_MARK_FAR] = true;
        return 0;
    }
    struct engi_purged purged = {.empty = true, .newest_ts = ENG_NO_TS};
    int rc = kv_get(p->own->kv, ENG_TIER_ANY, key, &value, e);
    if (rc > 0) {
        p->value.n = 0;
        rc = engi_purge_row(&p->limits, value.bytes, &p->value, &purged)
                 ? err_set(e, ERR_SERVER, "a stored row is damaged")
                 : 0;
        struct slice left = buf_slice(&p->value);
        if (!rc && purged.dropped) engi_row_cache_evict(p->own, hash, key);
        if (!rc && purged.dropped) rc = write_one(p, key, purged.empty ? NULL : &left, e);
        if (!rc && purged.expired) engi_tell_expiry(p->own->eng, key, value.bytes, p->limits.covered_ts);
        kv_release(value.handle);
    }
    engi_guard_release(&p->own->guards, hash);
    note_left(p, &purged);
    return rc;
}

/* Visits the row at which the iterator is. */
static int visit_row(struct pass *p, int64_t covered_ts, struct err *e) {
    struct engi_purged purged;
    p->limits.covered_ts = covered_ts;
    p->value.n = 0;
    if (engi_purge_row(&p->limits, p->it->value, &p->value, &purged))
        return err_set(e, ERR_SERVER, "a stored row is damaged");
    if (purged.newest_ts >= p->own->newest.opened) { /* an earlier run wrote it, perhaps far ahead of the clock */
        uint64_t hash = murmur3_hash(p->it->key);
        engi_guard_share(&p->own->guards, hash);
        engi_guard_raise(&p->own->guards, hash, purged.newest_ts);
        engi_guard_leave(&p->own->guards, hash);
    }
    if (!purged.dropped) note_left(p, &purged);
    else if (clean_row(p, p->it->key, e)) return -1;
    p->since_open++;
    return p->o->visited(p->o->arg);
}

static int visit_rows(struct pass *p, struct err *e) {
    int got = seek_to(p, ENGI_ROW, e);
    for (; got > 0 && kind_at(p) == ENGI_ROW; got = next(p, e)) {
        int64_t ts;
        int rc = engi_cover_row(&p->cover, p->it, buf_slice(&p->prefix), &p->seek, false, &ts, e);
        if (rc >= 0) rc = visit_row(p, ts, e);
        if (rc) return rc;
    }
    return got < 0 ? got : 0;
}

/* ---- deletions of ranges and of the partition ---- */

/* Removes the deletion's record, unless it has changed since the rows below it were checked: with
 * the lock of the writers of such a record, of fragments or of the record's key. */
static int remove_deletion(struct pass *p, bool range, struct err *e) {
    struct engi_guards *guards = &p->own->guards;
    uint64_t hash = murmur3_hash(p->it->key);
    struct kv_value value;
    if (range) engi_partition_fragment(guards, buf_slice(&p->prefix), true);
    else if (!take_exclusive(p, hash)) {
        p->left[ENGI_MARK_COVER] = true;
        return 0;
    }
    int rc = kv_get(p->own->kv, ENG_TIER_ANY, p->it->key, &value, e);
    if (rc > 0) {
        bool same = slice_eq(value.bytes, p->it->value);
        kv_release(value.handle);
        if (!same) p->left[ENGI_MARK_COVER] = true;
        rc = same ? write_one(p, p->it->key, NULL, e) : 0;
    }
    if (range) engi_partition_end_fragment(guards, buf_slice(&p->prefix));
    else engi_guard_release(guards, hash);
    return rc;
}

/* Visits the deletions after the rows below them, in the same snapshot: by then the rows that they
 * cover are removed. */
static int visit_deletions(struct pass *p, struct err *e) {
    struct engi_head h = engi_head_of(p->it, buf_slice(&p->prefix), &p->seek);
    int got, rc;
    h.all = true;
    while ((got = engi_head_next(&h, e)) > 0) {
        bool range = h.kind == ENGI_RANGE_TOMBSTONE, swallowed = range && h.tomb.ts <= h.partition_ts;
        if (!range && h.kind != ENGI_PARTITION_DELETION) continue;
        if (h.tomb.ts >= p->ceiling) p->left[ENGI_MARK_FAR] = true;
        bool is_old = !p->skipped && h.tomb.at < p->limits.before_seconds;
        if (!is_old && !swallowed) p->left[ENGI_MARK_COVER] = true;
        else if ((rc = remove_deletion(p, range, e))) return rc;
        p->since_open++;
        if ((rc = p->o->visited(p->o->arg))) return rc;
    }
    return got < 0 ? got : 0;
}

/* ---- partitions ---- */

/* Reads the head of the partition, and visits the static row. Returns AGAIN after it had the loose range
 * deletions fragmented. */
static int read_head(struct pass *p, struct err *e) {
    struct engi_head h = engi_head_of(p->it, buf_slice(&p->prefix), &p->seek);
    int got;
    arena_reset(&p->tomb_arena);
    engi_cover_begin(&p->cover, &p->tomb_arena);
    p->skipped = false;
    while ((got = engi_head_next(&h, e)) > 0) {
        int rc = h.kind == ENGI_STATIC ? visit_row(p, h.partition_ts, e) : 0;
        p->cover.tombs.partition_ts = h.partition_ts;
        if (rc) return rc;
        if (h.kind != ENGI_RANGE_TOMBSTONE) continue;
        if (!p->relieved) {
            p->relieved = true;
            return engi_fragment_all(p->own, h.prefix, e) || reopen(p, e) ? -1 : AGAIN;
        }
        if (engi_tombs_add(&p->cover.tombs, &h.tomb, e)) return -1;
    }
    p->cover.fragmented = h.fragmented;
    return got < 0 ? got : engi_tombs_fragment(&p->cover.tombs, e);
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
        p->relieved = false;
        do rc = read_head(p, e);
        while (rc == AGAIN);
        bool deletions = p->cover.fragmented || p->cover.tombs.n || p->cover.tombs.partition_ts != ENG_NO_TS;
        if (!rc) rc = visit_rows(p, e);
        if (!rc && deletions) rc = visit_deletions(p, e);
        if (!rc && p->since_open > KEYS_PER_ITERATOR) rc = reopen(p, e);
        if (!rc) got = seek_to(p, ENGI_PAST, e);
    }
    return rc ? rc : got < 0 ? got : 0;
}

static bool has_mark(const struct pass *p, int mark) {
    uint16_t place = engi_mark_place((enum engi_mark)mark, p->bucket);
    return engi_mark_has(p->t->marks.set, place) || engi_mark_has(p->t->marks.recorded, place);
}

static int run_bucket(struct pass *p, struct err *e) {
    struct engi_commit_locks *locks = &p->own->commit_locks;
    uint8_t first = (uint8_t)(p->bucket ^ 0x80); /* as the key has it, sign flipped */
    bool marked = false;
    for (int m = 0; m < ENGI_MARKS; m++) marked = marked || has_mark(p, m);
    if (!marked) return 0;
    p->lower.n = p->upper.n = 0;
    engi_key_table(&p->lower, p->t->front.id);
    buf_u8(&p->lower, first);
    engi_key_table(&p->upper, p->t->front.id + (first == 0xff));
    buf_u8(&p->upper, (uint8_t)(first + 1));
    if (buf_failed(&p->lower) || buf_failed(&p->upper)) return err_nomem(e);
    p->kv = (struct kv_iter_spec){.tier = ENG_TIER_ANY, .lower = buf_slice(&p->lower), .upper = buf_slice(&p->upper)};
    memset(p->left, 0, sizeof(p->left));
    /* With all commit locks no commit is between noting a mark and its write. Every later note is
     * seen. */
    engi_commit_locks_take(locks);
    for (int m = 0; m < ENGI_MARKS; m++)
        engi_mark_put(p->t->marks.touched, engi_mark_place((enum engi_mark)m, p->bucket), false);
    p->ceiling = atomic_load(&p->own->newest.ceiling);
    engi_commit_locks_leave(locks);
    int rc = visit_bucket(p, e);
    if (p->it) p->it->ops->iter_free(p->it);
    p->it = NULL;
    if (rc) return rc;
    /* Removes the marks that the bucket no longer needs, in the store first. */
    struct engi_marks *marks = &p->t->marks;
    engi_commit_locks_take(locks);
    for (int m = 0; m < ENGI_MARKS && !rc; m++) {
        uint16_t place = engi_mark_place((enum engi_mark)m, p->bucket);
        uint8_t key[ENGI_MARK_RECORD];
        if (m == ENGI_MARK_OLD_ROWS) continue;
        if (m == ENGI_MARK_FAR) engi_mark_put(marks->set, place, false); /* the guards hold them by now */
        if (!has_mark(p, m) || p->left[m] || engi_mark_has(marks->touched, place)) continue;
        store_u32(key, ENGI_TABLE_MARKS);
        store_u32(key + 4, p->t->front.id);
        store_u16(key + 8, place);
        rc = write_record(p, slice_of(key, sizeof(key)), NULL, e) ? -1 : 0;
        if (rc) break;
        engi_mark_put(marks->recorded, place, false);
        if (m == ENGI_MARK_COVER) atomic_fetch_add(&p->own->heals, 1);
        engi_mark_put(marks->set, place, false);
    }
    engi_commit_locks_leave(locks);
    return rc;
}

/* ---- a table ---- */

int local_reclaim(struct store *s, const struct store_reclaim *o, struct err *e) {
    struct local *own = local_of(s);
    struct local_table *t = o->front;
    uint64_t passed = 0;
    int64_t now = clock_wall_us(own->eng->clock) / 1000000, as_of = atomic_load(&t->as_of);
    for (size_t i = 0; i < ARRAY_LEN(t->passed); i++) passed |= atomic_load(&t->passed[i]);
    if (!o->whole && !passed) return 0;
    struct pass *p = calloc(1, sizeof(*p));
    if (!p) return err_nomem(e);
    *p = (struct pass){.own = own,
                       .t = t,
                       .o = o,
                       .limits = {.before_ts = INT64_MAX,
                                  .before_seconds = (now < as_of ? now : as_of) - atomic_load(&t->front.gc_grace)}};
    struct buf *bufs[] = {&p->prefix, &p->seek, &p->value, &p->lower, &p->upper};
    for (size_t i = 0; i < ARRAY_LEN(bufs); i++) buf_init(bufs[i], 0);
    arena_init(&p->tomb_arena, 4096, 0);
    engi_cover_init(&p->cover);
    /* From the position to the end of the table, and then the buckets before it that reads passed. */
    uint32_t first = o->whole ? (uint32_t)*o->position : 0;
    int rc = 0;
    for (uint32_t i = 0; i < ENGI_BUCKETS && !rc; i++) {
        bool of_pass = o->whole && first + i < ENGI_BUCKETS, last = o->whole && first + i == ENGI_BUCKETS - 1;
        p->bucket = (uint16_t)((first + i) % ENGI_BUCKETS);
        bool was_passed = engi_mark_has(t->passed, p->bucket);
        if (was_passed) engi_mark_put(t->passed, p->bucket, false);
        if (!of_pass && !was_passed) continue;
        rc = run_bucket(p, e);
        if (rc || !o->turn_over || !o->turn_over(o->arg)) continue;
        if (last || (o->whole && !of_pass)) break; /* the buckets that are left are for a later round */
        if (of_pass) *o->position = p->bucket + 1;
        rc = STORE_MORE;
    }
    for (size_t i = 0; i < ARRAY_LEN(bufs); i++) buf_fini(bufs[i]);
    arena_fini(&p->tomb_arena);
    engi_cover_fini(&p->cover);
    free(p);
    return rc;
}

void local_reclaimed(struct store *s) {
    struct local *own = local_of(s);
    kv_tidy(own->kv, own->removed);
    own->removed = 0;
}
