/* The iterator of a scan of one partition. It goes through a run as far as the run has the range
 * (engine/run.h), otherwise through the store's own iterator, and notes the records it passes when
 * they should become a run. Private to engine/.
 *
 * A run may end before the scan does. Then the store's iterator goes on behind the run, provided
 * that no write to the partition took place since the run was found, so that all records are of one
 * moment. Otherwise the read is incomplete and starts again on a worker, which takes a run only if
 * it has the whole range of the scan.
 */
#pragma once

#include "engine/run.h"

/* The caller keeps spec unchanged until the iterator is freed. Its bounds are the partition's.
 * NULL: e says why. */
struct kv_iter *engi_run_iter_new(struct eng *eng, const struct kv_iter_spec *spec, const struct engi_run_want *want,
                                  struct err *e) MUST_CHECK;
