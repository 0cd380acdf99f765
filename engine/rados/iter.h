/* Records as the rows above want them (kv_iter): of a cursor, forward only, or of a list, both ways. */
#pragma once

#include "engine/iter.h"
#include "engine/rados/cursor.h"

/* Bytes of rows that an iterator in both directions holds. A range with more is refused. */
enum { ITER_BACKWARDS_MAX = 64 << 20 };

/* Over a list of records in the order of their keys, which stays the caller's. NULL: no memory. */
struct kv_iter *iter_of_records(const struct record *records, size_t n, struct err *e) MUST_CHECK;
/* Over a partition (prefix; p NULL: partitions of the table) from lower to upper; the slices stay
 * the caller's. Reads while it moves. backwards: it moves both ways, and reads all of the range at
 * once. NULL: e says why; ERR_READ_FAILURE: the range has more than ITER_BACKWARDS_MAX. */
struct kv_iter *iter_of_range(struct rados *s, uint32_t table, struct slice prefix, struct slice lower,
                              struct slice upper, bool backwards, struct err *e) MUST_CHECK;
