/* Reads of some records of one partition as a consistent snapshot. */
#pragma once

#include "engine/rados/fetch.h"

enum { READ_KEYS = FETCH_PARTS - 2 };

struct read_result {
    struct slice ballot;    /* empty if the partition has none */
    bool is_wide;           /* it has rows in pieces, too (engine/rados/pieces.h) */
    struct slice removals;  /* the partition's mark of removals, for a write that removes; empty if there is none */
    struct records head;    /* its deletion and its static row */
    struct records ranges;  /* its range deletions */
    struct record keys[READ_KEYS]; /* value.p NULL if there is no record */
};

/* Reads the head of a partition, and the records with the keys. Bytes are copied to the arena. Returns 0, or -1
 * with *e set. */
int read_partition(struct rados *s, struct slice prefix, const struct slice *keys, size_t n, struct arena *a,
                   struct read_result *out, struct err *e) MUST_CHECK;
/* Replaces the operands that a record has in its shard by their combination, unless another client of
 * the pool does so at the same time. */
int read_fold(struct rados *s, struct slice key, struct err *e) MUST_CHECK;
