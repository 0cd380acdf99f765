/* What tables come to as they are stored: BillableTableSizeInBytes ("Estimate row size",
 * https://docs.aws.amazon.com/keyspaces/latest/devguide/calculating-row-size.html), and what TTL
 * takes away.
 *
 * A table's size is the sum of what its rows and static rows take, expired data until it is
 * removed, by the size model in force. It is kept by buckets of tokens: whoever asks has the
 * buckets counted again that have changed since they were counted, and nothing else. So it is exact
 * for all that was acknowledged before the question, costs writes one look at a bit, and after a
 * start the first question counts the whole table. Any thread that may block; questions about one
 * table wait for each other.
 */
#pragma once

#include "metering/size/size.h"
#include "system_schema/catalog.h"
#include "system_schema/virtual.h"

struct table_sizes;

/* rules: the size model and what goes with it. The engine outlives it. NULL: no memory. */
struct table_sizes *table_sizes_new(struct eng *eng, const struct op_cost *rules, struct err *e) MUST_CHECK;
void table_sizes_free(struct table_sizes *s);
/* From now on, and until unwatch returns, fn is told of TTL deletes. */
void table_sizes_watch(struct table_sizes *s, struct catalog *c, schema_ttl_delete_fn fn, void *arg);
void table_sizes_unwatch(struct table_sizes *s);

/* schema: the current one; tables that are not in it any more are forgotten. */
int table_billable_bytes(struct table_sizes *s, const struct schema *schema, const struct schema_table *t,
                         int64_t now_us, const struct virtual_patience *patience, struct table_size *out,
                         struct err *e) MUST_CHECK;
/* What the last of those calls that succeeded said, and the now_us that it was given; 0: there was
 * none. Any thread, and waits for none that counts. */
int64_t table_billable_last(struct table_sizes *s, const struct schema_table *t, uint64_t *bytes);
