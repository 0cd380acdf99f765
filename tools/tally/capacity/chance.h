/* Random numbers that a seed decides: the same inputs give the same estimate. */
#pragma once

#include <stdint.h>

struct chance {
    uint64_t state;
};

uint64_t chance_next(struct chance *c);
/* From 0 up to and without n; n at least 1. */
uint64_t chance_below(struct chance *c, uint64_t n);
/* From 0 up to and without 1. */
double chance_unit(struct chance *c);
/* Normally distributed, mean 0 and deviation 1. */
double chance_normal(struct chance *c);
/* How many of the arrivals fall in a stretch of time that has mean on average. */
uint64_t chance_poisson(struct chance *c, double mean);
/* A number that n decides. */
uint64_t chance_of(uint64_t n);
