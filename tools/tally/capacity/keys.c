#include "tools/tally/capacity/keys.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

static uint64_t head_of(const struct key_distribution *k) { return k->n < KEYS_HEAD ? k->n : KEYS_HEAD; }

void keys_init(struct key_distribution *k) {
    if (k->n < 1) k->n = 1;
    if (k->hot > k->n) k->hot = k->n;
    if (k->shape != KEYS_ZIPF) return;
    double sum = 0;
    for (uint64_t i = 0; i < head_of(k); i++) k->head[i] = sum += pow((double)(i + 1), -k->exponent);
    /* The integral of x^-s approximates the total weight of the ranks beyond the head; each rank
     * represents the interval of half a rank on both sides. */
    double s = k->exponent, from = KEYS_HEAD + 0.5, to = (double)k->n + 0.5;
    if (k->n > KEYS_HEAD)
        sum += fabs(s - 1) < 1e-9 ? log(to / from) : (pow(to, 1 - s) - pow(from, 1 - s)) / (1 - s);
    k->total = sum;
}

double keys_share(const struct key_distribution *k, uint64_t rank) {
    switch (k->shape) {
    case KEYS_ZIPF: return pow((double)(rank + 1), -k->exponent) / k->total;
    case KEYS_HOT: return rank < k->hot ? k->share / (double)k->hot : (1 - k->share) / (double)(k->n - k->hot);
    case KEYS_UNIFORM: break;
    }
    return 1 / (double)k->n;
}

uint64_t keys_draw(const struct key_distribution *k, struct chance *c) {
    switch (k->shape) {
    case KEYS_ZIPF: {
        double weight = chance_unit(c) * k->total, s = k->exponent;
        uint64_t low = 0, high = head_of(k);
        if (weight >= k->head[high - 1] && k->n > KEYS_HEAD) {
            double from = KEYS_HEAD + 0.5, rest = weight - k->head[high - 1];
            double x = fabs(s - 1) < 1e-9 ? from * exp(rest) : pow(rest * (1 - s) + pow(from, 1 - s), 1 / (1 - s));
            uint64_t rank = (uint64_t)(x - 0.5);
            return rank < k->n ? rank : k->n - 1;
        }
        while (low + 1 < high) {
            uint64_t middle = low + (high - low) / 2;
            if (k->head[middle - 1] <= weight) low = middle;
            else high = middle;
        }
        return low;
    }
    case KEYS_HOT:
        if (k->hot == k->n || chance_unit(c) < k->share) return chance_below(c, k->hot);
        return k->hot + chance_below(c, k->n - k->hot);
    case KEYS_UNIFORM: break;
    }
    return chance_below(c, k->n);
}

/* ---- sets ---- */

/* The slot of the rank, or the free one where it belongs. */
static uint32_t *slot_of(const struct ranks *r, uint64_t rank) {
    uint32_t i = (uint32_t)chance_of(rank) & (r->n_slots - 1);
    while (r->slots[i] && r->list[r->slots[i] - 1] != rank) i = (i + 1) & (r->n_slots - 1);
    return &r->slots[i];
}

bool ranks_have(const struct ranks *r, uint64_t rank) { return r->n && *slot_of(r, rank); }

int ranks_add(struct ranks *r, uint64_t rank) {
    if (ranks_have(r, rank)) return 0;
    if (2 * (r->n + 1) > r->n_slots) {
        enum { LEAST = 64 };
        uint32_t n_slots = r->n_slots ? 2 * r->n_slots : LEAST;
        uint64_t *list = realloc(r->list, n_slots / 2 * sizeof(*list));
        if (list) r->list = list;
        uint32_t *slots = list ? calloc(n_slots, sizeof(*slots)) : NULL;
        if (!slots) return -1;
        free(r->slots);
        r->slots = slots;
        r->n_slots = n_slots;
        for (uint32_t i = 0; i < r->n; i++) *slot_of(r, r->list[i]) = i + 1;
    }
    *slot_of(r, rank) = r->n + 1;
    r->list[r->n++] = rank;
    return 0;
}

void ranks_clear(struct ranks *r) {
    r->n = 0;
    if (r->n_slots) memset(r->slots, 0, r->n_slots * sizeof(*r->slots));
}

void ranks_free(struct ranks *r) {
    free(r->list);
    free(r->slots);
    *r = (struct ranks){0};
}
