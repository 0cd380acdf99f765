/* One operation of the API under way. Inside control_plane only. */
#pragma once

#include "access/access.h"
#include "control_plane/document.h"
#include "control_plane/options.h"

/* The errors of the service model, with their HTTP status. */
enum api_error {
#define API_ERROR(name, status, code) API_##name,
#include "control_plane/error.def"
#undef API_ERROR
};

struct call {
    const struct control_plane_options *o;
    struct arena *arena;
    const char *role;            /* who has signed; NULL: nobody needs to */
    const struct schema *schema; /* as it is when the operation begins */
    const struct doc *in;        /* of the operation's shape */
    struct doc_maker make;
    struct doc *out;             /* a map, to be filled */
    enum api_error error;        /* with -1 */
    const char *resource;        /* the ARN that a ResourceNotFoundException names, or NULL */
    struct err *err;             /* its text */
};

/* -1, with that error. */
int call_fail(struct call *c, enum api_error error, const char *fmt, ...) PRINTF_LIKE(3, 4);
int call_nomem(struct call *c);

/* Each answers 0, or -1 with the error. */
#define OPERATION(service, name, input, run) int op_##run(struct call *c) MUST_CHECK;
#include "control_plane/operation.def"
#undef OPERATION

/* ---- resources ---- */

/* Members of the request that its shape requires, as C texts; NULL: no memory. */
const char *call_text(struct call *c, const char *member);
/* ARNs; NULL: no memory. */
const char *arn_of_keyspace(struct call *c, const char *keyspace);
const char *arn_of_table(struct call *c, const char *keyspace, const char *table);

/* One that AWS has, too: Tally's own system keyspaces are not listed, nor found. */
bool call_shows(const struct schema_keyspace *ks);
/* What a request names. NULL: ResourceNotFoundException. */
const struct schema_space *call_space(struct call *c, const char *keyspace);
/* -1, with that error. */
int call_no_keyspace(struct call *c, const char *keyspace);
const struct schema_table *call_table(struct call *c, const char *keyspace, const char *table); /* of any status */
const struct schema_type *call_type(struct call *c, const char *keyspace, const char *name);
/* -1: AccessDeniedException: who has signed may make nothing there. Asked before what is there is told. */
int call_check_creator(struct call *c, enum resource_kind kind, const char *keyspace) MUST_CHECK;
/* -1: ConflictException: something is under way in it. */
int call_check_active(struct call *c, const char *what, const char *name, enum schema_status status) MUST_CHECK;

/* As CQL writes it; NULL: no memory. */
const char *type_text(struct call *c, const struct cql_type *t);

/* ---- pages ---- */

/* A page of names in order: where it begins, by its token, and how many it has. */
struct page {
    const char *after; /* "": at the beginning */
    uint32_t room;
    const char *token; /* the member's name, of requests and of answers */
};
/* maxResults, and nextToken. */
int page_begin(struct call *c, struct page *p) MUST_CHECK;
/* Of a service that calls its token so: -1: invalid, when the token is not one of this service. */
int page_begin_at(struct call *c, struct page *p, const char *token, uint32_t room, enum api_error invalid) MUST_CHECK;
/* Is the name on the page? Called with each, in order; once the page is full it puts the token. */
bool page_takes(struct call *c, struct page *p, const char *name);
/* Puts a token that says so. */
int page_end(struct call *c, const char *token, const char *after) MUST_CHECK;
