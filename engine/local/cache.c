#include "engine/local/cache.h"

#include <assert.h>
#include <sched.h>
#include <stdlib.h>

#include "base/fault.h"
#include "base/hot.h"
#include "engine/front/lock_order.h"
#include "engine/local/local.h"

enum {
    BYTES_LEAST = 32 << 10,
    BYTES_PER_BUCKET = 128 /* of the cache, and as many per counter of misses */,
    BUCKETS_LEAST = 64,
    BYTES_PER_SHARD = 8 << 20 /* eight of the largest ranges fit into its ring */,
    RING_MOST = 1 << 30,
    BLOCK = 16 /* sizes of blocks are multiples */,
    SPINS = 64
};

/* ---- looks ---- */

bool engi_cache_look_begin(struct engi_cache_look *l, struct local_table *t, const _Atomic uint64_t *guard,
                           uint64_t hash) {
    *l = (struct engi_cache_look){.guard = guard, .hash = hash};
    if (!t || fault_left(FAULT_KV_READ) || fault_left(FAULT_KV_COLD)) return false;
    l->generation = atomic_load_explicit(&t->generation, memory_order_acquire);
    if (engi_table_is_changing(l->generation)) return false;
    l->table = t;
    l->state = atomic_load_explicit(guard, memory_order_acquire);
    l->fills = engi_guard_is_free(l->state);
    return true;
}

bool engi_cache_look_holds(const struct engi_cache_look *l) {
    return atomic_load(l->guard) == l->state &&
           atomic_load_explicit(&l->table->generation, memory_order_acquire) == l->generation;
}

/* ---- memory ---- */

static struct engi_cached *block_at(const struct engi_cache_shard *s, size_t at) {
    return (struct engi_cached *)(void *)(s->ring + at);
}

static void make_free_block(struct engi_cache_shard *s, size_t at, size_t n) {
    atomic_store_explicit(&block_at(s, at)->refs, 0, memory_order_relaxed);
    block_at(s, at)->size = (uint32_t)n;
}

struct engi_cache *engi_cache_new(size_t bytes) {
    if (bytes < BYTES_LEAST) return NULL;
    uint64_t n = BUCKETS_LEAST, shards = bytes / BYTES_PER_SHARD;
    while (n * 2 <= bytes / BYTES_PER_BUCKET) n *= 2;
    struct engi_cache *c = aligned_alloc(_Alignof(struct engi_cache), sizeof(*c));
    if (!c) return NULL;
    *c = (struct engi_cache){.n_buckets = n, .n_admissions = n};
    c->n_shards = shards < 1 ? 1 : shards < ENGI_CACHE_SHARDS ? (uint32_t)shards : ENGI_CACHE_SHARDS;
    size_t left = bytes - sizeof(*c) - n * (sizeof(c->buckets[0]) + sizeof(c->admissions[0]));
    c->ring_n = left / c->n_shards < RING_MOST ? left / c->n_shards / BLOCK * BLOCK : RING_MOST;
    c->buckets = calloc(n, sizeof(c->buckets[0]));
    c->admissions = calloc(n, sizeof(c->admissions[0]));
    c->rings = calloc(c->n_shards, c->ring_n);
    for (uint32_t i = 0; i < c->n_shards; i++) {
        pthread_mutex_init(&c->shards[i].lock, NULL);
        c->shards[i].ring = c->rings + i * c->ring_n;
        if (c->rings) make_free_block(&c->shards[i], 0, c->ring_n);
    }
    if (c->buckets && c->admissions && c->rings) return c;
    engi_cache_free(c);
    return NULL;
}

void engi_cache_clear(struct engi_cache *c) {
    if (!c) return;
    atomic_fetch_add(&c->epoch, 1);
    for (uint64_t i = 0; i < c->n_buckets; i++) {
        struct engi_cache_bucket *b = &c->buckets[i];
        if (!atomic_load_explicit(&b->word, memory_order_acquire)) continue; /* its memory was not used yet */
        engi_bucket_lock(b);
        while (b->first) engi_bucket_remove(c, b, b->first);
        engi_bucket_unlock(b);
    }
}

void engi_cache_free(struct engi_cache *c) {
    if (!c) return;
    for (uint32_t i = 0; i < c->n_shards; i++) pthread_mutex_destroy(&c->shards[i].lock);
    free(c->buckets);
    free((void *)c->admissions);
    free(c->rings);
    free(c);
}

/* ---- counters ---- */

static struct engi_cache_counters *counters_of(struct engi_cache *c, uint64_t hash) {
    return &c->counters[hash >> 32 & (ENGI_CACHE_COUNTERS - 1)];
}

void engi_cache_count(struct engi_cache *c, uint64_t hash, enum engi_cached_kind kind, bool hit) {
    struct engi_cache_counters *n = counters_of(c, hash);
    atomic_fetch_add_explicit(&(hit ? n->hits : n->misses)[kind == ENGI_CACHED_RANGE], 1, memory_order_relaxed);
}

struct engi_cache_stats engi_cache_stats(const struct engi_cache *c, enum engi_cached_kind kind) {
    struct engi_cache_stats sum = {0};
    int k = kind == ENGI_CACHED_RANGE;
    for (uint32_t i = 0; c && i < ENGI_CACHE_COUNTERS; i++) {
        const struct engi_cache_counters *n = &c->counters[i];
        sum.hits += atomic_load_explicit(&n->hits[k], memory_order_relaxed);
        sum.misses += atomic_load_explicit(&n->misses[k], memory_order_relaxed);
        sum.kept += atomic_load_explicit(&n->kept[k], memory_order_relaxed);
        sum.bytes += atomic_load_explicit(&n->bytes[k], memory_order_relaxed);
    }
    return sum;
}

/* ---- admission ---- */

struct admission { uint32_t tag, taken, misses, need_log, loop; };
enum { NEED_LOG_LEAST = 1, NEED_LOG_MOST = 6 };

static _Atomic uint32_t *admission_of(const struct engi_cache *c, uint64_t hash) {
    return &c->admissions[(hash * UINT64_C(0x9e3779b97f4a7c15) >> 32) & (c->n_admissions - 1)];
}

static struct admission admission_at(const struct engi_cache *c, uint64_t hash) {
    uint32_t v = atomic_load_explicit(admission_of(c, hash), memory_order_relaxed), tag = (uint32_t)(hash >> 55);
    struct admission d = {
        .tag = v >> 23, .taken = v >> 11 & 0xfff, .misses = v >> 4 & 0x7f, .need_log = v >> 1 & 7, .loop = v & 1};
    return d.tag == tag && d.need_log ? d : (struct admission){.tag = tag, .need_log = NEED_LOG_LEAST};
}

/* Two threads that store at once may lose a miss, which does no harm. */
static void set_admission(struct engi_cache *c, uint64_t hash, const struct admission *d) {
    atomic_store_explicit(admission_of(c, hash),
                          d->tag << 23 | d->taken << 11 | d->misses << 4 | d->need_log << 1 | d->loop,
                          memory_order_relaxed);
}

bool engi_cache_is_due(struct engi_cache *c, uint64_t hash, uint64_t taken, enum eng_tier tier) {
    struct admission d = admission_at(c, hash);
    uint32_t need = 1u << d.need_log;
    if (d.taken != (taken & 0xfff)) d.misses = d.loop = 0;
    d.taken = taken & 0xfff;
    d.misses += d.misses < need && !(tier == ENG_TIER_ANY && d.loop);
    d.loop = tier == ENG_TIER_CACHE;
    set_admission(c, hash, &d);
    return d.misses >= need;
}

void engi_cache_set_need(struct engi_cache *c, uint64_t hash, enum engi_cache_need need) {
    struct admission d = admission_at(c, hash);
    if (need == ENGI_NEED_FEWEST) d.need_log = NEED_LOG_LEAST;
    else if (need == ENGI_NEED_TWICE && d.need_log < NEED_LOG_MOST) d.need_log++;
    d.misses = 0;
    set_admission(c, hash, &d);
}

/* ---- buckets ---- */

bool engi_bucket_try_lock(struct engi_cache_bucket *b) {
    for (int i = 0; i < SPINS; i++)
        if (!(atomic_fetch_or(&b->word, ENGI_BUCKET_LOCKED) & ENGI_BUCKET_LOCKED)) return true;
    return false;
}

void engi_bucket_lock(struct engi_cache_bucket *b) {
    while (!engi_bucket_try_lock(b)) sched_yield();
}

/* The holder of the lock alone changes the word, except for the bit of the lock, which is set. */
static void set_word(struct engi_cache_bucket *b, uint64_t word) {
    assert(atomic_load_explicit(&b->word, memory_order_relaxed) & ENGI_BUCKET_LOCKED);
    atomic_store_explicit(&b->word, word, memory_order_release);
}

void engi_bucket_unlock(struct engi_cache_bucket *b) {
    set_word(b, atomic_load_explicit(&b->word, memory_order_relaxed) & ~ENGI_BUCKET_LOCKED);
}

static void count_kept(struct engi_cache *c, const struct engi_cached *x, uint64_t sign) {
    struct engi_cache_counters *n = counters_of(c, x->hash);
    int k = x->kind == ENGI_CACHED_RANGE;
    atomic_fetch_add_explicit(&n->kept[k], sign, memory_order_relaxed);
    atomic_fetch_add_explicit(&n->bytes[k], sign * x->size, memory_order_relaxed);
}

void engi_bucket_insert(struct engi_cache *c, struct engi_cache_bucket *b, struct engi_cached *entry) {
    entry->next = b->first;
    b->first = entry;
    set_word(b, atomic_load_explicit(&b->word, memory_order_relaxed) | engi_bucket_bit(entry->hash));
    count_kept(c, entry, 1);
}

void engi_bucket_remove(struct engi_cache *c, struct engi_cache_bucket *b, struct engi_cached *entry) {
    uint64_t word = ENGI_BUCKET_LOCKED;
    for (struct engi_cached **at = &b->first; *at;) {
        if (*at == entry) {
            *at = entry->next;
        } else {
            word |= engi_bucket_bit((*at)->hash);
            at = &(*at)->next;
        }
    }
    set_word(b, word);
    count_kept(c, entry, UINT64_MAX);
    engi_cached_unref(entry);
}

/* ---- entries ---- */

void engi_cached_unref(struct engi_cached *entry) {
    uint32_t before = atomic_fetch_sub_explicit(&entry->refs, 1, memory_order_release);
    assert(before);
}

/* Ends the gap, and begins a new one at this place. */
static void begin_gap(struct engi_cache_shard *s, size_t at) {
    if (s->gap_n) make_free_block(s, s->gap, s->gap_n);
    s->gap = at;
    s->gap_n = 0;
}

/* Moves the hand over the next block. */
static void pass_block(struct engi_cache *c, struct engi_cache_shard *s) {
    struct engi_cached *x = block_at(s, s->gap + s->gap_n);
    size_t n = x->size, end = s->gap + s->gap_n + n;
    if (!atomic_load_explicit(&x->refs, memory_order_acquire)) {
        s->gap_n += n;
        return;
    }
    struct engi_cache_bucket *b = engi_cache_bucket(c, x->hash);
    if (!engi_bucket_try_lock(b)) {
        begin_gap(s, end);
        return;
    }
    struct engi_cached **at = &b->first;
    while (*at && *at != x) at = &(*at)->next;
    bool alone = *at && atomic_load_explicit(&x->refs, memory_order_acquire) == 1, used = x->used;
    x->used = x->used && !alone;
    if (!alone || (used && x->kind == ENGI_CACHED_RANGE)) { /* it is being inserted or read, or is large */
        begin_gap(s, end);
    } else if (used) { /* invariant 13 */
        *at = memmove(s->ring + s->gap, x, n);
        s->gap += n;
    } else {
        engi_bucket_remove(c, b, x);
        s->gap_n += n;
    }
    engi_bucket_unlock(b);
}

struct engi_cached *engi_cached_new(struct engi_cache *c, const struct engi_cache_look *l, enum engi_cached_kind kind,
                                    size_t size) {
    struct engi_cache_shard *s = &c->shards[(l->hash >> 32) * c->n_shards >> 32];
    size_t n = (size + BLOCK - 1) / BLOCK * BLOCK, steps = 256 + n / BLOCK; /* this thread may be a loop's */
    if (!engi_mutex_try(&s->lock, ENGI_RANK_LEAF)) return NULL;
    for (; s->gap_n < n && steps; steps--) {
        if (s->gap + s->gap_n == c->ring_n) begin_gap(s, 0);
        pass_block(c, s);
    }
    struct engi_cached *entry = NULL;
    if (s->gap_n >= n) {
        entry = block_at(s, s->gap);
        *entry = (struct engi_cached){.refs = 1,
                                      .size = (uint32_t)n,
                                      .hash = l->hash,
                                      .generation = l->generation,
                                      .kind = (uint8_t)kind};
        s->gap += n;
        s->gap_n -= n;
    }
    engi_mutex_unlock(&s->lock, ENGI_RANK_LEAF);
    return entry;
}
