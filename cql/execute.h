/* Runs one request from its text to its end, for callers that may block: AWS's API, the live page, the command tally.
 * Requests of clients do the same steps in native_protocol/dispatch.c, where they may leave a loop between two steps.
 *
 * Life: the caller fills the first part of a cql_execution and calls cql_execute, which checks the text, makes the
 * session and the cost, runs all parts of the request, computes the charge, asks the admission, applies the request
 * and waits until its writes are durable. The results are valid until cql_execution_fini.
 */
#pragma once

#include "cql/cql.h"
#include "metering/charge.h"

struct cql_execution {
    struct cql_db *db;
    struct cql_request request;
    struct cql_session *session; /* NULL for a session of the server's own, outside all limits, with the role */
    const char *role;            /* without a session; NULL if the server has no roles */
    const char *client_address;  /* without a session; numeric; NULL means the server itself sends the request */
    struct arena *arena;         /* holds the results */
    struct row_sink *sink;       /* NULL if rows are dropped */
    bool prices;                 /* a write is planned and charged; nothing is admitted or written */
    int64_t timeout_us;          /* 0 if none */
    struct compat_notes *notes;  /* gets the uses of what Amazon Keyspaces refuses; NULL means they go to the report */

    /* results */
    struct op_cost cost;
    struct charge charge;
    struct cql_run run; /* with the answer */

    /* of cql_execute */
    struct cql_session own;
    struct eng_batch *batch;
};

/* Returns 0 once the request is done, or -1 with *err set: it was refused, failed, was not finished in time
 * (ERR_READ_TIMEOUT, ERR_WRITE_TIMEOUT), or conflicted with a write of another server. Any thread but a loop. */
int cql_execute(struct cql_execution *x, struct err *e) MUST_CHECK;
/* Releases what the results refer to. Call it once after cql_execute, whatever that returned, before the arena is
 * reset. A prepared statement in the answer stays the caller's. */
void cql_execution_fini(struct cql_execution *x);

/* The charge of a run whose outcome is DONE or COMMIT, from its cost and consistency; stores in each read and write of
 * the cost its part. Zeros for an unmetered database. */
void cql_charge(const struct cql_run *r, struct charge *out);
