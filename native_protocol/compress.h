/* Compression of v3/v4 bodies (LZ4 with a 4-byte big-endian length before the block, Snappy as it
 * is) and of v5 segments (LZ4 blocks). Pure functions; any thread. v4 specification, section 5; v5
 * specification, section 2.2. */
#pragma once

#include "base/buf.h"
#include "base/err.h"

enum np_compression { NP_COMPRESS_NONE, NP_COMPRESS_LZ4, NP_COMPRESS_SNAPPY };

/* By the name of the STARTUP option, case-insensitive; -1 if unknown. */
int np_compression_find(struct slice name, enum np_compression *out) MUST_CHECK;

/* Appends the plain form of body to out. The announced length is checked against max before
 * anything is allocated. */
int np_body_decompress(enum np_compression how, struct slice body, uint32_t max, struct buf *out,
                       struct err *e) MUST_CHECK;
/* Appends the compressed form of body, which may be larger than body. Returns false if no memory,
 * or body is too large for LZ4; out is unchanged. */
bool np_body_compress(enum np_compression how, struct slice body, struct buf *out);

/* Bare LZ4 blocks. n: the exact plain length. */
int np_block_decompress(struct slice block, size_t n, uint8_t *out) MUST_CHECK;
/* Appends a compressed block if it is smaller than plain. Returns false if nothing was appended. */
bool np_block_compress(struct slice plain, struct buf *out);
