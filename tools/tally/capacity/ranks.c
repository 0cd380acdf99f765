#include "tools/tally/capacity/ranks.h"

#include <stdlib.h>
#include <string.h>

#include "tools/tally/chance.h"

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
