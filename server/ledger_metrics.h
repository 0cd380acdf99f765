/* The ledger's figures on /metrics: CloudWatch's names as Prometheus writes names
 * (aws_cassandra_consumed_read_capacity_units_total), over all tables, or by table with
 * per_table. */
#pragma once

#include "base/buf.h"
#include "server/system_metering.h"

void ledger_metrics(struct system_metering *m, bool per_table, struct buf *out);
