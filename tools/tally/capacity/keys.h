/* The distribution of requests over partitions, and sets of partitions. Partitions are numbered by
 * rank; rank 0 gets the most requests. */
#pragma once

#include <stdbool.h>

#include "base/compiler.h"
#include "tools/tally/chance.h"

enum key_shape { KEYS_UNIFORM, KEYS_ZIPF, KEYS_HOT };
enum { KEYS_HEAD = 4096 };

struct key_distribution {
    enum key_shape shape;
    uint64_t n;        /* partitions, at least 1 */
    double exponent;   /* zipf */
    double share;      /* hot: share of the requests that go to the hot partitions */
    uint64_t hot;      /* hot: number of hot partitions */
    double head[KEYS_HEAD]; /* zipf: weights of the first ranks, summed up */
    double total;
};

/* Computes head and total from the other fields. */
void keys_init(struct key_distribution *k);
/* The share of the requests that a rank has. */
double keys_share(const struct key_distribution *k, uint64_t rank);
uint64_t keys_draw(const struct key_distribution *k, struct chance *c);

/* A set of ranks that keeps the order of insertion. */
struct ranks {
    uint64_t *list;
    uint32_t n, n_slots; /* n_slots: a power of 2, more than twice n */
    uint32_t *slots;     /* index in list + 1; 0 if free */
};

bool ranks_have(const struct ranks *r, uint64_t rank);
/* Returns -1 if memory is exhausted. */
int ranks_add(struct ranks *r, uint64_t rank) MUST_CHECK;
/* Keeps the memory. */
void ranks_clear(struct ranks *r);
void ranks_free(struct ranks *r);
