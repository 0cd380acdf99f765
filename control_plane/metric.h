/* The metrics of CloudWatch's namespace AWS/Cassandra, as whoever counts them (the server's ledger) tells the API. */
#pragma once

#include "base/err.h"
#include "system_schema/schema.h"

enum { METRIC_NAME = 64 };

/* A minute of one metric. */
struct metric {
    const char *name, *unit; /* live on */
    const char *operation;   /* "": has no such dimension; lives on */
    char keyspace[METRIC_NAME], table[METRIC_NAME]; /* "": of no one table */
    uint32_t minute;         /* since 1970 */
    double sum, least, most;
    uint64_t samples;
};

struct metric_want {
    const char *name;             /* NULL: all */
    const char *keyspace, *table; /* "": what is of no one table; NULL: any */
    bool names_only;              /* which there are, each once; values do not count */
    bool without_sizes;           /* those that would have to be counted are not: they are 0 */
};

typedef int (*metric_fn)(void *arg, const struct metric *m);

/* each calls fn with every minute that is kept of what is wanted, in no order; -1 of fn ends it and
 * is returned, or -1: err says why not. Waits for sizes of tables to be counted. */
struct metric_source {
    void *arg;
    int (*each)(void *arg, const struct schema *schema, const struct metric_want *want, metric_fn fn, void *fn_arg,
                struct err *e);
};
