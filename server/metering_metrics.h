/* The ledger's minutes and the gauges (metering_gauges.h) as metrics of CloudWatch's namespace
 * AWS/Cassandra. system_metering.metrics and the API show them. */
#pragma once

#include "control_plane/metric.h"
#include "server/system_metering.h"

/* The function each of a metric_source; arg: the struct system_metering. */
int metering_each_metric(void *arg, const struct schema *schema, const struct metric_want *want, metric_fn fn,
                         void *fn_arg, struct err *e) MUST_CHECK;
