/* The ledger's minutes, and what stands now (metering_gauges.h), as metrics of CloudWatch's
 * namespace AWS/Cassandra: what system_metering.metrics shows and the API tells. */
#pragma once

#include "control_plane/metric.h"
#include "server/system_metering.h"

/* Of metric_source; arg: the struct system_metering. */
int metering_each_metric(void *arg, const struct schema *schema, const struct metric_want *want, metric_fn fn,
                         void *fn_arg, struct err *e) MUST_CHECK;
