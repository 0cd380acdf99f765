/* A set of partition ranks that keeps the order of insertion. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "base/compiler.h"

struct ranks {
    uint64_t *list;
    uint32_t n, n_slots; /* n_slots: a power of 2, more than twice n */
    uint32_t *slots;     /* index in list + 1; 0: free */
};

bool ranks_have(const struct ranks *r, uint64_t rank);
/* -1: no memory. */
int ranks_add(struct ranks *r, uint64_t rank) MUST_CHECK;
/* Keeps the memory. */
void ranks_clear(struct ranks *r);
void ranks_free(struct ranks *r);
