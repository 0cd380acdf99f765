/* The stored sizes of tables: BillableTableSizeInBytes ("Estimate row size",
 * https://docs.aws.amazon.com/keyspaces/latest/devguide/calculating-row-size.html)and the reports
 * of TTL deletes.
 *
 * A table's size is the sum of what its rows and static rows take, expired data until it is
 * removed, by the size model in force. The sums are kept by buckets of tokens. A call counts again
 * only the buckets that have changed since they were counted. So the size covers every write that
 * was acknowledged before the call, and a write pays one test of a bit. After a start the first
 * call counts the whole table. Any thread that may block; calls for one table wait for each other.
 */
#pragma once

#include "metering/size/size.h"
#include "system_schema/catalog.h"
#include "system_schema/system_tables/virtual.h"

struct table_sizes;

/* rules: the size model and what goes with it. The engine outlives it. Returns NULL if memory is
 * exhausted. */
struct table_sizes *table_sizes_new(struct eng *eng, const struct op_cost *rules, struct err *e) MUST_CHECK;
void table_sizes_free(struct table_sizes *s);
/* From now on, and until unwatch returns, TTL deletes are reported to fn. */
void table_sizes_watch(struct table_sizes *s, struct catalog *c, schema_ttl_delete_fn fn, void *arg);
void table_sizes_unwatch(struct table_sizes *s);

/* schema: the current one; some tables that are not in it any more are forgotten. */
int table_billable_bytes(struct table_sizes *s, const struct schema *schema, const struct schema_table *t,
                         int64_t now_us, const struct stop_check *stop_check, struct table_size *out,
                         struct err *e) MUST_CHECK;
/* The result of the last table_billable_bytes that succeeded; returns the now_us of that call, 0:
 * there was none. Any thread; does not wait for a count in progress. */
int64_t table_billable_last(struct table_sizes *s, const struct schema_table *t, uint64_t *bytes);
