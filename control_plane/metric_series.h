/* Metrics as CloudWatch's operations ask for them: what is asked, checked, and the datapoints of
 * it. Inside control_plane only.
 *
 * A metric is named by its namespace, name and dimensions, all of them; nothing is kept of any
 * other. Minutes are gathered into periods, which begin at the start that was asked for, rounded
 * down to a minute.
 */
#pragma once

#include "control_plane/metric.h"
#include "control_plane/operation.h"

/* -1: AccessDeniedException: the role may not read system_metering.metrics, which shows the same. */
int metric_check_permission(struct call *c) MUST_CHECK;

struct metric_span {
    int64_t start, end; /* seconds since 1970, whole minutes; end is not in it */
    int64_t period;
};
/* Of members StartTime and EndTime of the request. -1: invalid, and why. */
int metric_span_take(struct call *c, enum api_error invalid, struct metric_span *out) MUST_CHECK;
int metric_period_check(struct call *c, enum api_error invalid, int64_t period) MUST_CHECK;

struct metric_name {
    bool known; /* false: nothing is kept under such a name */
    const char *name, *keyspace, *table, *operation; /* as struct metric */
};
/* Of a document with Namespace, MetricName and Dimensions. -1: no memory. */
int metric_name_take(struct call *c, const struct doc *d, struct metric_name *out) MUST_CHECK;

struct metric_point {
    int64_t at; /* where its period begins, seconds since 1970 */
    double sum, least, most;
    uint64_t samples;
};
struct metric_series {
    const char *unit; /* NULL: there is no point */
    uint32_t n;
    struct metric_point *points; /* in order */
};
/* unit: of points that count, or NULL. -1: err. */
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
/* STATISTICS: it is none of these. */
enum metric_statistic metric_statistic_find(struct slice name);
const char *metric_statistic_name(enum metric_statistic s);
double metric_statistic_of(const struct metric_point *p, enum metric_statistic s);
