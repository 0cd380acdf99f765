#include "tools/tally/chance.h"

#include <math.h>

/* SplitMix64: Steele, Lea, Flood: Fast splittable pseudorandom number generators, OOPSLA 2014. */
uint64_t chance_of(uint64_t n) {
    uint64_t z = n + 0x9e3779b97f4a7c15u;
    z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9u;
    z = (z ^ z >> 27) * 0x94d049bb133111ebu;
    return z ^ z >> 31;
}

uint64_t chance_next(struct chance *c) {
    uint64_t z = chance_of(c->state);
    c->state += 0x9e3779b97f4a7c15u;
    return z;
}

double chance_unit(struct chance *c) { return (double)(chance_next(c) >> 11) / 9007199254740992.0; }

uint64_t chance_below(struct chance *c, uint64_t n) {
    uint64_t k = (uint64_t)(chance_unit(c) * (double)n);
    return k < n ? k : n - 1;
}

double chance_normal(struct chance *c) {
    double u = 1 - chance_unit(c), v = chance_unit(c);
    return sqrt(-2 * log(u)) * cos(6.283185307179586 * v);
}

/* Small means use Knuth's multiplication; large means use the normal approximation. */
uint64_t chance_poisson(struct chance *c, double mean) {
    enum { MANY = 64 };
    if (mean <= 0) return 0;
    if (mean > MANY) {
        double n = floor(mean + sqrt(mean) * chance_normal(c) + 0.5);
        return n > 0 ? (uint64_t)n : 0;
    }
    double end = exp(-mean), p = chance_unit(c);
    uint64_t n = 0;
    while (p > end) {
        p *= chance_unit(c);
        n++;
    }
    return n;
}
