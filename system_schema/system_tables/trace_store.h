/* The traces that system_traces.sessions and events show: in memory, the newest 256, each for a day.
 * A row that a client has written lies beside the trace and overrides its columns; a session that a client
 * has inserted is one of the 256, and its writes may hold as many bytes as a trace.
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
/* What clients have written into one row of a session. */
enum { TRACE_COLUMNS = 9 }; /* at most, of either table */
struct trace_row {
    struct trace_row *next;
    bool of_event;   /* a row of events, with this id; else the row of sessions */
    uint8_t event[16];
    bool deleted;    /* the trace's own row is gone */
    bool inserted;   /* an INSERT made the row: it stays when all its values are null */
    size_t bytes;    /* that it takes of the session's room */
    struct value values[TRACE_COLUMNS]; /* by ordinal; unset: the trace's own value */
};
/* event: an id, or NULL for the row of sessions. */
static inline bool trace_row_is(const struct trace_row *row, const uint8_t *event) {
    return row->of_event == (event != NULL) && (!event || memcmp(row->event, event, 16) == 0);
}
struct trace_session {
    uint8_t id[16]; /* timeuuid; a client that inserts a session may choose any UUID */
    bool traced; /* false: a client has inserted it, and it has only its written rows */
    int64_t machine_us; /* machine time when it began */
    int64_t started_us, duration_us;
    const char *role; /* that made the request; NULL if none has logged in */
    const char *command; /* QUERY */
    const char *request; /* "Execute CQL3 query" */
    struct slice client; /* address bytes, 4 or 16 */
    uint32_t n_parameters;
    const struct schema_option *parameters; /* query, consistency_level, page_size, ... */
    uint32_t n_events;
    const struct trace_event *events;
    const struct trace_row *written;
};

struct trace_store *trace_store_new(void) MUST_CHECK;
void trace_store_free(struct trace_store *t);
/* Stores a copy. Returns its number for trace_store_more, or 0 if memory is exhausted. */
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
/* Stores what a client writes into a row of the session: of events if event is not NULL (16 bytes), else of
 * sessions. values: by ordinal of the table's columns, unset ones stay as they are; NULL if the row is
 * deleted. role: of the client, as in trace_session, for a session that is not stored yet. -1 and
 * ERR_INVALID: the session holds too many written bytes. t may be NULL. */
int trace_store_write(struct trace_store *t, int64_t now_us, const char *role, struct slice session,
                      const struct slice *event, const struct value *values, uint32_t n, bool insert,
                      struct err *e) MUST_CHECK;
/* Delete a session, or only its events. t may be NULL. */
void trace_store_delete(struct trace_store *t, struct slice id, bool events);
/* Deletes all sessions, or only their events. t may be NULL. */
void trace_store_clear(struct trace_store *t, bool events);
