/* From an envelope to its one response.
 *
 * npi_dispatch answers the small messages at once (handshake.h). A query request becomes a call,
 * which takes these steps in this order: plan, size, admit, apply, durable, acknowledge, account.
 * The first four steps run on the thread that has the call, the loop's or a worker's (offload.h);
 * the rest on the loop's. Nothing is written before apply, so a failed or refused request leaves
 * nothing behind. Outcome and units are counted once, when the outcome is known.
 */
#pragma once

#include "native_protocol/call.h"
#include "native_protocol/conn.h"

/* The loops' on_envelope: env's body points into memory that may go when this returns. The loop's
 * thread. */
void npi_dispatch(struct np_conn *c, const struct np_envelope *env);
/* Plans a call and takes it through apply, on a worker with its own batch; it may block. With
 * OFFLOAD and AGAIN nothing was applied. */
void npi_call_run(struct np_call *call, struct eng_batch *batch);
/* Runs the next part of a call whose outcome is CQL_AGAIN, on a worker with its own batch. */
void npi_call_more(struct np_call *call, struct eng_batch *batch);
/* Runs the remaining steps: the one exit of all calls. The loop's thread. */
void npi_call_finish(struct np_call *call);
/* Drops the answer so far, and reduces the request to what a call needs while it waits for a
 * worker: to report why it did not run. A run decodes the body again. */
void npi_call_start_over(struct np_call *call);
/* The deadline of a class of work, from now. */
void npi_call_set_deadline(struct np_call *call, enum cql_work_class class);
