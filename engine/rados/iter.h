/* Iterators over records (kv_iter): of a range, forward only or in both directions, or of a list. */
#pragma once

#include "engine/iter.h"
#include "engine/rados/cursor.h"

/* Bytes of rows that an iterator in both directions holds; more are refused. It holds the rows of one
 * piece and those of the shard between its keys, or a whole partition that is not wide. */
enum { ITER_BACKWARDS_MAX = 64 << 20 };

/* Iterates over a list of records in the order of their keys. The list stays the caller's. Returns NULL if
 * memory is exhausted. */
struct kv_iter *iter_of_records(const struct record *records, size_t n, struct err *e) MUST_CHECK;
/* Iterates over a partition (prefix; p NULL for partitions of the table) from lower to upper; the slices stay the
 * caller's. Reads while it moves. wanted: as in struct store_range. backwards: it moves in
 * both directions in one partition; a move, or opening it, fails with ERR_READ_FAILURE if it would hold more
 * than ITER_BACKWARDS_MAX. Returns NULL with e set. */
struct kv_iter *iter_of_range(struct rados *s, uint32_t table, struct slice prefix, struct slice lower,
                              struct slice upper, bool backwards, uint64_t wanted, struct err *e) MUST_CHECK;
