#include "engine/local/row_cache.h"

#include <assert.h>
#include <sched.h>
#include <stdlib.h>

#include "base/hot.h"
#include "base/murmur3.h"
#include "engine/local/eng.h"
#include "engine/local/lock_order.h"
#include "engine/local/table.h"
#include "engine/rows/purge.h"

enum {
    WORD = 8,
    HEAD = 4 /* words */,
    WAYS = 7,
    RING_LEAST = 32 << 10,
    RING_MOST = 64 << 20,
    SHARDS_WANTED = 32,
    MOVES_MAX = 8,
    SPINS = 64
};
enum { BYTES_PER_BUCKET = 512, BYTES_PER_ADMISSION = 64 /* of the ring */ };
enum { ENTRY_MAX = HEAD + (ENGI_ROW_CACHE_KEY_MAX + ENGI_ROW_CACHE_VALUE_MAX) / WORD + 2, GAP = 2 * ENTRY_MAX };
_Static_assert(RING_LEAST / WORD >= GAP + 2 * ENTRY_MAX,
               "the largest entry fits into the smallest ring, wherever that ends");
enum { ABSENT = 1, PAD = 2 };

/* ---- the entries' fields in a bucket ---- */

#define READ_SINCE ((uint64_t)1)
#define POSITION_BITS 43
#define POSITION_MASK (((uint64_t)1 << POSITION_BITS) - 1)

static uint64_t tag_of(uint64_t hash) { return hash >> 26 << (POSITION_BITS + 1); }
static uint64_t place_of(uint64_t hash, uint64_t position) { return tag_of(hash) | (position & POSITION_MASK) << 1; }
static bool has_tag(uint64_t place, uint64_t hash) {
    return place && place >> (POSITION_BITS + 1) == tag_of(hash) >> (POSITION_BITS + 1);
}
static uint64_t position_of(uint64_t place) { return place >> 1 & POSITION_MASK; }
static bool is_same(uint64_t a, uint64_t b) { return (a | READ_SINCE) == (b | READ_SINCE); }

struct bucket {
    _Atomic uint32_t lock;
    uint32_t hand; /* under lock: the next place to evict when the bucket is full */
    _Atomic uint64_t places[WAYS]; /* 0: free. Stored under lock, but for READ_SINCE */
};

struct shard {
    pthread_mutex_t lock; /* of head, tail and writes to the ring */
    _Atomic uint64_t *ring;
    struct bucket *buckets;
    _Atomic uint8_t *admission; /* by hash: one byte of the hash of the row missed last */
    _Atomic uint64_t head, tail; /* positions: of the next entry, and of the oldest one */
    char apart[64];
    _Atomic uint64_t hits, misses, rows;
    char apart_too[64];
};

struct engi_row_cache {
    uint32_t n_shards;
    uint64_t ring_words, n_buckets, n_admissions; /* of a shard; powers of two */
    void *memory;
    struct shard shards[];
};

static size_t words_of(size_t bytes) { return (bytes + WORD - 1) / WORD; }

static struct shard *shard_of(struct engi_row_cache *c, uint64_t hash) {
    return &c->shards[((hash >> 32) * c->n_shards) >> 32];
}
static struct bucket *bucket_of(const struct engi_row_cache *c, const struct shard *s, uint64_t hash) {
    return &s->buckets[hash >> 8 & (c->n_buckets - 1)];
}

/* ---- memory ---- */

static size_t shard_bytes(size_t ring) {
    return ring + ring / BYTES_PER_BUCKET * sizeof(struct bucket) + ring / BYTES_PER_ADMISSION + sizeof(struct shard);
}

struct engi_row_cache *engi_row_cache_new(size_t bytes) {
    size_t ring = RING_LEAST;
    while (ring < RING_MOST && bytes / shard_bytes(ring) >= 2 * SHARDS_WANTED) ring *= 2;
    uint32_t n = (uint32_t)(bytes / shard_bytes(ring));
    struct engi_row_cache *c = n ? calloc(1, sizeof(*c) + n * sizeof(c->shards[0])) : NULL;
    if (!c) return NULL;
    *c = (struct engi_row_cache){.n_shards = n,
                                 .ring_words = ring / WORD,
                                 .n_buckets = ring / BYTES_PER_BUCKET,
                                 .n_admissions = ring / BYTES_PER_ADMISSION};
    size_t each = ring + c->n_buckets * sizeof(struct bucket) + c->n_admissions;
    uint8_t *p = c->memory = calloc(n + 1, each);
    if (!p) {
        free(c);
        return NULL;
    }
    p += -(uintptr_t)p % sizeof(struct bucket);
    for (uint32_t i = 0; i < n; i++, p += each) {
        struct shard *s = &c->shards[i];
        pthread_mutex_init(&s->lock, NULL);
        s->ring = (_Atomic uint64_t *)(void *)p;
        s->buckets = (struct bucket *)(void *)(p + ring);
        s->admission = (_Atomic uint8_t *)(p + ring + c->n_buckets * sizeof(struct bucket));
        s->head = s->tail = c->ring_words; /* so that no place is 0 */
    }
    return c;
}

void engi_row_cache_free(struct engi_row_cache *c) {
    for (uint32_t i = 0; c && i < c->n_shards; i++) pthread_mutex_destroy(&c->shards[i].lock);
    if (c) free(c->memory);
    free(c);
}

/* ---- buckets ---- */

static void lock(struct bucket *b) {
    for (int i = 1; atomic_exchange(&b->lock, 1); i++)
        if (i % SPINS == 0) sched_yield();
}

static void unlock(struct bucket *b) { atomic_store_explicit(&b->lock, 0, memory_order_release); }

static uint64_t place_at(const struct bucket *b, int i) {
    return atomic_load_explicit(&b->places[i], memory_order_acquire);
}

static void set_place(struct shard *s, struct bucket *b, int i, uint64_t place) {
    assert(atomic_load_explicit(&b->lock, memory_order_relaxed));
    uint64_t before = atomic_load_explicit(&b->places[i], memory_order_relaxed);
    atomic_store_explicit(&b->places[i], place, memory_order_release);
    if (!before && place) atomic_fetch_add_explicit(&s->rows, 1, memory_order_relaxed);
    if (before && !place) atomic_fetch_sub_explicit(&s->rows, 1, memory_order_relaxed);
}

/* ---- entries ----
 *
 * Words are read with acquire and written with release: a reader that sees an overwritten word also
 * sees that the bucket no longer refers to the old entry. */

struct entry {
    const _Atomic uint64_t *words;
    size_t key_n, value_n, n;
    uint32_t flags;
};

static uint64_t word(const _Atomic uint64_t *w) { return atomic_load_explicit(w, memory_order_acquire); }
static void write_word(_Atomic uint64_t *w, uint64_t v) { atomic_store_explicit(w, v, memory_order_release); }

static struct entry entry_at(const struct engi_row_cache *c, const struct shard *s, uint64_t position) {
    const _Atomic uint64_t *w = s->ring + (position & (c->ring_words - 1));
    uint64_t head = word(w);
    return (struct entry){.words = w,
                          .n = head & 0xffff,
                          .key_n = head >> 16 & 0xffff,
                          .value_n = head >> 32 & 0xffff,
                          .flags = (uint32_t)(head >> 48)};
}

/* Whether an entry that may be overwritten at this moment has lengths within bounds, so that it can
 * be read. */
static bool is_sound(const struct engi_row_cache *c, const struct shard *s, const struct entry *x) {
    size_t left = c->ring_words - (size_t)(x->words - s->ring);
    return x->value_n <= ENGI_ROW_CACHE_VALUE_MAX && x->key_n <= ENGI_ROW_CACHE_KEY_MAX &&
           HEAD + words_of(x->key_n) + words_of(x->value_n) <= left;
}

static uint64_t word_from(const uint8_t *p, size_t n) {
    uint64_t v = 0;
    memcpy(&v, p, n < WORD ? n : WORD);
    return v;
}

static inline __attribute__((always_inline)) bool has_key(const struct entry *x, struct slice key) {
    if (x->key_n != key.n) return false;
    size_t whole = key.n / WORD;
    for (size_t i = 0; i < whole; i++)
        if (word(x->words + HEAD + i) != word_from(key.p + i * WORD, WORD)) return false;
    return key.n % WORD == 0 || word(x->words + HEAD + whole) == word_from(key.p + whole * WORD, key.n % WORD);
}

/* The arena has room for whole words. */
static uint8_t *copy_value(const struct entry *x, struct arena *a) {
    const _Atomic uint64_t *from = x->words + HEAD + words_of(x->key_n);
    size_t n = words_of(x->value_n);
    uint8_t *to = arena_alloc(a, n * WORD);
    for (size_t i = 0; to && i < n; i++) {
        uint64_t v = word(from + i);
        memcpy(to + i * WORD, &v, WORD);
    }
    return to;
}

/* ---- finding ---- */

/* Copies the entry of one place of the bucket. MISS: the entry is another row's, or is gone. */
static int take(struct eng *eng, struct shard *s, struct bucket *b, int i, struct slice key, struct arena *a,
                struct engi_cache_look *look, struct slice *value) {
    uint64_t place = place_at(b, i);
    if (!has_tag(place, look->hash)) return ENGI_ROW_CACHE_MISS;
    struct entry x = entry_at(eng->row_cache, s, position_of(place));
    if (!is_sound(eng->row_cache, s, &x) || !has_key(&x, key)) return ENGI_ROW_CACHE_MISS;
    int64_t from = (int64_t)word(x.words + 2);
    uint64_t generation = word(x.words + 3);
    uint8_t *copy = x.flags & ABSENT ? NULL : copy_value(&x, a);
    if (!is_same(place_at(b, i), place) || generation != look->generation || engi_may_be_purged(eng, look->table, from))
        return ENGI_ROW_CACHE_MISS;
    if (!copy && !(x.flags & ABSENT)) return ENGI_ROW_CACHE_MISS; /* no memory: the read of the store reports it */
    uint64_t seen = place & ~READ_SINCE;
    if (!(place & READ_SINCE))
        (void)atomic_compare_exchange_strong_explicit(&b->places[i], &seen, place | READ_SINCE, memory_order_relaxed,
                                                      memory_order_relaxed);
    look->place = place | READ_SINCE;
    *value = slice_of(copy, x.value_n);
    return copy != NULL;
}

int engi_row_cache_find(struct eng *eng, struct engi_table *t, struct slice key, struct arena *a,
                        struct engi_cache_look *look, struct slice *value) {
    uint64_t hash = murmur3_hash(key);
    struct engi_table *of = key.n <= ENGI_ROW_CACHE_KEY_MAX ? t : NULL;
    if (!engi_cache_look_begin(look, of, &engi_guard(&eng->guards, hash)->state, hash)) return ENGI_ROW_CACHE_MISS;
    struct shard *s = shard_of(eng->row_cache, look->hash);
    struct bucket *b = bucket_of(eng->row_cache, s, look->hash);
    for (int i = 0; i < WAYS; i++) {
        int got = take(eng, s, b, i, key, a, look, value);
        if (got == ENGI_ROW_CACHE_MISS) continue;
        atomic_fetch_add_explicit(&s->hits, 1, memory_order_relaxed);
        return got;
    }
    return ENGI_ROW_CACHE_MISS;
}

bool engi_row_cache_still(const struct eng *eng, const struct engi_cache_look *look) {
    const struct bucket *b = bucket_of(eng->row_cache, shard_of(eng->row_cache, look->hash), look->hash);
    for (int i = 0; i < WAYS; i++)
        if (is_same(place_at(b, i), look->place)) return true;
    return false;
}

/* ---- forgetting ---- */

void engi_row_cache_prefetch(struct engi_row_cache *c, uint64_t hash) {
    __builtin_prefetch(bucket_of(c, shard_of(c, hash), hash));
}

/* Whether the bucket has no entry of the row, for a writer that has taken the row's guard. Most rows
 * that are written are not cached: their bucket is only read, so that it need not be in memory and
 * stays in every processor's cache.
 *
 * Invariant 6 (a): a thread that is inserting holds the bucket's lock when it looks at the guard.
 * Of the operations on lock and guard, which are in one order (seq_cst), either this thread's load
 * of the lock comes first; then the other thread finds the guard taken. Or this thread finds the
 * bucket locked, or unlocked with the entry. */
static bool is_surely_absent(const struct bucket *b, uint64_t hash) {
    if (atomic_load(&b->lock)) return false;
    for (int i = 0; i < WAYS; i++)
        if (has_tag(place_at(b, i), hash)) return false;
    return true;
}

static int find_position(const struct bucket *b, uint64_t hash, uint64_t position) {
    for (int i = 0; i < WAYS; i++)
        if (is_same(place_at(b, i), place_of(hash, position))) return i;
    return -1;
}

/* The caller holds the bucket's lock, so that none of its entries is overwritten. */
static int find_key(const struct engi_row_cache *c, const struct shard *s, const struct bucket *b, uint64_t hash,
                    struct slice key) {
    for (int i = 0; i < WAYS; i++) {
        uint64_t place = place_at(b, i);
        if (!has_tag(place, hash)) continue;
        struct entry x = entry_at(c, s, position_of(place));
        if (has_key(&x, key)) return i;
    }
    return -1;
}

void engi_row_cache_evict(struct eng *eng, uint64_t hash, struct slice key) {
    struct engi_row_cache *c = eng->row_cache;
    assert(!engi_guard_is_free(engi_guard_state(&eng->guards, hash))); /* invariant 6 (b) */
    if (!c || key.n > ENGI_ROW_CACHE_KEY_MAX) return;
    struct shard *s = shard_of(c, hash);
    struct bucket *b = bucket_of(c, s, hash);
    if (is_surely_absent(b, hash)) return;
    lock(b);
    int i = find_key(c, s, b, hash, key);
    if (i >= 0) set_place(s, b, i, 0);
    unlock(b);
}

/* Copies the value of an entry that cannot be overwritten meanwhile. Returns false if the entry
 * differs from the store's answer, or may soon. */
static bool copy_out(struct eng *eng, const struct engi_cache_look *look, const struct entry *x, struct buf *out,
                     bool *absent) {
    if (word(x->words + 3) != look->generation || engi_may_be_purged(eng, look->table, (int64_t)word(x->words + 2)))
        return false;
    const _Atomic uint64_t *from = x->words + HEAD + words_of(x->key_n);
    uint8_t *to = buf_reserve(out, words_of(x->value_n) * WORD);
    if (!to) return false;
    for (size_t i = 0; i < words_of(x->value_n); i++) {
        uint64_t v = word(from + i);
        memcpy(to + i * WORD, &v, WORD);
    }
    out->n += x->value_n;
    *absent = x->flags & ABSENT;
    return true;
}

bool engi_row_cache_evict_copy(struct eng *eng, struct engi_table *t, uint64_t hash, struct slice key, struct buf *out,
                             bool *absent, struct engi_cache_look *look) {
    struct engi_row_cache *c = eng->row_cache;
    uint64_t guard = engi_guard_state(&eng->guards, hash);
    assert(!engi_guard_is_free(guard)); /* invariant 6 (b) */
    if (!c || key.n > ENGI_ROW_CACHE_KEY_MAX) return false;
    struct shard *s = shard_of(c, hash);
    struct bucket *b = bucket_of(c, s, hash);
    if (LIKELY(is_surely_absent(b, hash))) return false;
    lock(b);
    bool known = false;
    int i = find_key(c, s, b, hash, key);
    if (i >= 0) {
        struct entry x = entry_at(c, s, position_of(place_at(b, i)));
        *look = (struct engi_cache_look){.table = t,
                                         .guard = &engi_guard(&eng->guards, hash)->state,
                                         .hash = hash,
                                         .state = engi_guard_left(guard)};
        if (t) look->generation = atomic_load_explicit(&t->generation, memory_order_acquire);
        known = t && engi_guard_is_alone(guard) && copy_out(eng, look, &x, out, absent);
        set_place(s, b, i, 0);
    }
    unlock(b);
    return known;
}

void engi_row_cache_clear(struct engi_row_cache *c) {
    for (uint32_t k = 0; c && k < c->n_shards; k++) {
        struct shard *s = &c->shards[k];
        for (uint64_t at = 0; at < c->n_buckets; at++) {
            lock(&s->buckets[at]);
            for (int i = 0; i < WAYS; i++) set_place(s, &s->buckets[at], i, 0);
            unlock(&s->buckets[at]);
        }
    }
}

/* ---- inserting; the shard is locked ---- */

static uint64_t left_to_end(const struct engi_row_cache *c, uint64_t position) {
    return c->ring_words - (position & (c->ring_words - 1));
}

/* The words of the ring that an entry of n words takes, with the rest of the ring if the entry does
 * not fit there. */
static uint64_t room_for(const struct engi_row_cache *c, const struct shard *s, size_t n) {
    uint64_t left = left_to_end(c, atomic_load_explicit(&s->head, memory_order_relaxed));
    return n + (left < n ? left : 0);
}

/* Claims n words of the ring that no bucket refers to, and returns their position. */
static uint64_t reserve_words(const struct engi_row_cache *c, struct shard *s, size_t n) {
    uint64_t head = atomic_load_explicit(&s->head, memory_order_relaxed), left = left_to_end(c, head);
    if (left < n) {
        write_word(s->ring + (head & (c->ring_words - 1)), left | (uint64_t)PAD << 48);
        head += left;
    }
    assert(head + n - atomic_load_explicit(&s->tail, memory_order_relaxed) <= c->ring_words);
    atomic_store_explicit(&s->head, head + n, memory_order_relaxed);
    return head;
}

/* Removes the oldest entry from the ring. If the entry was read since its insertion and moves is
 * true, it is inserted again first. */
static void pass_oldest(struct engi_row_cache *c, struct shard *s, bool moves) {
    uint64_t tail = atomic_load_explicit(&s->tail, memory_order_relaxed);
    struct entry x = entry_at(c, s, tail);
    if (!(x.flags & PAD)) {
        uint64_t hash = word(x.words + 1), to = 0;
        struct bucket *b = bucket_of(c, s, hash);
        int i = find_position(b, hash, tail);
        if (i >= 0 && moves && place_at(b, i) & READ_SINCE) {
            to = reserve_words(c, s, x.n);
            for (size_t k = 0; k < x.n; k++) write_word(s->ring + (to & (c->ring_words - 1)) + k, word(x.words + k));
        }
        lock(b);
        i = find_position(b, hash, tail);
        if (i >= 0) set_place(s, b, i, to ? place_of(hash, to) : 0);
        unlock(b);
    }
    atomic_store_explicit(&s->tail, tail + x.n, memory_order_relaxed);
}

/* Frees room for n words and for a gap behind them, into which the oldest entry can be moved. */
static void make_room(struct engi_row_cache *c, struct shard *s, size_t n) {
    for (int moves = 0;; moves++) {
        uint64_t used = atomic_load_explicit(&s->head, memory_order_relaxed) -
                        atomic_load_explicit(&s->tail, memory_order_relaxed);
        if (c->ring_words - used >= room_for(c, s, n) + GAP) return;
        pass_oldest(c, s, moves < MOVES_MAX);
    }
}

/* Returns what follows. */
static _Atomic uint64_t *write_bytes(_Atomic uint64_t *w, struct slice s) {
    size_t whole = s.n / WORD;
    for (size_t i = 0; i < whole; i++) write_word(w++, word_from(s.p + i * WORD, WORD));
    if (s.n % WORD) write_word(w++, word_from(s.p + whole * WORD, s.n % WORD));
    return w;
}

static void write_entry(_Atomic uint64_t *w, const struct engi_cache_look *look, struct slice key,
                        const struct slice *value, size_t n, int64_t from) {
    write_word(w, n | (uint64_t)key.n << 16 | (uint64_t)(value ? value->n : 0) << 32 |
                      (uint64_t)(value ? 0 : ABSENT) << 48);
    write_word(w + 1, look->hash);
    write_word(w + 2, (uint64_t)from);
    write_word(w + 3, look->generation);
    w += HEAD;
    w = write_bytes(w, key);
    if (value) write_bytes(w, *value);
}

/* Chooses a place of the bucket: a free one, or one whose entry was not read since, or the next
 * one. */
static int choose_place(struct bucket *b) {
    for (int i = 0; i < WAYS; i++)
        if (!place_at(b, i)) return i;
    int i = (int)(b->hand++ % WAYS);
    for (int k = 0; k < WAYS; k++)
        if (!(place_at(b, (i + k) % WAYS) & READ_SINCE)) return (i + k) % WAYS;
    return i;
}

static void insert(struct eng *eng, struct shard *s, const struct engi_cache_look *look, struct slice key,
                     const struct slice *value, int64_t from) {
    struct engi_row_cache *c = eng->row_cache;
    struct bucket *b = bucket_of(c, s, look->hash);
    size_t n = HEAD + words_of(key.n) + (value ? words_of(value->n) : 0);
    make_room(c, s, n);
    uint64_t at = reserve_words(c, s, n);
    write_entry(s->ring + (at & (c->ring_words - 1)), look, key, value, n, from);
    lock(b);
    int same = find_key(c, s, b, look->hash, key);
    /* Invariant 6 (a) and (c): a writer of a row of the guard, or a change of the table, comes after
     * the bucket was unlocked and then evicts the entry; or it comes before the bucket was locked,
     * and the look does not hold. */
    if (engi_cache_look_holds(look)) set_place(s, b, same >= 0 ? same : choose_place(b), place_of(look->hash, at));
    unlock(b);
}

/* Whether a read has probably missed the row before. Only then it is inserted, so that rows read
 * once do not evict rows read many times. */
static bool was_missed(const struct engi_row_cache *c, struct shard *s, uint64_t hash) {
    _Atomic uint8_t *admission = &s->admission[(hash * UINT64_C(0x9e3779b97f4a7c15) >> 32) & (c->n_admissions - 1)];
    uint8_t mine = (uint8_t)hash;
    if (atomic_load_explicit(admission, memory_order_relaxed) == mine) return true;
    atomic_store_explicit(admission, mine, memory_order_relaxed);
    return false;
}

/* Inserts the row, unless another thread is inserting into the shard. */
static void try_insert(struct eng *eng, struct shard *s, const struct engi_cache_look *look, struct slice key,
                         const struct slice *value) {
    int64_t from = value ? engi_purge_from(*value) : INT64_MAX;
    if (engi_may_be_purged(eng, look->table, from) || !engi_cache_look_holds(look)) return;
    if (!engi_mutex_try(&s->lock, ENGI_RANK_LEAF)) return;
    insert(eng, s, look, key, value, from);
    engi_mutex_unlock(&s->lock, ENGI_RANK_LEAF);
}

void engi_row_cache_put_back(struct eng *eng, const struct engi_cache_look *look, struct slice key,
                               struct slice value) {
    if (value.n <= ENGI_ROW_CACHE_VALUE_MAX && !engi_table_is_changing(look->generation))
        try_insert(eng, shard_of(eng->row_cache, look->hash), look, key, &value);
}

void engi_row_cache_fill(struct eng *eng, const struct engi_cache_look *look, struct slice key,
                         const struct slice *value) {
    if (!look->table || look->place) return;
    struct shard *s = shard_of(eng->row_cache, look->hash);
    atomic_fetch_add_explicit(&s->misses, 1, memory_order_relaxed);
    if (!look->fills || (value && value->n > ENGI_ROW_CACHE_VALUE_MAX) || !was_missed(eng->row_cache, s, look->hash))
        return;
    try_insert(eng, s, look, key, value);
}

/* ---- figures ---- */

struct engi_cache_stats engi_row_cache_stats(const struct engi_row_cache *c) {
    struct engi_cache_stats sum = {0};
    for (uint32_t i = 0; c && i < c->n_shards; i++) {
        const struct shard *s = &c->shards[i];
        uint64_t tail = atomic_load_explicit(&s->tail, memory_order_relaxed),
                 head = atomic_load_explicit(&s->head, memory_order_relaxed);
        sum.hits += atomic_load_explicit(&s->hits, memory_order_relaxed);
        sum.misses += atomic_load_explicit(&s->misses, memory_order_relaxed);
        sum.kept += atomic_load_explicit(&s->rows, memory_order_relaxed);
        sum.bytes += head > tail ? (head - tail) * WORD : 0;
    }
    return sum;
}
