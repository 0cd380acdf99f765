/* Gauges (gauge.def): metrics that are values of this moment and not sums of events, namely
 * capacities, quotas, the use of provisioned capacity, and sizes of tables.
 * system_metering.metrics and /metrics show them. Both add the sizes themselves: the first has
 * them counted, the second must not wait for that. */
#pragma once

#include "server/system_metering.h"

enum gauge_id {
#define GAUGE(id, cloudwatch, unit, per_table, what) GAUGE_##id,
#include "server/gauge.def"
#undef GAUGE
    GAUGES
};

struct gauge_info {
    const char *cloudwatch, *unit, *what;
    bool per_table;
};
const struct gauge_info *gauge_info(enum gauge_id id);

struct gauge {
    enum gauge_id id;
    char keyspace[STATS_NAME], table[STATS_NAME]; /* "": the gauge is of the account */
    uint32_t minute; /* since 1970; the current minute, or the one before for use of capacity */
    double value;
};
struct gauges {
    size_t n, cap;
    struct gauge *list; /* the caller frees it */
};

/* Takes all gauges except the sizes. There are gauges of use only when a table is provisioned.
 * Returns -1 if memory is exhausted. */
int gauges_take(struct gauges *all, const struct system_metering *m) MUST_CHECK;
int gauges_put(struct gauges *all, enum gauge_id id, const char *keyspace, const char *table, uint32_t minute,
               double value) MUST_CHECK;
