/* Folding: a row that is written again and again in a short time is written back as one value, or every read of it would
 * merge all that waits. Private to engine/.
 *
 * A write counts its row in a small table; one in ENGI_FOLD_AFTER writes of the same row asks for a fold after its commit.
 * Every commit holds the stripes of its rows shared and a fold holds one alone, from its read to its put: so no operand comes
 * between. (RocksDB's max_successive_merges does the same, and makes every insert 1.7 times dearer.) A commit that may replace
 * rows (engine/newest.h) holds their stripes alone for the same reason.
 */
#pragma once

#include <pthread.h>
#include <stdatomic.h>

#include "base/buf.h"

struct eng;

/* Few stripes: a commit of many rows takes them all. */
enum { ENGI_FOLD_STRIPES = 32, ENGI_FOLD_SLOTS = 16384, ENGI_FOLD_AFTER = 16 };

struct engi_fold {
    pthread_rwlock_t stripes[ENGI_FOLD_STRIPES];
    _Atomic uint32_t counts[ENGI_FOLD_SLOTS]; /* [24 bits of the key's hash][8 bits count] */
};

struct engi_fold_set {
    uint32_t bits, alone; /* alone: a part of bits */
};

void engi_fold_init(struct engi_fold *f);
void engi_fold_fini(struct engi_fold *f);
/* hash: of the row's key. Counts a write; whether the row is to be folded. */
bool engi_fold_count(struct engi_fold *f, uint64_t hash);
void engi_fold_set_add(struct engi_fold_set *set, uint64_t hash, bool alone);
void engi_fold_enter(struct engi_fold *f, const struct engi_fold_set *set);
void engi_fold_leave(struct engi_fold *f, const struct engi_fold_set *set);
/* Holds no stripe. Whatever fails leaves the row as it was. */
void engi_fold_row(struct eng *eng, struct slice key, uint64_t hash);
