/* What the tests on a cluster share. A record's value is a set of numbers, as u32 in ascending
 * order; reconciliation is the union, so that a test sees exactly which operands a record has. */
#pragma once

#include "engine/rados/cursor.h"
#include "engine/rados/rados.h"
#include "engine/rados/read.h"
#include "engine/rados/write.h"

/* Opens a store on the cluster of TALLY_RADOS_CONF. Ends the program when there is none. */
struct rados *harness_open(uint64_t split_keys, unsigned timeout_s);
/* A table that no test has used. */
uint32_t harness_table(void);
/* The process of an OSD. */
int harness_osd(int osd);
/* Stops an OSD, and returns when none of its threads runs; lets it go on. */
void harness_pause(int osd);
void harness_resume(int osd);

/* Keys of partition `number`, with a token that is spread over all tokens. */
void harness_prefix(struct buf *out, uint32_t table, uint32_t number);
void harness_key(struct buf *out, uint32_t table, uint32_t number, uint8_t kind, struct slice rest);

int harness_merge(struct slice a, struct slice b, struct buf *out);
static inline size_t harness_count(struct slice set) { return set.n / 4; }
bool harness_has(struct slice set, uint32_t number);

/* Appends one number to n rows of a partition, as one group. The result of the group. */
int harness_append(struct rados *s, uint32_t table, uint32_t partition, const uint32_t *rows, size_t n, uint32_t number,
                   struct err *e);
