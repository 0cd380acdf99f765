#include "tools/tally/capacity/keys.h"

#include <math.h>
#include <stddef.h>

static uint64_t head_of(const struct keys *k) { return k->n < KEYS_HEAD ? k->n : KEYS_HEAD; }

void keys_init(struct keys *k) {
    if (k->n < 1) k->n = 1;
    if (k->hot > k->n) k->hot = k->n;
    if (k->shape != KEYS_ZIPF) return;
    double sum = 0;
    for (uint64_t i = 0; i < head_of(k); i++) k->head[i] = sum += pow((double)(i + 1), -k->exponent);
    /* The integral of x^-s approximates the total weight of the ranks beyond the head; each rank
     * stands for the interval of half a rank to both sides. */
    double s = k->exponent, from = KEYS_HEAD + 0.5, to = (double)k->n + 0.5;
    if (k->n > KEYS_HEAD)
        sum += fabs(s - 1) < 1e-9 ? log(to / from) : (pow(to, 1 - s) - pow(from, 1 - s)) / (1 - s);
    k->total = sum;
}

double keys_share(const struct keys *k, uint64_t rank) {
    switch (k->shape) {
    case KEYS_ZIPF: return pow((double)(rank + 1), -k->exponent) / k->total;
    case KEYS_HOT: return rank < k->hot ? k->share / (double)k->hot : (1 - k->share) / (double)(k->n - k->hot);
    case KEYS_UNIFORM: break;
    }
    return 1 / (double)k->n;
}

uint64_t keys_draw(const struct keys *k, struct chance *c) {
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
