/* How the machine's memory is divided, and what happens when none is left.
 *
 * RocksDB is C++: when one of its allocations fails, it throws an exception, which the C API
 * cannot catch. So memory_plan bounds the memory of RocksDB by settings that fit the process's
 * limits. If memory still runs out, a reserve is freed, once. The next time, the process
 * ends with a log line and an exit code. Acknowledged writes are on disk then, as after kill -9.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>

#include "base/err.h"

enum memory_part {
#define PART(id, ...) MEMORY_##id,
#include "server/memory.def"
#undef PART
    MEMORY_CACHE, /* the cache of blocks of table files, which gets the rest */
    MEMORY_PARTS
};

/* Sizes are in bytes. */
struct memory_plan {
    size_t memory; /* the sum of all parts */
    size_t parts[MEMORY_PARTS];
    unsigned background_jobs;
};

/* The settings. A size (in bytes) or number of jobs that is 0 is chosen by the machine's memory
 * and cores. frame_max: the largest request, which must fit into the parts UNFINISHED and
 * QUEUED. */
struct memory_settings {
    size_t memory, parts[MEMORY_PARTS], frame_max;
    bool no_row_cache;
    unsigned background_jobs, threads;
};

/* ERR_CONFIG: memory is less than its parts, or the limit of address space is too low for them. */
int memory_plan(const struct memory_settings *w, struct memory_plan *plan, struct err *e) MUST_CHECK;
/* Sets up the reserve and the C library's allocator. Call it once, before other threads start. */
void memory_guard(void);
