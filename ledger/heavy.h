/* The heaviest of very many: who has the most load, in bounded memory, and how wrong the answer can be (space-saving, set by set).
 *
 * A key has a set by its hash, and a set keeps HEAVY_WAYS keys. A key that is not kept takes the place of the lightest of its set and inherits
 * its load, which is noted as the error. So, for every key:
 *
 * H1. load - error <= true load <= load, of a key that is kept.
 * H2. true load <= the least load of its set, of a key that is not.
 * H3. a key with more than 1/HEAVY_WAYS of what its set was given is kept.
 *
 * Not thread-safe.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "base/compiler.h"

enum { HEAVY_WAYS = 8 };

struct heavy_set {
    uint64_t keys[HEAVY_WAYS], loads[HEAVY_WAYS], errors[HEAVY_WAYS]; /* load 0: the place is free */
};
struct heavy {
    uint32_t n_sets; /* a power of two */
    struct heavy_set *sets;
    uint64_t total;
};

/* n_sets is a power of two. -1: no memory. */
int heavy_init(struct heavy *h, uint32_t n_sets) MUST_CHECK;
void heavy_fini(struct heavy *h);
/* Adds load (at least 1) to the key, which is a good hash of what it stands for. Returns its place, 0 to HEAVY_WAYS * n_sets - 1, where the caller keeps
 * what it knows of the key; *fresh: the place was another's, or free. */
uint32_t heavy_add(struct heavy *h, uint64_t key, uint64_t load, bool *fresh);
/* Adds what is known of the key from elsewhere: a load that may be wrong by error. The total stays the caller's. */
uint32_t heavy_put(struct heavy *h, uint64_t key, uint64_t load, uint64_t error, bool *fresh);
/* Some of what was added to the key did not happen after all: its load stays, and may be wrong by so much more. Returns its place, or HEAVY_NONE: it is not kept. */
enum { HEAVY_NONE = UINT32_MAX };
uint32_t heavy_doubt(struct heavy *h, uint64_t key, uint64_t load);
/* The key at a place; load 0: none. */
struct heavy_item {
    uint64_t key, load, error;
};
struct heavy_item heavy_at(const struct heavy *h, uint32_t place);
/* H2's bound for a key that is not kept; 0 while its set has room. */
uint64_t heavy_bound(const struct heavy *h, uint64_t key);
