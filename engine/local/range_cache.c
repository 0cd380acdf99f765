#include "engine/local/range_cache.h"

#include "base/murmur3.h"
#include "engine/local/local.h"
#include "engine/local/table.h"
#include "engine/rows/key.h"

enum { RANGES_OF_RING = 8 /* of the largest, at least */ };

/* The next range of the partition in the list of a bucket that is locked. */
static struct engi_cached_range *next_range(struct engi_cached *x, uint64_t hash) {
    while (x && (x->hash != hash || x->kind != ENGI_CACHED_RANGE)) x = x->next;
    return (struct engi_cached_range *)x;
}

static size_t range_most(const struct engi_cache *c) {
    size_t most = c->ring_n / RANGES_OF_RING;
    return most < ENGI_CACHED_RANGE_MAX ? most : ENGI_CACHED_RANGE_MAX;
}

/* ---- misses ---- */

bool engi_range_cache_is_due(struct local *own, const struct engi_range_look *l, enum eng_tier tier) {
    return l->at.fills && engi_cache_is_due(own->cache, l->begin, l->at.state / ENGI_GUARD_TAKEN, tier);
}

void engi_range_cache_give_up(struct local *own, const struct engi_range_look *l) {
    engi_cache_set_need(own->cache, l->begin, ENGI_NEED_TWICE);
}

void engi_range_cache_count(struct local *own, const struct engi_range_look *l, bool hit) {
    if (l->at.table) engi_cache_count(own->cache, l->at.hash, ENGI_CACHED_RANGE, hit);
}

/* ---- finding ---- */

static bool has(const struct engi_cached_range *r, struct slice from, struct slice to) {
    return slice_cmp(r->lo, from) <= 0 && slice_cmp(to, r->hi) <= 0;
}

/* Removes the partition's ranges that are not valid any more: invariant 7. A scan that does not need its whole
 * range also takes one that has its begin, and some of its keys. */
static struct engi_cached_range *choose(struct engi_cache *c, struct engi_cache_bucket *b,
                                        const struct engi_range_want *w, const struct engi_range_look *l) {
    struct engi_cached_range *best = NULL;
    for (struct engi_cached_range *r = next_range(b->first, l->at.hash), *next; r; r = next) {
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

struct engi_cached_range *engi_range_cache_find(struct local *own, const struct engi_range_want *want,
                                                struct engi_range_look *look) {
    struct engi_cache *c = own->cache;
    struct slice begin = want->back ? want->to : want->from;
    uint64_t hash = murmur3_hash(slice_of(begin.p, engi_prefix_len(begin)));
    look->epoch = atomic_load_explicit(&c->epoch, memory_order_acquire);
    if (!engi_cache_look_begin(&look->at, want->table, engi_partition_guard(&own->guards, begin), hash)) return NULL;
    look->begin = murmur3_hash(begin) ^ want->back;
    struct engi_cache_bucket *b = engi_cache_bucket(c, hash);
    if (engi_bucket_lacks(b, hash) || !engi_bucket_try_lock(b)) return NULL;
    struct engi_cached_range *r = choose(c, b, want, look);
    if (r) {
        atomic_fetch_add_explicit(&r->head.refs, 1, memory_order_relaxed);
        r->head.used = r->was_hit = true;
    }
    engi_bucket_unlock(b);
    return r;
}

bool engi_range_cache_holds(const struct local *own, const struct engi_range_look *l) {
    /* In another epoch the table is gone. */
    return atomic_load_explicit(&own->cache->epoch, memory_order_acquire) == l->epoch && engi_cache_look_holds(&l->at);
}

/* ---- bringing in ---- */

bool engi_range_draft_init(struct engi_range_draft *d, struct engi_cache *of, bool back) {
    if (atomic_fetch_add_explicit(&of->drafts, 1, memory_order_relaxed) >= ENGI_RANGE_DRAFTS) {
        atomic_fetch_sub_explicit(&of->drafts, 1, memory_order_relaxed);
        return false;
    }
    *d = (struct engi_range_draft){.of = of, .back = back};
    buf_init(&d->rows, 0);
    buf_init(&d->ends, 0);
    buf_init(&d->lo, 0);
    buf_init(&d->hi, 0);
    return true;
}

void engi_range_draft_fini(struct engi_range_draft *d) {
    atomic_fetch_sub_explicit(&d->of->drafts, 1, memory_order_relaxed);
    buf_fini(&d->rows);
    buf_fini(&d->ends);
    buf_fini(&d->lo);
    buf_fini(&d->hi);
}

static size_t size_of(const struct engi_range_draft *d) {
    /* 3 bytes of the u32 may be before the ends */
    return sizeof(struct engi_cached_range) + d->lo.n + d->hi.n + sizeof(uint32_t) + d->ends.n + d->rows.n;
}

int engi_range_draft_add(struct engi_range_draft *d, struct slice key, struct slice value) {
    size_t prefix = engi_prefix_len(key);
    int kind = key.n > prefix ? key.p[prefix] : 0;
    if (kind != ENGI_ROW && kind != ENGI_STATIC) return -1;
    if (size_of(d) + sizeof(uint32_t) * 2 + key.n * 2 + value.n > range_most(d->of)) return -1;
    uint32_t n = (uint32_t)key.n;
    buf_put(&d->rows, &n, sizeof(n));
    buf_put_slice(&d->rows, key);
    buf_put_slice(&d->rows, value);
    uint32_t end = (uint32_t)d->rows.n;
    buf_put(&d->ends, &end, sizeof(end));
    d->n++;
    return buf_failed(&d->rows) || buf_failed(&d->ends) ? -1 : 0;
}

static struct slice put_bound(uint8_t **at, const struct buf *from) {
    struct slice s = slice_of(*at, from->n);
    memcpy(*at, from->p, from->n);
    *at += from->n;
    return s;
}

static struct engi_cached_range *make_range(struct engi_cache *c, const struct engi_range_look *l,
                                            const struct engi_range_draft *d) {
    struct engi_cached *head = engi_cached_new(c, &l->at, ENGI_CACHED_RANGE, size_of(d));
    struct engi_cached_range *r = (struct engi_cached_range *)head;
    if (!r) return NULL;
    uint8_t *at = (uint8_t *)(r + 1);
    r->n = d->n;
    r->was_hit = false;
    r->state = l->at.state;
    r->lo = put_bound(&at, &d->lo); /* next to the struct, because a search for a cached range compares both bounds */
    r->hi = put_bound(&at, &d->hi);
    uint32_t *ends = (uint32_t *)(void *)(at + (-(uintptr_t)at & (sizeof(*ends) - 1))), end = 0;
    uint8_t *bytes = (uint8_t *)(ends + d->n);
    r->ends = ends;
    r->bytes = bytes;
    const uint32_t *from = (const uint32_t *)(const void *)d->ends.p;
    for (uint32_t i = 0; i < d->n; i++) { /* in ascending order */
        uint32_t k = d->back ? d->n - 1 - i : i, begin = k ? from[k - 1] : 0, n = from[k] - begin;
        memcpy(bytes + end, d->rows.p + begin, n);
        ends[i] = end += n;
    }
    return r;
}

/* Removes the cached ranges that fresh makes needless, and, if the partition has too many cached
 * ranges, the one inserted first. Returns true if another cached range covers all of fresh. */
static bool is_needless(struct engi_cache *c, struct engi_cache_bucket *b, const struct engi_cached_range *fresh) {
    uint32_t n = 0;
    uint64_t hash = fresh->head.hash;
    struct engi_cached_range *first = NULL;
    for (struct engi_cached_range *r = next_range(b->first, hash), *next; r; r = next) {
        next = next_range(r->head.next, hash);
        bool same = r->state == fresh->state && r->head.generation == fresh->head.generation;
        if (same && has(r, fresh->lo, fresh->hi)) return true;
        if (!same || has(fresh, r->lo, r->hi)) {
            engi_bucket_remove(c, b, &r->head);
            continue;
        }
        n++;
        first = r;
    }
    if (n >= ENGI_RANGES_OF_PARTITION) engi_bucket_remove(c, b, &first->head);
    return false;
}

void engi_range_cache_keep(struct local *own, const struct engi_range_look *l, struct engi_range_draft *d) {
    struct engi_cache *c = own->cache;
    if (buf_failed(&d->lo) || buf_failed(&d->hi) || !d->lo.n || !d->hi.n || size_of(d) > range_most(c) ||
        !engi_range_cache_holds(own, l))
        return;
    struct engi_cached_range *r = make_range(c, l, d);
    if (!r) return;
    struct engi_cache_bucket *b = engi_cache_bucket(c, l->at.hash);
    engi_bucket_lock(b);
    if (engi_range_cache_holds(own, l) && !is_needless(c, b, r)) {
        engi_bucket_insert(c, b, &r->head);
        engi_cache_set_need(c, l->begin, ENGI_NEED_SAME);
    } else {
        engi_cached_unref(&r->head);
    }
    engi_bucket_unlock(b);
}
