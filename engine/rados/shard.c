#include <assert.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#include "engine/rados/omap_key.h"
#include "engine/rados/shard.h"

/* ---- names ---- */

void shard_name(const struct shard_id *id, char out[SHARD_NAME]) {
    snprintf(out, SHARD_NAME, "rows.%08" PRIx32 ".%02u.%016" PRIx64, id->table, id->depth, id->bits);
}

int shard_name_read(const char *name, struct shard_id *id) {
    unsigned depth;
    char again[SHARD_NAME];
    if (sscanf(name, "rows.%8" SCNx32 ".%2u.%16" SCNx64, &id->table, &depth, &id->bits) != 3) return -1;
    if (depth > SHARD_DEPTH_MAX) return -1;
    id->depth = (uint8_t)depth;
    shard_name(id, again);
    return strcmp(again, name) == 0 ? 0 : -1;
}

struct shard_id shard_half(const struct shard_id *id, unsigned bit) {
    assert(id->depth < SHARD_DEPTH_MAX);
    struct shard_id half = {.table = id->table, .depth = (uint8_t)(id->depth + 1), .bits = id->bits};
    if (bit) half.bits |= (uint64_t)1 << (63 - id->depth);
    return half;
}

/* ---- the head ---- */

const struct slice shard_state_key = {.p = (const uint8_t *)"\x01s", .n = 2};
const struct slice shard_pieces_key = {.p = (const uint8_t *)"\x01m", .n = 2};

struct slice shard_state_value(enum shard_state s) {
    static const char letters[] = "OFSC";
    return slice_of(strchr(letters, (int)s), 1);
}

void shard_counter_key(struct buf *out, uint64_t writer) {
    buf_put_str(out, "\x01w");
    omap_key_number(out, writer, OMAP_WRITER_DIGITS);
}

void shard_counter_value(struct buf *out, const struct shard_counter *c) {
    buf_u64(out, c->sequence);
    buf_u64(out, c->keys);
    buf_u64(out, c->bytes);
    buf_u64(out, c->removals);
}

int shard_head_read(const struct omap_pairs *pairs, struct arena *a, struct shard_head *out) {
    *out = (struct shard_head){.counters = ARENA_ARRAY(a, pairs->n + 1, struct shard_counter)};
    if (!out->counters) return -1;
    for (size_t i = 0; i < pairs->n; i++) {
        const struct omap_pair *p = &pairs->items[i];
        if (slice_eq(p->key, shard_state_key)) out->state = p->value.n == 1 ? p->value.p[0] : 0;
        else if (slice_eq(p->key, shard_pieces_key)) out->has_pieces = true;
        else if (p->key.n > 1 && p->key.p[1] == 'w') {
            struct shard_counter *c = &out->counters[out->n_counters++];
            struct rd r = rd_of(p->value);
            if (p->key.n != 2 + OMAP_WRITER_DIGITS) return -1;
            c->writer = omap_number_read(slice_of(p->key.p + 2, OMAP_WRITER_DIGITS));
            c->sequence = rd_u64(&r);
            c->keys = rd_u64(&r);
            c->bytes = rd_u64(&r);
            c->removals = rd_u64(&r);
            if (r.bad) return -1;
        }
    }
    return out->state ? 0 : -1;
}

const struct shard_counter *shard_counter_find(const struct shard_head *h, uint64_t writer) {
    for (size_t i = 0; i < h->n_counters; i++)
        if (h->counters[i].writer == writer) return &h->counters[i];
    return NULL;
}

struct shard_counter shard_sum(const struct shard_head *h) {
    struct shard_counter sum = {0};
    for (size_t i = 0; i < h->n_counters; i++) {
        sum.keys += h->counters[i].keys;
        sum.bytes += h->counters[i].bytes;
        sum.removals += h->counters[i].removals;
    }
    return sum;
}

/* ---- the map ---- */

enum { CHAINS_FIRST = 64 };

int shard_map_init(struct shard_map *m) {
    *m = (struct shard_map){.n_chains = CHAINS_FIRST, .chains = calloc(CHAINS_FIRST, sizeof(struct shard *))};
    if (!m->chains) return -1;
    pthread_rwlock_init(&m->lock, NULL);
    return 0;
}

static void shard_free(struct shard *s) {
    pthread_mutex_destroy(&s->lock);
    pthread_cond_destroy(&s->turn);
    free(s);
}

void shard_map_fini(struct shard_map *m) {
    for (size_t i = 0; i < m->n_chains; i++)
        for (struct shard *s = m->chains[i], *next; s; s = next) {
            next = s->next;
            shard_free(s);
        }
    free(m->chains);
    pthread_rwlock_destroy(&m->lock);
}

static size_t chain_of(const struct shard_map *m, const struct shard_id *id) {
    uint64_t h = (id->bits ^ (uint64_t)id->table << 8 ^ id->depth) * 0x9e3779b97f4a7c15u;
    return (size_t)(h >> 20) & (m->n_chains - 1);
}

/* Holding the lock. */
static struct shard *lookup(const struct shard_map *m, const struct shard_id *id) {
    struct shard *s = m->chains[chain_of(m, id)];
    while (s && (s->id.table != id->table || s->id.depth != id->depth || s->id.bits != id->bits)) s = s->next;
    return s;
}

/* Doubles the number of chains, unless memory is exhausted. */
static void grow(struct shard_map *m) {
    struct shard_map larger = {.n_chains = 2 * m->n_chains, .chains = calloc(2 * m->n_chains, sizeof(struct shard *))};
    if (!larger.chains) return;
    for (size_t i = 0; i < m->n_chains; i++)
        for (struct shard *s = m->chains[i], *next; s; s = next) {
            next = s->next;
            struct shard **chain = &larger.chains[chain_of(&larger, &s->id)];
            s->next = *chain;
            *chain = s;
        }
    free(m->chains);
    m->chains = larger.chains;
    m->n_chains = larger.n_chains;
}

struct shard *shard_map_get(struct shard_map *m, const struct shard_id *id) {
    pthread_rwlock_rdlock(&m->lock);
    struct shard *s = lookup(m, id);
    pthread_rwlock_unlock(&m->lock);
    if (s) return s;
    pthread_rwlock_wrlock(&m->lock);
    if (!(s = lookup(m, id)) && (s = calloc(1, sizeof(*s)))) {
        s->id = *id;
        s->last = &s->first;
        shard_name(id, s->name);
        pthread_mutex_init(&s->lock, NULL);
        pthread_cond_init(&s->turn, NULL);
        if (m->n == m->n_chains) grow(m);
        struct shard **chain = &m->chains[chain_of(m, id)];
        s->next = *chain;
        *chain = s;
        m->n++;
    }
    pthread_rwlock_unlock(&m->lock);
    return s;
}

struct shard *shard_map_find(struct shard_map *m, uint32_t table, uint64_t position) {
    struct shard *s = shard_map_get(m, &(struct shard_id){.table = table});
    while (s && atomic_load(&s->split)) {
        struct shard_id half = shard_half(&s->id, position >> (63 - s->id.depth) & 1);
        s = shard_map_get(m, &half);
    }
    return s;
}

void shard_map_sum(struct shard_map *m, uint64_t *shards, uint64_t *keys, uint64_t *bytes) {
    *shards = *keys = *bytes = 0;
    pthread_rwlock_rdlock(&m->lock);
    for (size_t i = 0; i < m->n_chains; i++)
        for (struct shard *s = m->chains[i]; s; s = s->next) {
            if (atomic_load(&s->split)) continue;
            ++*shards;
            *keys += atomic_load(&s->shown_keys);
            *bytes += atomic_load(&s->shown_bytes);
        }
    pthread_rwlock_unlock(&m->lock);
}

void shard_map_forget(struct shard_map *m, uint32_t table) {
    pthread_rwlock_rdlock(&m->lock);
    for (size_t i = 0; i < m->n_chains; i++)
        for (struct shard *s = m->chains[i]; s; s = s->next)
            if (s->id.table == table) {
                atomic_store(&s->split, false);
                atomic_store(&s->shown_keys, 0);
                atomic_store(&s->shown_bytes, 0);
                pthread_mutex_lock(&s->lock);
                s->known = false;
                pthread_mutex_unlock(&s->lock);
            }
    pthread_rwlock_unlock(&m->lock);
}

void shard_map_evict(struct shard_map *m, uint32_t table) {
    pthread_rwlock_wrlock(&m->lock);
    for (size_t i = 0; i < m->n_chains; i++)
        for (struct shard **at = &m->chains[i], *s; (s = *at);) {
            if (s->id.table != table) {
                at = &s->next;
                continue;
            }
            assert(!s->busy && !s->first); /* Q21 */
            *at = s->next;
            shard_free(s);
            m->n--;
        }
    pthread_rwlock_unlock(&m->lock);
}
