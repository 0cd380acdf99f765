/* Murmur3 x64 128 as Cassandra computes it: the bytes of the tail are sign-extended, unlike in the
 * reference algorithm. */
#pragma once

#include "base/slice.h"

/* The first half of the hash of any bytes, with seed 0. */
uint64_t murmur3_hash(struct slice bytes);

/* The token of a serialised partition key (Murmur3Partitioner.getToken): murmur3_hash, but
 * Long.MAX_VALUE for Long.MIN_VALUE. The empty key has the minimum token. */
int64_t murmur3_token(struct slice key);
