/* The bounded store of traces behind system_traces. Inside system_schema only. */
#pragma once

#include "system_schema/catalog_state.h"

/* Calls fn for each stored session younger than a day, or for the one with this id, with the
 * store locked: fn must copy what it keeps. Stops at the first result that is not 0 and returns
 * it. */
int trace_store_each(struct trace_store *t, int64_t now_us, const struct value *id,
                     int (*fn)(void *arg, const struct trace_session *s), void *arg);
/* Deletes a session, or only its events. */
void trace_store_delete(struct trace_store *t, struct slice id, bool events);
/* Deletes all sessions, or only their events. */
void trace_store_clear(struct trace_store *t, bool events);
