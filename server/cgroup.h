/* What a process may take by its control group (cgroups(7)), as the container or the systemd unit
 * that it runs in sets it. */
#pragma once

#include <stddef.h>

/* The least limit of memory, in bytes, of the group that self names (the text of /proc/PID/cgroup)
 * and those around it, below root (where they are mounted: /sys/fs/cgroup). Both hierarchies:
 * memory.max of version 2, memory.limit_in_bytes of version 1. SIZE_MAX: there is none. */
size_t cgroup_memory_limit(const char *root, const char *self);
