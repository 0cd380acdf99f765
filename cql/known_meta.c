#include "cql/known_meta.h"

#include <assert.h>
#include <stdlib.h>

#include "base/fault.h"

/* Y1. Notes stand by age in the order of their changes, so that those that no open connection needs are
 * the oldest: known_meta_close looks at those alone. */
struct known_meta_note {
    struct known_meta_note *next;          /* of its bucket */
    struct known_meta_note *older, *newer; /* of all */
    uint64_t change;
    uint8_t id[16], meta[16];
};

/* Y2. The columns are those of the newest answer to a PREPARE of the statement on the connection. */
struct known_meta_learned {
    uint8_t id[16], meta[16];
};

static size_t bucket_of(const uint8_t *id) { return load_u32(id) % KNOWN_META_BUCKETS; }

static void leave_list(struct known_meta *k, struct known_meta_note *n) {
    *(n->older ? &n->older->newer : &k->oldest) = n->newer;
    *(n->newer ? &n->newer->older : &k->newest) = n->older;
}

static void drop(struct known_meta *k, struct known_meta_note *n) {
    struct known_meta_note **at = &k->buckets[bucket_of(n->id)];
    while (*at != n) at = &(*at)->next;
    *at = n->next;
    leave_list(k, n);
    k->n--;
    free(n);
}

void known_meta_fini(struct known_meta *k) {
    while (k->oldest) drop(k, k->oldest);
}

void known_meta_note(struct known_meta *k, const uint8_t *id, const uint8_t *meta) {
    k->changes++;
    if (!k->first) return; /* no client is connected */
    struct known_meta_note *n = k->buckets[bucket_of(id)];
    while (n && (memcmp(n->id, id, 16) || memcmp(n->meta, meta, 16))) n = n->next;
    if (n) {
        leave_list(k, n);
    } else if (!fault_hit(FAULT_ALLOC) && (n = malloc(sizeof(*n)))) {
        memcpy(n->id, id, 16);
        memcpy(n->meta, meta, 16);
        n->next = k->buckets[bucket_of(id)];
        k->buckets[bucket_of(id)] = n;
        k->n++;
    }
    if (n) {
        n->change = k->changes;
        assert(!k->newest || k->newest->change < n->change); /* Y1 */
        n->older = k->newest;
        n->newer = NULL;
        *(k->newest ? &k->newest->newer : &k->oldest) = n;
        k->newest = n;
    } else {
        k->lost = k->changes;
    }
    if (k->n <= KNOWN_META_MAX) return;
    if (k->oldest->change > k->lost) k->lost = k->oldest->change;
    drop(k, k->oldest);
}

bool known_meta_differs(const struct known_meta *k, const uint8_t *id, const uint8_t *meta) {
    if (k->lost) return true;
    for (const struct known_meta_note *n = k->buckets[bucket_of(id)]; n; n = n->next)
        if (memcmp(n->id, id, 16) == 0 && memcmp(n->meta, meta, 16)) return true;
    return false;
}

void known_meta_open(struct known_meta *k, struct cql_client *c) {
    *c = (struct cql_client){.older = k->last, .opened = k->changes};
    *(k->last ? &k->last->newer : &k->first) = c;
    k->last = c;
}

static struct known_meta_learned *find_learned(const struct cql_client *c, const uint8_t *id) {
    for (unsigned i = 0; i < LEARNED_MAX && i < c->n_learned; i++)
        if (memcmp(c->learned[i].id, id, 16) == 0) return &c->learned[i];
    return NULL;
}

void known_meta_learn(const struct known_meta *k, struct cql_client *c, const uint8_t *id, const uint8_t *meta) {
    struct known_meta_learned *l = find_learned(c, id);
    if (c->closed) return;
    if (!l) {
        if (!known_meta_differs(k, id, meta)) return;
        if (!c->learned && (fault_hit(FAULT_ALLOC) || !(c->learned = calloc(LEARNED_MAX, sizeof(*l))))) return;
        l = &c->learned[c->n_learned++ % LEARNED_MAX];
        memcpy(l->id, id, 16);
    }
    memcpy(l->meta, meta, 16);
    assert(known_meta_has_learned(c, id, meta)); /* Y2 */
}

bool known_meta_has_learned(const struct cql_client *c, const uint8_t *id, const uint8_t *meta) {
    const struct known_meta_learned *l = find_learned(c, id);
    return l && memcmp(l->meta, meta, 16) == 0;
}

bool known_meta_close(struct known_meta *k, struct cql_client *c) {
    free(c->learned);
    c->learned = NULL;
    c->n_learned = 0;
    c->closed = true;
    *(c->older ? &c->older->newer : &k->first) = c->newer;
    *(c->newer ? &c->newer->older : &k->last) = c->older;
    uint64_t settled = k->first ? k->first->opened : k->changes;
    bool dropped = k->lost && k->lost <= settled;
    if (dropped) k->lost = 0;
    for (; k->oldest && k->oldest->change <= settled; dropped = true) drop(k, k->oldest);
    return dropped;
}
