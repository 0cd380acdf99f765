/* A capture in memory: its requests in the order in which they ended, its prepared statements, and
 * the links between the pages of a result. */
#pragma once

#include "metering/capture/digest.h"
#include "metering/capture/reader.h"
#include "tools/tally/world.h"

enum { TRACE_FILES = 2, TRACE_NONE = -1 };

struct trace_request {
    struct capture_request q;
    /* indexes of the requests for the previous and the next page of the same result; TRACE_NONE:
     * none */
    int64_t page_before, page_after;
    uint32_t name;       /* of the statement */
};

/* The name of a statement in reports: its text without literals. */
struct trace_name {
    const char *text;
};

struct trace {
    struct capture_reader files[TRACE_FILES];
    size_t n_files;
    struct capture_header header; /* of the first file */
    size_t n, cap;
    struct trace_request *requests;
    size_t n_statements, cap_statements;
    struct capture_statement *statements; /* by id, each once */
    bool *prepared;                       /* by statement: known in the world of trace_send */
    size_t n_names, cap_names;
    struct trace_name *names;
    uint64_t dropped;
    uint32_t parts_gone; /* earlier files that rotation has removed */
    struct slice reason; /* why the capture ended; p NULL: it did not end, or is damaged */
    char damage[512];    /* file, offset and reason; empty: none */
    struct arena arena;
};

/* Reads the file, preceded by FILE.1 when the capture was rotated. Damage is ERR_CONFIG, unless
 * up_to_damage is set: then the trace has the requests before the damage, and t->damage describes
 * it. */
int trace_open(struct trace *t, const char *path, bool up_to_damage, struct err *e) MUST_CHECK;
void trace_close(struct trace *t);

/* The statement of a prepared id; NULL if it is not in the capture. */
const struct capture_statement *trace_statement(const struct trace *t, struct slice id);
static inline const char *trace_name(const struct trace *t, const struct trace_request *r) {
    return t->names[r->name].text;
}
/* Is the statement on system tables? Drivers send many such statements, and they cost nothing. */
bool trace_is_system(const struct trace *t, uint32_t name);
/* Is the request a CREATE, ALTER or DROP? */
bool trace_is_definition(const struct trace *t, const struct trace_request *r);
/* Decodes a request; a digest is ERR_CONFIG. Slices of *out point into the body; arrays are in the
 * arena. */
int trace_decode(const struct trace_request *r, struct arena *a, struct cql_request *out, struct err *e) MUST_CHECK;
/* The request as a call of a world, at its captured time. */
struct world_call trace_call(const struct trace_request *r);
/* Runs a call of the request in a world, which stays the same from call to call, and prepares its
 * statements there. Otherwise as world_send. */
int trace_send(struct trace *t, struct world *w, const struct trace_request *r, const struct world_call *call,
               struct world_answer *out, struct slice *paging_state, bool *throttled, struct err *e) MUST_CHECK;
/* When the request ended, in microseconds since 1970. */
static inline int64_t trace_ended(const struct trace_request *r) { return r->q.began_us + (int64_t)r->q.took_us; }
