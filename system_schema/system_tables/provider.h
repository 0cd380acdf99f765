/* Functions that layers above provide for system tables. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

struct err;

/* The operations behind system_control.snapshots. The layer that can stop all other work
 * provides them. Each runs on the thread of a statement. */
struct catalog_states {
    void *arg;
    int (*save)(void *arg, const char *name, const char *keyspace, struct err *e); /* keyspace "": everything */
    int (*put_back)(void *arg, const char *name, struct err *e);
    int (*remove)(void *arg, const char *name, struct err *e);
};

/* The units that auto scaling provides; the request limiter implements it. Any thread. */
struct catalog_scaling {
    /* Returns false if auto scaling has changed nothing of the table. units: per second, indexed by
     * enum capacity_kind. */
    bool (*units)(void *arg, uint32_t object, int64_t units[2]);
    void *arg;
};
