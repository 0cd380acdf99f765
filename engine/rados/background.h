/* The store's thread: splits shards that are full, moves rows of wide partitions out of them, folds
 * records of many operands, and applies the batches that stores which died have left in the log. */
#pragma once

#include "engine/rados/rados.h"

int background_start(struct rados *s, struct err *e) MUST_CHECK;
void background_stop(struct rados *s); /* after what it is doing; drops the rest, which others may do again */
