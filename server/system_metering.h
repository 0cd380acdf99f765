/* The keyspace system_metering: virtual tables that show charges, limits and use. They are the
 * rows of system_metering.def and are registered with the catalogue (system_schema/system_tables/virtual.h).
 * Reading them costs no units. */
#pragma once

#include "control_plane/metric.h"
#include "cql/cql.h"
#include "keyspaces/report.h"
#include "metering/ledger/ledger.h"
#include "server/admission.h"
#include "system_schema/catalog.h"
#include "system_schema/system_tables/row_out.h"
#include "system_schema/system_tables/virtual.h"

/* The sources of the tables' data; must outlive the catalogue. */
struct system_metering {
    struct ledger *ledger;
    struct clock *clock;
    struct cql_db *db; /* NULL until it is open; the tables are not read before */
    struct admission *admission;
    struct compat_report *report; /* NULL if --compatibility is not report */
    struct catalog *catalog; /* the watched one; NULL if none yet */
    struct catalog_listener listener;
};

enum system_metering_table {
#define METERING_TABLE(name, comment, columns) METERING_##name,
#include "server/system_metering.def"
#undef METERING_TABLE
    METERING_TABLES
};

/* A callback of cql_db_options; m is the struct system_metering. */
void system_metering_ttl_delete(void *m, const struct schema_table *t, uint64_t units);
void system_metering_tables(struct system_metering *m, struct virtual_table tables[METERING_TABLES]);
/* Removes the tables from the ledger that were dropped while the server was down, and from now
 * on each table that is dropped. */
void system_metering_watch(struct system_metering *m, struct catalog *c);
void system_metering_unwatch(struct system_metering *m);
/* The ledger's minutes and the gauges as metrics of CloudWatch's namespace
 * AWS/Cassandra (metering_metrics.c): the function each of a metric_source. arg: the struct system_metering. */
int metering_each_metric(void *arg, const struct schema *schema, const struct metric_want *want, metric_fn fn,
                         void *fn_arg, struct err *e) MUST_CHECK;
/* The ledger's figures on /metrics: CloudWatch's names as Prometheus writes names
 * (aws_cassandra_consumed_read_capacity_units_total), over all tables or by table. */
void ledger_metrics(struct system_metering *m, bool per_table, struct buf *out);

/* ---- for the functions that yield the rows, one per row of system_metering.def ---- */

#define YIELDS_METERING(name) int yield_##name(struct row_out *ro)
#define METERING_TABLE(name, comment, columns) YIELDS_METERING(name);
#include "server/system_metering.def"
#undef METERING_TABLE

static inline struct system_metering *metering_of(const struct schema_table *t) { return t->virt->owner; }
static inline void row_count(struct row_out *ro, const char *column, uint64_t n) { row_long(ro, column, (int64_t)n); }
