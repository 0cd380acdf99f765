/* Tokens of partition keys as clients see them, under the partitioner of their session.
 *
 * A partitioner has one of two rings: Murmur3's, whose tokens are of the type bigint, or that of MD5
 * (RandomPartitioner, and DefaultPartitioner, whose tokens are the same), of the type varint. The
 * engine stores partitions in the order of Murmur3 whatever clients see.
 */
#pragma once

#include "engine/engine.h"
#include "system_schema/system_tables/virtual.h"
#include "types/value.h"

/* The position of a token in its ring: positions have the order of tokens. 0 if the token is below the ring,
 * as only a varint can be. */
__extension__ typedef unsigned __int128 ring_position;

struct ring_range {
    enum partitioner_id partitioner;
    ring_position from, to; /* both inclusive */
};

const struct cql_type *ring_token_type(enum partitioner_id p);
/* The position of the minimum token (-2^63, or -1 with MD5), which no key of a table has. */
ring_position ring_least(enum partitioner_id p);
ring_position ring_greatest(enum partitioner_id p);
/* The last position of one of the ring's four quarters. */
ring_position ring_quarter_end(enum partitioner_id p, uint32_t quarter);

/* part: its key and token. Returns -1 with ERR_SERVER if MD5 is not available. */
int ring_position_of(enum partitioner_id p, const struct eng_part *part, ring_position *out, struct err *e) MUST_CHECK;
/* Returns 1 if the partition is in the range, 0 if not, or -1 as above. */
int ring_range_has(const struct ring_range *r, const struct eng_part *part, struct err *e) MUST_CHECK;
/* Convert from the bytes of a token's type, and to them. A varint above the ring has a position above the greatest.
 * ring_read returns false if the value is null or empty. */
bool ring_read(enum partitioner_id p, struct value v, ring_position *out) MUST_CHECK;
void ring_write(enum partitioner_id p, ring_position position, struct buf *out);

/* Writes 16 bytes to out. Returns -1 as above. */
int ring_md5(struct slice bytes, uint8_t *out, struct err *e) MUST_CHECK;
