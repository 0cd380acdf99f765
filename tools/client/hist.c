#include "tools/client/hist.h"

static uint64_t upper_edge(uint32_t bucket) {
    uint32_t exponent = bucket >> HIST_SUB_BITS, sub = bucket & ((1u << HIST_SUB_BITS) - 1);
    if (!exponent) return bucket;
    uint64_t width = 1ull << (exponent - 1);
    return ((1ull << HIST_SUB_BITS) + sub + 1) * width - 1;
}

void hist_add(struct hist *h, uint64_t ns) {
    h->count++;
    if (ns > h->max) h->max = ns;
    uint32_t bucket = (uint32_t)ns;
    if (ns >= 1u << HIST_SUB_BITS) {
        uint32_t exponent = 63 - (uint32_t)__builtin_clzll(ns);
        uint32_t sub = (uint32_t)(ns >> (exponent - HIST_SUB_BITS)) & ((1u << HIST_SUB_BITS) - 1);
        bucket = (exponent - HIST_SUB_BITS + 1) << HIST_SUB_BITS | sub;
    }
    h->buckets[bucket]++;
}

uint64_t hist_quantile(const struct hist *h, double share) {
    uint64_t want = (uint64_t)(share * (double)h->count), seen = 0;
    for (uint32_t i = 0; i < HIST_BUCKETS; i++) {
        seen += h->buckets[i];
        if (seen > want) return upper_edge(i) < h->max ? upper_edge(i) : h->max;
    }
    return h->max;
}

void hist_merge(struct hist *h, const struct hist *from) {
    h->count += from->count;
    if (from->max > h->max) h->max = from->max;
    for (uint32_t i = 0; i < HIST_BUCKETS; i++) h->buckets[i] += from->buckets[i];
}

double hist_mean(const struct hist *h) {
    double sum = 0;
    for (uint32_t i = 0; i < HIST_BUCKETS; i++)
        if (h->buckets[i]) sum += (double)h->buckets[i] * (double)upper_edge(i);
    return h->count ? sum / (double)h->count : 0;
}
