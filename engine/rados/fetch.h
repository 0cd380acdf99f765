/* One read of the shard that holds a position, wherever splits have moved it, and the records that
 * its operands make. */
#pragma once

#include "engine/rados/omap_key.h"
#include "engine/rados/rados.h"

enum {
    FETCH_PARTS = OMAP_READ_PARTS - 1,
    /* A page of a cursor has as many keys as make this much by the average of the page before, because
     * each reader holds a page while it waits for room for its answer. */
    PAGE_BYTES = 1 << 20,
};

struct fetch_part {
    const char *start_after, *prefix; /* NUL-terminated keys of objects */
    uint64_t max;
    const char *end; /* pieces that begin here or behind it are not read; NULL if all may be */
};

struct fetched {
    struct shard *shard;    /* after an error, too; NULL if the table has no object there, and nothing was found */
    struct shard_head head;
    struct omap_pairs pairs[FETCH_PARTS];
    bool more[FETCH_PARTS];
};

/* Reads parts of one shard at one moment. Begin with zeros; a later call with the same out frees
 * what it had. Bytes go to the arena. 0, or a negative error number. */
int fetch(struct rados *s, uint32_t table, uint64_t position, const struct fetch_part *parts, size_t n, struct arena *a,
          struct fetched *out) MUST_CHECK;
/* Reads parts of one object, which has the head of a shard. Leaves out->shard. -ENOENT: there is none. */
int fetch_object(struct rados *s, const char *name, const struct fetch_part *parts, size_t n, struct arena *a,
                 struct fetched *out) MUST_CHECK;
void fetched_fini(struct fetched *f);

/* Removes the operands that were appended after a moment: that of an earlier head of the same
 * shard, where now is later. Only of keys that begin with the prefix: the moment is of one partition, whose mark
 * of removals says that it is not past. Operands of other partitions may have been combined since. */
void fetch_as_of(struct omap_pairs *pairs, const char *prefix, const struct shard_head *moment,
                 const struct shard_head *now);

struct record {
    struct slice key, value;
    const struct omap_pair *operands; /* oldest first */
    size_t n_operands;
};

struct records {
    struct record *items;
    size_t n;
};

/* The records of sorted pairs; those of partitions' own keys are left out. Bytes go to the arena. */
int records_of(const struct rados *s, uint32_t table, const struct omap_pairs *pairs, struct arena *a,
               struct records *out) MUST_CHECK;
/* Appends the key under which an object has a copy of the record: of its one operand, or of the
 * combination of all. It follows from the operands' keys alone, so that two copies of the same
 * operands are the same. 0, or a negative error number. */
int fetch_copy_key(const struct record *r, struct buf *out) MUST_CHECK;
/* Appends pairs. The bytes stay where they are. */
int fetch_append(struct omap_pairs *to, const struct omap_pairs *more) MUST_CHECK;
/* The value of one of a partition's own keys among pairs; p NULL: there is none. */
struct slice fetch_partition_value(const struct omap_pairs *pairs, enum omap_partition_key what);
