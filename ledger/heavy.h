/* The heaviest of very many: who has the most load, in bounded memory, and how wrong the answer can
 * be (filtered space-saving, set by set).
 *
 * A key has a set by its hash, and a set keeps HEAVY_WAYS keys. What is given to keys that are not
 * kept is summed in the set's cells, of which a key has one by its hash; so a cell has at least
 * what any one of them was given. A key whose cell and load together are more than the set's bound,
 * which is what the lightest of its keys has and an eighth of that, takes the place of that one,
 * inherits its own cell, which is noted as the error, and leaves the load of the other one in that
 * one's cell. So, for every key:
 *
 * K1. load - error <= true load <= load, of a key that is kept.
 * K2. true load <= its cell <= the bound of its set, of a key that is not.
 * K3. a key with more than 9/64 of what its set was given is kept: the loads of a set sum up to no
 *     more than that, and the least of its eight to an eighth.
 *
 * Most keys are light and touch their cell alone, and beside it, in the same line of the cache, the
 * bound: a pass through very many costs little. A cell that a kept key has, too, is marked; only
 * there has to be asked whether the key is kept. Were the bound the least load itself, one of eight
 * light keys would take a place, to lose it to the next: among very many that are alike all cells
 * are as full as they may be. With the eighth more they come in once for as many rounds as that is.
 *
 * The caller's lock, but for heavy_pass, which the one thread that adds may call without it: others
 * that look then see a cell as it was before or after.
 */
#pragma once

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "base/compiler.h"

enum { HEAVY_WAYS = 8, HEAVY_LINES = 8, HEAVY_LINE_CELLS = 7 };
enum { HEAVY_NONE = UINT32_MAX }; /* no place */

/* Marked: a kept key has the cell. */
#define HEAVY_MARK (UINT64_C(1) << 63)
struct heavy_line {
    uint64_t bound; /* of the set: the same in all its lines */
    _Atomic uint64_t cells[HEAVY_LINE_CELLS];
};
struct heavy_set {
    _Alignas(64) struct heavy_line lines[HEAVY_LINES];
    uint64_t keys[HEAVY_WAYS], loads[HEAVY_WAYS], errors[HEAVY_WAYS]; /* load 0: the place is free */
};
struct heavy {
    uint32_t n_sets; /* a power of two */
    uint32_t last;   /* place that was added to last */
    struct heavy_set *sets;
    _Atomic uint64_t total;
};

/* n_sets is a power of two. -1: no memory. */
int heavy_init(struct heavy *h, uint32_t n_sets) MUST_CHECK;
void heavy_fini(struct heavy *h);
/* Adds load (at least 1) to the key, which is a good hash of what it stands for. Returns its place,
 * 0 to HEAVY_WAYS * n_sets - 1, where the caller keeps what it knows of the key; *fresh: the place
 * was another's, or free. HEAVY_NONE: the key is not kept. */
uint32_t heavy_add(struct heavy *h, uint64_t key, uint64_t load, bool *fresh);
/* The same of the key that was added last, where keys often come again; HEAVY_NONE, and nothing is
 * added: it is not that one. */
uint32_t heavy_again(struct heavy *h, uint64_t key, uint64_t load);
/* heavy_add for what nearly all keys of very many come to: true, and the load is in its cell, if
 * the key is not kept and will not be. Else false, and nothing is added: the key waits for
 * heavy_add. Those that pass meanwhile might as well have come before it. The total is told later
 * what passed, of many together. */
bool heavy_pass(struct heavy *h, uint64_t key, uint64_t load) MUST_CHECK;
void heavy_passed(struct heavy *h, uint64_t load);
bool heavy_keeps(const struct heavy *h, uint64_t key);
/* Adds what is known of the key from elsewhere, where others had as much as the bound and are not
 * known: a load that may be wrong by error. It is kept. The total stays the caller's. */
uint32_t heavy_put(struct heavy *h, uint64_t key, uint64_t load, uint64_t error, bool *fresh);
/* Some of what was added to the key did not happen after all: its load stays, and may be wrong by
 * so much more. Returns its place, or HEAVY_NONE: it is not kept. */
uint32_t heavy_doubt(struct heavy *h, uint64_t key, uint64_t load);
/* The key at a place; load 0: none. */
struct heavy_item {
    uint64_t key, load, error;
};
struct heavy_item heavy_at(const struct heavy *h, uint32_t place);
/* H2's bound for a key that is not kept; 0 while its set has room. */
uint64_t heavy_bound(const struct heavy *h, uint64_t key);
