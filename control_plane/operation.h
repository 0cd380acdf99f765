/* A call: one running operation of the API. Inside control_plane only. */
#pragma once

#include "access/access.h"
#include "base/ip_address.h"
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
    const char *operation;       /* its name: UpdateTable */
    struct arena *arena;
    const char *region;          /* in the names of resources; see signature_region */
    const char *role;            /* the signer's role; NULL means the server asks for no signatures */
    char client[IP_ADDRESS_TEXT]; /* its numeric address */
    const struct schema *schema; /* a snapshot, taken when the operation began */
    const struct doc *in;        /* the request; it has the operation's shape */
    struct doc_maker make;
    struct doc *out;             /* the answer: a map that the operation fills */
    struct ast_stmt *statement;  /* that is run after the operation, and that the answer is about; NULL if none */
    enum api_error error;        /* valid after -1 */
    const char *resource;        /* the ARN that a ResourceNotFoundException names, or NULL */
    struct err *err;             /* its text */
};

/* Sets the error and its text. Returns -1. */
int call_fail(struct call *c, enum api_error error, const char *fmt, ...) PRINTF_LIKE(3, 4);
int call_nomem(struct call *c);

/* The operations. Each returns 0, or -1 with the error. One that changes something makes a
 * statement (tree.h) and the answer for when the statement succeeds. */
#define OPERATION(service, name, input, run) int op_##run(struct call *c) MUST_CHECK;
#include "control_plane/operation.def"
#undef OPERATION

/* ---- resources ---- */

/* A member that the request's shape requires, as a C string; NULL if memory is exhausted. */
const char *call_text(struct call *c, const char *member);
/* ARNs; NULL if memory is exhausted. */
const char *arn_of_keyspace(struct call *c, const char *keyspace);
const char *arn_of_table(struct call *c, const char *keyspace, const char *table);

/* Does the API show the keyspace? It hides Tally's own system keyspaces, which AWS does not
 * have. */
bool call_shows(const struct schema_keyspace *ks);
/* The keyspace, table or type that a request names. Returns NULL with ResourceNotFoundException. */
const struct schema_space *call_space(struct call *c, const char *keyspace);
/* Sets ResourceNotFoundException for a keyspace. Returns -1. */
int call_no_keyspace(struct call *c, const char *keyspace);
const struct schema_table *call_table(struct call *c, const char *keyspace, const char *table); /* any status */
const struct schema_type *call_type(struct call *c, const char *keyspace, const char *name);
/* -1, AccessDeniedException: the signer may not create a resource of this kind in the keyspace.
 * Call it before any error that reveals what exists there. */
int call_check_creator(struct call *c, enum resource_kind kind, const char *keyspace) MUST_CHECK;
/* -1, ConflictException: the resource is not ACTIVE, because an operation on it is still
 * running. */
int call_check_active(struct call *c, const char *what, const char *name, enum schema_status status) MUST_CHECK;
/* The same for what lives in a keyspace: nothing in it changes while Regions are being added. */
int call_check_active_in(struct call *c, const char *keyspace, const char *what, const char *name,
                         enum schema_status status) MUST_CHECK;

/* The type in CQL's notation; NULL if memory is exhausted. */
const char *type_text(struct call *c, const struct cql_type *t);

/* ---- pages ---- */

/* A page of a list of names, which are in order. */
struct result_page {
    const char *after; /* the page begins after this name; "": at the beginning */
    uint32_t room;     /* how many more names fit */
    const char *token; /* the name of the member with the token, in requests and in answers */
};
/* Reads the members maxResults and nextToken of the request. */
int page_begin(struct call *c, struct result_page *p) MUST_CHECK;
/* Begins a page of room names; token: the name of the service's member with the token. Returns -1
 * if the error invalid, because the token is not one of this service. */
int page_begin_at(struct call *c, struct result_page *p, const char *token, uint32_t room,
                  enum api_error invalid) MUST_CHECK;
/* Is the name on the page? Call it with each name, in order. When the page is full it puts the
 * token into the answer. */
bool page_takes(struct call *c, struct result_page *p, const char *name);
/* Puts a token into the answer: the next page begins after the name. */
int page_end(struct call *c, const char *token, const char *after) MUST_CHECK;
