/* The order in which Java's HashMap holds ByteBuffers.
 *
 * Cassandra keeps columns by name in such a map where it reads JSON and where it reads the types of
 * a CREATE TABLE; of several faults it tells the one that it comes to first.
 */
#pragma once

#include "base/arena.h"

/* The indexes of the names in the order of the map that they were put into one after the other; in
 * the arena. NULL: no memory. */
const uint32_t *hash_order(struct arena *a, const char *const *names, uint32_t n) MUST_CHECK;
