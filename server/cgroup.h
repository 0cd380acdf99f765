/* The limit of a process's memory by its control group (cgroups(7)), which a container or a systemd
 * unit sets. */
#pragma once

#include <stddef.h>

/* The least limit, in bytes, of the process's group and of the groups above it. self: the file
 * that names the group (/proc/PID/cgroup); root: where groups are mounted (/sys/fs/cgroup).
 * Reads memory.max of version 2 and memory.limit_in_bytes of version 1. SIZE_MAX: no limit. */
size_t cgroup_memory_limit(const char *root, const char *self);
