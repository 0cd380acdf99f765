#include "metering/ledger/heavy.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

int heavy_init(struct heavy *h, uint32_t n_sets) {
    assert(n_sets && !(n_sets & (n_sets - 1)));
    *h = (struct heavy){.n_sets = n_sets, .sets = aligned_alloc(_Alignof(struct heavy_set), n_sets * sizeof(*h->sets))};
    if (h->sets) memset(h->sets, 0, n_sets * sizeof(*h->sets));
    return h->sets ? 0 : -1;
}

void heavy_fini(struct heavy *h) { free(h->sets); }

/* Takes the high bits of the product: they depend on all bits of the key. The low bits of a token
 * would serve as well, but its high bits would not: tokens of one range share them. */
static uint64_t hash_of(uint64_t key) { return (key * UINT64_C(0x9E3779B97F4A7C15)) >> 32; }
static uint32_t set_of(const struct heavy *h, uint64_t hash) { return (uint32_t)hash & (h->n_sets - 1); }

_Static_assert(HEAVY_LINES == 8, "three bits of the hash name the line, others the cell in it");
static struct heavy_line *line_of(struct heavy_set *s, uint64_t hash) { return &s->lines[hash >> 29]; }
static _Atomic uint64_t *cell_of(struct heavy_line *l, uint64_t hash) {
    return &l->cells[(hash >> 13 & 0xFFFF) * HEAVY_LINE_CELLS >> 16];
}
static uint64_t get(const _Atomic uint64_t *n) { return atomic_load_explicit(n, memory_order_relaxed); }
/* Only one thread adds, so no locked instruction is needed. */
static void set(_Atomic uint64_t *n, uint64_t to) { atomic_store_explicit(n, to, memory_order_relaxed); }
static void add(_Atomic uint64_t *n, uint64_t load) { set(n, get(n) + load); }
static _Atomic uint64_t *cell_in(struct heavy_set *s, uint64_t hash) { return cell_of(line_of(s, hash), hash); }

/* Unrolled: most keys are not in the set, and a loop costs more than its eight comparisons. */
static inline bool has(const uint64_t k[HEAVY_WAYS], uint64_t key) {
    _Static_assert(HEAVY_WAYS == 8, "each of them is compared");
    return k[0] == key || k[1] == key || k[2] == key || k[3] == key || k[4] == key || k[5] == key || k[6] == key ||
           k[7] == key;
}

/* HEAVY_WAYS: it is not kept. */
static unsigned find(const struct heavy_set *s, uint64_t key) {
    unsigned i = 0;
    if (LIKELY(!has(s->keys, key))) return HEAVY_WAYS;
    while (s->keys[i] != key) i++;
    return s->loads[i] ? i : HEAVY_WAYS;
}

static unsigned lightest(const struct heavy_set *s) {
    unsigned least = 0;
    for (unsigned i = 1; i < HEAVY_WAYS; i++)
        if (s->loads[i] < s->loads[least]) least = i;
    return least;
}

static void note_bound(struct heavy_set *s) {
    uint64_t least = s->loads[lightest(s)], bound = least + least / 8;
    if (bound == s->lines[0].bound) return;
    for (unsigned i = 0; i < HEAVY_LINES; i++) s->lines[i].bound = bound;
}

static void add_at(struct heavy_set *s, unsigned i, uint64_t load) {
    bool was_least = s->loads[i] <= s->lines[0].bound; /* or a little above the least */
    s->loads[i] += load;
    if (was_least) note_bound(s);
}

/* The key replaces the lightest one. */
static unsigned keep(struct heavy_set *s, uint64_t key, uint64_t load, uint64_t error) {
    unsigned i = lightest(s);
    if (s->loads[i]) {
        _Atomic uint64_t *cell = cell_in(s, hash_of(s->keys[i]));
        uint64_t light = get(cell) & ~HEAVY_MARK; /* the sum of keys not kept, which may exceed the key's own load */
        uint64_t mark = 0; /* set if another kept key has the cell */
        for (unsigned k = 0; k < HEAVY_WAYS; k++)
            if (k != i && s->loads[k] && cell_in(s, hash_of(s->keys[k])) == cell) mark = HEAVY_MARK;
        set(cell, (s->loads[i] > light ? s->loads[i] : light) | mark);
    }
    set(cell_in(s, hash_of(key)), get(cell_in(s, hash_of(key))) | HEAVY_MARK);
    s->keys[i] = key;
    s->loads[i] = load;
    s->errors[i] = error;
    note_bound(s);
    return i;
}

uint32_t heavy_put(struct heavy *h, uint64_t key, uint64_t load, uint64_t error, bool *fresh) {
    uint32_t set = set_of(h, hash_of(key));
    struct heavy_set *s = &h->sets[set];
    unsigned i = find(s, key);
    *fresh = i == HEAVY_WAYS;
    if (*fresh) {
        i = keep(s, key, load + s->lines[0].bound, error + s->lines[0].bound);
    } else {
        s->errors[i] += error;
        add_at(s, i, load);
    }
    for (struct heavy_line *l = s->lines; l < s->lines + HEAVY_LINES; l++)
        for (unsigned k = 0; k < HEAVY_LINE_CELLS; k++) {
            uint64_t cell = get(&l->cells[k]);
            if ((cell & ~HEAVY_MARK) < l->bound) atomic_store_explicit(&l->cells[k], l->bound | (cell & HEAVY_MARK),
                                                                       memory_order_relaxed);
        }
    return set * HEAVY_WAYS + i;
}

/* The loads of kept keys bound the load of keys not kept (K2), so a load never falls: only the
 * error grows. */
uint32_t heavy_reverse(struct heavy *h, uint64_t key, uint64_t load) {
    uint32_t set = set_of(h, hash_of(key));
    struct heavy_set *s = &h->sets[set];
    unsigned i = find(s, key);
    if (i == HEAVY_WAYS) return HEAVY_NONE;
    s->errors[i] += load < s->loads[i] - s->errors[i] ? load : s->loads[i] - s->errors[i];
    return set * HEAVY_WAYS + i;
}

uint32_t heavy_add(struct heavy *h, uint64_t key, uint64_t load, bool *fresh) {
    uint64_t hash = hash_of(key);
    uint32_t set = set_of(h, hash);
    struct heavy_set *s = &h->sets[set];
    _Atomic uint64_t *cell = cell_in(s, hash);
    uint64_t light = get(cell) & ~HEAVY_MARK;
    unsigned i = find(s, key);
    add(&h->total, load);
    *fresh = i == HEAVY_WAYS;
    if (!*fresh) {
        add_at(s, i, load);
    } else if (light + load <= s->lines[0].bound) {
        add(cell, load);
        return HEAVY_NONE;
    } else {
        i = keep(s, key, light + load, light);
    }
    return h->last = set * HEAVY_WAYS + i;
}

static bool is_light(const struct heavy_set *s, const struct heavy_line *line, uint64_t key, uint64_t before,
                     uint64_t load) {
    return LIKELY(before + load <= line->bound) || ((before & ~HEAVY_MARK) + load <= line->bound && !has(s->keys, key));
}

bool heavy_pass(struct heavy *h, uint64_t key, uint64_t load) {
    uint64_t hash = hash_of(key);
    struct heavy_set *s = &h->sets[set_of(h, hash)];
    struct heavy_line *line = line_of(s, hash);
    _Atomic uint64_t *cell = cell_of(line, hash);
    uint64_t before = get(cell);
    if (UNLIKELY(!is_light(s, line, key, before, load))) return false;
    set(cell, before + load);
    return true;
}

void heavy_passed(struct heavy *h, uint64_t load) { add(&h->total, load); }

bool heavy_keeps(const struct heavy *h, uint64_t key) {
    uint64_t hash = hash_of(key);
    return find(&h->sets[set_of(h, hash)], key) != HEAVY_WAYS;
}

uint32_t heavy_again(struct heavy *h, uint64_t key, uint64_t load) {
    struct heavy_set *s = &h->sets[h->last / HEAVY_WAYS];
    unsigned i = h->last % HEAVY_WAYS;
    if (s->keys[i] != key || !s->loads[i]) return HEAVY_NONE;
    add(&h->total, load);
    add_at(s, i, load);
    return h->last;
}

struct heavy_item heavy_at(const struct heavy *h, uint32_t slot) {
    const struct heavy_set *s = &h->sets[slot / HEAVY_WAYS];
    unsigned i = slot % HEAVY_WAYS;
    return (struct heavy_item){.key = s->keys[i], .load = s->loads[i], .error = s->errors[i]};
}

uint64_t heavy_bound(const struct heavy *h, uint64_t key) {
    uint64_t hash = hash_of(key);
    return get(cell_in(&h->sets[set_of(h, hash)], hash)) & ~HEAVY_MARK;
}
