#include "engine/local/range_cache.h"

#include <assert.h>
#include <stdlib.h>

#include "base/murmur3.h"
#include "engine/local/eng.h"
#include "engine/local/lock_order.h"
#include "engine/local/table.h"
#include "engine/rows/key.h"
#include "engine/rows/purge.h"

enum {
    SHARDS_MOST = 32,
    SHARD_LEAST = 16 << 10,
    RANGES_OF_SHARD = 4 /* of the largest, at least */,
    BYTES_PER_HEAD = 4096,
    BYTES_PER_ADMISSION = 1024,
    MISSES_LEAST = 2,
    MISSES_MOST = 64
};

struct engi_range_shard {
    pthread_mutex_t lock; /* of what follows */
    struct engi_cached_range **heads; /* by hash */
    struct engi_cached_range *hand;   /* the cached range to evict next, unless it was read; NULL: none */
    _Atomic uint64_t bytes, ranges; /* read without it */
    char apart[64];
    _Atomic uint64_t hits, misses;
    _Atomic uint64_t *admissions; /* counters of misses, by the hash of a scan's begin */
    char apart_too[64];
};

static struct engi_range_shard *shard_of(struct engi_range_cache *r, uint64_t hash) {
    return &r->shards[(hash >> 32) * r->n_shards >> 32];
}
static struct engi_cached_range **head_of(const struct engi_range_cache *r, const struct engi_range_shard *s,
                                          uint64_t hash) {
    return &s->heads[hash & (r->n_heads - 1)];
}

/* ---- memory ---- */

static size_t power_of_two(size_t n) {
    size_t p = 16;
    while (p * 2 <= n) p *= 2;
    return p;
}

static int shard_init(const struct engi_range_cache *r, struct engi_range_shard *s) {
    pthread_mutex_init(&s->lock, NULL);
    s->heads = calloc(r->n_heads, sizeof(struct engi_cached_range *));
    s->admissions = calloc(r->n_admissions, sizeof(*s->admissions));
    return s->heads && s->admissions ? 0 : -1;
}

struct engi_range_cache *engi_range_cache_new(size_t bytes) {
    size_t n = bytes / ((size_t)RANGES_OF_SHARD * ENGI_CACHED_RANGE_MAX);
    if (bytes < SHARD_LEAST) return NULL;
    struct engi_range_cache *r = calloc(1, sizeof(*r));
    if (!r) return NULL;
    r->n_shards = n < 1 ? 1 : n > SHARDS_MOST ? SHARDS_MOST : (uint32_t)n;
    size_t each = bytes / r->n_shards;
    r->n_heads = power_of_two(each / BYTES_PER_HEAD);
    r->n_admissions = power_of_two(each / BYTES_PER_ADMISSION);
    r->most = each - r->n_heads * sizeof(struct engi_cached_range *) - r->n_admissions * sizeof(uint64_t) -
              sizeof(struct engi_range_shard);
    r->range_most = r->most / RANGES_OF_SHARD;
    if (r->range_most > ENGI_CACHED_RANGE_MAX) r->range_most = ENGI_CACHED_RANGE_MAX;
    r->shards = calloc(r->n_shards, sizeof(*r->shards));
    int rc = r->shards ? 0 : -1;
    for (uint32_t i = 0; r->shards && i < r->n_shards; i++)
        if (shard_init(r, &r->shards[i])) rc = -1;
    if (!rc) return r;
    engi_range_cache_free(r);
    return NULL;
}

void engi_cached_range_unref(struct engi_cached_range *r) {
    if (atomic_fetch_sub_explicit(&r->refs, 1, memory_order_acq_rel) == 1) free(r);
}

/* ---- a shard, locked ---- */

static void link_range(struct engi_range_cache *rs, struct engi_range_shard *s, struct engi_cached_range *r) {
    struct engi_cached_range **head = head_of(rs, s, r->hash);
    r->next = *head;
    *head = r;
    r->newer = s->hand ? s->hand : r; /* behind all others */
    r->older = s->hand ? s->hand->older : r;
    r->newer->older = r->older->newer = r;
    if (!s->hand) s->hand = r;
    atomic_fetch_add_explicit(&s->bytes, r->size, memory_order_relaxed);
    atomic_fetch_add_explicit(&s->ranges, 1, memory_order_relaxed);
}

/* Removes a cached range from its shard. A scan that reads it keeps its own reference. */
static void drop_range(struct engi_range_cache *rs, struct engi_range_shard *s, struct engi_cached_range *r) {
    struct engi_cached_range **at = head_of(rs, s, r->hash);
    while (*at != r) at = &(*at)->next;
    *at = r->next;
    if (s->hand == r) s->hand = r->newer == r ? NULL : r->newer;
    r->older->newer = r->newer;
    r->newer->older = r->older;
    atomic_fetch_sub_explicit(&s->bytes, r->size, memory_order_relaxed);
    atomic_fetch_sub_explicit(&s->ranges, 1, memory_order_relaxed);
    engi_cached_range_unref(r);
}

static void make_room(struct engi_range_cache *rs, struct engi_range_shard *s, size_t size) {
    while (s->hand && atomic_load_explicit(&s->bytes, memory_order_relaxed) + size > rs->most) {
        struct engi_cached_range *r = s->hand;
        s->hand = r->newer;
        if (r->used) r->used = false;
        else drop_range(rs, s, r);
    }
}

void engi_range_cache_clear(struct engi_range_cache *r) {
    if (!r) return;
    atomic_fetch_add(&r->epoch, 1);
    for (uint32_t i = 0; i < r->n_shards; i++) {
        struct engi_range_shard *s = &r->shards[i];
        engi_mutex_lock(&s->lock, ENGI_RANK_LEAF);
        while (s->hand) drop_range(r, s, s->hand);
        engi_mutex_unlock(&s->lock, ENGI_RANK_LEAF);
    }
}

void engi_range_cache_free(struct engi_range_cache *r) {
    if (!r) return;
    if (r->shards) engi_range_cache_clear(r);
    for (uint32_t i = 0; r->shards && i < r->n_shards; i++) {
        pthread_mutex_destroy(&r->shards[i].lock);
        free(r->shards[i].heads);
        free((void *)r->shards[i].admissions);
    }
    free(r->shards);
    free(r);
}

/* ---- admission counters ---- */

struct admission { uint64_t tag, begun, misses, need, loop; };

static struct admission admission_at(const struct engi_range_look *l) {
    uint64_t v = atomic_load_explicit(l->admission, memory_order_relaxed), tag = l->at.place >> 48;
    struct admission d = {
        .tag = v >> 48, .begun = v >> 16 & 0xffffffff, .misses = v >> 8 & 0xff, .need = v >> 1 & 0x7f, .loop = v & 1};
    return d.tag == tag && d.need ? d : (struct admission){.tag = tag, .need = MISSES_LEAST};
}

/* Stores the miss counter of a scan's begin. Two threads that store at once may lose a miss, which
 * does no harm. */
static void set_admission(const struct engi_range_look *l, const struct admission *d) {
    atomic_store_explicit(l->admission, d->tag << 48 | d->begun << 16 | d->misses << 8 | d->need << 1 | d->loop,
                          memory_order_relaxed);
}

bool engi_range_cache_is_due(const struct engi_range_look *l, enum eng_tier tier) {
    uint64_t begun = l->at.state / ENGI_GUARD_TAKEN & 0xffffffff;
    if (!l->at.fills) return false;
    struct admission d = admission_at(l);
    if (d.begun != begun) d.misses = d.loop = 0;
    d.begun = begun;
    d.misses += d.misses < d.need && !(tier == ENG_TIER_ANY && d.loop);
    d.loop = tier == ENG_TIER_CACHE;
    set_admission(l, &d);
    return d.misses >= d.need;
}

static void set_need(const struct engi_range_look *l, uint64_t need) {
    struct admission d = admission_at(l);
    d.need = need < MISSES_MOST ? need : MISSES_MOST;
    d.misses = 0;
    set_admission(l, &d);
}

void engi_range_cache_give_up(const struct engi_range_look *l) { set_need(l, admission_at(l).need * 2); }
static void make_easy(const struct engi_range_look *l) { set_need(l, MISSES_LEAST); }

/* ---- finding ---- */

static bool begin_look(struct eng *eng, const struct engi_range_want *w, struct engi_range_look *l) {
    struct engi_range_cache *r = eng->range_cache;
    struct slice begin = w->back ? w->to : w->from;
    uint64_t hash = murmur3_hash(slice_of(begin.p, engi_prefix_len(begin)));
    l->epoch = atomic_load_explicit(&r->epoch, memory_order_acquire);
    if (!engi_cache_look_begin(&l->at, w->table, engi_partition_guard(&eng->guards, begin), hash)) return false;
    l->at.place = murmur3_hash(begin) ^ w->back;
    l->admission = &shard_of(r, hash)->admissions[(l->at.place & (r->n_admissions - 1))];
    return true;
}

static bool has(const struct engi_cached_range *r, struct slice from, struct slice to) {
    return slice_cmp(r->lo, from) <= 0 && slice_cmp(to, r->hi) <= 0;
}

/* For a scan that takes partial cached ranges: whether the cached range has the scan's begin, and
 * some of its keys. */
static bool has_begin(const struct engi_cached_range *r, const struct engi_range_want *w) {
    if (w->back) return slice_cmp(w->to, r->hi) <= 0 && slice_cmp(r->lo, w->to) < 0;
    return slice_cmp(r->lo, w->from) <= 0 && slice_cmp(w->from, r->hi) < 0;
}

/* Invariant 7. */
static bool is_valid(const struct eng *eng, const struct engi_cached_range *r, const struct engi_range_look *l) {
    return r->state == l->at.state && r->generation == l->at.generation &&
           !engi_may_be_purged(eng, l->at.table, r->purged_from);
}

static struct engi_cached_range *choose(struct eng *eng, struct engi_range_shard *s, const struct engi_range_want *w,
                               const struct engi_range_look *l) {
    struct engi_cached_range *best = NULL;
    for (struct engi_cached_range *r = *head_of(eng->range_cache, s, l->at.hash), *next; r; r = next) {
        next = r->next;
        if (r->hash != l->at.hash) continue;
        bool begins = has_begin(r, w);
        if (!is_valid(eng, r, l)) {
            if (begins) (r->hits ? make_easy : engi_range_cache_give_up)(l);
            drop_range(eng->range_cache, s, r);
        } else if (has(r, w->from, w->to)) {
            return r;
        } else if (begins && !w->whole) {
            best = r;
        }
    }
    return best;
}

struct engi_cached_range *engi_range_cache_find(struct eng *eng, const struct engi_range_want *want,
                                                struct engi_range_look *look) {
    if (!begin_look(eng, want, look)) return NULL;
    struct engi_range_shard *s = shard_of(eng->range_cache, look->at.hash);
    if (!engi_mutex_try(&s->lock, ENGI_RANK_LEAF)) return NULL;
    struct engi_cached_range *r = choose(eng, s, want, look);
    if (r) {
        atomic_fetch_add_explicit(&r->refs, 1, memory_order_relaxed);
        r->used = true;
        r->hits++;
    }
    engi_mutex_unlock(&s->lock, ENGI_RANK_LEAF);
    return r;
}

bool engi_range_cache_holds(const struct eng *eng, const struct engi_range_look *l) {
    struct engi_range_cache *r = eng->range_cache;
    if (atomic_load_explicit(&r->epoch, memory_order_acquire) != l->epoch) return false; /* its table is gone */
    return engi_cache_look_holds(&l->at);
}

void engi_range_cache_count(struct eng *eng, const struct engi_range_look *l, bool hit) {
    if (!l->at.table) return;
    struct engi_range_shard *s = shard_of(eng->range_cache, l->at.hash);
    atomic_fetch_add_explicit(hit ? &s->hits : &s->misses, 1, memory_order_relaxed);
}

/* ---- bringing in ---- */

bool engi_range_draft_init(struct engi_range_draft *d, struct engi_range_cache *of, bool back) {
    if (atomic_fetch_add_explicit(&of->drafts, 1, memory_order_relaxed) >= ENGI_RANGE_DRAFTS) {
        atomic_fetch_sub_explicit(&of->drafts, 1, memory_order_relaxed);
        return false;
    }
    *d = (struct engi_range_draft){.of = of, .back = back, .purged_from = INT64_MAX};
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

int engi_range_draft_add(const struct eng *eng, struct engi_range_draft *d, struct slice key, struct slice value) {
    size_t prefix = engi_prefix_len(key);
    int kind = key.n > prefix ? key.p[prefix] : 0;
    if (kind != ENGI_ROW && kind != ENGI_STATIC) return -1;
    if (size_of(d) + sizeof(uint32_t) * 2 + key.n * 2 + value.n > eng->range_cache->range_most) return -1;
    int64_t from = engi_purge_from(value);
    if (from < d->purged_from) d->purged_from = from;
    uint32_t n = (uint32_t)key.n;
    buf_put(&d->rows, &n, sizeof(n));
    buf_put_slice(&d->rows, key);
    buf_put_slice(&d->rows, value);
    uint32_t end = (uint32_t)d->rows.n;
    buf_put(&d->ends, &end, sizeof(end));
    d->n++;
    return buf_failed(&d->rows) || buf_failed(&d->ends) || from == INT64_MIN ? -1 : 0;
}

static struct slice put_bound(uint8_t **at, const struct buf *from) {
    struct slice s = slice_of(*at, from->n);
    memcpy(*at, from->p, from->n);
    *at += from->n;
    return s;
}

/* In ascending order. */
static void put_rows(struct engi_cached_range *r, uint32_t *ends, uint8_t *bytes, const struct engi_range_draft *d) {
    const uint32_t *from = (const uint32_t *)(const void *)d->ends.p;
    uint32_t end = 0;
    r->n = d->n;
    r->ends = ends;
    r->bytes = bytes;
    for (uint32_t i = 0; i < d->n; i++) {
        uint32_t k = d->back ? d->n - 1 - i : i, at = k ? from[k - 1] : 0, n = from[k] - at;
        memcpy(bytes + end, d->rows.p + at, n);
        ends[i] = end += n;
    }
}

static struct engi_cached_range *make_range(const struct engi_range_look *l, const struct engi_range_draft *d) {
    struct engi_cached_range *r = malloc(size_of(d));
    if (!r) return NULL;
    *r = (struct engi_cached_range){.hash = l->at.hash,
                           .state = l->at.state,
                           .generation = l->at.generation,
                           .purged_from = d->purged_from,
                           .size = size_of(d)};
    atomic_init(&r->refs, 1);
    uint8_t *at = (uint8_t *)(r + 1);
    r->lo = put_bound(&at, &d->lo); /* next to the struct, because a search for a cached range compares both bounds */
    r->hi = put_bound(&at, &d->hi);
    uint32_t *ends = (uint32_t *)(void *)(at + (-(uintptr_t)at & (sizeof(*ends) - 1)));
    put_rows(r, ends, (uint8_t *)(ends + d->n), d);
    return r;
}

/* Drops the cached ranges that fresh makes needless, and, if the partition has too many cached
 * ranges, the one inserted first. Returns true if another cached range covers all of fresh. */
static bool is_needless(struct eng *eng, struct engi_range_shard *s, const struct engi_cached_range *fresh) {
    uint32_t n = 0;
    struct engi_cached_range *first = NULL;
    for (struct engi_cached_range *r = *head_of(eng->range_cache, s, fresh->hash), *next; r; r = next) {
        next = r->next;
        if (r->hash != fresh->hash) continue;
        bool same = r->state == fresh->state && r->generation == fresh->generation;
        if (same && has(r, fresh->lo, fresh->hi)) return true;
        if (!same || has(fresh, r->lo, r->hi)) {
            drop_range(eng->range_cache, s, r);
            continue;
        }
        n++;
        first = r;
    }
    if (n >= ENGI_RANGES_OF_PARTITION) drop_range(eng->range_cache, s, first);
    return false;
}

void engi_range_cache_keep(struct eng *eng, const struct engi_range_look *l, struct engi_range_draft *d) {
    if (buf_failed(&d->lo) || buf_failed(&d->hi) || !d->lo.n || !d->hi.n || size_of(d) > eng->range_cache->range_most ||
        !engi_range_cache_holds(eng, l))
        return;
    struct engi_cached_range *r = make_range(l, d);
    struct engi_range_shard *s = shard_of(eng->range_cache, l->at.hash);
    if (!r) return;
    bool locked = engi_mutex_try(&s->lock, ENGI_RANK_LEAF);
    if (locked && engi_range_cache_holds(eng, l) && !is_needless(eng, s, r)) {
        make_room(eng->range_cache, s, r->size);
        link_range(eng->range_cache, s, r);
        set_need(l, admission_at(l).need);
        r = NULL;
    }
    if (locked) engi_mutex_unlock(&s->lock, ENGI_RANK_LEAF);
    if (r) engi_cached_range_unref(r);
}

/* ---- figures ---- */

struct engi_cache_stats engi_range_cache_stats(const struct engi_range_cache *r) {
    struct engi_cache_stats sum = {0};
    for (uint32_t i = 0; r && i < r->n_shards; i++) {
        const struct engi_range_shard *s = &r->shards[i];
        sum.hits += atomic_load_explicit(&s->hits, memory_order_relaxed);
        sum.misses += atomic_load_explicit(&s->misses, memory_order_relaxed);
        sum.kept += atomic_load_explicit(&s->ranges, memory_order_relaxed);
        sum.bytes += atomic_load_explicit(&s->bytes, memory_order_relaxed);
    }
    return sum;
}
