/* A cursor over records in key order, of one partition or of the partitions of a range. It goes
 * forward only. It sees each partition as it was at one moment: the one at which the cursor first
 * read of it. */
#pragma once

#include "engine/rados/fetch.h"

struct cursor {
    struct rados *s;
    uint32_t table;
    struct slice prefix;  /* of the one partition; p NULL: partitions */
    struct slice upper;   /* the first key behind; p NULL: the end of the table */
    bool small;           /* the next page is the first, and small: many readers want few rows */
    struct arena page;    /* what was read: */
    struct fetched f;
    struct omap_pairs pairs;
    struct records records;
    size_t at;
    struct buf start;     /* the next page begins behind this key of an object, a C string, */
    uint64_t position;    /* which lies here */
    bool ended;           /* there is no next page */
    /* The partition that the next page goes on with, and its moment: */
    struct buf part;      /* its prefix; empty: none */
    struct shard *shard;
    struct arena moment_arena;
    struct shard_head moment;
    struct buf mark;      /* of removals */
};

/* The slices stay the caller's and must live as long as the cursor. lower: where cursor_next
 * begins. */
void cursor_init(struct cursor *c, struct rados *s, uint32_t table, struct slice prefix, struct slice lower,
                 struct slice upper);
void cursor_fini(struct cursor *c);
/* The next record, or the first one from a key on that is not in front of those read. 1: *out is
 * valid until the next call; 0: there is none; -1: ERR_READ_TIMEOUT also when the partition was
 * rewritten meanwhile, so that its moment is past. */
int cursor_next(struct cursor *c, const struct record **out, struct err *e) MUST_CHECK;
int cursor_seek(struct cursor *c, struct slice key, const struct record **out, struct err *e) MUST_CHECK;
