/* The order in which Java's HashMap holds ByteBuffers.
 *
 * Cassandra keeps columns by name in such a map when it reads JSON and when it reads the types of a
 * CREATE TABLE. It reports the fault that comes first in the order of that map.
 */
#pragma once

#include "base/arena.h"

/* The indexes of the names, in the order of a map into which the names were put one after the
 * other. The result is in the arena. NULL: no memory. */
const uint32_t *hash_order(struct arena *a, const char *const *names, uint32_t n) MUST_CHECK;
