/* Folding: a row that is written again and again in a short time is written back as one value, or
 * every read of it would merge all that waits. Private to engine/.
 *
 * A write counts its row in a small table; one in ENGI_FOLD_AFTER writes of the same row asks for a
 * fold after its commit, which claims the row's slot from its read to its put, so that no operand
 * comes between. (RocksDB's max_successive_merges does the same, and makes every insert 1.7 times
 * dearer.)
 */
#pragma once

#include <stdatomic.h>

#include "base/buf.h"

struct eng;

enum { ENGI_FOLD_SLOTS = 16384, ENGI_FOLD_AFTER = 16 };

struct engi_fold {
    _Atomic uint32_t counts[ENGI_FOLD_SLOTS]; /* [24 bits of the key's hash][8 bits count] */
};

/* hash: of the row's key. Counts a write; whether the row is to be folded. */
bool engi_fold_count(struct engi_fold *f, uint64_t hash);
/* The caller holds no slot. A row that another thread is writing stays as it is, and so does a row
 * for which anything fails. */
void engi_fold_row(struct eng *eng, struct slice key, uint64_t hash);
