/* Reading what a shard's object says of itself. */
#pragma once

#include "engine/rados/rados.h"

/* 0: head is filled in, in the arena. A root that is not there is made, with creates. A negative
 * error number: -ENOENT: there is no object; -EBADMSG: its head is damaged. */
int head_read(struct rados *s, const struct shard *sh, bool creates, struct arena *a,
              struct shard_head *head) MUST_CHECK;
