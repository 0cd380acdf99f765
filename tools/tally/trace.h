/* A capture in memory: its requests in the order in which they ended, what their prepared
 * statements say, which page followed which. */
#pragma once

#include "capture/digest.h"
#include "capture/reader.h"
#include "cql/cql.h"

enum { TRACE_FILES = 2, TRACE_NONE = -1 };

struct trace_request {
    struct capture_request q;
    /* the request whose answer this one goes on with, and the one that goes on with this one's; TRACE_NONE */
    int64_t page_before, page_after;
    uint32_t name;       /* of the statement */
};

/* A statement as reports name it: without its literals. */
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
    size_t n_names, cap_names;
    struct trace_name *names;
    uint64_t dropped;
    uint32_t parts_gone; /* files before these, which rotation has removed */
    struct slice reason; /* why it ended; p NULL: it did not, or is damaged */
    char damage[512];    /* file, offset and reason; empty: none */
    struct arena arena;
};

/* The file, with FILE.1 before it when the capture went on in a new file. What is damaged is
 * ERR_CONFIG, unless up_to_damage: then the requests before it are there, and damage says why they
 * are not more. */
int trace_open(struct trace *t, const char *path, bool up_to_damage, struct err *e) MUST_CHECK;
void trace_close(struct trace *t);

/* The statement of a prepared id; NULL: the capture does not know it. */
const struct capture_statement *trace_statement(const struct trace *t, struct slice id);
static inline const char *trace_name(const struct trace *t, const struct trace_request *r) {
    return t->names[r->name].text;
}
/* Is the statement one on system tables? Clients ask those many questions that cost nothing. */
bool trace_is_system(const struct trace *t, uint32_t name);
/* Does it make, change or drop an object of the schema? */
bool trace_is_definition(const struct trace *t, const struct trace_request *r);
/* Decodes a request that is no digest. Slices of it point into its body; arrays are in the arena. */
int trace_decode(const struct trace_request *r, struct arena *a, struct cql_request *out, struct err *e) MUST_CHECK;
/* When it ended, in microseconds since 1970. */
static inline int64_t trace_ended(const struct trace_request *r) { return r->q.began_us + (int64_t)r->q.took_us; }
