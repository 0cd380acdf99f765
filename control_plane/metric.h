/* The interface through which the API gets the metrics of CloudWatch's namespace AWS/Cassandra. The
 * server implements it on its ledger (server/metering_metrics.c). */
#pragma once

#include "base/err.h"
#include "system_schema/objects/schema.h"

enum { METRIC_NAME = 64 };

/* A minute of one metric. */
struct metric {
    const char *name, *unit; /* constants, as is operation */
    const char *operation;   /* "": the metric has no such dimension */
    char keyspace[METRIC_NAME], table[METRIC_NAME]; /* "": the metric is of the account */
    uint32_t minute;         /* since 1970 */
    double sum, least, most;
    uint64_t samples;
};

struct metric_want {
    const char *name;             /* NULL for all */
    const char *keyspace, *table; /* "": metrics of the account; NULL for any */
    bool names_only;              /* gives each metric once; its values mean nothing */
    bool without_sizes;           /* does not count sizes of tables; they are 0 */
};

typedef int (*metric_fn)(void *arg, const struct metric *m);

/* each calls fn for each minute that is kept of the metrics that are wanted, in no order, until fn
 * returns -1; it then returns -1, too. -1 and err: it failed itself. It may take long, because it
 * counts sizes of tables. */
struct metric_source {
    void *arg;
    int (*each)(void *arg, const struct schema *schema, const struct metric_want *want, metric_fn fn, void *fn_arg,
                struct err *e);
};
