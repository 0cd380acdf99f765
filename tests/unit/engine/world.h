/* An engine for a test, with a store by name, a clock that stands still unless the test moves it, and a folder that is
 * removed at the end. */
#pragma once

#include "base/clock.h"
#include "base/murmur3.h"
#include "engine/engine.h"
#include "tests/unit/folder.h"

struct world {
    struct clock clock;      /* first: it is cast to the world */
    _Atomic int64_t seconds; /* which the clock shows */
    struct eng_options options;
    char folder[FOLDER_PATH]; /* of a local store; "" if it has no files */
    struct eng *eng;
    struct eng_batch *batch;
    struct arena arena; /* of rows that were read */
    struct err e;
    /* For the tests of the caches: */
    struct buf text;      /* of the last slice read */
    struct eng_part part; /* of the scan that is open, and its slice */
    struct eng_slice slice;
    struct op_cost cost; /* of the last read */
    uint64_t seed;
    int64_t ts; /* of the last write */
};

/* Opens an engine. store: "memory" or "local", whose files are in the world's folder. o: the clock may be NULL for the
 * world's own one. seconds: the time that it shows. */
struct world *world_new(const char *store, int64_t seconds, const struct eng_options *o);
/* Opens the engine with the world's options, and makes a batch. */
void world_open(struct world *w);
void world_close(struct world *w);
static inline void world_reopen(struct world *w) {
    world_close(w);
    world_open(w);
}
/* Closes the engine and removes its folder. */
int world_teardown(void **state);

static inline struct eng_part part_of(uint32_t table, const char *key) {
    return (struct eng_part){.table = table, .token = murmur3_token(slice_str(key)), .key = slice_str(key)};
}
/* Adds a row with the one cell, or a change of it, to a batch. */
void add_cell(struct eng_batch *b, const struct eng_part *part, enum eng_row_kind kind, const char *ck,
              struct eng_cell cell);
/* Adds a deletion to the world's batch, at the time that the clock shows. */
void add_row_deletion(struct world *w, uint32_t table, const char *pk, const char *ck, int64_t ts);
void add_range_deletion(struct world *w, uint32_t table, const char *pk, struct eng_slice range, int64_t ts);
/* Writes the batch. Returns its sequence. */
uint64_t commit(struct world *w);
/* Reads a row into the world's arena. Returns 1 if it exists, 0 if not, or the error of the read. */
int world_get(struct world *w, enum eng_tier tier, const struct eng_part *part, enum eng_row_kind kind, const char *ck,
              struct eng_row *row);
/* Returns the rows of a scan as "pk/static ck=value ck=value; ...", in the arena. */
const char *scan_text(struct world *w, const struct eng_scan_spec *spec);
