/* A cluster as a store: what engine/store.h asks. */
#pragma once

#include "engine/rados/open.h"
#include "engine/store.h"

/* Every function of it waits for the cluster. So in the cache tier reads are incomplete, and a commit
 * without patience is ENG_BUSY: the caller does it again on a thread that may wait. Returns -1 with e
 * set. */
int rados_store_init(struct store *s, const struct rados_options *o, struct err *e) MUST_CHECK;
static inline struct rados *rados_of(const struct store *s) { return s->own; }
