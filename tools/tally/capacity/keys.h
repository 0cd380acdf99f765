/* The distribution of requests over partitions. Partitions are numbered by rank; rank 0 gets the
 * most requests. */
#pragma once

#include "tools/tally/chance.h"

enum key_shape { KEYS_UNIFORM, KEYS_ZIPF, KEYS_HOT };
enum { KEYS_HEAD = 4096 };

struct keys {
    enum key_shape shape;
    uint64_t n;        /* partitions, at least 1 */
    double exponent;   /* zipf */
    double share;      /* hot: share of the requests that go to the hot partitions */
    uint64_t hot;      /* hot: number of hot partitions */
    double head[KEYS_HEAD]; /* zipf: weights of the first ranks, summed up */
    double total;
};

/* Computes head and total from the other fields. */
void keys_init(struct keys *k);
/* The share of the requests that a rank has. */
double keys_share(const struct keys *k, uint64_t rank);
uint64_t keys_draw(const struct keys *k, struct chance *c);
