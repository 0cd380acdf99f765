/* Functions that layers above provide for system tables. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "system_schema/objects/schema.h"

struct catalog;

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

/* Call before the first statement; NULL if the server saves no states. */
void catalog_set_states(struct catalog *c, const struct catalog_states *states);
/* Call it before the first request, and with NULL after the last one. NULL means nothing scales. */
void catalog_set_scaling(struct catalog *c, const struct catalog_scaling *scaling);
/* As schema_capacity, but units that auto scaling provides replace those of the definition. */
void catalog_capacity(const struct catalog *c, const struct schema_table *t, struct table_capacity *out);
/* The settings of a table as clients see them: those of the definition, settings that follow from them,
 * and those that only the server has. region: of the stream's ARN. Returns 0, or -1 if memory is
 * exhausted. */
int catalog_settings(struct catalog *c, const struct schema_table *t, const char *region, struct arena *a,
                     struct table_settings *out) MUST_CHECK;
