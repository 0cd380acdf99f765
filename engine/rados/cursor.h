/* A cursor over records in key order, of one partition or of the partitions of a range. It moves
 * forward only. It returns each partition as it was at one moment, when the cursor first
 * read from it. If operands of the partition were combined, removed or moved meanwhile, it returns the rows of
 * later pages as of a later moment. A page, of about a thousand keys or PAGE_BYTES, is a consistent snapshot. */
#pragma once

#include "engine/rados/fetch.h"

struct cursor {
    struct rados *s;
    uint32_t table;
    struct slice prefix;  /* of the one partition; p NULL for a range of partitions */
    struct slice upper;   /* the first key after the range; p NULL for the end of the table */
    uint64_t max;         /* keys of the next page at most */
    uint64_t wide_max;    /* keys to read from the shard if the partition is wide */
    struct arena page;    /* of the page, the next five fields */
    struct fetched f;
    struct omap_pairs pairs;
    struct records records;
    size_t at;
    struct buf begin;     /* the value of start for this page */
    struct buf start;     /* the next page begins after this key of an object, a C string */
    uint64_t position;    /* of start */
    bool ended;           /* there is no next page */
    struct buf part;      /* the prefix of the partition that contains start; empty if none */
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
/* The caller will read about this number of records; 0 if unknown. Called before the first one: pages grow from this
 * number on. */
void cursor_expect(struct cursor *c, uint64_t records);
/* Restarts with another range of the same partition, as of the same moment if that is not past. keys, shard_keys:
 * the approximate number of keys that the range has in one object, and in the shard; UINT64_MAX if unknown. */
void cursor_restart(struct cursor *c, struct slice lower, struct slice upper, uint64_t keys, uint64_t shard_keys);
/* Returns the list of the partition's pieces, as read with the last page; empty if it is not wide. Valid until the
 * next call. Only for a cursor of one partition. */
struct slice cursor_pieces(const struct cursor *c);
/* Returns the next record, or with cursor_seek the next one from the key on. Returns 1 with *out valid until the next
 * call, 0 if there is none, or -1 with *e set; ERR_READ_TIMEOUT also if one page was rewritten again and again while it
 * was read. */
int cursor_next(struct cursor *c, const struct record **out, struct err *e) MUST_CHECK;
int cursor_seek(struct cursor *c, struct slice key, const struct record **out, struct err *e) MUST_CHECK;
