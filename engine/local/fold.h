/* Folding: a row that is written many times in a short time is written back as one value; otherwise
 * every read of it would merge all pending operands. Private to engine/.
 *
 * A write counts its row in a small table. One in ENGI_FOLD_AFTER writes of the same row requests a
 * fold after its commit. The fold takes the row's guard exclusively from its read to its put, so
 * that no operand is written in between. (RocksDB's max_successive_merges does the same, but makes
 * every insert 1.7 times as expensive.)
 */
#pragma once

#include <stdatomic.h>

#include "base/buf.h"

struct engi_guards;
struct kv;

enum { ENGI_FOLD_COUNTS = 16384, ENGI_FOLD_AFTER = 16 };

struct engi_fold {
    _Atomic uint32_t counts[ENGI_FOLD_COUNTS]; /* [24 bits of the key's hash][8 bits count] */
};

/* Counts a write of the row with that hash of its key; returns whether to fold the row. */
bool engi_fold_count(struct engi_fold *f, uint64_t hash);
/* Returns whether the row was folded. The caller holds no guard. A row that another thread is
 * writing stays as it is, and so does a row for which anything fails. */
bool engi_fold_row(struct kv *kv, struct engi_guards *guards, struct slice key, uint64_t hash);
