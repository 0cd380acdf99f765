/* How the machine's memory is shared out, and what happens when there is none left.
 *
 * RocksDB is C++: when an allocation of its own fails it throws on whatever thread that is, which the C API cannot catch. So what it takes is
 * bounded by settings that fit the limits the process was started under; a reserve is given back once when memory runs out all
 * the same; and after that the process ends with a word and an exit code. What was acknowledged is on disk then as after kill -9.
 */
#pragma once

#include <stddef.h>

#include "base/err.h"

struct memory_plan {
    size_t block_cache_bytes, memtable_bytes; /* memtable: each of KV_MEMTABLES */
    unsigned background_jobs;
};

/* What is 0 of the wishes (in bytes, and jobs) is decided by memory and cores. ERR_CONFIG: the limit of address space is too low for them. */
struct memory_wishes {
    size_t memory, block_cache, memtables;
    unsigned background_jobs, threads;
};

int memory_plan(const struct memory_wishes *w, struct memory_plan *plan, struct err *e) MUST_CHECK;
/* Once, before other threads start. */
void memory_guard(void);
