/* The traces that system_traces.sessions and events show: in memory, the newest 256, each for a day.
 *
 * Life: the server makes one store, hands it to the catalogue, whose tables read it, and to the
 * protocol, which adds a session for each traced request. Any thread.
 */
#pragma once

#include "system_schema/objects/schema.h"
#include "types/value.h"

struct trace_store;

struct trace_event {
    int64_t at_us; /* since the request began */
    const char *activity;
    const char *thread;
};
struct trace_session {
    uint8_t id[16]; /* timeuuid */
    int64_t machine_us; /* machine time when it began */
    int64_t started_us, duration_us;
    const char *role; /* that made the request; NULL: none has logged in */
    const char *command; /* QUERY */
    const char *request; /* "Execute CQL3 query" */
    struct slice client; /* address bytes, 4 or 16 */
    uint32_t n_parameters;
    const struct schema_option *parameters; /* query, consistency_level, page_size, ... */
    uint32_t n_events;
    const struct trace_event *events;
};

struct trace_store *trace_store_new(void) MUST_CHECK;
void trace_store_free(struct trace_store *t);
/* Stores a copy. Returns its number for trace_store_more; 0: no memory. */
uint64_t trace_store_add(struct trace_store *t, const struct trace_session *s);
/* Adds the last event of the request, at this machine time. The texts must stay valid for good.
 * Does nothing if the session has left the store. */
void trace_store_more(struct trace_store *t, uint64_t trace, int64_t machine_us, const char *activity,
                      const char *thread);
/* Calls fn for each stored session younger than a day, or for the one with this id, with the
 * store locked: fn must copy what it keeps. Stops at the first result that is not 0 and returns
 * it. t NULL: there is none. */
int trace_store_each(struct trace_store *t, int64_t now_us, const struct value *id,
                     int (*fn)(void *arg, const struct trace_session *s), void *arg);
/* Delete a session, or only its events. t may be NULL. */
void trace_store_delete(struct trace_store *t, struct slice id, bool events);
/* Deletes all sessions, or only their events. t may be NULL. */
void trace_store_clear(struct trace_store *t, bool events);
