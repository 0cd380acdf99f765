#include "ledger/heavy.h"

#include <assert.h>
#include <stdlib.h>

int heavy_init(struct heavy *h, uint32_t n_sets) {
    assert(n_sets && !(n_sets & (n_sets - 1)));
    *h = (struct heavy){.n_sets = n_sets, .sets = calloc(n_sets, sizeof(*h->sets))};
    return h->sets ? 0 : -1;
}

void heavy_fini(struct heavy *h) { free(h->sets); }

/* Of the high bits: the low ones of a token are as good, but tokens of a table's range are not. */
static uint32_t set_of(const struct heavy *h, uint64_t key) { return (uint32_t)((key * UINT64_C(0x9E3779B97F4A7C15)) >> 32) & (h->n_sets - 1); }

static unsigned lightest(const struct heavy_set *s) {
    unsigned least = 0;
    for (unsigned i = 1; i < HEAVY_WAYS; i++)
        if (s->loads[i] < s->loads[least]) least = i;
    return least;
}

/* HEAVY_WAYS: it is not kept. */
static unsigned way_of(const struct heavy_set *s, uint64_t key) {
    unsigned i = 0;
    while (i < HEAVY_WAYS && (s->keys[i] != key || !s->loads[i])) i++;
    return i;
}

uint32_t heavy_put(struct heavy *h, uint64_t key, uint64_t load, uint64_t error, bool *fresh) {
    uint32_t set = set_of(h, key);
    struct heavy_set *s = &h->sets[set];
    unsigned i = way_of(s, key);
    *fresh = i == HEAVY_WAYS;
    if (!*fresh) {
        s->loads[i] += load;
        s->errors[i] += error;
        return set * HEAVY_WAYS + i;
    }
    i = lightest(s);
    s->keys[i] = key;
    s->errors[i] = s->loads[i] + error;
    s->loads[i] += load;
    return set * HEAVY_WAYS + i;
}

/* The load of a key that is kept bounds those that are not (H2), so it never falls. */
uint32_t heavy_doubt(struct heavy *h, uint64_t key, uint64_t load) {
    uint32_t set = set_of(h, key);
    struct heavy_set *s = &h->sets[set];
    unsigned i = way_of(s, key);
    if (i == HEAVY_WAYS) return HEAVY_NONE;
    s->errors[i] += load < s->loads[i] - s->errors[i] ? load : s->loads[i] - s->errors[i];
    return set * HEAVY_WAYS + i;
}

uint32_t heavy_add(struct heavy *h, uint64_t key, uint64_t load, bool *fresh) {
    h->total += load;
    return heavy_put(h, key, load, 0, fresh);
}

struct heavy_item heavy_at(const struct heavy *h, uint32_t place) {
    const struct heavy_set *s = &h->sets[place / HEAVY_WAYS];
    unsigned i = place % HEAVY_WAYS;
    return (struct heavy_item){.key = s->keys[i], .load = s->loads[i], .error = s->errors[i]};
}

uint64_t heavy_bound(const struct heavy *h, uint64_t key) {
    const struct heavy_set *s = &h->sets[set_of(h, key)];
    return s->loads[lightest(s)];
}
