/* Observed figures, which replace measurements: from a running server's tables (system_metering) or
 * from a capture (tools/tally/trace.h). Units are the charged ones. */
#pragma once

#include "tools/client/client.h"
#include "tools/tally/capacity/day.h"

/* Statements, storage and partitions of the server's last minute. */
int observed_server(struct client *c, struct workload *w, const struct measure *m, struct err *e) MUST_CHECK;
/* Adds every request of a capture that was not refused and is on a table of m's schema. Returns -1
 * with e set; also when the capture's values are hashed, or it is damaged. */
int observed_capture(const char *path, struct workload *w, const struct measure *m, struct err *e) MUST_CHECK;
/* Writes the successful definitions of a capture as CQL; complete only if the capture began before
 * them. */
int observed_schema(const char *path, struct buf *out, struct err *e) MUST_CHECK;
/* The size model that a capture was charged by. */
int observed_model(const char *path, enum size_model *out, struct err *e) MUST_CHECK;
