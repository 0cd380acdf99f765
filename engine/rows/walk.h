/* Reads a row with everything that covers it, as a cursor over its partition goes along: the
 * partition's deletion, its static row, its range deletions, the row. So no reader sees a row
 * without the deletion of its earlier state. Private to engine/.
 */
#pragma once

#include "engine/store.h"

/* Prepares the read's results: nothing is found. */
void engi_read_begin(struct store_read *r);
/* The cursor is over the partition, in the given tier. 0, -1, KV_INCOMPLETE: in the cache tier, there
 * are more loose range deletions than a loop compares. */
int engi_walk(struct kv_iter *it, enum eng_tier tier, struct store_read *r, struct err *e) MUST_CHECK;
/* Reads a partition's ballot. */
int engi_ballot_fetch(struct store *s, const struct eng_part *part, uint64_t *ballot, struct err *e) MUST_CHECK;

/* ---- values, and their memory ----
 *
 * A small value is copied into the caller's arena, and its cells go there. A large value is copied
 * to memory of its own, as are its cells, or stays pinned in the store. The arena owns that memory,
 * but it does not count towards the arena's limit. So a row may be larger than the memory limit of
 * a request, as long as no caller copies it into one piece. */

enum { ENGI_COPIED_MAX = 4096 /* bytes of a small value */ };

/* Copies a value. */
int engi_value_copy(struct slice bytes, struct arena *a, struct store_value *out, struct err *e) MUST_CHECK;
/* Memory that the arena owns, for the cells of a large value. release, unless NULL, is called with
 * the value's handle when the arena lets go of it. Returns NULL if memory is exhausted. */
struct arena *engi_value_own(struct arena *a, void (*release)(void *handle), void *handle) MUST_CHECK;
