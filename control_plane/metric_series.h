/* Reads metrics for CloudWatch's operations: checks the request's members and collects the
 * datapoints. Inside control_plane only.
 *
 * A metric is named by its namespace, its name and all of its dimensions; any other name has no
 * datapoints. Minutes are combined into periods. The first period begins at the start that the
 * request names, rounded down to a minute.
 */
#pragma once

#include "control_plane/metric.h"
#include "control_plane/operation.h"

/* Returns -1 with AccessDeniedException: the role may not read system_metering.metrics, which shows
 * the same. */
int metric_check_permission(struct call *c) MUST_CHECK;

struct metric_span {
    int64_t start, end; /* seconds since 1970, whole minutes; end is exclusive */
    int64_t period;
};
/* Reads the request's members StartTime and EndTime. Returns -1 with the error invalid and the
 * reason. */
int metric_span_take(struct call *c, enum api_error invalid, struct metric_span *out) MUST_CHECK;
int metric_period_check(struct call *c, enum api_error invalid, int64_t period) MUST_CHECK;

struct metric_name {
    bool known; /* false: there is no metric of that name */
    const char *name, *keyspace, *table, *operation; /* as struct metric */
};
/* Reads a name from a document with Namespace, MetricName and Dimensions. Returns -1 if memory is
 * exhausted. */
int metric_name_take(struct call *c, const struct doc *d, struct metric_name *out) MUST_CHECK;

struct metric_point {
    int64_t at; /* the beginning of its period, seconds since 1970 */
    double sum, least, most;
    uint64_t samples;
};
struct metric_series {
    const char *unit; /* NULL if there is no point */
    uint32_t n;
    struct metric_point *points; /* in order */
};
/* Collects the datapoints of a metric. unit: take only points of that unit; NULL means any. Returns
 * -1 with e set. */
int metric_series_read(struct call *c, const struct metric_name *name, const struct metric_span *span,
                       const struct doc *unit, struct metric_series *out) MUST_CHECK;

enum metric_statistic {
    STATISTIC_SAMPLE_COUNT,
    STATISTIC_AVERAGE,
    STATISTIC_SUM,
    STATISTIC_MINIMUM,
    STATISTIC_MAXIMUM,
    STATISTICS
};
/* Returns STATISTICS when there is no statistic of that name. */
enum metric_statistic metric_statistic_find(struct slice name);
const char *metric_statistic_name(enum metric_statistic s);
double metric_statistic_of(const struct metric_point *p, enum metric_statistic s);
