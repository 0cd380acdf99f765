/* What was seen instead of measured: a running server's own tables (system_metering), and captures
 * of one (tools/tally/trace.h). Units are those that were charged. */
#pragma once

#include "tools/client/client.h"
#include "tools/tally/capacity/nodetool.h"

/* Statements, storage and partitions of the server's last minute. */
int observed_server(struct client *c, struct workload *w, const struct measure *m, struct note **notes,
                    struct err *e) MUST_CHECK;
/* Every request of a capture that was not refused; the schema is what its statements are of. -1:
 * also when its values are hashed, or it is damaged. */
int observed_capture(const char *path, struct workload *w, const struct measure *m, struct note **notes,
                     struct err *e) MUST_CHECK;
/* The definitions of a capture that succeeded, as CQL: the schema of what it records from its beginning. */
int observed_schema(const char *path, struct buf *out, struct err *e) MUST_CHECK;
/* The size model that a capture was charged by. */
int observed_model(const char *path, enum size_model *out, struct err *e) MUST_CHECK;

/* One partition's busiest second: counted, judged by the limits, and kept when it is among the
 * busiest. key: serialised. */
int observed_partition(struct workload *w, const struct schema_table *t, struct workload_partition p, struct slice key,
                       struct err *e) MUST_CHECK;
/* What partitions are ranked by. */
double observed_load(const struct workload_partition *p);
