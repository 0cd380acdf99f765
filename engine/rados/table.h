/* Whole tables. */
#pragma once

#include "engine/rados/rados.h"

/* Removes all objects of a table. The smallest shards go first, so that a drop that was cut short
 * finds the rest when it runs again. A write meanwhile or later fails (Q6 in head.h), and the id
 * cannot be used again. Blocking, long. */
int table_drop(struct rados *s, uint32_t table, struct err *e) MUST_CHECK;
/* Frees what is in memory of a table that was freed (Q21 in shard.h). Called by the store's thread. */
void table_forget(struct rados *s, uint32_t table);
/* Keys and bytes of a table, as its shards and pieces count them. */
int table_size(struct rados *s, uint32_t table, uint64_t *keys, uint64_t *bytes, struct err *e) MUST_CHECK;
/* Calls fn for each table that has an object, in ascending order; fn returns 0 to go on, -1 to stop
 * with its error. Reads the names of all objects of the pool. */
typedef int (*table_fn)(void *arg, uint32_t table, struct err *e);
int table_each(struct rados *s, table_fn fn, void *arg, struct err *e) MUST_CHECK;
