/* What stands now and is counted from nothing: capacities, quotas, the use of what is provisioned,
 * sizes of tables (gauge.def); for system_metering.metrics and /metrics, which put the sizes in
 * themselves: one has them counted, the other may not wait. */
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
    char keyspace[BOOK_NAME], table[BOOK_NAME]; /* "": of the account */
    uint32_t minute; /* that it is of: the running one, or of what was used the last whole one */
    double value;
};
struct gauges {
    size_t n, cap;
    struct gauge *list; /* of the caller to free */
};

/* All but the sizes. -1: no memory. Nothing is said of the use of what is provisioned while nothing is. */
int gauges_take(struct gauges *all, const struct system_metering *m) MUST_CHECK;
int gauges_put(struct gauges *all, enum gauge_id id, const char *keyspace, const char *table, uint32_t minute,
               double value) MUST_CHECK;
