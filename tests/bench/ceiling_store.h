/* RocksDB alone for the ceiling server: the options and the memory that tallyd uses, none of its
 * code. One loop thread; one commit thread inside. */
#pragma once

#include "base/buf.h"

enum { CEILING_CACHE_MB = 128, CEILING_MEMTABLE_MB = 64, CEILING_MEMTABLES = 4 }; /* tallyd is started with the same */

enum ceiling_table { CEILING_ROWS = 16, CEILING_MERGED };

struct ceiling_store;

struct ceiling_store *ceiling_store_open(const char *dir, bool fsync, void (*on_durable)(void *arg), void *arg);
void ceiling_store_close(struct ceiling_store *s);

/* Appends the 5 stored [bytes] values of a row to out; false: no such row. */
bool ceiling_store_get(struct ceiling_store *s, enum ceiling_table table, uint32_t pk, uint32_t ck, struct buf *out);
/* Appends every row of a partition ([bytes] ck and its values); the number of rows. */
uint32_t ceiling_store_slice(struct ceiling_store *s, uint32_t pk, struct buf *out);
/* Adds a row to the wake-up's batch. values: [bytes], 5 of them where they are to be read. */
void ceiling_store_put(struct ceiling_store *s, enum ceiling_table table, uint32_t pk, uint32_t ck,
                       struct slice values);
/* Writes the batch; the sequence that ceiling_store_durable must reach before it is answered; 0:
 * the batch was empty. */
uint64_t ceiling_store_commit(struct ceiling_store *s);
uint64_t ceiling_store_durable(const struct ceiling_store *s);
