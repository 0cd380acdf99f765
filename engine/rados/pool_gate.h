/* Limits the operations in flight on each object of a pool. So an object whose OSD hangs blocks few threads.
 *
 * Q25. At most POOL_IN_FLIGHT operations of a store are in flight on one object. A further operation waits for up to
 *      POOL_WAIT_US and is then refused. After an operation on an object has timed out, the store sends one operation
 *      at a time to the object and refuses the others at once, until the object answers. At most POOL_RETRIES such
 *      operations are in flight on all objects together.
 */
#pragma once

#include "base/compiler.h"

enum { POOL_IN_FLIGHT = 16, POOL_RETRIES = 16, POOL_WAIT_US = 1000000 };

struct pool_gate;

struct pool_gate *pool_gate_new(void) MUST_CHECK; /* NULL if memory is exhausted */
void pool_gate_free(struct pool_gate *g);
/* Call it before an operation on the object. Returns 0, -ENOMEM, or -EBUSY if the operation is refused. */
int pool_enter(struct pool_gate *g, const char *object) MUST_CHECK;
/* Call it after an operation for which pool_enter returned 0. rc: the operation's result. */
void pool_leave(struct pool_gate *g, const char *object, int rc);
