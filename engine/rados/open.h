#pragma once

#include "engine/rados/rados.h"

/* Opens the store on a pool. The strings of the options need not outlive the call. Returns NULL
 * with e set. */
struct rados *rados_open(const struct rados_options *o, struct err *e) MUST_CHECK;
/* No other call runs any more. */
void rados_close(struct rados *s);
