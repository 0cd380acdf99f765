/* An engine with row cache and cached ranges. */
#pragma once

#include "tests/unit/engine/world.h"

enum { TABLE = 20, OTHER = 21, SMALL = 64 << 10, LARGE = 4 << 20 /* bytes of both caches */, GC_GRACE = 50 };

/* Opens the engine again, with so many bytes for both caches. */
void open_engine(struct world *w, size_t bytes);
/* store: as for world_new. */
struct world *cached_world_new(const char *store, size_t bytes);
int setup_memory(void **state);
int setup_rocksdb(void **state);
int setup_small(void **state);

/* Deletes the row ck of the partition "p" of TABLE. */
void delete_row_at(struct world *w, const char *ck, int64_t ts);
