/* Two clients of the cluster and a table, for tests of the store below the engine. */
#pragma once

#include "engine/rados/fetch.h"
#include "engine/rados/pieces.h"
#include "harness.h"

struct world {
    struct rados *s, *other; /* two clients */
    uint32_t table;
    struct slice removals; /* of the partition that was read last */
    struct arena a;
    struct err e;
};

/* For cmocka. */
int world_setup(void **state);
int world_setup_small(void **state); /* a shard splits at 50 keys */
int world_setup_calm(void **state);  /* objects are as small, and none is split unless the test does it */
int world_teardown(void **state);

/* Keys and values, in the arena. */
struct slice world_prefix(struct world *w, uint32_t partition);
struct slice world_key(struct world *w, uint32_t partition, struct slice rest);
struct slice world_row(struct world *w, uint32_t partition, uint32_t row);
struct slice world_set(struct world *w, uint32_t number);

void world_append(struct world *w, struct rados *s, struct slice prefix, struct slice key, uint32_t number);
/* Writes on the condition that the partition has the expected ballot, and gives it another one. The result of the
 * group, or -1. */
int world_write_if(struct world *w, struct rados *s, struct slice prefix, struct slice key, uint32_t number,
                   const char *expected, const char *ballot);
/* Writes rows 1 and 2 of the partitions [from, to). */
void world_write_rows(struct world *w, struct rados *s, uint32_t from, uint32_t to);
struct record world_read(struct world *w, struct rados *s, struct slice prefix, struct slice key);
/* The cursor, over partition 1, gives rows [from, to) next, each of one operand, and then ends. */
void world_expect_rest(struct world *w, struct cursor *c, uint32_t from, uint32_t to);
size_t world_count_rows(struct world *w, struct rados *s, uint32_t table);

struct shard *world_shard(struct rados *s, struct world *w, uint32_t partition);
/* Leaves the shard frozen, as a front end that dies in the middle of a split. */
void world_freeze(struct world *w, const struct shard *sh);
/* How often the pool names the table. */
int world_times_stored(struct world *w, uint32_t table);

/* value: as it is stored; NULL: not wanted */
struct pieces world_pieces(struct world *w, uint32_t partition, struct slice *value);
/* Moves rows of the partition until it has pieces. */
void world_make_wide(struct world *w, uint32_t partition);
