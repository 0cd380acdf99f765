#include "server/memory.h"

#include <malloc.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <unistd.h>

#include "base/log.h"
#include "engine/engine.h"
#include "server/cgroup.h"

#define MB ((size_t)1 << 20)

enum { CACHE_LEAST = 8 };

/* std::set_new_handler, from the C++ library that RocksDB is linked with. */
void *_ZSt15set_new_handlerPFvvE(void (*handler)(void));

static size_t address_space(void) {
    struct rlimit r;
    return getrlimit(RLIMIT_AS, &r) || r.rlim_cur == RLIM_INFINITY ? SIZE_MAX : (size_t)r.rlim_cur;
}

static size_t least(size_t a, size_t b) { return a < b ? a : b; }
static size_t between(size_t v, size_t low, size_t high) { return v < low ? low : v > high ? high : v; }

static unsigned cores(void) {
    long n = sysconf(_SC_NPROCESSORS_ONLN);
    return n > 0 ? (unsigned)n : 1;
}

static const struct memory_bounds {
    unsigned of_64;
    size_t least, most; /* MB */
} parts[MEMORY_CACHE] = {
#define PART(id, option, shift, of_64, least, most) [MEMORY_##id] = {of_64, least, most},
#include "server/memory.def"
#undef PART
};

static size_t least_of(const struct memory_settings *w, int i) {
    size_t n = parts[i].least * MB;
    bool holds_requests = i == MEMORY_UNFINISHED || i == MEMORY_QUEUED;
    return holds_requests && n < w->frame_max + w->frame_max / 2 ? w->frame_max + w->frame_max / 2 : n;
}

/* The memory needed when each part is as small as allowed. */
static size_t least_memory(const struct memory_settings *w) {
    size_t n = w->parts[MEMORY_CACHE] ? w->parts[MEMORY_CACHE] : CACHE_LEAST * MB;
    for (int i = 0; i < MEMORY_CACHE; i++) n += w->parts[i] ? w->parts[i] : least_of(w, i);
    return n;
}

static void divide(const struct memory_settings *w, struct memory_plan *plan) {
    size_t cache = plan->memory;
    size_t spare = plan->memory - least_memory(w); /* may be added to the least sizes of parts */
    for (int i = 0; i < MEMORY_CACHE; i++) {
        size_t low = least_of(w, i), share = plan->memory / 64 * parts[i].of_64;
        size_t more = share > low ? between(share, low, parts[i].most * MB > low ? parts[i].most * MB : low) - low : 0;
        if (more > spare) more = spare;
        /* The row cache gets at most half of the spare memory; the cache of blocks gets the
         * rest. */
        if (i == MEMORY_ROW_CACHE) more = w->no_row_cache ? 0 : least(more, spare / 2);
        plan->parts[i] = w->parts[i] ? w->parts[i] : low + more;
        if (!w->parts[i]) spare -= more;
        cache -= plan->parts[i];
    }
    plan->parts[MEMORY_CACHE] = w->parts[MEMORY_CACHE] ? w->parts[MEMORY_CACHE] : cache;
}

int memory_plan(const struct memory_settings *w, struct memory_plan *plan, struct err *e) {
    enum { SHARE = 4, MOST = 32768, JOBS_LEAST = 2, JOBS_MOST = 8, BASE = 320, THREAD = 10, WORKERS = 24 };
    long pages = sysconf(_SC_PHYS_PAGES), page = sysconf(_SC_PAGESIZE);
    size_t machine = pages > 0 && page > 0 ? (size_t)pages * (size_t)page : 1024 * MB;
    size_t group = cgroup_memory_limit("/sys/fs/cgroup", "/proc/self/cgroup");
    size_t available = least(machine, least(address_space(), group));
    size_t need = least_memory(w), usual = least(available / SHARE, MOST * MB);
    if (w->memory && w->memory < need)
        return err_set(e, ERR_CONFIG, "--memory must be %zu or more, not %zu: the sum of the minimums of its parts",
                       (need + MB - 1) / MB, w->memory / MB);
    plan->memory = w->memory ? w->memory : usual > need ? usual : need;
    divide(w, plan);
    plan->background_jobs = w->background_jobs ? w->background_jobs : (unsigned)between(cores(), JOBS_LEAST, JOBS_MOST);
    /* The limit of address space also counts memory that is only reserved: stacks, and the arenas of
     * the C library. */
    size_t memory = plan->parts[MEMORY_CACHE] + plan->parts[MEMORY_MEMTABLES] + plan->parts[MEMORY_ROW_CACHE];
    size_t limit = address_space(), threads = (w->threads ? w->threads : cores()) + WORKERS;
    size_t reserved = BASE * MB + threads * THREAD * MB + memory + memory / 2;
    if (reserved <= limit) return 0;
    return err_set(e, ERR_CONFIG,
                   "the limit of address space (ulimit -v) is %zu MB, but about %zu MB are needed for %zu MB of caches "
                   "and memtables and %zu "
                   "threads: raise the limit, or lower --memory, --block-cache, --memtables or --threads",
                   limit / MB, reserved / MB, memory / MB, threads);
}

/* ---- when no memory is left ---- */

static _Atomic(void *) reserve;

static void on_no_memory(void) {
    void *kept = atomic_exchange(&reserve, NULL);
    if (!kept)
        log_fatal("no memory is left (limit, or the machine's): the server ends; what was acknowledged is on disk");
    free(kept);
    log_warn("memory runs out: the reserve is given back");
}

void memory_guard(void) {
    enum { RESERVE = 32, ARENAS = 2, LARGE = 2, KEPT = 8 };
    /* With fixed thresholds, large allocations return to the system when they are freed. By
     * default the C library raises its threshold for mmap to the size of each mapped block that
     * is freed, up to 32 MB (mallopt(3), "dynamic mmap threshold"), and each of its arenas keeps
     * up to twice the threshold. A few rows of 5 MB would then keep hundreds of MB in the
     * process. */
    mallopt(M_MMAP_THRESHOLD, (int)(LARGE * MB));
    mallopt(M_TRIM_THRESHOLD, (int)(KEPT * MB));
    if (address_space() != SIZE_MAX) mallopt(M_ARENA_MAX, ARENAS); /* each reserves 64 MB or more */
    atomic_store(&reserve, malloc(RESERVE * MB));
    _ZSt15set_new_handlerPFvvE(on_no_memory);
}
