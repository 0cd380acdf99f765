/* Records as the rows above want them (kv_iter): of a range, forward only or both ways, or of a list. */
#pragma once

#include "engine/iter.h"
#include "engine/rados/cursor.h"

/* Bytes of rows that an iterator in both directions holds; more are refused. These are the rows of one
 * piece with those that the shard has between its keys, or a whole partition that is not wide. */
enum { ITER_BACKWARDS_MAX = 64 << 20 };

/* Over a list of records in the order of their keys, which stays the caller's. Returns NULL if
 * memory is exhausted. */
struct kv_iter *iter_of_records(const struct record *records, size_t n, struct err *e) MUST_CHECK;
/* Over a partition (prefix; p NULL: partitions of the table) from lower to upper; the slices stay the
 * caller's. Reads while it moves. wanted: as in struct store_range, forward only. backwards: it moves
 * both ways in one partition; a move, or opening it, may end with ERR_READ_FAILURE: it would hold more
 * than ITER_BACKWARDS_MAX. Returns NULL with e set. */
struct kv_iter *iter_of_range(struct rados *s, uint32_t table, struct slice prefix, struct slice lower,
                              struct slice upper, bool backwards, uint64_t wanted, struct err *e) MUST_CHECK;
