/* Reading what a shard's object says of itself, and which tables were dropped.
 *
 *   object "dropped", key [number: table]: ['d']
 *
 * Q6. A drop is recorded before the table's objects are removed. A root is made only if the record
 * is not there, and removed again if it is there then; so are a piece (engine/rados/move.h) and the
 * halves of a split (engine/rados/split.c). So of a dropped table no object stays, and a write to it
 * fails, also through a server that does not know yet that it was dropped. */
#pragma once

#include "engine/rados/rados.h"

/* Returns 0 if head is filled in, in the arena. A root that is not there is made, with creates. A
 * negative error number: -ENOENT: there is no object, and the table was perhaps dropped; -EBADMSG:
 * its head is damaged. */
int head_read(struct rados *s, const struct shard *sh, bool creates, struct arena *a,
              struct shard_head *head) MUST_CHECK;
/* Returns 1 if the table was dropped, 0, or a negative error number. Memory comes from the arena. */
int head_was_dropped(struct rados *s, uint32_t table, struct arena *a) MUST_CHECK;
/* Records that the table is dropped. 0, or a negative error number. */
int head_note_drop(struct rados *s, uint32_t table) MUST_CHECK;
