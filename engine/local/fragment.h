/* Fragmenting: the loose range tombstones of a partition are merged with the fragments that they
 * overlap into new fragments, which are disjoint. So a newer deletion replaces the older ones that
 * it covers, and a read looks at one fragment.
 *
 * Invariant 2: the fragments of a partition are disjoint, and only the thread that holds the
 *              partition's guard alone for it (engi_partition_fragment) writes or deletes them.
 *              Writers of loose records only share the guard: a loose record that is written again
 *              has the same content, so removing it after fragmenting loses nothing.
 */
#pragma once

#include "engine/local/local.h"
#include "engine/rows/tombstone.h"

/* Bounds of one step: loose records, and fragments below them. */
enum { ENGI_FRAGMENT_LOOSE = 64, ENGI_FRAGMENT_PIECES = 256 };

/* One step. Returns 1 if loose records are left, 0 if none, or -1 on error, ENG_INCOMPLETE. */
int engi_fragment_step(struct local *own, enum eng_tier tier, struct slice prefix, struct err *e) MUST_CHECK;
/* All of it. Blocking. */
int engi_fragment_all(struct local *own, struct slice prefix, struct err *e) MUST_CHECK;
