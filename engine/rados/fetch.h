/* One read of the shard that holds a position, wherever splits have moved it, the records that its operands form,
 * and which tables were dropped.
 *
 *   object "dropped", key [number: table]: ['d']
 *
 * Q6. A drop is recorded before the table's objects are removed. A root is created only if there is no such record,
 *     and removed again if there is one afterwards; likewise a piece (engine/rados/move.h) and the halves
 *     of a split (engine/rados/split.c). So no object of a dropped table stays, and a write to it
 *     fails, also through a server that does not know yet that the table was dropped.
 */
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
    const char *end; /* pieces that begin at or after this key are not read; NULL if all may be */
};

struct fetched {
    struct shard *shard;    /* after an error, too; NULL if the table has no object there, and nothing was found */
    struct shard_head head;
    struct omap_pairs pairs[FETCH_PARTS];
    bool more[FETCH_PARTS];
};

/* Reads parts of one shard at one moment. Begin with zeros in out; a later call with the same out frees
 * its earlier contents. Bytes are copied to the arena. Returns 0, or a negative error number. */
int fetch(struct rados *s, uint32_t table, uint64_t position, const struct fetch_part *parts, size_t n, struct arena *a,
          struct fetched *out) MUST_CHECK;
/* Reads parts of one object, which has the head of a shard. Does not change out->shard. Returns 0, -ENOENT if there is
 * no such object, -EBADMSG if its head is damaged, or another negative error number. */
int fetch_object(struct rados *s, const char *name, const struct fetch_part *parts, size_t n, struct arena *a,
                 struct fetched *out) MUST_CHECK;
void fetched_fini(struct fetched *f);

/* Removes from the pairs the operands that were appended after a moment, given by an earlier head of the same
 * shard; now is a later head. Affects only keys that begin with the prefix of one partition, whose unchanged mark of
 * removals shows that the moment can still be read. Operands of other partitions may have been combined since. */
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

/* Combines sorted pairs to records; partitions' own keys are left out. Bytes are copied to the arena. Returns 0, or a
 * negative error number. */
int records_of(const struct rados *s, uint32_t table, const struct omap_pairs *pairs, struct arena *a,
               struct records *out) MUST_CHECK;
/* Appends the key under which an object has a copy of the record: the key of its one operand, or of the
 * combination of all. It depends on the operands' keys alone, so that two copies of the same
 * operands are the same. Returns 0, or a negative error number. */
int fetch_copy_key(const struct record *r, struct buf *out) MUST_CHECK;
/* Appends pairs. The bytes stay where they are. */
int fetch_append(struct omap_pairs *to, const struct omap_pairs *more) MUST_CHECK;
/* Returns the value of one of a partition's own keys among pairs; empty if there is none (Q4). */
struct slice fetch_partition_value(const struct omap_pairs *pairs, enum omap_partition_key what);

/* ---- heads and drops ---- */

/* Reads the head of a shard; its bytes are in the arena. With creates, a missing root is created. Returns 0, -ENOENT if
 * there is no object, perhaps because the table was dropped, -EBADMSG if its head is damaged, or another negative
 * error number. */
int head_read(struct rados *s, const struct shard *sh, bool creates, struct arena *a,
              struct shard_head *head) MUST_CHECK;
/* Returns 1 if the table was dropped, 0, or a negative error number. Memory comes from the arena. */
int head_was_dropped(struct rados *s, uint32_t table, struct arena *a) MUST_CHECK;
/* Records that the table is dropped. Returns 0, or a negative error number. */
int head_note_drop(struct rados *s, uint32_t table) MUST_CHECK;
