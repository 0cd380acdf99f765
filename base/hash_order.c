#include "base/hash_order.h"

#include <stdlib.h>
#include <string.h>

struct placed {
    uint32_t bucket, index;
};

static int by_bucket(const void *a, const void *b) {
    const struct placed *x = a, *y = b;
    if (x->bucket != y->bucket) return x->bucket < y->bucket ? -1 : 1;
    return (x->index > y->index) - (x->index < y->index);
}

const uint32_t *hash_order(struct arena *a, const char *const *names, uint32_t n) {
    uint32_t buckets = 16;
    struct placed *placed = ARENA_ARRAY(a, n + 1, struct placed);
    uint32_t *order = ARENA_ARRAY(a, n + 1, uint32_t);
    if (!placed || !order) return NULL;
    while (n > buckets / 4 * 3) buckets *= 2;
    for (uint32_t i = 0; i < n; i++) {
        uint32_t h = 1; /* java.nio.ByteBuffer.hashCode, spread as HashMap does */
        for (size_t k = strlen(names[i]); k-- > 0;) h = 31 * h + (uint32_t)(int32_t)(int8_t)names[i][k];
        placed[i] = (struct placed){.bucket = (h ^ h >> 16) & (buckets - 1), .index = i};
    }
    qsort(placed, n, sizeof *placed, by_bucket);
    for (uint32_t i = 0; i < n; i++) order[i] = placed[i].index;
    return order;
}
