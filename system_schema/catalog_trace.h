/* The bounded store of traces behind system_traces. Inside system_schema only. */
#pragma once

#include "system_schema/catalog_state.h"

/* Every kept session, or the one with this id, while the store is locked: fn must copy what it keeps. Stops at the first
 * result that is not 0 and returns it. */
int trace_store_each(struct trace_store *t, const struct value *id, int (*fn)(void *arg, const struct trace_session *s), void *arg);
