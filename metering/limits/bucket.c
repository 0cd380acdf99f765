#include "metering/limits/bucket.h"

#include <stdlib.h>

int partition_buckets_init(struct partition_buckets *p) {
    p->slots = calloc(PARTITION_BUCKETS, sizeof(*p->slots));
    return p->slots ? 0 : -1;
}

void partition_buckets_fini(struct partition_buckets *p) { free(p->slots); }

static struct partition_bucket *set_of(const struct partition_buckets *p, uint32_t object, int64_t token) {
    uint64_t hash = ((uint64_t)token + object) * UINT64_C(0x9E3779B97F4A7C15);
    return &p->slots[(hash >> 40 & (PARTITION_SETS - 1)) * PARTITION_WAYS];
}

struct partition_bucket *partition_bucket_find(const struct partition_buckets *p, uint32_t object, int64_t token) {
    struct partition_bucket *set = set_of(p, object, token);
    for (int i = 0; i < PARTITION_WAYS; i++)
        if (set[i].object == object && set[i].token == token && set[i].ask) return &set[i];
    return NULL;
}

struct partition_bucket *partition_bucket_open(struct partition_buckets *p, uint32_t object, int64_t token,
                                               uint64_t ask) {
    struct partition_bucket *set = set_of(p, object, token), *oldest = NULL,
                            *there = partition_bucket_find(p, object, token);
    if (there) {
        there->ask = ask;
        return there;
    }
    for (int i = 0; i < PARTITION_WAYS; i++) {
        struct partition_bucket *b = &set[i];
        if (b->ask != ask && (!oldest || b->ask < oldest->ask)) oldest = b;
    }
    if (oldest) *oldest = (struct partition_bucket){.object = object, .token = token, .ask = ask};
    return oldest;
}
