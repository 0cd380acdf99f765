/* The heaviest of very many keys: which keys have the most load, in bounded memory, and how wrong
 * the answer can be (the filtered space-saving algorithm, applied to each set of keys).
 *
 * The hash of a key selects its set and one of the set's cells. A set keeps HEAVY_WAYS keys with
 * their loads. The load of all other keys is summed in the cells, so a cell is at least the load of
 * any one key that is not kept. The bound of a set is the least load of its kept keys and an eighth
 * more. When a key's cell and its new load together exceed the bound, the key replaces the lightest
 * kept key. It inherits its cell's value as load, which is noted as its error. The replaced key's
 * load goes to that key's cell. So, for every key:
 *
 * K1. load - error <= true load <= load, for a key that is kept.
 * K2. true load <= its cell <= the bound of its set, for a key that is not.
 * K3. a key with more than 9/64 of the load added to its set is kept: the loads of the kept keys
 *     sum up to no more than that load, so the least of the eight is at most an eighth of it, and
 *     the bound is 9/8 of the least.
 *
 * Most keys are light. Adding to one touches its cell and, in the same cache line, the bound: a
 * pass through very many keys costs little. A cell that a kept key shares is marked; only for a
 * marked cell the keys have to be compared. If the bound were the least load itself, each of many
 * equally light keys would replace another one and soon be replaced, for all cells of such keys are
 * about equally full. With an eighth more, a replacement needs that much more load first.
 *
 * The caller holds a lock, except for heavy_pass, which the one adding thread may call without it:
 * other readers see a cell from before or after the addition.
 */
#pragma once

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "base/compiler.h"

enum { HEAVY_WAYS = 8, HEAVY_LINES = 8, HEAVY_LINE_CELLS = 7 };
enum { HEAVY_NONE = UINT32_MAX }; /* no slot */

/* Marked: a kept key has the cell. */
#define HEAVY_MARK (UINT64_C(1) << 63)
struct heavy_line {
    uint64_t bound; /* of the set: the same in all its lines */
    _Atomic uint64_t cells[HEAVY_LINE_CELLS];
};
struct heavy_set {
    _Alignas(64) struct heavy_line lines[HEAVY_LINES];
    uint64_t keys[HEAVY_WAYS], loads[HEAVY_WAYS], errors[HEAVY_WAYS]; /* load 0: the slot is free */
};
struct heavy {
    uint32_t n_sets; /* a power of two */
    uint32_t last;   /* slot that was added to last */
    struct heavy_set *sets;
    _Atomic uint64_t total;
};

/* n_sets is a power of two. Returns -1 if memory is exhausted. */
int heavy_init(struct heavy *h, uint32_t n_sets) MUST_CHECK;
void heavy_fini(struct heavy *h);
/* Adds load (at least 1) to the key, which is a good hash of the object it identifies. Returns its
 * slot, 0 to HEAVY_WAYS * n_sets - 1, by which the caller keeps its own data of the key. *fresh:
 * the slot was free or another key's. HEAVY_NONE: the key is not kept. */
uint32_t heavy_add(struct heavy *h, uint64_t key, uint64_t load, bool *fresh);
/* heavy_add for streams in which the same key is often added several times in a row. Returns
 * HEAVY_NONE and adds nothing when the key is not the one that was added last. */
uint32_t heavy_again(struct heavy *h, uint64_t key, uint64_t load);
/* The fast path of heavy_add, which nearly all keys of a large set take. Returns true, with the
 * load in the key's cell, if the key is not kept and stays so. Otherwise returns false and adds
 * nothing; the caller queues the key for heavy_add. Keys that pass in the meantime count as added
 * before the queued one. The caller adds the loads of many passed keys to the total later, by
 * heavy_passed. */
bool heavy_pass(struct heavy *h, uint64_t key, uint64_t load) MUST_CHECK;
void heavy_passed(struct heavy *h, uint64_t load);
bool heavy_keeps(const struct heavy *h, uint64_t key);
/* Adds a load from another instance, which may be wrong by error, and keeps the key. In that
 * instance any key it did not keep may have had a load up to its bound, so all cells of the set
 * rise to the bound. The caller adds to the total. */
uint32_t heavy_put(struct heavy *h, uint64_t key, uint64_t load, uint64_t error, bool *fresh);
/* Reverses a part of the key's load: the load stays, and its error grows by that much. Returns its
 * slot, or HEAVY_NONE when the key is not kept. */
uint32_t heavy_reverse(struct heavy *h, uint64_t key, uint64_t load);
/* The key in a slot; load 0: none. */
struct heavy_item {
    uint64_t key, load, error;
};
struct heavy_item heavy_at(const struct heavy *h, uint32_t slot);
/* K2's bound for a key that is not kept; 0 while its set has room. */
uint64_t heavy_bound(const struct heavy *h, uint64_t key);
