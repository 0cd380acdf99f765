/* A pool of a Ceph cluster in memory, which answers at once: librados_load returns its functions in place of
 * those of Ceph's library. Objects, keys and comparisons are as librados has them; there are no watchers. */
#pragma once

#include "base/slice.h"

/* Removes all objects. No store has the pool open. */
void twin_clear(void);
/* Sets a key of an object, as any client of the cluster may. */
void twin_set(const char *object, struct slice key, struct slice value);
