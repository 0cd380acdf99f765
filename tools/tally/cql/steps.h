/* The steps of a traced request, from system_traces. */
#pragma once

#include "tools/tally/cql/shell.h"

/* Shown as cqlsh shows them. Waits a few seconds for a trace that is still being written. */
void steps_put(struct shell *s, const uint8_t id[16]);
/* The same of an id in its text form. */
void steps_put_named(struct shell *s, const char *id);
