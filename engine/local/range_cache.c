#include "engine/local/range_cache.h"

#include <assert.h>
#include <stdlib.h>

#include "base/hot.h"
#include "base/murmur3.h"
#include "engine/local/local.h"

enum {
    RANGE_MAX = 512 << 10 /* bytes, and at most an eighth of a shard of the cache */,
    RANGES_OF_RING = 8 /* of the largest, at least */
};

struct range {
    struct engi_cached head;
    uint32_t n;   /* keys */
    bool was_hit; /* under the bucket's lock */
    struct slice lo, hi;
    const uint32_t *ends; /* the end of each row in bytes; a row begins at the end of the one before */
    const uint8_t *bytes; /* of each row: [u32 bytes of key][key][value] */
    uint64_t state;       /* of the partition's guard */
};

static inline struct slice row_at(const struct range *r, uint32_t i) {
    uint32_t from = i ? r->ends[i - 1] : 0;
    return slice_of(r->bytes + from, r->ends[i] - from);
}
static inline struct slice row_key(struct slice row) {
    uint32_t n;
    memcpy(&n, row.p, sizeof(n));
    return slice_of(row.p + sizeof(n), n);
}
static inline struct slice row_value(struct slice row) {
    struct slice key = row_key(row);
    return slice_of(key.p + key.n, row.n - sizeof(uint32_t) - key.n);
}

/* The state of one scan's search, taken before the store is asked. */
struct look {
    struct engi_cache_look at; /* of the partition */
    uint64_t begin;            /* the scan's begin and direction, hashed: misses are counted by it */
    uint32_t epoch;
};

/* The records that an iterator has passed, in its order. */
struct draft {
    struct buf rows, ends, lo, hi; /* rows: as in a cached range; ends: u32 each */
    uint32_t n;
};

/* The iterator of a scan: goes through a cached range, and then through the store's iterator. */
struct range_iter {
    struct kv_iter it;
    struct local *own;
    struct kv_iter_spec spec;
    struct look look;
    struct range *range;    /* NULL means below answers */
    struct range *left;     /* that was left for below; NULL if none. Its rows stay */
    uint32_t at;            /* index of the cached range's key at which the iterator is */
    bool back;              /* the scan goes down */
    bool has_low, has_high; /* the cached range covers the scan's range on this side */
    bool began;             /* a key was given */
    struct kv_iter *below;
    bool notes;             /* what below passes */
    bool ended;             /* the notes reach the end of the scan's range */
    struct draft draft;
};

/* The next range of the partition in the list of a bucket that is locked. */
static struct range *next_range(struct engi_cached *x, uint64_t hash) {
    while (x && (x->hash != hash || x->kind != ENGI_CACHED_RANGE)) x = x->next;
    return (struct range *)x;
}

static size_t range_most(const struct engi_cache *c) {
    size_t most = c->ring_n / RANGES_OF_RING;
    return most < RANGE_MAX ? most : RANGE_MAX;
}

static bool is_due(struct local *own, const struct look *l, enum eng_tier tier) {
    return l->at.fills && engi_cache_is_due(own->cache, l->begin, l->at.state / ENGI_GUARD_TAKEN, tier);
}

static void count(struct local *own, const struct look *l, bool hit) {
    if (l->at.table) engi_cache_count(own->cache, l->at.hash, ENGI_CACHED_RANGE, hit);
}

/* ---- finding ---- */

static bool has(const struct range *r, struct slice from, struct slice to) {
    return slice_cmp(r->lo, from) <= 0 && slice_cmp(to, r->hi) <= 0;
}

/* Removes the partition's ranges that are not valid any more: invariant 7. A scan that does not
 * need its whole range also takes one that has its begin, and some of its keys. */
static struct range *choose(struct engi_cache *c, struct engi_cache_bucket *b, const struct engi_range_want *w,
                            const struct look *l) {
    struct range *best = NULL;
    for (struct range *r = next_range(b->first, l->at.hash), *next; r; r = next) {
        next = next_range(r->head.next, l->at.hash);
        bool begins = w->back ? slice_cmp(w->to, r->hi) <= 0 && slice_cmp(r->lo, w->to) < 0
                              : slice_cmp(r->lo, w->from) <= 0 && slice_cmp(w->from, r->hi) < 0;
        bool valid = r->state == l->at.state && r->head.generation == l->at.generation;
        if (!valid) {
            if (begins) engi_cache_set_need(c, l->begin, r->was_hit ? ENGI_NEED_FEWEST : ENGI_NEED_TWICE);
            engi_bucket_remove(c, b, &r->head);
        } else if (has(r, w->from, w->to)) {
            return r;
        } else if (begins && !w->whole) {
            best = r;
        }
    }
    return best;
}

static struct range *find_range(struct local *own, const struct engi_range_want *want, struct look *look) {
    struct engi_cache *c = own->cache;
    struct slice begin = want->back ? want->to : want->from;
    uint64_t hash = murmur3_hash(slice_of(begin.p, engi_prefix_len(begin)));
    look->epoch = atomic_load_explicit(&c->epoch, memory_order_acquire);
    if (!engi_cache_look_begin(&look->at, want->table, engi_partition_guard(&own->guards, begin), hash)) return NULL;
    look->begin = murmur3_hash(begin) ^ want->back;
    struct engi_cache_bucket *b = engi_cache_bucket(c, hash);
    if (engi_bucket_lacks(b, hash) || !engi_bucket_try_lock(b)) return NULL;
    struct range *r = choose(c, b, want, look);
    if (r) {
        atomic_fetch_add_explicit(&r->head.refs, 1, memory_order_relaxed);
        r->head.used = r->was_hit = true;
    }
    engi_bucket_unlock(b);
    return r;
}

static bool holds(const struct local *own, const struct look *l) {
    /* In another epoch the table is gone. */
    return atomic_load_explicit(&own->cache->epoch, memory_order_acquire) == l->epoch && engi_cache_look_holds(&l->at);
}

/* ---- bringing in ---- */

/* Does nothing if ENGI_RANGE_DRAFTS scans are noting already, some perhaps paused: then this one
 * reads without notes. */
static void start_notes(struct range_iter *i) {
    struct draft *d = &i->draft;
    i->notes = atomic_fetch_add_explicit(&i->own->cache->drafts, 1, memory_order_relaxed) < ENGI_RANGE_DRAFTS;
    if (!i->notes) {
        atomic_fetch_sub_explicit(&i->own->cache->drafts, 1, memory_order_relaxed);
        return;
    }
    *d = (struct draft){.n = 0};
    buf_init(&d->rows, 0);
    buf_init(&d->ends, 0);
    buf_init(&d->lo, 0);
    buf_init(&d->hi, 0);
}

static void forget_notes(struct range_iter *i) {
    if (!i->notes) return;
    i->notes = false;
    atomic_fetch_sub_explicit(&i->own->cache->drafts, 1, memory_order_relaxed);
    buf_fini(&i->draft.rows);
    buf_fini(&i->draft.ends);
    buf_fini(&i->draft.lo);
    buf_fini(&i->draft.hi);
}

/* This begin cannot become a cached range: more misses are needed the next time. */
static void give_up(struct range_iter *i) {
    forget_notes(i);
    engi_cache_set_need(i->own->cache, i->look.begin, ENGI_NEED_TWICE);
}

static size_t size_of(const struct draft *d) {
    /* 3 bytes of the u32 may be before the ends */
    return sizeof(struct range) + d->lo.n + d->hi.n + sizeof(uint32_t) + d->ends.n + d->rows.n;
}

/* Gives up if the draft becomes too large, has no memory, or cannot be kept. */
static void draft_add(struct range_iter *i, struct slice key, struct slice value) {
    struct draft *d = &i->draft;
    size_t prefix = engi_prefix_len(key);
    int kind = key.n > prefix ? key.p[prefix] : 0;
    if ((kind != ENGI_ROW && kind != ENGI_STATIC) ||
        size_of(d) + sizeof(uint32_t) * 2 + key.n * 2 + value.n > range_most(i->own->cache))
        return give_up(i);
    uint32_t n = (uint32_t)key.n;
    buf_put(&d->rows, &n, sizeof(n));
    buf_put_slice(&d->rows, key);
    buf_put_slice(&d->rows, value);
    uint32_t end = (uint32_t)d->rows.n;
    buf_put(&d->ends, &end, sizeof(end));
    d->n++;
    if (buf_failed(&d->rows) || buf_failed(&d->ends)) give_up(i);
}

static struct slice copy_bound(uint8_t **at, const struct buf *from) {
    struct slice s = slice_of(*at, from->n);
    memcpy(*at, from->p, from->n);
    *at += from->n;
    return s;
}

static struct range *make_range(const struct range_iter *i) {
    struct engi_cache *c = i->own->cache;
    const struct look *l = &i->look;
    const struct draft *d = &i->draft;
    struct engi_cached *head = engi_cached_new(c, &l->at, ENGI_CACHED_RANGE, size_of(d));
    struct range *r = (struct range *)head;
    if (!r) return NULL;
    uint8_t *at = (uint8_t *)(r + 1);
    r->n = d->n;
    r->was_hit = false;
    r->state = l->at.state;
    r->lo = copy_bound(&at, &d->lo); /* next to the struct, because a search for a cached range compares both bounds */
    r->hi = copy_bound(&at, &d->hi);
    uint32_t *ends = (uint32_t *)(void *)(at + (-(uintptr_t)at & (sizeof(*ends) - 1))), end = 0;
    uint8_t *bytes = (uint8_t *)(ends + d->n);
    r->ends = ends;
    r->bytes = bytes;
    const uint32_t *from = (const uint32_t *)(const void *)d->ends.p;
    for (uint32_t row = 0; row < d->n; row++) { /* in ascending order */
        uint32_t k = i->back ? d->n - 1 - row : row, begin = k ? from[k - 1] : 0, n = from[k] - begin;
        memcpy(bytes + end, d->rows.p + begin, n);
        end += n;
        ends[row] = end;
    }
    return r;
}

/* Makes the notes a cached range, if they are still valid. */
static void keep_range(struct range_iter *i) {
    struct local *own = i->own;
    struct engi_cache *c = own->cache;
    const struct look *l = &i->look;
    const struct draft *d = &i->draft;
    if (buf_failed(&d->lo) || buf_failed(&d->hi) || !d->lo.n || !d->hi.n || size_of(d) > range_most(c) ||
        !holds(own, l))
        return;
    struct range *r = make_range(i);
    if (!r) return;
    struct engi_cache_bucket *b = engi_cache_bucket(c, l->at.hash);
    struct range *first = NULL;
    uint32_t n = 0;
    engi_bucket_lock(b);
    bool keeps = holds(own, l);
    /* Removes the ranges that the new one makes needless, and, if the partition has too many, the
     * one inserted first. */
    for (struct range *x = keeps ? next_range(b->first, l->at.hash) : NULL, *next; x && keeps; x = next) {
        next = next_range(x->head.next, l->at.hash);
        bool same = x->state == r->state && x->head.generation == r->head.generation;
        keeps = !same || !has(x, r->lo, r->hi); /* otherwise another one covers all of the new one */
        bool needless = keeps && (!same || has(r, x->lo, x->hi));
        if (needless) engi_bucket_remove(c, b, &x->head);
        else first = x;
        n += !needless;
    }
    if (keeps) {
        if (n >= ENGI_RANGES_OF_PARTITION) engi_bucket_remove(c, b, &first->head);
        engi_bucket_insert(c, b, &r->head);
        engi_cache_set_need(c, l->begin, ENGI_NEED_SAME);
    } else {
        engi_cached_unref(&r->head);
    }
    engi_bucket_unlock(b);
}

/* ---- the iterator of a scan ---- */

/* A result in addition to those of a move: the cached range ends before the scan does. */
enum { OUTSIDE = 2 };

/* bytes of a cache line; distance of the prefetch after a row */
enum { LINE = 64, AHEAD = 512, ROW_LINES = 3 };

/* ---- in the cached range ---- */

/* Prefetches a row ahead, because most rows of cached ranges are not in the processor's cache when
 * they are read. */
static inline void fetch(const uint8_t *row, size_t ahead, unsigned lines) {
    uintptr_t from = (uintptr_t)row + ahead; /* may be after all rows, where a prefetch does nothing */
    for (unsigned i = 0; i < lines; i++) __builtin_prefetch((const void *)(from + i * LINE));
}

static inline int stand(struct range_iter *i, uint32_t at) {
    struct slice row = row_at(i->range, at);
    i->at = at;
    i->it.key = row_key(row);
    i->it.value = row_value(row);
    i->began = true;
    return 1;
}

static struct slice key_at(const struct range *r, uint32_t at) {
    return row_key(row_at(r, at));
}

static int past_high(struct range_iter *i) {
    i->at = i->range->n;
    return i->has_high ? 0 : OUTSIDE;
}

static int past_low(struct range_iter *i) {
    i->at = 0;
    return i->has_low ? 0 : OUTSIDE;
}

static inline int move_in_range(struct range_iter *i, enum kv_move move, struct slice key) {
    const struct range *r = i->range;
    if (move == KV_NEXT) return i->at + 1 < r->n ? stand(i, i->at + 1) : past_high(i);
    if (move == KV_PREV) return i->at ? stand(i, i->at - 1) : past_low(i);
    /* Most scans begin where the cached range does, and then need no search through keys outside
     * the processor's cache. */
    int c = move == KV_SEEK ? slice_cmp(key, r->lo) : 1;
    if (c < 0) return OUTSIDE;
    uint32_t at = 0, to = c ? r->n : 0; /* at: to the first key not below this one; n: there is none */
    while (at < to) {
        uint32_t mid = at + (to - at) / 2;
        if (slice_cmp(key_at(r, mid), key) < 0) at = mid + 1;
        else to = mid;
    }
    if (move == KV_SEEK) return at < r->n ? stand(i, at) : past_high(i);
    /* A slice excludes its end, so a key exactly there is not returned even if the cached range
     * does not have it. */
    if (at < r->n && slice_eq(key_at(r, at), key)) return stand(i, at);
    return at ? stand(i, at - 1) : past_low(i);
}

/* ---- notes of the store's iterator ---- */

static void put_bound(struct buf *b, struct slice key, bool behind) {
    b->n = 0;
    buf_put_slice(b, key);
    if (behind) buf_u8(b, 0); /* the next possible key */
}

static bool has_notes(const struct range_iter *i) { return i->back ? i->draft.hi.n : i->draft.lo.n; }

/* Adds the result of a move to the notes, which cover one range without gaps: the move continues
 * where the notes end, or begins them. */
static void note(struct range_iter *i, enum kv_move move, struct slice key, int got) {
    struct draft *d = &i->draft;
    struct buf *end = i->back ? &d->lo : &d->hi;
    bool begins = !has_notes(i);
    enum kv_move first = i->back ? KV_SEEK_BACK : KV_SEEK, next = i->back ? KV_PREV : KV_NEXT;
    bool at_end = move == KV_SEEK && !i->back && slice_eq(key, buf_slice(&d->hi));
    if (got < 0) return forget_notes(i);
    if (begins ? move != first : move != next && !at_end) return give_up(i);
    if (begins) put_bound(i->back ? &d->hi : &d->lo, key, i->back && !slice_eq(key, i->spec.upper));
    i->ended = got == 0;
    if (i->ended) put_bound(end, i->back ? i->spec.lower : i->spec.upper, false);
    else put_bound(end, i->it.key, !i->back);
    if (!i->ended) draft_add(i, i->it.key, i->it.value);
}

/* ---- the store's iterator ---- */

static int move_below(struct range_iter *i, enum kv_move move, struct slice key, struct err *e) {
    int got = i->below->ops->iter_move(i->below, move, key, e);
    if (got > 0) {
        i->it.key = i->below->key;
        i->it.value = i->below->value;
        i->began = true;
    }
    if (UNLIKELY(i->notes) && !i->ended) note(i, move, key, got);
    return got;
}

/* Switches from the cached range to the store's iterator, which continues at the range's end in the
 * direction of the move. The records returned so far are of the cached range's moment, so the rest
 * must be, too. */
static int leave(struct range_iter *i, enum kv_move move, struct slice key, struct err *e) {
    struct range *range = i->range;
    assert(!i->began || i->spec.tier == ENG_TIER_CACHE);
    if (!(i->below = kv_iter_new(i->own->kv, &i->spec, e))) return -1;
    bool same = holds(i->own, &i->look);
    if (i->began && !same) return KV_INCOMPLETE;
    i->range = NULL;
    i->left = range;
    i->it.stays = false;
    count(i->own, &i->look, false);
    bool ahead = move == KV_NEXT ||
                 (same && move == KV_SEEK && slice_cmp(key, range->lo) >= 0 && slice_cmp(key, range->hi) <= 0);
    if (ahead && same && is_due(i->own, &i->look, i->spec.tier)) start_notes(i);
    if (i->notes) { /* from the rows of the cached range on */
        put_bound(&i->draft.lo, range->lo, false);
        put_bound(&i->draft.hi, range->hi, false);
    }
    for (uint32_t k = 0; i->notes && k < range->n; k++) {
        struct slice row = row_at(range, k);
        draft_add(i, row_key(row), row_value(row));
    }
    if (ahead) return move_below(i, KV_SEEK, range->hi, e);
    if (move != KV_PREV) return move_below(i, move, key, e);
    int got = move_below(i, KV_SEEK_BACK, key_at(range, 0), e);
    return got > 0 ? move_below(i, KV_PREV, key, e) : got;
}

/* ---- as an iterator ---- */

/* Apart from iter_move, whose few instructions for the next row of a range it would double. */
static SELDOM int move_any(struct range_iter *i, enum kv_move move, struct slice key, struct err *e) {
    if (!i->range) return move_below(i, move, key, e);
    int got = move_in_range(i, move, key);
    return LIKELY(got != OUTSIDE) ? got : leave(i, move, key, e);
}

static int iter_move(struct kv_iter *it, enum kv_move move, struct slice key, struct err *e) {
    struct range_iter *i = (struct range_iter *)it;
    bool next = move == KV_NEXT && i->range && i->at + 1 < i->range->n;
    if (UNLIKELY(!next)) return kv_iter_lend(it, move_any(i, move, key, e), e);
    int got = stand(i, i->at + 1);
    fetch(i->it.value.p, i->it.value.n + AHEAD, ROW_LINES);
    return kv_iter_lend(it, got, e);
}

static void iter_free(struct kv_iter *it) {
    struct range_iter *i = (struct range_iter *)it;
    (void)kv_iter_lend(it, 0, NULL);
    if (i->range) count(i->own, &i->look, true);
    if (i->notes && has_notes(i)) keep_range(i);
    forget_notes(i);
    if (i->range) engi_cached_unref(&i->range->head);
    if (i->left) engi_cached_unref(&i->left->head);
    if (i->below) i->below->ops->iter_free(i->below);
    free(i);
}

static const struct kv_iter_ops range_ops = {.iter_move = iter_move, .iter_free = iter_free};

struct kv_iter *engi_range_iter_new(struct local *own, const struct kv_iter_spec *spec,
                                    const struct engi_range_want *want, struct err *e) {
    struct look look;
    struct range *range = find_range(own, want, &look);
    bool due = !range && is_due(own, &look, spec->tier);
    /* malloc, unlike calloc, takes it from the thread's own cache */
    struct range_iter *i = range || due ? malloc(sizeof(*i)) : NULL;
    if (i) *i = (struct range_iter){.it.ops = &range_ops, .own = own, .spec = *spec, .look = look, .back = want->back};
    if (i && range) {
        i->range = range;
        i->it.stays = !POISONS; /* kv_iter_lend makes copies */
        fetch(range->bytes, 0, AHEAD / LINE);
        i->has_low = slice_cmp(range->lo, want->from) <= 0;
        i->has_high = slice_cmp(want->to, range->hi) <= 0;
        return &i->it;
    }
    if (range) engi_cached_unref(&range->head);
    count(own, &look, false);
    struct kv_iter *below = kv_iter_new(own->kv, spec, e);
    if (!i || !below) {
        free(i);
        return below;
    }
    i->below = below;
    start_notes(i);
    return &i->it;
}
