/* An engine with row cache and cached ranges, on a clock that stands still unless a test moves it. */
#pragma once

#include "base/clock.h"
#include "engine/engine.h"

enum { TABLE = 20, OTHER = 21, SMALL = 64 << 10, LARGE = 4 << 20 /* bytes of both caches */, GC_GRACE = 50 };

struct test_clock {
    struct clock clock;
    _Atomic int64_t seconds;
};

struct world {
    bool rocks;
    char path[64];
    struct test_clock clock;
    struct eng *eng;
    struct eng_batch *batch;
    struct arena arena; /* of the last read of a row */
    struct buf text;    /* of the last read of a slice */
    struct eng_part part; /* of the scan that is open, and its slice */
    struct eng_slice slice;
    uint64_t seed;
    int64_t ts; /* of the last write of test_range_cache.c */
    struct op_cost cost;
    struct err e;
};

/* Opens the engine (again), with so many bytes for both caches. */
void open_engine(struct world *w, size_t bytes);
/* In memory, or on disk in a folder of its own. teardown frees it. */
struct world *world_new(bool rocks, size_t bytes);
int setup_memory(void **state);
int setup_rocksdb(void **state);
int setup_small(void **state);
int teardown(void **state);

struct eng_part part_of(uint32_t table, const char *key);
void add_cell(struct eng_batch *b, const struct eng_part *part, enum eng_row_kind kind, const char *ck,
              struct eng_cell cell);
void commit(struct world *w);
/* Of the row ck of the partition "p" of TABLE. */
void delete_row_at(struct world *w, const char *ck, int64_t ts);
