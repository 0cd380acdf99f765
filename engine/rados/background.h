/* The store's threads (engine/rados/jobs.h): they split shards that are full, move rows of wide partitions out of
 * them, fold records of many operands, and apply the batches that stores which died have left in the log. */
#pragma once

#include "engine/rados/rados.h"

int background_start(struct rados *s, struct err *e) MUST_CHECK;
void background_stop(struct rados *s); /* after what they are doing; drops the rest, which others may do again */
