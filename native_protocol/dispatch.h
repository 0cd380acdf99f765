/* From an envelope to its one response.
 *
 * The small messages are answered at once (handshake.h). A query request becomes a call,
 * which takes these steps in this order: plan, charge, admit, apply, durable, acknowledge, account.
 * The first four steps run on the thread that has the call, the loop's or a worker's (offload.h);
 * the rest on the loop's. Nothing is written before apply, so a failed or refused request leaves
 * nothing behind. Outcome and units are counted once, when the outcome is known.
 *
 * The steps of one write are more code than a processor's instruction cache holds (32 KB). A loop
 * therefore plans up to NP_GROUP writes that have arrived together, and then takes them through the
 * other steps one after the other: the cache loads each half of the code once a group. A write joins
 * the group if it has read nothing and holds no lock. Its plan is then as good a little later, and
 * requests that are planned in between cannot see it in any case, as reads see committed writes
 * only. All other requests are finished at once.
 */
#pragma once

#include "native_protocol/call.h"
#include "native_protocol/conn.h"

/* The functions that a loop calls for its input. The loop's thread. */
extern const struct np_input_fns npi_dispatch_fns;
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
