/* How the machine's memory is shared out, and what happens when there is none left.
 *
 * RocksDB is C++: when an allocation of its own fails it throws on whatever thread that is, which
 * the C API cannot catch. So what it takes is bounded by settings that fit the limits the process
 * was started under; a reserve is given back once when memory runs out all the same; and after that
 * the process ends with a word and an exit code. What was acknowledged is on disk then as after
 * kill -9.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>

#include "base/err.h"

enum memory_part {
#define PART(id, ...) MEMORY_##id,
#include "server/memory.def"
#undef PART
    MEMORY_CACHE, /* of blocks of table files: the rest */
    MEMORY_PARTS
};

/* In bytes. */
struct memory_plan {
    size_t memory; /* all parts together */
    size_t parts[MEMORY_PARTS];
    unsigned background_jobs;
};

/* What is 0 (in bytes, and jobs) is decided by memory and cores. frame_max: of a request, which
 * must fit into what is unfinished, and what waits. */
struct memory_wishes {
    size_t memory, parts[MEMORY_PARTS], frame_max;
    bool no_row_cache;
    unsigned background_jobs, threads;
};

/* ERR_CONFIG: memory is less than its parts, or the limit of address space is too low for them. */
int memory_plan(const struct memory_wishes *w, struct memory_plan *plan, struct err *e) MUST_CHECK;
/* Once, before other threads start. */
void memory_guard(void);
