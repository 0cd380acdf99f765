/* Shows the steps of a traced request, read from system_traces. */
#pragma once

#include "tools/tally/cql/shell.h"

/* Prints the steps as cqlsh does. Waits up to two seconds for a trace that is still being
 * written. */
void steps_put(struct shell *s, const uint8_t id[16]);
/* The same for an id in text form. */
void steps_put_named(struct shell *s, const char *id);
