/* The operations under way on each object of a pool, so that an object whose OSD hangs takes few threads.
 *
 * Q25. At most POOL_IN_FLIGHT operations of a store are under way on one object. Further ones wait for
 *      POOL_PATIENCE_US, and are then refused. After an operation on an object has timed out, one at a time is
 *      sent to it and the others are refused at once, until one is answered.
 */
#pragma once

#include "base/compiler.h"

enum { POOL_IN_FLIGHT = 16, POOL_PATIENCE_US = 1000000 };

struct pool_gate;

struct pool_gate *pool_gate_new(void) MUST_CHECK; /* NULL: no memory */
void pool_gate_free(struct pool_gate *g);
/* Before an operation on the object. Returns 0, -ENOMEM, or -EBUSY: it is refused. */
int pool_enter(struct pool_gate *g, const char *object) MUST_CHECK;
/* After an operation for which pool_enter returned 0. rc: its result. */
void pool_leave(struct pool_gate *g, const char *object, int rc);
