/* The iterator of a scan of one partition. It goes through a cached range as far as the cached
 * range has the range (engine/local/range_cache.h), otherwise through the store's own iterator, and
 * notes the records it passes when they should become a cached range. Private to engine/.
 *
 * A cached range may end before the scan does. Then the store's iterator goes on behind the cached
 * range, provided that no write to the partition took place since the cached range was found, so
 * that all records are of one moment. Otherwise the read is incomplete and starts again on a
 * worker, which takes a cached range only if it has the whole range of the scan.
 */
#pragma once

#include "engine/local/range_cache.h"

/* The bounds of spec are the partition's. NULL: e says why. */
struct kv_iter *engi_range_iter_new(struct local *own, const struct kv_iter_spec *spec,
                                    const struct engi_range_want *want, struct err *e) MUST_CHECK;
