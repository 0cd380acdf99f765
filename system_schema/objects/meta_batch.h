/* A batch of named records to be written together, all or none. Inside system_schema only. */
#pragma once

#include "base/arena.h"
#include "engine/named.h"

struct meta_batch {
    struct arena arena; /* of the bytes */
    uint32_t n, cap;
    struct eng_meta_change *changes;
};

void meta_batch_init(struct meta_batch *b);
void meta_batch_fini(struct meta_batch *b);
/* Copies key and value. */
int meta_batch_put(struct meta_batch *b, struct slice key, struct slice value, struct err *e) MUST_CHECK;
int meta_batch_delete(struct meta_batch *b, struct slice key, struct err *e) MUST_CHECK;
