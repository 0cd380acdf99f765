/* From an envelope to its one response.
 *
 * npi_dispatch finds the opcode's handler. The small messages are answered at once. Query requests become a call, which runs
 * on the loop, and on a worker when cql asks for that; every call leaves through npi_call_finish, which charges, writes exactly
 * one response (at once, or held until durable), counts, and drops the call.
 */
#pragma once

#include "native_protocol/call.h"
#include "native_protocol/conn.h"

/* For the loops. */
struct np_loop_ops;
extern const struct np_loop_ops npi_dispatch_ops;

/* env's body points into memory that may go when this returns. The loop's thread. */
void npi_dispatch(struct np_conn *c, const struct np_envelope *env);

/* Decodes and runs a call where it is: on the loop, or blocking on a worker with its own batch. */
void npi_call_run(struct np_call *call, struct eng_batch *batch, bool blocking);
/* The next part of a call whose outcome is CQL_AGAIN; a worker, with its own batch. */
void npi_call_more(struct np_call *call, struct eng_batch *batch);
/* Drops the references a run took. */
void npi_call_forget(struct np_call *call);
/* The one exit. The loop's thread. */
void npi_call_finish(struct np_call *call);
