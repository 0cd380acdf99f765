/* Observed figures, which replace measurements: from a running server's tables (system_metering) or
 * from a capture (tools/tally/trace.h). Units are the charged ones. */
#pragma once

#include "tools/client/client.h"
#include "tools/tally/capacity/nodetool.h"

/* Statements, storage and partitions of the server's last minute. */
int observed_server(struct client *c, struct workload *w, const struct measure *m, struct note **notes,
                    struct err *e) MUST_CHECK;
/* Adds every request of a capture that was not refused and is on a table of m's schema. -1: e; also
 * when the capture's values are hashed, or it is damaged. */
int observed_capture(const char *path, struct workload *w, const struct measure *m, struct note **notes,
                     struct err *e) MUST_CHECK;
/* Writes the successful definitions of a capture as CQL; complete only if the capture began before
 * them. */
int observed_schema(const char *path, struct buf *out, struct err *e) MUST_CHECK;
/* The size model that a capture was charged by. */
int observed_model(const char *path, enum size_model *out, struct err *e) MUST_CHECK;

/* Adds a statement of the table with its executions a second. line: its number in the file. NULL:
 * no memory. */
struct workload_observed *observed_statement(struct workload *w, const char *text, const char *file, uint32_t line,
                                             const struct schema_table *t, double rate) MUST_CHECK;
/* Counts a partition by its busiest second, judges it by the limits, and keeps it if it is among
 * the busiest. key: serialised. */
int observed_partition(struct workload *w, const struct schema_table *t, struct workload_partition p, struct slice key,
                       struct err *e) MUST_CHECK;
/* The load by which partitions are ranked. */
double observed_load(const struct workload_partition *p);
