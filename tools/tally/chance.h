/* Pseudo-random numbers: the same seed gives the same numbers, so the same inputs give the same
 * estimate, or the same load. */
#pragma once

#include <stdint.h>

struct chance {
    uint64_t state;
};

/* Uniform over 64 bits. */
uint64_t chance_next(struct chance *c);
/* Uniform in [0, n); n is at least 1. */
uint64_t chance_below(struct chance *c, uint64_t n);
/* Uniform in [0, 1). */
double chance_unit(struct chance *c);
/* Normally distributed, mean 0 and deviation 1. */
double chance_normal(struct chance *c);
/* Poisson distributed with the given mean. */
uint64_t chance_poisson(struct chance *c, double mean);
/* A 64-bit hash of n. */
uint64_t chance_of(uint64_t n);
