/* Murmur3 x64 128 as Cassandra computes it: the bytes of the tail are sign-extended, unlike in the
 * reference algorithm. */
#pragma once

#include "base/slice.h"

/* The first half of the hash of any bytes, with seed 0. */
uint64_t murmur3_hash(struct slice bytes);

/* The partitioner's token of a serialised partition key: murmur3_hash; Long.MIN_VALUE becomes
 * Long.MAX_VALUE, and the empty key has the minimum token (Murmur3Partitioner.getToken). */
int64_t murmur3_token(struct slice key);
