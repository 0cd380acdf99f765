/* A cursor over records in key order, of one partition or of the partitions of a range. It goes
 * forward only. It sees each partition as it was at one moment: the one at which the cursor first
 * read of it. If operands of the partition were combined, removed or moved meanwhile, it sees the rows of
 * later pages as of a later moment; those of one page, of which each has about a thousand keys or
 * PAGE_BYTES, are of one moment. */
#pragma once

#include "engine/rados/fetch.h"

struct cursor {
    struct rados *s;
    uint32_t table;
    struct slice prefix;  /* of the one partition; p NULL: partitions */
    struct slice upper;   /* the first key behind; p NULL: the end of the table */
    uint64_t max;         /* keys of the next page at most */
    uint64_t wide_max;    /* keys to be read of the shard, where the partition is wide */
    struct arena page;    /* what was read: */
    struct fetched f;
    struct omap_pairs pairs;
    struct records records;
    size_t at;
    struct buf begin;     /* where it began, as start */
    struct buf start;     /* the next page begins behind this key of an object, a C string, */
    uint64_t position;    /* which lies here */
    bool ended;           /* there is no next page */
    struct buf part;      /* the prefix of the partition in which it lies; empty: none */
    /* The moment of that partition: */
    bool has_moment;
    struct shard *shard;
    struct arena moment_arena;
    struct shard_head moment;
    struct buf mark, pieces; /* of removals; where its rows are */
};

/* The slices stay the caller's and must live as long as the cursor. lower: where cursor_next
 * begins. */
void cursor_init(struct cursor *c, struct rados *s, uint32_t table, struct slice prefix, struct slice lower,
                 struct slice upper);
void cursor_fini(struct cursor *c);
/* The caller will take so many records, about; 0 if unknown. Before the first of them: pages grow from as many on. */
void cursor_expect(struct cursor *c, uint64_t records);
/* Begins anew with another range of the same partition, as of the same moment if that is not past. keys, shard_keys:
 * the range has about so many keys in one object, and in the shard; UINT64_MAX: unknown. */
void cursor_restart(struct cursor *c, struct slice lower, struct slice upper, uint64_t keys, uint64_t shard_keys);
/* The list of the partition's pieces as the last page was read with it; n 0: it is not wide. Valid until the
 * next call. Only of a cursor of one partition. */
struct slice cursor_pieces(const struct cursor *c);
/* The next record, or the first one from a key on that is not in front of those read. Returns 1 if
 * *out is valid until the next call, or 0 if there is none, or -1 with ERR_READ_TIMEOUT also when
 * one page was rewritten again and again while it was read. */
int cursor_next(struct cursor *c, const struct record **out, struct err *e) MUST_CHECK;
int cursor_seek(struct cursor *c, struct slice key, const struct record **out, struct err *e) MUST_CHECK;
