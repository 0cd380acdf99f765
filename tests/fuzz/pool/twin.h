/* A pool of a Ceph cluster in memory, which answers at once: librados_load returns its functions in place of
 * those of Ceph's library. Objects, keys and comparisons are as librados has them; there are no watchers. */
#pragma once

#include "base/slice.h"

/* Removes all objects. No store has the pool open. */
void twin_clear(void);
/* Has fn called before each operation, without any lock, on the thread that waits for it: it may wait, and what it
 * returns in place of 0 is the operation's result. NULL: operations are answered at once, as in the beginning. */
typedef int (*twin_answer_fn)(void *arg, const char *object);
void twin_answer(twin_answer_fn fn, void *arg);
/* Sets a key of an object, as any client of the cluster may. */
void twin_set(const char *object, struct slice key, struct slice value);
