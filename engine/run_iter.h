/* The iterator of a scan of one partition: it goes through a run while that has what is asked for
 * (engine/run.h), else through the store's own iterator, and notes what that passes when a run is
 * to be made of it. Private to engine/.
 *
 * A run may end before the scan does. Then the store's iterator goes on behind it, provided that
 * nobody has written to the partition since the run was found, so that all is of one moment; else
 * the read is incomplete and begins anew on a worker, which takes a run only when that has all that
 * it may look at.
 */
#pragma once

#include "engine/run.h"

/* spec stays the caller's, and as it is, until the iterator is freed: its bounds are the
 * partition's. NULL: e says why. */
struct kv_iter *engi_run_iter_new(struct eng *eng, const struct kv_iter_spec *spec, const struct engi_run_want *want,
                                  struct err *e) MUST_CHECK;
