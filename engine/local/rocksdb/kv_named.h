/* Named records and whole tables in a store of keys and values (engine/local/rocksdb/kv.h), for the
 * stores that keep both in one. Private to engine/.
 *
 * Invariant 11: a conditional write takes place only if all its conditions hold at the moment when
 *              it does, whatever other threads and engines write. A store with several writers
 *              checks the conditions itself. In a store with one writer the caller makes the writes
 *              of named records one after the other.
 */
#pragma once

#include "engine/named.h"
#include "engine/table.h"
#include "engine/local/rocksdb/kv.h"

/* Each is as the function of engine/engine.h or engine/store.h. */
int engi_named_write(struct kv *kv, uint32_t n, const struct eng_meta_change *changes, struct err *e) MUST_CHECK;
int engi_named_scan(struct kv *kv, struct slice prefix, eng_meta_fn fn, void *arg, struct err *e) MUST_CHECK;
int engi_each_stored(struct kv *kv, eng_stored_fn fn, void *arg, struct err *e) MUST_CHECK;
/* Removes the rows of a table. */
int engi_drop_rows(struct kv *kv, uint32_t table, struct err *e) MUST_CHECK;
